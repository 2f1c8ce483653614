/* clang-format off */
/* The front end's own header: memory, tokens, names and scopes, instruction forms, and the parser that ties
 * them together.
 *
 * Who does what:
 *   arena.c        memory of a module, freed as a whole
 *   lex.c          text -> tokens, line and column
 *   words.c        the fixed words of PTX: opcodes, modifiers, registers
 *   symbols.c      names, scopes, registers
 *   expr.c         constant expressions
 *   forms.c        isa.def compiled for matching
 *   match.c        an instruction against its forms; messages
 *   operand.c      operands as written
 *   typecheck.c    an operand against what a form expects
 *   expand.c       operands that stand for a computation
 *   rules.c        rules that a form cannot express
 *   module.c       the module and its directives
 *   variable.c     variables, initialiser.c their values
 *   function.c     functions, bodies, labels
 *   call.c         calls and jump tables
 *   debug.c        .file, .loc, .section
 *   limits.c       limits of a module
 *   escape.c       text from PTX, made printable
 *
 * The first error ends the parse: parse_fail fills the pvm_error and jumps back to pvm_module_parse.
 * Everything allocated is in the arena by then, so nothing leaks. */
/* clang-format on */
#ifndef PTXVM_FRONT_H
#define PTXVM_FRONT_H

#include "../module.h"
#include "../ptxvm.h"

#include <setjmp.h>

/* ---- memory ---- */

/* Allocates the arena's chunks; a test can make the k-th allocation fail. Null members: malloc and free. */
typedef struct pvm_allocator {
    void *(*alloc)(void *user, size_t bytes);
    void (*release)(void *user, void *memory);
    void *user;
} pvm_allocator;

typedef struct pvm_arena pvm_arena;
pvm_arena *arena_create(const pvm_allocator *allocator);
void arena_destroy(pvm_arena *arena);
void *arena_alloc(pvm_arena *arena, size_t bytes); /* zeroed, 16-byte aligned; null if there is no memory */

/* limits: as ptxvm_limits_read fills them. */
pvm_module *pvm_module_parse_with(const char *text, size_t length, const pvm_allocator *allocator,
                                  const uint64_t *limits, pvm_error *error);

/* ---- tokens ---- */

typedef enum {
    TOKEN_END,
    TOKEN_NAME,   /* an identifier, including %r1 and _ */
    TOKEN_WORD,   /* .word or .word::word; text without the first dot */
    TOKEN_INT,    /* value, is_unsigned */
    TOKEN_F32,    /* 0fXXXXXXXX: value holds the bits */
    TOKEN_F64,    /* 0dXXXXXXXXXXXXXXXX or decimal: value holds the bits of the double */
    TOKEN_STRING, /* text without the quotes */
    TOKEN_PUNCT   /* punct: one character, or one of the PUNCT_ values */
} token_kind;

enum { PUNCT_SHL = 256, PUNCT_SHR, PUNCT_LE, PUNCT_GE, PUNCT_EQ, PUNCT_NE, PUNCT_AND, PUNCT_OR };

typedef struct token {
    token_kind kind;
    const char *text;
    int length;
    int line, column;
    int punct;
    uint64_t value;
    bool is_unsigned;
} token;

/* ---- names and scopes ---- */

typedef enum {
    SYMBOL_REG,
    SYMBOL_RANGE, /* .reg .b32 %r<100>: the name is the prefix, which may also name something else */
    SYMBOL_VAR,
    SYMBOL_FUNCTION,
    SYMBOL_LABEL,
    SYMBOL_BRANCH_TARGETS,
    SYMBOL_CALL_TARGETS,
    SYMBOL_PROTOTYPE
} symbol_kind;

typedef struct name name;

typedef struct symbol {
    symbol_kind kind;
    name *name;
    int depth;            /* 0: the module, 1: a function, then nested blocks */
    struct symbol *outer; /* what the name means outside */
    struct symbol *next;  /* next symbol of the same scope */
    int line;
    int index;      /* REG: register; LABEL: instruction; RANGE: its number in the function; CALL_TARGETS: in
                       the module */
    pvm_type type;  /* RANGE */
    int vec;        /* REG: elements of a vector register, which are consecutive registers; else 1 */
    uint32_t count; /* RANGE */
    pvm_var *var;
    pvm_function *function;   /* FUNCTION, PROTOTYPE */
    pvm_targets *targets;     /* BRANCH_TARGETS */
    pvm_function **functions; /* CALL_TARGETS */
    int n_functions;
} symbol;

struct name {
    const char *text; /* in the arena, ends with 0 */
    int length;
    uint32_t hash;
    name *next;
    symbol *symbol;          /* its current, innermost meaning */
    symbol *range;           /* its current meaning as the prefix of numbered registers */
    int numbered_scope;      /* this is the prefix of registers declared individually in that scope ... */
    uint32_t numbered_least; /* ... and the smallest of their numbers */
    int cached_reg;          /* of a name in a range: its register, valid until the next declaration */
    int cached_vec;
    uint32_t cached_epoch;
};

/* A branch to a label that may come later: resolved when its scope ends. */
typedef struct fixup {
    name *label;
    uint64_t *bits; /* one of the two */
    int *index;
    int line, column;
    struct fixup *next;
} fixup;

typedef struct scope {
    int serial;
    symbol *symbols;
    fixup *fixups;
    struct scope *outer;
} scope;

/* The registers of one .reg name<count> that are used: (range, number) -> register, in a hash table. */
typedef struct range_use {
    int range;
    uint32_t number;
    int reg;
} range_use;

/* ---- operands as written ---- */

typedef enum {
    RAW_NONE,
    RAW_REG,    /* symbol, component */
    RAW_SREG,   /* index, component */
    RAW_SYMBOL, /* variable or function (or label), plus offset */
    RAW_INT,
    RAW_F32,
    RAW_F64,
    RAW_ADDRESS, /* a base of another kind in `base`, plus offset */
    RAW_VECTOR,  /* elements: first, count */
    RAW_SINK
} raw_kind;

typedef struct raw_operand {
    raw_kind kind;
    raw_kind base;   /* ADDRESS: RAW_REG, RAW_SYMBOL or RAW_INT */
    bool has_offset; /* SYMBOL, REG: written with "+ n" */
    bool
        is_indexed; /* SYMBOL: an array's element, tab[n] or tab[r + n]; value is n, index the register or -1 */
    bool negated;   /* !p */
    bool minus;     /* -a */
    bool paired;    /* the next operand is joined to this one by "|" */
    bool within;    /* VECTOR: in the brackets of the address before */
    int reg;
    int index;
    int vec;        /* elements of a vector register named as a whole */
    symbol *symbol; /* SYMBOL; null for an unknown name, which may be a label */
    name *name;
    int sreg, component;
    uint64_t value;
    const char *selector; /* .b0, .h10 ... as written, without the dot */
    int selector_length;
    int first, count; /* VECTOR: in the parser's pool of elements */
    int line, column;
} raw_operand;

#define MAX_ARGUMENTS 256 /* of a call */
typedef struct argument_list {
    raw_operand items[MAX_ARGUMENTS];
    int n;
} argument_list;

#define MAX_RAW      16
#define MAX_ELEMENTS 272 /* half of them in one vector */
#define MAX_WORDS    24
#define MAX_DEPTH    200 /* of blocks, parentheses and braces */

/* ---- the parser ---- */

typedef struct parser {
    pvm_module *module;
    pvm_arena *arena;
    pvm_error *error;
    jmp_buf failed;
    uint64_t limits[PTXVM_LIMITS];
    uint64_t n_instructions, n_declared, data_bytes; /* totals of the module, for the limits */

    const char *text, *end, *at; /* at: after the current token */
    const char *line_start;
    int line;
    token tok; /* the current token */

    name **names; /* hash table */
    uint32_t n_names, name_slots;
    scope *scope;
    int depth, n_scopes;
    uint32_t epoch; /* counts declarations, see name.cached_reg */
    int nesting;    /* of expressions, initialisers */

    pvm_function *function; /* whose body is being parsed */
    int inst_capacity, reg_capacity, local_capacity;
    int n_ranges;
    range_use *uses;
    uint32_t n_uses, use_slots;
    int loc_file, loc_line;

    int var_capacity, function_capacity;
    uint64_t const_extent;
    bool has_version, has_target, has_address_size;

    /* The instruction being parsed. */
    token opcode;
    pvm_opcode op;
    token words[MAX_WORDS]; /* its modifiers */
    uint16_t word_values[MAX_WORDS];
    int n_words;
    raw_operand raw[MAX_RAW];
    int n_raw;
    raw_operand elements[MAX_ELEMENTS];
    int n_elements;
    raw_operand coordinates;     /* within the brackets of the address that has just been parsed */
    argument_list args, results; /* of a call */
} parser;

/* lex.c */
void next_token(parser *p);
bool at_punct(const parser *p, int punct);
bool at_word(const parser *p, const char *word);
bool at_name(const parser *p, const char *text);
bool accept_punct(parser *p, int punct);
bool accept_word(parser *p, const char *word);
void expect_punct(parser *p, int punct);
bool token_is(const token *tok, const char *text);

/* Errors. parse_fail reports the place of the current token; neither returns. */
_Noreturn void parse_fail(parser *p, int kind, const char *format, ...) __attribute__((format(printf, 3, 4)));
_Noreturn void parse_fail_at(parser *p, int line, int column, int kind, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Ends the parse if `value` exceeds the limit. */
void check_limit(parser *p, ptxvm_limit limit, uint64_t value);

/* Arena memory; ends the parse if there is none. parse_grow doubles an array of *capacity items when it is
 * full. */
void *parse_alloc(parser *p, size_t bytes);
void *parse_grow(parser *p, void *items, int count, int *capacity, size_t item_bytes);
char *parse_text(parser *p, const char *text, int length);

/* words.c */
pvm_opcode opcode_find(const char *text, int length); /* OP_NONE if unknown */
unsigned word_find(const char *text, int length);     /* M_x or M_TYPE(T_x), 0 if unknown */
pvm_type type_find(const char *text, int length);
typedef struct sreg_info {
    const char *name;
    pvm_sreg sreg;
    pvm_type type;
    int components; /* 0, or how many of .x .y .z .w it has */
    int number;     /* of %pm3, %envreg7 */
    int version, sm;
} sreg_info;
const sreg_info *sreg_find(const char *text, int length);
/* The known word nearest to a misspelled one, or null. */
const char *opcode_suggestion(const char *text, int length);
const char *word_suggestion(const char *text, int length);

/* symbols.c */
name *intern(parser *p, const char *text, int length);
void scope_open(parser *p);
void scope_close(parser *p);
symbol *declare(parser *p, symbol_kind kind, name *n, const token *where);
symbol *find_symbol(parser *p, name *n);
int add_register(parser *p, const char *text, pvm_type type, int line);
/* The register that a name in a range refers to; -1 if the name is in no range. */
int range_register(parser *p, name *n, int *vec);
void add_fixup(parser *p, name *label, uint64_t *bits, int *index, int line, int column);

/* expr.c */
typedef struct constant {
    enum { CONSTANT_INT, CONSTANT_F32, CONSTANT_F64 } kind;
    uint64_t value;
    bool is_unsigned;
} constant;
constant parse_constant(parser *p);
uint64_t parse_integer(parser *p); /* a constant expression that must be an integer */
double f64_from_bits(uint64_t bits);
uint64_t bits_from_f64(double value);
uint32_t bits_from_f32(float value);
float f32_from_bits(uint32_t bits);

/* operand.c */
void parse_operands(parser *p);
raw_operand parse_operand(parser *p);

/* forms.c */
enum {
    TAKES_REG = 1 << 0,
    TAKES_IMM = 1 << 1,
    TAKES_SREG = 1 << 2,
    TAKES_SYMBOL = 1 << 3,
    TAKES_SINK = 1 << 4,
    TAKES_NOT = 1 << 5,      /* !p */
    TAKES_MINUS = 1 << 6,    /* -a */
    TAKES_SELECTOR = 1 << 7, /* a.b0 */
    TAKES_WIDER = 1 << 8,    /* a register wider than the type */
    IS_RESULT = 1 << 9,
    IS_OPTIONAL = 1 << 10,
    IS_ADDRESS = 1 << 11,
    IS_LABEL = 1 << 12,
    IS_TARGETS = 1 << 13,
    IS_HINT = 1 << 14,    /* present if .L2::cache_hint is */
    IS_PAIRED = 1 << 15,  /* follows "|" */
    TAKES_BITS = 1 << 16, /* any register of the right size is accepted */
    IS_RANGED = 1 << 17,  /* lo..hi applies to an immediate */
    IS_WITHIN = 1 << 18   /* in the brackets of the address before */
};

enum {
    COUNT_SCALAR = 0,
    COUNT_VEC = -1,    /* as given by S_VEC; other values: that many in braces */
    COUNT_HALF_N = -2, /* half and a quarter of the N of S_SHAPE: accumulators of a warpgroup */
    COUNT_QUARTER_N = -3,
    COUNT_DIM = -4,     /* by .1d to .5d */
    COUNT_FRAGMENT = -5 /* registers of tcgen05.ld and st, by S_SHAPE and S_NUM */
};

enum {
    TYPE_SLOT = 200, /* + slot: the type in that slot */
    TYPE_WIDE = 196, /* twice as wide as S_TYPE */
    TYPE_DOT = 197,  /* dp4a's, dp2a's and sad's result: signed if either is */
    TYPE_HALF = 198
};

typedef struct form_operand {
    uint32_t flags;
    uint8_t type; /* pvm_type or TYPE_x */
    int8_t count;
    uint8_t space_slot; /* ADDRESS: S_SPACE or S_SPACE2 */
    uint8_t space;      /* ADDRESS: a fixed pvm_space, else 0 */
    int16_t lo, hi;
} form_operand;

typedef struct form_mod {
    uint8_t slot;
    uint8_t optional;      /* 0: required; else the number of its {group} in the row */
    bool implied;          /* not written: the slot gets the first choice */
    uint16_t first, count; /* choices */
} form_mod;

typedef struct form {
    pvm_opcode op;
    const char *mods, *operands, *needs; /* as in isa.def */
    uint16_t first_mod, n_mods;
    uint16_t first_operand, n_operands;
    uint8_t min_operands; /* without the optional ones at the end */
    int version;
} form;

typedef struct form_table {
    const form *forms;
    int n_forms;
    const form_mod *mods;
    const form_operand *operands;
    const uint16_t *choices;
    const uint16_t *first_of; /* by opcode: rows first_of[op] .. first_of[op + 1] */
} form_table;

const form_table *form_table_get(void);                  /* created once, shared by all threads */
const char *form_table_problem(void);                    /* an error in isa.def itself, or null */
int target_family(int sm);                               /* the SM that names an SM's family (its f target) */
bool target_meets(pvm_target target, const char *needs); /* "80", "100f 120f", "90a" */

/* expand.c: operands that stand for a short computation become registers, and the computation becomes
 * instructions before the one that has the operand. */
int expand_sum(parser *p, const raw_operand *raw, const pvm_inst *inst);     /* r + n */
int expand_element(parser *p, const raw_operand *raw, const pvm_inst *inst); /* the address of tab[r + n] */
uint64_t element_offset(const raw_operand *raw);                             /* of tab[n], in bytes */

/* match.c, typecheck.c */
void match_instruction(parser *p, pvm_inst *inst);
bool type_fits(pvm_type reg, pvm_type wanted, uint32_t flags);
/* Why an operand does not fit: static text or text written to `why`. Null: it fits. */
const char *operand_misfit(parser *p, const raw_operand *raw, const form_operand *want, const pvm_inst *inst,
                           pvm_type type, char *why, size_t why_size);
void operand_make(parser *p, const raw_operand *raw, const form_operand *want, const pvm_inst *inst,
                  pvm_type type, pvm_operand *out);
void check_rules(parser *p, const pvm_inst *inst); /* rules.c */
pvm_type form_operand_type(const form_operand *want, const pvm_inst *inst);
int form_operand_count(const form_operand *want, const pvm_inst *inst); /* elements in braces; 0: no vector */

/* variable.c */
#define MAX_DIMENSIONS 16

/* An array's shape: strides[i] is the size of one element at that level, the last is that of the elements. */
typedef struct shape {
    uint64_t lengths[MAX_DIMENSIONS], strides[MAX_DIMENSIONS + 1];
    int n;
    bool is_unsized;
} shape;

typedef struct linkage {
    bool is_extern, is_visible, is_weak, is_common;
    uint32_t align; /* ".align 8 .global ..." */
} linkage;
void parse_variables(parser *p, pvm_space space, linkage link);
pvm_var *parse_parameter(parser *p, bool of_entry, name **as);
void parse_initialiser(parser *p, pvm_var *var, shape *s); /* initialiser.c */
uint32_t parse_align(parser *p);
void add_local(parser *p, pvm_var *var);
bool space_find(const token *tok, pvm_space *space);

/* function.c */
void add_instruction(parser *p, const pvm_inst *inst);
void parse_function(parser *p, linkage link);
void parse_body(parser *p);
void parse_parameters(parser *p, pvm_function *f, bool returns, name ***names);

/* call.c */
void parse_call(parser *p, pvm_inst *inst);
void parse_branch_targets(parser *p, name *label, const token *where);
void parse_call_targets(parser *p, name *label, const token *where);
void parse_call_prototype(parser *p, name *label, const token *where);

/* debug.c */
void parse_file(parser *p);
void parse_loc(parser *p);
void parse_section(parser *p);
void parse_pragma(parser *p);
void parse_alias(parser *p);

#endif
