/* How tensors become weights.
 *
 * A matcher looks at one tensor, the one with the codes. If it is of its kind, the matcher takes the tensors that belong to
 * it, fills in the weight and returns true; what does not fit together becomes the weight's problem, not an error of the
 * file: the other weights are as good as before. */
#ifndef QDNN_FILES_WEIGHTS_H
#define QDNN_FILES_WEIGHTS_H

#include "files/internal.h"

typedef struct builder {
    struct qdnnFile *f;
    const qdnnFileTensor_t *codes;
    qdnnFileWeight_t w;
    int *owner; /* of each tensor: the one with the codes of the weight that it belongs to; -1: none */
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

/* ---- what matchers use ---- */

/* Whether the tensor with the codes is called so. */
bool codes_end(const builder *b, const char *suffix);
/* The tensor beside it: the last `cut` characters of its name replaced. Null where there is none. */
const qdnnFileTensor_t *beside(const builder *b, size_t cut, const char *suffix);
/* The same, and a problem where there is none. */
const qdnnFileTensor_t *required(builder *b, size_t cut, const char *suffix);
bool is_matrix(const qdnnFileTensor_t *t, int64_t rows, int64_t columns);
uint64_t element_count(const qdnnFileTensor_t *t);
int64_t divide_up(int64_t a, int64_t b);

void set_name(builder *b, size_t cut, const char *suffix);
void set_format(builder *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void set_weights(builder *b, qdnnWeights_t weights, int64_t extent);
void set(builder *b, qdnnQuantAttribute_t attribute, int64_t value);
void set_matrix(builder *b, int64_t rows, int64_t columns);
/* The scales' type, where a descriptor can have it. */
void set_scale_type(builder *b, const qdnnFileTensor_t *scales);
/* Takes a tensor that belongs to the weight: as an operand, or because another says the same. */
void take(builder *b, qdnnOperand_t operand, const qdnnFileTensor_t *t);
void take_silently(builder *b, const qdnnFileTensor_t *t);
/* The first problem stays. Returns true: the tensor is of the matcher's kind all the same. */
bool problem(builder *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The group size of `groups` groups along k elements, as the configuration has it or as they divide; 0, with a problem,
 * where neither fits. */
int64_t group_size_of(builder *b, int64_t k, int64_t groups);
/* Whether a g_idx is k / group_size, and so says nothing; what it may not say is a problem. */
bool index_is_plain(builder *b, const qdnnFileTensor_t *index, int64_t group_size, int64_t groups);

#endif
