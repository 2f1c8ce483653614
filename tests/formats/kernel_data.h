/* Inputs for kernels: the kinds of data that break quantization code, made the same way on every run. */
#ifndef QDNN_TEST_KERNEL_DATA_H
#define QDNN_TEST_KERNEL_DATA_H

#include "kernels/kernels.h"

typedef enum {
    DATA_NORMAL,
    DATA_CONSTANT,
    DATA_ZEROS, /* of both signs */
    DATA_SUBNORMAL,
    DATA_HUGE,    /* up to the largest finite value of both signs: ranges overflow */
    DATA_SPECIAL, /* normal, with NaN of several kinds and infinities among it */
    DATA_TIES,    /* half way between two codes of the format, and its extremes: groups with a scale of 1 */
    DATA_KINDS,   /* this many take turns in every kernel; those that follow are requested by name */
    DATA_CLAMP = DATA_KINDS, /* at, around and beyond the least and the largest code: for a caller's scales */
    DATA_ONE_HOT,            /* fill_one_hot */
    DATA_SUB_BLOCKS, /* sixteen elements each of another kind, and all sizes: what a search for scales meets */
    DATA_LEAST, /* up to 15 times the least number, or up to seed % 16 times if the seed has LEAST_OF_SEED: scales round to less than the
                   quotient, and codes are clamped */
    DATA_INFINITE, /* infinities of one sign, which the seed chooses, and NaN */
    DATA_NANS,     /* normal, with NaN and no infinities, beside whose scale every other number is 0 */
    DATA_MINUTE, /* from 0 to a little below the least f16: zeros of f16 round to far less, and codes are clamped */
    DATA_UNDERFLOW, /* quotients by the scale of a table underflow, some to 3/4 of the least f32 */
    DATA_TINY,      /* up to 15 times the least number, all positive, or all negative if the seed is odd */
    DATA_CANCELS, /* of products: rows of x whose sum with equal weights is what roundings leave; else normal times powers of two, so that even sums of
                     numbers with few bits are rounded */
    DATA_SCALE_TIES, /* scales lie half way between two numbers of f16 or bf16, as the seed chooses */
    DATA_PEAKS, /* small, with large numbers far apart, as the seed chooses: extremes at every place of a group */
    DATA_HALVES, /* one magnitude and half of it, or ties times one number: half way between two codes but for the scale's rounding */
    DATA_FEW_F16, /* a few times the least f16, of both signs: scales of f16 round to far less, and codes are clamped */
    DATA_WIDE, /* so large that the width of a range overflows, and no infinities: its ends are any numbers */
    DATA_SPREAD, /* as large as the format's largest number, and down to 2^-24 of it: codes of every exponent */
    DATA_SMALL, /* normal; a quant_case multiplies f32 scales by 2^-80: too small for decoders that rely on their size */
    DATA_STEPS, /* integers from -L to L - 1, or of the other sign: L, which the seed chooses, is around the largest codes */
    DATA_BEYOND, /* up to 2^7 below the largest number, and infinities; all negative if the seed is odd */
    DATA_HOLES,  /* up to 1/4, and NaN: anything else in their place is larger */
    DATA_FAR,    /* all beyond the largest f16, and close together; all negative if the seed is odd */
    DATA_FLOOR, /* around 1e-12, the usual floor of a range, of both signs or of one, as the seed chooses; else 0 */
    DATA_ENDS, /* infinities of both signs, or of one as the seed chooses, the largest numbers, NaN and zeros */
    DATA_NESTED, /* for scales that are the elements themselves: at, beside and between the thresholds of a quant_case's nested map */
    DATA_UNEVEN, /* up to the format's largest number, and peaks beyond it, no two alike, so that each group has a scale of its own; then moved
                    to the bounds between codes (move_to_bounds in edges.h). A caller's scales are those of fill_beside_scales */
    DATA_INFINITE_TIES, /* infinities of one sign, and one number of the other; a caller's scales are huge: the largest f32 is just beyond half way
                           between two codes. The seed chooses the sign and the codes */
    DATA_LARGE,         /* normal times 2^60, in f16 2^12: products with small weights are moderate */
    DATA_RARELY_LARGE,  /* normal, and one in 2048 of 2^100, with any sign; in f16 2^14 */
    DATA_UNBOUNDED, /* one number; a quant_case makes the last f32 scale of some rows infinite, or a few elements where there are no scales:
                       what lies beyond the end of a row counts, unless it is left out */
    DATA_UNEQUAL, /* normal; a quant_case makes one f32 scale in a few rows too small or too large for decoders that rely on their size,
                   * blocks of any bits whose numbers are of moderate size (decoding them rounds), and NaN of a few codes */
    DATA_LARGE_CANCELS, /* both */
    DATA_SMALL_CONSTANT /* both */
} data_kind;

enum { LEAST_OF_SEED = 256 };

/* Fills n elements of an f32, f16, bf16 or f64 tensor that is meant for the format. */
void fill_data(data_kind kind, const format_facts *format, qdnnDataType_t type, uint32_t seed, void *x,
               int64_t n);

/* Small numbers but for the two extremes of each group, one positive and one negative. Groups are as kernel_spec has
 * them. `turn` moves the extremes: in 0 they are the first and the second element of a group, in 1 the last and the
 * one before it, then elsewhere: within 34 turns on every lane and every warp, however elements are dealt to them. */
void fill_one_hot(qdnnDataType_t type, uint64_t group_size, uint64_t channels, uint32_t turn, void *x,
                  int64_t n);

/* Scales and zero points that the scale operation never makes but a caller may pass: zeros, negative
 * numbers, infinities, NaNs, subnormals, fractions. Where there are enough groups, every scale meets every
 * zero point. `first` is the place in the lists that the first group takes. */
void fill_callers_scales(qdnnScaleType_t type, int64_t first, void *scale, int64_t n);
void fill_callers_zeros(qdnnDataType_t type, int64_t first, void *zero, int64_t n);
/* Scales of 1, 2, 1/2 and -1, by which the ends of the codes' range are numbers of few bits. */
void fill_simple_scales(qdnnScaleType_t type, uint32_t seed, void *scale, int64_t n);
/* The least peak of DATA_UNEVEN; other numbers are below it. */
float least_peak(const format_facts *format);

/* Scales by which numbers of few bits are a last bit beside the bounds between the format's codes; if they are huge, the largest f32 is. */
void fill_beside_scales(const format_facts *format, qdnnScaleType_t type, uint32_t seed, bool is_huge,
                        void *scale, int64_t n);
/* Makes every second zero of a float type so small that it hardly changes what it is added to. */
void fill_small_zeros(qdnnDataType_t type, uint32_t seed, void *zero, int64_t n);
void fill_bytes(uint32_t seed, void *bytes, int64_t n);

#endif
