/* The trials that `./run mutate` judges: which settings of a kernel are emitted, and which data its text is run with.
 * The suite runs the same trials (KernelTrials), so the score of the tool is the suite's. */
#ifndef QDNN_TEST_KERNELS_TRIALS_H
#define QDNN_TEST_KERNELS_TRIALS_H

#include "test_kernels_parity.h"

enum { TRIAL_SETTINGS_MAX = 16, TRIALS_MAX = 140 };

typedef struct trial_setting {
    kernel_spec spec;
    const char *sm;
} trial_setting;

/* How many settings there are for the kernel. None: the harness of test_kernels_parity.c, whose tensors are flat arrays
 * with scales of their own, does not run such kernels. */
int trial_settings(const kernel_row *row, trial_setting settings[TRIAL_SETTINGS_MAX]);

/* The launches for a setting; how many. */
int trials_for(const kernel_row *row, const kernel_spec *spec, parity_trial trials[TRIALS_MAX]);

#endif
