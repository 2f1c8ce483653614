/* Every kernel on the device under test. Each kernel has a turn for each of ptxvm's SMs and for two orders of its warps and
 * blocks, with every check on: a finding fails the call that it was found in. A GPU takes all turns. */
#include <stdio.h>

#include "formats/sample.h"
#include "parity/matrix.h"
#include "device/under_test.h"
#include "parity/trial.h"
#include "test.h"

static const char *const sms[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"};
enum { SMS = sizeof sms / sizeof sms[0], SEEDS = PARITY_TURNS / SMS };
_Static_assert(SMS *SEEDS == PARITY_TURNS && SEEDS == 2, "every turn has an SM and a seed of its own");

/* A turn for each SM and seed. */
static int turn_count(void)
{
    return parity_row_count() * PARITY_TURNS;
}

static void turn_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_turn_%d", parity_row_at(index / PARITY_TURNS)->name, index % PARITY_TURNS);
}

DEVICE_EACH(Parity, HostRef, turn_count, turn_name)
{
    int turn = index % PARITY_TURNS;
    qdnnHandle_t handle = device_begin(sms[turn % SMS], 1 + turn / SMS, "all");
    if (handle)
        parity_run_turn(handle, parity_row_at(index / PARITY_TURNS), turn);
    device_end(handle);
}

_Static_assert((int)MATRIX_TURNS == (int)SMS, "matrices have a turn for each SM");

static int matrix_count(void)
{
    return matrix_row_count() * MATRIX_TURNS;
}

static void matrix_name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_turn_%d", matrix_row_at(index / MATRIX_TURNS)->name, index % MATRIX_TURNS);
}

DEVICE_EACH(Parity, Matrices, matrix_count, matrix_name)
{
    int turn = index % MATRIX_TURNS;
    qdnnHandle_t handle = device_begin(sms[turn], 1 + turn % 2, "all");
    bool alive = handle != NULL;
    for (int i = 0; i < MATRIX_TRIALS && alive; i++) {
        parity_trial trial = matrix_trial_at(matrix_row_at(index / MATRIX_TURNS), turn, i);
        alive = parity_run(handle, &trial);
    }
    device_end(handle);
}

/* Settings of a matrix, with scales over scales where there are such. Those of channels have the matrix in their text. */
static parity_trial settings_at(const kernel_row *row, int turn)
{
    parity_trial first = {0};
    for (int i = 0; i < MATRIX_TRIALS; i++) {
        const parity_trial trial = matrix_trial_at(row, turn, (turn + i) % MATRIX_TRIALS);
        if (trial.c.granularity == QDNN_GRANULARITY_CHANNEL)
            continue;
        if (turn % 2 == 0 || trial.c.spec.stored.nested || trial.c.spec.stored.global_scale)
            return trial;
        if (!first.c.row)
            first = trial;
    }
    return first;
}

static int matrix_trial_count(void)
{
    return sample_is_full() ? matrix_count() : MATRIX_TURNS;
}

static int matrix_trial_case(int index)
{
    return sample_is_full() ? index : (index * 5 * MATRIX_TURNS + index) % matrix_count();
}

static void matrix_trial_name(int index, char *text, size_t size)
{
    matrix_name(matrix_trial_case(index), text, size);
}

/* One text with many matrices, so that a mistake in any line of it shows (docs/mutation.md). By default few of them. */
DEVICE_EACH(Parity, MatrixTrials, matrix_trial_count, matrix_trial_name)
{
    const int at = matrix_trial_case(index), turn = at % MATRIX_TURNS, step = sample_is_full() ? 1 : 13;
    const parity_trial trial = settings_at(matrix_row_at(at / MATRIX_TURNS), turn);
    qdnnHandle_t handle = device_begin(sms[turn], 1 + turn % 2, "all");
    bool alive = handle != NULL;
    for (int i = index % step; i < MATRIX_OTHERS && alive; i += step) {
        parity_trial other;
        alive = !matrix_other(&trial, i, &other) || parity_run(handle, &other);
    }
    for (int i = index % step; i < (sample_is_full() ? MATRIX_EXTRAS : MATRIX_EXTRAS - 1) && alive;
         i += step) {
        parity_trial extra;
        alive = !matrix_extra(&trial, i, &extra) || parity_run(handle, &extra);
    }
    device_end(handle);
}

DEVICE_EACH(Parity, Large, parity_row_count, parity_row_name)
{
    qdnnHandle_t handle = device_begin(sms[index % SMS], 3, "all");
    bool alive = handle != NULL;
    for (int i = 0; i < parity_large_count() && alive; i++) {
        parity_trial trial = parity_large_at(parity_row_at(index), i);
        alive = parity_run(handle, &trial);
    }
    device_end(handle);
}
