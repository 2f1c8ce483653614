/* wgmma: matrices come from shared memory instead of fragments; the arithmetic is that of the table's rows. */
#include "internal.h"

int tensor_depth(const tensor_op *op)
{
    return op->atype == T_B1 ? op->k / 32 : op->k;
}

uint32_t tensor_sign_bit(pvm_type type)
{
    const tensor_format *f = tensor_format_of(type, false);
    return f ? 1u << (f->mantissa + f->exponent) : 0;
}

uint32_t tensor_scaled_down(pvm_type type, uint32_t bits, int shift)
{
    const int mantissa = type == T_F16 ? 10 : 23;
    const uint32_t sign = bits & tensor_sign_bit(type == T_F16 ? T_F16 : T_F32), magnitude = bits ^ sign,
                   top = (1u << (type == T_F16 ? 5 : 8)) - 1;
    const uint32_t field = magnitude >> mantissa, fraction = magnitude & ((1u << mantissa) - 1);
    if (field == top || shift == 0)
        return bits;
    if (field > (uint32_t)shift)
        return sign | (field - (uint32_t)shift) << mantissa | fraction;
    /* subnormal, or becomes so: in units of the least number */
    const uint32_t significand = field ? fraction | 1u << mantissa : fraction;
    return sign | significand >> (shift - (field ? (int)field - 1 : 0));
}

static void multiply_floats(const tensor_op *op, const uint32_t *a, const uint32_t *b, uint32_t *c)
{
    const tensor_dot dot = tensor_dot_of(op, op->dtype == T_F16);
    tensor_dots_of(op)(&dot, op->m, op->n / PART_COLUMNS, op->k, a, b, c, NULL, NULL);
}

void tensor_multiply(const tensor_op *op, uint32_t *a, uint32_t *b, uint32_t *c)
{
    const int depth = tensor_depth(op);
    if (op->model->method == METHOD_FDPA) {
        multiply_floats(op, a, b, c);
        return;
    }
    tensor_sign_extend(op->atype, a, op->m * depth);
    tensor_sign_extend(op->btype, b, op->n * depth);
    for (int part = 0; part < op->n / PART_COLUMNS; part++, b += depth * PART_COLUMNS)
        for (int i = 0; i < op->m; i++, c += PART_COLUMNS)
            if (op->model->method == METHOD_INTEGER)
                tensor_integer_row(op->satfinite, depth, a + i * depth, b, c);
            else
                tensor_bits_row(op->is_and, depth, a + i * depth, b, c);
}
