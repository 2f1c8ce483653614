/* Decompression of text in fat binaries: LZ4 blocks, and zstd through the system's library. The input is
 * untrusted: every length is checked against what is available. */
#include "internal.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* ---- LZ4: sequences of a token, literals, and a match in the output so far ---- */

/* A length whose four bits are all set continues in further bytes, up to one that is not 255. */
static bool read_length(const uint8_t **from, const uint8_t *end, size_t *length)
{
    uint8_t more = 255;
    if (*length < 15)
        return true;
    while (more == 255) {
        if (*from == end)
            return false;
        more = *(*from)++;
        *length += more;
    }
    return true;
}

/* The match may overlap itself: copied one byte at a time. */
static bool copy_match(uint8_t *to, size_t at, size_t size, size_t distance, size_t length)
{
    if (!distance || distance > at || length > size - at)
        return false;
    for (size_t i = at; i < at + length; i++)
        to[i] = to[i - distance];
    return true;
}

bool expand_lz4(const uint8_t *from, size_t bytes, uint8_t *to, size_t size)
{
    const uint8_t *end = from + bytes;
    size_t at = 0;
    while (from < end) {
        uint8_t token = *from++;
        size_t literals = token >> 4, match = token & 15;
        if (!read_length(&from, end, &literals) || literals > (size_t)(end - from) || literals > size - at)
            return false;
        memcpy(to + at, from, literals);
        from += literals;
        at += literals;
        if (from == end) /* the last sequence has no match */
            return at == size;
        if (end - from < 2)
            return false;
        size_t distance = from[0] | (size_t)from[1] << 8;
        from += 2;
        if (!read_length(&from, end, &match) || !copy_match(to, at, size, distance, match + 4))
            return false;
        at += match + 4;
    }
    return false;
}

/* ---- zstd ---- */

typedef size_t zstd_decompress_fn(void *to, size_t size, const void *from, size_t bytes);
typedef unsigned zstd_is_error_fn(size_t code);

/* Gets a function of the library through memory, because ISO C has no cast from void * to a function
 * pointer. */
static bool find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol;
}

expand_result expand_zstd(const uint8_t *from, size_t bytes, uint8_t *to, size_t size)
{
    const char *name = getenv("PTXVM_LIBZSTD");
    void *library = dlopen(name && *name ? name : "libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    zstd_decompress_fn *decompress;
    zstd_is_error_fn *is_error;
    if (!library)
        return EXPAND_NO_LIBRARY;
    expand_result result = EXPAND_NO_LIBRARY;
    if (find(library, "ZSTD_decompress", &decompress) && find(library, "ZSTD_isError", &is_error)) {
        size_t n = decompress(to, size, from, bytes);
        result = !is_error(n) && n == size ? EXPAND_OK : EXPAND_DAMAGED;
    }
    dlclose(library);
    return result;
}
