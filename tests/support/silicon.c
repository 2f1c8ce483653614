/* Reads the silicon sets (see silicon.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/silicon.h"

const silicon_set silicon_sets[] = {
    {"A100", "fp16", 80, T_F16, 8, true, false},    {"A100", "bf16", 80, T_BF16, 8, false, false},
    {"A100", "tf32", 80, T_TF32, 4, false, false},  {"Ada", "E4M3", 89, T_E4M3, 32, true, false},
    {"H100", "fp16", 90, T_F16, 16, true, false},   {"H100", "E5M2", 90, T_E5M2, 32, true, true},
    {"B200", "E4M3", 100, T_E4M3, 32, true, false},
};
const int silicon_n_sets = sizeof silicon_sets / sizeof *silicon_sets;

int silicon_set_count(void)
{
    return silicon_n_sets;
}

void silicon_set_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s", silicon_sets[index].gpu, silicon_sets[index].type_name);
}

static float f32_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The bits of an f32 in the format, rounded to nearest even if it is not exact. */
static uint32_t pack_f32(uint32_t f32, int mantissa, int exponent, int bias)
{
    const uint32_t sign = (f32 >> 31) << (mantissa + exponent);
    const double x = fabs((double)f32_of(f32));
    if (x == 0)
        return sign;
    const int lowest = 1 - bias, top = ilogb(x) > lowest ? ilogb(x) : lowest;
    const double units = rint(ldexp(x, mantissa - top));
    return sign | (((uint32_t)(top - lowest) << mantissa) + (uint32_t)units);
}

static uint32_t pack(pvm_type type, uint32_t f32)
{
    switch (type) {
    case T_F16:
        return pack_f32(f32, 10, 5, 15);
    case T_BF16:
        return pack_f32(f32, 7, 8, 127);
    case T_E4M3:
        return pack_f32(f32, 3, 4, 7);
    case T_E5M2:
        return pack_f32(f32, 2, 5, 15);
    default:
        return f32;
    }
}

/* `count` numbers in base 16 or 2, separated by white space. Null if the file is missing or too short. */
static uint32_t *read_numbers(const silicon_set *set, char kind, const char *suffix, int base, int count)
{
    const char *folder = getenv("QDNN_SILICON_DIR");
    char path[1024], word[64];
    snprintf(path, sizeof path, "%s/%s/%s/%c_%s_%s.txt",
             folder ? folder : QDNN_SOURCE_DIR "/../shared/silicon", set->gpu, set->type_name, kind, set->gpu,
             suffix);
    FILE *file = fopen(path, "r");
    uint32_t *numbers = file ? malloc(sizeof *numbers * (size_t)count) : NULL;
    int n = 0;
    while (numbers && n < count && fscanf(file, "%63s", word) == 1)
        numbers[n++] = (uint32_t)strtoul(word, NULL, base);
    if (file)
        fclose(file);
    if (n == count)
        return numbers;
    free(numbers);
    return NULL;
}

static void pack_all(pvm_type type, uint32_t *numbers, int count)
{
    for (int i = 0; numbers && i < count; i++)
        numbers[i] = pack(type, numbers[i]);
}

bool silicon_load(const silicon_set *set, silicon_data *data)
{
    const int products = SILICON_LINES * set->k;
    memset(data, 0, sizeof *data);
    data->a = read_numbers(set, 'a', set->type_name, 16, products);
    data->b = read_numbers(set, 'b', set->type_name, 16, products);
    data->c = read_numbers(set, 'c', "fp32", 2, SILICON_LINES);
    data->c16 = read_numbers(set, 'c', "fp32", 2, SILICON_LINES);
    data->d32 = read_numbers(set, 'd', "fp32", 2, SILICON_LINES);
    if (set->has_f16)
        data->d16 = read_numbers(set, 'd', "fp16", 2, SILICON_LINES);
    pack_all(set->type, data->a, products);
    pack_all(set->type, data->b, products);
    pack_all(T_F16, data->c16, SILICON_LINES);
    pack_all(T_F16, data->d16, SILICON_LINES);
    if (data->a && data->b && data->c && data->c16 && data->d32 && (data->d16 || !set->has_f16))
        return true;
    silicon_free(data);
    return false;
}

void silicon_free(silicon_data *data)
{
    free(data->a);
    free(data->b);
    free(data->c);
    free(data->c16);
    free(data->d32);
    free(data->d16);
    memset(data, 0, sizeof *data);
}
