/* The table of what each SM's tensor cores do, and the way from an instruction to its row. */
#include <string.h>

#include "internal.h"

/* A bit for each SM: SM75, SM80 ... */
enum {
#define SM(sm, ...) PLACE##sm,
#define TARGET(...)
#include "ptxvm/sm.def"
    SMS
};
enum {
#define SM(sm, ...) SM##sm = 1 << PLACE##sm,
#define TARGET(...)
#include "ptxvm/sm.def"
    AMPERE = SM80 | SM86 | SM87,
    RTX_BLACKWELL = SM120 | SM121,
    LIKE_100 = SM103 | SM110,
    ALL = (1 << SMS) - 1
};

static int bit_of(int number)
{
    switch (number) {
#define SM(sm, ...)                                                                                          \
    case sm:                                                                                                 \
        return SM##sm;
#define TARGET(...)
#include "ptxvm/sm.def"
    default:
        return 0;
    }
}

#define MEASURED  TENSOR_MEASURED
#define PUBLISHED TENSOR_PUBLISHED
#define ASSUMED   TENSOR_ASSUMED
#define EXACT     TENSOR_EXACT

/* The first row that fits is taken. e_zero: for f32 results it lies below -126 by as many bits as the largest
 * sum may exceed 1 (5 for 4 products below 4, 6 for 8, 7 for 16); for f16 results the same below -14. It
 * decides nothing but how products below 2^-126 (2^-14) are cut when c is 0, and none of the measured sets
 * reaches that far. */
/* clang-format off */
static const tensor_model models[] = {
    /* SMs           input            k   method             L   F   e_zero32 16  short  standing   row */
    {SM75,           INPUT_QUADS,     0, METHOD_QUADS,       4, 24, -132, -20, false, ASSUMED,   "sm_75 f16 m8n8k4"},
    {ALL,            INPUT_QUADS,     0, METHOD_QUADS_FMA,   4,  0,    0,   0, false, PUBLISHED, "sm_80+ f16 m8n8k4 (scalar fma)"},

    {SM75,           INPUT_F16,       0, METHOD_FDPA,        8, 24, -132, -20, false, PUBLISHED, "sm_75 f16"},
    {AMPERE,         INPUT_F16,       8, METHOD_FDPA,        8, 24, -132, -20, false, MEASURED,  "sm_80/86/87 f16 k8"},
    {AMPERE,         INPUT_F16,       0, METHOD_FDPA,        8, 24, -132, -20, false, PUBLISHED, "sm_80/86/87 f16 k16"},
    {AMPERE,         INPUT_BF16,      8, METHOD_FDPA,        8, 24, -132, -20, false, MEASURED,  "sm_80/86/87 bf16 k8"},
    {AMPERE,         INPUT_BF16,      0, METHOD_FDPA,        8, 24, -132, -20, false, PUBLISHED, "sm_80/86/87 bf16 k16"},
    {AMPERE,         INPUT_TF32,      4, METHOD_FDPA,        4, 24, -132, -20, false, MEASURED,  "sm_80/86/87 tf32 k4"},
    {AMPERE,         INPUT_TF32,      0, METHOD_FDPA,        4, 24, -132, -20, false, PUBLISHED, "sm_80/86/87 tf32 k8"},
    {AMPERE,         INPUT_WMMA_TF32, 0, METHOD_FDPA,        4, 24, -132, -20, false, PUBLISHED, "sm_80/86/87 wmma tf32"},

    {SM88,           INPUT_F16,       0, METHOD_FDPA,        8, 24, -132, -20, false, ASSUMED,   "sm_88 f16 (as sm_86)"},
    {SM88,           INPUT_BF16,      0, METHOD_FDPA,        8, 24, -132, -20, false, ASSUMED,   "sm_88 bf16 (as sm_86)"},
    {SM88,           INPUT_TF32,      0, METHOD_FDPA,        4, 24, -132, -20, false, ASSUMED,   "sm_88 tf32 (as sm_86)"},
    {SM88,           INPUT_WMMA_TF32, 0, METHOD_FDPA,        4, 24, -132, -20, false, ASSUMED,   "sm_88 wmma tf32 (as sm_86)"},

    {SM89,           INPUT_F16,       8, METHOD_FDPA,        8, 24, -132, -20, false, MEASURED,  "sm_89 f16 k8"},
    {SM89,           INPUT_F16,       0, METHOD_FDPA,        8, 24, -132, -20, false, PUBLISHED, "sm_89 f16 k16"},
    {SM89,           INPUT_BF16,      8, METHOD_FDPA,        8, 24, -132, -20, false, MEASURED,  "sm_89 bf16 k8"},
    {SM89,           INPUT_BF16,      0, METHOD_FDPA,        8, 24, -132, -20, false, PUBLISHED, "sm_89 bf16 k16"},
    {SM89,           INPUT_TF32,      4, METHOD_FDPA,        4, 24, -132, -20, false, MEASURED,  "sm_89 tf32 k4"},
    {SM89,           INPUT_TF32,      0, METHOD_FDPA,        4, 24, -132, -20, false, PUBLISHED, "sm_89 tf32 k8"},
    {SM89,           INPUT_WMMA_TF32, 0, METHOD_FDPA,        4, 24, -132, -20, false, PUBLISHED, "sm_89 wmma tf32"},
    {SM89,           INPUT_FP8,       0, METHOD_FDPA,       16, 13, -133, -21, true,  MEASURED,  "sm_89 fp8"},

    {SM90,           INPUT_F16,       0, METHOD_FDPA,       16, 25, -133, -21, false, MEASURED,  "sm_90 f16"},
    {SM90,           INPUT_BF16,      0, METHOD_FDPA,       16, 25, -133, -21, false, MEASURED,  "sm_90 bf16"},
    {SM90,           INPUT_TF32,      0, METHOD_FDPA,        8, 25, -133, -21, false, PUBLISHED, "sm_90 tf32"},
    {SM90,           INPUT_WMMA_TF32, 0, METHOD_FDPA,        4, 25, -133, -21, false, PUBLISHED, "sm_90 wmma tf32"},
    {SM90,           INPUT_FP8,      32, METHOD_FP8_BY_F16, 16, 25, -133, -21, false, MEASURED,  "sm_90 fp8 k32 (by f16)"},
    {SM90,           INPUT_FP8,       0, METHOD_FP8_BY_F16, 16, 25, -133, -21, false, PUBLISHED, "sm_90 fp8 k16 (by f16)"},

    /* The four measured sets of wgmma are fp8 with c = 0 and f32 results. */
    {SM90,           INPUT_WGMMA_F16,  0, METHOD_FDPA,      16, 25, -133, -21, false, PUBLISHED, "sm_90 wgmma f16, bf16"},
    {SM90,           INPUT_WGMMA_TF32, 0, METHOD_FDPA,       8, 25, -133, -21, false, PUBLISHED, "sm_90 wgmma tf32"},
    {SM90,           INPUT_WGMMA_FP8,  0, METHOD_FDPA,      32, 13, -134, -22, true,  PUBLISHED, "sm_90 wgmma fp8 (measured for f32 results with c = 0)"},

    {SM100,          INPUT_F16,       0, METHOD_FDPA,       16, 25, -133, -21, false, MEASURED,  "sm_100 f16"},
    {SM100,          INPUT_BF16,      0, METHOD_FDPA,       16, 25, -133, -21, false, MEASURED,  "sm_100 bf16"},
    {SM100,          INPUT_TF32,      0, METHOD_FDPA,        8, 25, -133, -21, false, PUBLISHED, "sm_100 tf32"},
    {SM100,          INPUT_WMMA_TF32, 0, METHOD_FDPA,        4, 25, -133, -21, false, PUBLISHED, "sm_100 wmma tf32"},
    {SM100 | SM103,  INPUT_FP8,      32, METHOD_FP8_BY_F16, 16, 25, -133, -21, false, MEASURED,  "sm_100/103 fp8 k32 (by f16)"},
    {SM100 | SM103,  INPUT_FP8,       0, METHOD_FP8_BY_F16, 16, 25, -133, -21, false, PUBLISHED, "sm_100/103 fp8 k16 (by f16)"},

    {SM103 | SM110,  INPUT_F16,       0, METHOD_FDPA,       16, 25, -133, -21, false, ASSUMED,   "sm_103/110 f16 (as sm_100)"},
    {SM103 | SM110,  INPUT_BF16,      0, METHOD_FDPA,       16, 25, -133, -21, false, ASSUMED,   "sm_103/110 bf16 (as sm_100)"},
    {SM103 | SM110,  INPUT_TF32,      0, METHOD_FDPA,        8, 25, -133, -21, false, ASSUMED,   "sm_103/110 tf32 (as sm_100)"},
    {SM103 | SM110,  INPUT_WMMA_TF32, 0, METHOD_FDPA,        4, 25, -133, -21, false, ASSUMED,   "sm_103/110 wmma tf32 (as sm_100)"},
    {SM110,          INPUT_FP8,       0, METHOD_FP8_BY_F16, 16, 25, -133, -21, false, ASSUMED,   "sm_110 fp8 (as sm_100, by f16)"},

    /* What no model tells is assumed: see assume_unknown. */
    {SM100,          INPUT_TCGEN05_F16,    0, METHOD_FDPA,  16, 25, -133, -21, false, PUBLISHED, "sm_100 tcgen05 f16, bf16"},
    {LIKE_100,       INPUT_TCGEN05_F16,    0, METHOD_FDPA,  16, 25, -133, -21, false, ASSUMED,   "sm_103/110 tcgen05 f16, bf16 (as sm_100)"},
    {SM100,          INPUT_TCGEN05_TF32,   0, METHOD_FDPA,   8, 25, -133, -21, false, PUBLISHED, "sm_100 tcgen05 tf32"},
    {LIKE_100,       INPUT_TCGEN05_TF32,   0, METHOD_FDPA,   8, 25, -133, -21, false, ASSUMED,   "sm_103/110 tcgen05 tf32 (as sm_100)"},
    {SM100,          INPUT_TCGEN05_F8F6F4, 0, METHOD_FDPA,  32, 25, -133, -21, false, PUBLISHED, "sm_100 tcgen05 f8f6f4"},
    {LIKE_100,       INPUT_TCGEN05_F8F6F4, 0, METHOD_FDPA,  32, 25, -133, -21, false, ASSUMED,   "sm_103/110 tcgen05 f8f6f4 (as sm_100)"},
    {SM100|LIKE_100, INPUT_TCGEN05_MXF8F6F4, 0, METHOD_SCALED, 32, 25, -133, -21, false, ASSUMED, "sm_100/103/110 tcgen05 mxf8f6f4 (as sm_120)"},
    {SM100|LIKE_100, INPUT_TCGEN05_MXF4,   0, METHOD_SCALED_FP4, 64, 35, -139, -27, false, ASSUMED, "sm_100/103/110 tcgen05 mxf4, mxf4nvf4 (as sm_120)"},
    {SM100|LIKE_100, INPUT_TCGEN05_I8,     0, METHOD_INTEGER, 0, 0,    0,   0, false, ASSUMED,   "sm_100/110 tcgen05 i8"},

    {RTX_BLACKWELL,  INPUT_F16,       0, METHOD_FDPA,       16, 25, -133, -21, false, PUBLISHED, "sm_120/121 f16"},
    {RTX_BLACKWELL,  INPUT_BF16,      0, METHOD_FDPA,       16, 25, -133, -21, false, PUBLISHED, "sm_120/121 bf16"},
    {RTX_BLACKWELL,  INPUT_TF32,      0, METHOD_FDPA,        8, 25, -133, -21, false, PUBLISHED, "sm_120/121 tf32"},
    {RTX_BLACKWELL,  INPUT_WMMA_TF32, 0, METHOD_FDPA,        4, 25, -133, -21, false, PUBLISHED, "sm_120/121 wmma tf32"},
    {RTX_BLACKWELL,  INPUT_FP8,       0, METHOD_FDPA,       32, 25, -133, -21, false, PUBLISHED, "sm_120/121 fp8"},
    {RTX_BLACKWELL,  INPUT_F8F6F4,    0, METHOD_FDPA,       32, 25, -133, -21, false, PUBLISHED, "sm_120/121 f8f6f4"},
    {RTX_BLACKWELL,  INPUT_MXF8F6F4,  0, METHOD_SCALED,     32, 25, -133, -21, false, PUBLISHED, "sm_120/121 mxf8f6f4"},
    {RTX_BLACKWELL,  INPUT_MXF4,      0, METHOD_SCALED_FP4, 64, 35, -139, -27, false, PUBLISHED, "sm_120/121 mxf4"},

    {ALL,            INPUT_INTEGER,   0, METHOD_INTEGER,     0,  0,    0,   0, false, EXACT,     "integer"},
    {ALL,            INPUT_BITS,      0, METHOD_BITS,        0,  0,    0,   0, false, EXACT,     "b1"},
    {ALL & ~SM75,    INPUT_F64,       0, METHOD_F64,         0,  0,    0,   0, false, PUBLISHED, "f64"},
};
/* clang-format on */

static tensor_run_fn *const runs[] = {
    [METHOD_FDPA] = tensor_run_fdpa,       [METHOD_FP8_BY_F16] = tensor_run_fp8_by_f16,
    [METHOD_QUADS] = tensor_run_quads,     [METHOD_QUADS_FMA] = tensor_run_quads_fma,
    [METHOD_SCALED] = tensor_run_scaled,   [METHOD_SCALED_FP4] = tensor_run_scaled_fp4,
    [METHOD_INTEGER] = tensor_run_integer, [METHOD_BITS] = tensor_run_bits,
    [METHOD_F64] = tensor_run_f64,
};

/* What rows of the table are for, by the type of a (b1, integers and f64 mix only among themselves). */
static bool input_of(const tensor_op *op, bool is_wmma, unsigned kind, tensor_input *input)
{
    static const struct {
        pvm_type type;
        tensor_input input;
    } by_type[] = {
        {T_F16, INPUT_F16},    {T_BF16, INPUT_BF16},   {T_TF32, INPUT_TF32},   {T_E4M3, INPUT_FP8},
        {T_E5M2, INPUT_FP8},   {T_E3M2, INPUT_F8F6F4}, {T_E2M3, INPUT_F8F6F4}, {T_E2M1, INPUT_F8F6F4},
        {T_S8, INPUT_INTEGER}, {T_U8, INPUT_INTEGER},  {T_S4, INPUT_INTEGER},  {T_U4, INPUT_INTEGER},
        {T_B1, INPUT_BITS},    {T_F64, INPUT_F64},
    };
    const bool narrow_b = op->btype == T_E3M2 || op->btype == T_E2M3 || op->btype == T_E2M1;
    for (size_t i = 0; i < sizeof by_type / sizeof *by_type; i++) {
        if (by_type[i].type != op->atype)
            continue;
        *input = by_type[i].input;
        if (*input == INPUT_FP8 && narrow_b)
            *input = INPUT_F8F6F4;
        if (*input == INPUT_F16 && op->k == 4)
            *input = INPUT_QUADS;
        if (*input == INPUT_TF32 && is_wmma)
            *input = INPUT_WMMA_TF32;
        if (kind == M_kind__mxf8f6f4)
            *input = INPUT_MXF8F6F4;
        if (kind == M_kind__mxf4 || kind == M_kind__mxf4nvf4)
            *input = INPUT_MXF4;
        return true;
    }
    return false;
}

static tensor_input wgmma_input(tensor_input input)
{
    return input == INPUT_FP8                          ? INPUT_WGMMA_FP8
           : input == INPUT_TF32                       ? INPUT_WGMMA_TF32
           : input == INPUT_F16 || input == INPUT_BF16 ? INPUT_WGMMA_F16
                                                       : input;
}

/* wmma.mma of f16 names only d's and c's type. */
static void read_types(const pvm_inst *inst, tensor_op *op)
{
    const bool two = pvm_slot_type(inst, S_TYPE3) == T_NONE;
    op->dtype = pvm_slot_type(inst, S_TYPE);
    op->atype = two ? T_F16 : pvm_slot_type(inst, S_TYPE2);
    op->btype = two ? T_F16 : pvm_slot_type(inst, S_TYPE3);
    op->ctype = pvm_slot_type(inst, two ? S_TYPE2 : S_TYPE4);
}

static int scales_of(const pvm_inst *inst)
{
    if (inst->mod[S_SCALE] == M_NONE)
        return 0;
    switch (inst->mod[S_SCALEVEC]) {
    case M_scale_vec__1X:
        return 1;
    case M_scale_vec__2X:
        return 2;
    case M_scale_vec__4X:
        return 4;
    default: /* not written: 1X for mxf8f6f4, 2X for mxf4 */
        return pvm_has(inst, S_KIND, M_kind__mxf8f6f4) ? 1 : 2;
    }
}

static const tensor_model *find_model(int sm, tensor_input input, int k)
{
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (models[i].sms & bit_of(sm) && models[i].input == input && (models[i].k == 0 || models[i].k == k))
            return &models[i];
    return NULL;
}

bool tensor_find(const pvm_inst *inst, pvm_target device, tensor_op *op)
{
    const bool is_wmma = inst->op == OP_wmma && pvm_has(inst, S_SUB, M_mma);
    const bool is_wgmma = inst->op == OP_wgmma && pvm_has(inst, S_SUB, M_mma_async);
    tensor_input input;
    memset(op, 0, sizeof *op);
    if ((inst->op != OP_mma && !is_wmma && !is_wgmma) ||
        !pvm_shape_of(inst->mod[S_SHAPE], &op->m, &op->n, &op->k))
        return false;
    read_types(inst, op);
    if (!input_of(op, is_wmma, inst->mod[S_KIND], &input))
        return false;
    if (is_wgmma) { /* c is d, and each of the four warps has 16 of the 64 rows */
        op->ctype = op->dtype;
        op->m = 16;
        input = wgmma_input(input);
    }
    op->model = find_model(device.sm, input, op->k);
    if (!op->model)
        return false;
    op->run = runs[op->model->method];
    op->standing = op->model->standing;
    op->row = op->model->row;
    op->a_col = pvm_has(inst, S_ALAYOUT, M_col);
    op->b_row = pvm_has(inst, S_BLAYOUT, M_row);
    op->satfinite = pvm_has(inst, S_SAT, M_satfinite);
    if (op->satfinite && op->model->method == METHOD_FDPA)
        op->standing = TENSOR_ASSUMED;
    op->is_and = pvm_has(inst, S_OP, M_and);
    op->scales = scales_of(inst);
    op->scale_ue4m3 = pvm_slot_type(inst, S_STYPE) == T_UE4M3;
    if (op->scales == 4 && !op->scale_ue4m3) /* later than the public model */
        op->standing = TENSOR_ASSUMED;
    op->wide = tensor_dots_best() == tensor_dots_v3;
    op->inst = inst;
    return true;
}

/* ---- tcgen05.mma ---- */

static const struct {
    unsigned kind;
    tensor_input input;
    int k;
} tcgen05_kinds[] = {
    {M_kind__f16, INPUT_TCGEN05_F16, 16},       {M_kind__tf32, INPUT_TCGEN05_TF32, 8},
    {M_kind__f8f6f4, INPUT_TCGEN05_F8F6F4, 32}, {M_kind__mxf8f6f4, INPUT_TCGEN05_MXF8F6F4, 32},
    {M_kind__mxf4, INPUT_TCGEN05_MXF4, 64},     {M_kind__mxf4nvf4, INPUT_TCGEN05_MXF4, 64},
    {M_kind__i8, INPUT_TCGEN05_I8, 32},
};

/* What the public model of tcgen05 does not have. */
static bool is_unknown(const tensor_tcgen05 *what)
{
    return what->is_pair || what->is_modified || what->atype == T_E3M2 || what->atype == T_E2M3 ||
           what->btype == T_E3M2 || what->btype == T_E2M3;
}

bool tensor_find_tcgen05(const tensor_tcgen05 *what, pvm_target device, tensor_op *op)
{
    size_t i = 0, n = sizeof tcgen05_kinds / sizeof *tcgen05_kinds;
    while (i < n && tcgen05_kinds[i].kind != what->kind)
        i++;
    const tensor_model *model = i < n ? find_model(device.sm, tcgen05_kinds[i].input, 0) : NULL;
    *op = (tensor_op){.model = model,
                      .m = 16,
                      .n = what->n,
                      .dtype = what->dtype,
                      .atype = what->atype,
                      .btype = what->btype,
                      .ctype = what->dtype,
                      .satfinite = what->satfinite,
                      .scales = what->scales,
                      .scale_ue4m3 = what->scale_ue4m3};
    if (!model)
        return false;
    op->k = tcgen05_kinds[i].k;
    op->row = model->row;
    op->standing = is_unknown(what) ? TENSOR_ASSUMED : model->standing;
    op->wide = tensor_dots_best() == tensor_dots_v3;
    return true;
}
