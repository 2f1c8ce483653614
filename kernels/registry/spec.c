/* The settings that a kernel can be specialised for: their table, and conversion from text and back. */
#include "kernels/formats/format.h"
#include "kernels/operations.h"

#include <assert.h>
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

static const choice data_types[] = {
    {"f32", QDNN_DATA_F32}, {"f16", QDNN_DATA_F16}, {"bf16", QDNN_DATA_BF16}, {"f64", QDNN_DATA_F64}, {0}};
static const choice scale_types[] = {{"f32", QDNN_SCALE_F32},   {"f16", QDNN_SCALE_F16},
                                     {"bf16", QDNN_SCALE_BF16}, {"e4m3", QDNN_SCALE_E4M3},
                                     {"e8m0", QDNN_SCALE_E8M0}, {0}};
static const choice zero_types[] = {{"default", 0},         {"u8", QDNN_DATA_U8},     {"i8", QDNN_DATA_I8},
                                    {"u32", QDNN_DATA_U32}, {"i32", QDNN_DATA_I32},   {"f32", QDNN_DATA_F32},
                                    {"f16", QDNN_DATA_F16}, {"bf16", QDNN_DATA_BF16}, {0}};
static const choice group_ways[] = {{"none", QDNN_GROUPS_DEFAULT},
                                    {"flat", QDNN_GROUPS_FLAT},
                                    {"rows", QDNN_GROUPS_ROWS},
                                    {"columns", QDNN_GROUPS_COLUMNS},
                                    {0}};
static const choice layouts[] = {{"bytes", QDNN_LAYOUT_BYTES},
                                 {"interleaved", QDNN_LAYOUT_WORDS_INTERLEAVED},
                                 {"words", QDNN_LAYOUT_WORDS_ROWS},
                                 {"awq", QDNN_LAYOUT_AWQ},
                                 {0}};
static const choice code_kinds[] = {{"default", QDNN_CODE_DEFAULT},
                                    {"offset", QDNN_CODE_OFFSET},
                                    {"unsigned", QDNN_CODE_UNSIGNED},
                                    {"twos", QDNN_CODE_TWOS_COMPLEMENT},
                                    {0}};
static const choice nibbles[] = {{"low", QDNN_NIBBLE_LOW_FIRST}, {"high", QDNN_NIBBLE_HIGH_FIRST}, {0}};
static const choice roundings[] = {{"even", QDNN_ROUND_TIES_TO_EVEN}, {"away", QDNN_ROUND_TIES_AWAY}, {0}};
static const choice divisions[] = {{"exact", QDNN_DIVIDE_EXACT}, {"reciprocal", QDNN_DIVIDE_RECIPROCAL}, {0}};
static const choice ranges[] = {{"with_zero", QDNN_RANGE_WITH_ZERO}, {"tight", QDNN_RANGE_TIGHT}, {0}};
static const choice mx_roundings[] = {
    {"floor", QDNN_MX_FLOOR}, {"ceil", QDNN_MX_CEIL}, {"even", QDNN_MX_EVEN}, {0}};
static const choice orders[] = {
    {"usual", QDNN_SCALE_ORDER_DEFAULT}, {"transposed", QDNN_SCALE_ORDER_TRANSPOSED}, {0}};
static const choice swizzles[] = {{"linear", QDNN_SWIZZLE_NONE}, {"128x4", QDNN_SWIZZLE_128X4}, {0}};
static const choice globals[] = {{"no", 0}, {"yes", 1}, {"reciprocal", 2}, {0}};
static const choice yes_or_no[] = {{"no", 0}, {"yes", 1}, {0}};
static const choice bit_counts[] = {{"8", 8}, {"4", 4}, {"2", 2}, {0}};
static const choice scale_modes[] = {
    {"batch", QDNN_SCALE_MODE_BATCH}, {"ema", QDNN_SCALE_MODE_EMA}, {"fixed", QDNN_SCALE_MODE_FIXED}, {0}};
static const choice backwards[] = {{"clipped", QDNN_BACKWARD_CLIPPED},
                                   {"identity", QDNN_BACKWARD_IDENTITY},
                                   {"tanh", QDNN_BACKWARD_TANH},
                                   {"hard_tanh", QDNN_BACKWARD_HARD_TANH},
                                   {0}};

static const choice outputs[] = {
    {"f32", QDNN_DATA_F32}, {"f16", QDNN_DATA_F16}, {"bf16", QDNN_DATA_BF16}, {0}};
static const choice reductions[] = {{"columns", KERNEL_K_COLUMNS}, {"rows", KERNEL_K_ROWS}, {0}};
static const choice alphas[] = {{"none", QDNN_ALPHA_NONE},
                                {"number", QDNN_ALPHA_NUMBER},
                                {"one", QDNN_ALPHA_ONE},
                                {"column", QDNN_ALPHA_COLUMN},
                                {0}};
static const choice biases[] = {
    {"none", 0}, {"f32", QDNN_DATA_F32}, {"f16", QDNN_DATA_F16}, {"bf16", QDNN_DATA_BF16}, {0}};
static const choice activations[] = {
    {"none", QDNN_ACTIVATION_NONE},           {"relu", QDNN_ACTIVATION_RELU},
    {"gelu_tanh", QDNN_ACTIVATION_GELU_TANH}, {"gelu_erf", QDNN_ACTIVATION_GELU_ERF},
    {"silu", QDNN_ACTIVATION_SILU},           {0}};
static const choice products[] = {{"staged", KERNEL_PRODUCT_STAGED},     {"gemv", KERNEL_PRODUCT_GEMV},
                                  {"ragged", KERNEL_PRODUCT_RAGGED},     {"blocks", KERNEL_PRODUCT_BLOCKS},
                                  {"ternary", KERNEL_PRODUCT_TERNARY},   {"columns", KERNEL_PRODUCT_COLUMNS},
                                  {"lanewise", KERNEL_PRODUCT_LANEWISE}, {"join", KERNEL_PRODUCT_JOIN},
                                  {"tile", KERNEL_PRODUCT_TILE},         {"stream", KERNEL_PRODUCT_STREAM},
                                  {"stored", KERNEL_PRODUCT_STORED},     {0}};

static const choice norms[] = {{"rms", KERNEL_NORM_RMS}, {"layer", KERNEL_NORM_LAYER}, {0}};
static const choice pointwises[] = {{"add", KERNEL_POINTWISE_ADD},
                                    {"mul", KERNEL_POINTWISE_MUL},
                                    {"function", KERNEL_POINTWISE_FUNCTION},
                                    {"gated", KERNEL_POINTWISE_GATED},
                                    {0}};
static const choice functions[] = {{"none", QDNN_ACTIVATION_NONE},
                                   {"relu", QDNN_ACTIVATION_RELU},
                                   {"gelu_tanh", QDNN_ACTIVATION_GELU_TANH},
                                   {"gelu_erf", QDNN_ACTIVATION_GELU_ERF},
                                   {"silu", QDNN_ACTIVATION_SILU},
                                   {"tanh", QDNN_ACTIVATION_TANH},
                                   {"sigmoid", QDNN_ACTIVATION_SIGMOID},
                                   {"relu_squared", QDNN_ACTIVATION_RELU_SQUARED},
                                   {"softcap", QDNN_ACTIVATION_SOFTCAP},
                                   {"clamped_silu", QDNN_ACTIVATION_CLAMPED_SILU},
                                   {0}};
static const choice b_places[] = {{"none", KERNEL_B_NONE},
                                  {"same", KERNEL_B_SAME},
                                  {"row", KERNEL_B_ROW},
                                  {"number", KERNEL_B_NUMBER},
                                  {"second_half", KERNEL_B_SECOND_HALF},
                                  {"first_half", KERNEL_B_FIRST_HALF},
                                  {"interleaved", KERNEL_B_INTERLEAVED},
                                  {0}};

static const choice rope_sections[] = {{"one", KERNEL_ROPE_ONE},
                                       {"contiguous", KERNEL_ROPE_CONTIGUOUS},
                                       {"interleaved", KERNEL_ROPE_INTERLEAVED},
                                       {0}};
static const choice kv_scales[] = {{"token", KERNEL_KV_BY_TOKEN},
                                   {"group", KERNEL_KV_BY_GROUP},
                                   {"head", KERNEL_KV_BY_HEAD},
                                   {"cache", KERNEL_KV_BY_CACHE},
                                   {0}};
static const choice kv_slots[] = {
    {"listed", KERNEL_KV_LISTED}, {"paged", KERNEL_KV_PAGED}, {"contiguous", KERNEL_KV_CONTIGUOUS}, {0}};

static const choice attention_modes[] = {{"exact", 0}, {"tensor", 1}, {0}};
static const choice sees[] = {{"key_index", KERNEL_SEES_KEY_INDEX},
                              {"length", KERNEL_SEES_LENGTH},
                              {"range", KERNEL_SEES_RANGE},
                              {"all", KERNEL_SEES_ALL},
                              {0}};
static const choice adds[] = {{"none", KERNEL_ADDS_NONE},
                              {"mask", KERNEL_ADDS_MASK},
                              {"sloped_mask", KERNEL_ADDS_SLOPED_MASK},
                              {"alibi", KERNEL_ADDS_ALIBI},
                              {0}};

static const choice fp8_types[] = {{"none", 0}, {"e4m3", QDNN_DATA_F8E4M3}, {"e5m2", QDNN_DATA_F8E5M2}, {0}};
static const choice x_code_types[] = {{"i8", QDNN_DATA_I8}, {"u8", QDNN_DATA_U8}, {0}};
static const choice results[] = {{"i32", QDNN_DATA_I32}, {"i8", QDNN_DATA_I8}, {"u8", QDNN_DATA_U8}, {0}};
static const choice phases[] = {{"whole", KERNEL_PHASE_WHOLE},
                                {"parts", KERNEL_PHASE_PARTS},
                                {"sums", KERNEL_PHASE_SUMS},
                                {"join", KERNEL_PHASE_JOIN},
                                {"last", KERNEL_PHASE_LAST},
                                {0}};
static const choice score_kinds[] = {{"softmax", QDNN_SCORES_SOFTMAX}, {"sigmoid", QDNN_SCORES_SIGMOID}, {0}};
static const choice group_scores[] = {
    {"largest", QDNN_GROUP_SCORE_LARGEST}, {"two_largest", QDNN_GROUP_SCORE_TWO_LARGEST}, {0}};
static const choice tiles[] = {{"1", 1}, {"4", 4}, {"64", 64}, {"128", 128}, {0}};
static const choice index_types[] = {{"i32", QDNN_DATA_I32}, {"i64", QDNN_DATA_I64}, {0}};
static const choice cast_types[] = {{"f32", QDNN_DATA_F32},
                                    {"f16", QDNN_DATA_F16},
                                    {"bf16", QDNN_DATA_BF16},
                                    {"f64", QDNN_DATA_F64},
                                    {"e4m3", QDNN_DATA_F8E4M3},
                                    {"e5m2", QDNN_DATA_F8E5M2},
                                    {"u8", QDNN_DATA_U8},
                                    {"u16", QDNN_DATA_U16},
                                    {"u32", QDNN_DATA_U32},
                                    {"u64", QDNN_DATA_U64},
                                    {0}};
static const choice copy_ways[] = {{"flat", KERNEL_COPY_FLAT},
                                   {"lines", KERNEL_COPY_LINES},
                                   {"elements", KERNEL_COPY_ELEMENTS},
                                   {"tiles", KERNEL_COPY_TILES},
                                   {0}};
static const choice top_indices[] = {{"i32", QDNN_DATA_I32}, {"f32", QDNN_DATA_F32}, {0}};

/* One row per setting. A setting with choices is an int at `offset`; otherwise a field of 4 bytes is an f32
 * and one of 8 bytes a u64. */
typedef struct setting {
    kernel_key_info info;
    const char *prefix; /* before the value in a label */
    const choice *choices;
    size_t offset, size;
} setting;

_Static_assert(sizeof(qdnnDataType_t) == sizeof(int), "enumerated settings are accessed as int");

#define NUMBER NULL
#define REAL   NULL
static const setting settings[] = {
#define SETTING(key, field, name, prefix, choices, values, preset)                                           \
    {{KERNEL_KEY(key), name, values, preset},                                                                \
     prefix,                                                                                                 \
     choices,                                                                                                \
     offsetof(kernel_spec, field),                                                                           \
     sizeof((kernel_spec){0}.field)},
#include "kernels/settings.def"
#undef SETTING
};
enum { SETTING_COUNT = sizeof settings / sizeof settings[0] };

/* The largest group_size * channels. With this limit, and KERNEL_GROUP_MAX, offsets within a group or within
 * one cycle through all channels stay far below 2^63, even in bytes. */
static const uint64_t largest_cycle = UINT64_C(1) << 48;

bool kernel_refuse(char *error, size_t size, const char *format, ...)
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

kernel_key_set kernel_key_set_of(const kernel_key *list)
{
    kernel_key_set set = {0};
    for (; *list != KERNEL_KEY_COUNT; list++)
        set.word[*list / 32] |= UINT32_C(1) << *list % 32;
    return set;
}

kernel_key_set kernel_key_set_others(kernel_key_set set)
{
    for (size_t i = 0; i < sizeof set.word / sizeof set.word[0]; i++)
        set.word[i] = ~set.word[i];
    return set;
}

kernel_key_set kernel_key_set_both(kernel_key_set a, kernel_key_set b)
{
    for (size_t i = 0; i < sizeof a.word / sizeof a.word[0]; i++)
        a.word[i] &= b.word[i];
    return a;
}

const kernel_key_info *kernel_key_at(int index)
{
    return index >= 0 && index < SETTING_COUNT ? &settings[index].info : NULL;
}

/* Digits only: strtoull would accept signs and spaces. */
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

/* The rest of a decimal number: empty, or an exponent such as "e-12". strtol alone would skip spaces. */
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

/* A decimal number ("1e-12") in any locale: strtof expects the locale's decimal point, so it is given digits
 * only. */
bool kernel_parse_f32(const char *text, float *value)
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

static bool is_real(const setting *s)
{
    return s->size == sizeof(float);
}

static bool set_field(const setting *s, kernel_spec *spec, const char *value)
{
    if (s->choices)
        return set_choice(s, spec, value);
    if (is_real(s))
        return kernel_parse_f32(value, (float *)((char *)spec + s->offset));
    return parse_u64(value, number_field(s, spec));
}

kernel_spec kernel_spec_default(void)
{
    kernel_spec spec = {0};
    for (int i = 0; i < SETTING_COUNT; i++)
        set_field(&settings[i], &spec, settings[i].info.preset);
    return spec;
}

static void list_keys(const kernel_row *row, char *text, size_t size)
{
    const kernel_key_set keys = kernel_keys(row);
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < SETTING_COUNT; i++)
        if (kernel_key_set_has(&keys, settings[i].info.key) && used < size)
            used +=
                (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", settings[i].info.name);
}

static const setting *find_setting(const kernel_row *row, const char *key)
{
    for (int i = 0; i < SETTING_COUNT; i++)
        if (strcmp(settings[i].info.name, key) == 0 && kernel_has_key(row, settings[i].info.key))
            return &settings[i];
    return NULL;
}

bool kernel_takes(const kernel_row *row, const char *key)
{
    return find_setting(row, key) != NULL;
}

static bool check_numbers(const kernel_spec *spec, char *error, size_t error_size)
{
    if (spec->stored.group_size < 1 || spec->stored.group_size > KERNEL_GROUP_MAX)
        return kernel_refuse(error, error_size, "group_size is %llu; it must be at least 1 and at most 2^40",
                             (unsigned long long)spec->stored.group_size);
    if (spec->stored.group_rows < 1 || spec->stored.group_rows > KERNEL_GROUP_MAX)
        return kernel_refuse(error, error_size, "group_rows is %llu; it must be at least 1 and at most 2^40",
                             (unsigned long long)spec->stored.group_rows);
    if (spec->stored.channels > KERNEL_GROUP_MAX)
        return kernel_refuse(error, error_size, "channels is %llu; it must be at most 2^40",
                             (unsigned long long)spec->stored.channels);
    if (spec->stored.channels > 1 && spec->stored.group_size > largest_cycle / spec->stored.channels)
        return kernel_refuse(
            error, error_size, "group_size * channels is %llu * %llu; it must be at most 2^48",
            (unsigned long long)spec->stored.group_size, (unsigned long long)spec->stored.channels);
    if (!(spec->quantize.floor >= 0 && spec->quantize.floor <= 3.40282347e38f))
        return kernel_refuse(error, error_size, "floor must be a finite number, not negative");
    if (!(spec->train.decay >= 0 && spec->train.decay <= 1))
        return kernel_refuse(error, error_size, "decay must be 0 to 1");
    if (spec->conv.window_h < 1 || spec->conv.window_h > 1 << 15 || spec->conv.window_w < 1 ||
        spec->conv.window_w > 1 << 15 || spec->conv.window_c < 1 || spec->conv.window_c > 1 << 20)
        return kernel_refuse(error, error_size,
                             "window_h and window_w must be 1 to 2^15, window_c 1 to 2^20");
    if (spec->select.rounds > 4)
        return kernel_refuse(error, error_size, "rounds is %llu; it must be 0 to 4",
                             (unsigned long long)spec->select.rounds);
    if (spec->route.experts < 1 || spec->route.experts > ROUTE_EXPERTS_MAX || spec->route.slots < 1 ||
        spec->route.slots > ROUTE_SLOTS_MAX || spec->route.groups < 1 ||
        spec->route.groups > ROUTE_GROUPS_MAX || spec->route.kept < 1 || spec->route.kept > ROUTE_GROUPS_MAX)
        return kernel_refuse(error, error_size,
                             "expert_count must be 1 to 1024, chosen, expert_groups and kept_groups 1 to 32");
    if (spec->product.x_share < 1 || spec->product.x_share > ROUTE_SLOTS_MAX)
        return kernel_refuse(error, error_size, "x_share is %llu; it must be 1 to 32",
                             (unsigned long long)spec->product.x_share);
    if (spec->product.tile_rows < 1 || spec->product.tile_rows > 128)
        return kernel_refuse(error, error_size, "tile_rows is %llu; it must be 1 to 128",
                             (unsigned long long)spec->product.tile_rows);
    if (spec->rows.columns < 1 || spec->rows.columns > 1 << 30 || spec->rows.heads < 1 ||
        spec->rows.heads > 1 << 16)
        return kernel_refuse(error, error_size, "row_size must be 1 to 2^30, heads 1 to 2^16");
    if (spec->rope.queries > 1 << 16 || spec->kv.heads > 1 << 16 || spec->kv.key_size > 1024 ||
        spec->kv.value_size > 1024)
        return kernel_refuse(error, error_size,
                             "queries and kv_heads must be 0 to 2^16, key_size and value_size 0 to 1024");
    if (spec->product.split < 1 || spec->product.split > 32 ||
        (spec->product.split & (spec->product.split - 1)) != 0)
        return kernel_refuse(error, error_size, "split is %llu; it must be 1, 2, 4, 8, 16 or 32",
                             (unsigned long long)spec->product.split);
    return true;
}

bool kernel_spec_set(const kernel_row *row, kernel_spec *spec, const char *key, const char *value,
                     char *error, size_t error_size)
{
    const setting *s = find_setting(row, key);
    if (!s) {
        char keys[512];
        list_keys(row, keys, sizeof keys);
        return kernel_refuse(error, error_size, "%s has no setting '%s'; it takes %s", row->name, key, keys);
    }
    if (!set_field(s, spec, value))
        return kernel_refuse(error, error_size, "%s=%s: it must be %s", key, value, s->info.values);
    return check_numbers(spec, error, error_size);
}

static bool check_choices(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    const kernel_key_set keys = kernel_keys(row);
    for (int i = 0; i < SETTING_COUNT; i++) {
        const setting *s = &settings[i];
        if (kernel_key_set_has(&keys, s->info.key) && s->choices && !choice_of(s, spec))
            return kernel_refuse(error, error_size, "%s is %d; it must be %s", s->info.name,
                                 *enum_field(s, (kernel_spec *)spec), s->info.values);
    }
    return true;
}

bool kernel_spec_settle(const kernel_row *row, kernel_spec *spec, char *error, size_t error_size)
{
    if (!check_choices(row, spec, error, error_size) || !check_numbers(spec, error, error_size) ||
        !format_allows(row, spec, error, error_size))
        return false;
    const kernel_spec normal = kernel_spec_normal(row, spec);
    const bool serves = format_serves(row, &normal, error, error_size);
    if (serves)
        *spec = normal;
    return serves;
}

bool kernel_spec_check(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    kernel_spec settled = *spec;
    return kernel_spec_settle(row, &settled, error, error_size);
}

bool kernel_spec_settle_kernel(const kernel_row *row, kernel_spec *spec, char *error, size_t error_size)
{
    return kernel_spec_settle(row, spec, error, error_size) &&
           (!row->operation->is_a_kernel || row->operation->is_a_kernel(row, spec, error, error_size));
}

bool kernel_is_emitted(const kernel_row *row, const kernel_spec *spec, char *error, size_t error_size)
{
    kernel_spec settled = *spec;
    return kernel_spec_settle_kernel(row, &settled, error, error_size);
}

bool kernel_problem_check(const kernel_spec *spec, const kernel_problem *problem, char *error,
                          size_t error_size)
{
    if ((spec->stored.layout == QDNN_LAYOUT_AWQ || spec->to.layout == QDNN_LAYOUT_AWQ) &&
        problem->columns % 8 != 0)
        return kernel_refuse(
            error, error_size,
            "the tensor has %llu columns; layout awq needs a multiple of 8; fix: pad the columns, or use "
            "another layout",
            (unsigned long long)problem->columns);
    return true;
}

kernel_spec kernel_spec_normal(const kernel_row *row, const kernel_spec *spec)
{
    kernel_spec normal = kernel_spec_default();
    const kernel_key_set keys = kernel_keys(row);
    for (int i = 0; i < SETTING_COUNT; i++) {
        const setting *s = &settings[i];
        if (kernel_key_set_has(&keys, s->info.key))
            memcpy((char *)&normal + s->offset, (const char *)spec + s->offset, s->size);
    }
    if (format_is_plain(row->format))
        normal.stored.groups = QDNN_GROUPS_DEFAULT;
    if (row->operation->fixes)
        row->operation->fixes(&normal);
    if (kernel_key_set_has(&keys, KERNEL_KEY(CODE)))
        normal.stored.code = format_code_kind(row->format, normal.stored.code);
    if (kernel_key_set_has(&keys, KERNEL_KEY(TO_CODE)))
        normal.to.code = format_code_kind(row->format, normal.to.code);
    normal.stored.zero = format_zero_type(row->format, &normal);
    if (normal.stored.groups != QDNN_GROUPS_FLAT)
        normal.stored.channels = 0;
    if (normal.stored.groups == QDNN_GROUPS_FLAT || normal.stored.groups == QDNN_GROUPS_DEFAULT)
        normal.stored.group_rows = 1;
    if (normal.stored.groups == QDNN_GROUPS_DEFAULT || normal.stored.channels == 1)
        normal.stored.group_size = 1;
    if (!normal.stored.zero_minus_one)
        normal.stored.zero_wraps = 0;
    if (!normal.stored.group_index || normal.row_index)
        normal.stored.group_table = 0;
    /* scales do not depend on the layout of the codes, except that AWQ has its own order of packed zeros */
    if (kernel_operation_of(row) == KERNEL_SCALE &&
        !(normal.stored.zero_packed && normal.stored.groups == QDNN_GROUPS_COLUMNS &&
          normal.stored.layout == QDNN_LAYOUT_AWQ))
        normal.stored.layout = QDNN_LAYOUT_BYTES;
    return normal;
}

bool kernel_spec_is_normal(const kernel_row *row, const kernel_spec *spec)
{
    return kernel_spec_equal(spec, KERNEL_NORMAL(row, spec));
}

bool kernel_spec_equal(const kernel_spec *a, const kernel_spec *b)
{
    for (int i = 0; i < SETTING_COUNT; i++) {
        const setting *s = &settings[i];
        if (memcmp((const char *)a + s->offset, (const char *)b + s->offset, s->size) != 0)
            return false;
    }
    return true;
}

/* Floats are printed as their bits: exact, and the same in every locale. */
static int print_value(const setting *s, const kernel_spec *spec, char *text, size_t size)
{
    if (s->choices) {
        const choice *c = choice_of(s, spec);
        return snprintf(text, size, "%s", c ? c->name : "?");
    }
    if (!is_real(s))
        return snprintf(text, size, "%llu", (unsigned long long)*number_field(s, (kernel_spec *)spec));
    uint32_t bits;
    memcpy(&bits, (const char *)spec + s->offset, sizeof bits);
    return snprintf(text, size, "0f%08X", (unsigned)bits);
}

void kernel_spec_value(const kernel_spec *spec, const char *key, char *text, size_t size)
{
    text[0] = 0;
    for (int i = 0; i < SETTING_COUNT; i++)
        if (strcmp(settings[i].info.name, key) == 0)
            print_value(&settings[i], spec, text, size);
}

/* Calls `print` for those settings of the row that are in `always` or differ from the row's default. */
typedef void print_setting(const setting *s, const char *value, char *text, size_t size, size_t *used);
static void print_settings(const kernel_row *row, const kernel_spec *spec, const kernel_key *in_any_case,
                           print_setting *print, char *text, size_t size)
{
    const kernel_spec usual_spec = kernel_spec_default(), preset = kernel_spec_normal(row, &usual_spec);
    assert(kernel_spec_is_normal(row, spec));
    const kernel_key_set keys = kernel_keys(row), always = kernel_key_set_of(in_any_case);
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < SETTING_COUNT; i++) {
        const setting *s = &settings[i];
        char value[64], usual[64];
        print_value(s, spec, value, sizeof value);
        print_value(s, &preset, usual, sizeof usual);
        bool named = kernel_key_set_has(&always, s->info.key) || strcmp(value, usual) != 0;
        if (kernel_key_set_has(&keys, s->info.key) && named && used < size)
            print(s, value, text, size, &used);
    }
}

static void print_named(const setting *s, const char *value, char *text, size_t size, size_t *used)
{
    *used += (size_t)snprintf(text + *used, size - *used, "%s%s=%s", *used ? " " : "", s->info.name, value);
}

static void print_short(const setting *s, const char *value, char *text, size_t size, size_t *used)
{
    *used += (size_t)snprintf(text + *used, size - *used, "%s%s%s", *used ? "_" : "", s->prefix, value);
}

#define IN_LABELS KERNEL_KEY(DATA), KERNEL_KEY(SCALE), KERNEL_KEY(ZERO), KERNEL_KEY(GROUP_SIZE)
#define IN_TEXTS                                                                                             \
    IN_LABELS, KERNEL_KEY(CHANNELS), KERNEL_KEY(NIBBLE_ORDER), KERNEL_KEY(ROUNDING), KERNEL_KEY(DIVISION),   \
        KERNEL_KEY(FLOOR)

void kernel_spec_text(const kernel_row *row, const kernel_spec *spec, char *text, size_t size)
{
    print_settings(row, spec, KERNEL_KEYS(IN_TEXTS), print_named, text, size);
}

void kernel_spec_label(const kernel_row *row, const kernel_spec *spec, char *text, size_t size)
{
    enum { HASHED = 64 }; /* characters kept before the hash */
    char whole[KERNEL_SPEC_TEXT];
    print_settings(row, spec, KERNEL_KEYS(IN_LABELS), print_short, whole, sizeof whole);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const char *p = whole; *p; p++)
        hash = (hash ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
    if (strlen(whole) <= HASHED + 17)
        snprintf(text, size, "%s", whole);
    else
        snprintf(text, size, "%.*s_%016llx", HASHED, whole, (unsigned long long)hash);
}

void kernel_file_name(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm, char *text,
                      size_t size)
{
    char label[KERNEL_SPEC_LABEL];
    kernel_spec_label(row, spec, label, sizeof label);
    snprintf(text, size, "%s_%s_%s", row->name, label, sm->name);
}
