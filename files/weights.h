/* From tensors to weights.
 *
 * A matcher looks at one tensor, the one with the codes. If it recognizes the tensor, it claims the other tensors that
 * belong to it, fills in the weight and returns true. What does not match becomes the weight's problem, not an error of
 * the file: the other weights are not affected. */
#ifndef QDNN_FILES_WEIGHTS_H
#define QDNN_FILES_WEIGHTS_H

#include "files/internal.h"

typedef struct builder {
    struct qdnnFile *f;
    const qdnnFileTensor_t *codes;
    qdnnFileWeight_t w;
    int *owner; /* for each tensor: the tensor with the codes of its weight; -1: none */
    bool no_memory;
} builder;

typedef bool (*weight_matcher)(builder *b);

/* weights_words.c */
bool match_qweight(builder *b); /* GPTQ and AWQ */
bool match_packed(builder *b);  /* compressed-tensors: pack-quantized, nvfp4, mxfp4 */
/* weights_bnb.c */
bool match_bnb(builder *b);
/* weights_bytes.c */
bool match_modelopt_fp4(builder *b);
bool match_fp8(builder *b);
bool match_int8(builder *b);
bool match_gpt_oss(builder *b);

/* ---- helpers of matchers ---- */

/* Whether the name of the tensor with the codes ends with the suffix. */
bool codes_end(const builder *b, const char *suffix);
/* The tensor next to it, named with `suffix` instead of its last `cut` characters. Null if there is none. */
const qdnnFileTensor_t *find_beside(const builder *b, size_t cut, const char *suffix);
/* The same, but reports a problem if there is none. */
const qdnnFileTensor_t *require_beside(builder *b, size_t cut, const char *suffix);
bool is_matrix(const qdnnFileTensor_t *t, int64_t rows, int64_t columns);
uint64_t element_count(const qdnnFileTensor_t *t);
int64_t divide_up(int64_t a, int64_t b);

void set_name(builder *b, size_t cut, const char *suffix);
void set_format(builder *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void set_weights(builder *b, qdnnWeights_t weights, int64_t extent);
void set_attribute(builder *b, qdnnQuantAttribute_t attribute, int64_t value);
void set_matrix(builder *b, int64_t rows, int64_t columns);
/* Sets the type of the scales, if a descriptor supports it. */
void set_scale_type(builder *b, const qdnnFileTensor_t *scales);
/* Claims a tensor that belongs to the weight: as an operand, or because its content is redundant. */
void claim_operand(builder *b, qdnnOperand_t operand, const qdnnFileTensor_t *t);
void claim(builder *b, const qdnnFileTensor_t *t);
/* Reports a problem; only the first is kept. Returns true, because the matcher still recognized the
 * tensor. */
bool report_problem(builder *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The group size of `groups` groups along k elements, from the configuration or by division; 0, with a
 * problem, if neither fits. */
int64_t group_size_of(builder *b, int64_t k, int64_t groups);
/* Whether a g_idx is k / group_size and so redundant; an invalid one is reported as a problem. */
bool index_is_plain(builder *b, const qdnnFileTensor_t *index, int64_t group_size, int64_t groups);

#endif
