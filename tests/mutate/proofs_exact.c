/* Products, sums and conversions that have nothing to round. */
#include "mutate/numbers.h"
#include "mutate/proofs.h"

#include <string.h>

/* Products, sums and differences that f32 has. A difference of two equal numbers is +0, to nearest and toward zero. */
bool result_is_exact(const char *ptx, const mutant *m, const instruction *i)
{
    numbers exact;
    if (m->kind != MUTANT_ROUNDING || strcmp(m->with, "rz") != 0 || i->n < 3)
        return false;
    const numbers a = numbers_of(ptx, i->operand[1]), b = numbers_of(ptx, i->operand[2]);
    if (text_is_opcode(i, "mul.rn.f32"))
        return numbers_product(&a, &b, &exact);
    if (text_is_opcode(i, "add.rn.f32") || text_is_opcode(i, "sub.rn.f32"))
        return numbers_sum(&a, &b, &exact);
    if (!text_is_opcode(i, "fma.rn.f32") || !numbers_product(&a, &b, &exact))
        return false;
    const numbers c = numbers_of(ptx, i->operand[3]), product = exact;
    return numbers_sum(&product, &c, &exact);
}

/* Conversions to a type that has all the numbers. */
bool narrower_type_has_it(const char *ptx, const mutant *m, const instruction *i)
{
    static const struct {
        const char *opcode;
        int bits, unit, most;
    } types[] = {{"cvt.rn.f16.f32", 11, -24, 16}, {"cvt.rn.bf16.f32", 8, -133, 128}};
    for (size_t k = 0; k < sizeof types / sizeof types[0] && m->kind == MUTANT_ROUNDING; k++)
        if (text_is_opcode(i, types[k].opcode)) {
            const numbers n = numbers_of(ptx, i->operand[1]);
            return numbers_bits(&n) <= types[k].bits && n.unit >= types[k].unit && n.most <= types[k].most;
        }
    return false;
}
