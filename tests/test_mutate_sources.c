/* The tool behind `./run mutate --sources`: tokens, the mistakes that it finds, what it makes of a file, the list of known ones. */
#include "mutate_sources/known.h"
#include "mutate_sources/project.h"
#include "mutate_sources/rewrite.h"
#include "support/process.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const char tool_program[] = "qdnn_tests"; /* for the messages of tools/output.c */

TEST_CASE(MutateSources, TokensHaveTheirPlaces)
{
    static const char text[] = "#define A (1 \\\n  2\nint x = 0x1e+3 + 1e+3f; /* ( */ // {\n"
                               "char *s = \"a\\\"(\", c = ')';\n  # if 1 /* a\n b */\nx >>= y->z[1];\n";
    static const char *const expected[] = {
        "int", "x", "=", "0x1e", "+", "3", "+",   "1e+3f", ";",  "char", "*", "s", "=", "\"a\\\"(\"",
        ",",   "c", "=", "')'",  ";", "x", ">>=", "y",     "->", "z",    "[", "1", "]", ";"};
    tokens t;
    REQUIRE(tokens_read(text, &t));
    CHECK_EQ_I64(t.count, sizeof expected / sizeof expected[0]);
    for (int i = 0; i < t.count && i < (int)(sizeof expected / sizeof expected[0]); i++) {
        char one[32];
        snprintf(one, sizeof one, "%.*s", t.list[i].length, text + t.list[i].at);
        CHECK_EQ_STR(one, expected[i]);
    }
    CHECK_EQ_I64(t.list[0].line, 3);
    CHECK_EQ_I64(t.list[9].line, 4);
    CHECK_EQ_I64(t.list[t.count - 1].line, 7); /* behind a comment of two lines */
    CHECK_EQ_I64(t.list[t.count - 2].partner, t.count - 4);
    CHECK_EQ_I64(t.list[t.count - 4].partner, t.count - 2);
    CHECK_EQ_I64(t.list[t.count - 3].inside, t.count - 4);
    tokens_free(&t);
}

TEST_CASE(MutateSources, BracketsThatDoNotMatchAreRefused)
{
    static const char *const texts[] = {"f(", ")", "f(]", "{ ( } )",
                                        "#if A\nif (a) {\n#else\nif (b) {\n#endif\n}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        tokens t;
        test_push_note("%s", texts[i]);
        CHECK(!tokens_read(texts[i], &t));
        tokens_free(&t);
        test_pop_note();
    }
}

/* A function body of one line, and every change that is found in it: "kind: line after" in the order of the text. */
static const struct {
    const char *name, *body, *expected;
} found[] = {
    {"comparison", "return a < b;", "comparison: return a <= b;\n"},
    {"logic", "return !a && b;",
     "logic: return a && b;\nlogic: return !a || b;\nterm left out: return !a && 1;\nterm left out: return 1 "
     "&& b;\n"},
    {"terms", "return a || f(b) || c;",
     "logic: return a && f(b) || c;\nterm left out: return a || 0 || c;\nterm left out: return 0 || f(b) || "
     "c;\n"
     "logic: return a || f(b) && c;\nterm left out: return a || f(b) || 0;\n"},
    {"arithmetic", "return -a * b - *p;",
     "arithmetic: return -a + b - *p;\narithmetic: return -a * b + *p;\n"},
    {"constants", "return 0x0Fu;", "constant: return 0x10u;\nconstant: return 0xeu;\n"},
    {"zero", "return 0;", "constant: return 1;\n"},
    {"floats", "return 0.5f;", "constant: return (0.5f + 1);\n"},
    {"booleans", "return true;", "constant: return false;\n"},
    {"condition", "if (a) return b;", "condition: if (!(a)) return b;\njump left out: if (a) ;\n"},
    {"assignment", "a = b; return a;", "assignment left out: ; return a;\n"},
    {"compound", "a += b; return a;", "assignment left out: ; return a;\narithmetic: a -= b; return a;\n"},
    {"step", "a++; return a;", "assignment left out: ; return a;\narithmetic: a--; return a;\n"},
    {"call", "unlock(a); return a;", "call left out: ; return a;\n"},
    {"arguments", "return f(a, b + c);", "arguments: return f(b + c, a);\narithmetic: return f(a, b - c);\n"},
    {"equal_arguments", "return f(a, a);", ""},
    {"symmetric", "return memcmp(a, b, c);", "arguments: return memcmp(a, c, b);\n"},
    {"commutes", "return ptx_add(b, f(a, a), c);", "arguments: return ptx_add(f(a, a), b, c);\n"},
    {"members", "return s->a + s->b;",
     "member: return s->b + s->b;\narithmetic: return s->a - s->b;\nmember: return s->a + s->a;\n"},
    {"other_owner", "return s->a + t->b;", "arithmetic: return s->a - t->b;\n"},
    /* Nothing is changed in these. */
    {"declaration", "const int x = a; size_t y; word z; return a;", ""},
    {"assert", "assert(a < 3); return a;", ""},
    {"sizeof", "return sizeof(a[1]) == sizeof s->b;", "comparison: return sizeof(a[1]) != sizeof s->b;\n"},
    {"declaring_macro", "CALL_BEGIN_WITH(a); return a;", ""},
    {"unused", "(void)a; va_end(b); return c;", ""},
    {"last_return", "return a;", ""},
};

static void describe(const source *s, tool_text *out)
{
    for (int i = 0; i < s->n_mistakes; i++) {
        char *after = mistake_after(s, &s->mistakes[i]);
        tool_printf(out, "%s: %s\n", mistake_kind_name(s->mistakes[i].kind), after ? after : "");
        free(after);
    }
    tool_append(out, "", 1);
}

TEST_ROWS(MutateSources, FindsEachKindOfMistake, found)
{
    char text[512];
    source s;
    tool_text out = {0};
    snprintf(text, sizeof text, "int limit = 3;\nint f(int a)\n{\n    %s\n}\n", found[index].body);
    if (CHECK(source_read(&s, "a.c", text))) {
        describe(&s, &out);
        CHECK_EQ_STR(out.data, found[index].expected);
        for (int i = 0; i < s.n_mistakes; i++)
            CHECK_EQ_I64(s.mistakes[i].line, 4);
    }
    tool_text_free(&out);
    source_free(&s);
}

TEST_CASE(MutateSources, BlocksKeepTheirNumbersWhenOtherFunctionsChange)
{
    static const char f[] =
        "int f(int a)\n{\n  if (a) { a++; } else { a--; }\n  for (;;) { break; }\n  return a;\n}\n";
    char more[512];
    source one, two;
    snprintf(more, sizeof more, "static int g(void) { while (1) { } }\n%s", f);
    if (CHECK(source_read(&one, "a.c", f)) && CHECK(source_read(&two, "a.c", more))) {
        CHECK_EQ_I64(one.n_blocks, 4); /* the body, if, else, for */
        CHECK_EQ_I64(two.n_blocks, 6);
        for (int i = 0; i < 4 && two.n_blocks == 6; i++) {
            CHECK_EQ_U32(two.blocks[i + 2].id, one.blocks[i].id);
            for (int k = 0; k < i; k++)
                CHECK(one.blocks[k].id != one.blocks[i].id);
        }
        for (int i = 0; i < one.n_mistakes; i++)
            if (one.mistakes[i].kind == MISTAKE_JUMP)
                CHECK_EQ_I64(one.mistakes[i].block, 3);
    }
    source_free(&one);
    source_free(&two);
}

/* ---- What is made of a file ---- */

/* Every line is executed, and no loop runs long whatever is changed. */
static const char program[] = "#define _POSIX_C_SOURCE 200809L\n"
                              "#include <stdio.h>\n"
                              "struct pair { int a, b; };\n"
                              "enum { LIMIT = 4 };\n"
                              "static int steps;\n"
                              "static int less(int a, int b)\n"
                              "{\n"
                              "    return a < b; // a comment\n"
                              "}\n"
                              "static int loop(struct pair *p)\n"
                              "{\n"
                              "    int sum = 0;\n"
                              "    for (int i = 0; i < LIMIT; i++) {\n"
                              "        if (++steps > 9) break;\n"
                              "        if (i == 2) continue; else sum += i *\n"
                              "            p->a; /* over two lines */\n"
                              "    }\n"
                              "    switch (sum) {\n"
                              "    case 1 + 3:\n"
                              "        p->b = sum;\n"
                              "        break;\n"
                              "    }\n"
                              "    return p->a > 0 && p->b > 0 ? sum : 7;\n"
                              "}\n"
                              "int main(void)\n"
                              "{\n"
                              "    static const int table[] = {1, 2};\n"
                              "    struct pair p = {.a = 1, .b = 7};\n"
                              "    int line = __LINE__, list[LIMIT - 1] = {5};\n"
                              "    printf(\"%d %d %d \", less(1, 2), less(2, 2), loop(&p));\n"
                              "    printf(\"%d %d %d %d\\n\", p.b, line, table[1], list[0]);\n"
                              "    return 0;\n"
                              "}\n";
static const char program_output[] = "1 0 4 4 29 2 5\n";

typedef struct built {
    char folder[256];
    source s;
    numbered *list;
    int count;
} built;

/* Writes `name`.c with the mistakes and compiles it with flags to `name`. Returns the compiler's status. */
static int compile(const built *b, const char *name, const numbered *list, int count, const char *flags)
{
    char path[300];
    tool_text text = {0};
    process_result r = {.status = -1};
    snprintf(path, sizeof path, "%s/%s.c", b->folder, name);
    if (CHECK(rewrite(&b->s, QDNN_SOURCE_DIR, list, count, &text)) &&
        CHECK(tool_write(path, &text) == TOOL_OK))
        r = process_run("%s -std=c17 -O0 -w %s -o %s/%s %s", QDNN_C_COMPILER, flags, b->folder, name, path);
    const int status = r.status;
    process_free(&r);
    tool_text_free(&text);
    return status;
}

/* Which mistakes compile with unchanged types. */
static void check_each(built *b)
{
    b->list = calloc((size_t)b->s.n_mistakes + 1, sizeof *b->list);
    for (int i = 0; b->list && i < b->s.n_mistakes; i++) {
        const numbered one = {1, &b->s.mistakes[i]};
        if (compile(b, "check", &one, 1, "-fsyntax-only -DSOURCE_CHECK -Werror=vla -Wno-all") == 0) {
            b->list[b->count] = (numbered){b->count + 1, &b->s.mistakes[i]};
            b->count++;
        }
    }
}

static bool same_output(const built *b, const char *settings)
{
    process_result r = process_run("%s %s/all", settings, b->folder);
    const bool same = r.status == 0 && strcmp(r.output, program_output) == 0;
    process_free(&r);
    return same;
}

static bool exists(const char *path)
{
    FILE *file = fopen(path, "r");
    if (file)
        fclose(file);
    return file != NULL;
}

/* One build serves all mistakes: without the switch the program is what it was, down to its line numbers; with it, it differs. */
TEST_CASE(MutateSources, OneBuildServesAllMistakes)
{
    built b = {0};
    int noticed[MISTAKE_KINDS] = {0}, n_hit = 0;
    temp_dir_make(b.folder, sizeof b.folder);
    if (CHECK(source_read(&b.s, "program.c", program))) {
        check_each(&b);
        /* Dropped are those at constants: the label of a case, the sizes of arrays, static tables. */
        CHECK(b.count > 30 && b.count < b.s.n_mistakes);
        CHECK_EQ_I64(compile(&b, "all", b.list, b.count, ""), 0);
        CHECK(same_output(&b, ""));
        CHECK(same_output(&b, "SOURCE_MUTANT=99999"));
        for (int i = 1; i <= b.count; i++) {
            char settings[600], path[300];
            snprintf(path, sizeof path, "%s/hit%d", b.folder, i);
            snprintf(settings, sizeof settings, "SOURCE_MUTANT=%d SOURCE_HIT=%s", i, path);
            noticed[b.list[i - 1].mistake->kind] += !same_output(&b, settings);
            n_hit += exists(path);
        }
        CHECK_EQ_I64(n_hit, b.count - 3); /* the break is not reached, nor the 7 of two mistakes */
        for (int kind = 0; kind < MISTAKE_KINDS; kind++)
            if (kind != MISTAKE_TERM && kind != MISTAKE_LOGIC && kind != MISTAKE_JUMP && noticed[kind] == 0)
                FAIL("no mistake of the kind '%s' shows", mistake_kind_name(kind));
    }
    free(b.list);
    source_free(&b.s);
    temp_dir_remove(b.folder);
}

TEST_CASE(MutateSources, RecordsTheBlocksThatWereReached)
{
    static const char text[] =
        "int main(int n, char **v)\n{\n  (void)v;\n  if (n > 1) { return 0; }\n  else { return 0; }\n}\n";
    built b = {0};
    temp_dir_make(b.folder, sizeof b.folder);
    if (CHECK(source_read(&b.s, "program.c", text)) && CHECK_EQ_I64(b.s.n_blocks, 3)) {
        CHECK_EQ_I64(compile(&b, "blocks", NULL, 0, ""), 0);
        process_result r =
            process_run("cd %s && truncate -s %d map && SOURCE_BLOCKS=map ./blocks", b.folder, BLOCK_IDS);
        CHECK_EQ_I64(r.status, 0);
        process_free(&r);
        char path[300];
        tool_text map = {0};
        snprintf(path, sizeof path, "%s/map", b.folder);
        if (CHECK(tool_read(path, &map) == TOOL_OK) && CHECK_EQ_U64(map.size, BLOCK_IDS)) {
            CHECK_EQ_I64(map.data[b.s.blocks[0].id], 1);
            CHECK_EQ_I64(map.data[b.s.blocks[1].id], 0);
            CHECK_EQ_I64(map.data[b.s.blocks[2].id], 1);
        }
        tool_text_free(&map);
    }
    source_free(&b.s);
    temp_dir_remove(b.folder);
}

/* ---- The compiler ---- */

static int write_text(const char *folder, const char *name, const char *text)
{
    char path[700];
    tool_text out = {0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    tool_append(&out, text, strlen(text));
    const int status = tool_write(path, &out);
    tool_text_free(&out);
    return status;
}

/* The copy is compiled in the place of its source, finds headers beside the source, and every other header where the source finds it, even if
 * one of the same name lies in a folder beside the source. */
TEST_CASE(MutateSources, ACopyFindsTheHeadersOfItsSource)
{
    static const char source[] = "#include \"beside.h\"\n#include \"kind/types.h\"\nBESIDE TYPES here;\n";
    static const struct {
        const char *name, *text;
    } files[] = {{"root/tools/a.c", "this is not what is compiled\n"},
                 {"root/tools/beside.h", "#define BESIDE static\n"},
                 {"root/tools/kind/types.h", "#error \"another one\"\n"},
                 {"root/include/kind/types.h", "#define TYPES const int\n"},
                 {"copies/tools/a.c", source}};
    char folder[256], root[300], copies[300], file[350], include[320];
    temp_dir_make(folder, sizeof folder);
    process_result made =
        process_run("cd %s && mkdir -p root/tools/kind root/include/kind copies/tools", folder);
    CHECK_EQ_I64(made.status, 0);
    process_free(&made);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        CHECK_EQ_I64(write_text(folder, files[i].name, files[i].text), TOOL_OK);
    snprintf(root, sizeof root, "%s/root", folder);
    snprintf(copies, sizeof copies, "%s/copies", folder);
    snprintf(file, sizeof file, "%s/tools/a.c", root);
    snprintf(include, sizeof include, "-I%s/include", root);
    char *command[] = {"cc", include, "-fsyntax-only", file, NULL};
    const pid_t child = fork();
    if (child == 0)
        _exit(compile_copy(root, copies, command) ? 100 : 101);
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    temp_dir_remove(folder);
}

/* ---- The reviewed list ---- */

TEST_CASE(MutateSources, KnownOnesAreFoundByTheirLines)
{
    static const char text[] =
        "# why\n\na.c\n- x < y\n+ x <= y\nbecause they are never equal\n\nb.c\n- a\n+ b\nbecause c\n";
    known k;
    int line;
    CHECK(known_read(&k, text, &line));
    CHECK_EQ_I64(k.count, 2);
    CHECK_EQ_STR(known_reason(&k, "a.c", "x < y", "x <= y"), "they are never equal");
    CHECK(!known_reason(&k, "b.c", "x < y", "x <= y"));
    CHECK(!known_reason(&k, "a.c", "x < y", "x > y"));
    CHECK(!known_reason(&k, "a.c", "x < z", "x <= y"));
    known_free(&k);
}

TEST_CASE(MutateSources, KnownOnesNeedAReason)
{
    static const struct {
        const char *text;
        int line;
    } wrong[] = {{"a.c\n- x\n+ y\n", 3}, {"a.c\n- x\n+ y\nbecause \n", 4}, {"a.c\n+ y\n- x\nbecause z\n", 2}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        known k;
        int line;
        CHECK(!known_read(&k, wrong[i].text, &line));
        CHECK_EQ_I64(line, wrong[i].line);
        known_free(&k);
    }
}

/* The list of the project can be read. */
TEST_CASE(MutateSources, TheListOfTheProjectIsWellFormed)
{
    tool_text text = {0};
    known k = {0};
    int line;
    if (CHECK(tool_read(QDNN_SOURCE_DIR "/tests/mutate_sources/equivalent.txt", &text) == TOOL_OK)) {
        tool_append(&text, "", 1);
        if (!known_read(&k, text.data, &line))
            FAIL("line %d is wrong", line);
    }
    known_free(&k);
    tool_text_free(&text);
}
