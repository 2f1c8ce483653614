/* Rewriting a file: each weight is kept, dropped, or converted to another type. */
#ifndef TOOLS_QDNN_REWRITE_H
#define TOOLS_QDNN_REWRITE_H

#include "tools/qdnn/folder.h"
#include "tools/qdnn/types.h"

/* The loss of a weight. */
typedef struct figures {
    bool known;
    double rms, largest;
    double sqnr; /* in dB; infinite if nothing was lost */
} figures;

typedef struct job {
    qdnnFileWeight_t from, to; /* `to`: the descriptor of its new type */
    type_choice choice;
    bool named;     /* by a rule: then it must be possible */
    char *reason;   /* why it is kept; null: no reason given */
    uint64_t bytes; /* of the result */
    int first;      /* number of its first tensor in the output */
    figures lost;
} job;

typedef struct rewrite rewrite;
struct rewrite {
    const options *o;
    qdnnFile_t file;
    qdnnFileInfo_t info;
    output out;
    folder folder; /* of the source */
    job *jobs;     /* one per weight */
    device device;
    /* Converts a weight to its new type. */
    int (*make)(rewrite *r, job *j, tensor *made);
};

int rewrite_open(rewrite *r, const options *o);
void rewrite_close(rewrite *r);
/* The first rule that matches; if none does, *choice is unchanged. */
int rewrite_rule(const rewrite *r, const char *name, type_choice *choice, bool *named);
/* Every rule must match a name. */
int rewrite_check_rules(const rewrite *r);
/* quant_config.c: what loaders need to know about the quantization. */
int rewrite_describe(rewrite *r);
/* Once every job has its type: prints what would be done, or does it. Then prints the figures. */
int rewrite_run(rewrite *r);

/* The shape of a weight as [..., N, K], whatever the order in its format. */
void weight_shape(const qdnnFileWeight_t *w, int *rank, int64_t *dims);
/* Its values in that order, as f32 by host_ref; the caller frees them. Null, with a message, if there is no
 * memory. */
float *weight_values(const tensor *t);
/* Reorders any array of the weight's shape in the same way; frees the given one and returns the new one. */
float *weight_turn(const qdnnFileWeight_t *w, float *values);

/* Whether it is F32, F16 or BF16; and storing numbers in it, rounded to nearest even. */
bool is_plain(const tensor *t);
void round_plain(tensor *made, const float *x);

figures measure(const float *x, const float *y, int64_t n);

#endif
