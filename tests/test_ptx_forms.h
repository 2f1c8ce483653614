/* Every form of every instruction that the builder writes, for the tests that go through all of them. */
#ifndef QDNN_TEST_PTX_FORMS_H
#define QDNN_TEST_PTX_FORMS_H

#include "ptxgen/internal.h"
#include "ptxgen/ptx_call.h"

/* Three values of each type, in registers that nothing sets, numbered in the order of types.def: u32 is %r1
 * to %r3, s32 %r4 ..., f32 %r16 to %r18; u64 is %d1 ...; so the first new 32-bit register is %r23. */
typedef struct ptx_pool {
    ptx_val value[3][PTX_TYPE_COUNT];
    ptx_val shared; /* %r22, an address */
} ptx_pool;

void ptx_pool_fill(ptx_builder *b, ptx_pool *pool);

typedef struct ptx_golden {
    const char *call, *expected; /* the C text, and the PTX it writes */
    void (*write)(ptx_builder *b, const ptx_pool *pool);
} ptx_golden;

int ptx_golden_count(void);
const ptx_golden *ptx_golden_get(int index);

/* The forms: the rows of isa.def over all their types and modifiers, then the golden calls. */
int ptx_form_count(void);
/* Writes the form into a new kernel of the builder; its name, for messages. */
void ptx_form_write(ptx_builder *b, int form, char *name, size_t size);

/* Closes, and gives the text with the error in place of it; to be freed. */
char *ptx_close_or_error(ptx_builder *b);
/* The instructions of the (only) kernel, without the last ret; freed text becomes *out. */
char *ptx_body_of(const char *module);

#endif
