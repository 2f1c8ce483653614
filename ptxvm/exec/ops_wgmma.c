/* wgmma: matrices in shared memory times matrices in shared memory or registers, by the four warps of a warpgroup.
 *
 * Each warp computes its own 16 of the 64 rows, in the order in which it started its products. When a product reads
 * its operands is up to the seed: when it is started, when its group is committed, or (without a seed) when the warp
 * waits for it. Until that wait the registers of d hold POISON, whatever the seed: the values are in an accumulator here.
 *
 * A matrix in shared memory consists of pieces of 16 bytes: its place is given by a descriptor (PTX ISA, "Matrix
 * Descriptor Format"):
 *   0..13 start address / 16    16..29 leading offset / 16    32..45 stride offset / 16    49..51 base offset
 *   62..63 swizzle: 0 none, 1 128 bytes, 2 64 bytes, 3 32 bytes */
#include <stdlib.h>

#include "decode.h"
#include "matrix.h"
#include "ops_common.h"
#include "ptxvm/exec/hooks.h"
#include "warp.h"

#define POISON      0x7FBADBADu /* a NaN as f32, and as two f16 */
#define GROUP_WARPS 4
#define LINE_BYTES  32 /* of a row of A or a column of B in one instruction: two pieces */
#define MOST_REGS   (TENSOR_GROUP_COLUMNS / 2)

/* The values of the registers of one d while products for it are in flight. */
typedef struct accumulator {
    struct accumulator *next; /* of the warp */
    vm_frame *frame;          /* null: it has returned, and the values are lost */
    const vm_op *op;          /* the first product: its operands are d's registers */
    int n, users;
    uint32_t values[MOST_REGS][WARP];
} accumulator;

typedef struct product {
    const vm_op *op;
    accumulator *d;
    vm_frame *frame; /* of a in registers */
    uint64_t a, b;   /* descriptors */
    uint64_t group;  /* number of the group that it belongs to */
    bool adds_to_d, at_commit, done;
} product;

struct ops_wgmma {
    product *products; /* in the order of their start; those done wait for their group's wait */
    int n, capacity;
    uint64_t committed, started; /* groups; products */
    accumulator *accumulators, *unused;
};

/* ---- Descriptors ---- */

static vm_matrix matrix_of(const char *name, uint64_t bits, bool is_mn_major)
{
    static const uint8_t widths[] = {16, 128, 64, 32};
    return (vm_matrix){.name = name,
                       .start = (uint32_t)(bits & 0x3FFF) << 4,
                       .leading = (uint32_t)(bits >> 16 & 0x3FFF) << 4,
                       .stride = (uint32_t)(bits >> 32 & 0x3FFF) << 4,
                       .width = widths[bits >> 62],
                       .is_mn_major = is_mn_major};
}

#define RESERVED_BITS UINT64_C(0x3FF1C000C000C000)
#define BASE_OFFSET   (UINT64_C(7) << 49)

static bool descriptor_is_valid(vm_warp *warp, const vm_op *op, const char *name, uint64_t bits)
{
    if (bits & RESERVED_BITS)
        vm_fault(warp, op, 0, PTXVM_ERROR_EXECUTION,
                 "the descriptor of %s, 0x%016llx, has reserved bits set: 0x%016llx", name,
                 (unsigned long long)bits, (unsigned long long)(bits & RESERVED_BITS));
    else if (bits & BASE_OFFSET && bits >> 62)
        vm_fault(warp, op, 0, PTXVM_ERROR_UNSUPPORTED,
                 "the descriptor of %s has the base offset %u: ptxvm supports only 0, a swizzle pattern that "
                 "begins at "
                 "a multiple of its size",
                 name, (unsigned)(bits >> 49 & 7));
    return !(bits & RESERVED_BITS) &&
           (!(bits & BASE_OFFSET) || bits >> 62 == 0); /* no swizzle: it means nothing */
}

/* The pieces with lines first to first + n - 1 (multiples of 8), in any order: index 0 to piece_count - 1. */
static uint32_t piece_count(uint32_t n)
{
    return 2 * n;
}

static uint32_t piece_place(const vm_matrix *m, uint32_t first, uint32_t n, uint32_t index)
{
    if (m->is_mn_major) /* 16 deep, as many pieces as eighths of n */
        return vm_matrix_by_depth(m, index % 16, first / 8 + index / 16);
    return vm_matrix_by_line(m, first + index % n, index / n);
}

/* ---- Operands in shared memory ---- */

typedef struct span {
    vm_matrix m;
    uint32_t first, n;
} span;

static int group_of(const vm_warp *warp)
{
    return warp->index / GROUP_WARPS;
}

static bool takes_registers(const vm_op *op)
{
    return ((const vm_tensor_site *)op->extra)->n[1] > 1;
}

/* Operand 0 is d, then a, b, scale-d; imm-scale-a and -b; imm-trans-a, unless a is in registers, and -b. */
static bool is_transposed(const pvm_inst *inst, bool of_a)
{
    bool in_registers = inst->operand[1].kind == OPERAND_VECTOR;
    int at = of_a || in_registers ? 6 : 7;
    return !(of_a && in_registers) && at < inst->n_operands && inst->operand[at].bits;
}

static bool is_negated(const pvm_inst *inst, int of_b)
{
    return inst->n_operands > 4 + of_b && inst->operand[4 + of_b].bits != 1;
}

/* The parts of a (if it is in memory) and b that a warp reads; returns how many. */
static int spans_of(const vm_warp *warp, const product *p, span spans[2])
{
    const vm_tensor_site *site = p->op->extra;
    int n = 0;
    if (!takes_registers(p->op))
        spans[n++] = (span){matrix_of("A", p->a, is_transposed(p->op->inst, true)),
                            16 * (uint32_t)(warp->index % GROUP_WARPS), 16};
    spans[n++] = (span){matrix_of("B", p->b, is_transposed(p->op->inst, false)), 0, (uint32_t)site->op.n};
    return n;
}

static bool span_is_inside(vm_warp *warp, const product *p, const span *s)
{
    const vm_block *block = warp->block;
    for (uint32_t i = 0; i < piece_count(s->n); i++) {
        uint32_t at = piece_place(&s->m, s->first, s->n, i);
        if (at + 16 <= block->shared_reach)
            continue;
        ptxvm_finding detail = {.kind = PTXVM_FINDING_OUT_OF_BOUNDS,
                                .space = "shared",
                                .address = at,
                                .access_bytes = 16,
                                .size = block->shared_bytes,
                                .distance = (int64_t)at - (int64_t)block->shared_bytes};
        vm_fault_access(
            warp, p->op, 0, PTXVM_ERROR_ADDRESS, &detail,
            "the descriptor of %s (start 0x%x, leading offset %u, stride offset %u, swizzle of %u bytes) "
            "leads to shared address 0x%x, which is outside: the block has %llu bytes",
            s->m.name, s->m.start, s->m.leading, s->m.stride, s->m.width == 16 ? 0 : s->m.width, at,
            (unsigned long long)block->shared_bytes);
        return false;
    }
    return true;
}

/* For the checks: the pieces are read from the start of the product to its end. */
static void watch_operands(vm_warp *warp, const product *p, bool begin)
{
    span spans[2];
    int n = warp->block->check ? spans_of(warp, p, spans) : 0;
    for (int s = 0; s < n; s++)
        for (uint32_t i = 0; i < piece_count(spans[s].n); i++)
            vm_check_operand(warp, p->op, 0, warp->block,
                             piece_place(&spans[s].m, spans[s].first, spans[s].n, i), 16, begin);
}

/* ---- Computing ---- */

static void read_words(const vm_block *block, uint32_t at, uint32_t words[4])
{
    memcpy(words, block->shared + at, 16);
}

/* Element k of line l goes to to[l / 8 * block + l % 8 * line_step + k * k_step]. */
typedef struct target {
    uint32_t *to;
    int block, line_step, k_step;
} target;

static uint32_t *element_at(const target *t, uint32_t line, uint32_t k)
{
    return t->to + (int)(line / 8) * t->block + (int)(line % 8) * t->line_step + (int)k * t->k_step;
}

static void read_piece(const vm_block *block, const tensor_op *op, pvm_type type, const span *s,
                       uint32_t index, const target *t)
{
    uint32_t words[4], elements[8], count = 0, per;
    read_words(block, piece_place(&s->m, s->first, s->n, index), words);
    for (int w = 0; w < 4; w++, count += per) {
        per = (uint32_t)tensor_unpack(op, type, words[w], elements);
        for (uint32_t i = 0; i < per; i++)
            if (s->m.is_mn_major)
                *element_at(t, index / 16 * 8 + count + i, index % 16) = elements[i];
            else
                *element_at(t, index % s->n, index / s->n * 4 * per + count + i) = elements[i];
    }
}

static void read_matrix(const vm_block *block, const tensor_op *op, pvm_type type, const span *s, target t)
{
    for (uint32_t i = 0; i < piece_count(s->n); i++)
        read_piece(block, op, type, s, i, &t);
}

static void negate(pvm_type type, uint32_t *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] ^= tensor_sign_bit(type);
}

static void register_pointers(const vm_frame *frame, const vm_operand *operands, int n, const void **pointers)
{
    for (int i = 0; i < n; i++)
        pointers[i] = vm_slot_ptr(frame, operands[i].slot);
}

typedef struct factors {
    _Alignas(32) uint32_t a[16 * TENSOR_GROUP_DEPTH];
    _Alignas(32) uint32_t b[TENSOR_GROUP_COLUMNS * TENSOR_GROUP_DEPTH];
    _Alignas(32) uint32_t c[TENSOR_GROUP_COLUMNS * 16];
} factors;

static void read_factors(vm_warp *warp, const product *p, factors *f)
{
    const vm_tensor_site *site = p->op->extra;
    const tensor_op *op = &site->op;
    const int depth = tensor_depth(op);
    const void *registers[4];
    span spans[2];
    int n = spans_of(warp, p, spans);
    if (n == 2)
        read_matrix(warp->block, op, op->atype, &spans[0], (target){f->a, 8 * depth, depth, 1});
    else {
        register_pointers(p->frame, p->op->operand + site->n[0], 4, registers);
        tensor_gather_a(op, f->a, registers);
    }
    read_matrix(warp->block, op, op->btype, &spans[n - 1], (target){f->b, 8 * depth, 1, 8});
    if (is_negated(p->op->inst, 0))
        negate(op->atype, f->a, 16 * depth);
    if (is_negated(p->op->inst, 1))
        negate(op->btype, f->b, op->n * depth);
}

static void compute(vm_warp *warp, product *p)
{
    const vm_tensor_site *site = p->op->extra;
    factors f;
    void *d[MOST_REGS];
    p->done = true;
    if (!p->d->frame)
        return; /* the function that started it has returned */
    for (int i = 0; i < p->d->n; i++)
        d[i] = p->d->values[i];
    if (p->adds_to_d)
        tensor_gather_c(&site->op, f.c, (const void *const *)d);
    else
        memset(f.c, 0, sizeof *f.c * (size_t)(16 * site->op.n));
    read_factors(warp, p, &f);
    tensor_multiply(&site->op, f.a, f.b, f.c);
    tensor_scatter_d(&site->op, f.c, d);
}

/* The products up to the last of these are done, in order. */
static void compute_up_to(vm_warp *warp, struct ops_wgmma *state, int last)
{
    for (int i = 0; i <= last; i++)
        if (!state->products[i].done)
            compute(warp, &state->products[i]);
}

/* ---- Accumulators ---- */

static bool has_registers(const accumulator *d, const vm_op *op, int n)
{
    for (int i = 0; i < n; i++)
        if (d->op->operand[i].slot != op->operand[i].slot)
            return false;
    return d->n == n;
}

static const vm_operand *common_register(const accumulator *d, const vm_op *op, int n)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < d->n; k++)
            if (d->op->operand[k].slot == op->operand[i].slot)
                return &op->operand[i];
    return NULL;
}

static const char *register_name(const vm_op *op, const vm_operand *operand)
{
    return op->function->regs[operand->source->reg].name;
}

static accumulator *new_accumulator(vm_warp *warp, const vm_op *op, int n)
{
    struct ops_wgmma *state = warp->ops->wgmma;
    accumulator *d = state->unused;
    if (d)
        state->unused = d->next;
    else if (!(d = malloc(sizeof *d))) {
        vm_fault(warp, op, 0, PTXVM_ERROR_MEMORY, "no memory left for an asynchronous product");
        return NULL;
    }
    d->op = op;
    d->frame = warp->frame;
    d->n = n;
    d->users = 0;
    for (int i = 0; i < n; i++) {
        uint32_t *value = vm_value(warp, &op->operand[i]);
        memcpy(d->values[i], value, sizeof d->values[i]);
        for (int lane = 0; lane < WARP; lane++)
            value[lane] = POISON;
    }
    d->next = state->accumulators;
    state->accumulators = d;
    return d;
}

/* The accumulator of the product's d: one that is in flight, if it has exactly these registers. */
static accumulator *accumulator_of(vm_warp *warp, const vm_op *op)
{
    const int n = ((const vm_tensor_site *)op->extra)->n[0];
    for (accumulator *d = warp->ops->wgmma->accumulators; d; d = d->next) {
        if (d->frame != warp->frame)
            continue;
        if (has_registers(d, op, n))
            return d;
        const vm_operand *common = common_register(d, op, n);
        if (common) {
            vm_fault(warp, op, 0, PTXVM_ERROR_EXECUTION,
                     "%s belongs to the result of the wgmma of line %d, which has other registers and is in "
                     "flight: "
                     "only a wgmma of the same shape and registers may follow it without a wait",
                     register_name(op, common), d->op->inst->line);
            return NULL;
        }
    }
    return new_accumulator(warp, op, n);
}

static void release(vm_warp *warp, struct ops_wgmma *state, accumulator *d)
{
    if (--d->users)
        return;
    for (int i = 0; d->frame && i < d->n; i++)
        memcpy(vm_slot_ptr(d->frame, d->op->operand[i].slot), d->values[i], sizeof d->values[i]);
    vm_check_flight_end(warp, d->frame, d->op, 0, d->n);
    accumulator **at = &state->accumulators;
    while (*at != d)
        at = &(*at)->next;
    *at = d->next;
    d->next = state->unused;
    state->unused = d;
}

/* ---- Agreement of the four warps ---- */

/* What one warp of a warpgroup has executed, and which warps have followed. Entries are kept until all have. */
typedef struct agreement {
    const vm_op *op;
    uint64_t a, b;
    bool adds_to_d;
    uint8_t seen;
} agreement;

struct ops_warpgroup {
    agreement *entries;
    int n, capacity;
    uint64_t first;              /* number of entries[0] */
    uint64_t count[GROUP_WARPS]; /* of each warp */
};

static bool fault_missing(vm_warp *warp, const vm_op *op)
{
    int others = warp->block->n_warps - GROUP_WARPS * group_of(warp);
    if (others >= GROUP_WARPS && warp->live == UINT32_MAX)
        return false;
    if (others < GROUP_WARPS)
        vm_fault(
            warp, op, vm_first(warp->live), PTXVM_ERROR_EXECUTION,
            "wgmma needs a warpgroup: four warps, the first of which is a multiple of 4; this one has %d",
            others);
    else
        vm_fault(warp, op, vm_first(warp->live), PTXVM_ERROR_EXECUTION,
                 "wgmma needs all 32 threads of the warp: 0x%08x execute it", warp->live);
    return true;
}

static void drop_seen(struct ops_warpgroup *group)
{
    int done = 0;
    while (done < group->n && group->entries[done].seen == (1 << GROUP_WARPS) - 1)
        done++;
    memmove(group->entries, group->entries + done, (size_t)(group->n - done) * sizeof *group->entries);
    group->n -= done;
    group->first += (uint64_t)done;
}

static bool is_same(const agreement *x, const agreement *y)
{
    return x->op == y->op && x->a == y->a && x->b == y->b && x->adds_to_d == y->adds_to_d;
}

/* All warps of a warpgroup must execute the same wgmma instructions with the same operands, in the same order. */
static bool agree(vm_warp *warp, agreement next)
{
    struct ops_warpgroup *group = &warp->block->ops->groups[group_of(warp)];
    int w = warp->index % GROUP_WARPS;
    int at = (int)(group->count[w]++ - group->first);
    if (at == group->n) {
        agreement *entries =
            ops_grow(warp, next.op, group->entries, group->n, &group->capacity, sizeof *group->entries);
        if (!entries)
            return false;
        group->entries = entries;
        entries[group->n++] = next;
    }
    agreement *entry = &group->entries[at];
    if (!is_same(entry, &next)) {
        vm_fault(warp, next.op, 0, PTXVM_ERROR_EXECUTION,
                 entry->op == next.op ? "another warp of the warpgroup has executed this wgmma with other "
                                        "descriptors or another scale-d: "
                                        "they must be the same in all four"
                                      : "another warp of the warpgroup has executed the wgmma of line %d "
                                        "instead: all four warps must "
                                        "execute the same",
                 entry->op->inst->line);
        return false;
    }
    entry->seen |= (uint8_t)(1u << w);
    drop_seen(group);
    return true;
}

bool ops_wgmma_block_end(vm_block *block)
{
    for (int g = 0; block->ops && g < OPS_WARPGROUPS; g++) {
        const struct ops_warpgroup *group = &block->ops->groups[g];
        if (!group->n)
            continue;
        const agreement *entry = &group->entries[0];
        int w = 0;
        while (entry->seen >> w & 1)
            w++;
        vm_fault(&block->warps[GROUP_WARPS * g + w], entry->op, 0, PTXVM_ERROR_EXECUTION,
                 "this warp has not executed this wgmma, which other warps of its warpgroup have");
        return false;
    }
    return true;
}

/* ---- The instructions ---- */

static uint64_t uniform(vm_warp *warp, const vm_op *op, const vm_operand *operand, const char *what, bool *ok)
{
    uint64_t first = ops_operand(warp, operand, 0);
    for (int lane = 1; lane < WARP && *ok; lane++)
        if (ops_operand(warp, operand, lane) != first) {
            vm_fault(warp, op, lane, PTXVM_ERROR_EXECUTION,
                     "%s is 0x%llx here and 0x%llx in lane 0: it must be the same in all lanes", what,
                     (unsigned long long)ops_operand(warp, operand, lane), (unsigned long long)first);
            *ok = false;
        }
    return first;
}

/* Descriptors and scale-d. Returns false after a fault. */
static bool read_operands(vm_warp *warp, const vm_op *op, product *p)
{
    const int *n = ((const vm_tensor_site *)op->extra)->n;
    const vm_operand *a = op->operand + n[0], *b = a + n[1], *scale = b + 1;
    bool ok = true;
    *p = (product){.op = op, .frame = warp->frame};
    p->a = takes_registers(op) ? 0 : uniform(warp, op, a, "the descriptor of A", &ok);
    p->b = uniform(warp, op, b, "the descriptor of B", &ok);
    uint32_t adds = scale->is_immediate ? (scale->bits ? UINT32_MAX : 0) : vm_predicate(warp, scale);
    p->adds_to_d = adds != 0;
    if (ok && adds && adds != UINT32_MAX) {
        vm_fault(warp, op, vm_first(~adds), PTXVM_ERROR_EXECUTION,
                 "scale-d is false here and true in other lanes: it must be the same in all");
        ok = false;
    }
    return ok && (takes_registers(op) || descriptor_is_valid(warp, op, "A", p->a)) &&
           descriptor_is_valid(warp, op, "B", p->b);
}

static bool spans_are_inside(vm_warp *warp, const product *p)
{
    span spans[2];
    int n = spans_of(warp, p, spans);
    for (int i = 0; i < n; i++)
        if (!span_is_inside(warp, p, &spans[i]))
            return false;
    return true;
}

struct vm_ops_block *ops_block_of(vm_warp *warp, const vm_op *op)
{
    vm_block *block = warp->block;
    if (!block->ops &&
        (block->ops = calloc(1, sizeof *block->ops + OPS_WARPGROUPS * sizeof(struct ops_warpgroup))))
        block->ops->groups = (struct ops_warpgroup *)(block->ops + 1);
    if (!block->ops)
        vm_fault(warp, op, 0, PTXVM_ERROR_MEMORY, "no memory left for an asynchronous product");
    return block->ops;
}

static struct ops_wgmma *state_of(vm_warp *warp, const vm_op *op)
{
    if (fault_missing(warp, op))
        return NULL;
    if (!warp->ops->wgmma)
        warp->ops->wgmma = calloc(1, sizeof *warp->ops->wgmma);
    if (!warp->ops->wgmma)
        vm_fault(warp, op, 0, PTXVM_ERROR_MEMORY, "no memory left for an asynchronous product");
    return warp->ops->wgmma && ops_block_of(warp, op) ? warp->ops->wgmma : NULL;
}

vm_result vm_exec_wgmma(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    (void)mask; /* all live lanes take part */
    struct ops_wgmma *state = state_of(warp, op);
    product p;
    if (!state || !read_operands(warp, op, &p) || !spans_are_inside(warp, &p) ||
        !agree(warp, (agreement){op, p.a, p.b, p.adds_to_d, 0}))
        return VM_FAULT;
    product *products =
        ops_grow(warp, op, state->products, state->n, &state->capacity, sizeof *state->products);
    if (!products)
        return VM_FAULT;
    state->products = products;
    vm_check_flight_begin(warp, op, p.adds_to_d);
    if (!(p.d = accumulator_of(warp, op)))
        return VM_FAULT;
    p.d->users++;
    p.group = state->committed;
    ops_landing landing = ops_landing_of(warp, state->started++);
    p.at_commit = landing == LANDING_BETWEEN;
    products[state->n++] = p;
    watch_operands(warp, &p, true);
    if (landing == LANDING_EARLY)
        compute_up_to(warp, state, state->n - 1);
    return VM_NEXT;
}

static vm_result exec_fence(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    (void)mask;
    if (!state_of(warp, op) || !agree(warp, (agreement){.op = op}))
        return VM_FAULT;
    vm_check_flight_fence(warp);
    return VM_NEXT;
}

static vm_result exec_commit(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    (void)mask;
    struct ops_wgmma *state = state_of(warp, op);
    if (!state || !agree(warp, (agreement){.op = op}))
        return VM_FAULT;
    for (int i = 0; i < state->n; i++)
        if (state->products[i].group == state->committed && state->products[i].at_commit)
            compute_up_to(warp, state, i);
    state->committed++;
    return VM_NEXT;
}

/* The first n products are complete: d is there, and the operands are no longer read. */
static void complete(vm_warp *warp, struct ops_wgmma *state, int n)
{
    compute_up_to(warp, state, n - 1);
    for (int i = 0; i < n; i++) {
        product *p = &state->products[i];
        watch_operands(warp, p, false);
        if (takes_registers(p->op))
            vm_check_flight_end(warp, p->d->frame, p->op, ((const vm_tensor_site *)p->op->extra)->n[0], 4);
        release(warp, state, p->d);
    }
    if (n)
        memmove(state->products, state->products + n, (size_t)(state->n - n) * sizeof *state->products);
    state->n -= n;
}

static vm_result exec_wait(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    (void)mask;
    struct ops_wgmma *state = state_of(warp, op);
    if (!state || !agree(warp, (agreement){.op = op}))
        return VM_FAULT;
    uint64_t may_run = op->operand[0].bits;
    int n = 0;
    while (n < state->n && state->products[n].group + may_run < state->committed)
        n++;
    complete(warp, state, n);
    return VM_NEXT;
}

bool ops_find_wgmma(vm_op *op)
{
    unsigned sub = op->inst->mod[S_SUB];
    op->flags |= OPF_CONVERGED;
    op->exec = sub == M_fence          ? exec_fence
               : sub == M_commit_group ? exec_commit
               : sub == M_wait_group   ? exec_wait
                                       : NULL;
    return op->exec;
}

/* ---- Ends ---- */

void vm_ops_frame_end(vm_warp *warp, const vm_frame *frame)
{
    ops_tcgen05_frame_end(warp, frame);
    struct ops_wgmma *state = warp->ops ? warp->ops->wgmma : NULL;
    bool told = false;
    for (accumulator *d = state ? state->accumulators : NULL; d; d = d->next)
        if (d->frame == frame) {
            if (!told)
                vm_check_flight_lost(warp, d->op);
            told = true;
            d->frame = NULL;
        }
}

static void drop_all(struct ops_wgmma *state)
{
    while (state->accumulators) {
        accumulator *d = state->accumulators;
        state->accumulators = d->next;
        d->next = state->unused;
        state->unused = d;
    }
    state->n = 0;
    state->committed = state->started = 0;
}

void ops_wgmma_begin(vm_warp *warp)
{
    if (warp->ops->wgmma)
        drop_all(warp->ops->wgmma);
    for (int g = 0; warp->index == 0 && warp->block->ops && g < OPS_WARPGROUPS; g++) {
        struct ops_warpgroup *group = &warp->block->ops->groups[g];
        *group = (struct ops_warpgroup){.entries = group->entries, .capacity = group->capacity};
    }
}

void ops_wgmma_free(vm_warp *warp)
{
    struct ops_wgmma *state = warp->ops->wgmma;
    if (!state)
        return;
    drop_all(state);
    for (accumulator *d = state->unused, *next; d; d = next) {
        next = d->next;
        free(d);
    }
    free(state->products);
    free(state);
}

void vm_ops_block_free(vm_block *block)
{
    for (int g = 0; block->ops && g < OPS_WARPGROUPS; g++)
        free(block->ops->groups[g].entries);
    vm_tmem_free(block);
    free(block->ops);
}
