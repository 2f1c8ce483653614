/* Writes the fuzzer's seed corpus, a kernel for each row of isa.def, into the folder given as argument. */
#include "support/form_examples.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    const form_table *table = form_table_get();
    for (int i = 0; argc > 1 && i < table->n_forms; i++) {
        char path[4096], body[1024], kernel[2048];
        form_text b = {body, body + sizeof body}, k = {kernel, kernel + sizeof kernel};
        form_put_example(&b, table, &table->forms[i], form_plan_plain);
        form_put_kernel(&k, 0, body);
        snprintf(path, sizeof path, "%s/form_%d.ptx", argv[1], i);
        FILE *file = fopen(path, "w");
        if (!file || fputs(kernel, file) < 0 || fclose(file))
            return 1;
    }
    return 0;
}
