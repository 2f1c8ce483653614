/* From a dequantize kernel's row and settings to the macros of its plain twin. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/twins/twin.h"
#include "kernels/formats/format.h"
#include "kernels/operations.h"
#include "tools/toolkit.h"

enum { OPTIONS_MAX = 32 };

typedef struct option_list {
    char text[OPTIONS_MAX][96];
    const char *at[OPTIONS_MAX];
    int n;
} option_list;

static void add(option_list *list, const char *name, unsigned long long value)
{
    snprintf(list->text[list->n++], sizeof list->text[0], "-D%s=%llu", name, value);
}

static int zero_macro(const kernel_row *row, const kernel_spec *spec)
{
    if (kernel_format(row)->zero_kind == QDNN_ZERO_NONE)
        return 0;
    return spec->stored.zero_packed            ? 4
           : spec->stored.zero == QDNN_DATA_U8 ? 1
           : spec->stored.zero == QDNN_DATA_I8 ? 2
                                               : 3;
}

static void add_number(option_list *list, const minifloat *f)
{
    add(list, "EXPONENT", f ? f->exponent_bits : 0);
    add(list, "FRACTION", f ? f->fraction_bits : 0);
    add(list, "BIAS", f ? (unsigned)f->bias : 0);
    add(list, "NANS", !f || !f->has_nan ? 0 : f == &float_e5m2 ? 2 : 1);
}

static void add_format(option_list *list, const kernel_row *row, const kernel_spec *spec)
{
    const format_facts *f = kernel_format(row);
    add(list, "BITS", f->bits);
    add(list, "CODE", row->format->number ? 0 : (unsigned)spec->stored.code);
    add_number(list, row->format->number);
    add(list, "LAYOUT",
        spec->stored.layout == QDNN_LAYOUT_WORDS_INTERLEAVED ? 1
        : spec->stored.layout == QDNN_LAYOUT_WORDS_ROWS      ? 2
                                                             : 0);
    add(list, "NIBBLE_HIGH", spec->stored.nibble_order == QDNN_NIBBLE_HIGH_FIRST);
    add(list, "GROUPS",
        spec->stored.groups == QDNN_GROUPS_FLAT   ? 1
        : spec->stored.groups == QDNN_GROUPS_ROWS ? 2
                                                  : 3);
    add(list, "GROUP_SIZE", spec->stored.group_size);
    add(list, "SCALE", (unsigned)spec->stored.scale);
    add(list, "GLOBAL", spec->stored.global_scale == 1);
    add(list, "ZERO", (unsigned)zero_macro(row, spec));
    add(list, "MINUS_ONE", (unsigned)spec->stored.zero_minus_one);
    add(list, "WRAPS", (unsigned)(spec->stored.zero_minus_one && spec->stored.zero_wraps));
    add(list, "MINIMUM", f->zero_kind == QDNN_ZERO_MINIMUM);
    add(list, "MATRIX", kernel_is_matrix(row, spec));
}

bool plain_twin_compile(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm,
                        nvrtc_result *result)
{
    option_list list = {.n = 0};
    kernel_spec normal = kernel_spec_normal(row, spec);
    char entry[64];
    kernel_entry_name(row, entry, sizeof entry);
    snprintf(list.text[list.n++], sizeof list.text[0], "--gpu-architecture=compute_%s",
             sm->name + strlen("sm_"));
    snprintf(list.text[list.n++], sizeof list.text[0], "--std=c++17");
    snprintf(list.text[list.n++], sizeof list.text[0], "--fmad=false");
    snprintf(list.text[list.n++], sizeof list.text[0], "-DENTRY=%s", entry);
    add(&list, "DATA", normal.data == QDNN_DATA_F16 ? 1 : normal.data == QDNN_DATA_BF16 ? 2 : 0);
    if (kernel_format(row)->block == QDNN_BLOCK_Q4_K)
        add(&list, "Q4_K", 1);
    else
        add_format(&list, row, &normal);
    for (int i = 0; i < list.n; i++)
        list.at[i] = list.text[i];
    char *source = toolkit_read_file(QDNN_SOURCE_DIR "/bench/twins/plain.cu", NULL);
    bool ok = source && nvrtc_compile(source, NULL, 0, list.at, list.n, result) == QDNN_STATUS_SUCCESS;
    free(source);
    return ok;
}
