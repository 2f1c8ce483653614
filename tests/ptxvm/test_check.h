/* Kernels with a seeded bug, and the finding that each must produce. The text of a kernel is written a line an
 * instruction, so that the expected lines can be read off: the body of CHECK_KERNEL begins on line
 * CHECK_FIRST. */
#ifndef TEST_CHECK_H
#define TEST_CHECK_H

#include "test_exec.h"

/* clang-format off */
#define CHECK_FIRST 8
#define CHECK_KERNEL(body)                                                                                   \
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n"                 \
    ".reg .pred p<10>; .reg .b16 h<10>; .reg .b32 r<40>; .reg .b64 d<20>; .reg .f32 f<20>; .shared .align 16 .b8 tile[4096];\n" \
    "ld.param.u64 d0, [out]; mov.u32 r0, %tid.x; mov.u32 r1, %ctaid.x; mul.wide.u32 d2, r0, 4; add.u64 d1, d0, d2; shl.b32 r2, r0, 2; mov.u32 r3, tile; add.u32 r3, r3, r2; mul.wide.u32 d3, r1, 1024; add.u64 d4, d1, d3;\n" body "\nret;\n}\n"
/* clang-format on */
/* d0: the buffer; d1: its word for the thread; d4: for the thread of the grid; r3: a word of tile for the
 * thread; r0, r1: %tid.x, %ctaid.x; r2: 4 * r0. The buffer has 1024 words, all zero. */

enum { CHECK_WORDS = 1024 };

typedef struct check_result {
    ptxvm *vm;
    ptxvm_address buffer;
    ptxvm_status status;
    const ptxvm_finding *findings;
    int n;
    uint64_t total;
} check_result;

static inline check_result check_run(const char *text, uint32_t blocks, uint32_t threads, unsigned checks,
                                     int host_threads)
{
    check_result r = {.status = PTXVM_ERROR_ARGUMENT};
    ptxvm_config config = {.checks = checks, .threads = host_threads};
    exec_run run = exec_open(&config, text);
    uint32_t zero[CHECK_WORDS] = {0};
    r.vm = run.vm;
    if (run.status || ptxvm_alloc(run.vm, sizeof zero, &r.buffer) ||
        ptxvm_write(run.vm, r.buffer, zero, sizeof zero))
        return r;
    ptxvm_launch_config grid = exec_grid(blocks, threads);
    r.status = ptxvm_launch(run.vm, run.kernel, &grid, &r.buffer, sizeof r.buffer);
    r.findings = ptxvm_findings(run.vm, &r.n, &r.total);
    return r;
}

/* A seeded bug: its kind, the status, and where. */
typedef struct seeded {
    const char *name, *text;
    uint32_t blocks, threads;
    ptxvm_finding_kind kind;
    ptxvm_status status;
    int line; /* of the body, from 0 */
    uint32_t block, thread;
} seeded;

static inline void check_seeded(const seeded *s, int host_threads)
{
    check_result r = check_run(s->text, s->blocks, s->threads, PTXVM_CHECK_ALL, host_threads);
    CHECK_EQ_I64(r.status, s->status);
    if (CHECK(r.n >= 1)) {
        const ptxvm_finding *f = &r.findings[0];
        for (int i = r.n - 1; i > 0; i--) /* a race may be seen from both sides */
            if (r.findings[i].line == CHECK_FIRST + s->line)
                f = &r.findings[i];
        test_push_note("%s", f->message);
        CHECK_EQ_I64(f->kind, s->kind);
        CHECK_EQ_I64(f->line, CHECK_FIRST + s->line);
        CHECK_EQ_I64(f->block[0], s->block);
        CHECK_EQ_I64(f->thread[0], s->thread);
        CHECK_EQ_I64(f->lane, s->thread % 32);
        CHECK(strcmp(f->kernel, "k") == 0 && strcmp(f->function, "k") == 0);
        test_pop_note();
    }
    ptxvm_destroy(r.vm);
}

#endif
