/* What a kernel may be specialised to: the table of settings, from text and back. */
#include "kernels/kernels.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A value of an enumerated setting. */
typedef struct choice {
    const char *name;
    int value;
} choice;

static const choice data_choices[] = {
    {"f32", QDNN_DATA_F32}, {"f16", QDNN_DATA_F16}, {"bf16", QDNN_DATA_BF16}, {0}};
static const choice zero_choices[] = {
    {"u8", QDNN_DATA_U8}, {"f32", QDNN_DATA_F32}, {"f16", QDNN_DATA_F16}, {"bf16", QDNN_DATA_BF16}, {0}};
static const choice nibble_choices[] = {
    {"low", QDNN_NIBBLE_LOW_FIRST}, {"high", QDNN_NIBBLE_HIGH_FIRST}, {0}};
static const choice rounding_choices[] = {
    {"even", QDNN_ROUND_TIES_TO_EVEN}, {"away", QDNN_ROUND_TIES_AWAY}, {0}};
static const choice division_choices[] = {
    {"exact", QDNN_DIVIDE_EXACT}, {"reciprocal", QDNN_DIVIDE_RECIPROCAL}, {0}};

/* One row a setting. Enumerated settings have choices and lie at `offset` as an int; of the numbers, the
 * floor is an f32 and the others are u64. */
typedef struct setting {
    kernel_key_info info;
    const char *prefix; /* before the value in a label */
    const choice *choices;
    size_t offset, size;
} setting;

_Static_assert(sizeof(qdnnDataType_t) == sizeof(int), "enumerated settings are accessed as int");

#define FIELD(name) offsetof(kernel_spec, name), sizeof((kernel_spec){0}.name)
static const setting settings[] = {
    {{KERNEL_KEY_DATA, "data", "f32, f16, bf16", "f32"}, "", data_choices, FIELD(data)},
    {{KERNEL_KEY_SCALE, "scale", "f32, f16, bf16", "f32"}, "", data_choices, FIELD(scale)},
    {{KERNEL_KEY_ZERO, "zero", "u8, f32, f16, bf16", "u8"}, "", zero_choices, FIELD(zero)},
    {{KERNEL_KEY_GROUP_SIZE, "group_size", "1 to 2^40", "128"}, "g", NULL, FIELD(group_size)},
    {{KERNEL_KEY_CHANNELS, "channels", "0 to 2^40", "0"}, "c", NULL, FIELD(channels)},
    {{KERNEL_KEY_NIBBLE_ORDER, "nibble_order", "low, high", "low"}, "", nibble_choices, FIELD(nibble_order)},
    {{KERNEL_KEY_ROUNDING, "rounding", "even, away", "even"}, "", rounding_choices, FIELD(rounding)},
    {{KERNEL_KEY_DIVISION, "division", "exact, reciprocal", "exact"}, "", division_choices, FIELD(division)},
    {{KERNEL_KEY_FLOOR, "floor", "a finite number, not negative", "1e-12"}, "floor", NULL, FIELD(floor)},
};
enum { SETTING_COUNT = sizeof settings / sizeof settings[0] };

/* Offsets within a group, or within one turn of all channels, stay far below 2^63 everywhere, in bytes too.
 */
static const uint64_t largest_group = UINT64_C(1) << 40, largest_turn = UINT64_C(1) << 48;

static bool refuse(char *error, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static bool refuse(char *error, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, size, format, args);
    va_end(args);
    return false;
}

static int *enum_field(const setting *s, kernel_spec *spec)
{
    return (int *)((char *)spec + s->offset);
}

static uint64_t *number_field(const setting *s, kernel_spec *spec)
{
    return (uint64_t *)((char *)spec + s->offset);
}

static const choice *choice_of(const setting *s, const kernel_spec *spec)
{
    int value = *enum_field(s, (kernel_spec *)spec);
    for (const choice *c = s->choices; c->name; c++)
        if (c->value == value)
            return c;
    return NULL;
}

kernel_spec kernel_spec_default(void)
{
    return (kernel_spec){.data = QDNN_DATA_F32,
                         .scale = QDNN_DATA_F32,
                         .zero = QDNN_DATA_U8,
                         .group_size = 128,
                         .channels = 0,
                         .nibble_order = QDNN_NIBBLE_LOW_FIRST,
                         .rounding = QDNN_ROUND_TIES_TO_EVEN,
                         .division = QDNN_DIVIDE_EXACT,
                         .floor = 1e-12f};
}

const kernel_key_info *kernel_key_at(int index)
{
    return index >= 0 && index < SETTING_COUNT ? &settings[index].info : NULL;
}

/* Digits alone: strtoull would take signs and spaces. */
static bool parse_u64(const char *text, uint64_t *value)
{
    if (!*text || strspn(text, "0123456789") != strlen(text))
        return false;
    errno = 0;
    *value = strtoull(text, NULL, 10);
    return errno == 0;
}

/* "0f2B8CBCCC": the bits of an f32, as PTX writes them and as kernel_spec_text prints them. */
static bool parse_f32_bits(const char *text, float *value)
{
    if (strncmp(text, "0f", 2) != 0 || strlen(text) != 10 || strspn(text + 2, "0123456789abcdefABCDEF") != 8)
        return false;
    uint32_t bits = (uint32_t)strtoul(text + 2, NULL, 16);
    memcpy(value, &bits, sizeof bits);
    return true;
}

/* The rest of a decimal number: nothing, or "e-12". strtol alone would skip spaces. */
static bool parse_exponent(const char *text, long *value)
{
    *value = 0;
    if (!*text)
        return true;
    const char *digits = text + 1 + (text[1] == '+' || text[1] == '-');
    if ((*text != 'e' && *text != 'E') || !*digits || strspn(digits, "0123456789") != strlen(digits))
        return false;
    *value = strtol(text + 1, NULL, 10);
    return *value >= -1000 && *value <= 1000;
}

/* A decimal number ("1e-12") in any locale: strtof alone would follow the locale's decimal point, so it gets
 * digits only. */
static bool parse_f32(const char *text, float *value)
{
    if (parse_f32_bits(text, value))
        return true;
    char number[64];
    int n = 0, places = 0;
    bool point = false;
    const char *p = text;
    for (; (*p >= '0' && *p <= '9') || (*p == '.' && !point); p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        if (n >= 40)
            return false;
        number[n++] = *p;
        places += point;
    }
    long exponent;
    if (n == 0 || !parse_exponent(p, &exponent))
        return false;
    snprintf(number + n, sizeof number - (size_t)n, "e%ld", exponent - places);
    *value = strtof(number, NULL);
    return true;
}

static bool set_choice(const setting *s, kernel_spec *spec, const char *value)
{
    for (const choice *c = s->choices; c->name; c++)
        if (strcmp(c->name, value) == 0) {
            *enum_field(s, spec) = c->value;
            return true;
        }
    return false;
}

static bool set_field(const setting *s, kernel_spec *spec, const char *value)
{
    if (s->choices)
        return set_choice(s, spec, value);
    if (s->info.key == KERNEL_KEY_FLOOR)
        return parse_f32(value, &spec->floor);
    return parse_u64(value, number_field(s, spec));
}

static void list_keys(const kernel_row *row, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < SETTING_COUNT; i++)
        if ((row->keys & settings[i].info.key) && used < size)
            used +=
                (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", settings[i].info.name);
}

static const setting *find_setting(const kernel_row *row, const char *key)
{
    for (int i = 0; i < SETTING_COUNT; i++)
        if (strcmp(settings[i].info.name, key) == 0 && (row->keys & settings[i].info.key))
            return &settings[i];
    return NULL;
}

bool kernel_takes(const kernel_row *row, const char *key)
{
    return find_setting(row, key) != NULL;
}

bool kernel_spec_set(const kernel_row *row, kernel_spec *spec, const char *key, const char *value,
                     char *error, size_t error_size)
{
    const setting *s = find_setting(row, key);
    if (!s) {
        char keys[256];
        list_keys(row, keys, sizeof keys);
        return refuse(error, error_size, "%s has no setting '%s'; it takes %s", row->name, key, keys);
    }
    if (!set_field(s, spec, value))
        return refuse(error, error_size, "%s=%s: it must be %s", key, value, s->info.values);
    return kernel_spec_check(row, spec, error, error_size);
}

bool kernel_spec_check(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    for (int i = 0; i < SETTING_COUNT; i++) {
        const setting *s = &settings[i];
        if ((row->keys & s->info.key) && s->choices && !choice_of(s, spec))
            return refuse(error, error_size, "%s is %d; it must be %s", s->info.name,
                          *enum_field(s, (kernel_spec *)spec), s->info.values);
    }
    if (spec->group_size < 1 || spec->group_size > largest_group)
        return refuse(error, error_size, "group_size is %llu; it must be at least 1 and at most 2^40",
                      (unsigned long long)spec->group_size);
    if (spec->channels > largest_group)
        return refuse(error, error_size, "channels is %llu; it must be at most 2^40",
                      (unsigned long long)spec->channels);
    if (spec->channels > 1 && spec->group_size > largest_turn / spec->channels)
        return refuse(error, error_size, "group_size * channels is %llu * %llu; it must be at most 2^48",
                      (unsigned long long)spec->group_size, (unsigned long long)spec->channels);
    if (!(spec->floor >= 0 && spec->floor <= 3.40282347e38f))
        return refuse(error, error_size, "floor must be a finite number, not negative");
    return true;
}

kernel_spec kernel_spec_normal(const kernel_row *row, const kernel_spec *spec)
{
    kernel_spec normal = kernel_spec_default();
    for (int i = 0; i < SETTING_COUNT; i++) {
        const setting *s = &settings[i];
        if (row->keys & s->info.key)
            memcpy((char *)&normal + s->offset, (const char *)spec + s->offset, s->size);
    }
    if (normal.channels == 1)
        normal.group_size = 1;
    return normal;
}

/* The floor as its bits: exact, and the same in every locale. */
static int print_value(const setting *s, const kernel_spec *spec, char *text, size_t size)
{
    if (s->choices) {
        const choice *c = choice_of(s, spec);
        return snprintf(text, size, "%s", c ? c->name : "?");
    }
    if (s->info.key != KERNEL_KEY_FLOOR)
        return snprintf(text, size, "%llu", (unsigned long long)*number_field(s, (kernel_spec *)spec));
    uint32_t bits;
    memcpy(&bits, &spec->floor, sizeof bits);
    return snprintf(text, size, "0f%08X", (unsigned)bits);
}

void kernel_spec_text(const kernel_row *row, const kernel_spec *spec, char *text, size_t size)
{
    kernel_spec normal = kernel_spec_normal(row, spec);
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < SETTING_COUNT; i++) {
        if (!(row->keys & settings[i].info.key))
            continue;
        char value[64];
        print_value(&settings[i], &normal, value, sizeof value);
        if (used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s=%s", used ? " " : "",
                                     settings[i].info.name, value);
    }
}

void kernel_spec_label(const kernel_row *row, const kernel_spec *spec, char *text, size_t size)
{
    kernel_spec preset = kernel_spec_default(), normal = kernel_spec_normal(row, spec);
    const unsigned always = KERNEL_KEY_DATA | KERNEL_KEY_SCALE | KERNEL_KEY_ZERO | KERNEL_KEY_GROUP_SIZE;
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < SETTING_COUNT; i++) {
        const setting *s = &settings[i];
        char value[64], usual[64];
        print_value(s, &normal, value, sizeof value);
        print_value(s, &preset, usual, sizeof usual);
        bool named = (s->info.key & always) || strcmp(value, usual) != 0;
        if (!(row->keys & s->info.key) || !named || used >= size)
            continue;
        used += (size_t)snprintf(text + used, size - used, "%s%s%s", used ? "_" : "", s->prefix, value);
    }
}
