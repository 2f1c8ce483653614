/* One-shot calls keep their plans in the handle: calls that differ in one thing alone must not get each
 * other's. */
#include "device/under_test.h"
#include "parity/trial.h"
#include "formats/sample.h"
#include "test.h"

enum { VARIATIONS = 15 };

/* A case, and cases that differ from it in one thing each. What a kernel does not take makes no difference.
 */
static void make_variations(const kernel_row *row, data_kind kind, quant_case out[VARIATIONS])
{
    const int64_t fewer = quant_case_columns(row, 24), more = quant_case_columns(row, 25);
    for (int i = 0; i < VARIATIONS; i++)
        out[i] = (quant_case){.row = row,
                              .spec = kernel_spec_default(),
                              .granularity = QDNN_GRANULARITY_GROUP,
                              .extent = 24,
                              .rank = 2,
                              .dims = {24, more},
                              .kind = kind,
                              .seed = 1};
    quant_case *v = out + 1;
    v++->spec.data = QDNN_DATA_F16;
    v++->spec.data = QDNN_DATA_BF16;
    v++->spec.stored.scale = QDNN_SCALE_BF16;
    v++->spec.stored.zero = QDNN_DATA_F16;
    v++->spec.stored.nibble_order = QDNN_NIBBLE_HIGH_FIRST;
    v++->spec.quantize.rounding = QDNN_ROUND_TIES_AWAY;
    v++->spec.quantize.division = QDNN_DIVIDE_RECIPROCAL;
    v++->spec.quantize.floor = 0.5f;
    v++->extent = 25;
    v->granularity = QDNN_GRANULARITY_TENSOR, v++->extent = 0;
    v->granularity = QDNN_GRANULARITY_CHANNEL, v++->extent = 0;
    v->granularity = QDNN_GRANULARITY_CHANNEL, v++->extent = 1;
    v->granularity = QDNN_GRANULARITY_CHANNEL, v->extent = 1, v->dims[0] = 25, v++->dims[1] = fewer;
    v++->dims[0] = 12;
    CHECK_EQ_I64(v - out, VARIATIONS);
}

DEVICE_EACH(ParityCalls, ThatDifferInOneThing, parity_row_count, parity_row_name)
{
    qdnnHandle_t handle = device_begin("sm_90", 1, "all");
    bool alive = handle != NULL;
    const int kinds = sample_is_search(parity_row_at(index)) ? 1 : DATA_KINDS;
    for (int kind = 0; kind < kinds; kind++) {
        quant_case cases[VARIATIONS];
        make_variations(parity_row_at(index), (data_kind)kind, cases);
        for (int i = 0; i < 2 * VARIATIONS && alive; i++) { /* each of them again behind the first one */
            parity_trial trial = {.c = cases[i % 2 ? i / 2 : 0], .buffers = BUFFER_EXACT};
            alive = parity_run(handle, &trial);
        }
    }
    device_end(handle);
}
