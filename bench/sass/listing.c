/* A listing of nvdisasm -c -gp as basic blocks:
 *
 *   .text.KERNEL:                                         begins a kernel; .section ends it
 *   .L_x_1:                                               a label
 *           //## File ".nv_debug_ptx_txt", line 22        the PTX line of what follows
 *           [0010]              @P0 BRA `(.L_x_1) ;       an instruction; its address is a comment */
#include <stdlib.h>
#include <string.h>

#include "bench/sass/internal.h"

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

bool sass_is(const sass_inst *inst, const char *base)
{
    return strlen(base) == (size_t)inst->base_length &&
           memcmp(inst->opcode, base, (size_t)inst->base_length) == 0;
}

bool sass_calls_slow_path(const sass_inst *inst)
{
    static const char word[] = "slowpath";
    for (int i = 0; sass_is(inst, "CALL") && i + (int)sizeof word - 1 <= inst->target_length; i++)
        if (memcmp(inst->target + i, word, sizeof word - 1) == 0)
            return true;
    return false;
}

/* ---- Lines ---- */

static void read_target(sass_inst *inst, const char *text, const char *end)
{
    const char *quote = memchr(text, '`', (size_t)(end - text));
    const char *close = quote ? memchr(quote, ')', (size_t)(end - quote)) : NULL;
    const char *comma = quote ? memchr(text, ',', (size_t)(quote - text)) : NULL;
    if (!close)
        return;
    inst->target = quote + 2;
    inst->target_length = (int)(close - inst->target);
    inst->conditional |= comma != NULL;
}

static bool read_instruction(reader *r, const char *at, const char *end)
{
    const char *text = strstr(at, "*/");
    if (!text || text >= end || r->code->n_insts == r->capacity)
        return false;
    sass_inst inst = {.line = r->line};
    text += 2;
    text += strspn(text, " {");
    if (*text == '@') {
        inst.guarded = inst.conditional = true;
        text += strcspn(text, " ");
        text += strspn(text, " ");
    }
    inst.opcode = text;
    inst.opcode_length = (int)strcspn(text, " ;\n");
    inst.base_length = (int)strcspn(text, ". ;\n");
    read_target(&inst, text, end);
    r->code->insts[r->code->n_insts++] = inst;
    return inst.opcode_length > 0;
}

static void read_line(reader *r, const char *at, const char *end)
{
    const char *text = at + strspn(at, " \t");
    if (strncmp(text, "//## File", 9) == 0) {
        const char *line = strstr(text, ", line ");
        r->line = line && line < end ? atoi(line + 7) : r->line;
    } else if (strncmp(text, "/*", 2) == 0)
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
    static const char *const enders[] = {"BRA", "EXIT", "RET", "BRX", "JMP", "CALL", "BREAK", "KILL"};
    for (size_t i = 0; i < sizeof enders / sizeof *enders; i++)
        if (sass_is(inst, enders[i]))
            return true;
    return false;
}

static void make_blocks(reader *r)
{
    sass_code *code = r->code;
    for (int i = 0; i < code->n_insts; i++) {
        if (i == 0 || r->starts[i] || ends_block(&code->insts[i - 1]))
            code->blocks[code->n_blocks++] = (sass_block){.first = i};
        code->blocks[code->n_blocks - 1].count++;
    }
}

static int block_at(const reader *r, const sass_inst *inst)
{
    for (int i = 0; inst->target && i < r->n_labels; i++)
        if (r->labels[i].length == inst->target_length &&
            memcmp(r->labels[i].name, inst->target, (size_t)inst->target_length) == 0)
            for (int b = 0; b < r->code->n_blocks; b++)
                if (r->code->blocks[b].first == r->labels[i].at)
                    return b;
    return -1;
}

static void add_edge(sass_code *code, int from, int to, bool call)
{
    if (to >= 0 && to < code->n_blocks)
        code->edges[code->n_edges++] = (sass_edge){from, to, call};
}

static void add_edges(reader *r, int b)
{
    sass_code *code = r->code;
    const sass_inst *last = &code->insts[code->blocks[b].first + code->blocks[b].count - 1];
    bool goes_on = true;
    if (sass_is(last, "BRA") && strncmp(last->opcode, "BRA.DIV", 7) == 0)
        ; /* the way of a warp that has come apart at a warp-level instruction: not taken here */
    else if (sass_is(last, "BRA")) {
        int target = block_at(r, last);
        goes_on = last->conditional && target != b + 1;
        add_edge(code, b, target, false);
    } else if (sass_is(last, "CALL") && !sass_calls_slow_path(last))
        add_edge(code, b, block_at(r, last), true);
    else if (sass_is(last, "EXIT") || sass_is(last, "RET") || sass_is(last, "KILL"))
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
    *code = (sass_code){0};
}

bool sass_parse(const char *listing, const char *kernel, sass_code *code)
{
    *code = (sass_code){0};
    const char *text = find_kernel(listing, kernel);
    size_t n = text ? (size_t)count_lines(text) + 1 : 1;
    reader r = {.code = code,
                .labels = calloc(n, sizeof(label)),
                .starts = calloc(n, sizeof(bool)),
                .capacity = (int)n - 1};
    code->insts = calloc(n, sizeof *code->insts);
    code->blocks = calloc(n, sizeof *code->blocks);
    code->edges = calloc(2 * n, sizeof *code->edges);
    bool ok = text && r.labels && r.starts && code->insts && code->blocks && code->edges;
    if (ok) {
        read_lines(&r, text);
        make_blocks(&r);
        for (int b = 0; b < code->n_blocks; b++)
            add_edges(&r, b);
        mark_reached(code);
    }
    free(r.labels);
    free(r.starts);
    if (ok && code->n_blocks)
        return true;
    sass_code_free(code);
    return false;
}
