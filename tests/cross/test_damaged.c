/* What ptxgen writes, damaged: cut off in some hundred places (in the full build at every seventh byte) it is
 * refused, and with a token missing it is refused or runs to some end. Nothing crashes. Of lines that differ
 * only in their numbers, by default one is damaged in the same place. */
#include "guest.h"
#include "test.h"

#include "kernels/kernels.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const sms[] = {"sm_75", "sm_90", "sm_120a"};
#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* Two settings of a kernel: the defaults, and those least like them; and every how many kernels one is taken. */
enum { SETTINGS = 2, EVERY = 7 };

static const kernel_row *row_of(int index)
{
    return &kernel_rows[index / LENGTH(sms) / SETTINGS * EVERY];
}

static kernel_spec setting(const kernel_row *row, int which)
{
    const format_facts *format = kernel_format(row);
    kernel_spec spec = kernel_spec_default();
    if (which == 1) {
        spec.data = QDNN_DATA_BF16;
        spec.stored.scale = QDNN_SCALE_F16;
        spec.stored.zero = QDNN_DATA_F32;
        spec.stored.group_size = kernel_takes(row, "row_size") ? 64 : 104; /* groups of a row divide it */
        spec.stored.nibble_order =
            format && format->bits == 4 ? QDNN_NIBBLE_HIGH_FIRST : QDNN_NIBBLE_LOW_FIRST;
        spec.quantize.rounding = QDNN_ROUND_TIES_AWAY;
        spec.quantize.division = QDNN_DIVIDE_RECIPROCAL;
    }
    return spec;
}

static int case_count(void)
{
    return (kernel_row_count / EVERY) * SETTINGS * LENGTH(sms);
}

static void case_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s_%d", row_of(index)->name, sms[index % LENGTH(sms)],
             index / LENGTH(sms) % SETTINGS);
}

typedef struct damaged {
    kernel_text text;
    size_t length;
    char entry[64];
    ptxvm *vm;
} damaged;

static bool open_case(damaged *d, int index)
{
    const kernel_row *row = row_of(index);
    kernel_spec spec = setting(row, index / LENGTH(sms) % SETTINGS);
    ptx_error error;
    ptxvm_config config = {.sm = sms[index % LENGTH(sms)], .threads = 1, .step_limit = 20000};
    memset(d, 0, sizeof *d);
    kernel_entry_name(row, d->entry, sizeof d->entry);
    if (!CHECK(kernel_emit(row, &spec, ptx_sm_find(config.sm), NULL, &d->text, &error)))
        return false;
    d->length = strlen(d->text.ptx);
    return CHECK(ptxvm_create(&config, &d->vm) == PTXVM_OK);
}

static void close_case(damaged *d)
{
    ptxvm_destroy(d->vm);
    free(d->text.ptx);
}

/* From a copy of the exact size, so that a sanitizer sees every step beyond it. */
static ptxvm_status load(damaged *d, const char *head, size_t n_head, const char *tail, size_t n_tail,
                         ptxvm_module **module)
{
    char *copy = malloc(n_head + n_tail + 1);
    if (n_head)
        memcpy(copy, head, n_head);
    if (n_tail)
        memcpy(copy + n_head, tail, n_tail);
    char *exact = realloc(copy, n_head + n_tail ? n_head + n_tail : 1);
    *module = NULL;
    ptxvm_status status = ptxvm_module_load(d->vm, exact, n_head + n_tail, module);
    free(exact);
    return status;
}

static size_t token_length(const char *p)
{
    size_t n = 1;
    if (isalnum((unsigned char)*p) || strchr("_%$.", *p))
        while (isalnum((unsigned char)p[n]) || (p[n] && strchr("_%$", p[n])))
            n++;
    return n;
}

/* ---- Places: what is damaged there by default is so once in a text ---- */

/* By a hash of each; 0 is a free slot. */
enum { PLACES = 1 << 14 };

typedef struct places {
    uint64_t seen[PLACES];
    int count;
} places;

static uint64_t hash_of(uint64_t hash, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001B3u; /* FNV-1a */
    return hash;
}

/* A line without the numbers of its registers, labels and constants, and where in it `at` is. */
static uint64_t place_of(const char *text, const char *at)
{
    uint64_t hash = 0xCBF29CE484222325u;
    const char *p = at;
    while (p > text && p[-1] != '\n')
        p--;
    for (size_t n; *p && *p != '\n'; p += n) {
        n = token_length(p);
        const bool has_number = isdigit((unsigned char)*p) || *p == '%' || *p == '$';
        const size_t digit = has_number ? strcspn(p, "0123456789") : n;
        const char mark = at >= p && at < p + n ? (char)(1 + (at - p) % 100) : 0;
        hash = hash_of(hash_of(hash, p, digit < n ? digit : n), &mark, 1);
    }
    return hash ? hash : 1;
}

/* Whether a place is new; it is remembered. */
static bool is_new(places *all, uint64_t place)
{
#ifdef QDNN_TEST_FULL
    (void)all, (void)place;
    return true;
#else
    size_t slot = place % PLACES;
    while (all->seen[slot] && all->seen[slot] != place)
        slot = (slot + 1) % PLACES;
    if (all->seen[slot] == place)
        return false;
    if (all->count == PLACES / 2) /* it is full: the rest counts as new */
        return true;
    all->seen[slot] = place;
    all->count++;
    return true;
#endif
}

/* Bytes from one cut to the next. The time of a cut grows with what is before it, and long texts repeat
 * themselves: they are cut at longer distances, which are odd, so that cuts fall on all positions within a
 * line. */
static size_t cut_distance(size_t length)
{
#ifdef QDNN_TEST_FULL
    (void)length;
    return 7;
#else
    return 7 + length / 1024 * 2;
#endif
}

/* A text that ends before its kernel begins is a module. */
TEST_EACH(Damaged, CutOff, case_count, case_name)
{
    damaged d;
    if (!open_case(&d, index))
        return;
    const char *end = strrchr(d.text.ptx, '}');
    size_t whole = (size_t)(end - d.text.ptx) + 1,
           start = (size_t)(strstr(d.text.ptx, ".entry") - d.text.ptx);
    places tried = {0};
    for (size_t n = (size_t)index % 7; n < whole; n += cut_distance(whole)) {
        ptxvm_module *module;
        if (!is_new(&tried, place_of(d.text.ptx, d.text.ptx + n)))
            continue;
        ptxvm_status status = load(&d, d.text.ptx, n, NULL, 0, &module);
        if (status == PTXVM_OK) {
            CHECK(n <= start);
            CHECK_EQ_I64(ptxvm_module_kernel_count(module), 0);
            ptxvm_module_unload(module);
        } else if (!CHECK(ptxvm_last_error(d.vm)[0] != 0)) {
            break;
        }
    }
    close_case(&d);
}

/* ---- a token less ---- */

/* One block with pointers into one buffer; any status will do. */
static void launch(damaged *d, ptxvm_module *module, ptxvm_address buffer)
{
    ptxvm_kernel *kernel = NULL;
    if (ptxvm_module_kernel(module, d->entry, &kernel) != PTXVM_OK)
        return;
    ptxvm_kernel_info info;
    ptxvm_kernel_get_info(kernel, &info);
    uint64_t params[32] = {buffer, buffer + 4096, buffer + 8192, buffer + 12288, 300, 300};
    if (!CHECK(info.n_params <= 32 && info.param_bytes <= sizeof params))
        return;
    params[info.n_params > 0 ? info.n_params - 1 : 0] = 300;
    ptxvm_launch_config config = {.grid = {1, 1, 1}, .block = {d->text.geometry.block, 1, 1}};
    ptxvm_launch(d->vm, kernel, &config, params, info.param_bytes);
}

static void without_token(damaged *d, const char *token, size_t n, ptxvm_address buffer)
{
    ptxvm_module *module;
    size_t before = (size_t)(token - d->text.ptx);
    if (load(d, d->text.ptx, before, token + n, d->length - before - n, &module) == PTXVM_OK) {
        launch(d, module, buffer);
        ptxvm_module_unload(module);
    } else {
        CHECK(ptxvm_last_error(d->vm)[0] != 0);
    }
}

TEST_EACH(Damaged, ATokenLess, case_count, case_name)
{
    damaged d;
    ptxvm_address buffer;
    places tried = {0};
    if (!open_case(&d, index))
        return;
    REQUIRE(ptxvm_alloc(d.vm, 1 << 16, &buffer) == PTXVM_OK);
    int stride = index % (LENGTH(sms) * SETTINGS) == 0 ? 1 : 11,
        at = index; /* all of a kernel's first text */
    for (const char *p = d.text.ptx; *p;) {
        size_t n = token_length(p);
        if (!isspace((unsigned char)*p) && at++ % stride == 0 && is_new(&tried, place_of(d.text.ptx, p)))
            without_token(&d, p, n, buffer);
        p += n;
    }
    close_case(&d);
}
