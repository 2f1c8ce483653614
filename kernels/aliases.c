/* Names for a row of the registry with some of its settings fixed. The names are stable: users look them
 * up. */
#include "kernels/kernels.h"

#include <stdio.h>
#include <string.h>

/* One scale per row, whatever its length. */
#define ROW_SCALES "groups=rows group_size=1099511627776"

static const kernel_alias aliases[] = {
    {"quant.linear_4bit", "matmul_int4",
     "layout=interleaved code=unsigned groups=none reduction=rows bias=f32"},
    {"quant.linear_4bit.affine_grouped", "matmul_int4_zp",
     "layout=interleaved groups=columns zero=u32 reduction=rows bias=f32"},
    {"quant.int4.matvec.scaled", "matmul_int4", "layout=words code=twos " ROW_SCALES},
    {"quant.int4.batched_matvec.scaled", "matmul_int4", "layout=words code=twos " ROW_SCALES " tile_rows=8"},
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
