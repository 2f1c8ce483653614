/* Vocabularies of tests: GGUF entries made here. */
#ifndef QDNN_TEST_CHAT_TINY_H
#define QDNN_TEST_CHAT_TINY_H

#include "files/maker.h"

enum { TINY_END = 0, TINY_IM_START = 1, TINY_IM_END = 2, TINY_BYTES = 3 };

void tiny_texts(gguf_maker *g, const char *key, const char *const *texts, int count);
/* Three special tokens (<|endoftext|>, <|im_start|>, <|im_end|>), one for each byte, and a few words with their merges. */
void tiny_bpe(gguf_maker *g, const char *pre);
/* <unk>, <s>, </s>, one for each byte, and a few words with scores. */
void tiny_spm(gguf_maker *g);
enum { TINY_BPE_COUNT = 3 + 256 + 8, TINY_SPM_COUNT = 3 + 256 + 11 };

#endif
