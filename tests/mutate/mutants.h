/* One-token mutants of a kernel's PTX: each is the text with one small mistake, of the kind that an emitter makes. */
#ifndef QDNN_MUTATE_MUTANTS_H
#define QDNN_MUTATE_MUTANTS_H

#include <stddef.h>
#include <stdint.h>

typedef enum {
    MUTANT_COMPARISON, /* lt for le, eq for ne, ordered for unordered */
    MUTANT_ROUNDING,   /* rn for rz ... */
    MUTANT_TYPE,       /* another type of the same width */
    MUTANT_REGISTER,   /* another source register of the same kind */
    MUTANT_CONSTANT,   /* one more, one less, one bit */
    MUTANT_SHIFT,      /* the amount of a shift, or its direction */
    MUTANT_ARITHMETIC, /* add for sub */
    MUTANT_EXTREME,    /* min for max */
    MUTANT_LOGIC,      /* and for or */
    MUTANT_PREDICATE,  /* a guard negated */
    MUTANT_DELETION,   /* an instruction left out */
    MUTANT_CLASSES
} mutant_class;
extern const char *const mutant_class_names[MUTANT_CLASSES];

/* `length` bytes at `at` are replaced by `with`. */
typedef struct mutant {
    mutant_class kind;
    int line; /* from 1 */
    size_t at, length;
    char with[32];
} mutant;

/* All mutants of the text; the seed chooses registers and bits. Free with free(); null without memory. */
mutant *mutants_of(const char *ptx, uint64_t seed, int *count);

/* The text of a mutant; free with free(). */
char *mutant_text(const char *ptx, const mutant *m);

#endif
