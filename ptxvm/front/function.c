/* Functions: their headers, their bodies, and instructions up to the point where they are matched against
 * isa.def. */
#include "front.h"

#include <string.h>

/* ---- headers ---- */

typedef struct parameter_list {
    pvm_var **vars;
    int *regs;
    name **names;
    int n, capacity, reg_capacity, name_capacity;
    uint64_t extent;
} parameter_list;

/* At its natural alignment, after the previous one. */
static void add_parameter(parser *p, parameter_list *list, pvm_var *v, name *as)
{
    int n = list->n++;
    list->vars = parse_grow(p, list->vars, n, &list->capacity, sizeof *list->vars);
    list->regs = parse_grow(p, list->regs, n, &list->reg_capacity, sizeof *list->regs);
    list->names = parse_grow(p, list->names, n, &list->name_capacity, sizeof *list->names);
    list->vars[n] = v;
    v->index = n;
    list->regs[n] = -1; /* until the body begins */
    list->names[n] = as;
    v->offset = (list->extent + v->align - 1) / v->align * v->align;
    list->extent = v->offset + v->size;
    check_limit(p, PTXVM_LIMIT_PARAMETERS, list->extent);
}

/* A vector in .reg is one parameter per element. */
static void add_elements(parser *p, parameter_list *list, pvm_var *v, name *as)
{
    v->size /= (uint64_t)v->vec;
    add_parameter(p, list, v, as);
    for (int i = 1; i < v->vec; i++) {
        pvm_var *element = parse_alloc(p, sizeof *element);
        *element = *v;
        element->vec = 1;
        add_parameter(p, list, element, NULL);
    }
}

/* "(.param .b32 a, .reg .u32 b)" */
void parse_parameters(parser *p, pvm_function *f, bool returns, name ***names)
{
    parameter_list list = {0};
    expect_punct(p, '(');
    while (!at_punct(p, ')')) {
        name *as;
        pvm_var *v = parse_parameter(p, f->is_entry, &as);
        add_elements(p, &list, v, as);
        if (!at_punct(p, ')'))
            expect_punct(p, ',');
    }
    next_token(p);
    pvm_var **vars = list.vars;
    int n = list.n;
    for (int i = 0; i < n && returns && n > 1; i++)
        if (vars[i]->space == SPACE_PARAM)
            parse_fail(p, PVM_ERROR_SYNTAX, "several results must be in .reg");
    if (returns) {
        f->returns = vars;
        f->n_returns = n;
        f->reg_of_return = list.regs;
    } else {
        f->params = vars;
        f->n_params = n;
        f->reg_of_param = list.regs;
        f->param_bytes = list.extent;
    }
    *names = list.names;
}

/* As in ptxas: PTX ISA 8.1 raised the limit for sm_70 and later. */
static void check_parameter_bytes(parser *p, const pvm_function *f, const token *where)
{
    uint64_t most = p->module->version >= 81 && p->module->target.sm >= 70 ? 32764 : 4352;
    if (f->is_entry && f->param_bytes > most)
        parse_fail_at(p, where->line, where->column, PVM_ERROR_SYNTAX,
                      "'%.60s' has %llu bytes of parameters: with this .version and .target the most is %llu",
                      f->name, (unsigned long long)f->param_bytes, (unsigned long long)most);
}

static void parse_three(parser *p, int *values)
{
    uint64_t product = 1;
    for (int i = 0; i < 3; i++)
        values[i] = 1;
    for (int i = 0; i < 3; i++) {
        token where = p->tok;
        uint64_t v = parse_integer(p);
        if (v == 0 || v > 0x7fffffff || (product *= v) > 0x7fffffff)
            parse_fail_at(p, where.line, where.column, PVM_ERROR_SYNTAX, "this size is out of range");
        values[i] = (int)v;
        if (!accept_punct(p, ','))
            return;
    }
}

static void parse_count(parser *p, int *value)
{
    token where = p->tok;
    uint64_t v = parse_integer(p);
    if (v > 0x7fffffff)
        parse_fail_at(p, where.line, where.column, PVM_ERROR_SYNTAX, "this number is out of range");
    *value = (int)v;
}

/* Performance and launch directives between a function's header and its body. */
static bool parse_tuning(parser *p, pvm_function *f)
{
    int ignored;
    if (accept_word(p, "maxntid"))
        parse_three(p, f->maxntid);
    else if (accept_word(p, "reqntid"))
        parse_three(p, f->reqntid);
    else if (accept_word(p, "reqnctapercluster"))
        parse_three(p, f->reqnctapercluster);
    else if (accept_word(p, "maxnreg"))
        parse_count(p, &f->maxnreg);
    else if (accept_word(p, "minnctapersm"))
        parse_count(p, &f->minnctapersm);
    else if (accept_word(p, "maxnctapersm"))
        parse_count(p, &f->maxnctapersm);
    else if (accept_word(p, "maxclusterrank"))
        parse_count(p, &f->maxclusterrank);
    else if (accept_word(p, "abi_preserve") || accept_word(p, "abi_preserve_control"))
        parse_count(p, &ignored);
    else if (accept_word(p, "explicitcluster"))
        f->explicit_cluster = true;
    else if (!f->is_entry && accept_word(p, "noreturn"))
        f->is_noreturn = true;
    else if (at_word(p, "pragma"))
        parse_pragma(p);
    else if (accept_word(p, "blocksareclusters"))
        f->blocks_are_clusters = true;
    else
        return false;
    return true;
}

static void add_function(parser *p, pvm_function *f)
{
    pvm_module *m = p->module;
    m->functions = parse_grow(p, m->functions, m->n_functions, &p->function_capacity, sizeof(pvm_function *));
    f->index = m->n_functions;
    m->functions[m->n_functions++] = f;
}

/* Whether two parameters take the same values: equal sizes and spaces, and types that ptxas treats as
 * compatible. */
static bool same_parameter(const pvm_var *a, const pvm_var *b)
{
    return a->size == b->size && a->space == b->space && a->vec == b->vec && a->is_unsized == b->is_unsized &&
           type_fits(a->type, b->type, 0);
}

static bool same_lists(pvm_var *const *a, int n_a, pvm_var *const *b, int n_b)
{
    if (n_a != n_b)
        return false;
    for (int i = 0; i < n_a; i++)
        if (!same_parameter(a[i], b[i]))
            return false;
    return true;
}

bool pvm_same_signature(const pvm_function *a, const pvm_function *b)
{
    return same_lists(a->params, a->n_params, b->params, b->n_params) &&
           same_lists(a->returns, a->n_returns, b->returns, b->n_returns);
}

/* A name may be declared several times, with one body: all are the same function. */
static pvm_function *enter_function(parser *p, pvm_function *f, name *n, const token *where)
{
    symbol *s = n->symbol;
    if (!s) {
        declare(p, SYMBOL_FUNCTION, n, where)->function = f;
        add_function(p, f);
        return f;
    }
    pvm_function *known = s->kind == SYMBOL_FUNCTION ? s->function : NULL;
    if (!known || known->is_entry != f->is_entry)
        parse_fail_at(p, where->line, where->column, PVM_ERROR_SYNTAX, "'%s' is already defined in line %d",
                      n->text, s->line);
    if (!pvm_same_signature(known, f))
        parse_fail_at(p, where->line, where->column, PVM_ERROR_SYNTAX,
                      "'%s' has other parameters than where it is declared in line %d", n->text, s->line);
    return known;
}

/* Parameters become names in the function's own scope; those in .reg become registers. */
static void declare_parameters(parser *p, pvm_var **vars, int *regs, name **names, int n)
{
    for (int i = 0; i < n; i++) {
        token where = {.line = vars[i]->line, .column = 1};
        bool in_register = vars[i]->space == SPACE_REG;
        if (in_register)
            regs[i] = add_register(p, vars[i]->name, vars[i]->type, vars[i]->line);
        if (!names[i])
            continue;
        symbol *s = declare(p, in_register ? SYMBOL_REG : SYMBOL_VAR, names[i], &where);
        s->index = regs[i];
        s->vec = in_register ? vars[i]->vec : 1;
        s->var = in_register ? NULL : vars[i];
    }
}

static void begin_body(parser *p, pvm_function *f)
{
    p->function = f;
    p->inst_capacity = p->reg_capacity = p->local_capacity = 0;
    p->n_ranges = 0;
    p->n_uses = 0;
    if (p->use_slots)
        memset(p->uses, 0, p->use_slots * sizeof *p->uses);
    p->loc_file = p->loc_line = 0;
    p->epoch++;
}

/* A function's header: everything before its body or ';'. The names of parameters and results are for the
 * body's scope. */
typedef struct header {
    pvm_function *function;
    token where;
    name **params, **returns;
} header;

/* .entry name (params) ..., .func (returns) name (params) ... */
static header parse_header(parser *p, linkage link)
{
    pvm_function *f = parse_alloc(p, sizeof *f);
    header h = {.function = f};
    check_limit(p, PTXVM_LIMIT_FUNCTIONS, ++p->n_declared);
    f->is_entry = at_word(p, "entry");
    f->is_visible = link.is_visible;
    f->is_extern = link.is_extern;
    f->is_weak = link.is_weak;
    next_token(p);
    if (!f->is_entry && at_punct(p, '('))
        parse_parameters(p, f, true, &h.returns);
    if (p->tok.kind != TOKEN_NAME || at_name(p, "_"))
        parse_fail(p, PVM_ERROR_SYNTAX, "the name of a function is needed here");
    h.where = p->tok;
    f->name = intern(p, h.where.text, h.where.length)->text;
    f->line = h.where.line;
    next_token(p);
    if (at_punct(p, '('))
        parse_parameters(p, f, false, &h.params);
    check_parameter_bytes(p, f, &h.where);
    while (p->tok.kind == TOKEN_WORD && parse_tuning(p, f))
        ;
    return h;
}

void parse_function(parser *p, linkage link)
{
    header h = parse_header(p, link);
    pvm_function *f = enter_function(p, h.function, intern(p, h.where.text, h.where.length), &h.where);
    if (accept_punct(p, ';'))
        return;
    if (f->has_body)
        parse_fail_at(p, h.where.line, h.where.column, PVM_ERROR_SYNTAX, "'%s' already has a body", f->name);
    h.function->index = f->index;
    *f = *h.function; /* the definition replaces the earlier declaration */
    begin_body(p, f);
    scope_open(p);
    declare_parameters(p, f->params, f->reg_of_param, h.params, f->n_params);
    declare_parameters(p, f->returns, f->reg_of_return, h.returns, f->n_returns);
    parse_body(p);
    scope_close(p);
    next_token(p);
    f->has_body = true;
    f->is_extern = false;
    p->function = NULL;
    p->loc_file = p->loc_line = 0;
}

/* ---- instructions ---- */

/* Valid PTX that ptxvm does not support yet: reported by name, whatever follows. */
static const struct {
    pvm_opcode op;
    const char *word; /* null: the whole opcode */
    const char *what;
} refused[] = {
    {OP_wgmma, "sp", "wgmma.mma_async.sp (sparse wgmma)"},
    {OP_tcgen05, "ws", "tcgen05.mma.ws"},
    {OP_tcgen05, "sp", "tcgen05.mma.sp (sparse tcgen05.mma)"},
    {OP_tex, NULL, "tex (textures)"},
    {OP_tld4, NULL, "tld4 (textures)"},
    {OP_txq, NULL, "txq (textures)"},
    {OP_suld, NULL, "suld (surfaces)"},
    {OP_sust, NULL, "sust (surfaces)"},
    {OP_sured, NULL, "sured (surfaces)"},
    {OP_suq, NULL, "suq (surfaces)"},
    {OP_istypep, NULL, "istypep (textures)"},
    {OP_multimem, NULL, "multimem"},
    {OP_mma, "sp", "mma.sp (sparse mma)"},
    {OP_mma, "sp::ordered_metadata", "mma.sp (sparse mma)"},
    {OP_cp, "tile::scatter4", "cp.async.bulk.tensor with .tile::scatter4"},
    {OP_cp, "im2col", "cp.async.bulk.tensor with .im2col"},
    {OP_cp, "im2col_no_offs", "cp.async.bulk.tensor with .im2col_no_offs"},
    {OP_cp, "im2col::w", "cp.async.bulk.tensor with .im2col::w"},
    {OP_cp, "im2col::w::128", "cp.async.bulk.tensor with .im2col::w::128"},
    {OP_tensormap, "swizzle_atomicity", "tensormap.replace of swizzle_atomicity"},
};

static void check_refused(parser *p, const token *word)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (p->op == refused[i].op &&
            (word ? refused[i].word && token_is(word, refused[i].word) : !refused[i].word))
            parse_fail_at(p, p->opcode.line, p->opcode.column, PVM_ERROR_UNSUPPORTED,
                          "%s is not supported by ptxvm yet", refused[i].what);
}

static void find_opcode(parser *p)
{
    const token *t = &p->opcode;
    p->op = opcode_find(t->text, t->length);
    if (p->op != OP_NONE) {
        check_refused(p, NULL);
        return;
    }
    int shown = t->length > 60 ? 60 : t->length;
    const char *near = opcode_suggestion(t->text, t->length);
    if (near)
        parse_fail_at(p, t->line, t->column, PVM_ERROR_SYNTAX,
                      "unknown instruction '%.*s': did you mean '%s'?", shown, t->text, near);
    parse_fail_at(p, t->line, t->column, PVM_ERROR_SYNTAX, "unknown instruction '%.*s'", shown, t->text);
}

static void parse_words(parser *p)
{
    for (p->n_words = 0; p->tok.kind == TOKEN_WORD; next_token(p)) {
        if (p->n_words == MAX_WORDS)
            parse_fail(p, PVM_ERROR_SYNTAX, "too many modifiers");
        check_refused(p, &p->tok);
        p->words[p->n_words] = p->tok;
        p->word_values[p->n_words++] = (uint16_t)word_find(p->tok.text, p->tok.length);
    }
}

static void parse_guard(parser *p, pvm_inst *inst)
{
    inst->guard_negated = accept_punct(p, '!');
    if (p->tok.kind != TOKEN_NAME)
        parse_fail(p, PVM_ERROR_SYNTAX, "a guard needs a predicate register");
    token where = p->tok;
    raw_operand r = parse_operand(p);
    if (r.kind != RAW_REG || p->function->regs[r.reg].type != T_PRED)
        parse_fail_at(p, where.line, where.column, PVM_ERROR_SYNTAX, "'%.*s' is not a predicate register",
                      where.length > 60 ? 60 : where.length, where.text);
    inst->guard = r.reg;
}

void add_instruction(parser *p, const pvm_inst *inst)
{
    pvm_function *f = p->function;
    check_limit(p, PTXVM_LIMIT_INSTRUCTIONS, ++p->n_instructions);
    f->insts = parse_grow(p, f->insts, f->n_insts, &p->inst_capacity, sizeof *f->insts);
    f->insts[f->n_insts++] = *inst;
}

/* Parses the rest of an instruction whose opcode is in p->opcode. */
static void parse_instruction(parser *p, pvm_inst inst)
{
    find_opcode(p);
    inst.text = p->opcode.text;
    inst.line = p->opcode.line;
    inst.column = p->opcode.column;
    inst.loc_file = p->loc_file;
    inst.loc_line = p->loc_line;
    inst.op = p->op;
    parse_words(p);
    if (p->op == OP_call)
        parse_call(p, &inst);
    else {
        parse_operands(p);
        if (!at_punct(p, ';'))
            expect_punct(p, ';');
        match_instruction(p, &inst);
    }
    expect_punct(p, ';');
    add_instruction(p, &inst);
}

/* "name:" and what may follow it; labels of jump tables and prototypes name those. */
static void parse_label(parser *p, const token *where)
{
    name *n = intern(p, where->text, where->length);
    if (at_word(p, "branchtargets"))
        parse_branch_targets(p, n, where);
    else if (at_word(p, "calltargets"))
        parse_call_targets(p, n, where);
    else if (at_word(p, "callprototype"))
        parse_call_prototype(p, n, where);
    else
        declare(p, SYMBOL_LABEL, n, where)->index = p->function->n_insts;
}

static void parse_body_directive(parser *p)
{
    pvm_space space;
    if (at_word(p, "loc"))
        parse_loc(p);
    else if (at_word(p, "pragma"))
        parse_pragma(p);
    else if (p->tok.kind == TOKEN_WORD && space_find(&p->tok, &space)) {
        next_token(p);
        parse_variables(p, space, (linkage){0});
    } else
        parse_fail(p, PVM_ERROR_SYNTAX, "unknown directive '.%.*s'", p->tok.length > 40 ? 40 : p->tok.length,
                   p->tok.text);
}

static void parse_body_statement(parser *p)
{
    pvm_inst inst = {.guard = -1};
    if (p->tok.kind == TOKEN_WORD) {
        parse_body_directive(p);
        return;
    }
    bool guarded = accept_punct(p, '@');
    if (guarded)
        parse_guard(p, &inst);
    if (p->tok.kind != TOKEN_NAME)
        parse_fail(p, PVM_ERROR_SYNTAX,
                   p->tok.kind == TOKEN_END ? "'}' is missing at the end of the text"
                                            : "an instruction is needed here");
    p->opcode = p->tok;
    next_token(p);
    if (!guarded && accept_punct(p, ':'))
        parse_label(p, &(token){.text = p->opcode.text,
                                .length = p->opcode.length,
                                .line = p->opcode.line,
                                .column = p->opcode.column});
    else
        parse_instruction(p, inst);
}

/* "{ ... }" with nested blocks, without recursion. The outermost block shares the scope of the parameters. */
void parse_body(parser *p)
{
    int outermost = p->depth;
    expect_punct(p, '{');
    while (p->depth > outermost || !at_punct(p, '}')) {
        if (accept_punct(p, '{'))
            scope_open(p);
        else if (at_punct(p, '}')) {
            scope_close(p);
            next_token(p);
        } else
            parse_body_statement(p);
    }
}
