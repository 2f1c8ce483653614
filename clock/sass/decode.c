/* What an instruction is: from its opcode (opcodes.def), the later parts of the opcode, its operands and its bits. */
#include <stdlib.h>
#include <string.h>

#include "clock/sass/internal.h"

/* ---- Opcodes ---- */

typedef struct opcode {
    const char *name;
    sass_unit unit;
    sass_kind kind;
    sass_space space;
} opcode;

static const opcode opcodes[] = {
#define OPCODE(name, unit, kind, space) {#name, SASS_UNIT_##unit, SASS_##kind, SASS_##space},
#include "clock/sass/opcodes.def"
#undef OPCODE
};

static opcode find_opcode(const sass_inst *inst)
{
    for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++)
        if (sass_is(inst, opcodes[i].name))
            return opcodes[i];
    return (opcode){.unit = inst->text[0] == 'U' ? SASS_UNIT_UNIFORM : SASS_UNIT_UNKNOWN};
}

bool sass_is(const sass_inst *inst, const char *base)
{
    return strlen(base) == (size_t)inst->base_length && !memcmp(inst->text, base, (size_t)inst->base_length);
}

/* The part of the opcode behind this one, which is `length` long; null: the last. */
static const char *next_part(const sass_inst *inst, const char *part, int *length)
{
    const char *end = inst->text + inst->opcode_length, *next = part + *length;
    if (next >= end)
        return NULL;
    next++;
    *length = 0;
    while (next + *length < end && next[*length] != '.')
        ++*length;
    return next;
}

bool sass_has(const sass_inst *inst, const char *part)
{
    int length = inst->base_length;
    for (const char *at = inst->text; (at = next_part(inst, at, &length));)
        if (strlen(part) == (size_t)length && !memcmp(at, part, (size_t)length))
            return true;
    return false;
}

/* ---- Memory ---- */

/* LDSM.16.M88.4 loads four matrices, LDG.E.64 8 bytes per thread. */
static int bytes_of(const sass_inst *inst)
{
    static const struct {
        const char *part;
        int bytes;
    } widths[] = {{"256", 32}, {"128", 16}, {"64", 8}, {"U8", 1}, {"S8", 1}, {"U16", 2}, {"S16", 2}};
    if (sass_is(inst, "LDSM") || sass_is(inst, "STSM"))
        return sass_has(inst, "4") ? 16 : sass_has(inst, "2") ? 8 : 4;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        if (sass_has(inst, widths[i].part))
            return widths[i].bytes;
    return 4;
}

static void read_memory(sass_inst *inst)
{
    if (inst->kind >= SASS_LOAD && inst->kind <= SASS_COPY)
        inst->bytes = bytes_of(inst);
    inst->bypass = sass_has(inst, "BYPASS") || sass_has(inst, "NA") ||
                   (sass_has(inst, "STRONG") && !sass_has(inst, "SM"));
}

/* "DEPBAR.LE SB0, 0x1 ;" */
static void read_wait(sass_inst *inst)
{
    const char *at = inst->text + inst->opcode_length;
    if (strncmp(at, " SB", 3))
        return;
    inst->scoreboard = atoi(at + 3);
    at = memchr(at, ',', (size_t)(inst->text + inst->text_length - at));
    inst->keep = at ? (int)strtol(at + 1, NULL, 0) : 0;
}

/* ---- Tensor cores ---- */

/* "16816" is m16n8k16; later ones are written "64x128x16". */
static bool read_shape(const char *part, int length, sass_mma *mma)
{
    static const sass_mma shapes[] = {{8, 8, 4, "884"},       {16, 8, 4, "1684"},    {16, 8, 8, "1688"},
                                      {16, 8, 16, "16816"},   {16, 8, 32, "16832"},  {16, 8, 64, "16864"},
                                      {8, 8, 16, "8816"},     {8, 8, 32, "8832"},    {8, 8, 128, "88128"},
                                      {16, 8, 128, "168128"}, {16, 8, 256, "168256"}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (strlen(shapes[i].types) == (size_t)length && !memcmp(part, shapes[i].types, (size_t)length)) {
            *mma = shapes[i];
            return true;
        }
    char *end;
    sass_mma m = {.m = (int)strtol(part, &end, 10)};
    if (end == part || *end != 'x')
        return false;
    m.n = (int)strtol(end + 1, &end, 10);
    if (*end != 'x')
        return false;
    m.k = (int)strtol(end + 1, &end, 10);
    *mma = m;
    return end == part + length;
}

static void read_mma(sass_inst *inst)
{
    int length = inst->base_length;
    for (const char *at = inst->text; (at = next_part(inst, at, &length));)
        if (read_shape(at, length, &inst->mma)) {
            const char *types = at + length, *end = inst->text + inst->opcode_length;
            size_t n = types < end ? (size_t)(end - types - 1) : 0;
            n = n < sizeof inst->mma.types - 1 ? n : sizeof inst->mma.types - 1;
            memset(inst->mma.types, 0, sizeof inst->mma.types);
            if (n)
                memcpy(inst->mma.types, types + 1, n);
            return;
        }
}

/* Of an element of A and B. */
static int mma_bits(const sass_inst *inst)
{
    switch (inst->text[0]) {
    case 'D':
        return 64;
    case 'H':
        return sass_has(inst, "TF32") ? 32 : 16;
    case 'Q':
        return 8;
    case 'O':
        return 4;
    case 'B':
        return 1;
    default:
        return sass_has(inst, "S4") || sass_has(inst, "U4") ? 4 : 8;
    }
}

/* Registers of operand i: D, A, B, C. */
static int mma_registers(const sass_inst *inst, int i)
{
    const sass_mma *s = &inst->mma;
    const int half_sums = inst->text[0] == 'H' && !sass_has(inst, "F32");
    const int bits[] = {s->m * s->n *
                            (half_sums              ? 16
                             : inst->text[0] == 'D' ? 64
                                                    : 32),
                        s->m * s->k * mma_bits(inst), s->k * s->n * mma_bits(inst)};
    int n = bits[i % 3] / (32 * SASS_LANES);
    return n > 1 ? n : 1;
}

/* ---- Registers ---- */

static bool has_result_behind_predicate(const sass_inst *inst)
{
    return inst->kind == SASS_SHUFFLE || inst->kind == SASS_ATOMIC;
}

static bool writes_register(const sass_inst *inst)
{
    return inst->kind == SASS_COMPUTE || inst->kind == SASS_LOAD || inst->kind == SASS_MMA ||
           inst->kind == SASS_SHUFFLE || inst->kind == SASS_ATOMIC;
}

static bool is_wide(const sass_inst *inst)
{
    return inst->unit == SASS_UNIT_DOUBLE || sass_has(inst, "64") || sass_has(inst, "F64") ||
           sass_is(inst, "FFMA2") || sass_is(inst, "FADD2") || sass_is(inst, "FMUL2") ||
           (sass_is(inst, "CS2R") && !sass_has(inst, "32"));
}

/* Registers of a result; operand: the how manieth it is. */
static int width_of(const sass_inst *inst, int operand, bool result)
{
    if (inst->kind == SASS_MMA)
        return mma_registers(inst, operand);
    if (inst->kind == SASS_LOAD || (inst->kind == SASS_STORE && operand > 0) ||
        (inst->kind == SASS_ATOMIC && result))
        return inst->bytes > 4 ? inst->bytes / 4 : 1;
    if (sass_has(inst, "WIDE"))
        return result || operand == 3 ? 2 : 1;
    return is_wide(inst) ? 2 : 1;
}

static bool is_name(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c == '.';
}

static void add_read(sass_inst *inst, sass_registers r)
{
    if (inst->n_reads < SASS_READS)
        inst->reads[inst->n_reads++] = r;
}

/* Every R<number> of the operands: the first operand is the result, if the instruction has one in a register. */
static void read_registers(sass_inst *inst)
{
    const char *end = inst->text + inst->text_length, *at = inst->text + inst->opcode_length;
    int operand = 0;
    bool in_address = false;
    for (; at < end; at++) {
        operand += *at == ',';
        in_address = *at == '[' || (in_address && *at != ']');
        if (*at != 'R' || is_name(at[-1]) || at[1] < '0' || at[1] > '9')
            continue;
        char *behind;
        int first = (int)strtol(at + 1, &behind, 10);
        bool result = !in_address && writes_register(inst) && !inst->writes.count &&
                      (operand == 0 || (operand == 1 && has_result_behind_predicate(inst)));
        int count = in_address ? 1 + !strncmp(behind, ".64", 3) : width_of(inst, operand, result);
        sass_registers r = {(uint8_t)first, (uint8_t)count};
        if (result)
            inst->writes = r;
        else
            add_read(inst, r);
        at = behind - 1;
    }
}

static bool overlap(sass_registers a, sass_registers b)
{
    return a.first < b.first + b.count && b.first < a.first + a.count;
}

bool sass_reads(const sass_inst *inst, sass_registers any)
{
    for (int i = 0; i < inst->n_reads; i++)
        if (overlap(inst->reads[i], any))
            return true;
    return false;
}

bool sass_writes(const sass_inst *inst, sass_registers any)
{
    return inst->writes.count && overlap(inst->writes, any);
}

/* ---- Bits ---- */

/* stall 105..108, yield 109 (0: yields), write barrier 110..112, read barrier 113..115 (7: none), waits 116..121, reuse 122..125. */
sass_control sass_control_of(uint64_t high)
{
    const unsigned c = (unsigned)(high >> (105 - 64)), write = c >> 5 & 7, read = c >> 8 & 7;
    return (sass_control){.stall = c & 15,
                          .yield = !(c >> 4 & 1),
                          .write_barrier = (int8_t)(write < SASS_SCOREBOARDS ? (int)write : -1),
                          .read_barrier = (int8_t)(read < SASS_SCOREBOARDS ? (int)read : -1),
                          .waits = c >> 11 & 63,
                          .reuse = c >> 17 & 15};
}

/* ---- All of it ---- */

void sass_decode(sass_inst *inst)
{
    opcode o = find_opcode(inst);
    inst->unit = o.unit;
    inst->kind = o.kind;
    inst->space = o.space;
    inst->scoreboard = -1;
    read_memory(inst);
    if (inst->kind == SASS_MMA)
        read_mma(inst);
    if (inst->kind == SASS_COPY_WAIT)
        read_wait(inst);
    read_registers(inst);
}
