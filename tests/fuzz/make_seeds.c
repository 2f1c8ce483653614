/* Writes seeds for the fuzzers of PTX, a kernel for each row of isa.def, into the folder given first; and the words of
 * PTX as a dictionary into the file given second. */
#include "support/form_examples.h"

#include <stdio.h>
#include <string.h>

static int write_seeds(const char *folder)
{
    const form_table *table = form_table_get();
    for (int i = 0; i < table->n_forms; i++) {
        char path[4096], body[1024], kernel[2048];
        form_text b = {body, body + sizeof body}, k = {kernel, kernel + sizeof kernel};
        form_put_example(&b, table, &table->forms[i], form_plan_plain);
        form_put_kernel(&k, 0, body);
        snprintf(path, sizeof path, "%s/form_%d.ptx", folder, i);
        FILE *file = fopen(path, "w");
        if (!file || fputs(kernel, file) < 0 || fclose(file))
            return 1;
    }
    return 0;
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
