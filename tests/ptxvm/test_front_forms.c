/* Every row of isa.def reads an example made from its own pattern, and where ptxas is found, it takes the
 * same examples. */
#include "test.h"

#include "ptxvm/front/front.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char declarations[] =
    ".reg .pred p<9>; .reg .b8 c<99>; .reg .b16 h<99>; .reg .b32 r<99>; .reg .b64 rd<99>;\n";

/* The register file that holds a type: bits of the same size fit everywhere. */
static const char *register_prefix(ptx_type type)
{
    switch (ptx_type_bits(type)) {
    case 1:
        return "p";
    case 8:
        return "c";
    case 16:
        return "h";
    case 32:
        return "r";
    case 64:
        return "rd";
    default:
        return "q";
    }
}

typedef struct text {
    char *at, *end;
} text;

static void put(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->at, (size_t)(t->end - t->at), format, args);
    va_end(args);
    t->at += n < t->end - t->at ? n : t->end - t->at - 1;
}

/* Which choices an example makes: optional group `group` is there (0: none), and modifier `varied` takes its
 * choice `choice`. */
typedef struct plan {
    int group, varied, choice;
} plan;

static bool mod_present(const form_mod *m, plan how)
{
    return !m->implied && (!m->optional || m->optional == how.group);
}

static void put_mods(text *t, const form_table *table, const form *f, plan how, ptx_inst *inst)
{
    for (int i = 0; i < f->n_mods; i++) {
        const form_mod *m = &table->mods[f->first_mod + i];
        if (!m->implied && !mod_present(m, how))
            continue;
        uint16_t value = table->choices[m->first + (i == how.varied ? how.choice : 0)];
        inst->mod[m->slot] = value;
        if (!m->implied)
            put(t, "%s", ptx_mod_text((ptx_mod)value));
    }
}

static int vector_count(const form_operand *o, const ptx_inst *inst)
{
    if (o->count != COUNT_VEC)
        return o->count;
    return inst->mod[S_VEC] == M_v2 ? 2 : inst->mod[S_VEC] == M_v4 ? 4 : inst->mod[S_VEC] == M_v8 ? 8 : 0;
}

static void put_value(text *t, const form *f, const form_operand *o, const ptx_inst *inst, int *next)
{
    ptx_type type = form_operand_type(o, inst);
    int count = vector_count(o, inst), last = type == T_PRED || ptx_type_bits(type) == 128 ? 8 : 98;
    if (o->flags & IS_ADDRESS)
        put(t, "[rd98]");
    else if (o->flags & IS_LABEL)
        put(t, "done");
    else if (o->flags & IS_TARGETS)
        put(t, "table");
    else if (!(o->flags & TAKES_REG))
        put(t, "%d", o->flags & IS_RANGED ? o->lo : f->op == OP_cp || f->op == OP_alloca ? 16 : 8);
    else if (!count)
        put(t, "%s%d", register_prefix(type), ++*next % last);
    else
        for (int i = 0; i < count; i++)
            put(t, "%s%s%d%s", i ? ", " : "{", register_prefix(type), ++*next % last,
                i == count - 1 ? "}" : "");
}

/* One instruction of a form, with its ';'. */
static void put_example(text *t, const form_table *table, const form *f, plan how)
{
    ptx_inst inst = {0};
    int next = 0, written = 0;
    put(t, "%s", ptx_opcode_name(f->op));
    put_mods(t, table, f, how, &inst);
    for (int i = 0; i < f->n_operands; i++) {
        const form_operand *o = &table->operands[f->first_operand + i];
        if (o->flags & IS_OPTIONAL || (o->flags & IS_HINT && !inst.mod[S_HINT]))
            continue;
        put(t, "%s", o->flags & IS_PAIRED ? "|" : written ? ", " : " ");
        put_value(t, f, o, &inst, &next);
        written++;
    }
    put(t, ";\n");
}

/* A module for the first target that a form names; `body` may hold several instructions. */
static void put_header(text *t, const char *needs)
{
    int sm = atoi(needs) > 75 ? atoi(needs) : 75;
    bool special = needs[strspn(needs, "0123456789")] && strcmp(needs, "old") != 0;
    put(t, ".version %s\n.target sm_%d%s\n.address_size 64\n", strcmp(needs, "old") == 0 ? "6.3" : "9.0", sm,
        special ? "a" : "");
}

static void put_kernel(text *t, int number, const char *body)
{
    const char *wide = strstr(body, "b128") ? ".reg .b128 q<9>;\n" : "";
    put(t, ".visible .entry k%d()\n{\n%s%stable: .branchtargets done;\n%sdone: ret;\n}\n", number,
        declarations, wide, body);
}

static bool parses(const char *ptx, ptx_error *error)
{
    ptx_module *m = ptx_module_parse(ptx, strlen(ptx), error);
    ptx_module_free(m);
    return m != NULL;
}

TEST_CASE(FrontForms, TableIsWellFormed)
{
    const char *problem = form_table_problem();
    CHECK_EQ_STR(problem ? problem : "", "");
    CHECK(form_table_get()->n_forms > 400);
}

/* What has no row is refused by name, not taken for a misspelling. */
TEST_CASE(FrontForms, EveryOpcodeIsReadOrRefusedByName)
{
    const form_table *table = form_table_get();
    for (int op = OP_NONE + 1; op < OP_COUNT; op++) {
        char ptx[256];
        ptx_error error;
        if (table->first_of[op] != table->first_of[op + 1])
            continue;
        snprintf(ptx, sizeof ptx, ".version 9.0\n.target sm_100a\n.entry k() { %s.x; }\n",
                 ptx_opcode_name((ptx_opcode)op));
        CHECK(!parses(ptx, &error));
        CHECK_EQ_I64(error.kind, PTX_ERROR_UNSUPPORTED);
        CHECK_HAS(error.message, ptx_opcode_name((ptx_opcode)op));
    }
}

TEST_CASE(FrontForms, EveryRowReadsItsOwnExample)
{
    const form_table *table = form_table_get();
    for (int i = 0; i < table->n_forms; i++) {
        const form *f = &table->forms[i];
        char body[1024], ptx[4096];
        ptx_error error;
        if (f->op == OP_call)
            continue;
        text b = {body, body + sizeof body}, t = {ptx, ptx + sizeof ptx};
        put_example(&b, table, f, (plan){0, -1, 0});
        put_header(&t, f->needs);
        put_kernel(&t, 0, body);
        test_push_note("%s", body);
        if (!CHECK(parses(ptx, &error)))
            FAIL("%s", error.message);
        test_pop_note();
    }
}

/* An example is read as the row that it was made from, or as an earlier one that says the same. */
TEST_CASE(FrontForms, ExamplesKeepTheirOpcodeAndSlots)
{
    const form_table *table = form_table_get();
    for (int i = 0; i < table->n_forms; i++) {
        const form *f = &table->forms[i];
        char body[1024], ptx[4096], ignored[1024];
        ptx_error error;
        ptx_inst expected = {0};
        if (f->op == OP_call)
            continue;
        text b = {body, body + sizeof body}, t = {ptx, ptx + sizeof ptx},
             scratch = {ignored, ignored + sizeof ignored};
        put_example(&b, table, f, (plan){0, -1, 0});
        put_mods(&scratch, table, f, (plan){0, -1, 0}, &expected);
        put_header(&t, f->needs);
        put_kernel(&t, 0, body);
        ptx_module *m = ptx_module_parse(ptx, strlen(ptx), &error);
        REQUIRE(m != NULL);
        const ptx_inst *inst = &m->functions[0]->insts[0];
        test_push_note("%s", body);
        CHECK_EQ_I64(inst->op, f->op);
        for (int s = 0; s < S_COUNT; s++)
            CHECK_EQ_I64(inst->mod[s], expected.mod[s]);
        test_pop_note();
        ptx_module_free(m);
    }
}

/* ---- ptxas ---- */

static int run_ptxas(const char *ptx, const char *needs, char *message, size_t size)
{
    char path[512], command[2048];
    int sm = atoi(needs) > 75 ? atoi(needs) : 75;
    bool special = needs[strspn(needs, "0123456789")] && strcmp(needs, "old") != 0;
    snprintf(path, sizeof path, "%s/front_forms_%d.ptx", QDNN_BINARY_DIR, (int)getpid());
    FILE *file = fopen(path, "w");
    if (!file)
        return -1;
    fputs(ptx, file);
    fclose(file);
    snprintf(command, sizeof command, "%s -O0 -arch sm_%d%s -o /dev/null %s 2>&1", QDNN_PTXAS, sm,
             special ? "a" : "", path);
    FILE *pipe = popen(command, "r");
    size_t n = pipe ? fread(message, 1, size - 1, pipe) : 0;
    message[n] = 0;
    while (pipe && fgetc(pipe) != EOF)
        ;
    int status = pipe ? pclose(pipe) : -1;
    remove(path);
    return status;
}

/* All plans of one form: its first choices, each other choice, each optional group. */
static int list_plans(const form_table *table, const form *f, plan *plans, int most)
{
    int n = 0, groups = 0;
    plans[n++] = (plan){0, -1, 0};
    for (int i = 0; i < f->n_mods; i++) {
        const form_mod *m = &table->mods[f->first_mod + i];
        groups = m->optional > groups ? m->optional : groups;
        for (int c = m->optional ? 0 : 1; c < m->count && n < most && !m->implied; c++)
            plans[n++] = (plan){m->optional, i, c};
    }
    return n;
}

enum { MAX_TEXT = 4 << 20 };

/* Kernels of all examples that we read, for one of the targets that isa.def names. Returns how many. */
static int put_accepted(text *t, const char *needs)
{
    const form_table *table = form_table_get();
    int kernels = 0;
    for (int i = 0; i < table->n_forms; i++) {
        const form *f = &table->forms[i];
        plan plans[256];
        if (strcmp(f->needs, needs) != 0 || f->op == OP_call)
            continue;
        int n = list_plans(table, f, plans, 256);
        for (int k = 0; k < n; k++) {
            char body[1024], ptx[4096];
            ptx_error error;
            text b = {body, body + sizeof body}, one = {ptx, ptx + sizeof ptx};
            put_example(&b, table, f, plans[k]);
            put_header(&one, needs);
            put_kernel(&one, 0, body);
            if (parses(ptx, &error))
                put_kernel(t, kernels++, body);
        }
    }
    return kernels;
}

static const char *const targets[] = {"",          "30",   "32",        "50",
                                      "52",        "53",   "60",        "61",
                                      "70",        "72",   "75",        "80",
                                      "86",        "89",   "90",        "90a 100f 110f 120f",
                                      "100",       "100f", "100f 110f", "100f 110f 120f",
                                      "100a 103a", "120f", "old"};

static int count_targets(void)
{
    return sizeof targets / sizeof targets[0];
}

static void name_target(int index, char *name, size_t size)
{
    snprintf(name, size, "needs_%s", targets[index][0] ? targets[index] : "nothing");
    for (char *s = name; *s; s++)
        *s = *s == ' ' ? '_' : *s;
}

TEST_EACH(FrontForms, PtxasTakesWhatWeTake, count_targets, name_target)
{
    if (!QDNN_PTXAS[0])
        SKIP("no ptxas");
    char *ptx = malloc(MAX_TEXT), message[2000];
    text t = {ptx, ptx + MAX_TEXT};
    put_header(&t, targets[index]);
    CHECK(put_accepted(&t, targets[index]) > 0);
    int status = run_ptxas(ptx, targets[index], message, sizeof message);
    if (status != 0) {
        int line = strstr(message, "line ") ? atoi(strstr(message, "line ") + 5) : 1;
        const char *s = ptx;
        for (int l = 1; l < line && *s; s++)
            l += *s == '\n';
        FAIL("%.500s\n%.*s", message, (int)strcspn(s, "\n"), s);
    }
    free(ptx);
}

/* The list above is all of isa.def. */
TEST_CASE(FrontForms, TargetsAreComplete)
{
    const form_table *table = form_table_get();
    for (int i = 0; i < table->n_forms; i++) {
        bool known = false;
        for (int k = 0; k < count_targets(); k++)
            known |= strcmp(targets[k], table->forms[i].needs) == 0;
        if (!CHECK(known))
            FAIL("'%s'", table->forms[i].needs);
    }
}
