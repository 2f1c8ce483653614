/* The meaning of codes: how bits become a number, and which code is nearest to a quotient. One row per kind
 * of code; scales and zeros are handled elsewhere. */
#include "host_ref/internal.h"

/* Integers: the three kinds differ in what is added to the number to get the bits of its code. */

static unsigned mask_of(const codec *c)
{
    return (1u << c->bits) - 1;
}

static float offset_decode(const codec *c, unsigned code)
{
    return (float)((int)code - (1 << (c->bits - 1)));
}

static unsigned offset_encode(const codec *c, float v)
{
    return (unsigned)((int)v + (1 << (c->bits - 1)));
}

static float unsigned_decode(const codec *c, unsigned code)
{
    (void)c;
    return (float)code;
}

static unsigned unsigned_encode(const codec *c, float v)
{
    (void)c;
    return (unsigned)v;
}

static float twos_decode(const codec *c, unsigned code)
{
    int number = (int)code;
    return (float)(number < 1 << (c->bits - 1) ? number : number - (1 << c->bits));
}

static unsigned twos_encode(const codec *c, float v)
{
    return (unsigned)(int)v & mask_of(c);
}

/* Tables. */

unsigned hr_nearest_entry(const float *entries, unsigned count, float v)
{
    unsigned place = 0;
    for (unsigned i = 0; i + 1 < count; i++) {
        float midpoint = (entries[i] + entries[i + 1]) * 0.5f;
        if (midpoint < v)
            place = i + 1;
    }
    return place;
}

/* clang-format off */
static const uint32_t nf4_bits[16] = {
    0xBF800000, 0xBF3239B1, 0xBF066B30, 0xBECA32A0, 0xBE91A24D, 0xBE3D353F, 0xBDBA7871, 0x00000000,
    0x3DA2FAFF, 0x3E24CAE3, 0x3E7C04DD, 0x3EAD033A, 0x3EE1A4B8, 0x3F1007AB, 0x3F3913B3, 0x3F800000,
};

/* bitsandbytes' FP4: the magnitudes by code; and the codes in ascending order of magnitude, each with its
 * threshold: |v| must be strictly above it. */
static const uint32_t bnb_bits[8] = {
    0x00000000, 0x3BAAAAAB, 0x3F2AAAAB, 0x3F800000, 0x3EAAAAAB, 0x3F000000, 0x3E2AAAAB, 0x3E800000,
};
static const struct {
    uint32_t above;
    unsigned code;
} bnb_steps[7] = {
    {0x3B2AAAB9, 1}, {0x3DB00000, 6}, {0x3E555555, 7}, {0x3E955555, 4}, {0x3ED55556, 5}, {0x3F155550, 2},
    {0x3F555555, 3},
};
/* clang-format on */

static float nf4_decode(const codec *c, unsigned code)
{
    (void)c;
    return ref_f32_from_bits(nf4_bits[code]);
}

static unsigned nf4_encode(const codec *c, float v)
{
    float entries[16];
    for (unsigned i = 0; i < 16; i++)
        entries[i] = nf4_decode(c, i);
    return hr_nearest_entry(entries, 16, v);
}

static float bnb_decode(const codec *c, unsigned code)
{
    (void)c;
    float magnitude = ref_f32_from_bits(bnb_bits[code & 7]);
    return code & 8 ? -magnitude : magnitude;
}

static unsigned bnb_encode(const codec *c, float v)
{
    (void)c;
    unsigned code = 0;
    for (int i = 0; i < 7; i++)
        if (fabsf(v) > ref_f32_from_bits(bnb_steps[i].above))
            code = bnb_steps[i].code;
    return v < 0.0f ? code | 8 : code;
}

/* Floats. */

static ref_minifloat minifloat_of(const codec *c)
{
    switch (c->storage) {
    case QDNN_DATA_F8E4M3:
        return REF_E4M3;
    case QDNN_DATA_F8E5M2:
        return REF_E5M2;
    case QDNN_DATA_FP4:
        return REF_E2M1;
    default:
        return c->kind == QDNN_CODE_E2M3 ? REF_E2M3 : REF_E3M2;
    }
}

static float float_decode(const codec *c, unsigned code)
{
    return hr_minifloat_to_f32(minifloat_of(c), code);
}

static unsigned float_encode(const codec *c, float v)
{
    return hr_f32_to_minifloat(minifloat_of(c), v);
}

/* Rows of integers have neither storage nor width; integer_codec fills in what depends on them. */
static const codec codecs[] = {
    {.kind = QDNN_CODE_OFFSET, .family = CODEC_INTEGER, .decode = offset_decode, .encode = offset_encode},
    {.kind = QDNN_CODE_UNSIGNED,
     .family = CODEC_INTEGER,
     .decode = unsigned_decode,
     .encode = unsigned_encode},
    {.kind = QDNN_CODE_TWOS_COMPLEMENT,
     .family = CODEC_INTEGER,
     .decode = twos_decode,
     .encode = twos_encode},
    {QDNN_DATA_NF4, QDNN_CODE_DEFAULT, CODEC_TABLE, 4, 0, 0, 1.0f, 0, 0, false, nf4_decode, nf4_encode},
    {QDNN_DATA_FP4, QDNN_CODE_FP4_BNB, CODEC_TABLE, 4, 0, 0, 1.0f, 0, 0, false, bnb_decode, bnb_encode},
    {QDNN_DATA_FP4, QDNN_CODE_DEFAULT, CODEC_FLOAT, 4, 0, 0, 6.0f, 2, 1, false, float_decode, float_encode},
    {QDNN_DATA_U8, QDNN_CODE_E2M3, CODEC_FLOAT, 6, 0, 0, 7.5f, 2, 3, false, float_decode, float_encode},
    {QDNN_DATA_U8, QDNN_CODE_E3M2, CODEC_FLOAT, 6, 0, 0, 28.0f, 4, 2, false, float_decode, float_encode},
    {QDNN_DATA_F8E4M3, QDNN_CODE_DEFAULT, CODEC_FLOAT, 8, 0, 0, 448.0f, 8, 3, true, float_decode,
     float_encode},
    {QDNN_DATA_F8E5M2, QDNN_CODE_DEFAULT, CODEC_FLOAT, 8, 0, 0, 57344.0f, 15, 2, true, float_decode,
     float_encode},
};

static bool is_integer_storage(qdnnDataType_t storage)
{
    return storage == QDNN_DATA_I4 || storage == QDNN_DATA_I8 || storage == QDNN_DATA_U8;
}

static qdnnCodeKind_t default_integer_kind(qdnnDataType_t storage, int bits, qdnnZeroKind_t zero_kind)
{
    if (storage == QDNN_DATA_I8 && bits == 8)
        return QDNN_CODE_TWOS_COMPLEMENT;
    return zero_kind == QDNN_ZERO_NONE ? QDNN_CODE_OFFSET : QDNN_CODE_UNSIGNED;
}

static codec integer_codec(codec row, qdnnDataType_t storage, int bits)
{
    int half = 1 << (bits - 1);
    bool positive = row.kind == QDNN_CODE_UNSIGNED;
    row.storage = storage;
    row.bits = bits;
    row.low = positive ? 0.0f : (float)-half;
    row.high = positive ? (float)(2 * half - 1) : (float)(half - 1);
    row.top = row.high;
    return row;
}

static bool row_fits(const codec *row, qdnnDataType_t storage, qdnnCodeKind_t kind)
{
    if (row->family == CODEC_INTEGER)
        return is_integer_storage(storage) && row->kind == kind;
    return row->storage == storage && row->kind == kind;
}

bool hr_codec_of(const ref_quant_spec *spec, codec *out, const hr_reason *why)
{
    const qdnnDataType_t storage = spec->storage;
    qdnnCodeKind_t kind = spec->code;
    int bits = spec->bits;
    if (bits == 0 && is_integer_storage(storage))
        bits = storage == QDNN_DATA_I4 ? 4 : kind == QDNN_CODE_E2M3 || kind == QDNN_CODE_E3M2 ? 6 : 8;
    if (kind == QDNN_CODE_DEFAULT && is_integer_storage(storage))
        kind = default_integer_kind(storage, bits, spec->zero_kind);
    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++) {
        if (!row_fits(&codecs[i], storage, kind))
            continue;
        *out = codecs[i];
        if (codecs[i].family == CODEC_INTEGER) {
            HR_RULE(storage != QDNN_DATA_I4 || bits == 4, "bits is %d; storage I4 has 4", bits);
            HR_RULE(bits >= 2 && bits <= 8 && bits != 7, "bits is %d; integer codes have 2 to 6, or 8", bits);
            *out = integer_codec(codecs[i], storage, bits);
            return true;
        }
        HR_RULE(bits == 0 || bits == codecs[i].bits, "bits is %d; this storage has %d", bits, codecs[i].bits);
        HR_RULE(spec->zero_kind == QDNN_ZERO_NONE, "only integer codes have zeros or minima");
        return true;
    }
    return hr_deny(why, "storage 0x%02X with code kind %d has no row in the table of codecs",
                   (unsigned)storage, (int)kind);
}
