/* Writes the fuzzer's seed corpus: one example of each row of isa.def, in a folder given as argument. */
#include "ptxvm/front/front.h"

#include <stdio.h>

static void write_mods(FILE *file, const form_table *t, const form *f)
{
    for (int i = 0; i < f->n_mods; i++)
        if (!t->mods[f->first_mod + i].implied)
            fputs(ptx_mod_text((ptx_mod)t->choices[t->mods[f->first_mod + i].first]), file);
}

int main(int argc, char **argv)
{
    const form_table *t = form_table_get();
    for (int i = 0; argc > 1 && i < t->n_forms; i += 8) {
        char path[4096];
        snprintf(path, sizeof path, "%s/forms_%d.ptx", argv[1], i);
        FILE *file = fopen(path, "w");
        if (!file)
            return 1;
        fputs(".global .u32 g[2] = {1, 2};\n.visible .entry k(.param .u64 in)\n{\n.reg .pred p<9>; .reg .b32 "
              "r<9>; .reg .b64 d<9>;\n",
              file);
        for (int k = i; k < i + 8 && k < t->n_forms; k++) {
            fputs(ptx_opcode_name(t->forms[k].op), file);
            write_mods(file, t, &t->forms[k]);
            fputs(" r1, {r2, r3}|p1, [d1 + 4], r4, 1.0, !p2;\n", file);
        }
        fputs("L: ret;\n}\n", file);
        fclose(file);
    }
    return 0;
}
