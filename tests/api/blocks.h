/* Host memory of the library, counted and made to fail. */
#ifndef QDNN_TEST_API_BLOCKS_H
#define QDNN_TEST_API_BLOCKS_H

/* From now on all of the library's allocations are counted, until blocks_end. */
void blocks_begin(void);
void blocks_end(void);

/* The nth allocation from now on fails, once; 0: none. */
void blocks_fail(int nth);

int blocks_live(void);   /* blocks that are allocated now */
int blocks_asked(void);  /* allocations since blocks_fail */
int blocks_failed(void); /* those that failed since then */

#endif
