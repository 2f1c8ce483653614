/* The functions that nvcc's headers leave to the system: vprintf, malloc, free, __assertfail. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "ops_common.h"

/* Argument `index` of a call: an address in local memory, or a register. False: fault. */
static bool argument(vm_warp *warp, const vm_op *op, int lane, int index, int bytes, uint64_t *value)
{
    const vm_operand *operand = &op->operand[op->n_results + index];
    *value = 0;
    if (!operand->is_address) {
        *value = ops_operand(warp, operand, lane);
        return true;
    }
    uint64_t address[WARP];
    vm_addresses(warp, operand, 1u << lane, address);
    const uint8_t *host =
        vm_translate_lane(warp, op, lane, operand->space, address[lane], (uint64_t)bytes, 1, VM_LOAD);
    if (host)
        memcpy(value, host, (size_t)bytes);
    return host;
}

static bool return_value(vm_warp *warp, const vm_op *op, int lane, int bytes, uint64_t value)
{
    if (op->n_results == 0)
        return true;
    const vm_operand *operand = &op->operand[0];
    if (!operand->is_address) {
        ops_result(warp, operand, lane, value);
        return true;
    }
    uint64_t address[WARP];
    vm_addresses(warp, operand, 1u << lane, address);
    uint8_t *host =
        vm_translate_lane(warp, op, lane, operand->space, address[lane], (uint64_t)bytes, 1, VM_STORE);
    if (host)
        memcpy(host, &value, (size_t)bytes);
    return host;
}

/* ---- text ---- */

typedef struct text {
    char *bytes;
    size_t length, capacity;
    bool failed;
} text;

static void append(text *t, const char *bytes, size_t length)
{
    if (t->length + length + 1 > t->capacity) {
        size_t capacity = 2 * (t->length + length) + 64;
        char *grown = realloc(t->bytes, capacity);
        if (!grown) {
            t->failed = true;
            return;
        }
        t->bytes = grown;
        t->capacity = capacity;
    }
    memcpy(t->bytes + t->length, bytes, length);
    t->length += length;
    t->bytes[t->length] = 0;
}

/* A string in guest memory, up to its zero. Returns false after a fault. */
static bool append_guest_string(vm_warp *warp, const vm_op *op, int lane, uint64_t address, uint64_t limit,
                                text *t)
{
    for (uint64_t i = 0; i < limit; i++) {
        const uint8_t *host = vm_translate_lane(warp, op, lane, SPACE_NONE, address + i, 1, 1, VM_LOAD);
        if (!host)
            return false;
        char c = (char)VM_LOAD_RELAXED(8, host);
        if (!c)
            break;
        append(t, &c, 1);
    }
    return true;
}

/* ---- vprintf ---- */

/* One conversion of a format, with width and precision resolved. */
typedef struct conversion {
    char flags[8];
    int64_t width, precision; /* -1: none; never more than a launch may print */
    bool is_long;             /* 64 bits: l ll j z t */
    int shorten;              /* 1: h, 2: hh */
    char type;
} conversion;

/* The arguments as packed by nvcc: 4 bytes for an int, 8 (at a multiple of 8) for a double, a long or a
 * pointer. */
typedef struct packed_arguments {
    vm_warp *warp;
    const vm_op *op;
    int lane;
    uint64_t base, offset;
    int count;
    bool fault;
    int64_t limit; /* for widths and precisions */
} packed_arguments;

static uint64_t next_argument(packed_arguments *args, uint64_t bytes)
{
    uint64_t value = 0;
    args->offset = (args->offset + bytes - 1) & ~(bytes - 1);
    const uint8_t *host = vm_translate_lane(args->warp, args->op, args->lane, SPACE_NONE,
                                            args->base + args->offset, bytes, 1, VM_LOAD);
    if (host)
        vm_copy_relaxed((uint8_t *)&value, host, bytes);
    args->fault |= !host;
    args->offset += bytes;
    args->count++;
    return value;
}

/* A width or precision: digits, or '*' for an argument. One beyond the limit of a launch's output becomes the
 * limit plus one, and so ends the launch when it is printed. */
static int64_t read_number(const char **format, packed_arguments *args)
{
    int64_t number = 0, most = args->limit + 1;
    if (**format == '*') {
        ++*format;
        number = (int32_t)(uint32_t)next_argument(args, 4);
    } else
        for (; **format >= '0' && **format <= '9'; ++*format)
            number = number < most ? 10 * number + (**format - '0') : number;
    return number > most ? most : number < -most ? -most : number;
}

static void read_length(const char **format, conversion *c)
{
    for (; **format && strchr("hlLjztq", **format); ++*format) {
        c->shorten += **format == 'h';
        c->is_long |= **format != 'h';
    }
}

/* Reads what follows a '%'. */
static conversion read_conversion(const char **format, packed_arguments *args)
{
    conversion c = {.width = -1, .precision = -1};
    size_t flags = 0;
    for (; **format && strchr("-+ #0", **format); ++*format)
        if (flags < sizeof c.flags - 1 && !strchr(c.flags, **format))
            c.flags[flags++] = **format;
    bool has_width = **format == '*' || (**format >= '1' && **format <= '9');
    if (has_width)
        c.width = read_number(format, args);
    if (c.width < 0 && has_width) { /* a negative width is a flag and a width */
        c.flags[flags++] = '-';
        c.width = -c.width;
    }
    if (**format == '.') {
        ++*format;
        c.precision = read_number(format, args);
    }
    read_length(format, &c);
    if (**format)
        c.type = *(*format)++;
    return c;
}

/* The conversion as a C format: "%<flags><width>.<precision><length><type>". */
static void spell(const conversion *c, const char *length, char out[64])
{
    char width[16] = "", precision[16] = "";
    if (c->width >= 0)
        snprintf(width, sizeof width, "%d", (int)c->width);
    if (c->precision >= 0)
        snprintf(precision, sizeof precision, ".%d", (int)c->precision);
    snprintf(out, 64, "%%%s%s%s%s%c", c->flags, width, precision, length, c->type);
}

__attribute__((format(printf, 2, 3))) static void append_format(text *t, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int length = vsnprintf(NULL, 0, format, list);
    char *bytes = length >= 0 ? malloc((size_t)length + 1) : NULL;
    if (bytes) {
        vsnprintf(bytes, (size_t)length + 1, format, again);
        append(t, bytes, (size_t)length);
    } else {
        t->failed = true;
    }
    free(bytes);
    va_end(again);
    va_end(list);
}

/* The formats are built here, letter by letter, to match the argument. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

static void append_integer(text *t, const conversion *c, packed_arguments *args)
{
    char format[64];
    uint64_t value = next_argument(args, c->is_long ? 8 : 4);
    bool is_signed = c->type == 'd' || c->type == 'i';
    int bits = c->is_long ? 64 : c->shorten == 0 ? 32 : c->shorten == 1 ? 16 : 8;
    if (is_signed)
        value = (uint64_t)((int64_t)(value << (64 - bits)) >> (64 - bits));
    else
        value = value << (64 - bits) >> (64 - bits);
    spell(c, "ll", format);
    if (is_signed)
        append_format(t, format, (long long)value);
    else
        append_format(t, format, (unsigned long long)value);
}

static void append_double(text *t, const conversion *c, packed_arguments *args)
{
    char format[64];
    uint64_t bits = next_argument(args, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    spell(c, "", format);
    append_format(t, format, value);
}

static void append_string(text *t, const conversion *c, packed_arguments *args)
{
    char format[64];
    text string = {0};
    uint64_t address = next_argument(args, 8),
             limit = (uint64_t)(c->precision >= 0 ? c->precision : args->limit + 1);
    if (address == 0)
        append(&string, "(null)", 6);
    else
        args->fault |= !append_guest_string(args->warp, args->op, args->lane, address, limit, &string);
    spell(c, "", format);
    append_format(t, format, string.bytes ? string.bytes : "");
    free(string.bytes);
}

static void append_character(text *t, const conversion *c, packed_arguments *args)
{
    char format[64];
    uint32_t value = (uint32_t)next_argument(args, 4);
    spell(c, "", format);
    append_format(t, format, (int)value);
}
#pragma GCC diagnostic pop

static void append_conversion(text *t, const conversion *c, packed_arguments *args)
{
    if (c->type && strchr("diuoxX", c->type))
        append_integer(t, c, args);
    else if (c->type && strchr("fFeEgGaA", c->type))
        append_double(t, c, args);
    else if (c->type == 's')
        append_string(t, c, args);
    else if (c->type == 'c')
        append_character(t, c, args);
    else if (c->type == 'p')
        append_format(t, "0x%llx", (unsigned long long)next_argument(args, 8));
    else if (c->type == '%')
        append(t, "%", 1);
    else if (c->type == 'n') /* not supported on a GPU: its pointer is skipped */
        next_argument(args, 8);
    else if (c->type)
        append(t, &c->type, 1);
}

static bool print_lane(vm_warp *warp, const vm_op *op, int lane)
{
    uint64_t format_address, arguments;
    if (!argument(warp, op, lane, 0, 8, &format_address) || !argument(warp, op, lane, 1, 8, &arguments))
        return false;
    text format = {0}, out = {0};
    uint64_t limit = warp->block->launch->vm->config.limits[PTXVM_LIMIT_PRINTF];
    packed_arguments args = {warp, op, lane, arguments, 0, 0, false, (int64_t)limit};
    bool ok = append_guest_string(warp, op, lane, format_address, limit + 1, &format);
    const char *at = ok && format.bytes ? format.bytes : "";
    while (*at && out.length <= limit) {
        size_t plain = strcspn(at, "%");
        append(&out, at, plain);
        at += plain;
        if (*at == '%') {
            at++;
            conversion c = read_conversion(&at, &args);
            append_conversion(&out, &c, &args);
        }
    }
    if (out.length)
        ok &= vm_print(warp->block, out.bytes, out.length);
    if (out.failed || format.failed)
        ok = vm_fault(warp, op, lane, PTXVM_ERROR_MEMORY, "no memory left to print") != VM_FAULT;
    free(format.bytes);
    free(out.bytes);
    return ok && !args.fault && return_value(warp, op, lane, 4, (uint32_t)args.count);
}

static vm_result exec_vprintf(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    VM_EACH_LANE(lane, mask)
    if (!print_lane(warp, op, (int)lane))
        return VM_FAULT;
    return VM_NEXT;
}

/* ---- malloc, free ---- */

static vm_result exec_malloc(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    VM_EACH_LANE(lane, mask)
    {
        uint64_t bytes, address = 0;
        if (!argument(warp, op, (int)lane, 0, 8, &bytes))
            return VM_FAULT;
        if (vm_memory_alloc(warp->block->launch->vm->memory, bytes, 1, VM_ALLOC_HEAP, &address) != PTXVM_OK)
            address = 0;
        if (!return_value(warp, op, (int)lane, 8, address))
            return VM_FAULT;
    }
    return VM_NEXT;
}

static vm_result fault_free(vm_warp *warp, const vm_op *op, int lane, uint64_t address)
{
    const vm_freed *freed = vm_memory_freed(warp->block->launch->vm->memory, address);
    bool again = freed && freed->address == address;
    ptxvm_finding detail = {.kind = again ? PTXVM_FINDING_DOUBLE_FREE : PTXVM_FINDING_OTHER,
                            .space = "global",
                            .address = address,
                            .base = again ? freed->address : 0,
                            .size = again ? freed->bytes : 0};
    return vm_fault_access(warp, op, lane, PTXVM_ERROR_ADDRESS, &detail,
                           again ? "free of 0x%llx, which has been freed already"
                                 : "free of 0x%llx, which malloc did not return",
                           (unsigned long long)address);
}

static vm_result exec_free(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    vm_memory *memory = warp->block->launch->vm->memory;
    VM_EACH_LANE(lane, mask)
    {
        uint64_t address;
        if (!argument(warp, op, (int)lane, 0, 8, &address))
            return VM_FAULT;
        const vm_alloc *alloc = vm_memory_at(memory, address);
        if (address && (!alloc || !(alloc->flags & VM_ALLOC_HEAP)))
            return fault_free(warp, op, (int)lane, address);
        if (address)
            vm_memory_free(memory, address);
    }
    return VM_NEXT;
}

/* ---- __assertfail(message, file, line, function, size of a character) ---- */

enum { ASSERT_TEXT = 256 }; /* room for each text in the message */

/* Makes the guest's text safe for terminals and logs. */
static void escape(text *t)
{
    char escaped[4 * ASSERT_TEXT + 1];
    size_t length = t->bytes ? pvm_escape(escaped, sizeof escaped, t->bytes, t->length) : 0;
    t->length = 0;
    if (length)
        append(t, escaped, length);
}

static vm_result exec_assertfail(vm_warp *warp, const vm_op *op, uint32_t mask)
{
    int lane = vm_first(mask);
    uint64_t pointers[4] = {0};
    text texts[4] = {{0}};
    bool ok = true;
    for (int i = 0; i < 4 && ok; i++)
        ok = argument(warp, op, lane, i, i == 2 ? 4 : 8, &pointers[i]);
    for (int i = 0; i < 4 && ok; i++)
        if (i != 2 && pointers[i])
            ok = append_guest_string(warp, op, lane, pointers[i], ASSERT_TEXT, &texts[i]);
    for (int i = 0; i < 4; i++)
        escape(&texts[i]);
    if (ok)
        vm_fault(warp, op, lane, PTXVM_ERROR_ASSERT, "%s:%u: %s: Assertion `%s` failed.",
                 texts[1].bytes ? texts[1].bytes : "", (unsigned)pointers[2],
                 texts[3].bytes ? texts[3].bytes : "", texts[0].bytes ? texts[0].bytes : "");
    for (int i = 0; i < 4; i++)
        free(texts[i].bytes);
    return VM_FAULT;
}

/* ---- by name ---- */

/* Sizes of results and parameters in bytes; 0 ends a list. */
typedef struct builtin {
    const char *name;
    vm_exec_fn *exec;
    bool serial;
    uint8_t returns[2], params[6];
    const char *declared;
} builtin;

static const builtin builtins[] = {
    {"vprintf", exec_vprintf, false, {4}, {8, 8}, "(.param .b32) vprintf (.param .b64, .param .b64)"},
    {"malloc", exec_malloc, true, {8}, {8}, "(.param .b64) malloc (.param .b64)"},
    {"free", exec_free, true, {0}, {8}, "free (.param .b64)"},
    {"__assertfail",
     exec_assertfail,
     false,
     {0},
     {8, 8, 4, 8, 8},
     "__assertfail (.param .b64, .param .b64, .param .b32, .param .b64, .param .b64)"}};

static const builtin *find(const char *name)
{
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
        if (strcmp(builtins[i].name, name) == 0)
            return &builtins[i];
    return NULL;
}

static bool has_sizes(pvm_var *const *vars, int n, const uint8_t *sizes)
{
    for (int i = 0; i < n; i++)
        if (!sizes[i] || vars[i]->size != sizes[i] || vars[i]->vec != 1 || vars[i]->type == T_PRED)
            return false;
    return !sizes[n];
}

const char *vm_builtin_mismatch(const pvm_function *function)
{
    const builtin *b = find(function->name);
    bool same = !b || (has_sizes(function->returns, function->n_returns, b->returns) &&
                       has_sizes(function->params, function->n_params, b->params));
    return same ? NULL : b->declared;
}

vm_exec_fn *vm_builtin_find(const char *name)
{
    const builtin *b = find(name);
    return b ? b->exec : NULL;
}

bool vm_builtin_is_serial(const char *name)
{
    const builtin *b = find(name);
    return b && b->serial;
}
