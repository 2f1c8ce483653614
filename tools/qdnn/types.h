/* The types that the command can write: how their codes are computed, and which tensors store them. */
#ifndef TOOLS_QDNN_TYPES_H
#define TOOLS_QDNN_TYPES_H

#include "tools/qdnn/output.h"

/* The tensors that store a weight. */
typedef enum {
    STORED_ALONE, /* one tensor: numbers, blocks */
    STORED_PACKED, /* compressed-tensors: weight_packed in words, weight_scale, weight_shape, weight_zero_point */
    STORED_FP4,      /* the same in bytes: weight_packed, weight_scale; NVFP4 also weight_global_scale */
    STORED_BESIDE,   /* weight, weight_scale */
    STORED_MODELOPT, /* weight, weight_scale, weight_scale_2 */
    STORED_BNB       /* weight, weight.absmax, weight.quant_map, weight.quant_state... */
} stored_as;

typedef struct out_type {
    const char *name;
    qdnnFileKind_t kind;
    bool either_kind;
    stored_as stored;
    const char *codes; /* the type of the tensor with the codes */
    qdnnWeights_t weights;
    int64_t group; /* the default; 0: not chosen by the user; -1: the whole row */
    const char *summary;
} out_type;

/* A type with its group size: "int4-g64". */
typedef struct type_choice {
    const out_type *type; /* null: unchanged */
    bool drop;
    int64_t group;
} type_choice;

/* Also accepts "keep" and "drop". Returns an exit code. */
int type_parse(const char *text, qdnnFileKind_t kind, type_choice *choice);
const out_type *type_at(int index); /* null past the last one */

/* The descriptor of a tensor of that type; with scales of type `scale`, or the type's own if it is
 * negative. */
qdnnFileWeight_t type_describe(type_choice choice, int rank, const int64_t *dims, int scale);
/* *why receives the reason why a weight cannot be converted to that type, because of its name or its shape; null if
 * it can. The text is valid until the next call. Returns an exit code: there may be no memory. */
int type_refused(type_choice choice, const char *name, const qdnnFileWeight_t *how, const char **why);
/* Adds the tensors to the output; *first receives the number of the first. */
int type_add(output *out, type_choice choice, const tensor *t, int *first);
/* Writes them. */
int type_put(output *out, type_choice choice, const tensor *t, int first);

#endif
