/* The list of all forms: what test_ptx_forms.h promises. */
#include "test_ptx_forms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ptx_pool_fill(ptx_builder *b, ptx_pool *pool)
{
    memset(pool, 0, sizeof *pool);
    if (!builder_ready(b, "pool"))
        return;
    for (int type = PTX_PRED; type < PTX_TYPE_COUNT; type++)
        for (int i = 0; i < 3; i++)
            if (isa_type_bits(type) != 8 || type == PTX_E2M1X2)
                pool->value[i][type] = builder_register(b, type);
    pool->shared = builder_register(b, PTX_U32);
}

/* ---- golden calls ---- */

#define X(type)     pool->value[0][PTX_##type]
#define Y(type)     pool->value[1][PTX_##type]
#define Z(type)     pool->value[2][PTX_##type]
#define SHARED      pool->shared
#define OUT         ((ptx_val[8]){{0}})
#define V(...)      ((const ptx_val[]){__VA_ARGS__})
#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)

#define GOLDEN(call, ...)                                                                                    \
    static void JOIN(golden_, __LINE__)(ptx_builder * b, const ptx_pool *pool)                               \
    {                                                                                                        \
        (void)pool;                                                                                          \
        call;                                                                                                \
    }
#include "test_ptx_golden.def"
#undef GOLDEN

static const ptx_golden goldens[] = {
#define GOLDEN(call, ...) {#call, "\t" __VA_ARGS__ "\n", JOIN(golden_, __LINE__)},
#include "test_ptx_golden.def"
#undef GOLDEN
};

int ptx_golden_count(void)
{
    return (int)(sizeof goldens / sizeof *goldens);
}

const ptx_golden *ptx_golden_get(int index)
{
    return &goldens[index];
}

/* ---- forms of the table ---- */

/* The modifiers that a row's ? stands for. Rows that are not here have none, or are written by golden calls
 * alone. */
static const struct {
    isa_id id;
    const char *modifiers[15];
} modifiers[] = {
    {ISA_testp, {"notanumber", "finite"}},
    {ISA_setp, {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"}},
    {ISA_setp_and, {"eq", "lt", "ltu"}},
    {ISA_setp_or, {"eq", "lt", "ltu"}},
    {ISA_setp_x2, {"eq", "gt", "neu", "nan"}},
    {ISA_cvt_frnd, {"rn", "rz", "rm", "rp"}},
    {ISA_cvt_irnd, {"rni", "rzi", "rmi", "rpi"}},
    {ISA_atom_add, {".global", ".acq_rel.gpu.global"}},
    {ISA_atom_min, {".global"}},
    {ISA_atom_max, {".global"}},
    {ISA_atom_inc, {".global"}},
    {ISA_atom_dec, {".global"}},
    {ISA_atom_and, {".global"}},
    {ISA_atom_or, {".global"}},
    {ISA_atom_xor, {".global"}},
    {ISA_atom_exch, {".global", ".acq_rel.gpu.global"}},
    {ISA_atom_cas, {".global"}},
    {ISA_red_add, {".global"}},
    {ISA_red_min, {".global"}},
    {ISA_red_max, {".global"}},
    {ISA_red_inc, {".global"}},
    {ISA_red_dec, {".global"}},
    {ISA_red_and, {".global"}},
    {ISA_red_or, {".global"}},
    {ISA_red_xor, {".global"}},
    {ISA_shfl, {"up", "down", "bfly", "idx"}},
    {ISA_shfl_pred, {"up", "down", "bfly", "idx"}},
    {ISA_redux, {"add", "min", "max"}},
    {ISA_redux_bits, {"and", "or", "xor"}},
    {ISA_bar_red, {"and", "or"}},
    {ISA_membar, {"cta", "gl", "sys"}},
    {ISA_fence, {"gpu", "cta"}},
    {ISA_prefetch, {".global.L1", ".global.L2"}},
    {ISA_cvta, {".global", ".shared", ".const", ".local"}},
    {ISA_cvta_to, {".global", ".shared", ".const", ".local"}},
};

typedef struct form {
    isa_id id;
    int row;
    ptx_type t0, t1;
    const char *modifier;
} form;

/* What the calls refuse before they come to the table. */
static bool applies(const form *f)
{
    bool bits = f->t0 == PTX_B16 || f->t0 == PTX_B32 || f->t0 == PTX_B64;
    switch (f->id) {
    case ISA_setp:
    case ISA_setp_and:
    case ISA_setp_or:
        if (bits && strcmp(f->modifier, "eq") && strcmp(f->modifier, "ne"))
            return false;
        return !isa_type_is_integer(f->t0) || strlen(f->modifier) == 2;
    case ISA_cvt_frnd:
        return f->t0 != PTX_BF16 || isa_type_is_integer(f->t1) || f->modifier[1] == 'n' ||
               f->modifier[1] == 'z';
    case ISA_cvt_sat: {
        bool to_signed = isa_type_is_signed(f->t0), from_signed = isa_type_is_signed(f->t1);
        int spare = isa_type_bits(f->t0) - isa_type_bits(f->t1);
        return !isa_type_is_integer(f->t0) ||
               (to_signed == from_signed ? spare < 0 : !to_signed || spare <= 0);
    }
    case ISA_mul_wide:
    case ISA_mad_wide:
        return isa_type_bits(f->t0) == 2 * isa_type_bits(f->t1) &&
               isa_type_is_signed(f->t0) == isa_type_is_signed(f->t1);
    default:
        return true;
    }
}

static form forms[4096];
static int form_total;

static void add_form(const form *f)
{
    if (applies(f) && isa_find(f->id, f->t0, f->t1) == isa_row_at(f->row))
        forms[form_total++] = *f;
}

static void add_modifiers(form f)
{
    if (!strchr(isa_row_at(f.row)->text, '?')) {
        add_form(&f);
        return;
    }
    for (size_t i = 0; i < sizeof modifiers / sizeof *modifiers; i++)
        for (int m = 0; modifiers[i].id == f.id && modifiers[i].modifiers[m]; m++) {
            f.modifier = modifiers[i].modifiers[m];
            add_form(&f);
        }
}

/* Before main, so that the count is there when tests are registered. */
__attribute__((constructor)) static void list_forms(void)
{
    isa_id id = 0;
    for (int r = 0; r < ISA_COUNT; r++) {
        const isa_row *row = isa_row_at(r);
        if (row->first)
            id = (isa_id)r;
        if (strpbrk(row->shape, "{<") || id == ISA_cp_async || id == ISA_cp_async_zfill)
            continue;
        for (int t0 = 0; t0 < PTX_TYPE_COUNT; t0++)
            for (int t1 = 0; t1 < PTX_TYPE_COUNT; t1++)
                if ((row->t0 ? row->t0 >> t0 & 1 : !t0) && (row->t1 ? row->t1 >> t1 & 1 : !t1))
                    add_modifiers((form){id, r, (ptx_type)t0, (ptx_type)t1, NULL});
    }
}

int ptx_form_count(void)
{
    return form_total + ptx_golden_count();
}

static ptx_val operand(const ptx_pool *pool, char letter, const form *f, int use)
{
    ptx_type type = letter == '0' || letter == 'b'   ? f->t0
                    : letter == '1' || letter == 'B' ? f->t1
                    : letter == 'M'                  ? emit_widened(f->t1)
                    : letter == 's'                  ? PTX_S32
                    : letter == 'q'                  ? PTX_U64
                    : letter == 'p'                  ? PTX_PRED
                                                     : PTX_U32;
    return letter == 'i' ? ptx_from_int(32 * use) : pool->value[use][type];
}

static void write_row(ptx_builder *b, const ptx_pool *pool, const form *f)
{
    ptx_val in[8], out[8];
    int n = 0, use = 0;
    for (const char *s = strchr(isa_row_at(f->row)->shape, '=') + 1; *s; s++) {
        bool address = *s == '[' || *s == '(';
        in[n++] = *s == '['   ? pool->value[0][PTX_U64]
                  : *s == '(' ? pool->shared
                              : operand(pool, *s, f, use++ % 3);
        if (address)
            in[n++] = ptx_from_int(8);
    }
    emit(b, &(ptx_instruction){
                .id = f->id, .t0 = f->t0, .t1 = f->t1, .modifier = f->modifier, .in = in, .out = out});
}

void ptx_form_write(ptx_builder *b, int index, char *name, size_t size)
{
    ptx_pool pool;
    ptx_kernel(b, "k");
    ptx_pool_fill(b, &pool);
    if (index >= form_total) {
        goldens[index - form_total].write(b, &pool);
        snprintf(name, size, "%s", goldens[index - form_total].call);
        return;
    }
    const form *f = &forms[index];
    write_row(b, &pool, f);
    snprintf(name, size, "%s, types %s %s, %s", isa_row_at(f->row)->text, isa_type_text(f->t0),
             isa_type_text(f->t1), f->modifier ? f->modifier : "");
}

/* ---- results ---- */

char *ptx_close_or_error(ptx_builder *b)
{
    char *text;
    ptx_error error;
    return ptx_close(b, &text, &error) ? text : strdup(error.text);
}

char *ptx_body_of(const char *module)
{
    const char *entry = strstr(module, ".entry");
    const char *start = entry ? strstr(entry, "\n\n") : NULL;
    const char *end = start ? strstr(start, "\tret;\n}\n") : NULL;
    while (end && strstr(end + 1, "\tret;\n}\n"))
        end = strstr(end + 1, "\tret;\n}\n");
    return end ? strndup(start + 2, (size_t)(end - start - 2)) : strdup(module);
}
