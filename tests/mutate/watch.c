#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "mutate/watch.h"
#include "support/random.h"

#include "formats/pinned.h"
#include "kernels/formats/format.h"
#include "kernels/operations.h"
#include "ptxvm/exec/vm.h"
#include "ptxvm/ptxvm.h"
#include "tools/toolkit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOADED_MAX = 4096, AREAS_MAX = 4096, SECONDS_MAX = 30, STEPS_TIMES = 16, STEPS_MORE = 20000 };

/* What a launch did. */
typedef struct outcome {
    bool is_refused, ran; /* ran: to its end, and nothing was found */
    uint64_t memory, instructions;
    bool reached[WATCH_MUTANTS_MAX]; /* of the original: which mutants' lines it executed */
} outcome;

/* A module, and the text that it was loaded from, or that its text was made from by pinned_to_block. */
typedef struct loaded {
    const ptxvm_module *module;
    uint64_t hash, block;
} loaded;

static struct {
    watch_options o;
    const char *only;    /* kernels that the current test is about */
    watched_text *texts; /* shared, as is the rest of the pointers */
    int *lock;
    outcome *result;
    loaded modules[LOADED_MAX];
    loaded pinned; /* the last text that was pinned, and what it became */
    uint64_t pinned_text;
} watch;

/* ---- Texts ---- */

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    for (; size >= 8; at += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    for (; size > 0; at++, size--)
        hash = (hash ^ *at) * UINT64_C(0x100000001B3);
    return hash ^ hash >> 32;
}

static uint64_t hash_text(const char *text, size_t length)
{
    uint64_t hash = hash_bytes(UINT64_C(0xCBF29CE484222325), text, length);
    return hash ? hash : 1;
}

static void *shared_memory(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

bool watch_begin(const watch_options *options)
{
    watch.o = *options;
    watch.texts = shared_memory(WATCH_TEXTS_MAX * sizeof *watch.texts);
    watch.lock = shared_memory(sizeof *watch.lock);
    return watch.texts && watch.lock;
}

void watch_only(const char *kernels)
{
    watch.only = kernels;
}

static void lock(void)
{
    while (__atomic_exchange_n(watch.lock, 1, __ATOMIC_ACQUIRE))
        usleep(10);
}

static void unlock(void)
{
    __atomic_store_n(watch.lock, 0, __ATOMIC_RELEASE);
}

/* Where a text is, or a free place for it; null where the table is full. */
static watched_text *place_of(uint64_t hash)
{
    for (uint64_t i = 0; i < WATCH_TEXTS_MAX; i++) {
        watched_text *at = &watch.texts[(hash + i) % WATCH_TEXTS_MAX];
        if (at->hash == hash || at->hash == 0)
            return at;
    }
    return NULL;
}

watched_text *watch_at(int place)
{
    return watch.texts[place].hash ? &watch.texts[place] : NULL;
}

static void text_path(uint64_t hash, char *path, size_t size)
{
    snprintf(path, size, "%s/%016llx.ptx", watch.o.directory, (unsigned long long)hash);
}

static bool keep_text(uint64_t hash, const char *ptx)
{
    char path[300];
    text_path(hash, path, sizeof path);
    FILE *file = fopen(path, "w");
    bool ok = file && fputs(ptx, file) >= 0;
    return file && fclose(file) == 0 && ok;
}

/* So many mutants of a text, each at most once: a partial shuffle. */
static int choose(const watched_text *text, const char *ptx, mutant mutants[WATCH_MUTANTS_MAX])
{
    uint64_t random = watch.o.seed * 1000003 ^ text->hash;
    int count, kept = 0;
    mutant *list = mutants_of(ptx, random, &count);
    for (int i = 0; watch.o.only && i < count; i++)
        if (strcmp(mutant_class_names[list[i].kind], watch.o.only) == 0)
            list[kept++] = list[i];
    if (watch.o.only)
        count = kept;
    int wanted = watch.o.per_text < count ? watch.o.per_text : count;
    for (int i = 0; i < wanted; i++) {
        int other = i + (int)(random_next(&random) % (uint64_t)(count - i));
        mutants[i] = list[other];
        list[other] = list[i];
    }
    free(list);
    return wanted;
}

bool watch_mutants(const watched_text *text, char **ptx, mutant mutants[WATCH_MUTANTS_MAX])
{
    char path[300];
    text_path(text->hash, path, sizeof path);
    *ptx = toolkit_read_file(path, NULL);
    return *ptx && choose(text, *ptx, mutants) == text->count;
}

static void family_of(const kernel_row *row, const kernel_spec *spec, char *text, size_t size)
{
    static const char *const products[] = {"staged",   "gemv", "ragged", "blocks", "ternary", "columns",
                                           "lanewise", "join", "tile",   "stream", "stored"};
    const format_facts *format = kernel_format(row);
    if (kernel_is_product(row))
        snprintf(text, size, "product %s", products[spec->product.kernel]);
    else
        snprintf(text, size, "%s%s", row->operation->name,
                 format && format->block != QDNN_BLOCK_NONE ? " blocks" : "");
}

static bool is_chosen(const watched_text *text)
{
    uint64_t state = text->hash ^ watch.o.seed;
    return random_next(&state) % 100 < (uint64_t)watch.o.percent &&
           (!watch.o.filter || strstr(text->name, watch.o.filter)) &&
           (!watch.only || strstr(text->row->name, watch.only));
}

static void remember(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm, const char *ptx)
{
    mutant mutants[WATCH_MUTANTS_MAX];
    const uint64_t hash = hash_text(ptx, strlen(ptx));
    lock();
    watched_text *text = place_of(hash);
    if (text && text->hash == 0) {
        kernel_spec normal = kernel_spec_normal(row, spec);
        kernel_file_name(row, &normal, sm, text->name, sizeof text->name);
        family_of(row, &normal, text->family, sizeof text->family);
        text->row = row;
        text->hash = hash;
    }
    if (text && !text->is_taken && is_chosen(text) && keep_text(hash, ptx)) {
        text->count = choose(text, ptx, mutants);
        text->is_taken = true;
    }
    unlock();
}

/* ---- Running ---- */

static uint64_t hash_memory(ptxvm *vm, const ptxvm_leak *areas, int count)
{
    uint64_t hash = 1;
    for (int i = 0; i < count; i++) {
        void *bytes = malloc(areas[i].bytes + 1);
        if (bytes && ptxvm_read(vm, bytes, areas[i].address, areas[i].bytes) == PTXVM_OK)
            hash = hash_bytes(hash, bytes, areas[i].bytes);
        free(bytes);
    }
    return hash;
}

typedef struct launch {
    ptxvm *vm;
    ptxvm_kernel *kernel;
    const ptxvm_launch_config *config;
    const void *params;
    uint64_t param_bytes, step_limit;
    const watched_text *text;
    const mutant *mutants;
} launch;

ptxvm_status __real_ptxvm_launch(ptxvm *vm, ptxvm_kernel *kernel, const ptxvm_launch_config *config,
                                 const void *params, uint64_t param_bytes);
ptxvm_status __real_ptxvm_module_load(ptxvm *vm, const char *text, size_t length, ptxvm_module **module);

/* An instruction whose guard is false in every lane does nothing, so only a mutant of the guard can show. */
static bool is_reached(const ptxvm_counters *counters, const mutant *m)
{
    if (m->line >= counters->n_lines)
        return false;
    const ptxvm_counts *line = &counters->lines[m->line];
    return (m->kind == MUTANT_PREDICATE ? line->threads : line->lanes) > 0;
}

static void note_reached(const ptxvm *vm, const watched_text *text, const mutant *mutants)
{
    const ptxvm_counters *counters = ptxvm_last_counters(vm);
    for (int i = 0; counters && counters->lines && i < text->count; i++)
        watch.result->reached[i] = is_reached(counters, &mutants[i]);
}

/* In a process of its own: runs the kernel, or the same kernel of another text. */
static void run_here(const launch *l, const char *ptx, uint64_t block)
{
    ptxvm_leak *areas = calloc(AREAS_MAX, sizeof *areas);
    int count = ptxvm_leaks(l->vm, areas, AREAS_MAX);
    ptxvm_kernel *kernel = l->kernel;
    ptxvm_module *module;
    ptxvm_kernel_info info;
    char *pinned = ptx && block ? pinned_to_block(ptx, block) : NULL;
    const char *text = pinned ? pinned : ptx;
    ptxvm_kernel_get_info(l->kernel, &info);
    alarm(SECONDS_MAX);
    l->vm->config.threads = 1;
    l->vm->config.step_limit = l->step_limit;
    l->vm->config.wait_seconds = 1;
    if (text && (__real_ptxvm_module_load(l->vm, text, strlen(text), &module) != PTXVM_OK ||
                 ptxvm_module_kernel(module, info.name, &kernel) != PTXVM_OK)) {
        watch.result->is_refused = true;
        return;
    }
    if (!ptx)
        l->vm->config.counters = PTXVM_COUNTERS_LINES;
    watch.result->ran = __real_ptxvm_launch(l->vm, kernel, l->config, l->params, l->param_bytes) == PTXVM_OK;
    if (!ptx)
        note_reached(l->vm, l->text, l->mutants);
    watch.result->instructions = ptxvm_last_report(l->vm)->warp_instructions;
    watch.result->memory = hash_memory(l->vm, areas, count < AREAS_MAX ? count : AREAS_MAX);
}

static outcome run_apart(const launch *l, const char *ptx, uint64_t block)
{
    if (!watch.result)
        watch.result = shared_memory(sizeof *watch.result);
    *watch.result = (outcome){0};
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        run_here(l, ptx, block);
        _exit(0);
    }
    if (child < 0 || waitpid(child, NULL, 0) != child)
        return (outcome){.is_refused = true};
    return *watch.result;
}

static void try_mutants(launch *l, watched_text *text, uint64_t block)
{
    static mutant mutants[WATCH_MUTANTS_MAX];
    char *ptx;
    bool is_alive = false;
    for (int i = 0; i < text->count; i++)
        is_alive = is_alive || text->state[i] <= MUTANT_ALIVE;
    if (!is_alive || !watch_mutants(text, &ptx, mutants))
        return;
    l->text = text;
    l->mutants = mutants;
    outcome original = run_apart(l, NULL, 0);
    for (int i = 0; i < text->count && original.ran; i++)
        text->reached[i] = text->reached[i] || original.reached[i];
    if (original.ran) { /* else it is meant to fail */
        l->step_limit = STEPS_TIMES * original.instructions + STEPS_MORE;
        text->launches++;
        for (int i = 0; i < text->count; i++) {
            bool is_tried =
                text->state[i] == MUTANT_UNTRIED || (text->state[i] == MUTANT_ALIVE && original.reached[i]);
            char *changed = is_tried ? mutant_text(ptx, &mutants[i]) : NULL;
            if (!changed)
                continue;
            outcome o = run_apart(l, changed, block);
            text->state[i] = o.is_refused                           ? MUTANT_REFUSED
                             : o.ran && o.memory == original.memory ? MUTANT_ALIVE
                                                                    : MUTANT_KILLED;
            free(changed);
        }
    }
    free(ptx);
}

/* ---- In the tests' place ---- */

bool __real_kernel_emit(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm,
                        const ptx_options *options, kernel_text *out, ptx_error *error);
bool __wrap_kernel_emit(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm,
                        const ptx_options *options, kernel_text *out, ptx_error *error);
bool __wrap_kernel_emit(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm,
                        const ptx_options *options, kernel_text *out, ptx_error *error)
{
    bool ok = __real_kernel_emit(row, spec, sm, options, out, error);
    if (ok)
        remember(row, spec, sm, out->ptx);
    return ok;
}

/* What plans call. */
bool __real_kernel_emit_normal(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm,
                               const ptx_options *options, kernel_text *out, ptx_error *error);
bool __wrap_kernel_emit_normal(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm,
                               const ptx_options *options, kernel_text *out, ptx_error *error);
bool __wrap_kernel_emit_normal(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm,
                               const ptx_options *options, kernel_text *out, ptx_error *error)
{
    bool ok = __real_kernel_emit_normal(row, spec, sm, options, out, error);
    if (ok)
        remember(row, spec, sm, out->ptx);
    return ok;
}

char *__real_pinned_to_block(const char *ptx, uint64_t number);
char *__wrap_pinned_to_block(const char *ptx, uint64_t number);
char *__wrap_pinned_to_block(const char *ptx, uint64_t number)
{
    char *text = __real_pinned_to_block(ptx, number);
    watch.pinned = (loaded){.hash = hash_text(ptx, strlen(ptx)), .block = number};
    watch.pinned_text = text ? hash_text(text, strlen(text)) : 0;
    return text;
}

static void forget_module(const ptxvm_module *module)
{
    for (int i = 0; i < LOADED_MAX; i++)
        if (watch.modules[i].module == module)
            watch.modules[i].module = NULL;
}

ptxvm_status __wrap_ptxvm_module_load(ptxvm *vm, const char *text, size_t length, ptxvm_module **module);
ptxvm_status __wrap_ptxvm_module_load(ptxvm *vm, const char *text, size_t length, ptxvm_module **module)
{
    ptxvm_status status = __real_ptxvm_module_load(vm, text, length, module);
    if (status || !text)
        return status;
    loaded one = {.module = *module, .hash = hash_text(text, strnlen(text, length))};
    if (one.hash == watch.pinned_text)
        one = (loaded){.module = *module, .hash = watch.pinned.hash, .block = watch.pinned.block};
    forget_module(*module); /* one that went with its device */
    for (int i = 0; i < LOADED_MAX; i++)
        if (!watch.modules[i].module) {
            watch.modules[i] = one;
            break;
        }
    return status;
}

void __real_ptxvm_module_unload(ptxvm_module *module);
void __wrap_ptxvm_module_unload(ptxvm_module *module);
void __wrap_ptxvm_module_unload(ptxvm_module *module)
{
    forget_module(module);
    __real_ptxvm_module_unload(module);
}

ptxvm_status __wrap_ptxvm_launch(ptxvm *vm, ptxvm_kernel *kernel, const ptxvm_launch_config *config,
                                 const void *params, uint64_t param_bytes);
ptxvm_status __wrap_ptxvm_launch(ptxvm *vm, ptxvm_kernel *kernel, const ptxvm_launch_config *config,
                                 const void *params, uint64_t param_bytes)
{
    const loaded *module = NULL;
    for (int i = 0; i < LOADED_MAX && kernel; i++)
        if (watch.modules[i].module == kernel->module)
            module = &watch.modules[i];
    watched_text *text = module ? place_of(module->hash) : NULL;
    if (text && text->hash)
        __atomic_fetch_add(&text->runs, 1, __ATOMIC_RELAXED);
    if (text && text->hash && text->is_taken) {
        launch l = {
            .vm = vm, .kernel = kernel, .config = config, .params = params, .param_bytes = param_bytes};
        try_mutants(&l, text, module->block);
    }
    return __real_ptxvm_launch(vm, kernel, config, params, param_bytes);
}
