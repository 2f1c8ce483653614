/* A listing of nvdisasm -c -gp -hex as basic blocks:
 *
 *   .text.KERNEL:                                         begins a kernel; .section ends it
 *   .L_x_1:                                               a label
 *           //## File ".nv_debug_ptx_txt", line 22        the PTX line of what follows
 *           [0010]              @P0 BRA `(.L_x_1) ;       [ 0x.. ]   an instruction; its address is a comment, its lower 64 bits are another
 *                                                         [ 0x.. ]   the upper 64 bits */
#include <stdlib.h>
#include <string.h>

#include "clock/sass/internal.h"

typedef struct label {
    const char *name;
    int length, at; /* the instruction behind it */
} label;

typedef struct reader {
    sass_code *code;
    label *labels;
    bool *starts; /* by instruction: a block begins there */
    int n_labels, line, capacity;
} reader;

bool sass_calls_slow_path(const sass_inst *inst)
{
    static const char word[] = "slowpath";
    for (int i = 0; inst->kind == SASS_CALL && i + (int)sizeof word - 1 <= inst->label_length; i++)
        if (memcmp(inst->label + i, word, sizeof word - 1) == 0)
            return true;
    return false;
}

/* ---- Lines ---- */

static void read_label(sass_inst *inst)
{
    const char *text = inst->text, *end = text + inst->text_length;
    const char *quote = memchr(text, '`', (size_t)(end - text));
    const char *close = quote ? memchr(quote, ')', (size_t)(end - quote)) : NULL;
    const char *comma = quote ? memchr(text, ',', (size_t)(quote - text)) : NULL;
    if (!close)
        return;
    inst->label = quote + 2;
    inst->label_length = (int)(close - inst->label);
    inst->conditional |= comma != NULL;
}

/* "@!UP0 " */
static const char *read_guard(sass_inst *inst, const char *text)
{
    inst->predicate = -1;
    if (*text != '@')
        return text;
    inst->guarded = inst->conditional = true;
    text++;
    inst->negated = *text == '!';
    text += inst->negated;
    bool uniform = *text == 'U';
    text += uniform + 1;
    inst->predicate = (int8_t)((*text == 'T' ? 7 : *text - '0') + 8 * uniform);
    text += strcspn(text, " ");
    return text + strspn(text, " ");
}

/* The number of the comment "0x..." behind `at`; 0: none on this line. */
static uint64_t read_bits(const char *at, const char *end)
{
    static const char mark[] = "/* 0x";
    for (; at + sizeof mark < end; at++)
        if (!strncmp(at, mark, sizeof mark - 1))
            return strtoull(at + sizeof mark - 1, NULL, 16);
    return 0;
}

static void read_instruction(reader *r, const char *at, const char *end)
{
    const char *text = strstr(at, "*/");
    if (!text || text >= end || r->code->n_insts == r->capacity)
        return;
    sass_inst inst = {.line = r->line, .address = (uint32_t)strtoul(at + 2, NULL, 16), .target = -1};
    inst.control = (sass_control){.write_barrier = -1, .read_barrier = -1};
    text += 2;
    text = read_guard(&inst, text + strspn(text, " {"));
    inst.text = text;
    inst.text_length = (int)strcspn(text, ";\n");
    while (inst.text_length && text[inst.text_length - 1] == ' ')
        inst.text_length--;
    inst.opcode_length = (int)strcspn(text, " ;\n");
    inst.base_length = (int)strcspn(text, ". ;\n");
    inst.low = read_bits(text + inst.text_length, end);
    read_label(&inst);
    sass_decode(&inst);
    r->code->insts[r->code->n_insts++] = inst;
}

/* The line below an instruction: its upper half. */
static void read_upper_half(reader *r, const char *at, const char *end)
{
    if (!r->code->n_insts)
        return;
    sass_inst *inst = &r->code->insts[r->code->n_insts - 1];
    inst->high = read_bits(at, end);
    inst->control = sass_control_of(inst->high);
}

static void read_line(reader *r, const char *at, const char *end)
{
    const char *text = at + strspn(at, " \t");
    if (strncmp(text, "//## File", 9) == 0) {
        const char *line = strstr(text, ", line ");
        r->line = line && line < end ? atoi(line + 7) : r->line;
    } else if (strncmp(text, "/* 0x", 5) == 0)
        read_upper_half(r, text, end + 1);
    else if (strncmp(text, "/*", 2) == 0)
        read_instruction(r, text, end);
    else if (text == at && end > at && end[-1] == ':') {
        r->labels[r->n_labels++] = (label){at, (int)(end - 1 - at), r->code->n_insts};
        r->starts[r->code->n_insts] = true;
    }
}

/* From behind ".text.KERNEL:" to the next section. */
static const char *find_kernel(const char *listing, const char *kernel)
{
    size_t length = strlen(kernel);
    for (const char *at = listing; (at = strstr(at, "\n.text.")); at++)
        if (strncmp(at + 7, kernel, length) == 0 && at[7 + length] == ':')
            return at + 7 + length + 1;
    return NULL;
}

static int count_lines(const char *text)
{
    int n = 1;
    for (; (text = strchr(text, '\n')); text++)
        n++;
    return n;
}

static void read_lines(reader *r, const char *at)
{
    for (const char *end; *at; at = *end ? end + 1 : end) {
        end = at + strcspn(at, "\n");
        if (strncmp(at, "\t.section", 9) == 0)
            return;
        read_line(r, at, end);
    }
}

/* ---- Blocks ---- */

static bool ends_block(const sass_inst *inst)
{
    return (inst->kind >= SASS_BRANCH && inst->kind <= SASS_EXIT) || sass_is(inst, "BREAK");
}

static void make_blocks(reader *r)
{
    sass_code *code = r->code;
    for (int i = 0; i < code->n_insts; i++) {
        if (i == 0 || r->starts[i] || ends_block(&code->insts[i - 1]))
            code->blocks[code->n_blocks++] = (sass_block){.first = i};
        code->insts[i].block = code->n_blocks - 1;
        code->blocks[code->n_blocks - 1].count++;
    }
}

/* A label may stand behind the last instruction. */
static int block_at(const reader *r, const sass_inst *inst)
{
    for (int i = 0; inst->label && i < r->n_labels; i++)
        if (r->labels[i].length == inst->label_length && r->labels[i].at < r->code->n_insts &&
            memcmp(r->labels[i].name, inst->label, (size_t)inst->label_length) == 0)
            return r->code->insts[r->labels[i].at].block;
    return -1;
}

static void find_targets(reader *r)
{
    for (int i = 0; i < r->code->n_insts; i++)
        r->code->insts[i].target = block_at(r, &r->code->insts[i]);
}

static void add_edge(sass_code *code, int from, int to, bool call)
{
    if (to >= 0 && to < code->n_blocks)
        code->edges[code->n_edges++] = (sass_edge){from, to, call};
}

/* ptxas leaves loops by calls that never return: to a label inside the kernel, not to a function. */
static bool is_jump(const sass_inst *inst)
{
    return inst->kind == SASS_CALL && inst->label_length > 3 && !strncmp(inst->label, ".L_", 3);
}

static void add_edges(sass_code *code, int b)
{
    const sass_inst *last = &code->insts[code->blocks[b].first + code->blocks[b].count - 1];
    bool goes_on = true;
    if (last->kind == SASS_BRANCH && sass_has(last, "DIV"))
        ; /* the way of a warp that has come apart at a warp-level instruction: not taken here */
    else if (last->kind == SASS_BRANCH || is_jump(last)) {
        goes_on = last->conditional && last->target != b + 1;
        add_edge(code, b, last->target, false);
    } else if (last->kind == SASS_CALL && !sass_calls_slow_path(last))
        add_edge(code, b, last->target, true);
    else if (last->kind == SASS_EXIT || last->kind == SASS_RETURN)
        goes_on = last->guarded;
    if (goes_on)
        add_edge(code, b, b + 1, false);
}

static void mark_reached(sass_code *code)
{
    bool more = code->n_blocks > 0;
    if (more)
        code->blocks[0].reached = true;
    while (more) {
        more = false;
        for (int i = 0; i < code->n_edges; i++)
            if (code->blocks[code->edges[i].from].reached && !code->blocks[code->edges[i].to].reached)
                more = code->blocks[code->edges[i].to].reached = true;
    }
}

/* ---- All of it ---- */

void sass_code_free(sass_code *code)
{
    free(code->insts);
    free(code->blocks);
    free(code->edges);
    free(code->loops);
    free(code->listing);
    *code = (sass_code){0};
}

static void count_written(sass_code *code)
{
    for (int b = 0; b < code->n_blocks; b++)
        code->written += code->blocks[b].reached ? code->blocks[b].count : 0;
}

static bool read_kernel(reader *r, const char *text)
{
    sass_code *code = r->code;
    read_lines(r, text);
    make_blocks(r);
    find_targets(r);
    for (int b = 0; b < code->n_blocks; b++)
        add_edges(code, b);
    mark_reached(code);
    count_written(code);
    return code->n_blocks && sass_find_loops(code);
}

bool sass_parse(const char *listing, const char *kernel, sass_code *code)
{
    *code = (sass_code){.listing = malloc(strlen(listing) + 1)};
    if (!code->listing)
        return false;
    strcpy(code->listing, listing);
    const char *text = find_kernel(code->listing, kernel);
    size_t n = text ? (size_t)count_lines(text) + 1 : 1;
    reader r = {.code = code,
                .labels = calloc(n, sizeof(label)),
                .starts = calloc(n, sizeof(bool)),
                .capacity = (int)n - 1};
    code->insts = calloc(n, sizeof *code->insts);
    code->blocks = calloc(n, sizeof *code->blocks);
    code->edges = calloc(2 * n, sizeof *code->edges);
    bool ok =
        text && r.labels && r.starts && code->insts && code->blocks && code->edges && read_kernel(&r, text);
    free(r.labels);
    free(r.starts);
    if (!ok)
        sass_code_free(code);
    return ok;
}
