/* Formulas over the numbers of a launch: built by the operations, evaluated by plans, printed by tools. */
#include "kernels/operations.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* SPAN has three operands, CONSTANT and numbers none, the others two. */
typedef enum { CONSTANT, PLUS, MINUS, TIMES, OVER, LEAST, CEIL, SPAN, FIRST_NUMBER } rule_operation;

static int operands_of(rule_operation operation)
{
    return operation == SPAN ? 3 : operation == CONSTANT || operation >= FIRST_NUMBER ? 0 : 2;
}

kernel_rule rule_constant(uint64_t value)
{
    return (kernel_rule){.count = 1, .constants = 1, .operation = {CONSTANT}, .constant = {value}};
}

kernel_rule rule_number(kernel_number number)
{
    return (kernel_rule){.count = 1, .operation = {(uint8_t)(FIRST_NUMBER + number)}};
}

static bool is_constant(const kernel_rule *rule, uint64_t value)
{
    return rule->count == 1 && rule->operation[0] == CONSTANT && rule->constant[0] == value;
}

static void append(kernel_rule *a, const kernel_rule *b)
{
    assert(a->count + b->count < KERNEL_RULE_MAX && a->constants + b->constants <= KERNEL_RULE_CONSTANTS);
    memcpy(a->operation + a->count, b->operation, b->count);
    memcpy(a->constant + a->constants, b->constant, b->constants * sizeof *a->constant);
    a->count = (uint8_t)(a->count + b->count);
    a->constants = (uint8_t)(a->constants + b->constants);
}

static kernel_rule join(kernel_rule a, kernel_rule b, rule_operation operation)
{
    append(&a, &b);
    a.operation[a.count++] = (uint8_t)operation;
    return a;
}

kernel_rule rule_plus(kernel_rule a, kernel_rule b)
{
    return join(a, b, PLUS);
}

kernel_rule rule_minus(kernel_rule a, kernel_rule b)
{
    return join(a, b, MINUS);
}

kernel_rule rule_times(kernel_rule a, kernel_rule b)
{
    return is_constant(&a, 1) ? b : is_constant(&b, 1) ? a : join(a, b, TIMES);
}

kernel_rule rule_over(kernel_rule a, kernel_rule b)
{
    return is_constant(&b, 1) ? a : join(a, b, OVER);
}

kernel_rule rule_least(kernel_rule a, kernel_rule b)
{
    return join(a, b, LEAST);
}

kernel_rule rule_ceil(kernel_rule a, uint64_t each)
{
    assert(each > 0);
    return each == 1 ? a : join(a, rule_constant(each), CEIL);
}

kernel_rule rule_parts(kernel_number number, uint64_t each)
{
    return rule_ceil(rule_number(number), each);
}

kernel_rule rule_capped(kernel_rule a)
{
    return rule_least(a, rule_constant(UINT16_MAX));
}

kernel_rule rule_span(kernel_rule count, kernel_rule stride, kernel_rule each)
{
    if (is_constant(&count, 1))
        return each;
    append(&count, &stride);
    return join(count, each, SPAN);
}

/* ---- Values ---- */

static uint64_t compute(rule_operation operation, uint64_t a, uint64_t b)
{
    switch (operation) {
    case PLUS:
        return a + b;
    case MINUS:
        return a - b;
    case TIMES:
        return a * b;
    case OVER:
        return b ? a / b : 0;
    case LEAST:
        return a < b ? a : b;
    default:
        return ceil_div(a, b);
    }
}

uint64_t rule_value(const kernel_rule *rule, const uint64_t numbers[NUMBERS])
{
    uint64_t stack[KERNEL_RULE_MAX], *top = stack; /* past the last value */
    const uint64_t *constant = rule->constant;
    for (int i = 0; i < rule->count; i++) {
        const rule_operation operation = (rule_operation)rule->operation[i];
        top -= operands_of(operation);
        if (operation == CONSTANT)
            top[0] = *constant++;
        else if (operation >= FIRST_NUMBER)
            top[0] = numbers[operation - FIRST_NUMBER];
        else if (operation == SPAN)
            top[0] = top[0] && top[2] ? (top[0] - 1) * top[1] + top[2] : 0;
        else
            top[0] = compute(operation, top[0], top[1]);
        top++;
    }
    return stack[0];
}

/* A value by the rows: ceil(rows * work / each); a constant, if work is 0. */
typedef struct by_rows {
    uint64_t value, work, each;
} by_rows;

/* False where the result is neither. */
static bool compute_by_rows(rule_operation operation, by_rows *a, const by_rows *b)
{
    if (a->work == 0 && b->work == 0)
        a->value = compute(operation, a->value, b->value);
    else if (operation == TIMES && a->work * b->work == 0 && a->each * b->each == 1)
        *a = (by_rows){.work = (a->work ? a->work : a->value) * (b->work ? b->work : b->value), .each = 1};
    else if (operation == CEIL && b->work == 0)
        a->each *= b->value;
    else
        return operation == LEAST &&
               b->work == 0; /* where there are fewer blocks than planned, the limit is no matter */
    return true;
}

bool rule_by_rows(const kernel_rule *rule, const uint64_t numbers[NUMBERS], kernel_number rows,
                  kernel_row_blocks *out)
{
    by_rows stack[KERNEL_RULE_MAX], *top = stack; /* past the last value */
    const uint64_t *constant = rule->constant;
    for (int i = 0; i < rule->count; i++) {
        const rule_operation operation = (rule_operation)rule->operation[i];
        top -= operands_of(operation);
        if (operation == CONSTANT)
            top[0] = (by_rows){.value = *constant++, .each = 1};
        else if (operation >= FIRST_NUMBER)
            top[0] = (by_rows){.value = numbers[operation - FIRST_NUMBER],
                               .work = operation - FIRST_NUMBER == rows,
                               .each = 1};
        else if (operation == SPAN || !compute_by_rows(operation, &top[0], &top[1]))
            return false;
        top++;
    }
    if (stack[0].work)
        *out = (kernel_row_blocks){.work = stack[0].work, .per_block = stack[0].each};
    return stack[0].work != 0;
}

/* ---- Text ---- */

typedef struct printer {
    const kernel_rule *rule;
    kernel_rule_style style;
    char *text;
    size_t used;
} printer;

static void put(printer *p, const char *text)
{
    const size_t room = KERNEL_RULE_CHARS - p->used, length = strlen(text);
    assert(length < room);
    snprintf(p->text + p->used, room, "%s", text);
    p->used += length;
}

/* The constant that is the operation at `end`. */
static uint64_t constant_at(const kernel_rule *rule, int end)
{
    int before = 0;
    for (int i = 0; i < end; i++)
        before += rule->operation[i] == CONSTANT;
    return rule->constant[before];
}

/* Where the rule whose last operation is at `end` begins. */
static int begin_of(const kernel_rule *rule, int end)
{
    for (int missing = 1;; end--) {
        missing += operands_of((rule_operation)rule->operation[end]) - 1;
        if (missing == 0)
            return end;
    }
}

/* Operations that need parentheses inside products and quotients. A quotient inside another is always enclosed, because
 * ceil(a / b) applies to the outer one. */
static bool needs_parentheses(rule_operation operation, rule_operation outside)
{
    return operation == PLUS || operation == MINUS || operation == SPAN
               ? outside == TIMES || outside == OVER || outside == CEIL || outside == MINUS
           : operation == OVER ? outside == TIMES || outside == OVER || outside == CEIL
                               : operation == TIMES && outside == OVER;
}

static void put_rule(printer *p, int end, rule_operation outside);

static void put_pair(printer *p, int end, const char *before, const char *between, const char *after,
                     rule_operation outside)
{
    put(p, before);
    put_rule(p, begin_of(p->rule, end - 1) - 1, outside);
    put(p, between);
    put_rule(p, end - 1, outside);
    put(p, after);
}

/* "(rows - 1) * stride + each" */
static void put_span(printer *p, int end)
{
    const int stride = begin_of(p->rule, end - 1) - 1, count = begin_of(p->rule, stride) - 1;
    char number[32];
    if (p->rule->operation[count] == CONSTANT) {
        snprintf(number, sizeof number, "%" PRIu64 " * ", constant_at(p->rule, count) - 1);
        put(p, number);
    } else {
        put(p, "(");
        put_rule(p, count, MINUS);
        put(p, " - 1) * ");
    }
    put_rule(p, stride, TIMES);
    put(p, " + ");
    put_rule(p, end - 1, PLUS);
}

static void put_rule(printer *p, int end, rule_operation outside)
{
    static const char *const infix[] = {[PLUS] = " + ", [MINUS] = " - ", [TIMES] = " * ", [OVER] = " / "};
    const rule_operation operation = (rule_operation)p->rule->operation[end];
    const bool in_c = p->style == KERNEL_RULE_C;
    char number[32];
    if (operation >= FIRST_NUMBER) {
        put(p, kernel_number_name((kernel_number)(operation - FIRST_NUMBER)));
        return;
    }
    switch (operation) {
    case CONSTANT:
        snprintf(number, sizeof number, "%" PRIu64, constant_at(p->rule, end));
        put(p, number);
        return;
    case LEAST:
        put_pair(p, end, in_c ? "least(" : "min(", ", ", ")", LEAST);
        return;
    case CEIL:
        put_pair(p, end, in_c ? "quotient_up(" : "ceil(", in_c ? ", " : " / ", ")", in_c ? LEAST : CEIL);
        return;
    case SPAN: {
        const bool encloses = needs_parentheses(SPAN, outside);
        put(p, encloses ? "(" : "");
        put_span(p, end);
        put(p, encloses ? ")" : "");
        return;
    }
    default: {
        const bool encloses = needs_parentheses(operation, outside);
        put_pair(p, end, encloses ? "(" : "", infix[operation], encloses ? ")" : "", operation);
    }
    }
}

void kernel_rule_text(const kernel_rule *rule, kernel_rule_style style, char text[KERNEL_RULE_CHARS])
{
    printer p = {.rule = rule, .style = style, .text = text};
    text[0] = 0;
    if (rule->count)
        put_rule(&p, rule->count - 1, LEAST);
}

int kernel_rule_number(const kernel_rule *rule, int i)
{
    number_set seen = 0;
    for (int k = 0; k < rule->count; k++) {
        const int number = rule->operation[k] - FIRST_NUMBER;
        if (number < 0 || seen >> number & 1)
            continue;
        seen |= (number_set)1 << number;
        if (i-- == 0)
            return number;
    }
    return -1;
}
