/* Hashes for tables whose keys come from a PTX file: names, numbers of registers, constants. They depend on a random
 * key of the process, so that no file can be made of keys that all collide. Nothing may depend on their order. */
#ifndef PTXVM_HASH_H
#define PTXVM_HASH_H

#include <stddef.h>
#include <stdint.h>

uint32_t pvm_hash_text(const char *text, size_t length);
uint32_t pvm_hash_pair(uint64_t a, uint64_t b);
/* The same with a given key, whose second number is odd: for tests, which must not depend on chance. */
uint32_t pvm_hash_text_keyed(const uint64_t with[2], const char *text, size_t length);
uint32_t pvm_hash_pair_keyed(const uint64_t with[2], uint64_t a, uint64_t b);

#endif
