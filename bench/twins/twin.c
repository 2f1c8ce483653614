/* From a kernel's settings to the macros of its twin. */
#include "bench/twins/twin.h"

#include "tools/toolkit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS_MAX = 16 };

/* NVRTC's options, each with room of its own. */
typedef struct option_list {
    char text[OPTIONS_MAX][96];
    const char *at[OPTIONS_MAX];
    int n;
} option_list;

#define ADD(list, ...) snprintf((list)->text[(list)->n++], sizeof(list)->text[0], __VA_ARGS__)

/* The formats that have a twin, and their macro. */
static const struct {
    const char *name, *macro;
} formats[] = {{"int4", "INT4"}, {"int4_zp", "INT4_ZP"}, {"nf4", "NF4"}};

static const char *macro_of(const kernel_row *row)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(formats[i].name, kernel_format(row)->name) == 0)
            return formats[i].macro;
    return NULL;
}

bool twin_exists(const kernel_row *row)
{
    kernel_operation o = kernel_operation_of(row);
    bool has_source = o == KERNEL_SCALE || o == KERNEL_QUANTIZE || o == KERNEL_DEQUANTIZE;
    return has_source && kernel_format(row) && macro_of(row);
}

static const char *scale_name(qdnnScaleType_t type)
{
    return type == QDNN_SCALE_F16 ? "F16" : type == QDNN_SCALE_BF16 ? "BF16" : "F32";
}

static const char *type_name(qdnnDataType_t type)
{
    switch (type) {
    case QDNN_DATA_F16:
        return "F16";
    case QDNN_DATA_BF16:
        return "BF16";
    case QDNN_DATA_U8:
        return "U8";
    default:
        return "F32";
    }
}

bool twin_open(twin *t, const kernel_row *row)
{
    char path[1024];
    *t = (twin){0};
    /* "quantize_nf4": the operation is the first word */
    snprintf(path, sizeof path, "%s/bench/twins/%.*s.cu", QDNN_SOURCE_DIR, (int)strcspn(row->name, "_"),
             row->name);
    t->source = toolkit_read_file(path, NULL);
    t->header = toolkit_read_file(QDNN_SOURCE_DIR "/bench/twins/twin.cuh", NULL);
    if (t->source && t->header && macro_of(row))
        return true;
    twin_close(t);
    return false;
}

void twin_close(twin *t)
{
    free(t->source);
    free(t->header);
    *t = (twin){0};
}

/* How many threads share a group, from what a block covers. */
static unsigned long long lanes(const kernel_row *row, const kernel_spec *spec)
{
    if (spec->stored.channels)
        return 256; /* a whole block */
    kernel_geometry g = kernel_geometry_of(row, spec);
    unsigned long long groups = g.elements_per_block / spec->stored.group_size;
    return groups && groups <= g.block ? g.block / groups : 1;
}

static void add_options(option_list *list, const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm)
{
    uint32_t floor_bits;
    memcpy(&floor_bits, &spec->quantize.floor, sizeof floor_bits);
    char entry[64];
    kernel_entry_name(row, entry, sizeof entry);
    ADD(list, "--gpu-architecture=compute_%s", sm->name + strlen("sm_"));
    ADD(list, "--std=c++17");
    ADD(list, "--fmad=false"); /* a product and a sum are two roundings */
    ADD(list, "-DENTRY=%s", entry);
    ADD(list, "-DFORMAT_%s", macro_of(row));
    ADD(list, "-DDATA=%s", type_name(spec->data));
    ADD(list, "-DSCALE=%s", scale_name(spec->stored.scale));
    ADD(list, "-DZERO=%s", type_name(spec->stored.zero));
    ADD(list, "-DGROUP_SIZE=%lluull", (unsigned long long)spec->stored.group_size);
    ADD(list, "-DCHANNELS=%lluull", (unsigned long long)spec->stored.channels);
    ADD(list, "-DLANES=%llu", lanes(row, spec));
    ADD(list, "-DNIBBLE_HIGH=%d", spec->stored.nibble_order == QDNN_NIBBLE_HIGH_FIRST);
    ADD(list, "-DTIES_AWAY=%d", spec->quantize.rounding == QDNN_ROUND_TIES_AWAY);
    ADD(list, "-DRECIPROCAL=%d", spec->quantize.division == QDNN_DIVIDE_RECIPROCAL);
    ADD(list, "-DFLOOR_BITS=0x%08X", (unsigned)floor_bits);
    for (int i = 0; i < list->n; i++)
        list->at[i] = list->text[i];
}

bool twin_compile(const twin *t, const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm,
                  nvrtc_result *result)
{
    option_list list = {.n = 0};
    nvrtc_header header = {"twin.cuh", t->header};
    kernel_spec normal = kernel_spec_normal(row, spec);
    add_options(&list, row, &normal, sm);
    return nvrtc_compile(t->source, &header, 1, list.at, list.n, result) == QDNN_STATUS_SUCCESS;
}
