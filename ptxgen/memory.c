/* Loads and stores, addresses, atomics. */
#include "ptxgen/internal.h"

#include <string.h>

static const char *const space_names[] = {"", ".global", ".shared", ".const", ".local"};

static bool is_space(ptx_builder *b, ptx_space space)
{
    if (ptx_ok(b) && (unsigned)space > PTX_LOCAL)
        ptx_fail(b, "there is no space number %d", (int)space);
    return ptx_ok(b);
}

/* ---- modifiers ---- */

enum { LOADS = 1, STORES = 2, GLOBAL_ONLY = 4, BEFORE_SPACE = 8 };

/* In the order that PTX requires; members of a group exclude each other. */
static const struct cache_hint {
    unsigned flag;
    const char *text;
    int group, where;
    isa_need_id need;
} hints[] = {
    {PTX_VOLATILE, ".volatile", 1, LOADS | STORES | BEFORE_SPACE, NEED_BASE},
    {PTX_RELAXED_GPU, ".relaxed.gpu", 1, LOADS | STORES | BEFORE_SPACE, NEED_BASE},
    {PTX_ACQUIRE_GPU, ".acquire.gpu", 1, LOADS | BEFORE_SPACE, NEED_BASE},
    {PTX_RELEASE_GPU, ".release.gpu", 1, STORES | BEFORE_SPACE, NEED_BASE},
    {PTX_CA, ".ca", 2, LOADS, NEED_BASE},
    {PTX_CG, ".cg", 2, LOADS | STORES, NEED_BASE},
    {PTX_CS, ".cs", 2, LOADS | STORES, NEED_BASE},
    {PTX_LU, ".lu", 2, LOADS, NEED_BASE},
    {PTX_CV, ".cv", 2, LOADS, NEED_BASE},
    {PTX_WB, ".wb", 2, STORES, NEED_BASE},
    {PTX_WT, ".wt", 2, STORES, NEED_BASE},
    {PTX_NC, ".nc", 3, LOADS | GLOBAL_ONLY, NEED_BASE},
    {PTX_L1_NO_ALLOCATE, ".L1::no_allocate", 4, LOADS | STORES | GLOBAL_ONLY, NEED_V74},
    {PTX_L1_EVICT_FIRST, ".L1::evict_first", 4, LOADS | STORES | GLOBAL_ONLY, NEED_V74},
    {PTX_L1_EVICT_LAST, ".L1::evict_last", 4, LOADS | STORES | GLOBAL_ONLY, NEED_V74},
    {PTX_L1_EVICT_UNCHANGED, ".L1::evict_unchanged", 4, LOADS | STORES | GLOBAL_ONLY, NEED_V74},
    {PTX_L2_64B, ".L2::64B", 5, LOADS | GLOBAL_ONLY, NEED_V74},
    {PTX_L2_128B, ".L2::128B", 5, LOADS | GLOBAL_ONLY, NEED_V74},
    {PTX_L2_256B, ".L2::256B", 5, LOADS | GLOBAL_ONLY, NEED_SM80_V74},
};
enum { HINT_COUNT = sizeof hints / sizeof *hints };

static void check_hint(ptx_builder *b, const struct cache_hint *hint, ptx_space space, int access,
                       int *groups)
{
    if (!(hint->where & access) || (hint->where & GLOBAL_ONLY && space != PTX_GLOBAL) || space == PTX_CONST)
        ptx_fail(b, "%s is not for this %s", hint->text + 1, access == LOADS ? "load" : "store");
    else if (*groups & 1 << hint->group)
        ptx_fail(b, "%s contradicts another cache hint", hint->text + 1);
    else
        emit_need(b, hint->need, hint->text + 1);
    *groups |= 1 << hint->group;
}

/* ".relaxed.gpu.global.nc.v4" */
static void write_modifier(ptx_builder *b, char *at, ptx_space space, unsigned cache, int access, int n)
{
    int groups = 0;
    bool space_written = false;
    for (int i = 0; i < HINT_COUNT && ptx_ok(b); i++) {
        if (!(hints[i].where & BEFORE_SPACE) && !space_written) {
            at = put_string(at, space_names[space]);
            space_written = true;
        }
        if (cache & hints[i].flag) {
            check_hint(b, &hints[i], space, access, &groups);
            at = put_string(at, hints[i].text);
        }
    }
    if ((groups & 1 << 1) && (groups & ~(1 << 1)) && ptx_ok(b))
        ptx_fail(b, "volatile, relaxed, acquire and release take no cache hint");
    *at = 0;
    if (n > 1) {
        at = put_string(at, n == 2 ? ".v2" : n == 4 ? ".v4" : ".v8");
        *at = 0;
    }
}

static bool vector_fits(ptx_builder *b, ptx_space space, ptx_type type, int n)
{
    int bits = isa_type_bits(type);
    bool plain = (n == 1 || n == 2 || n == 4) && n * bits <= 128;
    bool wide = space == PTX_GLOBAL && ((n == 8 && bits == 32) || (n == 4 && bits == 64));
    if (!ptx_ok(b) || !is_space(b, space))
        return false;
    if (!plain && !wide)
        ptx_fail(b, "there is no vector of %d %s here", n, isa_type_text(type));
    else if (wide)
        emit_need(b, NEED_SM100_V88, "a vector of 256 bits");
    return ptx_ok(b);
}

/* ---- loads and stores ---- */

static void load(ptx_builder *b, ptx_space space, unsigned cache, ptx_type type, ptx_val address, int offset,
                 const ptx_val *targets, ptx_val *out, int n)
{
    char modifier[160];
    if (!builder_ready(b, "ld") || !vector_fits(b, space, type, n))
        return;
    if (b->coherent)
        cache &= ~(unsigned)PTX_NC;
    write_modifier(b, modifier, space, cache, LOADS, n);
    emit(b, &(ptx_instruction){.id = ISA_ld,
                               .shared = space == PTX_SHARED,
                               .t0 = type,
                               .modifier = modifier,
                               .in = (const ptx_val[]){address, ptx_from_int(offset)},
                               .out = out,
                               .targets = targets,
                               .counts = (const uint8_t[]){(uint8_t)n}});
}

void ptx_ld_vec(ptx_builder *b, ptx_space space, unsigned cache, ptx_type type, ptx_val address, int offset,
                ptx_val *out, int n)
{
    for (int i = 0; i < n; i++)
        out[i] = (ptx_val){0};
    load(b, space, cache, type, address, offset, NULL, out, n);
}

void ptx_ld_vec_into(ptx_builder *b, ptx_space space, unsigned cache, ptx_type type, ptx_val address,
                     int offset, const ptx_val *vars, int n)
{
    ptx_val out[8];
    load(b, space, cache, type, address, offset, vars, out, n);
}

ptx_val ptx_ld(ptx_builder *b, ptx_space space, unsigned cache, ptx_type type, ptx_val address, int offset)
{
    ptx_val out;
    ptx_ld_vec(b, space, cache, type, address, offset, &out, 1);
    return out;
}

ptx_val ptx_ld_if(ptx_builder *b, ptx_val pred, ptx_space space, unsigned cache, ptx_type type,
                  ptx_val address, int offset, ptx_val otherwise)
{
    if (!builder_ready(b, "ld_if"))
        return (ptx_val){0};
    ptx_val d = ptx_var(b, emit_number(b, emit_widened(type), otherwise));
    ptx_when(b, pred);
    ptx_into(b, d);
    ptx_ld(b, space, cache, type, address, offset);
    return d;
}

static void store(ptx_builder *b, ptx_space space, unsigned cache, ptx_type type, ptx_val address, int offset,
                  const ptx_val *x, int n)
{
    char modifier[160];
    ptx_val in[10] = {address, ptx_from_int(offset)};
    if (!builder_ready(b, "st") || !vector_fits(b, space, type, n))
        return;
    if (space == PTX_CONST)
        ptx_fail(b, "constant memory cannot be stored to");
    write_modifier(b, modifier, space, cache, STORES, n);
    memcpy(in + 2, x, (size_t)n * sizeof *x);
    emit(b, &(ptx_instruction){.id = ISA_st,
                               .shared = space == PTX_SHARED,
                               .t0 = type,
                               .modifier = modifier,
                               .in = in,
                               .counts = (const uint8_t[]){(uint8_t)n}});
}

void ptx_st_vec(ptx_builder *b, ptx_space space, unsigned cache, ptx_val address, int offset,
                const ptx_val *x, int n)
{
    ptx_type type = emit_common(b, "st", x, n);
    for (int i = 0; ptx_ok(b) && i < n && n <= 8; i++)
        if (x[i].type < PTX_TYPE_COUNT && x[i].type != type)
            ptx_fail(b, "the types differ: %s and %s in one vector", isa_type_text(type),
                     isa_type_text(x[i].type));
    store(b, space, cache, type, address, offset, x, n);
}

void ptx_st(ptx_builder *b, ptx_space space, unsigned cache, ptx_val address, int offset, ptx_val x)
{
    ptx_st_vec(b, space, cache, address, offset, &x, 1);
}

void ptx_st_as(ptx_builder *b, ptx_space space, unsigned cache, ptx_type type, ptx_val address, int offset,
               ptx_val x)
{
    store(b, space, cache, type, address, offset, &x, 1);
}

ptx_val ptx_ld_global(ptx_builder *b, ptx_type type, ptx_val address, int offset)
{
    return ptx_ld(b, PTX_GLOBAL, 0, type, address, offset);
}

void ptx_coherent(ptx_builder *b)
{
    b->coherent = true;
}

ptx_val ptx_ld_global_nc(ptx_builder *b, ptx_type type, ptx_val address, int offset)
{
    return ptx_ld(b, PTX_GLOBAL, PTX_NC, type, address, offset);
}

ptx_val ptx_ld_shared(ptx_builder *b, ptx_type type, ptx_val address, int offset)
{
    return ptx_ld(b, PTX_SHARED, 0, type, address, offset);
}

ptx_val ptx_ld_const(ptx_builder *b, ptx_type type, ptx_val address, int offset)
{
    return ptx_ld(b, PTX_CONST, 0, type, address, offset);
}

void ptx_st_global(ptx_builder *b, ptx_val address, int offset, ptx_val x)
{
    ptx_st(b, PTX_GLOBAL, 0, address, offset, x);
}

void ptx_st_global_u8(ptx_builder *b, ptx_val address, int offset, ptx_val x)
{
    ptx_st_as(b, PTX_GLOBAL, 0, PTX_U8, address, offset, x);
}

void ptx_st_shared(ptx_builder *b, ptx_val address, int offset, ptx_val x)
{
    ptx_st(b, PTX_SHARED, 0, address, offset, x);
}

void ptx_prefetch_l1(ptx_builder *b, ptx_val address, int offset)
{
    emit_void(b, ISA_prefetch, PTX_NOTYPE, ".global.L1", (const ptx_val[]){address, ptx_from_int(offset)});
}

void ptx_prefetch_l2(ptx_builder *b, ptx_val address, int offset)
{
    emit_void(b, ISA_prefetch, PTX_NOTYPE, ".global.L2", (const ptx_val[]){address, ptx_from_int(offset)});
}

/* ---- addresses ---- */

/* index * scale + base in 32 bits, for shared memory. */
static ptx_val at_shared(ptx_builder *b, ptx_val base, ptx_val index, unsigned scale)
{
    index = ptx_as(b, base.type, index);
    return scale == 1 ? ptx_add(b, base, index) : ptx_mad(b, index, ptx_from_int(scale), base);
}

static ptx_val at_global(ptx_builder *b, ptx_val base, ptx_val index, unsigned scale)
{
    bool is_signed = isa_type_is_signed(index.type);
    if (isa_type_bits(index.type) == 32) {
        ptx_val wide = ptx_as(b, is_signed ? PTX_S64 : PTX_U64, base);
        index = ptx_as(b, is_signed ? PTX_S32 : PTX_U32, index);
        return ptx_as(b, base.type, ptx_mad_wide(b, index, ptx_from_int(scale), wide));
    }
    index = ptx_as(b, base.type, index);
    return scale == 1 ? ptx_add(b, base, index) : ptx_mad(b, index, ptx_from_int(scale), base);
}

ptx_val ptx_at(ptx_builder *b, ptx_val base, ptx_val index, unsigned scale)
{
    ptx_type type = emit_common(b, "at", &base, 1);
    if (!ptx_ok(b))
        return (ptx_val){0};
    if (!isa_type_is_integer(type) || isa_type_bits(type) < 32)
        ptx_fail(b, "the base is %s, it has to be an address: u64, or u32 in shared memory",
                 isa_type_text(type));
    if (scale > INT32_MAX)
        ptx_fail(b, "the scale %u is too large", scale);
    if (index.kind == PTX_NUMBER && index.type == PTX_INT) /* known at build time: one addition */
        return ptx_add(b, base, ptx_from_int((int64_t)index.bits * scale));
    if (ptx_ok(b) && index.kind != PTX_NOTHING && !isa_type_is_integer(index.type))
        ptx_fail(b, "the index is %s, it has to be an integer", isa_type_text(index.type));
    return isa_type_bits(type) == 32 ? at_shared(b, base, index, scale) : at_global(b, base, index, scale);
}

ptx_val ptx_cvta_to(ptx_builder *b, ptx_space space, ptx_val generic)
{
    return is_space(b, space) ? emit_op(b, ISA_cvta_to, 0, 0, space_names[space], &generic) : (ptx_val){0};
}

ptx_val ptx_cvta(ptx_builder *b, ptx_space space, ptx_val address)
{
    return is_space(b, space) ? emit_op(b, ISA_cvta, 0, 0, space_names[space], &address) : (ptx_val){0};
}

/* ---- atomics ---- */

static const isa_id atomics[][2] = {
    [PTX_ATOM_ADD] = {ISA_atom_add, ISA_red_add}, [PTX_ATOM_MIN] = {ISA_atom_min, ISA_red_min},
    [PTX_ATOM_MAX] = {ISA_atom_max, ISA_red_max}, [PTX_ATOM_INC] = {ISA_atom_inc, ISA_red_inc},
    [PTX_ATOM_DEC] = {ISA_atom_dec, ISA_red_dec}, [PTX_ATOM_AND] = {ISA_atom_and, ISA_red_and},
    [PTX_ATOM_OR] = {ISA_atom_or, ISA_red_or},    [PTX_ATOM_XOR] = {ISA_atom_xor, ISA_red_xor},
    [PTX_ATOM_EXCH] = {ISA_atom_exch, ISA_COUNT},
};

enum { ATOM, RED };

/* `in`: address, offset, and one or two values. */
static ptx_val atomic(ptx_builder *b, isa_id id, const char *order, ptx_space space, const ptx_val *in,
                      int values)
{
    char modifier[64];
    ptx_val out = {0};
    ptx_type type = emit_common(b, "atomic", in + 2, values);
    if (!is_space(b, space))
        return out;
    if (space == PTX_CONST || space == PTX_LOCAL)
        ptx_fail(b, "there are no atomics in %s memory", space_names[space] + 1);
    *put_string(put_string(modifier, order), space_names[space]) = 0;
    emit(b, &(ptx_instruction){.id = id,
                               .t0 = type,
                               .modifier = modifier,
                               .shared = space == PTX_SHARED,
                               .in = in,
                               .out = &out});
    return out;
}

static ptx_val atomic_op(ptx_builder *b, ptx_atom_op op, int kind, const char *order, ptx_space space,
                         const ptx_val *in)
{
    if (!builder_ready(b, kind == RED ? "red" : "atom"))
        return (ptx_val){0};
    if ((unsigned)op > PTX_ATOM_EXCH || atomics[op][kind] == ISA_COUNT) {
        ptx_fail(b, "there is no operation number %d", (int)op);
        return (ptx_val){0};
    }
    return atomic(b, atomics[op][kind], order, space, in, 1);
}

ptx_val ptx_atom(ptx_builder *b, ptx_atom_op op, ptx_space space, ptx_val address, int offset, ptx_val x)
{
    return atomic_op(b, op, ATOM, "", space, (const ptx_val[]){address, ptx_from_int(offset), x});
}

ptx_val ptx_atom_acq_rel(ptx_builder *b, ptx_atom_op op, ptx_space space, ptx_val address, int offset,
                         ptx_val x)
{
    return atomic_op(b, op, ATOM, ".acq_rel.gpu", space, (const ptx_val[]){address, ptx_from_int(offset), x});
}

void ptx_red(ptx_builder *b, ptx_atom_op op, ptx_space space, ptx_val address, int offset, ptx_val x)
{
    atomic_op(b, op, RED, "", space, (const ptx_val[]){address, ptx_from_int(offset), x});
}

ptx_val ptx_atom_cas(ptx_builder *b, ptx_space space, ptx_val address, int offset, ptx_val expected,
                     ptx_val x)
{
    return atomic(b, ISA_atom_cas, "", space, (const ptx_val[]){address, ptx_from_int(offset), expected, x},
                  2);
}
