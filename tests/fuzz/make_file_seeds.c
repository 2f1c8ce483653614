/* The first inputs of fuzz_files: small files of each kind and scheme, made as the tests make theirs. */
#include "files/maker.h"

#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* maker.c reports failures to a test; here they end the program. */
bool test_check(bool ok, const char *file, int line, const char *expression)
{
    if (!ok) {
        fprintf(stderr, "%s:%d: %s\n", file, line, expression);
        exit(1);
    }
    return ok;
}

static const uint8_t zeros[256];

static void save(bytes b, const char *dir, const char *name, uint8_t kind)
{
    bytes seed = {0};
    bytes_put(&seed, &kind, 1);
    bytes_put(&seed, b.data, b.size);
    bytes_write(&seed, dir, name);
    bytes_free(&seed);
    bytes_free(&b);
}

static bytes gguf(void)
{
    gguf_maker g = {0};
    bytes strings = {0};
    bytes_number(&strings, 8, 4);
    bytes_number(&strings, 1, 8);
    gguf_string(&strings, "a");
    gguf_entry_string(&g, "general.name", "x");
    gguf_entry_u32(&g, "general.alignment", 32);
    gguf_entry(&g, "tokens", 9, strings.data, strings.size);
    bytes_free(&strings);
    gguf_tensor(&g, "a.weight", 2, 2, (const int64_t[]){2, 32}, zeros, 36);
    gguf_tensor(&g, "b.weight", 0, 1, (const int64_t[]){2}, zeros, 8);
    return gguf_make(&g);
}

static bytes words(void)
{
    st_maker s = {0};
    st_metadata(&s, "{\"quantization_config\":\"{\\\"quant_method\\\":\\\"gptq\\\",\\\"bits\\\":4}\"}");
    st_add(&s, "a.qweight", "I32", 2, 8, zeros, 64);
    st_add(&s, "a.qzeros", "I32", 1, 1, zeros, 4);
    st_add(&s, "a.scales", "F16", 1, 8, zeros, 16);
    st_add(&s, "a.g_idx", "I32", 16, 0, zeros, 64);
    st_add(&s, "b.weight_packed", "I32", 2, 1, zeros, 8);
    st_add(&s, "b.weight_scale", "BF16", 2, 1, zeros, 4);
    st_add(&s, "b.weight_shape", "I64", 2, 0, zeros, 16);
    st_add(&s, "b.weight_zero_point", "I32", 1, 1, zeros, 4);
    return st_make(&s);
}

static bytes small(void)
{
    st_maker s = {0};
    const char *state = "{\"blocksize\":64,\"shape\":[2,8],\"nested_blocksize\":256,\"nested_offset\":0.5}";
    st_add(&s, "a.weight", "U8", 8, 1, zeros, 8);
    st_add(&s, "a.weight.absmax", "U8", 1, 0, zeros, 1);
    st_add(&s, "a.weight.nested_absmax", "F32", 1, 0, zeros, 4);
    st_add(&s, "a.weight.quant_state.bitsandbytes__nf4", "U8", (int64_t)strlen(state), 0, state,
           strlen(state));
    st_add(&s, "b.weight", "U8", 1, 8, zeros, 8);
    st_add(&s, "b.weight_scale", "F8_E4M3", 1, 1, zeros, 1);
    st_tensor(&s, "b.weight_scale_2", "F32", 0, NULL, zeros, 4);
    st_add(&s, "c.weight", "I8", 2, 4, zeros, 8);
    st_add(&s, "c.weight_scale", "F32", 2, 1, zeros, 8);
    st_tensor(&s, "d_blocks", "U8", 3, (const int64_t[]){1, 1, 16}, zeros, 16);
    st_tensor(&s, "d_scales", "U8", 2, (const int64_t[]){1, 1}, zeros, 1);
    return st_make(&s);
}

int main(int argc, char **argv)
{
    bytes index = {0};
    if (argc != 2)
        return 2;
    mkdir(argv[1], 0777);
    save(gguf(), argv[1], "gguf", 0);
    save(words(), argv[1], "words", 0);
    save(small(), argv[1], "small", 0);
    bytes_text(&index, "{\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"2.safetensors\"}}");
    save(index, argv[1], "index", 1);
    return 0;
}
