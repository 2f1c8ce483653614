/* tcgen05.mma: products of matrices in shared and tensor memory, by one block or a pair of blocks.
 *
 * Of a pair (.cta_group::2) each block has half of the rows of A and D, and half of the columns of B, at the same
 * addresses. Where the rows of D are, by the rows that a block has (PTX ISA, "Data Path Layout Organization"):
 *   128   row i in lane i
 *    64   of one block: rows 16 i to 16 i + 15 in lanes 32 i to 32 i + 15
 *    64   of a pair: columns 0 to N/2 - 1 in lanes 0 to 63, the others in lanes 64 to 127; A in tensor memory lies in
 *         both halves
 * A row takes what it needs of the scales from the 32 lanes that it is in: those of row i of A are in lane i % 32,
 * column i / 32, those of column j of B in lane j % 32, column j / 32. */
#include <stdlib.h>

#include "cluster.h"
#include "decode.h"
#include "ops_tcgen05.h"
#include "ptxvm/exec/hooks.h"

enum { STRIP = 16, LINE_PIECES = 2, LINE_WORDS = 8 };

/* ---- Descriptors of matrices in shared memory: PTX ISA, "Shared memory descriptor" ---- */

/* The fields with a value of their own; those of the others are taken as they are. */
typedef struct descriptor_field {
    const char *name;
    int first, bits;
    uint32_t value;
    bool supported; /* false: another value is valid, but ptxvm does not have it */
} descriptor_field;

static const descriptor_field fields[] = {
    {"bits 14 to 15", 14, 2, 0, true},
    {"bits 30 to 31", 30, 2, 0, true},
    {"the constant in bits 46 to 48", 46, 3, 1, true},
    {"the base offset", 49, 3, 0, false}, /* without a swizzle it means nothing */
    {"the mode of the leading dimension", 52, 1, 0, false},
    {"the constant in bits 53 to 60", 53, 8, 0, true},
};

bool tcgen05_descriptor_is_valid(vm_warp *warp, const vm_op *op, int lane, const char *name, uint64_t bits)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        uint32_t value = (uint32_t)(bits >> fields[i].first) & ((1u << fields[i].bits) - 1);
        bool means_nothing = fields[i].first == 49 && bits >> 61 == 0;
        if (value == fields[i].value || means_nothing)
            continue;
        vm_fault(warp, op, lane, fields[i].supported ? PTXVM_ERROR_EXECUTION : PTXVM_ERROR_UNSUPPORTED,
                 "the descriptor of %s, 0x%016llx: %s is %u, %s %u", name, (unsigned long long)bits,
                 fields[i].name, value, fields[i].supported ? "but must be" : "ptxvm supports only",
                 fields[i].value);
        return false;
    }
    unsigned swizzle = (unsigned)(bits >> 61);
    if (swizzle <= 2 || swizzle == 4 || swizzle == 6)
        return true;
    vm_fault(warp, op, lane, PTXVM_ERROR_EXECUTION,
             "the descriptor of %s, 0x%016llx: the swizzle is %u, but must be 0, 1, 2, 4 or 6", name,
             (unsigned long long)bits, swizzle);
    return false;
}

vm_matrix tcgen05_matrix(const char *name, uint64_t bits, bool is_mn_major)
{
    static const uint8_t widths[] = {16, 128, 128, 16, 64, 16, 32, 16};
    return (vm_matrix){.name = name,
                       .start = (uint32_t)(bits & 0x3FFF) << 4,
                       .leading = (uint32_t)(bits >> 16 & 0x3FFF) << 4,
                       .stride = (uint32_t)(bits >> 32 & 0x3FFF) << 4,
                       .width = widths[bits >> 61],
                       .is_mn_major = is_mn_major,
                       .by_pairs = bits >> 61 == 1};
}

bool tcgen05_piece_is_inside(vm_warp *warp, const vm_op *op, int lane, const vm_block *block,
                             const vm_matrix *m, uint32_t at)
{
    if (at + 16 <= block->shared_reach)
        return true;
    ptxvm_finding detail = {.kind = PTXVM_FINDING_OUT_OF_BOUNDS,
                            .space = "shared",
                            .address = block->shared_base + at,
                            .access_bytes = 16,
                            .size = block->shared_bytes,
                            .distance = (int64_t)at - (int64_t)block->shared_bytes};
    vm_fault_access(
        warp, op, lane, PTXVM_ERROR_ADDRESS, &detail,
        "the descriptor of %s (start 0x%x, leading offset %u, stride offset %u, swizzle of %u bytes) leads "
        "to shared address 0x%x, which is outside: the block has %llu bytes",
        m->name, m->start, m->leading, m->stride, m->width == 16 ? 0 : m->width, at,
        (unsigned long long)block->shared_bytes);
    return false;
}

/* ---- The instruction descriptor: PTX ISA, "Instruction descriptor" ---- */

typedef struct type_code {
    unsigned kind;
    uint8_t code;
    pvm_type type;
} type_code;

static const type_code input_types[] = {
    {M_kind__f16, 0, T_F16},       {M_kind__f16, 1, T_BF16},      {M_kind__tf32, 2, T_TF32},
    {M_kind__f8f6f4, 0, T_E4M3},   {M_kind__f8f6f4, 1, T_E5M2},   {M_kind__f8f6f4, 3, T_E2M3},
    {M_kind__f8f6f4, 4, T_E3M2},   {M_kind__f8f6f4, 5, T_E2M1},   {M_kind__i8, 0, T_U8},
    {M_kind__i8, 1, T_S8},         {M_kind__mxf8f6f4, 0, T_E4M3}, {M_kind__mxf8f6f4, 1, T_E5M2},
    {M_kind__mxf8f6f4, 3, T_E2M3}, {M_kind__mxf8f6f4, 4, T_E3M2}, {M_kind__mxf8f6f4, 5, T_E2M1},
    {M_kind__mxf4, 1, T_E2M1},     {M_kind__mxf4nvf4, 1, T_E2M1},
};

static const type_code result_types[] = {
    {M_kind__f16, 0, T_F16},    {M_kind__f16, 1, T_F32},    {M_kind__tf32, 1, T_F32},
    {M_kind__f8f6f4, 0, T_F16}, {M_kind__f8f6f4, 1, T_F32}, {M_kind__i8, 2, T_S32},
};

static pvm_type type_of(const type_code *codes, size_t n, unsigned kind, uint32_t code)
{
    for (size_t i = 0; i < n; i++)
        if (codes[i].kind == kind && codes[i].code == code)
            return codes[i].type;
    return T_NONE;
}

#define TYPE_OF(codes, kind, code) type_of(codes, sizeof(codes) / sizeof *(codes), kind, code)

static uint32_t field_of(uint32_t bits, int first, int n)
{
    return bits >> first & ((1u << n) - 1);
}

static bool is_scaled(const pvm_inst *inst)
{
    return inst->mod[S_SCALE] == M_block_scale;
}

static int scales_of(const pvm_inst *inst)
{
    switch (inst->mod[S_SCALEVEC]) {
    case M_scale_vec__1X:
        return 1;
    case M_scale_vec__4X:
    case M_block16:
        return 4;
    case M_scale_vec__2X:
        return 2;
    default: /* .block32, which is what no word means */
        return inst->mod[S_KIND] == M_kind__mxf8f6f4 ? 1 : 2;
    }
}

static bool is_narrow(pvm_type type)
{
    return type == T_E2M3 || type == T_E3M2 || type == T_E2M1;
}

/* Why the descriptor is wrong: a field and its value. Null: it is right. */
typedef struct complaint {
    const char *field, *rule;
    uint32_t value;
    bool unsupported;
} complaint;

static bool n_is_valid(unsigned kind, uint32_t n, bool is_pair)
{
    if (n < 8 || n > 256)
        return false;
    if (kind == M_kind__i8)
        return is_pair ? n % 32 == 0 : n % 16 == 0 || n == 8 || n == 24;
    return n % (is_pair ? 16 : 8) == 0;
}

static bool m_is_valid(bool scaled, uint32_t m, bool is_pair)
{
    return m == 128 || (is_pair ? m == 256 : !scaled && m == 64);
}

static complaint check_sizes(unsigned kind, bool scaled, bool is_pair, uint32_t m, uint32_t n)
{
    if (!m_is_valid(scaled, m, is_pair))
        return (complaint){"M", is_pair ? "128 or 256" : scaled ? "128" : "64 or 128", m, false};
    if (!n_is_valid(kind, n, is_pair))
        return (complaint){"N",
                           kind != M_kind__i8
                               ? is_pair ? "a multiple of 16 up to 256" : "a multiple of 8 up to 256"
                           : is_pair ? "a multiple of 32 up to 256"
                                     : "8, 24 or a multiple of 16 up to 256",
                           n, false};
    return (complaint){NULL, NULL, 0, false};
}

/* Bits that only some kinds have. */
static complaint check_plain(unsigned kind, uint32_t bits)
{
    if (field_of(bits, 3, 1) && kind != M_kind__i8)
        return (complaint){"saturation", "0 but for kind::i8", 1, false};
    if (kind == M_kind__i8 && field_of(bits, 13, 2))
        return (complaint){"negation", "0 for kind::i8", field_of(bits, 13, 2), false};
    if (field_of(bits, 6, 1) || field_of(bits, 23, 1) || field_of(bits, 29, 1))
        return (complaint){"one of the reserved bits 6, 23 and 29", "0", 1, false};
    if (field_of(bits, 30, 2))
        return (complaint){"the maximum shift", "0 without .ws", field_of(bits, 30, 2), false};
    return (complaint){NULL, NULL, 0, false};
}

static complaint check_scaled(const pvm_inst *inst, uint32_t bits)
{
    int scales = scales_of(inst);
    uint32_t a = field_of(bits, 29, 2), b = field_of(bits, 4, 2);
    bool is_mxf4 = inst->mod[S_KIND] != M_kind__mxf8f6f4;
    if (field_of(bits, 0, 2) || field_of(bits, 3, 1) || field_of(bits, 6, 1))
        return (complaint){"one of the reserved bits 0, 1, 3 and 6", "0", 1, false};
    if (field_of(bits, 31, 1))
        return (complaint){"the size of K", is_mxf4 ? "0, a K of 64," : "0", 1, is_mxf4};
    if (!field_of(bits, 23, 1) && inst->mod[S_KIND] != M_kind__mxf4nvf4)
        return (complaint){"the type of the scales", "1, ue8m0", 0, false};
    if ((scales == 2 && a % 2) || (scales == 4 && a))
        return (complaint){"the scale factor ID of A", scales == 2 ? "0 or 2" : "0", a, false};
    if ((scales == 2 && b % 2) || (scales == 4 && b))
        return (complaint){"the scale factor ID of B", scales == 2 ? "0 or 2" : "0", b, false};
    return (complaint){NULL, NULL, 0, false};
}

static complaint check_majors(unsigned kind, uint32_t bits, pvm_type a, pvm_type b, bool a_in_tmem)
{
    bool never = kind == M_kind__mxf4 || kind == M_kind__mxf4nvf4;
    if (field_of(bits, 15, 1) && (never || is_narrow(a) || a_in_tmem))
        return (complaint){"the transpose of A", a_in_tmem ? "0 for A in tensor memory" : "0 for this type",
                           1, false};
    if (field_of(bits, 16, 1) && (never || is_narrow(b)))
        return (complaint){"the transpose of B", "0 for this type", 1, false};
    return (complaint){NULL, NULL, 0, false};
}

static complaint check_types(unsigned kind, uint32_t bits, const tensor_tcgen05 *what)
{
    (void)kind;
    if (!what->atype)
        return (complaint){"the type of A", "one that the .kind has", field_of(bits, 7, 3), false};
    if (!what->btype)
        return (complaint){"the type of B", "one that the .kind has", field_of(bits, 10, 3), false};
    if (!what->dtype)
        return (complaint){"the type of D", "one that the .kind has", field_of(bits, 4, 2), false};
    if (what->dtype == T_F16 && what->kind == M_kind__f16 && (what->atype != T_F16 || what->btype != T_F16))
        return (complaint){"the type of D", "1 (f32) for bf16 inputs", 0, false};
    return (complaint){NULL, NULL, 0, false};
}

static bool decode_shape(vm_warp *warp, const vm_op *op, int lane, uint32_t bits, tcgen05_item *item)
{
    const pvm_inst *inst = op->inst;
    unsigned kind = inst->mod[S_KIND];
    bool scaled = is_scaled(inst);
    tcgen05_shape *shape = &item->shape;
    tensor_tcgen05 what = {.kind = kind,
                           .dtype = scaled ? T_F32 : TYPE_OF(result_types, kind, field_of(bits, 4, 2)),
                           .atype = TYPE_OF(input_types, kind, field_of(bits, 7, 3)),
                           .btype = TYPE_OF(input_types, kind, field_of(bits, 10, 3)),
                           .satfinite = !scaled && field_of(bits, 3, 1),
                           .scales = scaled ? scales_of(inst) : 0,
                           .scale_ue4m3 = scaled && !field_of(bits, 23, 1),
                           .is_pair = item->is_pair,
                           .is_modified = item->scale_d || item->shifts_a};
    shape->m = (int)field_of(bits, 24, 5) * 16;
    shape->n = (int)field_of(bits, 17, 6) * 8;
    complaint wrong =
        field_of(bits, 2, 1) ? (complaint){"sparsity", "0", 1, true} : (complaint){NULL, NULL, 0, false};
    if (!wrong.field)
        wrong = check_types(kind, bits, &what);
    if (!wrong.field)
        wrong = check_sizes(kind, scaled, item->is_pair, (uint32_t)shape->m, (uint32_t)shape->n);
    if (!wrong.field)
        wrong = scaled ? check_scaled(inst, bits) : check_plain(kind, bits);
    if (!wrong.field)
        wrong = check_majors(kind, bits, what.atype, what.btype, item->a_in_tmem);
    if (wrong.field) {
        vm_fault(warp, op, lane, wrong.unsupported ? PTXVM_ERROR_UNSUPPORTED : PTXVM_ERROR_EXECUTION,
                 "the instruction descriptor 0x%08x: %s is %u, %s %s", bits, wrong.field, wrong.value,
                 wrong.unsupported ? "ptxvm supports only" : "but must be", wrong.rule);
        return false;
    }
    what.n = shape->n; /* tcgen05_multiply works on parts */
    shape->negates_a = field_of(bits, 13, 1);
    shape->negates_b = field_of(bits, 14, 1);
    shape->a_is_mn_major = field_of(bits, 15, 1);
    shape->b_is_mn_major = field_of(bits, 16, 1);
    shape->scale_a_byte = (int)field_of(bits, 29, 2);
    shape->scale_b_byte = (int)field_of(bits, 4, 2);
    return tensor_find_tcgen05(&what, warp->block->launch->vm->device, &shape->op) ||
           vm_fault(warp, op, lane, PTXVM_ERROR_UNSUPPORTED, "this SM has no tcgen05.mma of this .kind") ==
               VM_NEXT;
}

/* ---- Matrices in shared memory ---- */

/* The lines of A or B that a block has in its shared memory. */
typedef struct span {
    vm_matrix m;
    pvm_type type;
    const tensor_op *op;
    uint32_t lines, per_piece; /* per_piece: MN-major: lines in one piece */
} span;

static uint32_t element_bytes(pvm_type type)
{
    return type == T_TF32 ? 4 : type == T_F16 || type == T_BF16 ? 2 : 1;
}

static span span_of(const tcgen05_item *item, bool of_b)
{
    const tcgen05_shape *s = &item->shape;
    bool mn = of_b ? s->b_is_mn_major : s->a_is_mn_major;
    pvm_type type = of_b ? s->op.btype : s->op.atype;
    return (span){tcgen05_matrix(of_b ? "B" : "A", of_b ? item->b : item->a, mn), type, &s->op,
                  (uint32_t)(of_b ? s->n : s->m) >> item->is_pair, 16 / element_bytes(type)};
}

static uint32_t piece_count(const span *s)
{
    return s->m.is_mn_major ? s->lines / s->per_piece * (uint32_t)s->op->k : s->lines * LINE_PIECES;
}

static uint32_t piece_place(const span *s, uint32_t index)
{
    uint32_t k = (uint32_t)s->op->k;
    return s->m.is_mn_major ? vm_matrix_by_depth(&s->m, index % k, index / k)
                            : vm_matrix_by_line(&s->m, index / LINE_PIECES, index % LINE_PIECES);
}

/* The blocks of the product, by rank. */
static int blocks_of(const vm_warp *warp, const tcgen05_item *item, vm_block *blocks[2])
{
    uint32_t first = warp->block->rank & ~1u;
    blocks[0] = item->is_pair ? warp->block->cluster->blocks[first] : warp->block;
    blocks[1] = item->is_pair ? warp->block->cluster->blocks[first + 1] : NULL;
    return 1 + item->is_pair;
}

static bool spans_are_inside(vm_warp *warp, const tcgen05_item *item)
{
    vm_block *blocks[2];
    int n = blocks_of(warp, item, blocks);
    for (int of_b = item->a_in_tmem; of_b < 2; of_b++) {
        span s = span_of(item, of_b);
        for (uint32_t i = 0; i < piece_count(&s); i++)
            for (int b = 0; b < n; b++)
                if (!tcgen05_piece_is_inside(warp, item->op, item->lane, blocks[b], &s.m, piece_place(&s, i)))
                    return false;
    }
    return true;
}

void tcgen05_watch_shared(vm_warp *warp, const tcgen05_item *item, bool begin)
{
    vm_block *blocks[2];
    int n = blocks_of(warp, item, blocks);
    for (int of_b = item->a_in_tmem; of_b < 2; of_b++) {
        span s = span_of(item, of_b);
        for (uint32_t i = 0; i < piece_count(&s); i++)
            for (int b = 0; b < n; b++)
                vm_check_operand(warp, item->op, item->lane, blocks[b], piece_place(&s, i), 16, begin);
    }
}

/* The elements of a piece: those of 6 and 4 bits are packed, with padding behind them, except for mxf4. */
static uint32_t unpack(const span *s, const uint32_t words[4], uint32_t elements[32])
{
    uint32_t n = 0, bits = s->type == T_E2M1 ? 4 : 6;
    if (is_narrow(s->type) && s->op->k == 32) {
        for (; n < 16; n++) {
            uint32_t at = n * bits, low = words[at / 32] >> at % 32;
            if (at % 32 + bits > 32)
                low |= words[at / 32 + 1] << (32 - at % 32);
            elements[n] = low & ((1u << bits) - 1);
        }
        return n;
    }
    for (int w = 0; w < 4; w++)
        n += (uint32_t)tensor_unpack(s->op, s->type, words[w], elements + n);
    return n;
}

/* Element k of line l goes to to[l / 8 * block + l % 8 * line_step + k * k_step]. */
typedef struct target {
    uint32_t *to;
    uint32_t block, line_step, k_step;
} target;

static void put(const target *t, uint32_t line, uint32_t k, uint32_t element)
{
    t->to[line / 8 * t->block + line % 8 * t->line_step + k * t->k_step] = element;
}

/* Lines first to first + n - 1, to lines 0 to n - 1 of the target. */
static void read_lines(const vm_block *block, const span *s, uint32_t first, uint32_t n, target t)
{
    uint32_t words[4], elements[32], count;
    for (uint32_t line = 0; !s->m.is_mn_major && line < n; line++)
        for (uint32_t piece = 0; piece < LINE_PIECES; piece++) {
            tcgen05_read_piece(block, vm_matrix_by_line(&s->m, first + line, piece), words);
            count = unpack(s, words, elements);
            for (uint32_t i = 0; i < count; i++)
                put(&t, line, piece * count + i, elements[i]);
        }
    for (uint32_t k = 0; s->m.is_mn_major && k < (uint32_t)s->op->k; k++)
        for (uint32_t piece = first / s->per_piece; piece * s->per_piece < first + n; piece++) {
            tcgen05_read_piece(block, vm_matrix_by_depth(&s->m, k, piece), words);
            count = unpack(s, words, elements);
            for (uint32_t i = 0; i < count; i++) {
                uint32_t line = piece * s->per_piece + i;
                if (line >= first && line < first + n)
                    put(&t, line - first, k, elements[i]);
            }
        }
}

/* ---- Where things are in tensor memory ---- */

/* A block's part of the product, and a half of the columns where these lie in different lanes. */
typedef struct part {
    vm_block *block;
    uint32_t rows, row_lane_step;   /* of strips of 16 */
    uint32_t lane;                  /* of the first row */
    uint32_t first_column, columns; /* of D */
} part;

static int parts_of(const vm_warp *warp, const tcgen05_item *item, part parts[4])
{
    vm_block *blocks[2];
    int n = 0, n_blocks = blocks_of(warp, item, blocks);
    uint32_t rows = (uint32_t)item->shape.m / (uint32_t)n_blocks, columns = (uint32_t)item->shape.n;
    bool halves = item->is_pair && rows == 64;
    for (int b = 0; b < n_blocks; b++)
        for (uint32_t half = 0; half <= halves; half++)
            parts[n++] = (part){.block = blocks[b],
                                .rows = rows,
                                .row_lane_step = rows == 64 && !halves ? 32 : STRIP,
                                .lane = 64 * half,
                                .first_column = columns / 2 * half,
                                .columns = halves ? columns / 2 : columns};
    return n;
}

static uint32_t columns_for(uint32_t lines)
{
    return (lines + 31) / 32;
}

int tcgen05_mma_regions(const vm_warp *warp, const tcgen05_item *item, tmem_region *regions)
{
    part parts[4];
    int n = 0, n_parts = parts_of(warp, item, parts);
    for (int i = 0; i < n_parts; i++) {
        const part *p = &parts[i];
        bool apart = p->row_lane_step > STRIP;
        uint32_t lanes = apart ? STRIP : p->rows, times = apart ? p->rows / STRIP : 1;
        for (uint32_t t = 0; t < times; t++) {
            uint32_t lane = p->lane + t * p->row_lane_step;
            regions[n++] = (tmem_region){
                p->block,  tmem_lane_of(item->d) + lane, lanes, tmem_column_of(item->d), p->columns, true,
                item->adds};
            if (item->a_in_tmem)
                regions[n++] = (tmem_region){p->block,   tmem_lane_of((uint32_t)item->a) + lane,
                                             lanes,      tmem_column_of((uint32_t)item->a),
                                             LINE_WORDS, false,
                                             true};
        }
        if (item->shape.op.scales) {
            regions[n++] = (tmem_region){
                p->block, p->lane, p->rows, tmem_column_of(item->scale_a), columns_for(p->rows), false, true};
            regions[n++] = (tmem_region){
                p->block, p->lane, p->rows, tmem_column_of(item->scale_b), columns_for(p->columns),
                false,    true};
        }
    }
    return n;
}

/* ---- Computing ---- */

typedef struct factors {
    _Alignas(32) uint32_t a[STRIP * 64];
    _Alignas(32) uint32_t b[256 * 64];
    _Alignas(32) uint32_t scratch[256 * 32]; /* b again, where computing changes it */
    _Alignas(32) uint32_t c[256 * STRIP];
    uint8_t scale_a[STRIP][4], scale_b[256][4];
} factors;

static void negate(pvm_type type, uint32_t *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        x[i] ^= tensor_sign_bit(type);
}

static void read_b(vm_warp *warp, const tcgen05_item *item, factors *f)
{
    vm_block *blocks[2];
    int n = blocks_of(warp, item, blocks);
    span s = span_of(item, true);
    uint32_t k = (uint32_t)s.op->k;
    for (int b = 0; b < n; b++)
        read_lines(blocks[b], &s, 0, s.lines, (target){f->b + (uint32_t)b * s.lines * k, 8 * k, 1, 8});
    if (item->shape.negates_b)
        negate(s.type, f->b, (uint32_t)item->shape.n * k);
}

/* 16 rows from tensor memory; .ashift takes each row's successor, but the last row itself. */
static void read_a_of_tmem(const tcgen05_item *item, const part *p, uint32_t strip, factors *f)
{
    const tensor_op *op = &item->shape.op;
    for (uint32_t i = 0; i < STRIP; i++) {
        uint32_t lane = tmem_lane_of((uint32_t)item->a) + p->lane + strip * p->row_lane_step + i;
        if (item->shifts_a && lane + 1 < TMEM_LANES)
            lane++;
        const uint32_t *words = vm_tmem_row(p->block, lane, tmem_column_of((uint32_t)item->a));
        uint32_t *to = f->a + i * (uint32_t)op->k;
        for (int w = 0; w < LINE_WORDS; w++)
            to += tensor_unpack(op, op->atype, words[w], to);
    }
}

static void read_a(const tcgen05_item *item, const part *p, uint32_t strip, factors *f)
{
    const tensor_op *op = &item->shape.op;
    uint32_t k = (uint32_t)op->k;
    span s = span_of(item, false);
    if (item->a_in_tmem)
        read_a_of_tmem(item, p, strip, f);
    else
        read_lines(p->block, &s, strip * STRIP, STRIP, (target){f->a, 8 * k, k, 1});
    if (item->shape.negates_a)
        negate(op->atype, f->a, STRIP * k);
}

/* D of a strip, or zeros. c is in parts of 8 columns, 16 rows each. */
static uint32_t *element_of_c(factors *f, uint32_t row, uint32_t column)
{
    return f->c + (column / 8 * STRIP + row) * 8 + column % 8;
}

static uint32_t *row_of_d(const tcgen05_item *item, const part *p, uint32_t strip, uint32_t row)
{
    return vm_tmem_row(p->block, tmem_lane_of(item->d) + p->lane + strip * p->row_lane_step + row,
                       tmem_column_of(item->d));
}

static void read_d(const tcgen05_item *item, const part *p, uint32_t strip, factors *f)
{
    bool f16 = item->shape.op.dtype == T_F16;
    for (uint32_t row = 0; row < STRIP; row++) {
        const uint32_t *from = row_of_d(item, p, strip, row);
        for (uint32_t i = 0; i < p->columns; i++) {
            uint32_t bits = !item->adds ? 0 : f16 ? from[i] & 0xFFFF : from[i];
            *element_of_c(f, row, i) = item->scale_d && item->adds
                                           ? tensor_scaled_down(item->shape.op.dtype, bits, item->scale_d)
                                           : bits;
        }
    }
}

static bool is_disabled(const vm_warp *warp, const tcgen05_item *item, const part *p, uint32_t lane)
{
    (void)warp;
    uint32_t first = item->is_pair && p->block->rank % 2 ? 4 : 0;
    return item->disabled[first + lane / 32] >> lane % 32 & 1;
}

static void write_d(const vm_warp *warp, const tcgen05_item *item, const part *p, uint32_t strip, factors *f)
{
    for (uint32_t row = 0; row < STRIP; row++) {
        uint32_t *to = row_of_d(item, p, strip, row);
        uint32_t lane = tmem_lane_of(item->d) + p->lane + strip * p->row_lane_step + row;
        for (uint32_t i = 0; !is_disabled(warp, item, p, lane) && i < p->columns; i++)
            to[i] = *element_of_c(f, row, i);
    }
}

/* The scales of a line, from the 32 lanes of the rows that need them. */
static void read_scales(const tcgen05_item *item, const part *p, uint32_t quarter, uint32_t address, int byte,
                        uint32_t first, uint32_t n, uint8_t (*to)[4])
{
    for (uint32_t i = first; i < first + n; i++) {
        uint32_t word = *vm_tmem_row(p->block, quarter * 32 + i % 32, tmem_column_of(address) + i / 32);
        for (int s = 0; s < item->shape.op.scales; s++)
            to[i - first][s] = (uint8_t)(word >> 8 * ((byte + s) % 4));
    }
}

static void multiply_strip(const tcgen05_item *item, const part *p, uint32_t strip, factors *f)
{
    tensor_op op = item->shape.op;
    op.n = (int)p->columns;
    uint32_t *b = f->b + p->first_column * (uint32_t)op.k;
    if (op.scales) {
        uint32_t quarter = (p->lane + strip * p->row_lane_step) / 32;
        read_scales(item, p, quarter, item->scale_a, item->shape.scale_a_byte, strip * STRIP, STRIP,
                    f->scale_a);
        read_scales(item, p, quarter, item->scale_b, item->shape.scale_b_byte, 0, p->columns, f->scale_b);
        tensor_multiply_scaled(&op, f->a, b, f->c, (const uint8_t(*)[4])f->scale_a,
                               (const uint8_t(*)[4])f->scale_b);
        return;
    }
    if (op.dtype == T_S32) {
        memcpy(f->scratch, b, sizeof *b * p->columns * (uint32_t)op.k);
        b = f->scratch;
    }
    tensor_multiply(&op, f->a, b, f->c);
}

void tcgen05_multiply(vm_warp *warp, const tcgen05_item *item)
{
    factors f;
    part parts[4];
    int n = parts_of(warp, item, parts);
    read_b(warp, item, &f);
    for (int i = 0; i < n; i++)
        for (uint32_t strip = 0; strip < parts[i].rows / STRIP; strip++) {
            read_a(item, &parts[i], strip, &f);
            read_d(item, &parts[i], strip, &f);
            multiply_strip(item, &parts[i], strip, &f);
            write_d(warp, item, &parts[i], strip, &f);
        }
}

/* ---- The instruction ---- */

/* [d], a, b, idesc, then the lanes of d that are left alone, or both scales; enable-input-d; scale-input-d. */
static void read_operands(const vm_warp *warp, const vm_op *op, int lane, tcgen05_item *item)
{
    const pvm_inst *inst = op->inst;
    const vm_operand *o = op->operand;
    bool has_mask = inst->operand[4].kind == OPERAND_VECTOR;
    int at = 4, n_mask = has_mask ? inst->operand[4].n_elements : 0;
    item->a_in_tmem = o[1].is_address;
    item->shifts_a = inst->mod[S_FLAG] == M_ashift;
    item->d = tcgen05_address(warp, &o[0], lane);
    item->a = item->a_in_tmem ? tcgen05_address(warp, &o[1], lane) : ops_operand(warp, &o[1], lane);
    item->b = ops_operand(warp, &o[2], lane);
    for (int i = 0; i < n_mask; i++)
        item->disabled[i] = (uint32_t)ops_operand(warp, &o[at++], lane);
    if (is_scaled(inst)) { /* the upper two bits may tell the byte, which the instruction descriptor has */
        item->scale_a = tcgen05_address(warp, &o[at++], lane) & 0x3FFFFFFF;
        item->scale_b = tcgen05_address(warp, &o[at++], lane) & 0x3FFFFFFF;
    }
    const vm_operand *adds = &o[at++];
    item->adds = adds->is_immediate ? adds->bits != 0 : vm_predicate(warp, adds) >> lane & 1;
    item->scale_d = at < op->n_operands ? (uint8_t)o[at].bits : 0;
}

static bool regions_are_held(vm_warp *warp, const tcgen05_item *item)
{
    static const char *const names[] = {"d", "a or a scale"};
    tmem_region regions[TCGEN05_REGIONS];
    int n = tcgen05_mma_regions(warp, item, regions);
    for (int i = 0; i < n; i++)
        if (!vm_tmem_holds(warp, item->op, item->lane, &regions[i], names[!regions[i].writes]))
            return false;
    return true;
}

static bool shift_is_valid(vm_warp *warp, const tcgen05_item *item)
{
    if (!item->shifts_a || item->shape.m >> item->is_pair == 128)
        return true;
    vm_fault(warp, item->op, item->lane, PTXVM_ERROR_EXECUTION,
             "the instruction descriptor: M is %d, but .ashift needs %d", item->shape.m,
             item->is_pair ? 256 : 128);
    return false;
}

vm_result tcgen05_exec_mma(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    VM_EACH_LANE(lane, mask)
    {
        int group = vm_tmem_group(warp, op, (int)lane);
        tcgen05_item item = {.op = op, .kind = TCGEN05_MMA, .lane = (uint8_t)lane, .is_pair = group == 2};
        if (!group || (group == 2 && !vm_tmem_peer(warp, op, (int)lane)))
            return VM_FAULT;
        read_operands(warp, op, (int)lane, &item);
        if (!decode_shape(warp, op, (int)lane, (uint32_t)ops_operand(warp, &op->operand[3], (int)lane),
                          &item) ||
            !shift_is_valid(warp, &item) ||
            (!item.a_in_tmem && !tcgen05_descriptor_is_valid(warp, op, (int)lane, "A", item.a)) ||
            !tcgen05_descriptor_is_valid(warp, op, (int)lane, "B", item.b) ||
            !spans_are_inside(warp, &item) || !regions_are_held(warp, &item) || !tcgen05_start(warp, &item))
            return VM_FAULT;
        if (item.shape.op.standing == TENSOR_ASSUMED)
            vm_note_assumed(warp, op);
    }
    return VM_NEXT;
}
