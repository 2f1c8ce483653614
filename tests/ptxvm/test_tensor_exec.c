/* The silicon sets once more, the whole way: PTX with mma.sync, loaded and launched on the SM of the set; and
 * wmma from memory to memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fragments.h"
#include "ptxvm/ptxvm.h"
#include "support/silicon.h"
#include "test.h"

enum {
    LINES_EACH = 8, /* lines that one mma checks */
    BLOCKS = SILICON_LINES / LINES_EACH
};

/* How many registers each fragment has, and the instruction's name without "mma.sync.aligned.". */
typedef struct plan {
    const silicon_set *set;
    pvm_type result;
    int a_bits, a_regs, b_regs, c_regs;
} plan;

static plan plan_of(const silicon_set *set, pvm_type result)
{
    const int bits = set->type == T_TF32 ? 32 : set->type == T_F16 || set->type == T_BF16 ? 16 : 8;
    return (plan){set, result, bits, set->k * bits / 64, set->k * bits / 128, result == T_F16 ? 2 : 4};
}

typedef struct text {
    char at[8192];
    size_t length;
} text;

#define WRITE(t, ...)                                                                                        \
    ((t)->length += (size_t)snprintf((t)->at + (t)->length, sizeof(t)->at - (t)->length, __VA_ARGS__))

/* { %x0, %x1 ... } */
static void write_vector(text *t, char name, int n)
{
    for (int i = 0; i < n; i++)
        WRITE(t, "%s%%%c%d", i ? ", " : "{", name, i);
    WRITE(t, "}");
}

/* Fragments lie in memory as [block][register][lane]: a, then b, c and d, each from its own parameter. */
static void write_kernel(text *t, const plan *p)
{
    const char *type = pvm_type_name(p->set->type), *d = pvm_type_name(p->result);
    const int regs[4] = {p->a_regs, p->b_regs, p->c_regs, p->c_regs};
    WRITE(t, ".version 8.7\n.target sm_%d\n.address_size 64\n", p->set->sm);
    WRITE(t, ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)\n{\n");
    WRITE(t, ".reg .b32 %%a<8>, %%b<8>, %%r<4>;\n.reg .%s %%c<4>, %%d<4>;\n.reg .b64 %%p<8>;\n",
          p->result == T_F16 ? "b32" : "f32");
    WRITE(t, "mov.u32 %%r0, %%tid.x;\nmov.u32 %%r1, %%ctaid.x;\n");
    for (int i = 0; i < 4; i++) {
        WRITE(t, "ld.param.u64 %%p%d, [%c];\nmad.lo.u32 %%r2, %%r1, %d, %%r0;\n", i, "abcd"[i], 32 * regs[i]);
        WRITE(t, "mul.wide.u32 %%p4, %%r2, 4;\nadd.u64 %%p%d, %%p%d, %%p4;\n", i, i);
        for (int r = 0; i < 3 && r < regs[i]; r++)
            WRITE(t, "ld.global.b32 %%%c%d, [%%p%d + %d];\n", "abc"[i], r, i, 128 * r);
    }
    WRITE(t, "mma.sync.aligned.m16n8k%d.row.col%s%s%s%s ", p->set->k, d, type, type, d);
    for (int i = 0; i < 4; i++) {
        write_vector(t, "dabc"[i], regs[(i + 3) % 4]);
        WRITE(t, i < 3 ? ", " : ";\n");
    }
    for (int r = 0; r < p->c_regs; r++)
        WRITE(t, "st.global.b32 [%%p3 + %d], %%d%d;\n", 128 * r, r);
    WRITE(t, "ret;\n}\n");
}

/* Which row of A has the line of column j: eight of the sixteen, others in every block. */
static int row_of(int block, int column)
{
    return (3 * column + block) % 16;
}

static void words_of(const fragment *f, int regs, uint32_t *words)
{
    for (int r = 0; r < regs; r++)
        memcpy(words + 32 * r, f->r[r], 32 * sizeof *words);
}

/* The fragments of one block: eight lines of the set in rows and columns that match, further lines in the
 * other rows. */
static void fill_block(const plan *p, const silicon_data *data, int block, uint32_t *a_words,
                       uint32_t *b_words, uint32_t *c_words)
{
    const int k = p->set->k, c_bits = p->result == T_F16 ? 16 : 32;
    uint64_t a[16 * 32], b[32 * 8], c[16 * 8];
    int line[16];
    fragment f;
    for (int row = 0; row < 16; row++)
        line[row] = (LINES_EACH * block + 100 + row) % SILICON_LINES;
    for (int column = 0; column < 8; column++)
        line[row_of(block, column)] = LINES_EACH * block + column;
    for (int i = 0; i < 16 * k; i++)
        a[i] = data->a[line[i / k] * k + i % k];
    for (int i = 0; i < 8 * k; i++)
        b[i] = data->b[line[row_of(block, i % 8)] * k + i / 8];
    for (int i = 0; i < 16 * 8; i++)
        c[i] = (p->result == T_F16 ? data->c16 : data->c)[line[i / 8]];
    fragment_fill(&f, 16, 8, k, p->a_bits, 'a', a, k);
    words_of(&f, p->a_regs, a_words);
    fragment_fill(&f, 16, 8, k, p->a_bits, 'b', b, 8);
    words_of(&f, p->b_regs, b_words);
    fragment_fill(&f, 16, 8, k, c_bits, 'c', c, 8);
    words_of(&f, p->c_regs, c_words);
}

static int wrong_in_block(const plan *p, const silicon_data *data, int block, const uint32_t *d_words)
{
    const uint32_t *expected = p->result == T_F16 ? data->d16 : data->d32;
    uint64_t d[16 * 8];
    fragment f = {0};
    int wrong = 0;
    for (int r = 0; r < p->c_regs; r++)
        memcpy(f.r[r], d_words + 32 * r, 32 * sizeof *d_words);
    fragment_read(&f, 16, 8, p->set->k, p->result == T_F16 ? 16 : 32, 'd', d, 8);
    for (int column = 0; column < 8; column++)
        wrong += d[row_of(block, column) * 8 + column] != expected[LINES_EACH * block + column];
    return wrong;
}

/* Loads and launches the text with four buffers; the fourth comes back. */
static bool run_kernel(const char *sm, const text *t, uint32_t blocks, void *const *buffers,
                       const uint64_t *bytes, int *published)
{
    const ptxvm_config config = {.sm = sm, .threads = 1};
    const ptxvm_launch_config launch = {.grid = {blocks, 1, 1}, .block = {32, 1, 1}};
    ptxvm *vm;
    ptxvm_module *module;
    ptxvm_kernel *kernel;
    ptxvm_address address[4];
    if (!CHECK(ptxvm_create(&config, &vm) == PTXVM_OK))
        return false;
    bool ok = ptxvm_module_load(vm, t->at, t->length, &module) == PTXVM_OK &&
              ptxvm_module_kernel(module, "k", &kernel) == PTXVM_OK;
    for (int i = 0; ok && i < 4; i++)
        ok = ptxvm_alloc(vm, bytes[i], &address[i]) == PTXVM_OK &&
             ptxvm_write(vm, address[i], buffers[i], bytes[i]) == PTXVM_OK;
    ok = ok && ptxvm_launch(vm, kernel, &launch, address, sizeof address) == PTXVM_OK &&
         ptxvm_read(vm, buffers[3], address[3], bytes[3]) == PTXVM_OK;
    if (!ok)
        FAIL("%s", ptxvm_last_error(vm));
    else
        *published = ptxvm_last_report(vm)->n_tensor;
    ptxvm_destroy(vm);
    return ok;
}

static void run_set(const silicon_set *set, const silicon_data *data, pvm_type result)
{
    const plan p = plan_of(set, result);
    const int words[4] = {32 * p.a_regs, 32 * p.b_regs, 32 * p.c_regs, 32 * p.c_regs};
    text *t = calloc(1, sizeof *t);
    uint32_t *buffer[4];
    uint64_t bytes[4];
    char sm[16];
    int wrong = 0, published = -1;
    for (int i = 0; i < 4; i++) {
        bytes[i] = sizeof(uint32_t) * (uint64_t)words[i] * BLOCKS;
        buffer[i] = calloc(1, bytes[i]);
    }
    for (int block = 0; block < BLOCKS; block++)
        fill_block(&p, data, block, buffer[0] + block * words[0], buffer[1] + block * words[1],
                   buffer[2] + block * words[2]);
    write_kernel(t, &p);
    snprintf(sm, sizeof sm, "sm_%d", set->sm);
    if (run_kernel(sm, t, BLOCKS, (void *const *)buffer, bytes, &published)) {
        for (int block = 0; block < BLOCKS; block++)
            wrong += wrong_in_block(&p, data, block, buffer[3] + block * words[3]);
        CHECK_EQ_I64(wrong, 0);
        CHECK_EQ_I64(published, 0);
    }
    for (int i = 0; i < 4; i++)
        free(buffer[i]);
    free(t);
}

TEST_EACH(TensorExec, SiliconThroughPtx, silicon_set_count, silicon_set_name)
{
    const silicon_set *set = &silicon_sets[index];
    silicon_data data;
    if (!silicon_load(set, &data))
        SKIP("no silicon set %s/%s (QDNN_SILICON_DIR)", set->gpu, set->type_name);
    if (!set->is_wgmma)
        run_set(set, &data, T_F32);
    if (set->has_f16)
        run_set(set, &data, T_F16);
    silicon_free(&data);
}

/* D = A * B + C of small whole numbers, by wmma, with every memory layout of A and B; f16 in, f32 out. */
static int wrong_in_wmma(bool a_col, bool b_col, int *published)
{
    text *t = calloc(1, sizeof *t);
    uint16_t a[256], b[256];
    float c[256], d[256];
    void *const buffers[4] = {a, b, c, d};
    const uint64_t bytes[4] = {sizeof a, sizeof b, sizeof c, sizeof d};
    int wrong = 0;
    static const uint16_t halves[8] = {0, 0x3C00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700};
    for (int i = 0; i < 256; i++) { /* A[m][k] = (3m + k) % 8, B[k][n] = (5k + n) % 7 */
        const int row = i / 16, col = i % 16;
        a[a_col ? col * 16 + row : i] = halves[(3 * row + col) % 8];
        b[b_col ? col * 16 + row : i] = halves[(5 * row + col) % 7];
        c[i] = (float)i;
        d[i] = -1;
    }
    WRITE(t, ".version 7.0\n.target sm_75\n.address_size 64\n"
             ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)\n{\n"
             ".reg .b32 %%a<8>, %%b<8>;\n.reg .f32 %%c<8>;\n.reg .b64 %%p<4>;\n"
             "ld.param.u64 %%p0, [a];\nld.param.u64 %%p1, [b];\nld.param.u64 %%p2, [c];\nld.param.u64 %%p3, "
             "[d];\n");
    WRITE(t, "wmma.load.a.sync.aligned.%s.m16n16k16.global.f16 ", a_col ? "col" : "row");
    write_vector(t, 'a', 8);
    WRITE(t, ", [%%p0], 16;\nwmma.load.b.sync.aligned.%s.m16n16k16.global.f16 ", b_col ? "col" : "row");
    write_vector(t, 'b', 8);
    WRITE(t, ", [%%p1], 16;\nwmma.load.c.sync.aligned.row.m16n16k16.global.f32 ");
    write_vector(t, 'c', 8);
    WRITE(t, ", [%%p2], 16;\nwmma.mma.sync.aligned.%s.%s.m16n16k16.f32.f32 ", a_col ? "col" : "row",
          b_col ? "col" : "row");
    for (int i = 0; i < 4; i++) {
        write_vector(t, "cabc"[i], 8);
        WRITE(t, i < 3 ? ", " : ";\n");
    }
    WRITE(t, "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%%p3], ");
    write_vector(t, 'c', 8);
    WRITE(t, ", 16;\nret;\n}\n");
    if (run_kernel("sm_120", t, 1, buffers, bytes, published))
        for (int i = 0; i < 256; i++) {
            int expected = i;
            for (int k = 0; k < 16; k++)
                expected += (3 * (i / 16) + k) % 8 * ((5 * k + i % 16) % 7);
            wrong += d[i] != (float)expected;
        }
    free(t);
    return wrong;
}

TEST_CASE(TensorExec, WmmaFromMemoryToMemory)
{
    for (int layout = 0; layout < 4; layout++) {
        int published = 0;
        CHECK_EQ_I64(wrong_in_wmma(layout & 1, layout >> 1, &published), 0);
        CHECK_EQ_I64(published, 1); /* sm_120's f16 is a published row, and the report says so */
    }
}
