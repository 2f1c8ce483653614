/* Tables in shared memory of which each thread reads a copy of its own (kernels/formats/byte_table.c): another copy holds the same.
 *
 * Entry e is at base + 256 e, and has 8 vectors of 16 bytes. Thread t writes vector after vector of its entries,
 *     own = base + 256 t + 16 (t % 8),  own ^ 16, own ^ 32, ... own ^ 112,
 * the same registers to each, so that all vectors of an entry are equal; and the halves or quarters of a vector are equal registers. */
#include "mutate/change.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PITCH = 256, RUN = 128, VECTOR = 16, ADDRESS_MAX = 40, STORE_MAX = 200 };

/* `opcode d, a, constant` as the only definition of d. */
static bool is_defined_by(const char *ptx, const char *reg, const char *opcode, uint64_t constant,
                          instruction *def)
{
    uint64_t value;
    return text_definition(ptx, reg, def) && text_is_opcode(def, opcode) &&
           text_constant(def->operand[2], &value) && value == constant;
}

static bool is_thread_number(const char *ptx, const char *reg)
{
    instruction def;
    return text_definition(ptx, reg, &def) && text_is_opcode(&def, "mov.u32") &&
           strcmp(def.operand[1], "%tid.x") == 0;
}

/* Whether the instruction makes `own` for a table at this base. */
static bool is_own(const char *ptx, const instruction *i, const char *base)
{
    instruction place, entry;
    return text_is_opcode(i, "mad.lo.u32") && strcmp(i->operand[2], "16") == 0 &&
           is_defined_by(ptx, i->operand[1], "and.b32", RUN / VECTOR - 1, &place) &&
           is_thread_number(ptx, place.operand[1]) &&
           is_defined_by(ptx, i->operand[3], "mad.lo.u32", PITCH, &entry) &&
           strcmp(entry.operand[1], place.operand[1]) == 0 && strcmp(entry.operand[3], base) == 0;
}

/* The name of `own ^ bits`; false where there is none. */
static bool find_other(const char *ptx, const char *own, unsigned bits, char *name)
{
    for (const char *line = ptx; line; line = text_next_line(line)) {
        instruction i;
        uint64_t value;
        if (text_parse(line, &i) && text_is_opcode(&i, "xor.b32") && strcmp(i.operand[1], own) == 0 &&
            text_constant(i.operand[2], &value) && value == bits) {
            snprintf(name, TEXT_MAX, "%s", i.operand[0]);
            return true;
        }
    }
    return false;
}

/* Whether what a store to `[own...` writes is written to the other vectors of the run as well. */
static bool is_repeated(const char *ptx, const char *own, const char *store)
{
    const size_t length = strcspn(store, "\n");
    const char *rest = strstr(store, own) + strlen(own);
    for (unsigned bits = VECTOR; bits < RUN; bits += VECTOR) {
        char name[TEXT_MAX], line[STORE_MAX];
        const int written = find_other(ptx, own, bits, name)
                                ? snprintf(line, sizeof line, "\tst.shared.v4.f32 [%s%.*s\n", name,
                                           (int)(store + length - rest), rest)
                                : -1;
        if (written < 0 || (size_t)written >= sizeof line || !strstr(ptx, line))
            return false;
    }
    return true;
}

/* Whether the vector that a store writes has so many equal parts. */
static bool has_equal_parts(const program *p, const char *store, unsigned bytes)
{
    char names[4][TEXT_MAX];
    const char *list = strchr(store, '{');
    if (!list ||
        sscanf(list, "{%63[^,], %63[^,], %63[^,], %63[^}]}", names[0], names[1], names[2], names[3]) != 4)
        return false;
    for (unsigned k = bytes / 4; k < 4; k++)
        if (!registers_are_copies(p, names[k], names[k % (bytes / 4)], store))
            return false;
    return true;
}

/* Whether all vectors of each entry of the table at this base are equal, and all their parts of so many bytes. */
static bool has_equal_copies(const program *p, const char *base, unsigned bytes)
{
    char own[TEXT_MAX] = "", start[ADDRESS_MAX];
    int stores = 0;
    for (const char *line = p->text; line; line = text_next_line(line)) {
        instruction i;
        if (!*own && text_parse(line, &i) && is_own(p->text, &i, base))
            snprintf(own, sizeof own, "%s", i.operand[0]);
        snprintf(start, sizeof start, "\tst.shared.v4.f32 [%.12s", own);
        const size_t length = strlen(start);
        if (!*own || strncmp(line, start, length) != 0 || (line[length] != ']' && line[length] != '+'))
            continue;
        if (!is_repeated(p->text, own, line) || !has_equal_parts(p, line, bytes))
            return false;
        stores++;
    }
    return stores > 0;
}

/* The bytes of a copy where the register is the place of a thread's copy, `bytes (tid % (128 / bytes))`; else 0. */
static unsigned bytes_of_copy(const char *ptx, const char *reg)
{
    for (unsigned bytes = 4; bytes <= 8; bytes *= 2) {
        instruction place, number;
        if (is_defined_by(ptx, reg, "mul.lo.u32", bytes, &place))
            return is_defined_by(ptx, place.operand[1], "and.b32", RUN / bytes - 1, &number) &&
                           is_thread_number(ptx, number.operand[1])
                       ? bytes
                       : 0;
    }
    return 0;
}

/* The step that alone reads what a step writes; null where several do. */
static const step *only_reader(const program *p, const step *from)
{
    const step *found = NULL;
    for (const step *s = p->steps; s < p->steps + p->n_steps; s++)
        for (int k = 0; k < s->n_reads; k++)
            if (s->reads[k] == from->writes[0] && s != found) {
                if (found)
                    return NULL;
                found = s;
            }
    return found;
}

/* Whether a step reads so many bytes at an address without an offset. */
static bool loads(const step *s, const char *address, unsigned bytes)
{
    char operand[TEXT_MAX + 2];
    snprintf(operand, sizeof operand, "[%.60s]", address);
    return step_is(s, bytes == 8 ? "ld.shared.v2.f32" : "ld.shared.f32") &&
           strcmp(s->i.operand[1], operand) == 0;
}

/* Whether a selector of prmt takes a byte of the second operand that is 0, where that is below 128: an upper byte, or the sign of any. */
static bool gives_zero(unsigned selector)
{
    return (selector > 4 && selector < 8) || selector >= 12;
}

/* `prmt offset, word, copy, 0x55b4`, `add at, offset, base`, `ld.shared [at]`: byte b of the word is the number of an entry, and the byte
 * of `copy` below it the thread's copy. With 0 for it, the first copy is read. */
bool any_copy_does(const char *ptx, const mutant *m, const instruction *i)
{
    enum { UPPER_ZEROS = 0x5500 };
    change c;
    uint64_t old, now;
    if (m->kind != MUTANT_CONSTANT || !text_is_opcode(i, "prmt.b32") || !text_constant(i->operand[3], &old) ||
        !text_constant(m->with, &now) || old >> 8 != UPPER_ZEROS >> 8 || (old & 15) != 4 ||
        old >> 4 != now >> 4 || !gives_zero((unsigned)now & 15) || (old >> 4 & 15) > 3 ||
        !change_of(ptx, m, &c))
        return false;
    const unsigned bytes = bytes_of_copy(ptx, i->operand[2]);
    const step *sum = bytes && c.p->definitions[c.old->writes[0]] == 1 ? only_reader(c.p, c.old) : NULL;
    const step *load = sum && step_is(sum, "add.u32") && c.p->definitions[sum->writes[0]] == 1 &&
                               strcmp(sum->i.operand[1], i->operand[0]) == 0
                           ? only_reader(c.p, sum)
                           : NULL;
    return load && loads(load, sum->i.operand[0], bytes) && has_equal_copies(c.p, sum->i.operand[2], bytes);
}
