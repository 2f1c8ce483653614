#include "mutate/program.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Registers ---- */

/* `.reg .b32 %r<41>;` declares %r0 to %r40. */
typedef struct bank {
    char prefix[8];
    int width, first, count;
} bank;

enum { BANKS_MAX = 8 };

static struct {
    program p;
    bank banks[BANKS_MAX];
    int n_banks;
} last;

static int width_of_type(const char *type)
{
    return strcmp(type, "pred") == 0 ? 1 : atoi(type + 1);
}

static bool parse_bank(const char *line, bank *b)
{
    char type[8];
    if (sscanf(line, "\t.reg .%7[a-z0-9] %%%6[a-z]<%d>", type, b->prefix + 1, &b->count) != 3)
        return false;
    b->prefix[0] = '%';
    b->width = width_of_type(type);
    return b->width > 0 && b->width <= 64;
}

/* The register's name at the place has *length characters; NO_REGISTER for special registers. */
static int register_at(const char *at, size_t *length)
{
    size_t letters = 1;
    if (*at != '%')
        return NO_REGISTER;
    while (islower((unsigned char)at[letters]))
        letters++;
    const size_t digits = strspn(at + letters, "0123456789");
    if (digits == 0)
        return NO_REGISTER;
    *length = letters + digits;
    for (int k = 0; k < last.n_banks; k++) {
        const bank *b = &last.banks[k];
        const int number = atoi(at + letters);
        if (strlen(b->prefix) == letters && strncmp(at, b->prefix, letters) == 0 && number < b->count)
            return b->first + number;
    }
    return NO_REGISTER;
}

int program_register(const program *p, const char *name)
{
    size_t length;
    const int reg = p == &last.p ? register_at(name, &length) : NO_REGISTER;
    return reg != NO_REGISTER && name[length] == 0 ? reg : NO_REGISTER;
}

/* ---- Steps ---- */

static bool add_registers(const char *operand, int list[STEP_REGISTERS], int *n)
{
    for (const char *at = strchr(operand, '%'); at; at = strchr(at + 1, '%')) {
        size_t length;
        const int reg = register_at(at, &length);
        if (reg == NO_REGISTER)
            continue;
        if (*n == STEP_REGISTERS)
            return false;
        list[(*n)++] = reg;
    }
    return true;
}

static bool parse_guard(const char *line, step *s)
{
    char name[TEXT_MAX];
    s->guard = NO_REGISTER;
    if (line[1] != '@')
        return true;
    s->guard_is_negated = line[2] == '!';
    if (sscanf(line + 2 + s->guard_is_negated, "%63[%a-z0-9]", name) != 1)
        return false;
    s->guard = program_register(&last.p, name);
    return s->guard != NO_REGISTER;
}

bool program_parse(const program *p, const char *line, step *s)
{
    *s = (step){.line = line, .next = NO_STEP, .target = NO_STEP};
    if (p != &last.p || !parse_guard(line, s) || !text_parse_guarded(line, &s->i))
        return false;
    const bool writes = text_writes(&s->i);
    for (int k = 0; k < s->i.n; k++) {
        const char *operand = s->i.operand[k];
        const bool is_destination = writes && k == 0;
        s->reg[k] = program_register(p, operand);
        if (!add_registers(operand, is_destination ? s->writes : s->reads,
                           is_destination ? &s->n_writes : &s->n_reads))
            return false;
    }
    for (int k = s->i.n; k < OPERANDS_MAX; k++)
        s->reg[k] = NO_REGISTER;
    return true;
}

/* Not a label, a directive or a row of a table. */
static bool is_step(const char *line)
{
    return line[0] == '\t' && (line[1] == '@' || islower((unsigned char)line[1]));
}

int program_step_at(const program *p, size_t place)
{
    int low = 0, high = p->n_steps - 1;
    const char *at = p->text + place;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (p->steps[middle].line <= at)
            low = middle;
        else
            high = middle - 1;
    }
    return p->n_steps && p->steps[low].line <= at &&
                   at < p->steps[low].line + strcspn(p->steps[low].line, "\n")
               ? low
               : NO_STEP;
}

/* The first step behind a label; NO_STEP where there is none. */
static int step_of_label(const program *p, const char *label)
{
    char text[TEXT_MAX + 3];
    snprintf(text, sizeof text, "\n%s:", label);
    const char *at = strstr(p->text, text);
    for (int k = 0; at && k < p->n_steps; k++)
        if (p->steps[k].line > at)
            return k;
    return NO_STEP;
}

static bool connect(program *p)
{
    for (int k = 0; k < p->n_steps; k++) {
        step *s = &p->steps[k];
        const bool is_branch = strcmp(s->i.opcode, "bra") == 0 || strcmp(s->i.opcode, "bra.uni") == 0;
        const bool is_end = strcmp(s->i.opcode, "ret") == 0 || strcmp(s->i.opcode, "exit") == 0;
        if (!is_branch && strncmp(s->i.opcode, "br", 2) == 0 && strncmp(s->i.opcode, "brev", 4) != 0)
            return false;
        if (is_branch && (s->target = step_of_label(p, s->i.operand[0])) == NO_STEP)
            return false;
        if (is_branch)
            p->steps[s->target].is_target = true;
        if (is_branch && s->target <= k)
            p->steps[s->target].is_joined = true;
        s->next = (is_branch || is_end) && s->guard == NO_REGISTER ? NO_STEP
                  : k + 1 < p->n_steps                             ? k + 1
                                                                   : NO_STEP;
    }
    return true;
}

/* ---- Texts ---- */

static void forget(void)
{
    free(last.p.text);
    free(last.p.steps);
    free(last.p.names);
    free(last.p.width);
    free(last.p.definitions);
    last.p = (program){.number = last.p.number + 1};
    last.n_banks = 0;
}

static bool declare(program *p)
{
    for (const char *line = p->text; line; line = text_next_line(line)) {
        bank b = {.first = p->n_registers};
        if (!parse_bank(line, &b))
            continue;
        if (last.n_banks == BANKS_MAX)
            return false;
        last.banks[last.n_banks++] = b;
        p->n_registers += b.count;
    }
    const size_t n = (size_t)p->n_registers + 1;
    p->names = calloc(n, sizeof *p->names);
    p->width = calloc(n, sizeof *p->width);
    p->definitions = calloc(n, sizeof *p->definitions);
    for (int k = 0; k < last.n_banks && p->names && p->width; k++)
        for (int number = 0; number < last.banks[k].count; number++) {
            const int reg = last.banks[k].first + number;
            snprintf(p->names[reg], sizeof p->names[reg], "%s%d", last.banks[k].prefix, number);
            p->width[reg] = (uint8_t)last.banks[k].width;
        }
    return p->names && p->width && p->definitions;
}

static bool read_steps(program *p)
{
    int room = 0;
    for (const char *line = p->text; line; line = text_next_line(line))
        room += is_step(line);
    p->steps = calloc((size_t)room + 1, sizeof *p->steps);
    for (const char *line = p->text; line && p->steps; line = text_next_line(line)) {
        if (!is_step(line))
            continue;
        step *s = &p->steps[p->n_steps];
        if (!program_parse(p, line, s))
            return false;
        p->n_steps++;
        for (int k = 0; k < s->n_writes; k++)
            p->definitions[s->writes[k]] += s->guard == NO_REGISTER ? 1 : 2;
    }
    return p->steps != NULL;
}

const program *program_of(const char *ptx)
{
    program *p = &last.p;
    if (p->text && strcmp(p->text, ptx) == 0)
        return p->n_steps ? p : NULL;
    forget();
    p->text = strdup(ptx);
    if (!p->text || !declare(p) || !read_steps(p) || !connect(p))
        p->n_steps = 0; /* kept as a text that is not understood */
    return p->n_steps ? p : NULL;
}

/* ---- Words ---- */

bool step_starts(const step *s, const char *opcode)
{
    return strncmp(s->i.opcode, opcode, strlen(opcode)) == 0;
}

bool step_is(const step *s, const char *opcode)
{
    return strcmp(s->i.opcode, opcode) == 0;
}

int step_type(const step *s, bool *has_sign)
{
    const char *type = strrchr(s->i.opcode, '.');
    *has_sign = type && type[1] == 's';
    return type && strchr("usb", type[1]) ? atoi(type + 2) : 0;
}

int step_adds_products(const step *s)
{
    const char *k = step_starts(s, "mma.sync.aligned.m") ? strchr(s->i.opcode, 'k') : NULL;
    const bool is_of_bytes = strstr(s->i.opcode, ".s32.s8.") || strstr(s->i.opcode, ".s32.u8.");
    return k && is_of_bytes && !strstr(s->i.opcode, ".satfinite") && s->i.n == 4 && s->n_reads > s->n_writes
               ? atoi(k + 1)
               : 0;
}

uint64_t bits_mask(int width)
{
    return width >= 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
}

int bits_trailing_zeros(uint64_t x)
{
    int n = 0;
    while (n < 64 && !(x >> n & 1))
        n++;
    return n;
}

int bits_length(uint64_t x)
{
    int n = 0;
    for (; x; x >>= 1)
        n++;
    return n;
}
