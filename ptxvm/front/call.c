/* Calls in all their forms, and the lists that indirect calls and jumps refer to: .callprototype,
 * .calltargets, .branchtargets. */
#include "front.h"

#include <string.h>

/* ts: .branchtargets L1, L2; */
void parse_branch_targets(parser *p, name *label, const token *where)
{
    pvm_targets *list = parse_alloc(p, sizeof *list);
    name **labels = NULL;
    int capacity = 0;
    do {
        next_token(p);
        if (p->tok.kind != TOKEN_NAME)
            parse_fail(p, PVM_ERROR_SYNTAX, ".branchtargets needs labels");
        labels = parse_grow(p, labels, list->count, &capacity, sizeof(name *));
        labels[list->count++] = intern(p, p->tok.text, p->tok.length);
        next_token(p);
    } while (at_punct(p, ','));
    expect_punct(p, ';');
    list->number = p->function->n_target_lists++;
    list->items = parse_alloc(p, (size_t)list->count * sizeof *list->items);
    for (int i = 0; i < list->count; i++)
        add_fixup(p, labels[i], NULL, &list->items[i], where->line, where->column);
    declare(p, SYMBOL_BRANCH_TARGETS, label, where)->targets = list;
}

static pvm_function *find_function(parser *p)
{
    symbol *s = p->tok.kind == TOKEN_NAME ? find_symbol(p, intern(p, p->tok.text, p->tok.length)) : NULL;
    if (!s || s->kind != SYMBOL_FUNCTION)
        parse_fail(p, PVM_ERROR_SYNTAX, "'%.*s' is not a function", p->tok.length > 60 ? 60 : p->tok.length,
                   p->tok.text);
    next_token(p);
    return s->function;
}

/* fs: .calltargets f, g; */
void parse_call_targets(parser *p, name *label, const token *where)
{
    pvm_function **functions = NULL;
    int n = 0, capacity = 0;
    do {
        next_token(p);
        functions = parse_grow(p, functions, n, &capacity, sizeof(pvm_function *));
        functions[n++] = find_function(p);
    } while (at_punct(p, ','));
    expect_punct(p, ';');
    for (int i = 1; i < n; i++)
        if (!pvm_same_signature(functions[i], functions[0]))
            parse_fail_at(p, where->line, where->column, PVM_ERROR_SYNTAX,
                          "'%s' and '%s' have different parameters or results", functions[0]->name,
                          functions[i]->name);
    symbol *s = declare(p, SYMBOL_CALL_TARGETS, label, where);
    s->functions = functions;
    s->n_functions = n;
    s->index = p->module->n_call_lists++;
}

/* proto: .callprototype (.param .b32 _) _ (.param .b64 _); */
void parse_call_prototype(parser *p, name *label, const token *where)
{
    pvm_function *f = parse_alloc(p, sizeof *f);
    name **names;
    check_limit(p, PTXVM_LIMIT_FUNCTIONS, ++p->n_declared);
    next_token(p);
    f->name = label->text;
    f->line = where->line;
    f->is_prototype = true;
    if (at_punct(p, '('))
        parse_parameters(p, f, true, &names);
    if (!at_name(p, "_"))
        parse_fail(p, PVM_ERROR_SYNTAX, "'_' is needed here, in place of a function's name");
    next_token(p);
    if (at_punct(p, '('))
        parse_parameters(p, f, false, &names);
    f->is_noreturn = accept_word(p, "noreturn");
    while (accept_word(p, "abi_preserve") || accept_word(p, "abi_preserve_control"))
        parse_integer(p);
    expect_punct(p, ';');
    declare(p, SYMBOL_PROTOTYPE, label, where)->function = f;
}

/* ---- call ---- */

static _Noreturn void fail_argument(parser *p, const raw_operand *raw, const char *why)
{
    parse_fail_at(p, raw->line, raw->column, PVM_ERROR_SYNTAX, "call: this argument %s", why);
}

static void add_argument(parser *p, argument_list *list, const raw_operand *raw)
{
    if (list->n == MAX_ARGUMENTS)
        parse_fail(p, PVM_ERROR_SYNTAX, "this call has too many arguments");
    list->items[list->n++] = *raw;
}

/* A vector register is passed as a whole: its elements are separate arguments, like the elements of a vector
 * parameter. */
static void parse_argument(parser *p, argument_list *list)
{
    if (at_punct(p, '{') || at_punct(p, '['))
        parse_fail(p, PVM_ERROR_SYNTAX, "call: an argument cannot be in brackets or braces");
    raw_operand raw = parse_operand(p);
    if (raw.kind == RAW_REG && raw.component >= 0)
        fail_argument(p, &raw, "is an element of a vector: move it to a register first");
    if (raw.is_indexed)
        fail_argument(p, &raw, "is an element of an array: move its address to a register first");
    if (raw.kind != RAW_VECTOR)
        add_argument(p, list, &raw);
    for (int i = 0; i < raw.count; i++)
        add_argument(p, list, &p->elements[raw.first + i]);
    p->n_elements = 0;
}

static void parse_arguments(parser *p, argument_list *list)
{
    list->n = 0;
    expect_punct(p, '(');
    while (!at_punct(p, ')')) {
        parse_argument(p, list);
        if (!at_punct(p, ')'))
            expect_punct(p, ',');
    }
    next_token(p);
}

/* Checks an argument or result against its parameter (null if only its own type is known). */
static void make_argument(parser *p, const raw_operand *raw, const pvm_var *param, bool is_result,
                          pvm_operand *out)
{
    pvm_type type = param ? param->type : T_NONE;
    if (type == T_B32 && raw->kind == RAW_F64) /* a decimal number for a .b32 parameter means .f32 */
        type = T_F32;
    *out = (pvm_operand){.type = type, .reg = -1};
    if (raw->kind == RAW_SINK && is_result) {
        out->kind = OPERAND_SINK;
    } else if (raw->kind == RAW_REG) {
        pvm_type have = p->function->regs[raw->reg].type;
        bool same = !param || (have == T_PRED && param->type == T_PRED) ||
                    (have != T_PRED && param->type != T_PRED && !param->is_unsized &&
                     param->size * 8 == (uint64_t)pvm_type_bits(have));
        if (!same)
            fail_argument(p, raw, "does not have the size of the parameter");
        out->kind = OPERAND_REG;
        out->type = have;
        out->reg = raw->reg;
    } else if (raw->kind == RAW_SYMBOL && raw->symbol && raw->symbol->kind == SYMBOL_VAR &&
               raw->symbol->var->space == SPACE_PARAM && !raw->has_offset) {
        pvm_var *v = raw->symbol->var;
        if (param && !param->is_unsized && v->size != param->size)
            fail_argument(p, raw, "does not have the size of the parameter");
        out->kind = OPERAND_SYMBOL;
        out->type = v->type;
        out->space = SPACE_PARAM;
        out->var = v;
    } else if (raw->kind == RAW_SYMBOL && !raw->symbol) {
        fail_argument(p, raw, "is not defined");
    } else {
        static const form_operand value = {.flags = TAKES_REG | TAKES_IMM | TAKES_SYMBOL};
        char why[120];
        const char *misfit = is_result ? "must be a .param variable or a register" : NULL;
        pvm_inst none = {0};
        if (!misfit && param)
            misfit = operand_misfit(p, raw, &value, &none, type, why, sizeof why);
        if (misfit)
            fail_argument(p, raw, misfit);
        operand_make(p, raw, &value, &none, param ? type : T_B64, out);
    }
}

static pvm_operand *make_arguments(parser *p, const argument_list *list, pvm_var **params, int n_params,
                                   bool known, bool is_result)
{
    if (known && list->n != n_params)
        parse_fail_at(p, p->opcode.line, p->opcode.column, PVM_ERROR_SYNTAX,
                      "call: %d %s, but the function has %d", list->n, is_result ? "results" : "arguments",
                      n_params);
    pvm_operand *made = list->n ? parse_alloc(p, (size_t)list->n * sizeof *made) : NULL;
    for (int i = 0; i < list->n; i++)
        make_argument(p, &list->items[i], known ? params[i] : NULL, is_result, &made[i]);
    return made;
}

/* The last operand of an indirect call: a prototype, or a list of functions. Returns the signature. */
static const pvm_function *take_signature(parser *p, pvm_call *c)
{
    symbol *s = p->tok.kind == TOKEN_NAME ? find_symbol(p, intern(p, p->tok.text, p->tok.length)) : NULL;
    if (s && s->kind == SYMBOL_PROTOTYPE)
        c->prototype = s->function;
    else if (s && s->kind == SYMBOL_CALL_TARGETS) {
        c->candidates = s->functions;
        c->n_candidates = s->n_functions;
        c->list = s->index;
    } else
        parse_fail(p, PVM_ERROR_SYNTAX, "a .callprototype or .calltargets label is needed here");
    next_token(p);
    return c->prototype ? c->prototype : c->candidates[0];
}

static const pvm_function *make_target(parser *p, const raw_operand *raw, pvm_call *c)
{
    c->target = (pvm_operand){.type = T_U64, .reg = -1};
    if (raw->kind == RAW_REG) {
        if (!type_fits(p->function->regs[raw->reg].type, T_U64, 0))
            parse_fail_at(p, raw->line, raw->column, PVM_ERROR_SYNTAX,
                          "call: a function's address has 64 bits");
        c->target.kind = OPERAND_REG;
        c->target.reg = raw->reg;
        return NULL;
    }
    if (raw->kind != RAW_SYMBOL || !raw->symbol || raw->symbol->kind != SYMBOL_FUNCTION ||
        raw->symbol->function->is_entry)
        parse_fail_at(p, raw->line, raw->column, PVM_ERROR_SYNTAX, "call: this is not a function");
    c->target.kind = OPERAND_FUNCTION;
    c->target.function = raw->symbol->function;
    return raw->symbol->function;
}

void parse_call(parser *p, pvm_inst *inst)
{
    pvm_call *c = inst->call = parse_alloc(p, sizeof *c);
    argument_list *results = &p->results, *args = &p->args;
    results->n = args->n = 0;
    p->n_raw = p->n_elements = 0;
    match_instruction(p, inst); /* matches only the modifiers: call has a row without operands */
    if (at_punct(p, '(')) {
        parse_arguments(p, results);
        expect_punct(p, ',');
    }
    raw_operand target = parse_operand(p);
    const pvm_function *f = make_target(p, &target, c);
    if (accept_punct(p, ',')) {
        if (at_punct(p, '('))
            parse_arguments(p, args);
        else if (!f)
            f = take_signature(p, c);
        if (accept_punct(p, ','))
            f = take_signature(p, c);
    }
    if (!f)
        parse_fail(p, PVM_ERROR_SYNTAX,
                   "call: an indirect call needs a .callprototype or .calltargets label");
    c->ret = make_arguments(p, results, f->returns, f->n_returns, true, true);
    c->args = make_arguments(p, args, f->params, f->n_params, true, false);
    c->n_ret = results->n;
    c->n_args = args->n;
}
