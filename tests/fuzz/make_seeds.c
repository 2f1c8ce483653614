/* Writes seeds for the fuzzers of PTX, kernels for each row of isa.def, into the folder given first; and the words of
 * PTX as a dictionary into the file given second. */
#include "support/form_examples.h"

#include <stdio.h>
#include <string.h>

/* What registers hold before the instruction, so that it comes to its work: nothing; addresses of global memory and
 * full member masks; addresses of shared memory. */
static const struct {
    const char *name, *b64, *b32;
} starts[] = {{"form", NULL, NULL}, {"global", "g", "-1"}, {"shared", "s", "s"}};

static void put_start(form_text *t, int start)
{
    if (!starts[start].b64)
        return;
    form_put(t, ".shared .align 128 .b8 s[1024];\n");
    for (int i = 1; i <= 12; i++)
        form_put(t, "mov.b64 rd%d, %s; mov.b32 r%d, %s; mov.b16 h%d, %d;\n", i, starts[start].b64, i,
                 starts[start].b32, i, i);
    form_put(t, "setp.eq.u16 p1, h1, 1; setp.eq.u16 p2, h1, 2; setp.eq.u16 p3, h1, 3;\n");
}

static int write_seed(const char *folder, int number, int start)
{
    const form_table *table = form_table_get();
    char path[4096], body[4096], kernel[8192];
    form_text b = {body, body + sizeof body}, k = {kernel, kernel + sizeof kernel};
    const form *f = &table->forms[number];
    form_put_header(&k, f->needs, form_version(f));
    form_put(&k, ".global .align 128 .b8 g[1024];\n");
    put_start(&b, start);
    form_put_example(&b, table, f, form_plan_plain);
    form_put_kernel(&k, 0, body);
    snprintf(path, sizeof path, "%s/%s_%d.ptx", folder, starts[start].name, number);
    FILE *file = fopen(path, "w");
    return !file || fputs(kernel, file) < 0 || fclose(file);
}

static int write_seeds(const char *folder)
{
    int failed = 0;
    for (int i = 0; i < form_table_get()->n_forms; i++)
        for (size_t start = 0; start < sizeof starts / sizeof *starts; start++)
            failed |= write_seed(folder, i, (int)start);
    return failed;
}

/* Directives, registers and names that mean something; opcodes and modifiers from their tables. */
static int write_dictionary(const char *path)
{
    static const char *const others[] = {".reg ",
                                         ".param ",
                                         ".local ",
                                         ".shared ",
                                         ".global ",
                                         ".const ",
                                         ".func ",
                                         ".entry k",
                                         ".extern ",
                                         ".visible ",
                                         ".weak ",
                                         ".align 16",
                                         ".b8 ",
                                         ".v4 ",
                                         ".pred ",
                                         "vprintf",
                                         "malloc",
                                         "free",
                                         "%tid.x",
                                         "%laneid",
                                         "%ctaid.x",
                                         "_",
                                         ".branchtargets ",
                                         ".calltargets ",
                                         ".callprototype ",
                                         ".alias ",
                                         ".file 1 ",
                                         ".loc 1 1 1",
                                         "generic(",
                                         "0f3F800000",
                                         "0xffffffffffff",
                                         "-1",
                                         "@%p1 ",
                                         "ret;",
                                         "bra ",
                                         "{",
                                         "}",
                                         "+ 4]",
                                         "<100>"};
    FILE *file = fopen(path, "w");
    if (!file)
        return 1;
    for (int op = 1; op < OP_COUNT; op++)
        fprintf(file, "\"%s\"\n", pvm_opcode_name((pvm_opcode)op));
    for (int mod = 1; mod < M_COUNT; mod++)
        fprintf(file, "\"%s\"\n", pvm_mod_text((pvm_mod)mod));
    for (int type = 1; type < T_COUNT; type++)
        fprintf(file, "\"%s\"\n", pvm_type_name((pvm_type)type));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        fprintf(file, "\"%s\"\n", others[i]);
    return fclose(file) != 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && write_seeds(argv[1]))
        return 1;
    return argc > 2 ? write_dictionary(argv[2]) : 0;
}
