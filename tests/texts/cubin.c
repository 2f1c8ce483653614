#include "texts/cubin.h"

#include "tools/toolkit.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The parts of an ELF file of 64 bits that are needed to find its sections. */
typedef struct section {
    const char *name;
    uint32_t type;
    const char *data;
    uint64_t bytes;
} section;

enum { ELF_HEADER = 64, SECTION_HEADER = 64, NO_BITS = 8 };

static uint64_t number_at(const char *at, size_t bytes)
{
    uint64_t value = 0;
    memcpy(&value, at, bytes); /* little-endian, as is the file */
    return value;
}

static int sections_of(const toolkit_result *cubin)
{
    return cubin->bytes < ELF_HEADER || memcmp(cubin->data, "\177ELF\2\1", 6) != 0
               ? 0
               : (int)number_at(cubin->data + 60, 2);
}

static section raw_section(const toolkit_result *cubin, int index)
{
    const uint64_t at = number_at(cubin->data + 40, 8) + (uint64_t)index * SECTION_HEADER;
    if (at + SECTION_HEADER > cubin->bytes)
        return (section){0};
    const char *header = cubin->data + at;
    const uint64_t offset = number_at(header + 24, 8), bytes = number_at(header + 32, 8);
    section s = {.type = (uint32_t)number_at(header + 4, 4), .bytes = bytes};
    const bool is_inside = offset <= cubin->bytes && bytes <= cubin->bytes - offset;
    s.data = s.type != NO_BITS && is_inside ? cubin->data + offset : NULL;
    return s;
}

static section section_at(const toolkit_result *cubin, int index)
{
    const section names = raw_section(cubin, (int)number_at(cubin->data + 62, 2));
    section s = raw_section(cubin, index);
    const uint64_t at = number_at(cubin->data + 40, 8) + (uint64_t)index * SECTION_HEADER;
    const uint64_t name = at + 4 <= cubin->bytes ? number_at(cubin->data + at, 4) : 0;
    s.name = names.data && name < names.bytes ? names.data + name : "";
    return s;
}

/* Instructions, constants, and shared memory; .nv.info has the parameters, registers and the like. Names and notes say
 * what the source was. */
static bool counts(const section *s)
{
    static const char *const parts[] = {".text.", ".nv.constant", ".nv.shared", ".nv.global", ".nv.info."};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strncmp(s->name, parts[i], strlen(parts[i])) == 0)
            return true;
    return false;
}

static bool has_section(const toolkit_result *cubin, const section *wanted)
{
    for (int i = 0; i < sections_of(cubin); i++) {
        const section s = section_at(cubin, i);
        if (strcmp(s.name, wanted->name) == 0)
            return s.type == wanted->type && s.bytes == wanted->bytes && !s.data == !wanted->data &&
                   (!s.data || memcmp(s.data, wanted->data, s.bytes) == 0);
    }
    return false;
}

/* Whether all that counts in one is in the other. */
static bool is_within(const toolkit_result *one, const toolkit_result *other)
{
    int n = 0;
    for (int i = 0; i < sections_of(one); i++) {
        const section s = section_at(one, i);
        if (!counts(&s))
            continue;
        n++;
        if (!has_section(other, &s))
            return false;
    }
    return n > 0;
}

static bool assemble(const char *ptxas, const char *folder, const char *sm, const char *ptx,
                     toolkit_result *cubin)
{
    char path[600];
    snprintf(path, sizeof path, "%s/text.ptx", folder); /* the same name for both: the cubin may name it */
    FILE *file = fopen(path, "w");
    *cubin = (toolkit_result){0};
    if (!file)
        return false;
    const bool ok = fputs(ptx, file) >= 0;
    return fclose(file) == 0 && ok && toolkit_ptxas(ptxas, sm, path, cubin);
}

cubin_verdict cubin_compare(const char *ptxas, const char *folder, const char *sm, const char *one,
                            const char *other)
{
    toolkit_result first, second = {0};
    cubin_verdict verdict = CUBIN_UNKNOWN;
    if (assemble(ptxas, folder, sm, one, &first) && assemble(ptxas, folder, sm, other, &second))
        verdict = is_within(&first, &second) && is_within(&second, &first) ? CUBIN_SAME : CUBIN_DIFFERS;
    toolkit_free(&first);
    toolkit_free(&second);
    return verdict;
}
