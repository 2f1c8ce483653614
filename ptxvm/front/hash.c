/* Hashes with a random key. Each step multiplies by a secret number and folds the 128 bits of the product. */
#include "ptxvm/hash.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t key[2];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Where there is no /dev/urandom, the time and the place of the stack must do. */
static void make_key(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    int file = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    if (file < 0 || read(file, key, sizeof key) != (ssize_t)sizeof key) {
        key[0] = (uint64_t)now.tv_nsec * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)now.tv_sec;
        key[1] = (uint64_t)(uintptr_t)&now * UINT64_C(0xbf58476d1ce4e5b9) ^ (uint64_t)getpid();
    }
    if (file >= 0)
        close(file);
    key[1] |= 1; /* never 0, which would give 0 for all */
}

static uint64_t fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* The low bits choose the slot, but after a fold they may depend on a few bits of the key alone: with 1 key in 30, keys
 * that differ in their upper bits would share a few slots. So all bits are mixed into the result. */
static uint32_t finish(uint64_t h)
{
    return (uint32_t)((h ^ h >> 32) * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

uint32_t pvm_hash_pair_keyed(const uint64_t with[2], uint64_t a, uint64_t b)
{
    return finish(fold(fold(a ^ with[0], with[1]) ^ b, with[1]));
}

uint32_t pvm_hash_text_keyed(const uint64_t with[2], const char *text, size_t length)
{
    uint64_t h = with[0] ^ length, word;
    for (; length >= sizeof word; text += sizeof word, length -= sizeof word) {
        memcpy(&word, text, sizeof word);
        h = fold(h ^ word, with[1]);
    }
    word = 0;
    memcpy(&word, text, length);
    return finish(fold(h ^ word, with[1]));
}

uint32_t pvm_hash_pair(uint64_t a, uint64_t b)
{
    pthread_once(&once, make_key);
    return pvm_hash_pair_keyed(key, a, b);
}

uint32_t pvm_hash_text(const char *text, size_t length)
{
    pthread_once(&once, make_key);
    return pvm_hash_text_keyed(key, text, length);
}
