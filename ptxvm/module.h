/* A parsed and checked PTX module: variables, functions, registers, instructions. Created by the parser, and
 * not modified afterwards. All of it lives in the module's arena and is freed with it. */
#ifndef PTXVM_MODULE_H
#define PTXVM_MODULE_H

#include "isa.h"

/* Special registers, by name without the '%'. A component, .x .y .z .w, is 0 to 3 in the operand's bits. */
/* clang-format off */
#define PVM_SREGS(X) \
    X(tid) X(ntid) X(laneid) X(warpid) X(nwarpid) X(ctaid) X(nctaid) X(smid) X(nsmid) X(gridid) X(clusterid) \
    X(nclusterid) X(cluster_ctaid) X(cluster_nctaid) X(cluster_ctarank) X(cluster_nctarank) \
    X(is_explicit_cluster) X(lanemask_eq) X(lanemask_le) X(lanemask_lt) X(lanemask_ge) X(lanemask_gt) \
    X(clock) X(clock_hi) X(clock64) X(globaltimer) X(globaltimer_lo) X(globaltimer_hi) X(pm) X(pm64) \
    X(envreg) X(reserved_smem_offset_begin) X(reserved_smem_offset_end) X(reserved_smem_offset_cap) \
    X(reserved_smem_offset) X(total_smem_size) X(aggr_smem_size) X(dynamic_smem_size) X(current_graph_exec)
/* clang-format on */
/* For pm0..7, pm0_64..pm7_64, envreg0..31 and reserved_smem_offset_0/1 the number is stored there, too. */

typedef enum {
#define X(name) SREG_##name,
    PVM_SREGS(X)
#undef X
        SREG_COUNT
} pvm_sreg;

typedef struct pvm_reg {
    const char *name;
    pvm_type type;
    int line;
} pvm_reg;

/* An address inside an initialiser: the address of a symbol, plus addend, written at offset in `size` bytes
 * (1, 2, 4, 8); shift selects a part of the address (mask(0xFF00) and the like), generic tells whether it is
 * the generic address. */
typedef struct pvm_reloc {
    uint64_t offset;
    int size, shift;
    bool generic;
    struct pvm_var *var;
    struct pvm_function *function;
    int64_t addend;
} pvm_reloc;

typedef struct pvm_var {
    const char *name;
    pvm_space space; /* CONST, GLOBAL, LOCAL, PARAM, SHARED */
    pvm_type type;
    /* 1, 2, 4 (8); a vector parameter in .reg is one parameter per element, and the first of them has the name
     * and this number */
    int vec;
    uint64_t size; /* bytes; 0 for an array of unknown length (extern shared) */
    uint32_t align;
    uint64_t offset; /* PARAM: within its parameter list; LOCAL and in-function SHARED: within the function's
                        block of that space */
    bool is_extern, is_visible, is_weak, is_common, is_managed;
    bool is_array;
    bool is_unsized;     /* [] : dynamic shared memory or an extern array */
    bool is_const_param; /* a kernel's parameter, read only */
    bool is_pointer;     /* a kernel's parameter with .ptr */
    uint8_t *init;       /* size bytes, or null: zero */
    pvm_reloc *relocs;
    int n_relocs;
    int line;
    int index; /* of a module variable: in module->vars; of a parameter: in its list */
} pvm_var;

typedef struct pvm_function {
    const char *name;
    bool is_entry, is_extern, is_visible, is_weak, is_prototype, is_noreturn;
    bool has_body;
    pvm_var **params; /* inputs; a .reg parameter of a function has space REG and its register index in
                         reg_of_param */
    int n_params;
    pvm_var **returns;
    int n_returns;
    int *reg_of_param, *reg_of_return; /* -1 if the parameter is in .param space */
    uint64_t param_bytes;              /* of an entry: size of its parameter block, with natural alignment */
    pvm_reg *regs;                     /* of all scopes together: a name may occur twice */
    int n_regs;
    pvm_var **locals; /* LOCAL, SHARED, and .param variables declared inside the body (offset within their
                         space's block) */
    int n_locals;
    uint64_t local_bytes, shared_bytes, call_param_bytes; /* extents of the offsets above */
    pvm_inst *insts;
    int n_insts;
    int n_target_lists;         /* .branchtargets */
    int reqntid[3], maxntid[3]; /* 0 where absent */
    int maxnreg, minnctapersm, maxnctapersm;
    int reqnctapercluster[3];
    bool explicit_cluster, blocks_are_clusters;
    int maxclusterrank;
    int line;
    int index; /* in module->functions */
} pvm_function;

/* A target as written: sm_90a is {90, 'a'}; the suffix is 0, 'a' or 'f'. */
typedef struct pvm_target {
    int sm;
    char suffix;
} pvm_target;

typedef struct pvm_module {
    int version; /* 10 * major + minor */
    pvm_target target;
    int address_bits;
    bool has_debug;
    pvm_var **vars; /* module scope: GLOBAL, CONST, SHARED */
    int n_vars;
    pvm_function **functions; /* entries, functions and extern functions */
    int n_functions;
    int n_call_lists;   /* .calltargets */
    const char **files; /* of .file, by number; null if there is none */
    int n_files;
    const char *text; /* the source, kept for messages and listings */
    size_t text_length;
    struct pvm_arena *arena;
} pvm_module;

typedef struct pvm_error {
    enum {
        PVM_OK,
        PVM_ERROR_SYNTAX,              /* the text is not PTX, or not well typed */
        PVM_ERROR_UNSUPPORTED_VERSION, /* .version is later than ptxvm supports */
        PVM_ERROR_UNSUPPORTED,         /* valid PTX that ptxvm does not support (wgmma, textures ...) */
        PVM_ERROR_TARGET,              /* requires another SM or a later .version */
        PVM_ERROR_MEMORY
    } kind;
    int line, column;
    char message[512]; /* what is wrong, then the line itself with a caret: "12:5: ...\n  add.f32 %f1, %r2;\n
                          ^" */
} pvm_error;

/* Parses and checks text as ptxas would for its own .target, within the limits set by the environment
 * (ptxvm_limits_read). Returns null, with *error filled, if it is not valid. */
pvm_module *pvm_module_parse(const char *text, size_t length, pvm_error *error);
void pvm_module_free(pvm_module *module);

/* Whether a call of one function may reach the other: compares sizes, spaces and types of all parameters and
 * results. */
bool pvm_same_signature(const pvm_function *a, const pvm_function *b);

/* Whether PTX for `target` may run on `device` (an SM with its suffix: 90a has all of 90 and the a
 * features). */
bool pvm_target_runs_on(pvm_target target, pvm_target device);
bool pvm_target_from_name(const char *name, pvm_target *target); /* "sm_90a", "90a" */

/* ---- escape.c: text from PTX, for terminals, logs and JSON ---- */
/* The length of the printable UTF-8 character at the start of `text`; 0: there is none. */
int pvm_printable(const char *text, size_t length);
/* Copies the text with all other bytes written as \xHH, truncated to `size`; returns its length. */
size_t pvm_escape(char *to, size_t size, const char *text, size_t length);
/* In place: bytes that are not printable, except line ends and tabs, become '?'. */
void pvm_make_printable(char *text);

#endif
