/* Formulas over the numbers of a launch: built by the operations, evaluated by plans, printed by tools. */
#include "kernels/operations.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef enum { CONSTANT, NUMBER, PLUS, MINUS, TIMES, OVER, LEAST, CEIL } rule_operation;

static kernel_rule leaf(rule_operation operation, uint64_t value)
{
    return (kernel_rule){.count = 1, .operation = {(uint8_t)operation}, .value = {value}};
}

kernel_rule rule_constant(uint64_t value)
{
    return leaf(CONSTANT, value);
}

kernel_rule rule_number(kernel_number number)
{
    return leaf(NUMBER, number);
}

static bool is_constant(const kernel_rule *rule, uint64_t value)
{
    return rule->count == 1 && rule->operation[0] == CONSTANT && rule->value[0] == value;
}

static kernel_rule join(kernel_rule a, kernel_rule b, rule_operation operation)
{
    assert(a.count + b.count < KERNEL_RULE_MAX);
    memcpy(a.operation + a.count, b.operation, (size_t)b.count * sizeof *a.operation);
    memcpy(a.value + a.count, b.value, (size_t)b.count * sizeof *a.value);
    a.count += b.count;
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
    uint64_t stack[KERNEL_RULE_MAX];
    int top = 0;
    for (int i = 0; i < rule->count; i++) {
        const rule_operation operation = (rule_operation)rule->operation[i];
        if (operation == CONSTANT || operation == NUMBER)
            stack[top++] = operation == CONSTANT ? rule->value[i] : numbers[rule->value[i]];
        else {
            top--;
            stack[top - 1] = compute(operation, stack[top - 1], stack[top]);
        }
    }
    return stack[0];
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

/* Where the rule whose last operation is at `end` begins. */
static int begin_of(const kernel_rule *rule, int end)
{
    for (int missing = 1;; end--) {
        missing += rule->operation[end] <= NUMBER ? -1 : 1;
        if (missing == 0)
            return end;
    }
}

/* Operations that need parentheses inside products and quotients. A quotient inside another is always enclosed, because
 * ceil(a / b) applies to the outer one. */
static bool needs_parentheses(rule_operation operation, rule_operation outside)
{
    return operation == PLUS || operation == MINUS
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

static void put_rule(printer *p, int end, rule_operation outside)
{
    static const char *const infix[] = {[PLUS] = " + ", [MINUS] = " - ", [TIMES] = " * ", [OVER] = " / "};
    const rule_operation operation = (rule_operation)p->rule->operation[end];
    const bool in_c = p->style == KERNEL_RULE_C;
    char number[32];
    switch (operation) {
    case CONSTANT:
        snprintf(number, sizeof number, "%" PRIu64, p->rule->value[end]);
        put(p, number);
        return;
    case NUMBER:
        put(p, kernel_number_name((kernel_number)p->rule->value[end]));
        return;
    case LEAST:
        put_pair(p, end, in_c ? "least(" : "min(", ", ", ")", LEAST);
        return;
    case CEIL:
        put_pair(p, end, in_c ? "quotient_up(" : "ceil(", in_c ? ", " : " / ", ")", in_c ? LEAST : CEIL);
        return;
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

const char *kernel_rule_name(const kernel_rule *rule, int i)
{
    uint64_t seen = 0;
    _Static_assert(NUMBERS <= 64, "one bit for each number");
    for (int k = 0; k < rule->count; k++) {
        if (rule->operation[k] != NUMBER || seen >> rule->value[k] & 1)
            continue;
        seen |= UINT64_C(1) << rule->value[k];
        if (i-- == 0)
            return kernel_number_name((kernel_number)rule->value[k]);
    }
    return NULL;
}
