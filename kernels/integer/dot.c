/* The dot product of two vectors of nibbles, by one thread block. Sums are int32 that wrap, so the threads may add in any order. */
#include "kernels/integer/integer.h"

#include "kernels/emit.h"

enum { BLOCK = 256, WARPS = BLOCK / 32 };

typedef struct dot {
    ptx_val x, w;  /* u64 */
    ptx_val k;     /* u64: codes */
    ptx_val bytes; /* u32: of each vector */
    ptx_val sum;   /* s32 variable: the thread's */
} dot;

/* Each thread takes so many words of both vectors at a time. Their length is a multiple of that, so nothing is read past their end. */
static void add_words(ptx_builder *b, const dot *d, int words)
{
    ptx_val x[4], w[4], even[4], odd[4], bytes = ptx_u32(b, 4u * (unsigned)words);
    ptx_val at = ptx_for(b, ptx_mul(b, ptx_tid_x(b), bytes), d->bytes, BLOCK * 4 * words);
    ptx_val skipped = ptx_cvt(b, PTX_U64, at);
    ptx_ld_vec(b, PTX_GLOBAL, PTX_NC, PTX_U32, ptx_add(b, d->x, skipped), 0, x, words);
    ptx_ld_vec(b, PTX_GLOBAL, PTX_NC, PTX_U32, ptx_add(b, d->w, skipped), 0, w, words);
    for (int j = 0; j < words; j++)
        int_spread(b, w[j], &even[j], &odd[j]);
    int_add_nibbles(b, d->sum, words, x, even, odd);
    ptx_end_for(b);
}

/* Thread 0 subtracts what the padding has added. */
static void subtract_padding(ptx_builder *b, const dot *d)
{
    ptx_if(b, ptx_setp_and(b, PTX_EQ, ptx_tid_x(b), ptx_u32(b, 0), int_has_padding(b, d->k)));
    ptx_assign(b, d->sum, ptx_sub(b, d->sum, int_padding_products(b, d->k, d->x, d->w)));
    ptx_end_if(b);
}

static void add_all(ptx_builder *b, const dot *d)
{
    ptx_val low = ptx_cvt(b, PTX_U32, ptx_or(b, d->x, d->w));
    ptx_uniform(b);
    ptx_if(b, ptx_setp(b, PTX_EQ, ptx_and(b, ptx_or(b, low, d->bytes), INT_CHUNK - 1), 0));
    add_words(b, d, INT_CHUNK / 4);
    ptx_else(b);
    add_words(b, d, 1);
    ptx_end_if(b);
    subtract_padding(b, d);
}

/* Of so many neighbouring lanes, in each of them. */
static ptx_val sum_of_lanes(ptx_builder *b, ptx_val sum, int lanes)
{
    for (int distance = lanes / 2; distance; distance /= 2)
        sum = ptx_add(b, sum, ptx_shfl_bfly(b, sum, distance));
    return sum;
}

/* In every thread. */
static ptx_val sum_of_block(ptx_builder *b, ptx_val sum, ptx_val shared)
{
    ptx_val lane = ptx_laneid(b), warp = ptx_shr(b, ptx_tid_x(b), 5);
    ptx_val mine = sum_of_lanes(b, sum, 32);
    ptx_if(b, ptx_setp(b, PTX_EQ, lane, 0));
    ptx_st_shared(b, ptx_at(b, shared, warp, 4), 0, mine);
    ptx_end_if(b);
    ptx_syncthreads(b);
    ptx_val one = ptx_ld_shared(b, PTX_S32, ptx_at(b, shared, ptx_and(b, lane, WARPS - 1), 4), 0);
    return sum_of_lanes(b, one, WARPS);
}

static ptx_val scale_of(ptx_builder *b, const kernel_args *args, qdnnOperand_t operand)
{
    return ptx_ld_global_nc(b, PTX_F32, args->operand[operand], 0);
}

static void store(ptx_builder *b, const kernel_spec *spec, const kernel_args *args, ptx_val sum)
{
    ptx_val y = args->operand[QDNN_OPERAND_Y];
    if (spec->integer.result == QDNN_DATA_I32) {
        ptx_st_global(b, y, 0, sum);
        return;
    }
    ptx_val of_x = scale_of(b, args, QDNN_OPERAND_X_SCALE), of_w = scale_of(b, args, QDNN_OPERAND_SCALE);
    emit_store(b, spec->epilogue.output, y, 0,
               ptx_mul(b, ptx_mul(b, ptx_cvt_rn(b, PTX_F32, sum), of_x), of_w));
}

void emit_int_dot(ptx_builder *b, const kernel_row *row, const kernel_spec *spec)
{
    ptx_minnctapersm(b, 3); /* up to 80 registers */
    kernel_args args = kernel_declare(b, row, spec);
    ptx_val shared = ptx_shared(b, "sums", PTX_S32, WARPS, 4);
    dot d = {.x = args.operand[QDNN_OPERAND_X],
             .w = args.operand[QDNN_OPERAND_CODES],
             .k = args.number[NUMBER_COLUMNS],
             .bytes = int_row_bytes(b, QDNN_DATA_I4, args.number[NUMBER_COLUMNS]),
             .sum = ptx_var(b, ptx_s32(b, 0))};
    add_all(b, &d);
    ptx_val sum = sum_of_block(b, d.sum, shared);
    ptx_if(b, ptx_setp(b, PTX_EQ, ptx_tid_x(b), 0));
    store(b, spec, &args, sum);
    ptx_end_if(b);
}

kernel_geometry int_dot_geometry(const kernel_row *row, const kernel_spec *spec)
{
    (void)row, (void)spec;
    return (kernel_geometry){.block = BLOCK, .blocks = 1};
}
