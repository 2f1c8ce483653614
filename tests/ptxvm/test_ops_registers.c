/* setmaxnreg: registers that one warpgroup gives back, and another waits for. */
#include "test_exec.h"

/* Three warpgroups: r1 = the number of the warpgroup; out[thread] = r2 in the end. */
#define KERNEL(directives, body)                                                                             \
    ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 out) " directives         \
    "\n{\n.reg .pred p<4>; .reg .b32 r<10>; .reg .b64 d<4>; .shared .b32 given;\n"                           \
    "ld.param.u64 d0, [out]; mov.u32 r0, %tid.x; shr.u32 r1, r0, 7; mul.wide.u32 d1, r0, 4; add.u64 d0, "    \
    "d0, d1;\nsetp.eq.u32 p0, r1, 0; setp.eq.u32 p1, r1, 1; mov.u32 r2, 7;\n" body                           \
    "\nst.global.u32 [d0], r2;\nret;\n}\n"
#define THREE ".maxntid 384, 1, 1 .minnctapersm 1" /* 168 registers each */

enum { THREADS = 384 };

typedef struct registers_test {
    const char *name, *text;
    ptxvm_status status;
    const char *error;
} registers_test;

/* clang-format off */
static const registers_test tests[] = {
    {"one gives, two take", KERNEL(THREE, "@p0 bra GIVE; setmaxnreg.inc.sync.aligned.u32 240; bra DONE; GIVE: setmaxnreg.dec.sync.aligned.u32 24; DONE:"), PTXVM_OK, ""},
    {"by .maxnreg", KERNEL(".maxnreg 128", "@p0 bra GIVE; setmaxnreg.inc.sync.aligned.u32 176; bra DONE; GIVE: setmaxnreg.dec.sync.aligned.u32 32; DONE:"), PTXVM_OK, ""},
    {"back again", KERNEL(THREE, "setmaxnreg.dec.sync.aligned.u32 64; bar.sync 0; setmaxnreg.inc.sync.aligned.u32 168;"), PTXVM_OK, ""},
    {"not known", KERNEL("", "setmaxnreg.inc.sync.aligned.u32 256;"), PTXVM_OK, ""},
    {"too many", KERNEL(THREE, "@p0 bra GIVE; setmaxnreg.inc.sync.aligned.u32 248; bra DONE; GIVE: setmaxnreg.dec.sync.aligned.u32 24; DONE:"), PTXVM_ERROR_DEADLOCK, "no thread of the block can go on"},
    {"dec to more", KERNEL(THREE, "setmaxnreg.dec.sync.aligned.u32 176;"), PTXVM_ERROR_EXECUTION, "setmaxnreg.dec to 176 registers: the threads have 168"},
    {"inc to fewer", KERNEL(THREE, "setmaxnreg.inc.sync.aligned.u32 160;"), PTXVM_ERROR_EXECUTION, "setmaxnreg.inc to 160 registers: the threads have 168"},
};
/* clang-format on */

TEST_ROWS(SetMaxNReg, Pool, tests)
{
    const registers_test *t = &tests[index];
    for (uint64_t seed = 0; seed < 4; seed++) {
        uint32_t out[THREADS] = {0};
        ptxvm_config config = {.sm = "sm_90a", .seed = seed};
        exec_run run = exec_open(&config, t->text);
        CHECK_EQ_I64(exec_launch(&run, exec_grid(1, THREADS), out, THREADS), t->status);
        if (t->status)
            CHECK_HAS(ptxvm_last_error(run.vm), t->error);
        for (int i = 0; !t->status && i < THREADS; i++)
            CHECK_EQ_U32(out[i], 7);
        exec_close(&run);
    }
}

/* Who takes waits: what the giver wrote before is there. */
TEST_CASE(SetMaxNReg, TakersWait)
{
    static const char text[] = KERNEL(
        THREE,
        "@!p0 bra TAKE; mov.u32 r3, 0; LOOP: add.u32 r3, r3, 1; setp.lt.u32 p3, r3, 1000; @p3 bra LOOP; "
        "st.shared.u32 [given], 9; setmaxnreg.dec.sync.aligned.u32 24; bra DONE;\nTAKE: "
        "setmaxnreg.inc.sync.aligned.u32 240; ld.shared.u32 r2, [given];\nDONE:");
    for (uint64_t seed = 0; seed < 8; seed++) {
        uint32_t out[THREADS] = {0};
        ptxvm_config config = {.sm = "sm_90a", .seed = seed};
        exec_run run = exec_open(&config, text);
        CHECK_EQ_I64(exec_launch(&run, exec_grid(1, THREADS), out, THREADS), PTXVM_OK);
        for (int w = 4; w < 12; w++)
            CHECK_EQ_U32(out[32 * w], 9);
        exec_close(&run);
    }
}
