/* Inside the builder: its state, and what its files share. */
#ifndef PTXGEN_INTERNAL_H
#define PTXGEN_INTERNAL_H

#include "ptxgen/isa.h"

/* A growing piece of text. */
typedef struct ptx_text {
    char *data;
    size_t size, capacity;
} ptx_text;

/* Registers come in classes by width; their letters in the text. */
typedef enum reg_class { CLASS_PRED, CLASS_8, CLASS_16, CLASS_32, CLASS_64, CLASS_COUNT } reg_class;

typedef enum frame_kind { FRAME_KERNEL, FRAME_IF, FRAME_ELSE, FRAME_FOR, FRAME_LOOP } frame_kind;

/* An open if, else or loop: a scope, in which values live. */
typedef struct ptx_frame {
    frame_kind kind;
    uint64_t scope;
    bool uniform;
    uint32_t again, next, end; /* labels: start of a loop, its next turn, behind it all; 0: none */
    ptx_val var, step;         /* of a for */
    const char *file;
    int line;
} ptx_frame;

enum { MAX_DEPTH = 64, MAX_OPERANDS = 32, MAX_INSTRUCTION = 1024, MAX_NAME = 128 };

struct ptx_builder {
    const ptx_sm *sm;
    ptx_options options;
    int version; /* the lowest .version so far, times ten */
    /* The module: its tables, finished kernels; of the kernel at hand: parameters, directives, variables,
     * instructions. */
    ptx_text tables, kernels, params, directives, variables, body;
    ptx_text names,
        module_names; /* what the kernel and the module have declared, each name between newlines */
    ptx_text labels;  /* a byte each: placed or not */
    char kernel[MAX_NAME + 1];
    bool in_kernel, has_dynamic;
    ptx_info info; /* the kernel's, but for what is above */
    uint32_t registers[CLASS_COUNT];
    uint32_t kernel_start_label;
    uint64_t scopes;
    ptx_frame frames[MAX_DEPTH];
    int depth;
    /* What the next instruction takes with it. */
    ptx_val guard, into;
    bool guard_not, uniform;
    /* The place, for errors. */
    const char *file, *doing;
    int line;
    unsigned instructions;
    bool failed;
    ptx_error error;
};

/* text.c: room for n more bytes, or null (the builder has failed). */
char *text_room(ptx_builder *b, ptx_text *text, size_t n);
void text_add(ptx_builder *b, ptx_text *text, const char *s);
void text_add_text(ptx_builder *b, ptx_text *text, const ptx_text *more);
void text_add_number(ptx_builder *b, ptx_text *text, uint64_t x);
void text_free(ptx_builder *b, ptx_text *text);
/* These write at `at`, which has the room, and return the end. */
static inline char *put_string(char *at, const char *s) /* short ones: a loop beats memcpy */
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
/* Whether there is a kernel to write into; `doing` names the call in errors. */
bool builder_ready(ptx_builder *b, const char *doing);
/* A new name, in b->names or b->module_names; false (and the error) if it is none or is taken. */
bool builder_declare(ptx_builder *b, ptx_text *names, const char *name);
ptx_val builder_register(ptx_builder *b, ptx_type type);
uint64_t builder_scope(const ptx_builder *b);
bool builder_usable(ptx_builder *b, ptx_val x); /* a value that is defined here; sets the error */

/* emit.c: one instruction by its row of isa.def. */
typedef struct ptx_instruction {
    isa_id id;
    ptx_type t0, t1;
    const char *modifier;   /* for the ? of the row's text */
    const char *name;       /* for errors; null: the row's id */
    isa_need_id need;       /* beyond the row's; NEED_BASE otherwise */
    bool shared;            /* the address is in shared memory */
    const ptx_val *in;      /* operands; an address is two: base and offset */
    ptx_val *out;           /* results, as many as the shape has */
    const uint8_t *counts;  /* lengths of the vectors, in order */
    const ptx_val *targets; /* variables to write instead of new registers, as many as the results */
} ptx_instruction;

void emit(ptx_builder *b, const ptx_instruction *i);
/* The usual kind: one result. */
ptx_val emit_op(ptx_builder *b, isa_id id, ptx_type t0, ptx_type t1, const char *modifier, const ptx_val *in);
void emit_void(ptx_builder *b, isa_id id, ptx_type t0, const char *modifier, const ptx_val *in);
#define EMIT(b, id, t0, ...)      emit_op(b, ISA_##id, t0, PTX_NOTYPE, NULL, (const ptx_val[]){__VA_ARGS__})
#define EMIT_VOID(b, id, t0, ...) emit_void(b, ISA_##id, t0, NULL, (const ptx_val[]){__VA_ARGS__})
/* The type of an instruction's operands: that of the first which has one; sets the error. */
ptx_type emit_common(ptx_builder *b, const char *doing, const ptx_val *x, int n);
/* numbers.c: a number given the type, or the value itself; sets the error if it is not exact in it. */
ptx_val emit_number(ptx_builder *b, ptx_type type, ptx_val x);
char *emit_put_number(char *at, ptx_val x);
char *emit_put_signed(char *at, int64_t x);

/* The value in a register, whatever it was. */
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

/* Defines ptx_NAME: the instruction of that name, its form chosen by the type that the operands share. */
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
