/* From tensors to weights: matchers combine those that belong together; the others become weights one by
 * one. */
#include "files/weights.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* ---- helpers of matchers ---- */

bool codes_end(const builder *b, const char *suffix)
{
    return files_ends_with(b->codes->name, suffix);
}

const qdnnFileTensor_t *find_beside(const builder *b, size_t cut, const char *suffix)
{
    int found = file_find_beside(b->f, b->codes->name, cut, suffix);
    return found < 0 ? NULL : &b->f->tensors[found];
}

const qdnnFileTensor_t *require_beside(builder *b, size_t cut, const char *suffix)
{
    const qdnnFileTensor_t *t = find_beside(b, cut, suffix);
    if (!t)
        report_problem(b, "the tensor '%.*s%s' is missing", (int)(strlen(b->codes->name) - cut),
                       b->codes->name, suffix);
    return t;
}

bool is_matrix(const qdnnFileTensor_t *t, int64_t rows, int64_t columns)
{
    return t->rank == 2 && t->dims[0] == rows && t->dims[1] == columns;
}

uint64_t element_count(const qdnnFileTensor_t *t)
{
    uint64_t n;
    files_elements(t->rank, t->dims, &n);
    return n;
}

int64_t divide_up(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

void set_name(builder *b, size_t cut, const char *suffix)
{
    char name[FILES_NAME_MAX + 64];
    snprintf(name, sizeof name, "%.*s%s", (int)(strlen(b->codes->name) - cut), b->codes->name, suffix);
    b->w.name = file_copy(b->f, name, strlen(name));
    b->no_memory = b->no_memory || !b->w.name;
}

static char *print(builder *b, const char *format, va_list args)
{
    char text[512];
    vsnprintf(text, sizeof text, format, args);
    char *copy = file_copy(b->f, text, strlen(text));
    b->no_memory = b->no_memory || !copy;
    return copy;
}

void set_format(builder *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    b->w.format = print(b, format, args);
    va_end(args);
}

bool report_problem(builder *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!b->w.problem)
        b->w.problem = print(b, format, args);
    va_end(args);
    return true;
}

void set_weights(builder *b, qdnnWeights_t weights, int64_t extent)
{
    b->w.weights = weights;
    b->w.extent = extent;
}

void set_attribute(builder *b, qdnnQuantAttribute_t attribute, int64_t value)
{
    if (b->w.settings < QDNN_FILE_SETTINGS_MAX)
        b->w.setting[b->w.settings++] = (qdnnFileSetting_t){attribute, value};
}

void set_matrix(builder *b, int64_t rows, int64_t columns)
{
    b->w.rank = 2;
    b->w.dims[0] = rows;
    b->w.dims[1] = columns;
}

void set_scale_type(builder *b, const qdnnFileTensor_t *scales)
{
    static const struct {
        const char *name;
        qdnnScaleType_t type;
    } known[] = {{"F32", QDNN_SCALE_F32},
                 {"F16", QDNN_SCALE_F16},
                 {"BF16", QDNN_SCALE_BF16},
                 {"F8_E4M3", QDNN_SCALE_E4M3},
                 {"F8_E8M0", QDNN_SCALE_E8M0}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].name, scales->typeName) != 0)
            continue;
        set_attribute(b, QDNN_QUANT_SCALE_TYPE, known[i].type);
        return;
    }
    report_problem(b, "'%s' is of type %s; scales are F32, F16, BF16, F8_E4M3 or F8_E8M0", scales->name,
                   scales->typeName);
}

void claim(builder *b, const qdnnFileTensor_t *t)
{
    if (t)
        b->owner[t - b->f->tensors] = (int)(b->codes - b->f->tensors);
}

static void add_operand(builder *b, qdnnOperand_t operand, const void *data, uint64_t bytes, int tensor)
{
    if (b->w.operands == QDNN_FILE_OPERANDS_MAX)
        return;
    b->w.operand[b->w.operands++] = (qdnnFileOperand_t){operand, data, bytes, tensor};
    b->w.bytes += bytes;
}

void claim_operand(builder *b, qdnnOperand_t operand, const qdnnFileTensor_t *t)
{
    claim(b, t);
    if (t)
        add_operand(b, operand, t->data, t->bytes, (int)(t - b->f->tensors));
}

int64_t group_size_of(builder *b, int64_t k, int64_t groups)
{
    int64_t configured = b->f->config.group_size;
    if (groups == 1)
        return k > 0 ? k : 1;
    if (configured > 0 && divide_up(k, configured) == groups)
        return configured;
    if (groups > 0 && k % groups == 0) /* layers may differ from the configuration */
        return k / groups;
    report_problem(b, "%lld groups along %lld elements do not fit a group size of %lld", (long long)groups,
                   (long long)k, (long long)configured);
    return 0;
}

bool index_is_plain(builder *b, const qdnnFileTensor_t *index, int64_t group_size, int64_t groups)
{
    int64_t n = index->rank == 1 ? index->dims[0] : 0;
    bool plain = true;
    if (index->type != QDNN_DATA_I32)
        return report_problem(b, "'%s' is of type %s; it must be I32", index->name, index->typeName);
    for (int64_t i = 0; i < n; i++) {
        int32_t group;
        memcpy(&group, (const char *)index->data + 4 * i, sizeof group);
        if (group < 0 || group >= groups)
            return report_problem(b, "element %lld of '%s' is %d; there are %lld groups", (long long)i,
                                  index->name, (int)group, (long long)groups);
        plain = plain && group == i / group_size;
    }
    return plain;
}

/* ---- single tensors ---- */

/* The library numbers block formats and their weight formats in the same order. */
_Static_assert(QDNN_WEIGHTS_GGUF_IQ3_S - QDNN_WEIGHTS_GGUF_Q4_0 == QDNN_BLOCK_IQ3_S - QDNN_BLOCK_Q4_0, "");

static bool match_blocks(builder *b)
{
    const qdnnFileTensor_t *t = b->codes;
    if (t->block == QDNN_BLOCK_NONE)
        return false;
    set_weights(b, (qdnnWeights_t)(QDNN_WEIGHTS_GGUF_Q4_0 + (t->block - QDNN_BLOCK_Q4_0)), 0);
    b->w.quantized = true;
    return true;
}

static bool match_plain(builder *b)
{
    switch (b->codes->type) {
    case QDNN_DATA_F32:
        set_weights(b, QDNN_WEIGHTS_F32, 0);
        return true;
    case QDNN_DATA_F16:
        set_weights(b, QDNN_WEIGHTS_F16, 0);
        return true;
    case QDNN_DATA_BF16:
        set_weights(b, QDNN_WEIGHTS_BF16, 0);
        return true;
    case QDNN_DATA_F8E4M3:
    case QDNN_DATA_F8E5M2: /* without scales: the numbers themselves */
        set_weights(b, b->codes->type == QDNN_DATA_F8E4M3 ? QDNN_WEIGHTS_FP8_E4M3 : QDNN_WEIGHTS_FP8_E5M2, 0);
        set_attribute(b, QDNN_QUANT_GRANULARITY, QDNN_GRANULARITY_NONE);
        b->w.quantized = true;
        return true;
    case QDNN_DATA_F64:
        return report_problem(b, "weights in F64 are not supported; convert them to F32");
    default:
        return false;
    }
}

static void set_single(builder *b)
{
    const qdnnFileTensor_t *t = b->codes;
    b->w.format = t->typeName;
    b->w.rank = t->rank ? t->rank : 1; /* a scalar is an array of one */
    b->w.dims[0] = 1;
    memcpy(b->w.dims, t->dims, (size_t)t->rank * sizeof t->dims[0]);
}

static bool match_single(builder *b)
{
    if (!match_blocks(b) && !match_plain(b))
        return false;
    set_single(b);
    return true;
}

/* ---- all of them ---- */

static const weight_matcher matchers[] = {match_qweight, match_packed, match_bnb,    match_modelopt_fp4,
                                          match_fp8,     match_int8,   match_gpt_oss};

/* A weight with a problem has no partial descriptor. */
static qdnnStatus_t add_weight(builder *b)
{
    if (b->w.problem) {
        b->w.weights = 0;
        b->w.extent = 0;
        b->w.settings = 0;
    }
    qdnnFileWeight_t *place = b->no_memory ? NULL : file_add_weight(b->f);
    if (!place)
        return files_no_memory();
    *place = b->w;
    return QDNN_STATUS_SUCCESS;
}

static builder begin(struct qdnnFile *f, int *owner, int tensor)
{
    builder b = {.f = f, .codes = &f->tensors[tensor], .owner = owner};
    b.w.name = b.codes->name;
    claim_operand(&b, QDNN_OPERAND_CODES, b.codes);
    return b;
}

/* A tensor that no matcher recognizes keeps its owner: another tensor, or none. */
static qdnnStatus_t find_groups(struct qdnnFile *f, int *owner)
{
    for (int i = 0; i < f->n_tensors; i++) {
        int before = owner[i];
        for (size_t k = 0; k < sizeof matchers / sizeof matchers[0]; k++) {
            builder b = begin(f, owner, i);
            if (!matchers[k](&b))
                continue;
            before = i;
            b.w.quantized = true;
            FILES_TRY(add_weight(&b));
            break;
        }
        owner[i] = before;
    }
    return QDNN_STATUS_SUCCESS;
}

static qdnnStatus_t find_singles(struct qdnnFile *f, int *owner)
{
    for (int i = 0; i < f->n_tensors; i++) {
        if (owner[i] >= 0)
            continue;
        builder b = begin(f, owner, i);
        if (match_single(&b))
            FILES_TRY(add_weight(&b));
        else
            owner[i] = -1;
    }
    return QDNN_STATUS_SUCCESS;
}

static int compare_codes(const void *a, const void *b)
{
    const qdnnFileWeight_t *x = a, *y = b;
    return (x->operand[0].tensor > y->operand[0].tensor) - (x->operand[0].tensor < y->operand[0].tensor);
}

/* Weights are in order now: stores in each tensor the number of its weight. */
static void note_weights(struct qdnnFile *f, const int *owner)
{
    for (int i = 0; i < f->n_tensors; i++) {
        int from = 0, to = f->n_weights;
        while (owner[i] >= 0 && from + 1 < to) {
            int middle = from + (to - from) / 2;
            *(f->weights[middle].operand[0].tensor > owner[i] ? &to : &from) = middle;
        }
        f->tensors[i].weight = owner[i] >= 0 ? from : -1;
    }
}

qdnnStatus_t file_find_weights(struct qdnnFile *f)
{
    int *owner = alloc_new(((size_t)f->n_tensors + 1) * sizeof *owner);
    qdnnStatus_t status = owner ? QDNN_STATUS_SUCCESS : files_no_memory();
    for (int i = 0; owner && i < f->n_tensors; i++)
        owner[i] = -1;
    if (!status && f->kind == QDNN_FILE_SAFETENSORS)
        status = find_groups(f, owner);
    if (!status)
        status = find_singles(f, owner);
    if (!status && f->n_weights > 1)
        qsort(f->weights, (size_t)f->n_weights, sizeof *f->weights, compare_codes);
    if (!status)
        note_weights(f, owner);
    alloc_free(owner);
    return status;
}
