/* What a later ptxas than the toolkit's accepts and what ptxvm accepts, form by form and both ways: the examples of isa.def with one
 * modifier left out, or replaced by another that the instruction has elsewhere. QDNN_NEWER_PTXAS names the assembler. */
#include "test.h"

#include "support/form_examples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BODY = 400, BATCH = 400, MOST_WORDS = 24, MOST_KNOWN = 256 };

typedef struct candidate {
    char body[BODY];
    bool ours, theirs;
} candidate;

typedef struct candidates {
    candidate *list;
    int n, capacity;
} candidates;

/* ---- Changed examples ---- */

/* "op.a.b  operands;" in parts. */
typedef struct parts {
    char text[BODY];
    const char *word[MOST_WORDS]; /* the first is the opcode */
    int n;
    const char *operands;
} parts;

static bool split(const char *example, parts *p)
{
    size_t mods = strcspn(example, " ;"), length = strlen(example);
    if (length >= BODY)
        return false;
    snprintf(p->text, BODY, "%s", example);
    p->operands = example + mods;
    p->text[mods] = 0;
    p->n = 0;
    for (char *s = p->text; s && p->n < MOST_WORDS;) {
        p->word[p->n++] = s;
        s = strchr(s, '.');
        if (s)
            *s++ = 0;
    }
    return true;
}

static void add(candidates *all, const char *body)
{
    for (int i = all->n - 1; i >= 0 && i > all->n - 200; i--)
        if (strcmp(all->list[i].body, body) == 0)
            return;
    if (all->n == all->capacity) {
        all->capacity = 2 * all->capacity + 1024;
        all->list = realloc(all->list, (size_t)all->capacity * sizeof *all->list);
    }
    snprintf(all->list[all->n++].body, BODY, "%s", body);
}

/* The words, with number `at` replaced; `with` null: left out. */
static void add_changed(candidates *all, const parts *p, int at, const char *with)
{
    char body[BODY];
    form_text t = {body, body + sizeof body};
    for (int i = 0; i < p->n; i++) {
        const char *word = i == at ? with : p->word[i];
        if (word)
            form_put(&t, "%s%s", i ? "." : "", word);
    }
    form_put(&t, "%s", p->operands);
    add(all, body);
}

/* Words of all forms of an opcode, by slot. */
static int words_of(const form_table *table, pvm_opcode op, unsigned slot, const char **words)
{
    int n = 0;
    for (int i = table->first_of[op]; i < table->first_of[op + 1]; i++) {
        const form *f = &table->forms[i];
        for (int m = 0; m < f->n_mods; m++) {
            const form_mod *mod = &table->mods[f->first_mod + m];
            for (int c = 0; mod->slot == slot && !mod->implied && c < mod->count; c++) {
                const char *text = pvm_mod_text((pvm_mod)table->choices[mod->first + c]);
                int k = 0;
                while (k < n && strcmp(words[k], text) != 0)
                    k++;
                if (k == n && n < MOST_KNOWN)
                    words[n++] = text;
            }
        }
    }
    return n;
}

static void add_form(candidates *all, const form_table *table, const form *f, form_plan plan)
{
    char body[2048];
    const char *words[MOST_KNOWN];
    parts p;
    form_text t = {body, body + sizeof body};
    form_put_example(&t, table, f, plan);
    if (!split(body, &p))
        return;
    add(all, body);
    for (int i = 1; i < p.n; i++)
        add_changed(all, &p, i, NULL);
    for (int m = 0, at = 1; m < f->n_mods && at < p.n; m++) {
        const form_mod *mod = &table->mods[f->first_mod + m];
        if (mod->implied || (mod->optional && mod->optional != plan.group))
            continue;
        int n = words_of(table, f->op, mod->slot, words);
        for (int k = 0; k < n; k++)
            add_changed(all, &p, at, words[k] + 1);
        at++;
    }
}

/* ---- What the two say ---- */

static bool parses(const char *ptx)
{
    pvm_error error;
    pvm_module *m = pvm_module_parse(ptx, strlen(ptx), &error);
    pvm_module_free(m);
    return m != NULL;
}

typedef enum { ASSEMBLED, REFUSED, STUCK } assembly;

/* Writes the candidates that are still in, a kernel each; line_of[i]: where number i begins. */
static bool put_batch(const char *path, const char *needs, const candidate *list, int n,
                      int line_of[BATCH + 1])
{
    static char ptx[BATCH * 1200];
    form_text t = {ptx, ptx + sizeof ptx};
    int line = 0;
    form_put_header(&t, needs, ptxvm_newest_isa);
    for (const char *s = ptx; s < t.at; s++)
        line += *s == '\n';
    for (int i = 0; i < n; i++) {
        const char *from = t.at;
        line_of[i] = line;
        if (list[i].theirs)
            form_put_kernel(&t, i, list[i].body);
        for (const char *s = from; s < t.at; s++)
            line += *s == '\n';
    }
    line_of[n] = line;
    FILE *file = fopen(path, "w");
    return file && fwrite(ptx, 1, (size_t)(t.at - ptx), file) == (size_t)(t.at - ptx) && !fclose(file);
}

/* Runs the assembler; candidates with an error drop out. Stuck: there is an error without a line. */
static assembly assemble(const char *assembler, const char *needs, candidate *list, int n)
{
    char path[512], line[4096], command[2048];
    int line_of[BATCH + 1], sm = atoi(needs), dropped = 0;
    snprintf(path, sizeof path, "%s/front_newer_%d.ptx", QDNN_BINARY_DIR, (int)getpid());
    snprintf(command, sizeof command, "%s -O0 -arch sm_%d%s -o /dev/null %s 2>&1", assembler, sm,
             needs[strspn(needs, "0123456789")] ? "a" : "", path);
    FILE *pipe = put_batch(path, needs, list, n, line_of) ? popen(command, "r") : NULL;
    while (pipe && fgets(line, sizeof line, pipe)) {
        const char *at = strstr(line, ", line ");
        int number = at && strstr(at, "rror") ? atoi(at + 7) : 0;
        for (int i = 0; number && i < n; i++)
            if (number > line_of[i] && number <= line_of[i + 1] && list[i].theirs) {
                list[i].theirs = false;
                dropped++;
            }
    }
    bool ok = pipe && pclose(pipe) == 0;
    remove(path);
    return ok ? ASSEMBLED : dropped ? REFUSED : STUCK;
}

/* Leaves `theirs` set where the assembler takes the candidate. */
static void ask(const char *assembler, const char *needs, candidate *list, int n)
{
    assembly result;
    do
        result = assemble(assembler, needs, list, n);
    while (result == REFUSED);
    if (result == STUCK && n == 1)
        list->theirs = false;
    else if (result == STUCK) {
        ask(assembler, needs, list, n / 2);
        ask(assembler, needs, list + n / 2, n - n / 2);
    }
}

static void judge(const char *assembler, const char *needs, candidates *all)
{
    char ptx[4096];
    for (int i = 0; i < all->n; i++) {
        form_text t = {ptx, ptx + sizeof ptx};
        form_put_header(&t, needs, ptxvm_newest_isa);
        form_put_kernel(&t, 0, all->list[i].body);
        all->list[i].ours = parses(ptx);
        all->list[i].theirs = true;
    }
    for (int first = 0; first < all->n; first += BATCH)
        ask(assembler, needs, all->list + first, all->n - first < BATCH ? all->n - first : BATCH);
    for (int i = 0; i < all->n; i++)
        if (all->list[i].ours != all->list[i].theirs) { /* once more, alone */
            all->list[i].theirs = true;
            ask(assembler, needs, &all->list[i], 1);
        }
}

/* ---- Where they differ, and why ---- */

/* Texts that begin and continue like this. */
typedef struct difference {
    bool ours; /* ptxvm takes it */
    const char *begin, *part, *why;
} difference;

static const difference differences[] = {
    {true, "ld", ".param::func", "only in device functions, says the later assembler"},
    {true, "st", ".param", "only in device functions, says the later assembler"},
    {true, "ld", ".v8.", "the later assembler crashes; it takes the store"},
    {true, "red.async.mmio", ".gpu", "the ISA has it, the later assembler no longer"},
    {true, "st.async.mmio", ".gpu", "the ISA has it, the later assembler no longer"},
    {true, "fence.acquire", "", "the ISA has it, the later assembler from sm_90 on only"},
    {true, "fence.release", "", "the ISA has it, the later assembler from sm_90 on only"},
    {false, "atom", ".noftz", "not in the ISA for f32"},
    {false, "red", ".noftz", "not in the ISA for f32"},
    {false, "cp.reduce", ".noftz", "not in the ISA for f32"},
    {false, "atom", ".b32 r1, [rd98], r2, r3;", "an operand too many"},
    {false, "atom", ".b128 q1, [rd98], q2, q3;", "an operand too many"},
    {false, "fence.proxy", "", "orders and scopes that the ISA does not have for proxies"},
    {false, "fma.r", "bf16", "roundings that the ISA does not have for bf16"},
    {false, "mma.", ".kind::mx", "kinds with scales, without their scales"},
    {false, "red.async.relaxed", "", "without an mbarrier"},
    {false, "st.async", "", "parts that the ISA asks for are missing"},
    {false, "set.eq", "", "mixed types that the ISA does not have"},
    {false, "setp.eq", "x2 ", "pairs with one result"},
    {false, "testp.f32", "", "without a test"},
    {false, "wgmma.", ".sync", "without .aligned"},
    {false, "wmma.", ".row.m8n8k", "floating-point results of integer products"},
};

static bool is_known(const candidate *c)
{
    for (size_t i = 0; i < sizeof differences / sizeof *differences; i++) {
        const difference *d = &differences[i];
        if (d->ours == c->ours && strncmp(c->body, d->begin, strlen(d->begin)) == 0 &&
            strstr(c->body, d->part))
            return true;
    }
    return false;
}

static const char *const targets[] = {"90a", "100a", "103a", "110a", "120a", "80"};

static int count_targets(void)
{
    return sizeof targets / sizeof *targets;
}

static void name_target(int index, char *name, size_t size)
{
    snprintf(name, size, "sm_%s", targets[index]);
}

TEST_EACH(FrontNewer, AgreesBothWays, count_targets, name_target)
{
    const char *assembler = getenv("QDNN_NEWER_PTXAS");
    const form_table *table = form_table_get();
    candidates all = {0};
    int more = 0, fewer = 0, both = 0, unknown = 0;
    if (!assembler || !*assembler)
        SKIP("QDNN_NEWER_PTXAS does not name a ptxas");
    for (int i = 0; i < table->n_forms; i++) {
        const form *f = &table->forms[i];
        form_plan plans[256];
        if (f->op == OP_call || strcmp(f->needs, "old") == 0)
            continue;
        int n = form_plans(table, f, plans, 256);
        for (int k = 0; k < n; k++)
            if (k == 0 || plans[k].group)
                add_form(&all, table, f, plans[k]);
    }
    judge(assembler, targets[index], &all);
    for (int i = 0; i < all.n; i++) {
        const candidate *c = &all.list[i];
        both += c->ours && c->theirs;
        more += c->ours && !c->theirs;
        fewer += !c->ours && c->theirs;
        if (c->ours != c->theirs && !is_known(c) && unknown++ < 20)
            FAIL("%s alone takes %s", c->ours ? "ptxvm" : "ptxas", c->body);
    }
    CHECK_EQ_I64(unknown, 0);
    CHECK(both > 4000);
    printf("sm_%s: %d texts, %d accepted by both, %d by ptxvm alone, %d by ptxas alone\n", targets[index],
           all.n, both, more, fewer);
    free(all.list);
}
