/* Internal to the builder: its state, and functions shared by its files. */
#ifndef PTXGEN_INTERNAL_H
#define PTXGEN_INTERNAL_H

#include "ptxgen/isa.h"

/* A growing piece of text. */
typedef struct ptx_text {
    char *data;
    size_t size, capacity;
} ptx_text;

/* Registers are classed by width, each with its letter in the text. */
typedef enum reg_class { CLASS_PRED, CLASS_8, CLASS_16, CLASS_32, CLASS_64, CLASS_COUNT } reg_class;

typedef enum frame_kind { FRAME_KERNEL, FRAME_IF, FRAME_ELSE, FRAME_FOR, FRAME_LOOP } frame_kind;

/* An open if, else or loop: a scope in which values are valid. */
typedef struct ptx_frame {
    frame_kind kind;
    uint64_t scope;
    bool uniform;
    uint32_t again, next, end; /* labels: start of a loop, next iteration, end; 0: none */
    ptx_val var, step;         /* of a for */
    const char *file;
    int line;
} ptx_frame;

enum { MAX_DEPTH = 64, MAX_OPERANDS = 32, MAX_INSTRUCTION = 1024, MAX_NAME = 128 };

struct ptx_builder {
    const ptx_sm *sm;
    ptx_options options;
    int version; /* the lowest .version needed so far, times ten */
    /* The module: its tables and finished kernels; the current kernel: parameters, directives, variables,
     * instructions. */
    ptx_text tables, kernels, params, directives, variables, body;
    ptx_text names, module_names; /* names declared by the kernel and by the module, each between newlines */
    ptx_text labels;              /* one byte each: placed or not */
    char kernel[MAX_NAME + 1];
    bool in_kernel, has_dynamic;
    bool coherent; /* ptx_coherent */
    ptx_info info;  /* of the kernel, except for the members above */
    uint32_t registers[CLASS_COUNT];
    uint32_t kernel_start_label;
    uint64_t scopes;
    ptx_frame frames[MAX_DEPTH];
    int depth;
    /* Modifiers of the next instruction. */
    ptx_val guard, into;
    bool guard_not, uniform, rolled;
    /* The place of the current call, for errors. */
    const char *file, *doing;
    int line;
    unsigned instructions;
    bool failed;
    ptx_error error;
};

/* text.c: reserves n more bytes; null if there is no memory (the builder has then failed). */
char *text_room(ptx_builder *b, ptx_text *text, size_t n);
void text_add(ptx_builder *b, ptx_text *text, const char *s);
void text_add_text(ptx_builder *b, ptx_text *text, const ptx_text *more);
void text_add_number(ptx_builder *b, ptx_text *text, uint64_t x);
void text_free(ptx_builder *b, ptx_text *text);
/* These write at `at`, where there is enough room, and return the end. */
static inline char *put_string(char *at, const char *s) /* for short ones a loop is faster than memcpy */
{
    while (*s)
        *at++ = *s++;
    return at;
}
char *put_decimal(char *at, uint64_t x);
char *put_hex(char *at, uint64_t x, int digits);

/* builder.c */
void *builder_resize(const ptx_options *options, void *memory, size_t size);
void builder_no_memory(ptx_builder *b);
/* Whether a kernel is open; `doing` names the call in errors. */
bool builder_ready(ptx_builder *b, const char *doing);
/* Declares a name in b->names or b->module_names; returns false, with the error set, if it is invalid or
 * taken. */
bool builder_declare(ptx_builder *b, ptx_text *names, const char *name);
ptx_val builder_register(ptx_builder *b, ptx_type type);
uint64_t builder_scope(const ptx_builder *b);
bool builder_usable(ptx_builder *b, ptx_val x); /* whether it is valid in this scope; else sets the error */

/* emit.c: one instruction by its row of isa.def. */
typedef struct ptx_instruction {
    isa_id id;
    ptx_type t0, t1;
    const char *modifier;   /* for the ? of the row's text */
    const char *name;       /* for errors; null: the row's id */
    isa_need_id need;       /* in addition to the row's; else NEED_BASE */
    bool shared;            /* the address is in shared memory */
    const ptx_val *in;      /* operands; an address takes two: base and offset */
    ptx_val *out;           /* results, as many as in the shape */
    const uint8_t *counts;  /* lengths of the vectors, in order */
    const ptx_val *targets; /* variables to write to instead of new registers, one per result */
} ptx_instruction;

void emit(ptx_builder *b, const ptx_instruction *i);
/* The common case: one result. */
ptx_val emit_op(ptx_builder *b, isa_id id, ptx_type t0, ptx_type t1, const char *modifier, const ptx_val *in);
void emit_void(ptx_builder *b, isa_id id, ptx_type t0, const char *modifier, const ptx_val *in);
#define EMIT(b, id, t0, ...)      emit_op(b, ISA_##id, t0, PTX_NOTYPE, NULL, (const ptx_val[]){__VA_ARGS__})
#define EMIT_VOID(b, id, t0, ...) emit_void(b, ISA_##id, t0, NULL, (const ptx_val[]){__VA_ARGS__})
/* The common type of an instruction's operands: that of the first one that has a type; sets the error. */
ptx_type emit_common(ptx_builder *b, const char *doing, const ptx_val *x, int n);
/* numbers.c: converts a number to the type, or returns the value itself; sets the error if the number is not
 * exact. */
ptx_val emit_number(ptx_builder *b, ptx_type type, ptx_val x);
char *emit_put_number(char *at, ptx_val x);
char *emit_put_signed(char *at, int64_t x);

/* The value in a register, whatever its kind. */
ptx_val emit_in_register(ptx_builder *b, ptx_val x);
/* Writes "@%p1 " if a guard is set. */
char *emit_guard(ptx_builder *b, char *at);
char *emit_register(char *at, ptx_val x);
static inline reg_class emit_class(ptx_type type)
{
    int bits = isa_type_bits(type);
    return bits == 32   ? CLASS_32
           : bits == 64 ? CLASS_64
           : bits == 16 ? CLASS_16
           : bits == 8  ? CLASS_8
           : bits == 1  ? CLASS_PRED
                        : CLASS_64;
}
const char *emit_class_letter(reg_class c);
ptx_type emit_widened(ptx_type type);
bool emit_need(ptx_builder *b, isa_need_id need, const char *what);

/* info.c: what the kernel has declared. */
void info_param(ptx_builder *b, ptx_type type, unsigned align, const char *name);
void info_shared(ptx_builder *b, uint64_t bytes, unsigned align);

/* control.c */
void control_open_kernel(ptx_builder *b);
void control_check_closed(ptx_builder *b);

/* Defines ptx_NAME: the instruction of that name, in the form for the common type of the operands. */
#define BINARY(name)                                                                                         \
    ptx_val ptx_##name(ptx_builder *b, ptx_val x, ptx_val y)                                                 \
    {                                                                                                        \
        return EMIT(b, name, emit_common(b, #name, (const ptx_val[]){x, y}, 2), x, y);                       \
    }
#define UNARY(name)                                                                                          \
    ptx_val ptx_##name(ptx_builder *b, ptx_val x)                                                            \
    {                                                                                                        \
        return EMIT(b, name, emit_common(b, #name, &x, 1), x);                                               \
    }

#endif
