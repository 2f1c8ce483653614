/* Every row of isa.def reads an example made from its own pattern, and where ptxas is found, it accepts the
 * same examples. */
#include "test.h"

#include "support/form_examples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool parses(const char *ptx, pvm_error *error)
{
    pvm_module *m = pvm_module_parse(ptx, strlen(ptx), error);
    pvm_module_free(m);
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
        pvm_error error;
        if (table->first_of[op] != table->first_of[op + 1])
            continue;
        snprintf(ptx, sizeof ptx, ".version 9.0\n.target sm_100a\n.entry k() { %s.x; }\n",
                 pvm_opcode_name((pvm_opcode)op));
        CHECK(!parses(ptx, &error));
        CHECK_EQ_I64(error.kind, PVM_ERROR_UNSUPPORTED);
        CHECK_HAS(error.message, pvm_opcode_name((pvm_opcode)op));
    }
}

TEST_CASE(FrontForms, EveryRowReadsItsOwnExample)
{
    const form_table *table = form_table_get();
    for (int i = 0; i < table->n_forms; i++) {
        const form *f = &table->forms[i];
        char body[2048], ptx[4096];
        pvm_error error;
        if (f->op == OP_call)
            continue;
        form_text b = {body, body + sizeof body}, t = {ptx, ptx + sizeof ptx};
        form_put_example(&b, table, f, form_plan_plain);
        form_put_header(&t, f->needs, form_version(f));
        form_put_kernel(&t, 0, body);
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
        char body[2048], ptx[4096], ignored[1024];
        pvm_error error;
        pvm_inst expected = {0};
        if (f->op == OP_call)
            continue;
        form_text b = {body, body + sizeof body}, t = {ptx, ptx + sizeof ptx},
                  scratch = {ignored, ignored + sizeof ignored};
        form_put_example(&b, table, f, form_plan_plain);
        form_put_mods(&scratch, table, f, form_plan_plain, &expected);
        form_put_header(&t, f->needs, form_version(f));
        form_put_kernel(&t, 0, body);
        pvm_module *m = pvm_module_parse(ptx, strlen(ptx), &error);
        REQUIRE(m != NULL);
        const pvm_inst *inst = &m->functions[0]->insts[0];
        test_push_note("%s", body);
        CHECK_EQ_I64(inst->op, f->op);
        for (int s = 0; s < S_COUNT; s++)
            CHECK_EQ_I64(inst->mod[s], expected.mod[s]);
        test_pop_note();
        pvm_module_free(m);
    }
}

/* ---- ptxas ---- */

static int run_ptxas(const char *assembler, const char *ptx, const char *needs, char *message, size_t size)
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
    snprintf(command, sizeof command, "%s -O0 -arch sm_%d%s -o /dev/null %s 2>&1", assembler, sm,
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

enum { MAX_TEXT = 4 << 20 };

/* What ptxas 13.0 takes and 13.4 refuses: ptxvm takes it. */
static bool later_refuses(const char *body)
{
    static const char *const parts[] = {".param::func", "fence.acquire.", "fence.release.",
                                        ".mmio.release.gpu"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strstr(body, parts[i]))
            return true;
    return false;
}

/* Kernels of all examples that we read, for one of the targets that isa.def names, as far as the .version has them. Returns how many. */
static int put_accepted(form_text *t, const char *needs, int version)
{
    const form_table *table = form_table_get();
    int kernels = 0;
    for (int i = 0; i < table->n_forms; i++) {
        const form *f = &table->forms[i];
        form_plan plans[256];
        if (strcmp(f->needs, needs) != 0 || f->op == OP_call || form_version(f) > version)
            continue;
        int n = form_plans(table, f, plans, 256);
        for (int k = 0; k < n; k++) {
            char body[2048], ptx[4096];
            pvm_error error;
            form_text b = {body, body + sizeof body}, one = {ptx, ptx + sizeof ptx};
            form_put_example(&b, table, f, plans[k]);
            form_put_header(&one, needs, version);
            form_put_kernel(&one, 0, body);
            if (parses(ptx, &error) && (version <= 90 || !later_refuses(body)))
                form_put_kernel(t, kernels++, body);
        }
    }
    return kernels;
}

static const char *const targets[] = {"",
                                      "30",
                                      "32",
                                      "50",
                                      "52",
                                      "53",
                                      "60",
                                      "61",
                                      "70",
                                      "72",
                                      "75",
                                      "80",
                                      "86",
                                      "89",
                                      "90",
                                      "90a",
                                      "90a 100f 110f 120f",
                                      "100",
                                      "100f",
                                      "100f 110f",
                                      "100f 110f 120f",
                                      "100a 103a",
                                      "100a 103a 110a",
                                      "100a 110a",
                                      "103f 110f",
                                      "120f",
                                      "old"};

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

static void check_with(const char *assembler, int version, int index)
{
    char *ptx = malloc(MAX_TEXT), message[2000];
    form_text t = {ptx, ptx + MAX_TEXT};
    form_put_header(&t, targets[index], version);
    CHECK(put_accepted(&t, targets[index], version) > 0);
    int status = run_ptxas(assembler, ptx, targets[index], message, sizeof message);
    if (status != 0) {
        int line = strstr(message, "line ") ? atoi(strstr(message, "line ") + 5) : 1;
        const char *s = ptx;
        for (int l = 1; l < line && *s; s++)
            l += *s == '\n';
        FAIL("%.500s\n%.*s", message, (int)strcspn(s, "\n"), s);
    }
    free(ptx);
}

TEST_EACH(FrontForms, PtxasTakesWhatWeTake, count_targets, name_target)
{
    if (!QDNN_PTXAS[0])
        SKIP("no ptxas");
    check_with(QDNN_PTXAS, 90, index);
}

/* The same with a later assembler than the toolkit's. */
TEST_EACH(FrontForms, NewerPtxasTakesWhatWeTake, count_targets, name_target)
{
    const char *assembler = getenv("QDNN_NEWER_PTXAS");
    if (!assembler || !*assembler)
        SKIP("QDNN_NEWER_PTXAS does not name a ptxas");
    check_with(assembler, ptxvm_newest_isa, index);
}

/* The list above is all of isa.def. */
TEST_CASE(FrontForms, TargetsAreComplete)
{
    const form_table *table = form_table_get();
    for (int i = 0; i < table->n_forms; i++) {
        bool known = false;
        for (int k = 0; k < count_targets(); k++)
            known |= strcmp(targets[k], table->forms[i].needs) == 0;
        if (!CHECK(known || form_version(&table->forms[i]) > 90))
            FAIL("'%s'", table->forms[i].needs);
    }
}
