/* What a launch did that a GPU might do differently: executed .approx instructions and tensor-core rows and,
 * from the text alone, bare mul and add pairs that the assembler may contract to fma. */
#include <stdlib.h>
#include <string.h>

#include "decode.h"
#include "launch.h"
#include "warp.h"

/* ---- Texts ---- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == ':' || c == '_';
}

/* The opcode as written in the PTX, where the instruction begins: "ex2.approx.ftz.f32". */
static int opcode_length(const pvm_module *ptx, const pvm_inst *inst)
{
    const char *p = inst->text, *end = ptx->text + ptx->text_length;
    int n = 0;
    while (p && p + n < end && is_word(p[n]))
        n++;
    return n;
}

static const char *standing_name(tensor_standing standing)
{
    return standing == TENSOR_PUBLISHED ? "published" : "assumed";
}

static ptxvm_site site_of(const vm_kernel *kernel, const vm_op *op, const char *what)
{
    const pvm_module *ptx = kernel->module->ptx;
    int file = op->inst->loc_file;
    bool has_file = op->inst->loc_line && file >= 0 && file < ptx->n_files;
    return (ptxvm_site){.function = op->function->name,
                        .line = op->inst->line,
                        .source_file = has_file ? ptx->files[file] : NULL,
                        .source_line = has_file ? op->inst->loc_line : 0,
                        .what = what};
}

/* ---- Contraction ---- */

static bool is_float(pvm_type type)
{
    switch (type) {
    case T_F16:
    case T_BF16:
    case T_F16X2:
    case T_BF16X2:
    case T_F32:
    case T_F32X2:
    case T_F64:
        return true;
    default:
        return false;
    }
}

static bool is_bare(const pvm_inst *inst)
{
    return is_float(pvm_slot_type(inst, S_TYPE)) && !inst->mod[S_TYPE2] && !inst->mod[S_RND];
}

static bool may_contract(const pvm_inst *mul, const pvm_inst *add)
{
    return mul->mod[S_TYPE] == add->mod[S_TYPE] && mul->mod[S_FTZ] == add->mod[S_FTZ];
}

/* mul_of[r]: the last bare mul above that writes register r. Loops are not followed: an assembler does not
 * pair a mul with an add above it. */
static bool find_pairs(vm_kernel *kernel, const vm_code *code, const vm_op **mul_of)
{
    for (int i = 0; i < code->n_ops; i++) {
        const vm_op *op = &code->ops[i];
        const pvm_inst *inst = op->inst;
        for (int k = 1; (inst->op == OP_add || inst->op == OP_sub) && is_bare(inst) && k < inst->n_operands;
             k++) {
            const pvm_operand *source = &inst->operand[k];
            const vm_op *mul = source->kind == OPERAND_REG ? mul_of[source->reg] : NULL;
            if (!mul || !may_contract(mul->inst, inst))
                continue;
            ptxvm_site *site = &kernel->contractable[kernel->n_contractable];
            const char *what =
                vm_pool_format(kernel->pool, "%s may be contracted to fma with the mul of line %d",
                               pvm_opcode_name(inst->op), mul->inst->line);
            if (!what)
                return false;
            *site = site_of(kernel, op, what);
            kernel->n_contractable++;
            break;
        }
        for (int k = 0; k < inst->n_results && k < inst->n_operands; k++)
            if (inst->operand[k].kind == OPERAND_REG)
                mul_of[inst->operand[k].reg] =
                    inst->op == OP_mul && is_bare(inst) && !inst->mod[S_SAT] ? op : NULL;
    }
    return true;
}

static int count_adds(const vm_code *code)
{
    int n = 0;
    for (int i = 0; i < code->n_ops; i++)
        n += (code->ops[i].inst->op == OP_add || code->ops[i].inst->op == OP_sub) &&
             is_bare(code->ops[i].inst);
    return n;
}

bool vm_report_contractable(vm_kernel *kernel)
{
    int most = 0;
    for (int i = 0; i < kernel->n_codes; i++)
        most += count_adds(kernel->codes[i]);
    kernel->contractable = vm_pool_alloc(kernel->pool, (size_t)(most + 1) * sizeof *kernel->contractable);
    bool ok = kernel->contractable != NULL;
    for (int i = 0; i < kernel->n_codes && ok && most; i++) {
        const vm_op **mul_of = calloc((size_t)kernel->codes[i]->function->n_regs + 1, sizeof *mul_of);
        ok = mul_of && find_pairs(kernel, kernel->codes[i], mul_of);
        free(mul_of);
    }
    return ok;
}

/* ---- After a launch ---- */

void vm_report_clear(ptxvm *vm)
{
    vm_reports *r = vm->reports;
    free(r->sites);
    vm_pool_destroy(r->texts);
    *r = (vm_reports){.sites = NULL};
}

static bool is_tensor(const vm_op *op)
{
    return op->exec == vm_exec_tensor || op->exec == vm_exec_wgmma ||
           (op->inst->op == OP_tcgen05 && op->inst->mod[S_SUB] == M_mma);
}

static const char *describe(vm_reports *r, const vm_kernel *kernel, const vm_op *op, uint8_t site)
{
    if (is_tensor(op)) {
        const vm_tensor_site *tensor = op->extra;
        tensor_standing standing = site & SITE_ASSUMED ? TENSOR_ASSUMED : tensor->op.standing;
        return vm_pool_format(r->texts, "%s: %s", tensor->op.row, standing_name(standing));
    }
    return vm_pool_format(r->texts, ".approx: %.*s", opcode_length(kernel->module->ptx, op->inst),
                          op->inst->text ? op->inst->text : "");
}

/* Appends the executed sites of one kind to those already listed. */
static int list_executed(vm_reports *r, const vm_kernel *kernel, const uint8_t *sites, bool tensor, int at)
{
    for (int i = 0; i < kernel->n_sites; i++) {
        const vm_op *op = kernel->sites[i];
        if (sites[i] && is_tensor(op) == tensor)
            r->sites[at++] = site_of(kernel, op, describe(r, kernel, op, sites[i]));
    }
    return at;
}

ptxvm_status vm_report_fill(ptxvm *vm, const vm_kernel *kernel, const uint8_t *sites,
                            uint64_t warp_instructions, uint64_t thread_instructions)
{
    vm_reports *r = vm->reports;
    int n = 0;
    for (int i = 0; i < kernel->n_sites; i++)
        n += sites[i] != 0;
    r->report.warp_instructions = warp_instructions;
    r->report.thread_instructions = thread_instructions;
    r->report.contractable = kernel->contractable;
    r->report.n_contractable = kernel->n_contractable;
    if (!n)
        return PTXVM_OK;
    r->sites = calloc((size_t)n, sizeof *r->sites);
    r->texts = vm_pool_create();
    if (!r->sites || !r->texts) {
        vm_report_clear(vm);
        return vm_error(vm, PTXVM_ERROR_MEMORY, "the host has no memory left for the report");
    }
    r->report.n_approx = list_executed(r, kernel, sites, false, 0);
    r->report.n_tensor = list_executed(r, kernel, sites, true, r->report.n_approx) - r->report.n_approx;
    r->report.approx = r->sites;
    r->report.tensor = r->sites + r->report.n_approx;
    r->report.inexact = r->report.n_approx > 0;
    return PTXVM_OK;
}

const ptxvm_report *ptxvm_last_report(const ptxvm *vm)
{
    static const ptxvm_report none;
    return vm ? &vm->reports->report : &none;
}
