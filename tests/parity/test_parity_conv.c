/* Convolutions of codes through the public API against host_ref, on ptxvm: many settings once, and a few settings, each of which is one
 * text, with many shapes and data. */
#include <stdio.h>

#include "device/integer_case.h"
#include "formats/sample.h"
#include "device/under_test.h"
#include "test.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

static const char *const sms[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"};

typedef struct conv_case {
    ref_conv_spec s;
    qdnnDataType_t y;
    int y_zero;
    bool bias, multipliers, strange;
    float multiplier;
    qdnnRounding_t rounding;
    codes_fill fill;
    size_t x_shift, w_shift;
} conv_case;

static void order(bool nhwc, const int64_t nchw[4], int64_t dims[4])
{
    static const int places[4] = {0, 2, 3, 1};
    for (int i = 0; i < 4; i++)
        dims[i] = nchw[nhwc ? places[i] : i];
}

static bool conv_attributes(const conv_case *c, qdnnIntegerDescriptor_t d)
{
    const ref_conv_spec *s = &c->s;
    const int64_t values[][2] = {{QDNN_INTEGER_X_ZERO, s->x_zero},
                                 {QDNN_INTEGER_W_ZERO, s->w_zero},
                                 {QDNN_INTEGER_Y_ZERO, c->y_zero},
                                 {QDNN_INTEGER_MULTIPLIERS, c->multipliers},
                                 {QDNN_INTEGER_ROUNDING, c->rounding},
                                 {QDNN_INTEGER_BIAS_TYPE, c->bias ? QDNN_DATA_I32 : 0},
                                 {QDNN_INTEGER_NHWC, s->nhwc},
                                 {QDNN_INTEGER_GROUPS, s->groups},
                                 {QDNN_INTEGER_STRIDE_H, s->stride[0]},
                                 {QDNN_INTEGER_STRIDE_W, s->stride[1]},
                                 {QDNN_INTEGER_PADDING_H, s->padding[0]},
                                 {QDNN_INTEGER_PADDING_W, s->padding[1]},
                                 {QDNN_INTEGER_DILATION_H, s->dilation[0]},
                                 {QDNN_INTEGER_DILATION_W, s->dilation[1]}};
    for (int i = 0; i < LENGTH(values); i++)
        if (!CHECK_QDNN(qdnnSetIntegerAttribute(d, (qdnnIntegerAttribute_t)values[i][0], values[i][1])))
            return false;
    return CHECK_QDNN(qdnnSetIntegerMultiplier(d, c->multiplier));
}

static int64_t output(const ref_conv_spec *s, int side)
{
    return ref_conv_output(side ? s->width : s->height, s->window[side], s->stride[side], s->padding[side],
                           s->dilation[side]);
}

static integer_buffers conv_data(const conv_case *c, uint32_t seed)
{
    const ref_conv_spec *s = &c->s;
    integer_buffers b = {0};
    int64_t x = s->images * s->channels * s->height * s->width;
    int64_t w = s->outputs * (s->channels / s->groups) * s->window[0] * s->window[1];
    int64_t y = s->images * s->outputs * output(s, 0) * output(s, 1);
    ref_requantize_spec r = {
        .y = c->y, .multiplier = c->multiplier, .y_zero = c->y_zero, .rounding = c->rounding};
    integer_fill(c->fill, s->x, seed, 1, x, integer_buffer(&b, QDNN_OPERAND_X, (size_t)x, false));
    integer_fill(c->fill, QDNN_DATA_I8, seed + 1, 1, w,
                 integer_buffer(&b, QDNN_OPERAND_CODES, (size_t)w, false));
    if (c->bias)
        integer_fill_bias(c->fill, c->strange, seed + 2, s->outputs,
                          integer_buffer(&b, QDNN_OPERAND_BIAS, (size_t)s->outputs * 4, false));
    if (c->multipliers)
        integer_fill_multipliers(c->fill, c->strange, seed + 3, c->multiplier, s->outputs,
                                 integer_buffer(&b, QDNN_OPERAND_MULTIPLIER, (size_t)s->outputs * 4, false));
    r.multipliers = b.host[QDNN_OPERAND_MULTIPLIER];
    void *results = integer_buffer(&b, QDNN_OPERAND_Y, (size_t)y * (c->y == QDNN_DATA_I32 ? 4 : 1), true);
    ref_integer_conv2d(s, &r, b.host[QDNN_OPERAND_X], b.host[QDNN_OPERAND_CODES], b.host[QDNN_OPERAND_BIAS],
                       results);
    b.shift[QDNN_OPERAND_X] = c->x_shift;
    b.shift[QDNN_OPERAND_CODES] = c->w_shift;
    return b;
}

static bool run_conv(qdnnHandle_t handle, const conv_case *c, uint32_t seed)
{
    const ref_conv_spec *s = &c->s;
    const int64_t nchw[3][4] = {{s->images, s->channels, s->height, s->width},
                                {s->outputs, s->channels / s->groups, s->window[0], s->window[1]},
                                {s->images, s->outputs, output(s, 0), output(s, 1)}};
    const qdnnDataType_t types[] = {s->x, QDNN_DATA_I8, c->y};
    qdnnTensorDescriptor_t t[3] = {NULL};
    qdnnIntegerDescriptor_t d = NULL;
    qdnnPlan_t plan = NULL;
    integer_buffers b = conv_data(c, seed);
    bool ok = CHECK_QDNN(qdnnCreateIntegerDescriptor(&d)) && conv_attributes(c, d);
    for (int i = 0; i < 3 && ok; i++) {
        int64_t dims[4];
        order(s->nhwc, nchw[i], dims);
        ok = integer_tensor(&t[i], types[i], 4, dims);
    }
    ok = ok && CHECK_QDNN(qdnnCreateIntegerConvPlan(handle, d, t[0], t[1], t[2], &plan)) &&
         integer_execute(handle, plan, &b, -1);
    integer_tensors_destroy(t, 3);
    qdnnDestroyIntegerDescriptor(d);
    integer_buffers_free(&b);
    return ok;
}

/* ---- Many settings ---- */

/* Channels, outputs, groups: any; those of a group in chunks of 16; depthwise. */
/* clang-format off */
static const int64_t channels[][3] = {{3, 5, 1}, {16, 9, 1}, {4, 4, 4}, {32, 16, 2}, {8, 8, 2}, {48, 70, 1}, {6, 12, 6}};
/* clang-format on */
/* Window, stride, padding, dilation, height and width each. */
/* clang-format off */
static const int64_t windows[][8] = {{1, 1, 1, 1, 0, 0, 1, 1}, {3, 3, 1, 1, 1, 1, 1, 1}, {3, 2, 2, 1, 0, 1, 1, 2},
                                     {2, 3, 1, 3, 2, 0, 2, 1}, {5, 1, 2, 2, 2, 3, 1, 1}, {3, 3, 3, 2, 4, 4, 2, 2}};
/* clang-format on */

static conv_case conv_at(int i, int j, int turn)
{
    const int64_t *c = channels[i], *w = windows[j];
    const int step = i * LENGTH(windows) + j + turn;
    conv_case k = {.y = step % 5 == 3 ? QDNN_DATA_I32
                        : step % 2    ? QDNN_DATA_I8
                                      : QDNN_DATA_U8,
                   .y_zero = step % 2 ? -3 : 100,
                   .bias = step % 3 == 0,
                   .multipliers = step % 4 == 1,
                   .multiplier = 0.004f,
                   .rounding = step % 3 == 1 ? QDNN_ROUND_TIES_TO_EVEN : QDNN_ROUND_TIES_AWAY,
                   .x_shift = step % 7 == 6 ? 3 : 0,
                   .w_shift = step % 7 == 6 ? 1 : 0};
    k.multipliers = k.multipliers && k.y != QDNN_DATA_I32;
    k.s = (ref_conv_spec){.x = step % 4 == 2 ? QDNN_DATA_U8 : QDNN_DATA_I8,
                          .nhwc = (step / 2) % 2 == 0,
                          .images = 1 + step % 2,
                          .channels = c[0],
                          .outputs = c[1],
                          .groups = c[2],
                          .height = 7,
                          .width = 6 + j,
                          .window = {w[0], w[1]},
                          .stride = {w[2], w[3]},
                          .padding = {w[4], w[5]},
                          .dilation = {w[6], w[7]},
                          .x_zero = step % 3 ? (step % 4 == 2 ? 200 : -128) : 0,
                          .w_zero = step % 5 == 4 ? 127 : 0};
    return k;
}

static int conv_count(void)
{
    return LENGTH(sms) * LENGTH(channels);
}

static void conv_name(int index, char *text, size_t size)
{
    const int64_t *c = channels[index / LENGTH(sms)];
    snprintf(text, size, "c%lld_o%lld_g%lld_turn_%d", (long long)c[0], (long long)c[1], (long long)c[2],
             index % LENGTH(sms));
}

DEVICE_EACH(ParityInteger, Convolutions, conv_count, conv_name)
{
    qdnnHandle_t handle = device_begin(sms[index % LENGTH(sms)], 1 + index % 4, "all");
    bool alive = handle != NULL;
    for (int j = 0; j < LENGTH(windows) && alive; j++)
        for (int turn = 0; turn < 2 && alive; turn++) {
            conv_case c = conv_at(index / LENGTH(sms), j, 5 * turn + 3 * (index % LENGTH(sms)));
            test_push_note("window %d, turn %d, nhwc %d, x_zero %d, w_zero %d, y 0x%02X, shift %zu", j, turn,
                           (int)c.s.nhwc, c.s.x_zero, c.s.w_zero, (unsigned)c.y, c.x_shift);
            alive = run_conv(handle, &c, (uint32_t)(index * 100 + j * 10 + turn));
            test_pop_note();
        }
    device_end(handle);
}

/* ---- Trials: one text, many shapes (docs/mutation.md) ---- */

/* clang-format off */
enum { I8 = QDNN_DATA_I8, U8 = QDNN_DATA_U8, I32 = QDNN_DATA_I32, EVEN = QDNN_ROUND_TIES_TO_EVEN, AWAY = QDNN_ROUND_TIES_AWAY };

/* What is part of a text. Depth: channels of a group; those that are multiples of 16 go to tensor cores, in tiles of 64 or, if is_large, of
 * 128. Zeros: whether x and w have one. */
static const struct {
    const char *name, *sm;
    int x, y;
    bool nhwc, is_large, x_zero, w_zero, bias, multipliers;
    int rounding;
    int64_t window[2], depth;
} texts[] = {
    {"any",            "sm_75",  I8, I8,  false, false, true,  true,  true,  false, AWAY, {3, 2}, 3},
    {"any_sums",       "sm_90",  U8, I32, false, false, true,  false, false, false, EVEN, {2, 3}, 2},
    {"depthwise",      "sm_80",  I8, U8,  true,  false, false, false, true,  true,  EVEN, {3, 3}, 1},
    {"words",          "sm_90",  I8, I32, true,  false, true,  true,  true,  false, EVEN, {2, 3}, 8},
    {"words_codes",    "sm_120", U8, U8,  true,  false, true,  false, false, true,  AWAY, {1, 3}, 4},
    {"words_w_zero",   "sm_75",  I8, I8,  true,  false, false, true,  false, false, EVEN, {3, 1}, 4},
    {"tiles_sums",     "sm_80",  I8, I32, true,  false, true,  true,  true,  false, EVEN, {3, 2}, 64},
    {"tiles_plain",    "sm_90",  I8, I32, true,  false, false, false, false, false, EVEN, {2, 3}, 64},
    {"tiles_x_zero",   "sm_120", U8, U8,  true,  false, true,  false, true,  true,  AWAY, {3, 3}, 48},
    {"tiles_w_zero",   "sm_75",  I8, I32, true,  false, false, true,  true,  false, EVEN, {3, 3}, 32},
    {"tiles_75",       "sm_75",  U8, I32, true,  false, true,  true,  false, false, EVEN, {2, 2}, 48},
    {"tiles_75_plain", "sm_75",  I8, I8,  true,  false, false, false, true,  true,  EVEN, {5, 1}, 48},
    {"tiles_apart",    "sm_90",  I8, I8,  false, false, true,  false, true,  false, AWAY, {3, 3}, 32},
    {"one_tile",       "sm_89",  I8, U8,  true,  false, true,  true,  false, true,  EVEN, {1, 1}, 32},
    {"large",          "sm_80",  I8, I32, true,  true,  true,  true,  true,  false, EVEN, {3, 2}, 64},
    {"large_plain",    "sm_90",  U8, I32, true,  true,  false, false, false, false, EVEN, {2, 3}, 64},
    {"large_75",       "sm_75",  I8, I32, true,  true,  true,  false, true,  false, EVEN, {2, 2}, 48},
    {"large_codes",    "sm_100", I8, I8,  true,  true,  false, true,  true,  true,  AWAY, {3, 3}, 48},
};

/* What is not. Images, groups, outputs of a group, height, width, strides, paddings, dilations; how far x and w are out of line; codes, and
 * strange numbers. Large tiles are taken for more than 64 windows and outputs: they have 64 more outputs, and are left out where
 * is_small; the others have at most 64 unless is_small. */
static const struct {
    int64_t images, groups, outputs, height, width, stride[2], padding[2], dilation[2];
    size_t x_shift, w_shift;
    codes_fill fill;
    bool strange, is_small;
} trials[] = {
    {1, 1, 9,  12, 10, {1, 1}, {0, 0}, {1, 1}, 0, 0, CODES_SMALL, false, false},
    {2, 1, 8,  9,  11, {1, 1}, {1, 2}, {1, 1}, 0, 0, CODES_ANY,   false, false},
    {1, 1, 33, 21, 9,  {2, 1}, {1, 1}, {1, 1}, 1, 0, CODES_SMALL, false, false},
    {1, 2, 17, 9,  19, {1, 2}, {2, 1}, {1, 2}, 0, 0, CODES_SMALL, false, false},
    {3, 1, 12, 7,  8,  {1, 1}, {2, 2}, {2, 1}, 0, 1, CODES_ENDS,  false, false},
    {1, 1, 70, 5,  6,  {1, 1}, {1, 1}, {1, 1}, 0, 0, CODES_SMALL, false, true},
    {1, 1, 70, 11, 10, {1, 1}, {1, 1}, {1, 1}, 0, 0, CODES_SMALL, false, false},
    {5, 1, 11, 1,  1,  {1, 1}, {4, 4}, {1, 1}, 0, 0, CODES_ANY,   false, false},
    {1, 3, 8,  1,  9,  {3, 1}, {5, 2}, {1, 3}, 4, 4, CODES_SMALL, false, true},
    {1, 1, 64, 8,  11, {1, 1}, {1, 1}, {1, 1}, 3, 3, CODES_SMALL, false, false},
    {2, 2, 10, 8,  8,  {1, 1}, {1, 0}, {1, 1}, 0, 2, CODES_ANY,   true,  false},
    {1, 1, 20, 13, 9,  {1, 1}, {3, 3}, {2, 2}, 2, 0, CODES_ANY,   true,  false},
    {9, 1, 8,  4,  3,  {1, 1}, {2, 3}, {1, 1}, 0, 0, CODES_MOST,  false, false},
    {1, 1, 63, 17, 8,  {1, 1}, {1, 1}, {1, 1}, 4, 0, CODES_SMALL, true,  false},
    {1, 4, 8,  9,  9,  {4, 3}, {2, 2}, {1, 1}, 0, 0, CODES_ANY,   false, true},
    {1, 1, 16, 12, 12, {1, 1}, {0, 1}, {1, 1}, 0, 4, CODES_SMALL, false, false},
    {2, 1, 40, 11, 5,  {1, 1}, {1, 1}, {1, 1}, 8, 8, CODES_LEAST, false, false},
};
/* clang-format on */

/* Zero points that are there at all take turns at the ends of their types. */
static int zero_of(bool has, int type, codes_fill fill, int turn)
{
    static const int of_u8[] = {255, 1, 128}, of_i8[] = {-128, 127, -1};
    if (has && fill == CODES_SMALL)
        return type == U8 || turn % 2 ? 1 : -1;
    return !has ? 0 : type == U8 ? of_u8[turn % 3] : of_i8[turn % 3];
}

/* Errors of one in a sum of small codes change a code of y unless the sum is far beyond the range. */
static float multiplier_of(int text, codes_fill fill)
{
    const int64_t k = texts[text].window[0] * texts[text].window[1] * texts[text].depth;
    return fill != CODES_SMALL ? 0.004f : k > 100 ? 0.25f : 0.75f;
}

static conv_case trial_at(int text, int i)
{
    const int64_t groups = trials[i].groups, most = trials[i].is_small ? 128 : 64,
                  outputs = trials[i].outputs;
    const codes_fill fill = trials[i].fill;
    conv_case c = {.y = (qdnnDataType_t)texts[text].y,
                   .y_zero = zero_of(texts[text].y != I32, texts[text].y, fill, i / 3),
                   .bias = texts[text].bias,
                   .multipliers = texts[text].multipliers,
                   .strange = trials[i].strange,
                   .multiplier = multiplier_of(text, fill),
                   .rounding = (qdnnRounding_t)texts[text].rounding,
                   .fill = fill,
                   .x_shift = trials[i].x_shift,
                   .w_shift = trials[i].w_shift};
    c.s = (ref_conv_spec){.x = (qdnnDataType_t)texts[text].x,
                          .nhwc = texts[text].nhwc,
                          .images = trials[i].images,
                          .channels = texts[text].depth * groups,
                          .outputs = groups * (texts[text].is_large ? outputs + 64
                                               : outputs < most     ? outputs
                                                                    : most),
                          .groups = groups,
                          .height = trials[i].height,
                          .width = trials[i].width,
                          .window = {texts[text].window[0], texts[text].window[1]},
                          .stride = {trials[i].stride[0], trials[i].stride[1]},
                          .padding = {trials[i].padding[0], trials[i].padding[1]},
                          .dilation = {trials[i].dilation[0], trials[i].dilation[1]},
                          .x_zero = zero_of(texts[text].x_zero, texts[text].x, fill, i),
                          .w_zero = zero_of(texts[text].w_zero, I8, fill, i / 2)};
    return c;
}

/* By default few of the trials. */
DEVICE_ROWS(ParityInteger, ConvTrials, texts)
{
    qdnnHandle_t handle = device_begin(texts[index].sm, 1 + index % 4, "all");
    bool alive = handle != NULL;
    for (int i = sample_is_full() ? 0 : index % 6; i < LENGTH(trials) && alive;
         i += sample_is_full() ? 1 : 6) {
        if (texts[index].is_large && trials[i].is_small)
            continue;
        const conv_case c = trial_at(index, i);
        test_push_note("trial %d", i);
        alive = run_conv(handle, &c, (uint32_t)(1000 * index + i + 1));
        test_pop_note();
    }
    device_end(handle);
}
