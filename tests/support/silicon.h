/* The silicon sets: dot products computed by real tensor cores. They are data of another project and not part
 * of this one: QDNN_SILICON_DIR names the folder, or it is ../shared/silicon next to the sources; without it,
 * tests are skipped. */
#ifndef QDNN_TESTS_SILICON_H
#define QDNN_TESTS_SILICON_H

#include <stdbool.h>
#include <stdint.h>

#include "ptxvm/isa.h"

#define SILICON_LINES 5000

/* A set: `gpu`/`type_name` is its folder, k the number of products per line. */
typedef struct silicon_set {
    const char *gpu, *type_name;
    int sm;
    pvm_type type;
    int k;
    bool has_f16;  /* also has results with f16 accumulation */
    bool is_wgmma; /* the f32 results come from wgmma, with c = 0 */
} silicon_set;

extern const silicon_set silicon_sets[];
extern const int silicon_n_sets;
/* For TEST_EACH: the number of sets, and a name such as "A100_fp16". */
int silicon_set_count(void);
void silicon_set_name(int index, char *text, size_t size);

/* The numbers of a set as raw bits: a and b in the set's type (tf32 as f32 bits), k per line; c and d32 as
 * f32; c16 is c rounded to f16, d16 the result of f16 accumulation as f16. */
typedef struct silicon_data {
    uint32_t *a, *b, *c, *c16, *d32, *d16;
} silicon_data;

/* Returns false if the folder or a file of the set is missing. */
bool silicon_load(const silicon_set *set, silicon_data *data);
void silicon_free(silicon_data *data);

#endif
