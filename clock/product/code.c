/* Runs a small product on ptxvm, and reads its machine code. */
#include "clock/product/code.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock/product/kept.h"
#include "ptxvm/ptxvm.h"

/* ---- The small product ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* K keeps its remainder by 2048: a kernel treats the last part of K in its own way. */
facts_product facts_small(const facts_product *product)
{
    enum { COLUMNS = 512, SHORT = 6144, DEPTH = 4096, ROUND = 2048 };
    facts_product small = *product;
    const bool k_rows = product->spec.product.reduction == KERNEL_K_ROWS;
    uint64_t n = k_rows ? product->problem.columns : product->problem.rows;
    uint64_t k = k_rows ? product->problem.rows : product->problem.columns;
    n = least(n, COLUMNS);
    k = k <= SHORT ? k : DEPTH + k % ROUND;
    small.problem.rows = k_rows ? k : n;
    small.problem.columns = k_rows ? n : k;
    small.problem.m = least(product->problem.m, product->spec.product.tile_rows);
    small.problem.x_stride = k;
    small.problem.y_stride = n;
    return small;
}

/* ---- Operands ---- */

/* One number that a scale of this type may well be. */
static const struct {
    qdnnScaleType_t type;
    unsigned bytes;
    uint32_t bits;
} scales[] = {{QDNN_SCALE_F32, 4, 0x3C23D70A},
              {QDNN_SCALE_F16, 2, 0x211F},
              {QDNN_SCALE_BF16, 2, 0x3C24},
              {QDNN_SCALE_E4M3, 1, 0x2A},
              {QDNN_SCALE_E8M0, 1, 0x78}};

/* Blocks hold their scales: bytes below 64 keep them small, and E8M0 is the first byte of a block. */
static uint8_t code_byte(const kernel_row *row, uint64_t i, uint8_t random)
{
    enum { MXFP4_BYTES = 17 };
    if (!strcmp(row->name, "matmul_gguf_mxfp4") && i % MXFP4_BYTES == 0)
        return 0x78;
    return random & (kernel_columns_multiple(row) > 1 ? 0x3F : 0xFF);
}

void facts_fill_operand(const kernel_row *row, const kernel_spec *spec, qdnnOperand_t operand, uint8_t *bytes,
                        uint64_t count)
{
    uint32_t seed = 1, bits = 0x3F800000;
    unsigned width = 4;
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++)
        if (operand == QDNN_OPERAND_SCALE && scales[i].type == spec->stored.scale) {
            bits = scales[i].bits;
            width = scales[i].bytes;
        }
    for (uint64_t i = 0; i < count; i++) {
        seed = seed * 1664525 + 1013904223;
        switch (operand) {
        case QDNN_OPERAND_CODES:
            bytes[i] = code_byte(row, i, (uint8_t)(seed >> 24));
            break;
        case QDNN_OPERAND_ZERO:
            bytes[i] = 8;
            break;
        case QDNN_OPERAND_X: /* both halves are ordinary as f16 and as f32 */
            bytes[i] = i % 2 ? 0x30 | (seed >> 31 ? 0x80 : 0) : (uint8_t)(seed >> 24);
            break;
        default:
            bytes[i] = (uint8_t)(bits >> 8 * (i % width));
        }
    }
}

/* ---- The run ---- */

typedef struct run {
    const facts_product *product;
    const board *on;
    const ptx_sm *sm;
    kernel_steps steps;
    ptxvm *vm;
    ptxvm_address at[QDNN_OPERAND_COUNT], workspace;
    double least_sectors, sectors, instructions;
    facts_code *out;
    char *why;
    size_t size;
} run;

static bool fail(run *r, const char *what)
{
    snprintf(r->why, r->size, "%s", what);
    return false;
}

static bool make_operand(run *r, qdnnOperand_t operand, uint64_t bytes)
{
    uint8_t *host;
    if (ptxvm_alloc(r->vm, bytes ? bytes : 1, &r->at[operand]) != PTXVM_OK ||
        !(host = ptxvm_host(r->vm, r->at[operand], bytes ? bytes : 1)))
        return fail(r, ptxvm_last_error(r->vm));
    facts_fill_operand(r->product->row, &r->product->spec, operand, host, bytes);
    r->least_sectors += (double)((bytes + 31) / 32);
    return true;
}

static bool make_operands(run *r)
{
    kernel_operand operands[QDNN_OPERAND_COUNT];
    kernel_operands_of(r->product->row, &r->product->spec, &r->product->problem, operands);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if ((operands[i].reads || operands[i].writes) &&
            !make_operand(r, (qdnnOperand_t)i, operands[i].bytes))
            return false;
    const uint64_t workspace = r->steps.workspace ? r->steps.workspace : 1;
    return ptxvm_alloc(r->vm, workspace, &r->workspace) == PTXVM_OK ? true : fail(r, ptxvm_last_error(r->vm));
}

static uint64_t warps_of(const kernel_step *step)
{
    return step->grid[0] * step->grid[1] * step->grid[2] * ((step->block + SASS_LANES - 1) / SASS_LANES);
}

static bool launch(run *r, const kernel_step *step, const char *ptx, ptxvm_module **module)
{
    uint64_t params[KERNEL_PARAMS_MAX];
    char entry[64];
    ptxvm_kernel *kernel;
    for (int i = 0; i < step->n_params; i++) { /* all numbers of products have 8 bytes */
        const kernel_param *p = &step->params[i];
        params[i] = p->kind == KERNEL_OPERAND     ? r->at[p->operand]
                    : p->kind == KERNEL_WORKSPACE ? r->workspace + p->value
                                                  : p->value;
    }
    ptxvm_launch_config config = {
        .grid = {(uint32_t)step->grid[0], (uint32_t)step->grid[1], (uint32_t)step->grid[2]},
        .block = {step->block, 1, 1},
        .shared_bytes = step->shared};
    kernel_entry_name(step->row, entry, sizeof entry);
    return ptxvm_module_load(r->vm, ptx, strlen(ptx), module) == PTXVM_OK &&
                   ptxvm_module_kernel(*module, entry, &kernel) == PTXVM_OK &&
                   ptxvm_launch(r->vm, kernel, &config, params, (uint64_t)step->n_params * 8) == PTXVM_OK
               ? true
               : fail(r, ptxvm_last_error(r->vm));
}

/* The path that most instructions belong to, by itself. */
static bool main_path(const sass_code *code, const ptxvm_counters *all, uint64_t warps, sass_path **path)
{
    ptxvm_counters one = *all;
    uint64_t most = 0;
    for (int i = 0; i < all->n_paths; i++) {
        uint64_t sum = 0;
        for (int line = 0; line < all->n_lines; line++)
            sum += all->paths[i].lines[line];
        if (sum > most) {
            most = sum;
            one.paths = &all->paths[i];
            one.n_paths = 1;
        }
    }
    return sass_paths(code, &one, warps, path) > 0;
}

static bool describe_loads(const sass_code *code, const ptxvm_counters *c, uint64_t warps, facts_code *out)
{
    sass_path *path;
    if (!main_path(code, c, warps, &path))
        return false;
    const int loop = facts_hot_loop(code, path);
    out->registers = code->registers;
    out->spill_bytes = code->spill_bytes;
    out->bytes = SASS_INST_BYTES * code->written;
    out->loop_bytes = loop >= 0 ? code->loops[loop].bytes : 0;
    facts_follow_loads(code, path, c->lines, c->n_lines, out);
    sass_paths_free(path, 1);
    return true;
}

/* Instructions of a launch as SASS; the launch that multiplies also tells about loads. */
static bool read_code(run *r, const kernel_step *step, const char *ptx, bool multiplies)
{
    const ptxvm_counters *c = ptxvm_last_counters(r->vm);
    ptxvm_counters by_line = *c;
    sass_code code;
    sass_path *path = NULL;
    by_line.n_paths = 0;
    if (!sass_assemble(ptx, r->sm->name, c->kernel, &code, r->why, r->size))
        return false;
    bool ok = sass_paths(&code, &by_line, warps_of(step), &path) > 0;
    if (ok) {
        r->instructions += path->issued * (double)path->warps;
        r->out->misfit = path->misfit > r->out->misfit ? path->misfit : r->out->misfit;
    }
    if (ok && multiplies)
        ok = describe_loads(&code, c, warps_of(step), r->out);
    sass_paths_free(path, 1);
    sass_code_free(&code);
    return ok ? true : fail(r, "out of memory");
}

const kernel_step *facts_multiplying(const kernel_steps *steps)
{
    for (int i = 0; i < steps->count; i++)
        for (int p = 0; p < steps->at[i].n_params; p++)
            if (steps->at[i].params[p].kind == KERNEL_OPERAND &&
                steps->at[i].params[p].operand == QDNN_OPERAND_CODES)
                return &steps->at[i];
    return &steps->at[0];
}

static bool run_step(run *r, const kernel_step *step)
{
    kernel_text text = {0};
    ptx_error error;
    ptxvm_module *module = NULL;
    const bool multiplies = step == facts_multiplying(&r->steps);
    if (!kernel_emit(step->row, &step->spec, r->sm, NULL, &text, &error))
        return fail(r, error.text);
    bool ok = launch(r, step, text.ptx, &module);
    if (ok) {
        const ptxvm_counts *total = &ptxvm_last_counters(r->vm)->total;
        r->sectors += (double)(total->load.sectors + total->store.sectors);
        if (multiplies)
            r->out->conflicts = total->shared_wavefronts
                                    ? (double)total->bank_conflicts / (double)total->shared_wavefronts
                                    : 0;
        if (r->out->is_sass)
            ok = read_code(r, step, text.ptx, multiplies);
        else
            r->instructions += (double)total->instructions;
    }
    if (module)
        ptxvm_module_unload(module);
    free(text.ptx);
    return ok;
}

static bool measure(const facts_product *small, const board *on, const ptx_sm *sm, facts_code *out, char *why,
                    size_t size)
{
    const ptxvm_config config = {.board = on->name, .counters = PTXVM_COUNTERS_PATHS};
    char missing[256];
    run r = {.product = small, .on = on, .sm = sm, .out = out, .why = why, .size = size};
    *out = (facts_code){.is_sass = sass_found(missing, sizeof missing)};
    kernel_steps_of(small->row, &small->spec, &small->problem, &r.steps);
    if (ptxvm_create(&config, &r.vm) != PTXVM_OK)
        return fail(&r, "ptxvm has no memory, or does not know the board");
    bool ok = make_operands(&r);
    for (int i = 0; ok && i < r.steps.count; i++)
        ok = run_step(&r, &r.steps.at[i]);
    ptxvm_destroy(r.vm);
    const double weights = (double)small->problem.rows * (double)small->problem.columns;
    out->per_weight = SASS_LANES * r.instructions / weights;
    out->sectors = r.sectors / r.least_sectors;
    return ok;
}

/* ---- What was measured before ---- */

typedef struct measured {
    facts_code code;
    bool ok;
    char why[256];
} measured;

static kept *all_measured;
static pthread_once_t all_made = PTHREAD_ONCE_INIT;

static void make_all(void)
{
    all_measured = kept_new(sizeof(measured));
}

bool facts_keep_code_in(const char *path, uint64_t program)
{
    pthread_once(&all_made, make_all);
    return all_measured && kept_file(all_measured, path, program);
}

const ptx_sm *facts_sm_of(const board *on)
{
    char name[16];
    board_sm_name(on, name, sizeof name);
    return ptx_sm_find(name);
}

void facts_code_name(const facts_product *product, const board *on, char *name, size_t size)
{
    const facts_product small = facts_small(product);
    kernel_file_name(small.row, &small.spec, facts_sm_of(on), name, size);
    const size_t length = strlen(name);
    snprintf(name + length, size - length, " %llu %llu %llu", (unsigned long long)small.problem.m,
             (unsigned long long)small.problem.rows, (unsigned long long)small.problem.columns);
}

bool facts_has_code(const facts_product *product, const board *on)
{
    char name[FACTS_NAME];
    measured m;
    pthread_once(&all_made, make_all);
    facts_code_name(product, on, name, sizeof name);
    return all_measured && kept_find(all_measured, name, &m);
}

/* Shapes that lead to the same small product of the same kernel share what was measured. */
bool facts_code_of(const facts_product *product, const board *on, facts_code *out, char *why, size_t size)
{
    char name[FACTS_NAME];
    measured m;
    memset(&m, 0, sizeof m); /* its padding is stored, too */
    pthread_once(&all_made, make_all);
    facts_code_name(product, on, name, sizeof name);
    if (!all_measured || !kept_find(all_measured, name, &m)) {
        const facts_product small = facts_small(product);
        m.ok = measure(&small, on, facts_sm_of(on), &m.code, m.why, sizeof m.why);
        if (!all_measured || !kept_add(all_measured, name, &m)) {
            snprintf(why, size, "out of memory, or the file of results cannot be written");
            return false;
        }
    }
    *out = m.code;
    snprintf(why, size, "%s", m.why);
    return m.ok;
}
