/* Groups that rows look up by an index (GPTQ's g_idx): a table in shared memory, with all groups for the
 * columns of a block's tile. Any row may need any group, so the amount that a block loads does not depend on
 * its number of rows: few blocks, each looping over many rows, load little.
 *
 *     group 0      scales of the tile's columns, then zeros
 *     ...
 *     group G - 1
 *     group G      NaN, then 0: for rows whose index is out of range
 */
#include "kernels/quant/matrix.h"

enum {
    TABLE_WARPS = 8,
    TABLE_BYTES = 60 * 1024, /* sm_75 has 64 KiB, of which codes in transit take up to 2 */
    RUN = 4,                 /* adjacent columns of a group that a thread loads */
    RUNS_AHEAD = 4,
    /* blocks below each other load the same groups again: at most one such byte per 40 of the matrix */
    REPEATED_PART = 40
};

static unsigned tile_columns(const coding *c)
{
    return WARP * patch_width(c);
}

/* Numbers are kept in 16 bits if that is the type of the scales and it represents all zeros as well: twice as
 * many groups fit. */
static qdnnDataType_t number_type(const coding *c)
{
    const kernel_spec *spec = c->spec;
    const qdnnDataType_t type = spec->stored.nested ? QDNN_DATA_F32 : scale_data_type(spec->stored.scale);
    if (type != QDNN_DATA_F16 && type != QDNN_DATA_BF16)
        return QDNN_DATA_F32;
    const bool holds_zeros = !format_has_zero(c->format) || spec->stored.zero_packed ||
                             spec->stored.zero == type || spec->stored.zero == QDNN_DATA_U8 ||
                             spec->stored.zero == QDNN_DATA_I8;
    return holds_zeros ? type : QDNN_DATA_F32;
}

static unsigned array_bytes(const coding *c)
{
    return tile_columns(c) * element_bytes(number_type(c));
}

static unsigned group_bytes(const coding *c)
{
    return array_bytes(c) * (format_has_zero(c->format) ? 2 : 1);
}

static uint64_t table_bytes(const coding *c, const kernel_problem *problem)
{
    return (ceil_div(problem->rows, c->spec->stored.group_size) + 1) * group_bytes(c);
}

bool group_table_fits(const coding *c, const kernel_problem *problem)
{
    return table_bytes(c, problem) <= TABLE_BYTES;
}

static unsigned zero_bits(const coding *c)
{
    if (!format_has_zero(c->format))
        return 0;
    return c->spec->stored.zero_packed ? c->format->facts.bits : 8 * element_bytes(c->spec->stored.zero);
}

uint32_t group_table_bytes(const coding *c, const kernel_problem *problem)
{
    return (uint32_t)table_bytes(c, problem);
}

/* 1 + (bits of the elements) / (REPEATED_PART * bits of the groups). */
kernel_rule group_table_blocks(const coding *c)
{
    const kernel_spec *spec = c->spec;
    const unsigned of_element = 8 * element_bytes(spec->data) + c->format->facts.bits,
                   of_group = REPEATED_PART * (8 * scale_bytes(spec->stored.scale) + zero_bits(c));
    const kernel_rule elements = rule_times(rule_number(NUMBER_ROWS), rule_constant(of_element)),
                      groups = rule_times(rule_parts(NUMBER_ROWS, spec->stored.group_size),
                                          rule_constant(of_group));
    return rule_plus(rule_constant(1), rule_over(elements, groups));
}

group_stage group_table_of(const coding *c)
{
    return (group_stage){.is_used = true,
                         .is_table = true,
                         .warps = {TABLE_WARPS, 1},
                         .shared_dynamic = TABLE_BYTES,
                         .zeros_at = array_bytes(c)};
}

ptx_val group_table_serves(ptx_builder *b, const matrix *m)
{
    return ptx_setp(b, PTX_LT, m->groups, ptx_u64(b, TABLE_BYTES / group_bytes(&m->q.coding)));
}

/* ---- Filling ---- */

/* A run of the table: its group and first column (both u64), and its address. */
typedef struct table_run {
    ptx_val group, column, address;
} table_run;

/* Run i (u32), group by group. Columns beyond the edge of the matrix count as its last ones. */
static table_run run_at(ptx_builder *b, const matrix *m, const group_stage *s, ptx_val i)
{
    const coding *c = &m->q.coding;
    const unsigned runs = tile_columns(c) / RUN;
    ptx_val group = ptx_shr(b, i, ceil_log2(runs)), first = ptx_mul(b, ptx_and(b, i, runs - 1), RUN);
    ptx_val column = ptx_add(b, s->column, ptx_cvt(b, PTX_U64, first));
    return (table_run){.group = ptx_cvt(b, PTX_U64, group),
                       .column = ptx_min(b, column, ptx_sub(b, m->columns, ptx_u64(b, RUN))),
                       .address = ptx_mad(b, group, group_bytes(c),
                                          ptx_at(b, s->numbers, first, element_bytes(number_type(c))))};
}

static void store_numbers(ptx_builder *b, const coding *c, ptx_val address, unsigned offset,
                          const ptx_val x[RUN])
{
    const qdnnDataType_t type = number_type(c);
    ptx_val words[RUN / 2];
    for (unsigned k = 0; type != QDNN_DATA_F32 && k < RUN; k += 2)
        words[k / 2] = emit_narrow_pair(b, type, x[k], x[k + 1]);
    if (type == QDNN_DATA_F32)
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, address, (int)offset, x, RUN);
    else
        ptx_st_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, address, (int)offset, words, RUN / 2);
}

static void store_run(ptx_builder *b, const coding *c, const group_stage *s, ptx_val address,
                      const ptx_val *scales, const ptx_val *zeros)
{
    store_numbers(b, c, address, 0, scales);
    if (format_has_zero(c->format))
        store_numbers(b, c, address, s->zeros_at, zeros);
}

/* Fills the runs from `begin` to `end` (u32); each thread loads `ahead` of them at a time. */
static void fill_runs(ptx_builder *b, const matrix *m, const group_stage *s, ptx_val begin, ptx_val end,
                      unsigned ahead)
{
    const unsigned threads = TABLE_WARPS * WARP;
    ptx_val scales[RUNS_AHEAD][RUN], zeros[RUNS_AHEAD][RUN], address[RUNS_AHEAD];
    ptx_val i = ptx_for(b, ptx_add(b, begin, ptx_tid_x(b)), end, ptx_u32(b, ahead * threads));
    for (unsigned k = 0; k < ahead; k++) {
        table_run run = run_at(b, m, s, k ? ptx_add(b, i, k * threads) : i);
        matrix_column_numbers(b, m, run.group, run.column, RUN, scales[k], zeros[k]);
        address[k] = run.address;
    }
    for (unsigned k = 0; k < ahead; k++)
        store_run(b, &m->q.coding, s, address[k], scales[k], zeros[k]);
    ptx_end_for(b);
}

void group_table_fill(ptx_builder *b, const matrix *m, const group_stage *s)
{
    const coding *c = &m->q.coding;
    const unsigned runs = tile_columns(c) / RUN;
    ptx_val all = ptx_mul(b, ptx_cvt(b, PTX_U32, m->groups), runs), none[RUN], no_zero[RUN];
    ptx_val whole = ptx_and(b, all, ptx_u32(b, ~(uint32_t)(RUNS_AHEAD * TABLE_WARPS * WARP - 1)));
    fill_runs(b, m, s, ptx_u32(b, 0), whole, RUNS_AHEAD);
    fill_runs(b, m, s, whole, all, 1);
    for (unsigned k = 0; k < RUN; k++) {
        none[k] = ptx_bits(b, PTX_F32, 0x7FFFFFFF);
        no_zero[k] = ptx_f32(b, 0);
    }
    ptx_if(b, ptx_setp(b, PTX_LT, ptx_tid_x(b), runs));
    store_run(b, c, s, run_at(b, m, s, ptx_add(b, all, ptx_tid_x(b))).address, none, no_zero);
    ptx_end_if(b);
}

/* ---- Reading ---- */

/* Loads the group indices of a band, one row per lane. */
void group_table_band(ptx_builder *b, const matrix *m, group_stage *s, const patch *p)
{
    const coding *c = &m->q.coding;
    ptx_val index = row_list_of_band(b, m->group_index, m->rows, p->row);
    ptx_val column = ptx_cvt(b, PTX_U32, ptx_sub(b, p->column, s->column));
    s->band = p->row;
    s->of_lane = ptx_mul(b, ptx_min(b, index, ptx_cvt(b, PTX_U32, m->groups)), group_bytes(c));
    s->of_column = ptx_at(b, s->numbers, column, element_bytes(number_type(c)));
}

static void read_numbers(ptx_builder *b, const coding *c, ptx_val address, unsigned offset, unsigned width,
                         ptx_val *x)
{
    const qdnnDataType_t type = number_type(c);
    const unsigned words = width * element_bytes(type) / 4, together = words < 4 ? words : 4;
    ptx_val word[CHUNK_MAX];
    for (unsigned k = 0; k < words; k += together)
        ptx_ld_vec(b, PTX_SHARED, PTX_CACHE_DEFAULT, PTX_U32, address, (int)(offset + 4 * k), &word[k],
                   (int)together);
    for (unsigned k = 0; k < words; k++)
        emit_widen_word(b, type, word[k], &x[k * width / words]);
}

void group_table_read(ptx_builder *b, const matrix *m, const group_stage *s, ptx_val row, const patch *p,
                      group_values *each)
{
    const coding *c = &m->q.coding;
    ptx_val scales[CHUNK_MAX], zeros[CHUNK_MAX] = {{0}};
    ptx_val lane = ptx_cvt(b, PTX_U32, ptx_sub(b, row, s->band));
    ptx_val address = ptx_add(b, s->of_column, ptx_shfl_idx(b, s->of_lane, lane));
    read_numbers(b, c, address, 0, p->width, scales);
    if (format_has_zero(c->format))
        read_numbers(b, c, address, s->zeros_at, p->width, zeros);
    for (unsigned k = 0; k < p->width; k++)
        each[k] = group_of_numbers(b, c, &m->q.side, scales[k], zeros[k]);
}
