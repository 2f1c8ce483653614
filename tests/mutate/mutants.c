/* Finding the places of a text where a mutation applies. The builder writes one instruction per line, after a tab:
 *     @%p1 setp.lt.and.f32 %p4, %r7, 0f3F800000, %p3;
 * is a guard, an opcode of words between dots, and operands, the first of which is the destination. */
#include "mutate/mutants.h"

#include "support/random.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

const char *const mutant_class_names[MUTANT_CLASSES] = {
    [MUTANT_COMPARISON] = "comparison", [MUTANT_ROUNDING] = "rounding", [MUTANT_TYPE] = "type",
    [MUTANT_REGISTER] = "register",     [MUTANT_CONSTANT] = "constant", [MUTANT_SHIFT] = "shift",
    [MUTANT_ARITHMETIC] = "arithmetic", [MUTANT_EXTREME] = "extreme",   [MUTANT_LOGIC] = "logic",
    [MUTANT_PREDICATE] = "predicate",   [MUTANT_DELETION] = "deletion"};

/* Words of an opcode and what takes their place. Nothing tells u64 and s64 apart: addresses, numbers of elements and
 * their products are below 2^63. */
static const struct {
    mutant_class kind;
    const char *from, *to;
} swaps[] = {
    {MUTANT_COMPARISON, "eq", "ne"},   {MUTANT_COMPARISON, "ne", "eq"},   {MUTANT_COMPARISON, "lt", "le"},
    {MUTANT_COMPARISON, "lt", "gt"},   {MUTANT_COMPARISON, "le", "lt"},   {MUTANT_COMPARISON, "le", "ge"},
    {MUTANT_COMPARISON, "gt", "ge"},   {MUTANT_COMPARISON, "gt", "lt"},   {MUTANT_COMPARISON, "ge", "gt"},
    {MUTANT_COMPARISON, "ge", "le"},   {MUTANT_COMPARISON, "equ", "neu"}, {MUTANT_COMPARISON, "neu", "equ"},
    {MUTANT_COMPARISON, "neu", "ne"},  {MUTANT_COMPARISON, "equ", "eq"},  {MUTANT_COMPARISON, "ltu", "leu"},
    {MUTANT_COMPARISON, "ltu", "lt"},  {MUTANT_COMPARISON, "leu", "ltu"}, {MUTANT_COMPARISON, "leu", "le"},
    {MUTANT_COMPARISON, "gtu", "geu"}, {MUTANT_COMPARISON, "gtu", "gt"},  {MUTANT_COMPARISON, "geu", "gtu"},
    {MUTANT_COMPARISON, "geu", "ge"},  {MUTANT_COMPARISON, "nan", "num"}, {MUTANT_COMPARISON, "num", "nan"},
    {MUTANT_ROUNDING, "rn", "rz"},     {MUTANT_ROUNDING, "rz", "rn"},     {MUTANT_ROUNDING, "rm", "rp"},
    {MUTANT_ROUNDING, "rp", "rm"},     {MUTANT_ROUNDING, "rni", "rzi"},   {MUTANT_ROUNDING, "rzi", "rni"},
    {MUTANT_ROUNDING, "rmi", "rpi"},   {MUTANT_ROUNDING, "rpi", "rmi"},   {MUTANT_ROUNDING, "rna", "rn"},
    {MUTANT_TYPE, "u8", "s8"},         {MUTANT_TYPE, "s8", "u8"},         {MUTANT_TYPE, "u16", "s16"},
    {MUTANT_TYPE, "s16", "u16"},       {MUTANT_TYPE, "u32", "s32"},       {MUTANT_TYPE, "s32", "u32"},
    {MUTANT_TYPE, "f16", "bf16"},      {MUTANT_TYPE, "bf16", "f16"},      {MUTANT_TYPE, "f16x2", "bf16x2"},
    {MUTANT_TYPE, "bf16x2", "f16x2"},  {MUTANT_TYPE, "e4m3x2", "e5m2x2"}, {MUTANT_TYPE, "e5m2x2", "e4m3x2"},
    {MUTANT_SHIFT, "shl", "shr"},      {MUTANT_SHIFT, "shr", "shl"},      {MUTANT_ARITHMETIC, "add", "sub"},
    {MUTANT_ARITHMETIC, "sub", "add"}, {MUTANT_EXTREME, "min", "max"},    {MUTANT_EXTREME, "max", "min"},
    {MUTANT_LOGIC, "and", "or"},       {MUTANT_LOGIC, "or", "and"},       {MUTANT_LOGIC, "xor", "or"},
};

/* Registers are remembered by their prefix: %r7 is number 7 of "r". */
enum { PREFIXES = 8, RECENT = 16 };
typedef struct registers {
    char prefix[8];
    int recent[RECENT], count;
} registers;

typedef struct finder {
    const char *ptx;
    uint64_t random;
    int line, count, room;
    bool failed;
    mutant *list;
    registers seen[PREFIXES];
} finder;

static void add(finder *f, mutant_class kind, const char *at, size_t length, const char *with)
{
    if (f->count == f->room && !f->failed) {
        int room = 2 * f->room + 64;
        mutant *list = realloc(f->list, (size_t)room * sizeof *list);
        f->failed = !list;
        if (list)
            f->list = list, f->room = room;
    }
    if (f->failed)
        return;
    mutant *m = &f->list[f->count++];
    *m = (mutant){.kind = kind, .line = f->line, .at = (size_t)(at - f->ptx), .length = length};
    snprintf(m->with, sizeof m->with, "%s", with);
}

static bool is_word(const char *at, size_t length, const char *word)
{
    return strlen(word) == length && strncmp(at, word, length) == 0;
}

/* ---- Opcodes ---- */

/* A load or a store that moves as many bits as the register has is the same for both types. */
static bool extends(const char *opcode, const char *word, size_t length, const char *operands)
{
    if (strncmp(opcode, "st.", 3) == 0)
        return false;
    if (strncmp(opcode, "ld.", 3) != 0)
        return true;
    return is_word(word, length, "u8") || is_word(word, length, "s8") ||
           (word[1] == '1' && strstr(operands, "%h") != operands);
}

static void mutate_opcode(finder *f, const char *opcode, const char *end)
{
    for (const char *word = opcode; word < end;) {
        size_t length = strcspn(word, ". \t;");
        for (int i = 0; i < LENGTH(swaps); i++)
            if (is_word(word, length, swaps[i].from) &&
                (swaps[i].kind != MUTANT_TYPE || extends(opcode, word, length, end + 1)))
                add(f, swaps[i].kind, word, length, swaps[i].to);
        word += length + 1;
    }
}

/* ---- Registers ---- */

/* The length of "%r12" at the text, 0 for anything else, such as %tid.x; the length of "%r" in *letters. */
static size_t register_length(const char *at, size_t *letters)
{
    size_t n = 1;
    if (*at != '%')
        return 0;
    while (islower((unsigned char)at[n]))
        n++;
    *letters = n;
    size_t digits = strspn(at + n, "0123456789");
    return digits > 0 && n > 1 && n < sizeof((registers *)0)->prefix && at[n + digits] != '.' ? n + digits
                                                                                              : 0;
}

static registers *registers_of(finder *f, const char *at, size_t letters)
{
    for (int i = 0; i < PREFIXES; i++) {
        registers *r = &f->seen[i];
        if (r->count == 0)
            snprintf(r->prefix, sizeof r->prefix, "%.*s", (int)letters, at);
        if (is_word(at, letters, r->prefix))
            return r;
    }
    return NULL;
}

static void remember(registers *r, int number)
{
    r->recent[r->count++ % RECENT] = number;
}

/* Another register of the same kind, among those written a short while ago. */
static void mutate_register(finder *f, const char *at, size_t length, size_t letters)
{
    registers *r = registers_of(f, at, letters);
    int known = r && r->count < RECENT ? r->count : RECENT, self = atoi(at + letters);
    if (!r || r->count == 0)
        return;
    int start = (int)(random_next(&f->random) % (uint64_t)known);
    for (int i = 0; i < known; i++) {
        int other = r->recent[(start + i) % known];
        char with[32];
        if (other == self)
            continue;
        snprintf(with, sizeof with, "%s%d", r->prefix, other);
        add(f, MUTANT_REGISTER, at, length, with);
        return;
    }
}

/* ---- Constants ---- */

static void add_number(finder *f, mutant_class kind, const char *at, size_t length, const char *format,
                       uint64_t value)
{
    char with[32];
    snprintf(with, sizeof with, format, (unsigned long long)value);
    add(f, kind, at, length, with);
}

static void mutate_integer(finder *f, mutant_class kind, const char *at, size_t length, const char *format,
                           uint64_t value, int bits)
{
    add_number(f, kind, at, length, format, value + 1);
    if (value > 0)
        add_number(f, kind, at, length, format, value - 1);
    if (kind != MUTANT_SHIFT)
        add_number(f, kind, at, length, format,
                   value ^ UINT64_C(1) << random_next(&f->random) % (uint64_t)bits);
}

/* The largest numbers of f32, bf16 and f16: an emitter has them by name, so its mistakes are another's, or the infinity. */
static bool mutate_largest(finder *f, mutant_class kind, const char *at, size_t length, uint64_t value)
{
    static const uint32_t largest[] = {0x7F7FFFFF, 0x7F7F0000, 0x477FE000};
    const uint64_t sign = value & 0x80000000;
    for (int i = 0; i < LENGTH(largest); i++)
        if ((value ^ sign) == largest[i]) {
            add_number(f, kind, at, length, "0f%08llX", sign | 0x7F800000);
            add_number(f, kind, at, length, "0f%08llX", sign | largest[(i + 1) % LENGTH(largest)]);
            add_number(f, kind, at, length, "0f%08llX", value ^ 0x80000000);
            return true;
        }
    return false;
}

/* The mistakes of a float are in the digits that it has: one more or less in its last digit that is not 0, or one bit
 * from there up. Less than that would be rounded away behind most constants (15 is a clamp before a conversion to an
 * integer). 0 becomes 1. */
static void mutate_float(finder *f, mutant_class kind, const char *at, size_t length, const char *format,
                         int bits)
{
    uint64_t value = strtoull(at + 2, NULL, 16), one = bits == 32 ? 0x3F800000 : UINT64_C(0x3FF0000000000000);
    int last = 0;
    if (bits == 32 && mutate_largest(f, kind, at, length, value))
        return;
    if (value << (65 - bits) == 0) {
        add_number(f, kind, at, length, format, one);
        return;
    }
    while (!(value >> last & 1))
        last++;
    add_number(f, kind, at, length, format, value + (UINT64_C(1) << last));
    add_number(f, kind, at, length, format, value - (UINT64_C(1) << last));
    last += (int)(random_next(&f->random) % (uint64_t)(bits - last));
    add_number(f, kind, at, length, format, value ^ UINT64_C(1) << last);
}

/* The bits that an integer of this size is likely to mean: the next one above its highest is included. */
static int bits_of(uint64_t value)
{
    int bits = 2;
    while (bits < 64 && value >> (bits - 1))
        bits++;
    return bits;
}

static size_t mutate_constant(finder *f, mutant_class kind, const char *at)
{
    size_t length = strspn(at + (*at == '-'), "0123456789abcdefABCDEFxX") + (size_t)(*at == '-');
    bool hex = at[0] == '0' && (at[1] == 'x' || at[1] == 'X'), is_float = at[0] == '0' && at[1] == 'f',
         is_double = at[0] == '0' && at[1] == 'd';
    if (is_float)
        mutate_float(f, kind, at, length, "0f%08llX", 32);
    else if (is_double)
        mutate_float(f, kind, at, length, "0d%016llX", 64);
    else if (hex)
        mutate_integer(f, kind, at, length, "0x%llX", strtoull(at, NULL, 16),
                       bits_of(strtoull(at, NULL, 16)));
    else if (*at != '-')
        mutate_integer(f, kind, at, length, "%llu", strtoull(at, NULL, 10), bits_of(strtoull(at, NULL, 10)));
    else
        mutate_integer(f, kind, at, length, "%lld", (uint64_t)strtoll(at, NULL, 10), 4);
    return length;
}

/* ---- Instructions ---- */

/* Mutates every token of the source operands. */
static void mutate_sources(finder *f, mutant_class constants, const char *at, const char *end)
{
    while (at < end) {
        size_t letters, length = register_length(at, &letters);
        if (length > 0) {
            mutate_register(f, at, length, letters);
            at += length;
        } else if (isdigit((unsigned char)*at) || (*at == '-' && isdigit((unsigned char)at[1]))) {
            at += mutate_constant(f, constants, at);
        } else if (isalpha((unsigned char)*at) || *at == '_' || *at == '$' || *at == '%') {
            at++; /* a name, with the digits in it */
            at += strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$");
        } else {
            at++;
        }
    }
}

/* What the destination writes can be read by mistake from here on. */
static void remember_destination(finder *f, const char *at, const char *end)
{
    while (at < end) {
        size_t letters, length = register_length(at, &letters);
        registers *r = length > 0 ? registers_of(f, at, letters) : NULL;
        if (r)
            remember(r, atoi(at + letters));
        at += length > 0 ? length : 1;
    }
}

static const char *destination_end(const char *at, const char *end)
{
    const char *brace = *at == '{' ? memchr(at, '}', (size_t)(end - at)) : NULL;
    const char *from = brace ? brace : at, *comma = memchr(from, ',', (size_t)(end - from));
    return comma ? comma : end;
}

static bool writes_register(const char *opcode)
{
    static const char *const others[] = {"st.",  "red.", "bra",    "bar",  "ret",
                                         "exit", "cp.",  "membar", "fence"};
    for (int i = 0; i < LENGTH(others); i++)
        if (strncmp(opcode, others[i], strlen(others[i])) == 0)
            return false;
    return true;
}

static void mutate_instruction(finder *f, const char *at, const char *end)
{
    const char *start = at;
    if (*at == '@') {
        bool negated = at[1] == '!';
        add(f, MUTANT_PREDICATE, at + 1, negated, negated ? "" : "!");
        at += strcspn(at, " ") + 1;
    }
    const char *opcode = at, *operands = at + strcspn(at, " \t;");
    bool shifts = strncmp(opcode, "sh", 2) == 0 && strncmp(opcode, "shfl", 4) != 0;
    mutate_opcode(f, opcode, operands);
    operands += *operands == ' ';
    const char *sources = writes_register(opcode) ? destination_end(operands, end) : operands;
    mutate_sources(f, shifts ? MUTANT_SHIFT : MUTANT_CONSTANT, sources, end);
    remember_destination(f, operands, sources);
    add(f, MUTANT_DELETION, start, (size_t)(end - start) + 1, "");
}

mutant *mutants_of(const char *ptx, uint64_t seed, int *count)
{
    finder f = {.ptx = ptx, .random = seed, .line = 1};
    for (const char *at = ptx; *at; f.line++) {
        size_t length = strcspn(at, "\n");
        if (length > 2 && at[0] == '\t' && at[1] != '.' && at[1] != '/' && at[length - 1] == ';')
            mutate_instruction(&f, at + 1, at + length - 1);
        at += length + (at[length] == '\n');
    }
    if (f.failed)
        free(f.list), f.list = NULL;
    *count = f.failed ? 0 : f.count;
    return f.list;
}

char *mutant_text(const char *ptx, const mutant *m)
{
    size_t length = strlen(ptx);
    char *text = malloc(length + sizeof m->with);
    if (text)
        sprintf(text, "%.*s%s%s", (int)m->at, ptx, m->with, ptx + m->at + m->length);
    return text;
}
