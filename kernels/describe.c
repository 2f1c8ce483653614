/* Descriptions of what kernels take: numbers, element types, pointers. */
#include "kernels/operations.h"

#include <string.h>

#include "kernels/emit.h"

_Static_assert(QDNN_OPERAND_COUNT <= 64, "one bit of an operand_set for each");
_Static_assert(NUMBERS <= 64, "one bit of a number_set for each");

/* ---- Numbers ---- */

typedef enum { U64, F32 } number_type;

static const struct {
    const char *name, *meaning;
    number_type type;
} number_rows[NUMBERS] = {
#define NUMBER(constant, name, type, value, meaning) [NUMBER_##constant] = {name, meaning, type},
#include "kernels/numbers.def"
#undef NUMBER
};

const char *kernel_number_name(kernel_number number)
{
    return number_rows[number].name;
}

const char *kernel_number_meaning(kernel_number number)
{
    return number_rows[number].meaning;
}

bool kernel_number_is_f32(kernel_number number)
{
    return number_rows[number].type == F32;
}

static uint64_t f32_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static uint64_t pair_of(const uint64_t pair[2])
{
    return pair[0] << 32 | pair[1];
}

/* Those that do not follow from the problem are 0. */
static void numbers_of(const kernel_problem *p, uint64_t numbers[NUMBERS])
{
#define NUMBER(constant, name, type, value, meaning) numbers[NUMBER_##constant] = (value);
#include "kernels/numbers.def"
#undef NUMBER
}

/* ---- Types of elements ---- */

element_type element_type_of(qdnnDataType_t type)
{
    static const element_type types[] = {
        [QDNN_DATA_F32] = {"f32", 4, 4},     [QDNN_DATA_F16] = {"f16", 2, 2},
        [QDNN_DATA_BF16] = {"bf16", 2, 2},   [QDNN_DATA_F64] = {"f64", 8, 8},
        [QDNN_DATA_U8] = {"u8", 1, 1},       [QDNN_DATA_I8] = {"i8", 1, 1},
        [QDNN_DATA_U16] = {"u16", 2, 2},     [QDNN_DATA_U32] = {"u32", 4, 4},
        [QDNN_DATA_I32] = {"i32", 4, 4},     [QDNN_DATA_U64] = {"u64", 8, 8},
        [QDNN_DATA_I64] = {"i64", 8, 8},     [QDNN_DATA_I4] = {"u32", 4, 4},
        [QDNN_DATA_F8E4M3] = {"e4m3", 1, 1}, [QDNN_DATA_F8E5M2] = {"e5m2", 1, 1}};
    if ((size_t)type >= sizeof types / sizeof types[0] || !types[type].bytes)
        missing_row("types of elements", (int)type);
    return types[type];
}

element_type element_type_of_scale(qdnnScaleType_t type)
{
    if (scale_data_type(type))
        return element_type_of(scale_data_type(type));
    return (element_type){type == QDNN_SCALE_E8M0 ? "e8m0" : "e4m3", 1, 1};
}

/* ---- Pointers ---- */

static const char *const operand_names[QDNN_OPERAND_COUNT] = {
#define OPERAND(constant, name) [QDNN_OPERAND_##constant] = name,
#include "kernels/operands.def"
#undef OPERAND
};

const char *kernel_operand_name(qdnnOperand_t operand)
{
    return operand_names[operand];
}

static kernel_pointer *append(kernel_description *d)
{
    if (d->count == KERNEL_POINTERS_MAX)
        missing_row("pointers of a kernel", d->count);
    return &d->pointers[d->count++];
}

kernel_pointer *describe_operand(kernel_description *d, qdnnOperand_t operand, bool writes,
                                 element_type element, kernel_rule count)
{
    kernel_pointer *p = append(d);
    *p = (kernel_pointer){.name = operand_names[operand],
                          .kind = KERNEL_OPERAND,
                          .which = (uint8_t)operand,
                          .reads = !writes,
                          .writes = writes,
                          .element = element,
                          .bytes = rule_times(rule_constant(element.bytes), count)};
    return p;
}

kernel_pointer *describe_read(kernel_description *d, qdnnOperand_t operand, element_type element,
                              kernel_rule count)
{
    return describe_operand(d, operand, false, element, count);
}

kernel_pointer *describe_write(kernel_description *d, qdnnOperand_t operand, element_type element,
                               kernel_rule count)
{
    return describe_operand(d, operand, true, element, count);
}

void describe_workspace(kernel_description *d, const char *name, int which, element_type element, bool writes)
{
    *append(d) = (kernel_pointer){.name = name,
                                  .kind = KERNEL_WORKSPACE,
                                  .which = (uint8_t)which,
                                  .reads = !writes,
                                  .writes = writes,
                                  .element = element};
}

kernel_rule describe_elements(const kernel_description *d)
{
    return d->numbers & A_NUMBER(N) && !(d->numbers & A_NUMBER(ROWS))
               ? rule_number(NUMBER_N)
               : rule_times(rule_number(NUMBER_ROWS), rule_number(NUMBER_COLUMNS));
}

/* An operation that gives no rule has a grid along x: as many blocks as it says, or as its elements fill. */
static void complete_grid(const kernel_description *d, kernel_geometry *g)
{
    if (!g->grid[0].count)
        g->grid[0] = g->blocks ? rule_constant(g->blocks < INT32_MAX ? g->blocks : INT32_MAX)
                               : rule_ceil(describe_elements(d), g->elements_per_block);
    for (int i = 1; i < 3; i++)
        if (!g->grid[i].count)
            g->grid[i] = rule_constant(1);
}

void kernel_describe(const kernel_row *row, const kernel_spec *spec, kernel_description *d)
{
    d->count = 0;
    d->numbers = 0;
    row->operation->describe(d, row, spec);
    d->launch = row->operation->geometry(row, spec);
    complete_grid(d, &d->launch);
}

kernel_geometry kernel_geometry_of(const kernel_row *row, const kernel_spec *spec)
{
    kernel_description d;
    kernel_describe(row, spec, &d);
    return d.launch;
}

const kernel_pointer *description_find(const kernel_description *d, int operand)
{
    for (int i = 0; i < d->count; i++)
        if (d->pointers[i].kind == KERNEL_OPERAND && d->pointers[i].which == operand)
            return &d->pointers[i];
    return NULL;
}

uint64_t pointer_bytes(const kernel_pointer *p, const uint64_t numbers[NUMBERS])
{
    if (p->is_per_group && (numbers[NUMBER_ROWS] == 0 || numbers[NUMBER_COLUMNS] == 0))
        return 0;
    return rule_value(&p->bytes, numbers);
}

/* ---- Stacks of experts: each has arrays of its own, back to back ---- */

/* The numbers that say how many bytes of an operand one expert has. */
static const struct {
    kernel_number number;
    qdnnOperand_t operand;
} strides[] = {{NUMBER_CODES_STRIDE, QDNN_OPERAND_CODES},
               {NUMBER_SCALE_STRIDE, QDNN_OPERAND_SCALE},
               {NUMBER_ZERO_STRIDE, QDNN_OPERAND_ZERO},
               {NUMBER_NESTED_STRIDE, QDNN_OPERAND_NESTED_SCALE}};
enum { STRIDES = sizeof strides / sizeof strides[0] };

/* The experts share the rules of nested scales. */
void describe_stack(kernel_description *d, int first)
{
    for (kernel_pointer *p = &d->pointers[first]; p < &d->pointers[d->count]; p++)
        if (p->which != QDNN_OPERAND_NESTED_MAP && p->which != QDNN_OPERAND_NESTED_OFFSET)
            p->bytes = rule_times(rule_number(NUMBER_EXPERTS), p->bytes);
    d->numbers |= A_NUMBER(EXPERTS);
    for (int i = 0; i < STRIDES; i++)
        if (description_find(d, strides[i].operand))
            d->numbers |= (number_set)1 << strides[i].number;
}

void description_numbers(const kernel_description *d, const kernel_problem *problem,
                         uint64_t numbers[NUMBERS])
{
    kernel_problem one = *problem;
    uint64_t of_one[NUMBERS];
    one.experts = 1;
    numbers_of(problem, numbers);
    numbers_of(&one, of_one);
    for (int i = 0; i < STRIDES; i++)
        if (d->numbers >> strides[i].number & 1)
            numbers[strides[i].number] = pointer_bytes(description_find(d, strides[i].operand), of_one);
}
