/* The kernel registry: every kernel that qdnn can emit, one row each, and what each may be specialised to.
 *
 * Tests, the ptxgen tool, the benchmarks and the driver all iterate over kernel_rows. Adding a kernel is
 * adding a row to registry.def and writing its emitter. */
#ifndef QDNN_KERNELS_H
#define QDNN_KERNELS_H

#include <stdbool.h>

#include <qdnn/types.h>

#include "ptxgen/ptx.h"

/* Everything that a kernel's text is specialised to. A kernel reads the fields that its row names; the others
 * stay at their defaults. */
typedef struct kernel_spec {
    qdnnDataType_t data;  /* of the plain tensor: F32, F16, BF16 */
    qdnnDataType_t scale; /* F32, F16, BF16 */
    qdnnDataType_t zero;  /* U8, F32, F16, BF16 */
    uint64_t group_size;  /* consecutive elements that share a scale; at least 1 */
    uint64_t channels;    /* element i is in group (i / group_size) mod channels; 0: in i / group_size */
    qdnnNibbleOrder_t nibble_order;
    qdnnRounding_t rounding;
    qdnnDivision_t division;
    float floor; /* the least that a range counts for when its scale is computed */
} kernel_spec;

/* The fields of kernel_spec by name, as bits of kernel_row.keys. spec.c has the table of them. */
typedef enum {
    KERNEL_KEY_DATA = 1 << 0,
    KERNEL_KEY_SCALE = 1 << 1,
    KERNEL_KEY_ZERO = 1 << 2,
    KERNEL_KEY_GROUP_SIZE = 1 << 3,
    KERNEL_KEY_NIBBLE_ORDER = 1 << 4,
    KERNEL_KEY_ROUNDING = 1 << 5,
    KERNEL_KEY_DIVISION = 1 << 6,
    KERNEL_KEY_FLOOR = 1 << 7,
    KERNEL_KEY_CHANNELS = 1 << 8
} kernel_key;

/* How a kernel is launched: block threads, and as many blocks as it takes to cover n elements. */
typedef struct kernel_geometry {
    uint32_t block;
    uint64_t elements_per_block; /* the grid is ceil(n / elements_per_block) blocks; none for n = 0 */
    uint64_t
        blocks; /* not 0: the kernel loops over its work, any grid gives the same bytes, this one is best */
    uint32_t
        shared_dynamic; /* bytes of shared memory that the launch has to give, on top of the kernel's own */
} kernel_geometry;

/* What a kernel does. */
typedef enum { KERNEL_SCALE, KERNEL_QUANTIZE, KERNEL_DEQUANTIZE, KERNEL_RANGE } kernel_operation;

typedef struct kernel_row kernel_row;
struct kernel_row {
    const char *name;           /* "quantize_nf4" */
    const char *operation_name; /* stable, users look it up: "quant.nf4.quantize"; null: part of another */
    const char *summary;        /* one line for people */
    kernel_operation operation;
    qdnnFormat_t format;
    unsigned keys; /* which settings it takes: kernel_key bits */
    kernel_geometry (*geometry)(const kernel_row *row, const kernel_spec *spec);
    void (*emit)(ptx_builder *b, const kernel_row *row, const kernel_spec *spec);
};

extern const kernel_row kernel_rows[];
extern const int kernel_row_count;

/* The row of that name, its own or that of its operation; or null. */
const kernel_row *kernel_find(const char *name);

/* The row that does this for a format, or null. */
const kernel_row *kernel_find_operation(kernel_operation operation, qdnnFormat_t format);

/* The defaults: f32 data, f32 scales, u8 zeros, groups of 128, no channels, low nibble first, ties to even,
 * division, floor 1e-12. */
kernel_spec kernel_spec_default(void);

/* Sets one field from text ("data", "f16"). False, with what would be right in `error`, when the row does not
 * take it. */
bool kernel_spec_set(const kernel_row *row, kernel_spec *spec, const char *key, const char *value,
                     char *error, size_t error_size);

/* Whether the row takes a setting of that name. */
bool kernel_takes(const kernel_row *row, const char *key);

/* Whether every field that the row reads has a value it can take; else the reason in `error`. */
bool kernel_spec_check(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size);

/* The specification with every field that the row does not read at its default, and with groups of 1 where
 * one channel is the whole tensor: specifications of the same kernel become equal. */
kernel_spec kernel_spec_normal(const kernel_row *row, const kernel_spec *spec);

/* "data=f16 scale=f32 group_size=64 ...": the settings that the row takes, in the order of the table of keys.
 * Two specifications of one row with the same text are the same kernel. */
void kernel_spec_text(const kernel_row *row, const kernel_spec *spec, char *text, size_t size);

/* A file-name-safe short form: "f16_f32_g64", with what differs from the defaults behind it. */
void kernel_spec_label(const kernel_row *row, const kernel_spec *spec, char *text, size_t size);

/* The table of keys, for tools that list them: name, the values allowed in words, the default as text. Null
 * past the end. */
typedef struct kernel_key_info {
    kernel_key key;
    const char *name, *values, *preset;
} kernel_key_info;
const kernel_key_info *kernel_key_at(int index);

/* An emitted kernel. */
typedef struct kernel_text {
    char *ptx; /* free with free() */
    kernel_geometry geometry;
    ptx_info info; /* its parameters and what else a launch needs to know */
} kernel_text;

/* Emits the kernel for an SM; options may be null. False, with the reason in *error, when it cannot be;
 * out->ptx is null then. */
bool kernel_emit(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm, const ptx_options *options,
                 kernel_text *out, ptx_error *error);

/* The name of its .entry: "qdnn_quantize_nf4". */
void kernel_entry_name(const kernel_row *row, char *text, size_t size);

/* ---- Launching (passes.c) ---- */

/* How many scales n elements have; none for n = 0. */
uint64_t kernel_groups(const kernel_spec *spec, uint64_t n);

/* Blocks along x for n elements; 0: there is nothing to launch. A GPU takes fewer than 2^31. */
uint64_t kernel_grid(const kernel_row *row, const kernel_spec *spec, uint64_t n);

/* One launch of several that make up an operation: kernel_grid(row, &spec, n) blocks, n the last parameter.
 */
typedef struct kernel_pass {
    const kernel_row *row;
    kernel_spec spec;
    uint64_t n;
} kernel_pass;

/* How the scales of n elements are computed: one or two passes (none for n = 0), the return value. One pass
 * takes x, scale, zero (where the format has it) and n. Of two, the first is a range kernel: it takes x, the
 * workspace and n; the second is a scale kernel that takes the workspace in the place of x. *workspace is how
 * many f32 that holds (4-byte aligned, 16 is faster), 0 for one pass. */
int kernel_scale_passes(const kernel_row *row, const kernel_spec *spec, uint64_t n, kernel_pass passes[2],
                        uint64_t *workspace);

/* How many f32 a range kernel writes. They are ranges of parts of the groups; f32 number k belongs to group
 * (k / list) mod channels (channels 0: to k / list), list being kernel_range_list. */
uint64_t kernel_range_count(const kernel_row *row, const kernel_spec *spec, uint64_t n);
uint64_t kernel_range_list(const kernel_row *row, const kernel_spec *spec);

#endif
