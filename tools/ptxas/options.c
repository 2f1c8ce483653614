/* ptxas's command line: "--gpu-name sm_80", "--gpu-name=sm_80", "-arch sm_80", "-arch=sm_80", "-O3", "-m64". */
#include "tools/ptxas/ptxas.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "ptxvm/module.h"

int ptxas_fatal(const char *format, ...)
{
    char raw[4096], text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(raw, sizeof raw, format, args);
    va_end(args);
    pvm_escape(text, sizeof text, raw, strlen(raw));
    fprintf(stderr, "ptxas fatal   : %s\n", text);
    return PTXAS_FAILED;
}

enum { IGNORED = 1 << 16, UNSUPPORTED }; /* instead of a field */

typedef struct option {
    const char *name, *brief; /* without their dashes; null: none */
    bool takes_value;
    size_t field; /* a bool, or with a value a const char * */
} option;

#define FIELD(name) offsetof(ptxas_options, name)

/* Options that only affect machine code have no meaning here: ptxvm runs the PTX as written. */
/* clang-format off */
static const option table[] = {
    {"gpu-name", "arch", true, FIELD(arch)},
    {"output-file", "o", true, FIELD(output)},
    {"input-as-string", "ias", true, FIELD(input)},
    {"verbose", "v", false, FIELD(verbose)},
    {"compile-only", "c", false, FIELD(compile_only)},
    {"disable-warnings", "w", false, FIELD(no_warnings)},
    {"warning-as-error", "Werror", false, FIELD(warnings_are_errors)},
    {"help", "h", false, FIELD(help)},
    {"version", "V", false, FIELD(version)},
    {"list-version", "version-ls", false, FIELD(list_versions)},
    {"options-file", "optf", true, UNSUPPORTED},
    {"Ofast-compile", "Ofc", true, IGNORED},
    {"allow-expensive-optimizations", "allow-expensive-optimizations", true, IGNORED},
    {"compile-as-tools-patch", "astoolspatch", false, IGNORED},
    {"compiler-annotations", "annotate", false, IGNORED},
    {"def-load-cache", "dlcm", true, IGNORED},
    {"def-store-cache", "dscm", true, IGNORED},
    {"device-debug", "g", false, IGNORED},
    {"device-function-maxrregcount", "func-maxrregcount", true, IGNORED},
    {"device-stack-protector", "device-stack-protector", true, IGNORED},
    {"disable-optimizer-constants", "disable-optimizer-consts", false, IGNORED},
    {"dont-merge-basicblocks", "no-bb-merge", false, IGNORED},
    {"entry", "e", true, IGNORED},
    {"extensible-whole-program", "ewp", false, IGNORED},
    {"fmad", "fmad", true, IGNORED},
    {"force-load-cache", "flcm", true, IGNORED},
    {"force-store-cache", "fscm", true, IGNORED},
    {"g-tensor-memory-access-check", "g-tmem-access-check", false, IGNORED},
    {"generate-line-info", "lineinfo", false, IGNORED},
    {"gno-tensor-memory-access-check", "gno-tmem-access-check", false, IGNORED},
    {"legacy-bar-warp-wide-behavior", "legacy-bar-warp-wide-behavior", false, IGNORED},
    {"machine", "m", true, IGNORED},
    {"make-errors-visible-at-exit", "make-errors-visible-at-exit", false, IGNORED},
    {"maxntid", "maxntid", true, IGNORED},
    {"maxrregcount", "maxrregcount", true, IGNORED},
    {"minnctapersm", "minnctapersm", true, IGNORED},
    {"opt-level", "O", true, IGNORED},
    {"optimize-float-atomics", "opt-fp-atomics", false, IGNORED},
    {"override-directive-values", "override-directive-values", false, IGNORED},
    {"position-independent-code", "pic", true, IGNORED},
    {"preserve-relocs", "preserve-relocs", false, IGNORED},
    {"regAllocOptLevel", NULL, true, IGNORED}, /* not in ptxas's help; Triton uses it */
    {"register-usage-level", "regUsageLevel", true, IGNORED},
    {"return-at-end", "ret-end", false, IGNORED},
    {"sanitize", "sanitize", true, IGNORED},
    {"sp-bounds-check", "sp-bounds-check", false, IGNORED},
    {"split-compile", "split-compile", true, IGNORED},
    {"suppress-async-bulk-multicast-advisory-warning", "suppress-async-bulk-multicast-advisory-warning", false, IGNORED},
    {"suppress-debug-info", "suppress-debug-info", false, IGNORED},
    {"suppress-double-demote-warning", "suppress-double-demote-warning", false, IGNORED},
    {"suppress-sparse-mma-advisory-info", "suppress-sparse-mma-advisory-info", false, IGNORED},
    {"suppress-stack-size-warning", "suppress-stack-size-warning", false, IGNORED},
    {"warn-on-double-precision-use", "warn-double-usage", false, IGNORED},
    {"warn-on-local-memory-usage", "warn-lmem-usage", false, IGNORED},
    {"warn-on-spills", "warn-spills", false, IGNORED},
};
/* clang-format on */
enum { N_OPTIONS = sizeof table / sizeof *table };

static bool is_name(const char *name, const char *text, size_t length)
{
    return name && strlen(name) == length && memcmp(name, text, length) == 0;
}

/* "-O3" and "-m64" have their value attached without a '='. */
static const option *find_attached(const char *text, const char **value)
{
    for (int i = 0; i < N_OPTIONS; i++) {
        const char *brief = table[i].brief;
        if (brief && (*brief == 'O' || *brief == 'm') && !brief[1] && text[0] == *brief && text[1] >= '0' &&
            text[1] <= '9') {
            *value = text + 1;
            return &table[i];
        }
    }
    return NULL;
}

static const option *find_option(const char *argument, const char **value)
{
    bool is_long = argument[1] == '-';
    const char *text = argument + 1 + is_long, *equals = strchr(text, '=');
    size_t length = equals ? (size_t)(equals - text) : strlen(text);
    *value = equals ? equals + 1 : NULL;
    for (int i = 0; i < N_OPTIONS; i++)
        if (is_name(table[i].name, text, length) || (!is_long && is_name(table[i].brief, text, length)))
            return &table[i];
    return is_long ? NULL : find_attached(text, value);
}

static int store(ptxas_options *o, const option *option, const char *value)
{
    if (option->field == UNSUPPORTED)
        return ptxas_fatal("ptxvm-ptxas does not read options from a file (--%s)", option->name);
    if (option->field == IGNORED)
        return PTXAS_OK;
    if (option->takes_value)
        memcpy((char *)o + option->field, &value, sizeof value);
    else
        *(bool *)((char *)o + option->field) = true;
    o->input_is_text |= option->field == FIELD(input);
    return PTXAS_OK;
}

static int parse_one(ptxas_options *o, int left, char **argv, int *used)
{
    const char *value;
    const option *option = find_option(argv[0], &value);
    if (!option) { /* ptxas has options that its help does not list */
        char text[1024];
        pvm_escape(text, sizeof text, argv[0], strlen(argv[0]));
        fprintf(stderr, "ptxas warning : ptxvm-ptxas ignores the option '%s', which it does not know\n",
                text);
        return PTXAS_OK;
    }
    if (option->takes_value && !value) {
        value = left > 1 ? argv[1] : NULL;
        *used = 2;
    }
    if (option->takes_value && !value)
        return ptxas_fatal("'--%s' expects a value", option->name);
    return store(o, option, value);
}

int ptxas_parse(ptxas_options *o, int argc, char **argv)
{
    *o = (ptxas_options){.arch = "sm_75", .output = "elf.o"};
    int status = PTXAS_OK;
    for (int i = 1, used; i < argc && status == PTXAS_OK; i += used) {
        used = 1;
        if (argv[i][0] == '-' && argv[i][1])
            status = parse_one(o, argc - i, argv + i, &used);
        else if (o->input)
            status =
                ptxas_fatal("ptxvm-ptxas takes one PTX file at a time: '%s' and '%s'", o->input, argv[i]);
        else
            o->input = argv[i];
    }
    return status;
}

void ptxas_print_help(void)
{
    puts("ptxvm-ptxas checks a PTX file as ptxvm reads it, and writes it as the \"cubin\" that ptxvm's "
         "libcuda.so.1 loads.\n"
         "It stands in for ptxas: TRITON_PTXAS_PATH=ptxvm-ptxas for Triton, or a link named ptxas beside "
         "nvcc.\n"
         "\n"
         "Usage  : ptxvm-ptxas [options] <ptx file>\n"
         "\n"
         "  -arch, --gpu-name NAME      the GPU (sm_75 unless told otherwise); compute_XX checks and writes "
         "nothing\n"
         "  -o, --output-file FILE      elf.o unless told otherwise\n"
         "  -v, --verbose               what each kernel uses\n"
         "  -c, --compile-only          names that are not defined here are for the linker\n"
         "  -w, --disable-warnings      -Werror, --warning-as-error\n"
         "  -V, --version               --list-version\n"
         "\n"
         "ptxas's other options are taken and have no meaning here:");
    for (int i = 0; i < N_OPTIONS; i++)
        if (table[i].field == IGNORED)
            printf("  --%s%s\n", table[i].name, table[i].takes_value ? " VALUE" : "");
}
