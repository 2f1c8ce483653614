/* Names for a row of the registry with some of its settings fixed. The names are stable: users look them
 * up. */
#include "kernels/kernels.h"

#include <stdio.h>
#include <string.h>

/* One scale per row, whatever its length. */
#define ROW_SCALES "groups=rows group_size=1099511627776"

static const kernel_alias aliases[] = {
    {"quant.linear_4bit", "matmul_int4",
     "layout=interleaved code=unsigned groups=none reduction=rows bias=f32", KERNEL_ANY_ROWS,
     "a product with 4-bit weights that are their codes, and a bias"},
    {"quant.linear_4bit.affine_grouped", "matmul_int4_zp",
     "layout=interleaved groups=columns zero=u32 reduction=rows bias=f32", KERNEL_ANY_ROWS,
     "a product with 4-bit weights that have a scale and a zero point per group and column, and a bias"},
    {"quant.int4.matvec.scaled", "matmul_int4", "layout=words code=twos " ROW_SCALES, KERNEL_ONE_ROW,
     "a vector times i4 weights with one scale per row"},
    {"quant.int4.batched_matvec.scaled", "matmul_int4", "layout=words code=twos " ROW_SCALES " tile_rows=8",
     KERNEL_SEVERAL_ROWS, "vectors times i4 weights with one scale per row"},
};

const kernel_alias *kernel_alias_at(int index)
{
    const int count = sizeof aliases / sizeof aliases[0];
    return index >= 0 && index < count ? &aliases[index] : NULL;
}

const kernel_alias *kernel_find_alias(const char *name)
{
    for (int i = 0; kernel_alias_at(i); i++)
        if (strcmp(aliases[i].name, name) == 0)
            return &aliases[i];
    return NULL;
}

bool kernel_spec_set_words(const kernel_row *row, kernel_spec *spec, const char *words, char *error,
                           size_t error_size)
{
    while (*words) {
        char key[32], value[32];
        int length = 0;
        if (sscanf(words, "%31[^= ]=%31[^ ]%n", key, value, &length) != 2) {
            snprintf(error, error_size, "'%s' is not of the form key=value", words);
            return false;
        }
        if (!kernel_spec_set(row, spec, key, value, error, error_size))
            return false;
        words += length;
        words += strspn(words, " ");
    }
    return true;
}

const kernel_row *kernel_open(const char *name, kernel_spec *spec)
{
    const kernel_alias *alias = kernel_find_alias(name);
    const kernel_row *row = kernel_find(alias ? alias->kernel : name);
    char error[256];
    *spec = kernel_spec_default();
    if (alias && (!row || !kernel_spec_set_words(row, spec, alias->settings, error, sizeof error)))
        return NULL; /* a defect of the table; tests emit every alias */
    return row;
}

/* Whether the specification has all settings of the alias. */
static bool fits(const kernel_alias *alias, const kernel_row *row, const kernel_spec *normal)
{
    kernel_spec with = *normal;
    char error[256];
    if (strcmp(alias->kernel, row->name) != 0 ||
        !kernel_spec_set_words(row, &with, alias->settings, error, sizeof error))
        return false;
    with.product.tile_rows = normal->product.tile_rows;
    with = kernel_spec_normal(row, &with);
    return kernel_spec_equal(&with, normal);
}

const char *kernel_operation_name(const kernel_row *row, const kernel_spec *spec, uint64_t m)
{
    const kernel_spec normal = kernel_spec_normal(row, spec);
    for (int i = 0; kernel_alias_at(i); i++)
        if ((aliases[i].rows == KERNEL_ANY_ROWS || (aliases[i].rows == KERNEL_ONE_ROW) == (m == 1)) &&
            fits(&aliases[i], row, &normal))
            return aliases[i].name;
    return row->operation_name;
}

/* The value that the words give a key, up to the next space; null: none. */
static const char *value_in(const char *words, const char *key)
{
    const size_t length = strlen(key);
    for (const char *at = words; *at; at += strcspn(at, " "), at += *at == ' ')
        if (strncmp(at, key, length) == 0 && at[length] == '=')
            return at + length + 1;
    return NULL;
}

bool kernel_name_set(const char *name, const kernel_row *row, kernel_spec *spec, const char *key,
                     const char *value, char *error, size_t error_size)
{
    const kernel_alias *alias = kernel_find_alias(name);
    const char *fixed = alias && strcmp(key, "tile_rows") ? value_in(alias->settings, key) : NULL;
    const int length = fixed ? (int)strcspn(fixed, " ") : 0;
    if (fixed && (strncmp(fixed, value, (size_t)length) != 0 || value[length] != 0)) {
        snprintf(error, error_size, "%s=%s: %s fixes %s=%.*s; fix: leave it out, or name the kernel %s", key,
                 value, name, key, length, fixed, row->name);
        return false;
    }
    if (kernel_takes(row, key))
        return kernel_spec_set(row, spec, key, value, error, error_size);
    const kernel_row named = {name, row->operation_name, row->summary, row->operation, row->format};
    return kernel_spec_set(&named, spec, key, value, error, error_size);
}
