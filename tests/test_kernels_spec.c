/* The settings of kernels: from text and back, and what is refused. */
#include "test.h"

#include "kernels/kernels.h"

#include <stdlib.h>
#include <string.h>

static bool set(const char *kernel, kernel_spec *spec, const char *key, const char *value, char *error)
{
    return kernel_spec_set(kernel_find(kernel), spec, key, value, error, 512);
}

TEST_CASE(KernelSpec, EveryRowIsFoundByItsName)
{
    for (int i = 0; i < kernel_row_count; i++)
        CHECK(kernel_find(kernel_rows[i].name) == &kernel_rows[i]);
    CHECK(kernel_find("quantise_nf4") == NULL);
    CHECK(kernel_find("") == NULL);
}

TEST_CASE(KernelSpec, DefaultsAsText)
{
    char text[256];
    kernel_spec spec = kernel_spec_default();
    kernel_spec_text(kernel_find("quantize_int4_zp"), KERNEL_NORMAL(kernel_find("quantize_int4_zp"), &spec),
                     text, sizeof text);
    CHECK_EQ_STR(
        text,
        "data=f32 scale=f32 zero=u8 group_size=128 channels=0 nibble_order=low rounding=even division=exact");
    kernel_spec_text(kernel_find("scale_int4"), KERNEL_NORMAL(kernel_find("scale_int4"), &spec), text,
                     sizeof text);
    CHECK_EQ_STR(text, "data=f32 scale=f32 group_size=128 channels=0 division=exact floor=0f2B8CBCCC");
    kernel_spec_label(kernel_find("quantize_int4_zp"), KERNEL_NORMAL(kernel_find("quantize_int4_zp"), &spec),
                      text, sizeof text);
    CHECK_EQ_STR(text, "f32_f32_u8_g128");
}

TEST_CASE(KernelSpec, EverySettingIsRead)
{
    char text[256], error[512];
    kernel_spec spec = kernel_spec_default();
    CHECK(set("quantize_int4_zp", &spec, "data", "bf16", error));
    CHECK(set("quantize_int4_zp", &spec, "scale", "f16", error));
    CHECK(set("quantize_int4_zp", &spec, "zero", "f32", error));
    CHECK(set("quantize_int4_zp", &spec, "group_size", "1099511627776", error));
    CHECK(set("quantize_int4_zp", &spec, "channels", "256", error));
    CHECK(set("quantize_int4_zp", &spec, "nibble_order", "high", error));
    CHECK(set("quantize_int4_zp", &spec, "rounding", "away", error));
    CHECK(set("quantize_int4_zp", &spec, "division", "reciprocal", error));
    kernel_spec_text(kernel_find("quantize_int4_zp"), KERNEL_NORMAL(kernel_find("quantize_int4_zp"), &spec),
                     text, sizeof text);
    CHECK_EQ_STR(text, "data=bf16 scale=f16 zero=f32 group_size=1099511627776 channels=256 nibble_order=high "
                       "rounding=away division=reciprocal");
    kernel_spec_label(kernel_find("quantize_int4_zp"), KERNEL_NORMAL(kernel_find("quantize_int4_zp"), &spec),
                      text, sizeof text);
    CHECK_EQ_STR(text, "bf16_f16_f32_g1099511627776_c256_high_away_reciprocal");
}

/* One channel is the whole tensor, whatever the group size: one text, one file name, one kernel. */
TEST_CASE(KernelSpec, OneChannelHasNoGroupSize)
{
    const kernel_row *row = kernel_find("scale_nf4");
    kernel_text texts[2];
    for (int i = 0; i < 2; i++) {
        char text[256];
        kernel_spec spec = kernel_spec_default();
        ptx_error error;
        spec.stored.group_size = i ? 100000 : 3;
        spec.stored.channels = 1;
        kernel_spec_text(row, KERNEL_NORMAL(row, &spec), text, sizeof text);
        CHECK_EQ_STR(text, "data=f32 scale=f32 group_size=1 channels=1 division=exact floor=0f2B8CBCCC");
        kernel_spec_label(row, KERNEL_NORMAL(row, &spec), text, sizeof text);
        CHECK_EQ_STR(text, "f32_f32_g1_c1");
        CHECK(kernel_emit(row, &spec, ptx_sm_find("sm_90"), NULL, &texts[i], &error));
    }
    CHECK_EQ_STR(texts[0].ptx, texts[1].ptx);
    free(texts[0].ptx);
    free(texts[1].ptx);
}

TEST_CASE(KernelSpec, FloorIsReadInAnyForm)
{
    static const struct {
        const char *text;
        float value;
    } cases[] = {{"0", 0.0f},      {"1e-12", 1e-12f}, {"0.5", 0.5f},        {".25", 0.25f},
                 {"2.5E+3", 2500}, {"3", 3.0f},       {"0f3F000000", 0.5f}, {"0.0009765625", 0x1p-10f}};
    char error[512];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        kernel_spec spec = kernel_spec_default();
        CHECK(set("scale_int4", &spec, "floor", cases[i].text, error));
        CHECK_EQ_F32(spec.quantize.floor, cases[i].value);
    }
}

TEST_CASE(KernelSpec, WhatIsRefusedAndWhy)
{
    static const struct {
        const char *kernel, *key, *value, *why;
    } cases[] = {
        {"scale_int4", "data", "u8", "data=u8: it must be f32, f16, bf16, f64"},
        {"scale_int4", "data", "", "data=: it must be f32, f16, bf16, f64"},
        {"scale_int4", "group_size", "0", "group_size is 0; it must be at least 1 and at most 2^40"},
        {"scale_int4", "group_size", "1099511627777",
         "group_size is 1099511627777; it must be at least 1 and at most 2^40"},
        {"scale_int4", "group_size", "99999999999999999999",
         "group_size=99999999999999999999: it must be 1 to 2^40"},
        {"scale_int4", "group_size", "-1", "group_size=-1: it must be 1 to 2^40"},
        {"scale_int4", "group_size", "12x", "group_size=12x: it must be 1 to 2^40"},
        {"scale_int4", "channels", "-1", "channels=-1: it must be 0 to 2^40"},
        {"scale_int4", "channels", "1099511627777", "channels is 1099511627777; it must be at most 2^40"},
        {"scale_int4", "channels", "1099511627776",
         "group_size * channels is 1024 * 1099511627776; it must be at most 2^48"},
        {"range_absmax", "scale", "f32",
         "range_absmax has no setting 'scale'; it takes data, group_size, channels"},
        {"scale_int4", "floor", "-1", "floor=-1: it must be a finite number, not negative"},
        {"scale_int4", "floor", "1e39", "floor must be a finite number, not negative"},
        {"scale_int4", "floor", "nan", "floor=nan: it must be a finite number, not negative"},
        {"scale_int4", "floor", "0f7FC00000", "floor must be a finite number, not negative"},
        {"scale_int4", "floor", "1e", "floor=1e: it must be a finite number, not negative"},
        {"scale_int4", "floor", "1e 5", "floor=1e 5: it must be a finite number, not negative"},
        {"scale_int4", "floor", "1e+", "floor=1e+: it must be a finite number, not negative"},
        {"scale_int4", "floor", "1e99999999999999999999",
         "floor=1e99999999999999999999: it must be a finite number, not negative"},
        {"scale_int4", "floor", ".", "floor=.: it must be a finite number, not negative"},
        {"scale_int4", "zero", "u8",
         "scale_int4 has no setting 'zero'; it takes data, scale, group_size, channels, groups, group_rows, "
         "layout, "
         "code, division, floor, scale_order, scale_swizzle, global_scale, nested, group_index"},
        {"dequantize_nf4", "colour", "red",
         "dequantize_nf4 has no setting 'colour'; it takes data, scale, group_size, channels, groups, "
         "group_rows, layout, "
         "nibble_order, scale_order, scale_swizzle, global_scale, nested, group_index, group_table, "
         "row_index"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char error[512] = "";
        kernel_spec spec = kernel_spec_default();
        spec.stored.group_size = 1024;
        test_push_note("%s %s=%s", cases[i].kernel, cases[i].key, cases[i].value);
        CHECK(!set(cases[i].kernel, &spec, cases[i].key, cases[i].value, error));
        CHECK_EQ_STR(error, cases[i].why);
        test_pop_note();
    }
}

/* An allocator that fails once, at the call it is told. */
typedef struct meter {
    int calls, fail_at, live;
} meter;

static void *metered(void *user, void *memory, size_t size)
{
    meter *m = user;
    if (size == 0) {
        m->live -= memory != NULL;
        free(memory);
        return NULL;
    }
    if (++m->calls == m->fail_at)
        return NULL;
    m->live += memory == NULL;
    return realloc(memory, size);
}

TEST_CASE(KernelSpec, NoMemoryWhileAKernelIsEmitted)
{
    meter m;
    ptx_options options = {.resize = metered, .user = &m};
    kernel_spec spec = kernel_spec_default();
    for (int i = 0; i < kernel_row_count; i++) {
        bool done = false;
        int k = 1;
        for (; !done && k < 1000; k++) {
            kernel_text text;
            ptx_error error;
            m = (meter){.fail_at = k};
            done = kernel_emit(&kernel_rows[i], &spec, ptx_sm_find("sm_80"), &options, &text, &error);
            CHECK(done || (error.no_memory && text.ptx == NULL));
            ptx_free_text(&options, text.ptx);
            CHECK_EQ_I64(m.live, 0);
        }
        CHECK(done);
        CHECK(k > 3);
    }
}

TEST_CASE(KernelSpec, EnumeratorsOutOfRangeAreRefusedAtEmission)
{
    kernel_spec spec = kernel_spec_default();
    spec.data = QDNN_DATA_U16;
    kernel_text text;
    ptx_error error;
    memset(&text, 0xAA, sizeof text); /* what the caller had there is not freed */
    memset(&error, 0xAA, sizeof error);
    CHECK(!kernel_emit(kernel_find("scale_nf4"), &spec, ptx_sm_find("sm_90"), NULL, &text, &error));
    CHECK(!error.no_memory);
    CHECK_EQ_STR(error.text, "data is 15; it must be f32, f16, bf16, f64");
    CHECK(text.ptx == NULL);
}
