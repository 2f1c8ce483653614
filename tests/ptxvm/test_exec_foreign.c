/* The caller's floating-point environment: constants are parsed and kernels computed in the default one, in every
 * thread, and the caller's is the same after each call. */
#include "support/foreign.h"
#include "test_exec.h"

/* Sums of 0.1 and squares of subnormal size, with enough instructions per block for several threads. 0.1 and
 * 1e-41 are decimal constants: they are rounded when the text is read. */
static const char text[] = EXEC_KERNEL(
    EXEC_INDEX ".reg .b16 h0; mov.f32 f0, 0.1; mov.f32 f1, 0.0; mov.f32 f2, 1e-41; mov.u32 r4, 0; "
               "cvt.rn.f32.u32 f3, r2;\n"
               "fma.rn.f32 f3, f3, f0, f0;\n"
               "again: add.rn.f32 f1, f1, f3; mul.rn.f32 f4, f2, f3; add.rn.f32 f2, f2, f4;\n"
               "cvt.rn.f16.f32 h0, f1; cvt.f32.f16 f5, h0; fma.rn.f32 f1, f5, f0, f1;\n"
               "add.u32 r4, r4, 1; setp.lt.u32 p0, r4, 100; @p0 bra again;\n"
               "mov.b32 r5, f1; mov.b32 r6, f2; mad.lo.u32 r5, r5, 31, r6; st.global.u32 [d1], r5;\n");

enum { BLOCKS = 64, THREADS = 32, WORDS = BLOCKS * THREADS };

static void run(int threads, uint32_t *out)
{
    ptxvm_config config = {.threads = threads};
    exec_run r = exec_open(&config, text);
    exec_launch(&r, (ptxvm_launch_config){.grid = {BLOCKS, 1, 1}, .block = {THREADS, 1, 1}}, out, WORDS);
    exec_close(&r);
}

TEST_EACH(ExecForeign, KernelsInEveryThread, foreign_count, foreign_name)
{
    uint32_t expected[WORDS] = {0}, got[WORDS] = {0};
    run(1, expected);
    for (int threads = 1; threads <= 4; threads += 3) {
        test_push_note("%d threads", threads);
        foreign_begin(index);
        run(threads, got);
        foreign_end(index);
        CHECK_EQ_MEM(got, expected, sizeof got);
        test_pop_note();
    }
}

TEST_EACH(ExecForeign, TextThatIsRefused, foreign_count, foreign_name)
{
    ptxvm *vm = NULL;
    ptxvm_module *module = NULL;
    foreign_begin(index);
    ptxvm_status created = ptxvm_create(NULL, &vm);
    ptxvm_status loaded = ptxvm_module_load(vm, "add", 3, &module);
    foreign_end(index);
    CHECK_EQ_I64(created, PTXVM_OK);
    CHECK_EQ_I64(loaded, PTXVM_ERROR_PTX);
    ptxvm_destroy(vm);
}
