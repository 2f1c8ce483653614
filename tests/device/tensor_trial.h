/* Products of mode tensor on ptxvm against host_ref: every format, orientation and kind of groups (tensor_cases) as every
 * family of SMs; S as f32, bit for bit. */
#ifndef QDNN_TEST_FORMATS_TENSOR_TRIAL_H
#define QDNN_TEST_FORMATS_TENSOR_TRIAL_H

#include "formats/kernel_data.h"
#include "formats/ref_spec.h"
#include "kernels/operations.h"
#include "device/machine.h"

typedef struct tensor_case {
    const char *name, *format;
    bool k_in_columns; /* w is [N, K] */
    const char *settings[12];
} tensor_case;

enum { TENSOR_FP8_CASES = 4, TENSOR_FAMILIES = 6 };
extern const tensor_case tensor_cases[];
extern const int tensor_n_cases;
extern const tensor_case tensor_fp8_cases[TENSOR_FP8_CASES]; /* x in FP8 as well */
extern const struct tensor_family {
    const char *name;
    int sm;
    qdnnDataType_t data;
} tensor_families[TENSOR_FAMILIES];

/* Each case with each family. */
int tensor_case_count(void);
void tensor_case_name(int index, char *text, size_t size);
machine *tensor_vm(int index); /* with every check */

/* ---- One shape ---- */

#define TENSOR_ONLY(operand) (UINT64_C(1) << QDNN_OPERAND_##operand)
enum { TENSOR_GARBAGE = 0xA5 }; /* what memory holds before a kernel writes it */

typedef struct tensor_shape {
    int64_t m, n, k;
    size_t shift;
    uint64_t tile_rows, split; /* split: 0 counts as 1; what a tile does not take is halved */
    data_kind kind;
    bool few_blocks;
    int64_t gap;
    int any_codes;
    data_kind weights;
    uint64_t only;
} tensor_shape;

/* Checks the product of one shape, launched as the library does. */
void tensor_run_shape(machine *vm, const tensor_case *c, int family, kernel_product product, tensor_shape s,
                      uint32_t seed);

/* The same on an SM that need not be one of those. */
void tensor_run_on(machine *vm, const tensor_case *c, const struct tensor_family *on, kernel_product product,
                   tensor_shape s, uint32_t seed);

/* ---- Its parts ---- */

typedef struct tensor_trial {
    const tensor_case *how;
    const kernel_row *row;
    kernel_spec spec;
    ref_quant_spec ref;
    qdnnDataType_t data;
    int64_t m, n, k;
    int64_t gap;       /* elements between rows of x and of y */
    size_t shift;      /* of every pointer to elements, in elements */
    uint64_t only;     /* not 0: of these operands alone (TENSOR_ONLY) */
    data_kind kind;    /* of x */
    int any_codes;     /* rather than those that quantizing gives; of FP8, every so many columns have a NaN */
    data_kind weights; /* special: every scale in E4M3, NaN among those in E8M0 */
    bool few_blocks;   /* one for all tiles of rows, where the kernel loops over them */
    uint8_t *host[QDNN_OPERAND_COUNT];
    int64_t bytes[QDNN_OPERAND_COUNT];
    uint16_t *w16; /* [n][k] */
    float *y;
} tensor_trial;

bool tensor_spec_of(const tensor_case *c, qdnnDataType_t data, kernel_product product, uint64_t tile_rows,
                    kernel_spec *spec, const kernel_row **row);
/* Weights, x, and the y that host_ref has on this SM, for how, row, spec, ref and sizes. */
void tensor_fill(tensor_trial *t, int sm, uint32_t seed);
void tensor_free(tensor_trial *t);
kernel_problem tensor_problem_of(const tensor_trial *t);
/* Codes in the order of tensor cores take the place of those as stored. */
void tensor_prepack(tensor_trial *t);

typedef struct tensor_device {
    machine *vm;
    ptxvm_address base[QDNN_OPERAND_COUNT + 1], at[QDNN_OPERAND_COUNT + 1]; /* the last is the workspace */
    uint64_t *conflicts; /* not null: those of banks are added to it */
} tensor_device;

void tensor_launch(const tensor_device *d, const kernel_step *step);

#endif
