/* A file becomes another: each weight is kept, dropped, or made anew in another type. */
#ifndef TOOLS_QDNN_REWRITE_H
#define TOOLS_QDNN_REWRITE_H

#include "tools/qdnn/types.h"

/* What was lost. */
typedef struct figures {
    bool known;
    double rms, largest;
    double sqnr; /* in dB; infinite where nothing was lost */
} figures;

typedef struct job {
    qdnnFileWeight_t from, to; /* `to`: the descriptor of its new type */
    type_choice choice;
    bool named;     /* by a rule: then it must be possible */
    char *reason;   /* why it is kept; null: nothing to say */
    uint64_t bytes; /* of what it becomes */
    int first;      /* of its tensors in the output */
    figures lost;
} job;

typedef struct rewrite rewrite;
struct rewrite {
    const options *o;
    qdnnFile_t file;
    qdnnFileInfo_t info;
    output out;
    job *jobs; /* one for each weight */
    device device;
    /* Makes a weight in its new type. */
    int (*make)(rewrite *r, job *j, tensor *made);
};

int rewrite_open(rewrite *r, const options *o);
void rewrite_close(rewrite *r);
/* The first rule that matches; where none does, *choice stays. */
int rewrite_rule(const rewrite *r, const char *name, type_choice *choice, bool *named);
/* quant_config.c: what loaders want to know of the quantization, where all weights have one. */
int rewrite_describe(rewrite *r);
/* Once every job has its type: prints what would be done, or does it. Then the figures. */
int rewrite_run(rewrite *r);

/* The shape of a weight as [..., N, K], whichever way its format has it. */
void weight_shape(const qdnnFileWeight_t *w, int *rank, int64_t *dims);
/* Its values in that order, as f32 by host_ref; the caller frees them. Null, reported, without memory. */
float *weight_values(const tensor *t);
/* The same of any array of the weight's shape, in place of the one given, which is freed. */
float *weight_turn(const qdnnFileWeight_t *w, float *values);

/* F32, F16 or BF16; and its numbers, rounded to nearest even. */
bool is_plain(const tensor *t);
void round_plain(tensor *made, const float *x);

figures measure(const float *x, const float *y, int64_t n);

#endif
