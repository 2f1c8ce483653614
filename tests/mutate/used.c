/* The bits that are used, from the last step to the first, until nothing changes. A register that differs in no used bit makes
 * no difference: each step gives the same in the used bits of its results if its operands are the same in the bits that this file
 * says it reads. */
#include "mutate/used.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool constant(const step *s, int operand, uint64_t *value)
{
    return operand < s->i.n && text_constant(s->i.operand[operand], value);
}

static int type_width(const step *s)
{
    const char *type = strrchr(s->i.opcode, '.');
    return type && strchr("usbf", type[1]) ? atoi(type + 2) : 64;
}

/* The bits up to the highest of these: what a sum or a product needs. */
static uint64_t up_to(uint64_t bits)
{
    for (int k = 1; k < 64; k *= 2)
        bits |= bits >> k;
    return bits;
}

/* ---- What a step reads of an operand, if these bits of its result are used ---- */

typedef uint64_t reader(const step *s, int operand, uint64_t used);

static uint64_t read_as_is(const step *s, int operand, uint64_t used)
{
    (void)s, (void)operand;
    return used;
}

static uint64_t read_sum(const step *s, int operand, uint64_t used)
{
    (void)s, (void)operand;
    return up_to(used);
}

/* x * c: trailing zeros of c move x to the left. */
static uint64_t read_product(const step *s, int operand, uint64_t used)
{
    uint64_t c;
    if (operand == 3)
        return up_to(used);
    if (!constant(s, operand == 1 ? 2 : 1, &c))
        return up_to(used);
    const int zeros = bits_trailing_zeros(c);
    return zeros >= 64 ? 0 : up_to(used) >> zeros;
}

static uint64_t read_wide_product(const step *s, int operand, uint64_t used)
{
    const uint64_t bits = read_product(s, operand, used);
    const bool has_sign = strstr(s->i.opcode, ".s32") != NULL;
    return operand == 3 ? bits : (bits & UINT32_MAX) | (has_sign && bits >> 32 ? UINT64_C(1) << 31 : 0);
}

static uint64_t read_select(const step *s, int operand, uint64_t used)
{
    (void)s;
    return operand == 3 ? used != 0 : used;
}

static uint64_t read_and(const step *s, int operand, uint64_t used)
{
    uint64_t mask;
    return constant(s, operand == 1 ? 2 : 1, &mask) ? used & mask : used;
}

static uint64_t read_or(const step *s, int operand, uint64_t used)
{
    uint64_t mask;
    return constant(s, operand == 1 ? 2 : 1, &mask) ? used & ~mask : used;
}

/* Bit a * 4 + b * 2 + c of the table; the constants among the operands have their bits, the others any. */
static bool table_looks(const step *s, unsigned table, int operand, int bit)
{
    for (unsigned i = 0; i < 8; i++) {
        const unsigned other = i ^ 4u >> (operand - 1);
        bool is_possible = true;
        for (int k = 1; k <= 3; k++) {
            uint64_t value;
            if (k != operand && constant(s, k, &value))
                is_possible = is_possible && (value >> bit & 1) == (i >> (3 - k) & 1);
        }
        if (is_possible && (table >> i & 1) != (table >> other & 1))
            return true;
    }
    return false;
}

static uint64_t read_table(const step *s, int operand, uint64_t used)
{
    uint64_t table, bits = 0;
    if (!constant(s, 4, &table))
        return used ? UINT32_MAX : 0;
    for (int bit = 0; bit < 32; bit++)
        if (used >> bit & 1 && table_looks(s, (unsigned)table, operand, bit))
            bits |= UINT64_C(1) << bit;
    return bits;
}

static uint64_t read_shl(const step *s, int operand, uint64_t used)
{
    uint64_t k;
    if (operand == 2)
        return used ? UINT32_MAX : 0;
    if (!constant(s, 2, &k))
        return up_to(used);
    return k < 64 ? used >> k : 0;
}

static ranges *known; /* of the program whose bits are asked for; may be null */

/* A shift by a register: as far as it goes. The register's bits are all used, so that it is in its range in both programs. */
static uint64_t read_shr_by(const step *s, uint64_t used, int width)
{
    const bool is_bounded = known && s->reg[2] != NO_REGISTER && !step_starts(s, "shr.s");
    const uint64_t most = is_bounded ? range_anywhere(known, s->reg[2]).most : UINT64_MAX;
    uint64_t bits = 0;
    if (most >= (uint64_t)width) /* to the right of the lowest bit is nothing */
        return used ? bits_mask(width) & ~bits_mask(bits_trailing_zeros(used)) : 0;
    for (uint64_t k = 0; k <= most; k++)
        bits |= used << k;
    return bits & bits_mask(width);
}

static uint64_t read_shr(const step *s, int operand, uint64_t used)
{
    const int width = type_width(s);
    const bool has_sign = step_starts(s, "shr.s");
    uint64_t k;
    if (operand == 2)
        return used ? UINT32_MAX : 0;
    if (!constant(s, 2, &k))
        return read_shr_by(s, used, width);
    if (k >= (uint64_t)width)
        return has_sign && used ? UINT64_C(1) << (width - 1) : 0;
    const uint64_t brought_in = used & ~(bits_mask(width) >> k);
    return (used << k & bits_mask(width)) | (has_sign && brought_in ? UINT64_C(1) << (width - 1) : 0);
}

/* ---- Products of bytes ---- */

static range range_of_constant_or_register(const step *s, int operand)
{
    uint64_t value;
    if (s->reg[operand] != NO_REGISTER)
        return range_anywhere(known, s->reg[operand]);
    return constant(s, operand, &value) ? range_one_value(value & UINT32_MAX, 32) : range_anything(32);
}

/* The zeros that each of the four bytes ends with. */
static int zeros_of_bytes(range r)
{
    int least = 8;
    for (int k = 0; k < 4; k++) {
        const int zeros = bits_trailing_zeros(~(r.zeros >> 8 * k & 0xFF));
        least = zeros < least ? zeros : least;
    }
    return least;
}

/* Of the registers in braces. */
static int zeros_of_fragment(const step *s, int first, int count)
{
    int least = count ? 8 : 0;
    for (int k = first; k < first + count; k++) {
        const int zeros = zeros_of_bytes(range_anywhere(known, s->reads[k]));
        least = zeros < least ? zeros : least;
    }
    return least;
}

static int zeros_of_products(const step *s)
{
    int first = 0;
    if (!known)
        return 0;
    if (step_starts(s, "dp4a."))
        return zeros_of_bytes(range_of_constant_or_register(s, 1)) +
               zeros_of_bytes(range_of_constant_or_register(s, 2));
    if (!step_adds_products(s))
        return 0;
    for (const char *at = s->i.operand[1]; *at; at++)
        first += *at == '%';
    return zeros_of_fragment(s, 0, first) + zeros_of_fragment(s, first, s->n_reads - s->n_writes - first);
}

int used_zeros_of_products(const program *p, const step *s)
{
    known = ranges_of(p);
    return zeros_of_products(s);
}

/* What is read of an addend. All bits of the factors are read, so that their zeros are there in both programs. */
static uint64_t read_addend(const step *s, uint64_t used)
{
    const uint64_t lower = bits_mask(zeros_of_products(s));
    return (used & lower) | (up_to(used) & ~lower);
}

static uint64_t read_dot(const step *s, int operand, uint64_t used)
{
    return operand == 3 ? read_addend(s, used) : used ? UINT64_MAX : 0;
}

static uint64_t used_of_mma(const step *s, int reg, const uint64_t *used)
{
    const int addends = s->n_reads - s->n_writes;
    uint64_t bits = 0;
    for (int k = 0; k < s->n_reads; k++)
        if (s->reads[k] == reg)
            bits |= k < addends ? UINT64_MAX : read_addend(s, used[s->writes[k - addends]]);
    return bits;
}

static uint64_t read_field(const step *s, int operand, uint64_t used)
{
    uint64_t position, count;
    if (operand != 1)
        return used ? 0xFF : 0;
    if (!constant(s, 2, &position) || !constant(s, 3, &count) || type_width(s) != 32 || position > 31)
        return used ? UINT64_MAX : 0;
    if (count > 32 - position)
        count = 32 - position;
    uint64_t bits = (used & bits_mask((int)count)) << position;
    if (step_is(s, "bfe.s32") && count > 0 && used >> count)
        bits |= UINT64_C(1) << (position + count - 1);
    return count ? bits : 0;
}

static uint64_t read_insert(const step *s, int operand, uint64_t used)
{
    uint64_t position, count;
    if (operand > 2)
        return used ? 0xFF : 0;
    if (!constant(s, 3, &position) || !constant(s, 4, &count) || position > 31 || !step_is(s, "bfi.b32"))
        return used ? UINT64_MAX : 0;
    if (count > 32 - position)
        count = 32 - position;
    return operand == 1 ? used >> position & bits_mask((int)count)
                        : used & ~(bits_mask((int)count) << position);
}

static uint64_t read_permuted(const step *s, int operand, uint64_t used)
{
    uint64_t selector, bits = 0;
    if (operand == 3)
        return used ? 0xFFFF : 0;
    if (!constant(s, 3, &selector) || !step_is(s, "prmt.b32"))
        return used ? UINT32_MAX : 0;
    for (int k = 0; k < 4; k++) {
        const unsigned from = selector >> 4 * k & 15;
        const uint64_t byte = used >> 8 * k & 0xFF;
        if ((from & 4 ? 2 : 1) == operand)
            bits |= (from & 8 ? (uint64_t)(byte != 0) << 7 : byte) << 8 * (from & 3);
    }
    return bits;
}

/* `cvt.u32.u16`; others, with roundings and floats, read all. */
static uint64_t read_conversion(const step *s, int operand, uint64_t used)
{
    int to = 0, from = 0;
    char kind = 0, source = 0;
    (void)operand;
    if (strlen(s->i.opcode) > strlen("cvt.u32.u16") ||
        sscanf(s->i.opcode, "cvt.%c%d.%c%d", &kind, &to, &source, &from) != 4 || !strchr("us", kind) ||
        !strchr("us", source))
        return used ? UINT64_MAX : 0;
    const int width = from < to ? from : to;
    const bool has_sign = (from < to ? source : kind) == 's';
    return (used & bits_mask(width)) | (has_sign && used >> width ? UINT64_C(1) << (width - 1) : 0);
}

/* A lane's number has five bits; the last operands have two fields of five. */
static uint64_t read_shuffled(const step *s, int operand, uint64_t used)
{
    (void)s;
    return operand == 1 ? used : operand == 2 ? 0x1F : operand == 3 ? 0x1F1F : UINT32_MAX;
}

/* x < 2^k looks at the bits from k on. */
static uint64_t read_compared(const step *s, int operand, uint64_t used)
{
    const char *name = s->i.opcode + 4;
    uint64_t c;
    if (!used)
        return 0;
    if (operand == 3)
        return 1;
    if (operand != 1 || !strstr(s->i.opcode, ".u") || !constant(s, 2, &c))
        return UINT64_MAX;
    if (strncmp(name, ".le.", 4) == 0 || strncmp(name, ".gt.", 4) == 0)
        c++;
    else if (strncmp(name, ".lt.", 4) != 0 && strncmp(name, ".ge.", 4) != 0)
        return UINT64_MAX;
    return c && (c & (c - 1)) == 0 ? ~(c - 1) : UINT64_MAX;
}

static uint64_t read_if_used(const step *s, int operand, uint64_t used)
{
    (void)s, (void)operand;
    return used ? UINT64_MAX : 0;
}

static uint64_t read_all(const step *s, int operand, uint64_t used)
{
    (void)s, (void)operand, (void)used;
    return UINT64_MAX;
}

/* By the beginning of the opcode; what is not listed reads all. */
static const struct {
    const char *opcode;
    reader *reads;
} readers[] = {
    {"mov.", read_as_is},
    {"add.u", read_sum},
    {"add.s", read_sum},
    {"sub.u", read_sum},
    {"sub.s", read_sum},
    {"neg.s", read_sum},
    {"mul.lo.", read_product},
    {"mad.lo.", read_product},
    {"mul.wide.u32", read_wide_product},
    {"mul.wide.s32", read_wide_product},
    {"mad.wide.u32", read_wide_product},
    {"mad.wide.s32", read_wide_product},
    {"selp.", read_select},
    {"and.", read_and},
    {"or.", read_or},
    {"xor.", read_as_is},
    {"not.", read_as_is},
    {"lop3.b32", read_table},
    {"shl.", read_shl},
    {"shr.", read_shr},
    {"bfe.", read_field},
    {"bfi.", read_insert},
    {"prmt.", read_permuted},
    {"cvt.", read_conversion},
    {"shfl.", read_shuffled},
    {"setp.", read_compared},
    {"min.", read_if_used},
    {"max.", read_if_used},
    {"mul.", read_if_used},
    {"mad.", read_if_used},
    {"fma.", read_if_used},
    {"add.r", read_if_used},
    {"sub.r", read_if_used},
    {"neg.f", read_if_used},
    {"abs.", read_if_used},
    {"div.", read_if_used},
    {"rem.", read_if_used},
    {"shf.", read_if_used},
    {"testp.", read_if_used},
    {"copysign.", read_if_used},
    {"popc.", read_if_used},
    {"dp4a.", read_dot},
    {"rcp.", read_if_used},
    {"sqrt.", read_if_used},
};

static reader *reader_of(const step *s)
{
    for (size_t k = 0; k < sizeof readers / sizeof readers[0]; k++)
        if (step_starts(s, readers[k].opcode))
            return readers[k].reads;
    return read_all;
}

/* ---- Registers ---- */

/* `mov.b64 d, {r, r}` and `mov.b64 {r, r}, d`: k is the register's place among those that are read. */
static uint64_t used_of_halves(const program *p, const step *s, int k, const uint64_t *used)
{
    if (s->n_writes == 1 && s->n_reads == 2)
        return used[s->writes[0]] >> k * (p->width[s->writes[0]] / 2);
    if (s->n_writes == 2 && s->n_reads == 1) {
        const int half = p->width[s->reads[0]] / 2;
        return (used[s->writes[0]] & bits_mask(half)) | (used[s->writes[1]] & bits_mask(half)) << half;
    }
    return UINT64_MAX;
}

/* All of the address, and of what is stored as much as fits. */
static uint64_t used_of_store(const step *s, int k)
{
    const bool has_register = strchr(s->i.operand[0], '%') != NULL;
    return k == 0 && has_register ? UINT64_MAX : bits_mask(type_width(s));
}

static uint64_t used_of_operands(const step *s, int reg, const uint64_t *used)
{
    reader *reads = reader_of(s);
    uint64_t bits = 0;
    if (step_adds_products(s))
        return used_of_mma(s, reg, used);
    if (s->n_writes != 1 || reads == read_all)
        return UINT64_MAX;
    for (int k = 1; k < s->i.n; k++)
        if (s->reg[k] == reg)
            bits |= reads(s, k, used[s->writes[0]]);
    return bits;
}

uint64_t used_by(const program *p, const step *s, int reg, const uint64_t *used)
{
    uint64_t bits = s->guard == reg;
    for (int k = 0; k < s->n_reads; k++) {
        if (s->reads[k] != reg)
            continue;
        if (step_starts(s, "mov.") && (s->i.operand[0][0] == '{' || s->i.operand[1][0] == '{'))
            bits |= used_of_halves(p, s, k, used);
        else
            bits |= step_starts(s, "st.") ? used_of_store(s, k) : used_of_operands(s, reg, used);
    }
    return bits & bits_mask(p->width[reg]);
}

static bool use(const program *p, const step *s, int reg, uint64_t *used)
{
    const uint64_t bits = used_by(p, s, reg, used) & ~used[reg];
    used[reg] |= bits;
    return bits != 0;
}

/* Whether a bit became used. */
static bool use_step(const program *p, const step *s, uint64_t *used)
{
    bool is_new = s->guard != NO_REGISTER && use(p, s, s->guard, used);
    for (int k = 0; k < s->n_reads; k++)
        is_new = use(p, s, s->reads[k], used) || is_new;
    return is_new;
}

const uint64_t *used_bits(const program *p, int at, const step *changed)
{
    static uint64_t *used;
    known = ranges_of(p);
    free(used);
    used = calloc((size_t)p->n_registers + 1, sizeof *used);
    for (bool is_new = used != NULL; is_new;) {
        is_new = false;
        for (int k = p->n_steps - 1; k >= 0; k--) {
            is_new = use_step(p, &p->steps[k], used) || is_new;
            if (k == at)
                is_new = use_step(p, changed, used) || is_new;
        }
    }
    return used;
}
