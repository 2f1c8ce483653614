/* The silicon sets: dot products that real tensor cores computed. They are data of another project and are
 * not kept here: the folder is named by QDNN_SILICON_DIR, or is ../shared/silicon beside the sources; tests
 * skip without it. */
#ifndef QDNN_TESTS_SILICON_H
#define QDNN_TESTS_SILICON_H

#include <stdbool.h>
#include <stdint.h>

#include "ptxvm/isa.h"

#define SILICON_LINES 5000

/* What there is: `gpu`/`type_name` is the folder, k the products of a line. */
typedef struct silicon_set {
    const char *gpu, *type_name;
    int sm;
    pvm_type type;
    int k;
    bool has_f16;  /* results with f16 accumulation too */
    bool is_wgmma; /* the f32 results come from wgmma, with c taken as 0 */
} silicon_set;

extern const silicon_set silicon_sets[];
extern const int silicon_n_sets;
/* The same for TEST_EACH: how many, and "A100_fp16". */
int silicon_set_count(void);
void silicon_set_name(int index, char *text, size_t size);

/* The numbers of a set as raw bits: a and b of the set's type (tf32 as f32 bits), k a line; c and d32 as f32;
 * c16 is c rounded to f16, d16 the result of f16 accumulation as f16. */
typedef struct silicon_data {
    uint32_t *a, *b, *c, *c16, *d32, *d16;
} silicon_data;

/* False where the folder or a file of the set is missing. */
bool silicon_load(const silicon_set *set, silicon_data *data);
void silicon_free(silicon_data *data);

#endif
