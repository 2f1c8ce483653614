/* ldmatrix, stmatrix, movmatrix, wmma.load and wmma.store: matrices between memory and the registers of a
 * warp. */
#include <stdlib.h>

#include "ops_common.h"
#include "ptxvm/exec/hooks.h"

/* One matrix of ldmatrix or stmatrix is 8 or 16 rows of 16 bytes, each at an address given by a lane, in
 * `registers` per lane. at() gives the row and the byte in it for byte `b` of a lane's register r. */
typedef struct matrix_byte {
    int row, byte;
} matrix_byte;

typedef struct matrix_form {
    unsigned shape;
    pvm_type type;
    bool trans;
    int rows, registers;
    matrix_byte (*at)(int lane, int r, int b);
} matrix_form;

/* m8n8.b16: lane l holds elements 2(l%4) and 2(l%4)+1 of row l/4; transposed: rows 2(l%4) and 2(l%4)+1 of
 * column l/4. */
static matrix_byte at_b16(int lane, int r, int b)
{
    (void)r;
    return (matrix_byte){lane / 4, 4 * (lane % 4) + b};
}

static matrix_byte at_b16_trans(int lane, int r, int b)
{
    (void)r;
    return (matrix_byte){2 * (lane % 4) + b / 2, 2 * (lane / 4) + b % 2};
}

/* m16n16.trans: 8-bit elements, two registers: rows 4(l%4)+2r and the next, columns l/4 and l/4+8. */
static matrix_byte at_b8_16x16(int lane, int r, int b)
{
    return (matrix_byte){4 * (lane % 4) + 2 * r + b % 2, lane / 4 + 8 * (b / 2)};
}

/* m16n8.trans (stmatrix): 8 rows of 16 elements in memory: rows 2(l%4) and the next, columns l/4 and l/4+8.
 */
static matrix_byte at_b8_16x8(int lane, int r, int b)
{
    (void)r;
    return (matrix_byte){2 * (lane % 4) + b % 2, lane / 4 + 8 * (b / 2)};
}

static const matrix_form forms[] = {
    {M_m8n8, T_B16, false, 8, 1, at_b16},          {M_m8n8, T_B16, true, 8, 1, at_b16_trans},
    {M_m16n16, T_B8, true, 16, 2, at_b8_16x16},    {M_m8n16, T_B8X16, false, 8, 1, at_b16},
    {M_m16n16, T_B8X16, true, 16, 2, at_b8_16x16}, {M_m16n8, T_B8, true, 8, 1, at_b8_16x8},
};

static int matrices(const pvm_inst *inst)
{
    return inst->mod[S_NUM] == M_x4 ? 4 : inst->mod[S_NUM] == M_x2 ? 2 : 1;
}

/* The lanes that give the addresses of that many rows. */
static uint32_t row_lanes(int rows)
{
    return rows == WARP ? UINT32_MAX : (1u << rows) - 1;
}

/* The host addresses of all rows: lane i gives row i, matrix after matrix. Addresses of further lanes are
 * ignored. */
static bool translate_rows(vm_warp *warp, const vm_op *op, const vm_operand *address, int rows,
                           vm_access_kind kind, vm_access *access)
{
    access->bytes = access->align = 16;
    access->space = address->space;
    access->kind = (uint8_t)kind;
    return vm_access_operand(warp, op, address, access, row_lanes(rows));
}

/* 16 packed elements of 4 or 6 bits become 16 bytes. */
static void unpack_row(uint8_t row[16], int bits)
{
    uint8_t packed[16];
    memcpy(packed, row, sizeof packed);
    for (int i = 0; i < 16; i++) {
        int at = i * bits;
        unsigned pair = packed[at / 8] | (unsigned)packed[at / 8 + 1] << 8;
        row[i] = (uint8_t)(pair >> at % 8 & ((1u << bits) - 1));
    }
}

/* Bits of an element in memory, if it is expanded to a byte. */
static int packed_bits(const pvm_inst *inst)
{
    pvm_type packed = pvm_slot_type(inst, S_TYPE2);
    return packed == T_NONE ? 8 : packed == T_B4X16_P64 ? 4 : 6;
}

/* What one register of all lanes receives from the rows of its matrix. */
static void take_register(const matrix_form *form, uint8_t rows[][16], int r, uint32_t value[WARP])
{
    if (form->at == at_b16) {
        memcpy(value, rows, WARP * sizeof *value); /* lane l: word l */
        return;
    }
    for (int lane = 0; lane < WARP; lane++) {
        uint8_t bytes[4];
        for (int b = 0; b < 4; b++) {
            matrix_byte at = form->at == at_b16_trans ? at_b16_trans(lane, r, b) : form->at(lane, r, b);
            bytes[b] = rows[at.row][at.byte];
        }
        memcpy(&value[lane], bytes, sizeof bytes);
    }
}

static uint32_t bits_of_bytes(uint32_t bytes)
{
    return (bytes & 1) | (bytes >> 7 & 2) | (bytes >> 14 & 4) | (bytes >> 21 & 8);
}

/* The undefined bytes of the rows, moved like the bytes themselves. */
static void pass_undefined(vm_warp *warp, const vm_op *op, uint32_t mask, const uint16_t *undefined)
{
    const matrix_form *form = op->extra;
    int count = matrices(op->inst), bits = packed_bits(op->inst);
    uint8_t rows[WARP][16] = {{0}};
    for (int i = 0; i < form->rows * count; i++)
        for (int b = 0; b < 16; b++) {
            int first = b * bits / 8, last = (b * bits + bits - 1) / 8;
            rows[i][b] = (undefined[i] >> first | undefined[i] >> last) & 1;
        }
    for (int k = 0; k < count * form->registers; k++) {
        uint32_t value[WARP];
        take_register(form, rows + k / form->registers * form->rows, k % form->registers, value);
        for (int lane = 0; lane < WARP; lane++)
            value[lane] = bits_of_bytes(value[lane]);
        vm_check_moved(warp, op, k, mask, value);
    }
}

static vm_result exec_ldmatrix(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    const matrix_form *form = op->extra;
    int count = matrices(op->inst), rows = form->rows * count, bits = packed_bits(op->inst);
    uint8_t data[WARP][16];
    vm_access access;
    if (!translate_rows(warp, op, &op->operand[op->n_results], rows, VM_LOAD, &access))
        return VM_FAULT;
    for (int i = 0; i < rows; i++) {
        memcpy(data[i], vm_host(&access, (uint32_t)i), 16);
        if (bits < 8)
            unpack_row(data[i], bits);
    }
    for (int k = 0; k < count * form->registers; k++) {
        uint32_t value[WARP];
        take_register(form, data + k / form->registers * form->rows, k % form->registers, value);
        if (mask == UINT32_MAX)
            memcpy(vm_value(warp, &op->operand[k]), value, sizeof value);
        else
            VM_EACH_LANE(lane, mask)
        ops_result(warp, &op->operand[k], (int)lane, value[lane]);
    }
    const uint16_t *undefined = vm_check_moved_undefined(warp, row_lanes(rows));
    if (undefined)
        pass_undefined(warp, op, mask, undefined);
    return VM_NEXT;
}

static vm_result exec_stmatrix(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    const matrix_form *form = op->extra;
    int count = matrices(op->inst);
    vm_access access;
    if (!translate_rows(warp, op, &op->operand[0], form->rows * count, VM_STORE, &access))
        return VM_FAULT;
    for (int k = 0; k < count; k++)
        VM_EACH_LANE(lane, mask)
        {
            uint64_t value = ops_operand(warp, &op->operand[1 + k], (int)lane);
            uint32_t undefined = vm_check_moving(warp, op, 1 + k, (int)lane);
            for (int b = 0; b < 4; b++) {
                matrix_byte at = form->at((int)lane, 0, b);
                int row = k * form->rows + at.row;
                vm_host(&access, (uint32_t)row)[at.byte] = (uint8_t)(value >> 8 * b);
                if (undefined >> b & 1)
                    vm_check_moved_to(warp, &access, row, (uint64_t)at.byte);
            }
        }
    return VM_NEXT;
}

uint8_t ops_stmatrix_byte(vm_warp *warp, const vm_op *op, int row, int byte)
{
    const matrix_form *form = op->extra;
    for (int i = 0; i < 4 * WARP; i++) {
        matrix_byte at = form->at(i / 4, 0, i % 4);
        if (at.row == row % form->rows && at.byte == byte)
            return (uint8_t)(ops_operand(warp, &op->operand[1 + row / form->rows], i / 4) >> 8 * (i % 4));
    }
    return 0;
}

/* A bit mask of bytes becomes bytes of 0 and 1, which are moved like data, and then a bit mask again. */
static uint32_t bytes_of_bits(uint32_t bits)
{
    return (bits & 1) | (bits & 2) << 7 | (bits & 4) << 14 | (bits & 8) << 21;
}

static vm_result exec_movmatrix(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    uint32_t d[WARP], undefined[WARP], any = 0;
    tensor_movmatrix(d, vm_value(warp, &op->operand[1]));
    VM_EACH_LANE(lane, mask)
    ops_result(warp, &op->operand[0], (int)lane, d[lane]);
    for (int lane = 0; warp->block->watch && lane < WARP; lane++)
        any |= undefined[lane] = bytes_of_bits(vm_check_moving(warp, op, 1, lane));
    if (!any)
        return VM_NEXT;
    tensor_movmatrix(d, undefined);
    for (int lane = 0; lane < WARP; lane++)
        d[lane] = bits_of_bytes(d[lane]);
    vm_check_moved(warp, op, 0, mask, d);
    return VM_NEXT;
}

bool ops_find_matrix(vm_op *op)
{
    op->flags |= OPF_CONVERGED;
    if (op->inst->op == OP_movmatrix) {
        op->exec = exec_movmatrix;
        return true;
    }
    op->exec = op->inst->op == OP_ldmatrix ? exec_ldmatrix : exec_stmatrix;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (forms[i].shape == op->inst->mod[S_SHAPE] && forms[i].type == pvm_slot_type(op->inst, S_TYPE) &&
            forms[i].trans == (op->inst->mod[S_TRANS] == M_trans))
            op->extra = (void *)(uintptr_t)&forms[i];
    return op->extra;
}

/* ---- wmma.load, wmma.store ---- */

typedef struct wmma_shape {
    unsigned shape;
    int m, n, k;
} wmma_shape;

static const wmma_shape wmma_shapes[] = {
    {M_m16n16k16, 16, 16, 16}, {M_m32n8k16, 32, 8, 16}, {M_m8n32k16, 8, 32, 16}, {M_m16n16k8, 16, 16, 8},
    {M_m8n8k4, 8, 8, 4},       {M_m8n8k32, 8, 8, 32},   {M_m8n8k128, 8, 8, 128},
};

/* The stride if none is written: the length of a row, or of a column. */
static int default_stride(const pvm_inst *inst)
{
    const wmma_shape *shape = wmma_shapes;
    while (shape->shape != inst->mod[S_SHAPE])
        shape++;
    unsigned fragment = inst->mod[S_FRAG];
    int rows = fragment == M_b ? shape->k : shape->m, columns = fragment == M_a ? shape->k : shape->n;
    return inst->mod[S_ALAYOUT] == M_col ? rows : columns;
}

/* The operands: the registers, the address, the stride (null if none is written). */
typedef struct wmma_operands {
    const vm_operand *registers, *address, *stride;
    int count;
} wmma_operands;

static wmma_operands wmma_operands_of(const vm_op *op)
{
    wmma_operands o = {op->operand, op->operand, NULL, 0};
    bool load = op->inst->mod[S_SUB] == M_load;
    const pvm_operand *vector = &op->inst->operand[load ? 0 : 1];
    o.count = vector->kind == OPERAND_VECTOR ? vector->n_elements : 1;
    if (load)
        o.address += o.count;
    else
        o.registers++;
    int used = o.count + 1;
    if (op->n_operands > used)
        o.stride = &op->operand[used];
    return o;
}

static int element_bits(const pvm_inst *inst)
{
    return pvm_type_bits(pvm_slot_type(inst, S_TYPE));
}

static void fill_map(const pvm_inst *inst, const wmma_operands *o, int parts, wmma_map *map)
{
    for (int i = 0; i < o->count * parts * WARP && i < WMMA_PIECES; i++) {
        tensor_element element = {0, 0};
        tensor_wmma_element(inst, i % WARP, i / WARP / parts, i / WARP % parts, &element);
        map->row[i] = (uint8_t)element.row;
        map->col[i] = (uint8_t)element.col;
    }
}

/* The layout of the instruction's fragment; the most recent ones are cached. */
static const wmma_map *map_of(vm_warp *warp, const vm_op *op, const wmma_operands *o, int parts)
{
    const uint16_t *mod = op->inst->mod;
    uint64_t key = (uint64_t)mod[S_SHAPE] | (uint64_t)mod[S_FRAG] << 16 | (uint64_t)mod[S_TYPE] << 32 |
                   (uint64_t)mod[S_ALAYOUT] << 48;
    int fragment = mod[S_FRAG] == M_a ? 0 : mod[S_FRAG] == M_b ? 1 : mod[S_FRAG] == M_c ? 2 : 3;
    if (!warp->ops->maps)
        warp->ops->maps = calloc(4, sizeof(wmma_map));
    wmma_map *map = warp->ops->maps;
    if (!map) {
        vm_fault(warp, op, vm_first(warp->active), PTXVM_ERROR_MEMORY,
                 "no memory left for the layout of a fragment");
        return NULL;
    }
    map += fragment;
    if (map->key != key)
        fill_map(op->inst, o, parts, map);
    map->key = key;
    return map;
}

/* One piece of one register, for all lanes: the k-th of the map. */
typedef struct wmma_move {
    vm_access access;
    uint64_t base[WARP], stride[WARP];
    int shift[WARP]; /* of a piece smaller than a byte */
    int bits;
} wmma_move;

static bool find_piece(vm_warp *warp, const vm_op *op, wmma_move *move, const wmma_map *map, int k,
                       uint32_t mask)
{
    bool by_columns = op->inst->mod[S_ALAYOUT] == M_col;
    VM_EACH_LANE(lane, mask)
    {
        uint8_t row = map->row[k * WARP + (int)lane], col = map->col[k * WARP + (int)lane];
        uint64_t major = by_columns ? col : row, minor = by_columns ? row : col;
        uint64_t bit = (major * move->stride[lane] + minor) * (uint64_t)move->bits;
        move->access.address[lane] = move->base[lane] + bit / 8;
        move->shift[lane] = (int)(bit % 8);
    }
    return vm_translate(warp, op, &move->access, mask);
}

static void load_piece(const wmma_move *move, int part, uint32_t mask, uint64_t value[WARP])
{
    VM_EACH_LANE(lane, mask)
    {
        uint64_t piece = vm_load_relaxed(vm_host(&move->access, lane), (int)move->access.bytes);
        if (move->bits < 8)
            piece = piece >> move->shift[lane] & ((1u << move->bits) - 1);
        value[lane] |= piece << part * move->bits;
    }
}

static void store_piece(const wmma_move *move, int part, uint32_t mask, const uint64_t value[WARP])
{
    VM_EACH_LANE(lane, mask)
    {
        uint64_t piece = value[lane] >> part * move->bits;
        vm_store_relaxed(vm_host(&move->access, lane), (int)move->access.bytes, piece);
    }
}

/* Undefined bytes are stored to memory like the others. */
static void pass_stored(vm_warp *warp, const vm_op *op, const wmma_move *move, int operand, int part,
                        uint32_t mask)
{
    VM_EACH_LANE(lane, warp->block->watch ? mask : 0)
    {
        uint32_t undefined = vm_check_moving(warp, op, operand, (int)lane) >> part * move->bits / 8;
        for (uint32_t b = 0; b < move->access.bytes; b++)
            if (undefined >> b & 1)
                vm_check_moved_to(warp, &move->access, (int)lane, b);
    }
}

static bool move_register(vm_warp *warp, const vm_op *op, const vm_operand *reg, wmma_move *move,
                          const wmma_map *map, int r, int parts, uint32_t mask)
{
    bool load = op->inst->mod[S_SUB] == M_load;
    uint64_t value[WARP] = {0};
    uint32_t undefined[WARP] = {0};
    VM_EACH_LANE(lane, load ? 0 : mask)
    value[lane] = ops_operand(warp, reg, (int)lane);
    for (int part = 0; part < parts; part++) {
        if (!find_piece(warp, op, move, map, r * parts + part, mask))
            return false;
        if (load) {
            load_piece(move, part, mask, value);
            const uint16_t *bytes = vm_check_moved_undefined(warp, mask);
            VM_EACH_LANE(lane, bytes ? mask : 0)
            undefined[lane] |= (uint32_t)bytes[lane] << part * move->bits / 8;
        } else {
            store_piece(move, part, mask, value);
            pass_stored(warp, op, move, 1 + r, part, mask);
        }
    }
    VM_EACH_LANE(lane, load ? mask : 0)
    ops_result(warp, reg, (int)lane, value[lane]);
    if (load && warp->block->watch && warp->block->watch->init)
        vm_check_moved(warp, op, r, mask, undefined);
    return true;
}

static vm_result exec_wmma(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    wmma_operands o = wmma_operands_of(op);
    wmma_move move;
    int bits = element_bits(op->inst), width = 8 * o.registers[0].op_width,
        parts = bits >= width ? 1 : width / bits;
    const wmma_map *map = map_of(warp, op, &o, parts);
    if (!map)
        return VM_FAULT;
    move.bits = bits;
    move.access.bytes = move.access.align = bits < 8 ? 1 : (uint32_t)bits / 8;
    move.access.space = o.address->space;
    move.access.kind = op->inst->mod[S_SUB] == M_load ? VM_LOAD : VM_STORE;
    vm_addresses(warp, o.address, mask, move.base);
    VM_EACH_LANE(lane, mask)
    move.stride[lane] =
        o.stride ? (uint32_t)ops_operand(warp, o.stride, (int)lane) : (uint64_t)default_stride(op->inst);
    for (int r = 0; r < o.count; r++)
        if (!move_register(warp, op, &o.registers[r], &move, map, r, parts, mask))
            return VM_FAULT;
    return VM_NEXT;
}

bool ops_find_wmma(vm_op *op)
{
    if (op->inst->mod[S_SUB] != M_load && op->inst->mod[S_SUB] != M_store)
        return false;
    op->flags |= OPF_CONVERGED;
    op->exec = exec_wmma;
    return true;
}
