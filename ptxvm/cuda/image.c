/* Code images passed by programs: PTX text, fat binaries that contain PTX, and machine code, which is rejected.
 *
 * A fat binary is a header (magic, version 1, its own length, the length of the rest) and entries, each a header
 * and a payload. The fat binaries inside a program are referenced by a wrapper that contains a pointer to one. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptxvm/module.h"

#define ELF_MAGIC     0x464c457fu
#define WRAPPER_MAGIC 0x466243b1u
#define FATBIN_MAGIC  0xba55ed50u

/* Offsets into the header of an entry, which has ENTRY_BYTES or more. */
enum {
    ENTRY_KIND = 0, /* 16 bits */
    ENTRY_HEADER_BYTES = 4,
    ENTRY_PAYLOAD_BYTES = 8, /* 64 bits */
    ENTRY_COMPRESSED_BYTES = 16,
    ENTRY_SM = 28,
    ENTRY_FLAGS = 40,     /* 64 bits */
    ENTRY_RAW_BYTES = 56, /* 64 bits; of a compressed one */
    ENTRY_BYTES = 64
};
enum { KIND_PTX = 1, KIND_ELF = 2, FLAG_LZ4 = 0x2000, FLAG_ZSTD = 0x8000 };

static uint64_t field(const uint8_t *at, int bytes)
{
    uint64_t value = 0;
    memcpy(&value, at, (size_t)bytes);
    return value;
}

static CUresult __attribute__((format(printf, 3, 4)))
refuse(cuda_image *image, CUresult code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(image->why, sizeof image->why, format, args);
    va_end(args);
    return code;
}

static CUresult refuse_binary(cuda_image *image)
{
    return refuse(image, CUDA_ERROR_NO_BINARY_FOR_GPU,
                  "ptxvm runs PTX text, and this image is machine code for a GPU (a cubin, or a fat binary "
                  "without PTX): compile it to PTX (nvcc -ptx, NVRTC without a real architecture, -gencode "
                  "arch=compute_XX,code=compute_XX) and load that");
}

/* ---- One entry ---- */

typedef struct entry {
    const uint8_t *header, *payload;
    uint64_t payload_bytes;
} entry;

/* Reads the entry at *at, which moves past it; false: it does not fit into the rest. */
static bool next_entry(const uint8_t **at, const uint8_t *end, entry *e)
{
    if ((size_t)(end - *at) < ENTRY_BYTES)
        return false;
    uint64_t left = (uint64_t)(end - *at), header = field(*at + ENTRY_HEADER_BYTES, 4);
    uint64_t payload = field(*at + ENTRY_PAYLOAD_BYTES, 8);
    if (header < ENTRY_BYTES || header > left || payload > left - header)
        return false;
    *e = (entry){*at, *at + header, payload};
    *at += header + payload;
    return true;
}

static CUresult expand(const entry *e, uint64_t flags, char *text, uint64_t raw, cuda_image *image)
{
    uint64_t bytes = field(e->header + ENTRY_COMPRESSED_BYTES, 4);
    expand_result result = EXPAND_DAMAGED;
    if (bytes <= e->payload_bytes)
        result = flags & FLAG_ZSTD ? expand_zstd(e->payload, bytes, (uint8_t *)text, raw)
                 : expand_lz4(e->payload, bytes, (uint8_t *)text, raw) ? EXPAND_OK
                                                                       : EXPAND_DAMAGED;
    if (result == EXPAND_NO_LIBRARY)
        return refuse(
            image, CUDA_ERROR_NO_BINARY_FOR_GPU,
            "the PTX of this fat binary is compressed with zstd, and libzstd.so.1 cannot be opened: "
            "install it (PTXVM_LIBZSTD names another file), or compile with nvcc --no-compress");
    if (result == EXPAND_DAMAGED)
        return refuse(image, CUDA_ERROR_INVALID_IMAGE, "the compressed PTX of this fat binary is damaged");
    return CUDA_SUCCESS;
}

/* Extracts the text of an entry to image->text. *left is what may still be extracted of this fat binary: a few megabytes
 * can expand to the limit many times. */
static CUresult extract(const entry *e, cuda_image *image, uint64_t *left)
{
    uint64_t flags = field(e->header + ENTRY_FLAGS, 8);
    bool compressed = flags & (FLAG_LZ4 | FLAG_ZSTD);
    uint64_t raw = compressed ? field(e->header + ENTRY_RAW_BYTES, 8) : e->payload_bytes;
    if (raw > *left)
        return refuse(image, CUDA_ERROR_INVALID_IMAGE,
                      "%llu bytes of PTX text in a fat binary%s: the limit is %s", (unsigned long long)raw,
                      *left < cuda.limits[PTXVM_LIMIT_TEXT] ? " that has expanded to as many before" : "",
                      ptxvm_limit_name(PTXVM_LIMIT_TEXT));
    *left -= raw;
    char *text = malloc(raw + 1);
    if (!text)
        return refuse(image, CUDA_ERROR_OUT_OF_MEMORY, "no memory for the PTX of a fat binary");
    CUresult result = CUDA_SUCCESS;
    if (compressed)
        result = expand(e, flags, text, raw, image);
    else
        memcpy(text, e->payload, raw);
    if (result) {
        free(text);
        return result;
    }
    text[raw] = 0;
    image->owned = text;
    image->text = text;
    image->length = strlen(text);
    return CUDA_SUCCESS;
}

/* ---- Choosing an entry ---- */

/* The .target in a text; false: there is none. */
static bool text_target(const char *text, pvm_target *target)
{
    char start[40], name[20];
    for (const char *at = text; (at = strchr(at, '.')); at++) {
        if (strncmp(at, ".target", 7) != 0)
            continue;
        snprintf(start, sizeof start, "%.39s", at); /* sscanf measures all of its text each time */
        if (sscanf(start, ".target %19[a-z0-9_]", name) == 1 && pvm_target_from_name(name, target))
            return true;
    }
    return false;
}

static int suffix_rank(char suffix)
{
    return suffix == 'a' ? 2 : suffix == 'f' ? 1 : 0;
}

/* Of the texts for that SM, the most specific one that runs on the device (90a before 90). If there is none:
 * success, with a null image->text. */
static CUresult choose_of_sm(const uint8_t *at, const uint8_t *end, uint64_t sm, pvm_target device,
                             cuda_image *image, uint64_t *left)
{
    entry e;
    int best = -1;
    while (next_entry(&at, end, &e)) {
        if (field(e.header + ENTRY_KIND, 2) != KIND_PTX || field(e.header + ENTRY_SM, 4) != sm)
            continue;
        cuda_image found = {0};
        pvm_target target = {0};
        CUresult result = extract(&e, &found, left);
        if (result) {
            memcpy(image->why, found.why, sizeof image->why);
            return result;
        }
        int rank = text_target(found.text, &target) && pvm_target_runs_on(target, device)
                       ? suffix_rank(target.suffix)
                       : -1;
        if (rank > best) {
            image_close(image);
            *image = found;
            best = rank;
        } else
            image_close(&found);
    }
    return CUDA_SUCCESS;
}

/* Counts the entries by kind and lists the SMs of PTX; false: they do not end where the fat binary does. */
static bool survey(const uint8_t *at, const uint8_t *end, int *n_ptx, char *list, size_t size)
{
    entry e;
    size_t used = 0;
    *n_ptx = 0;
    list[0] = 0;
    while (at < end) {
        if (!next_entry(&at, end, &e))
            return false;
        if (field(e.header + ENTRY_KIND, 2) != KIND_PTX)
            continue;
        int n = snprintf(list + used, size - used, "%ssm_%u", *n_ptx ? ", " : "",
                         (unsigned)field(e.header + ENTRY_SM, 4));
        used = n > 0 && used + (size_t)n < size ? used + (size_t)n : used;
        ++*n_ptx;
    }
    return true;
}

static CUresult open_fatbin(const uint8_t *data, size_t bytes, cuda_image *image)
{
    static const char damaged[] = "the fat binary is damaged: its parts do not fit into its length";
    enum { HEADER_BYTES = 16 };
    pvm_target device = {0};
    int n_ptx;
    char list[200];
    if (bytes < HEADER_BYTES || field(data + 4, 2) != 1 || field(data + 6, 2) != HEADER_BYTES)
        return refuse(image, CUDA_ERROR_INVALID_IMAGE, "the fat binary has an unknown version");
    uint64_t length = field(data + 8, 8);
    if (length > bytes - HEADER_BYTES || length > PTRDIFF_MAX)
        return refuse(image, CUDA_ERROR_INVALID_IMAGE, "%s", damaged);
    const uint8_t *first = data + HEADER_BYTES, *end = first + length;
    if (!survey(first, end, &n_ptx, list, sizeof list))
        return refuse(image, CUDA_ERROR_INVALID_IMAGE, "%s", damaged);
    if (!n_ptx)
        return refuse_binary(image);
    pvm_target_from_name(cuda.sm, &device);
    uint64_t left = cuda.limits[PTXVM_LIMIT_TEXT];
    for (int sm = device.sm; sm > 0; sm--) {
        CUresult result = choose_of_sm(first, end, (uint64_t)sm, device, image, &left);
        if (result || image->text)
            return result;
    }
    return refuse(image, CUDA_ERROR_NO_BINARY_FOR_GPU,
                  "the fat binary holds PTX for %s, none of which runs on %s", list, cuda.sm);
}

/* ---- Images ---- */

/* After the magic there are a version and a pointer, which is valid only inside a running program. */
static CUresult open_wrapper(const uint8_t *data, size_t bytes, cuda_image *image)
{
    const uint8_t *inner;
    if (bytes != IMAGE_IN_MEMORY)
        return refuse(image, CUDA_ERROR_INVALID_IMAGE,
                      "the wrapper of a fat binary cannot be loaded from a file");
    memcpy(&inner, data + 8, sizeof inner);
    if (!inner || field(inner, 4) != FATBIN_MAGIC)
        return refuse(image, CUDA_ERROR_INVALID_IMAGE, "the wrapper does not point to a fat binary");
    return open_fatbin(inner, bytes, image);
}

CUresult image_open(const void *data, size_t bytes, cuda_image *image)
{
    const char *p = data;
    *image = (cuda_image){0};
    /* Four bytes exist unless a shorter text ends before. */
    uint32_t magic = bytes >= 4 && p[0] && p[1] && p[2] ? (uint32_t)field(data, 4) : 0;
    if (magic == FATBIN_MAGIC)
        return open_fatbin(data, bytes, image);
    if (magic == WRAPPER_MAGIC)
        return open_wrapper(data, bytes, image);
    if (magic == ELF_MAGIC)
        return refuse_binary(image);
    image->text = p;
    image->length = strlen(p);
    if (!strstr(p, ".version"))
        return refuse(image, CUDA_ERROR_INVALID_IMAGE,
                      "the image is neither PTX text (it has no .version) nor a known binary format");
    return CUDA_SUCCESS;
}

void image_close(cuda_image *image)
{
    free(image->owned);
    image->owned = NULL;
    image->text = NULL;
}
