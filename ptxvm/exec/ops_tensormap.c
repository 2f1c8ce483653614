/* Tensor maps: boxes of tensors in global memory, copied to and from shared memory, and changes of a map.
 *
 * A box is dense in shared memory, its innermost dimension first; swizzling exchanges pieces of 16 bytes within rows of
 * 32, 64 or 128 bytes, by the number of the row in the address. What lies outside the tensor is filled, or not written.
 * A gather takes four rows of a 2D tensor instead of a box. */
#include "cluster.h"
#include "ops_common.h"
#include "ptxvm/exec/hooks.h"

enum { GATHERED = 4, MOST_ROW_BYTES = 256 * 8 };

static bool is_gather(const vm_op *op)
{
    return op->inst->mod[S_FRAG] == M_tile__gather4;
}

static uint64_t lane_address(const vm_warp *warp, const vm_operand *operand, int lane)
{
    uint64_t address[WARP];
    vm_addresses(warp, operand, 1u << lane, address);
    return address[lane];
}

static uint64_t shared_address(const vm_warp *warp, const vm_operand *operand, int lane)
{
    uint64_t address = lane_address(warp, operand, lane);
    return operand->space == SPACE_NONE ? address - VM_SHARED_BASE : address;
}

/* ---- The map and the box of one lane ---- */

/* Reads the map at an address and checks it. */
static bool read_map(vm_warp *warp, const vm_op *op, const vm_operand *operand, int lane, vm_tensormap *map)
{
    char why[256];
    uint64_t address = lane_address(warp, operand, lane);
    const uint8_t *host =
        vm_translate_lane(warp, op, lane, operand->space, address, sizeof *map, 64, VM_LOAD);
    if (!host)
        return false;
    vm_copy_relaxed((uint8_t *)map, host, sizeof *map);
    if (!vm_tensormap_problem(map, why, sizeof why))
        return true;
    vm_fault(warp, op, lane, PTXVM_ERROR_EXECUTION, "the tensor map at 0x%llx: %s",
             (unsigned long long)address, why);
    return false;
}

static uint64_t rows_of(const tensor_box *box)
{
    uint64_t rows = 1;
    if (box->gathers)
        return GATHERED;
    for (int i = 1; i < box->map.rank; i++)
        rows *= vm_tensormap_extent(&box->map, i);
    return rows;
}

static uint32_t row_bytes(const tensor_box *box)
{
    return vm_tensormap_extent(&box->map, 0) * vm_tensormap_shared_bytes(&box->map);
}

/* What a copy completes on its mbarrier: gaps behind packed units do not count. */
uint64_t ops_tensor_bytes(const tensor_box *box)
{
    return rows_of(box) * vm_tensormap_extent(&box->map, 0) * vm_tensormap_element_bytes(&box->map);
}

/* Swizzling may put the last pieces of a narrow box further back. */
static uint64_t footprint(const tensor_box *box)
{
    uint64_t width = vm_tensormap_width(&box->map);
    return (rows_of(box) * row_bytes(box) + width - 1) & ~(width - 1);
}

static int coordinates_of(const vm_op *op)
{
    return is_gather(op) ? 1 + GATHERED : (int)op->inst->mod[S_SHAPE] - M_dim1 + 1;
}

/* What the first coordinate must be a multiple of. */
static uint32_t packed_row(const vm_tensormap *map)
{
    bool spaced = vm_tensormap_shared_bytes(map) != vm_tensormap_element_bytes(map);
    return spaced ? 128 : vm_tensormap_unit(map);
}

/* The last unit of the innermost dimension. */
static int64_t last_unit(const vm_tensormap *map)
{
    return (map->last[0] + INT64_C(1)) / vm_tensormap_unit(map) - 1;
}

/* Operand `at` is the map, followed by the coordinates. */
static bool read_box(vm_warp *warp, const vm_op *op, int at, int lane, tensor_box *box)
{
    int n = coordinates_of(op), rank = (int)op->inst->mod[S_SHAPE] - M_dim1 + 1;
    if (!read_map(warp, op, &op->operand[at], lane, &box->map))
        return false;
    if (box->map.rank != rank) {
        vm_fault(warp, op, lane, PTXVM_ERROR_EXECUTION,
                 "the tensor map has %u dimensions, the instruction %d", box->map.rank, rank);
        return false;
    }
    box->gathers = is_gather(op);
    if (box->gathers && box->map.box[1] != 1) {
        vm_fault(warp, op, lane, PTXVM_ERROR_EXECUTION, "a gather needs a box of one row, not %u",
                 box->map.box[1]);
        return false;
    }
    for (int i = 0; i < n; i++)
        box->coordinate[i] = (int32_t)ops_operand(warp, &op->operand[at + 1 + i], lane);
    const int32_t first = box->coordinate[0], whole = (int32_t)packed_row(&box->map);
    if (first % whole) {
        vm_fault(warp, op, lane, PTXVM_ERROR_EXECUTION,
                 "the first coordinate is %d: with the type of the tensor map it must be a multiple of %d",
                 first, whole);
        return false;
    }
    box->coordinate[0] = first / (int32_t)vm_tensormap_unit(&box->map);
    return true;
}

/* The place of the box in shared memory, from the start of the block's. */
static bool place_box(vm_warp *warp, const vm_op *op, const vm_operand *operand, int lane,
                      vm_access_kind kind, tensor_box *box)
{
    box->shared = shared_address(warp, operand, lane);
    if (box->shared % 128) {
        ptxvm_finding detail = {.kind = PTXVM_FINDING_MISALIGNED, .space = "shared", .address = box->shared};
        vm_fault_access(warp, op, lane, PTXVM_ERROR_MISALIGNED, &detail,
                        "shared address 0x%llx of a tensor copy: it must be a multiple of 128",
                        (unsigned long long)box->shared);
        return false;
    }
    return vm_translate_lane(warp, op, lane, SPACE_SHARED, box->shared, footprint(box), 16, kind);
}

/* ---- Rows ---- */

/* One row of the box: its elements first to first + count - 1 lie in the tensor, from `address` on. */
typedef struct row {
    uint64_t address;
    uint32_t first, count;
} row;

/* The coordinate of the box's element `index` in dimension i. */
static int64_t coordinate_at(const tensor_box *box, int i, uint32_t index)
{
    return (int64_t)box->coordinate[i] + (int64_t)index * box->map.element_stride[i];
}

static row row_at(const tensor_box *box, uint32_t number)
{
    const vm_tensormap *map = &box->map;
    const uint32_t extent = vm_tensormap_extent(map, 0);
    row r = {.address = map->address, .count = extent};
    for (int i = 1; i < map->rank; i++) {
        uint32_t n = vm_tensormap_extent(map, i);
        int64_t at = box->gathers ? box->coordinate[1 + number] : coordinate_at(box, i, number % n);
        number = box->gathers ? number : number / n;
        if (at < 0 || at > map->last[i])
            return (row){0};
        r.address += (uint64_t)at * map->stride[i];
    }
    while (r.first < extent && coordinate_at(box, 0, r.first) < 0)
        r.first++;
    while (r.count > r.first && coordinate_at(box, 0, r.count - 1) > last_unit(map))
        r.count--;
    r.count -= r.first;
    r.address += (uint64_t)coordinate_at(box, 0, r.first) * vm_tensormap_element_bytes(map);
    return r;
}

/* Where byte `offset` of the box (a multiple of 16) is in the shared memory of its block. */
static uint64_t swizzled(const tensor_box *box, uint64_t offset)
{
    uint64_t at = box->shared % VM_SHARED_SIZE + offset;
    return box->map.swizzle == VM_SWIZZLE_BY_32 ? at ^ (at >> 2 & 0x60)
                                                : at ^ (at >> 3 & (vm_tensormap_width(&box->map) - 16));
}

static void fill_row(const tensor_box *box, uint8_t *bytes, uint32_t n)
{
    static const uint8_t nan64[8] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F};
    uint32_t size = vm_tensormap_element_bytes(&box->map);
    for (uint32_t i = 0; i < n; i++) /* NaN: all ones but the sign; packed types have none */
        bytes[i] = box->map.fill ? nan64[8 - size + i % size] : 0;
}

/* The elements of a row that lie in the tensor: called once for each run of them that is contiguous in memory. */
typedef bool run_fn(vm_warp *warp, const vm_op *op, int lane, uint64_t address, uint8_t *bytes, uint64_t n);

static bool each_run(vm_warp *warp, const vm_op *op, int lane, const tensor_box *box, const row *r,
                     uint8_t *bytes, run_fn *run)
{
    uint32_t size = vm_tensormap_element_bytes(&box->map), step = box->map.element_stride[0];
    uint32_t spaced = vm_tensormap_shared_bytes(&box->map);
    if (!r->count)
        return true;
    if (step == 1 && spaced == size)
        return run(warp, op, lane, r->address, bytes + r->first * size, (uint64_t)r->count * size);
    for (uint32_t i = 0; i < r->count; i++)
        if (!run(warp, op, lane, r->address + (uint64_t)i * step * size, bytes + (r->first + i) * spaced,
                 size))
            return false;
    return true;
}

static bool load_run(vm_warp *warp, const vm_op *op, int lane, uint64_t address, uint8_t *bytes, uint64_t n)
{
    const uint8_t *host = vm_translate_lane(warp, op, lane, SPACE_GLOBAL, address, n, 1, VM_LOAD);
    if (host)
        vm_copy_relaxed(bytes, host, n);
    return host;
}

static bool store_run(vm_warp *warp, const vm_op *op, int lane, uint64_t address, uint8_t *bytes, uint64_t n)
{
    uint8_t *host = vm_translate_lane(warp, op, lane, SPACE_GLOBAL, address, n, 1, VM_STORE);
    if (host)
        vm_copy_relaxed(host, bytes, n);
    return host;
}

/* The shared memory of the block that a box goes to; null, with the fault recorded: that has ended. */
static uint8_t *shared_of(vm_warp *warp, const vm_op *op, int lane, const tensor_box *box)
{
    return vm_translate_lane(warp, op, lane, SPACE_SHARED, box->shared, footprint(box), 16, VM_STORE)
               ? vm_shared_owner(warp->block, box->shared)->shared
               : NULL;
}

/* f32 to tf32, to nearest, ties away from zero, as cvt.rna does; NaN and infinities stay. */
static void round_row(uint8_t *bytes, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 4) {
        uint32_t word;
        memcpy(&word, bytes + i, 4);
        if ((word >> 23 & 0xFF) != 0xFF)
            word = (word + 0x1000) & 0xFFFFE000;
        memcpy(bytes + i, &word, 4);
    }
}

bool ops_tensor_load(vm_warp *warp, const vm_op *op, int lane, const tensor_box *box)
{
    uint8_t bytes[MOST_ROW_BYTES], *shared = shared_of(warp, op, lane, box);
    uint32_t n = row_bytes(box);
    for (uint32_t i = 0; shared && i < rows_of(box); i++) {
        row r = row_at(box, i);
        fill_row(box, bytes, n);
        if (!each_run(warp, op, lane, box, &r, bytes, load_run))
            return false;
        if (vm_tensormap_rounds(&box->map))
            round_row(bytes, n);
        for (uint32_t at = 0; at < n; at += 16)
            memcpy(shared + swizzled(box, (uint64_t)i * n + at), bytes + at, 16);
    }
    return shared;
}

/* ---- Reductions ---- */

/* The types of maps as operations know them: integers of 32 and 64 bits, f16, bf16, and f32 and f64 sums. */
static pvm_type reduced_type(const vm_tensormap *map, unsigned operation)
{
    static const pvm_type types[] = {T_NONE, T_NONE, T_U32, T_S32, T_U64, T_S64, T_F16, T_F32, T_F64, T_BF16};
    static const pvm_type bits[] = {T_NONE, T_NONE, T_B32,  T_B32,  T_B64,
                                    T_B64,  T_NONE, T_NONE, T_NONE, T_NONE};
    bool logical = operation == M_and || operation == M_or || operation == M_xor;
    pvm_type type = map->type < sizeof types / sizeof types[0] ? (logical ? bits : types)[map->type] : T_NONE;
    bool counts = operation == M_inc || operation == M_dec;
    bool compares = operation == M_min || operation == M_max;
    if ((counts && type != T_U32) || (compares && (type == T_F32 || type == T_F64)) ||
        (operation == M_add && type == T_S64))
        return T_NONE;
    return type;
}

typedef struct reduction {
    atomic_fn *apply;
    uint32_t size;
} reduction;

static bool reduce_run(vm_warp *warp, const vm_op *op, int lane, uint64_t address, const uint8_t *bytes,
                       uint64_t n, const reduction *how)
{
    uint8_t *host = vm_translate_lane(warp, op, lane, SPACE_GLOBAL, address, n, 1, VM_ATOMIC);
    for (uint64_t i = 0; host && i < n; i += how->size) {
        uint64_t value = 0;
        memcpy(&value, bytes + i, how->size);
        ops_atomic_apply(how->apply, host + i, (int)how->size, true, value, 0);
    }
    return host;
}

static bool reduce_row(vm_warp *warp, const vm_op *op, int lane, const tensor_box *box, const row *r,
                       const uint8_t *bytes, const reduction *how)
{
    uint32_t step = box->map.element_stride[0];
    for (uint32_t i = 0; i < r->count; i++)
        if (!reduce_run(warp, op, lane, r->address + (uint64_t)i * step * how->size,
                        bytes + (r->first + i) * how->size, how->size, how))
            return false;
    return true;
}

/* ---- Out of shared memory ---- */

static bool store_box(vm_warp *warp, const vm_op *op, int lane, const tensor_box *box, const reduction *how)
{
    uint8_t bytes[MOST_ROW_BYTES];
    const uint8_t *shared = warp->block->shared;
    uint32_t n = row_bytes(box);
    for (uint32_t i = 0; i < rows_of(box); i++) {
        row r = row_at(box, i);
        for (uint32_t at = 0; at < n; at += 16)
            memcpy(bytes + at, shared + swizzled(box, (uint64_t)i * n + at), 16);
        if (!(how ? reduce_row(warp, op, lane, box, &r, bytes, how)
                  : each_run(warp, op, lane, box, &r, bytes, store_run)))
            return false;
    }
    return true;
}

static bool find_reduction(vm_warp *warp, const vm_op *op, int lane, const tensor_box *box, reduction *how)
{
    unsigned operation = op->inst->mod[S_OP];
    pvm_type type = reduced_type(&box->map, operation);
    *how = (reduction){type ? ops_atomic_find(operation, type) : NULL, vm_tensormap_element_bytes(&box->map)};
    if (!how->apply)
        vm_fault(warp, op, lane, PTXVM_ERROR_EXECUTION, "%s is not defined for the type %u of the tensor map",
                 pvm_mod_text((pvm_mod)operation), box->map.type);
    return how->apply;
}

/* [map, coordinates], [source] */
static vm_result exec_store(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    bool reduces = op->inst->mod[S_SUB] == M_reduce;
    VM_EACH_LANE(lane, mask)
    {
        tensor_box box;
        reduction how;
        if (!read_box(warp, op, 0, (int)lane, &box) ||
            !place_box(warp, op, &op->operand[1 + coordinates_of(op)], (int)lane, VM_LOAD, &box) ||
            (reduces && !find_reduction(warp, op, (int)lane, &box, &how)) ||
            !store_box(warp, op, (int)lane, &box, reduces ? &how : NULL))
            return VM_FAULT;
        if (warp->block->check) /* no address is 0: only the source is followed until its wait */
            vm_check_bulk_out(warp, op, (int)lane, 0, box.shared, footprint(&box));
    }
    return VM_NEXT;
}

/* ---- Into shared memory ---- */

/* [destination], [map, coordinates], [mbarrier] */
static vm_result exec_load(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    VM_EACH_LANE(lane, mask)
    {
        pending_bulk item = {.op = op, .lane = (uint8_t)lane, .is_tensor = true};
        if (!read_box(warp, op, 1, (int)lane, &item.box) ||
            !place_box(warp, op, &op->operand[0], (int)lane, VM_STORE, &item.box))
            return VM_FAULT;
        item.barrier = shared_address(warp, &op->operand[2 + coordinates_of(op)], (int)lane);
        item.to = item.box.shared;
        item.size = footprint(&item.box);
        if (!ops_bulk_begin_each(warp, &item))
            return VM_FAULT;
    }
    return VM_NEXT;
}

/* A prefetch has no effect, but its map and its coordinates must be right. */
static vm_result exec_prefetch(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    tensor_box box;
    VM_EACH_LANE(lane, mask)
    if (!read_box(warp, op, 0, (int)lane, &box))
        return VM_FAULT;
    return VM_NEXT;
}

static vm_result exec_prefetch_map(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    vm_tensormap map;
    VM_EACH_LANE(lane, mask)
    if (!read_map(warp, op, &op->operand[0], (int)lane, &map))
        return VM_FAULT;
    return VM_NEXT;
}

vm_exec_fn *ops_find_tensor_copy(const pvm_inst *inst)
{
    return inst->op == OP_prefetch             ? exec_prefetch_map
           : inst->mod[S_FLAG2] == M_prefetch  ? exec_prefetch
           : inst->mod[S_FLAG] == M_bulk_group ? exec_store
                                               : exec_load;
}

/* ---- tensormap.replace ---- */

/* The ISA numbers the types of elements otherwise than the driver API. */
static uint8_t api_type(uint64_t value)
{
    static const uint8_t api[] = {0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12, 13, 14, 15};
    return value < sizeof api ? api[value] : UINT8_MAX;
}

static void replace_field(vm_tensormap *map, unsigned field, uint32_t at, uint64_t value)
{
    switch (field) {
    case M_global_address:
        map->address = value;
        break;
    case M_rank: /* counted from 0 */
        map->rank = value < PTXVM_TENSORMAP_RANK ? (uint8_t)(value + 1) : UINT8_MAX;
        break;
    case M_box_dim:
        map->box[at] = value <= 256 ? (uint16_t)value : UINT16_MAX;
        break;
    case M_global_dim:
        map->last[at] = (uint32_t)value - 1;
        break;
    case M_element_stride:
        map->element_stride[at] = value <= 8 ? (uint8_t)value : UINT8_MAX;
        break;
    case M_global_stride:
        map->stride[at + 1] = value;
        break;
    case M_elemtype:
        map->type = api_type(value);
        break;
    case M_interleave_layout:
        map->interleave = (uint8_t)value;
        break;
    case M_swizzle_mode:
        map->swizzle = (uint8_t)value;
        break;
    default:
        map->fill = (uint8_t)value;
    }
}

static vm_result exec_replace(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    const vm_operand *address = &op->operand[0];
    unsigned field = op->inst->mod[S_FLAG];
    VM_EACH_LANE(lane, mask)
    {
        vm_tensormap map;
        uint32_t at = op->n_operands > 2 ? (uint32_t)op->operand[1].bits : 0;
        uint64_t value = ops_operand(warp, &op->operand[op->n_operands - 1], (int)lane);
        uint8_t *host = vm_translate_lane(warp, op, (int)lane, address->space,
                                          lane_address(warp, address, (int)lane), sizeof map, 64, VM_ATOMIC);
        if (!host)
            return VM_FAULT;
        if (field == M_global_stride && at + 1 >= PTXVM_TENSORMAP_RANK)
            return vm_fault(warp, op, (int)lane, PTXVM_ERROR_EXECUTION,
                            "a tensor map has strides 0 to 3, not %u", at);
        vm_copy_relaxed((uint8_t *)&map, host, sizeof map);
        if (!map.magic) /* a map may begin as zeros, and get all its fields here */
            map.magic = VM_TENSORMAP_MAGIC;
        replace_field(&map, field, at, value);
        vm_copy_relaxed(host, (const uint8_t *)&map, sizeof map);
    }
    return VM_NEXT;
}

/* One copy by the whole warp: [to], [from], 128. */
static vm_result exec_copy_map(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    const vm_operand *to = &op->operand[0], *from = &op->operand[1];
    int lane = vm_first(mask);
    uint8_t *host_to = vm_translate_lane(warp, op, lane, to->space, lane_address(warp, to, lane),
                                         sizeof(vm_tensormap), 128, VM_STORE);
    const uint8_t *host_from =
        host_to ? vm_translate_lane(warp, op, lane, from->space, lane_address(warp, from, lane),
                                    sizeof(vm_tensormap), 128, VM_LOAD)
                : NULL;
    if (!host_from)
        return VM_FAULT;
    vm_copy_relaxed(host_to, host_from, sizeof(vm_tensormap));
    return VM_NEXT;
}

bool ops_find_tensormap(vm_op *op)
{
    bool copies = op->inst->mod[S_SUB] == M_cp_fenceproxy;
    op->exec = copies ? exec_copy_map : exec_replace;
    op->flags |= copies ? OPF_CONVERGED : 0;
    return true;
}
