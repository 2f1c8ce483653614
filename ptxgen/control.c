/* Control flow: labels and branches, and the structured forms built from them. Each open form is a frame and
 * a scope. */
#include "ptxgen/internal.h"

/* ---- labels ---- */

static uint32_t new_label(ptx_builder *b)
{
    char *at = text_room(b, &b->labels, 1);
    if (!at)
        return 0;
    *at = 0;
    return (uint32_t)++b->labels.size;
}

static char *put_label(char *at, uint32_t label)
{
    return put_decimal(put_string(at, "$L"), label);
}

static void place(ptx_builder *b, uint32_t label)
{
    char *at = text_room(b, &b->body, MAX_INSTRUCTION);
    if (!at)
        return;
    if (b->labels.data[label - 1])
        ptx_fail(b, "the label is placed twice");
    b->labels.data[label - 1] = 1;
    at = put_string(put_label(at, label), ":\n");
    b->body.size = (size_t)(at - b->body.data);
}

/* "@p op label;", where op is "bra"; without a label "@p ret;". */
static void jump(ptx_builder *b, const char *op, uint32_t label, bool uniform)
{
    char *at = text_room(b, &b->body, MAX_INSTRUCTION);
    if (!at)
        return;
    *at++ = '\t';
    at = put_string(emit_guard(b, at), op);
    if (uniform)
        at = put_string(at, ".uni");
    if (label) {
        *at++ = ' ';
        at = put_label(at, label);
    }
    at = put_string(at, ";\n");
    b->body.size = (size_t)(at - b->body.data);
    b->instructions++;
}

static bool take_uniform(ptx_builder *b)
{
    bool uniform = b->uniform;
    b->uniform = false;
    return uniform;
}

static bool set_guard(ptx_builder *b, ptx_val pred, bool negate)
{
    if (!ptx_ok(b) || !builder_usable(b, pred))
        return false;
    if (pred.type != PTX_PRED)
        ptx_fail(b, "the condition is %s, it has to be a predicate", isa_type_text(pred.type));
    else if (b->guard.kind != PTX_NOTHING)
        ptx_fail(b, "there is a guard already");
    else {
        b->guard = pred;
        b->guard_not = negate;
    }
    return ptx_ok(b);
}

/* `when` is the value of the condition that jumps. */
static void jump_if(ptx_builder *b, ptx_val pred, bool when, const char *op, uint32_t label, bool uniform)
{
    if (set_guard(b, pred, !when))
        jump(b, op, label, uniform);
}

ptx_label ptx_label_new(ptx_builder *b)
{
    return builder_ready(b, "label_new") ? (ptx_label){new_label(b)} : (ptx_label){0};
}

static bool is_label(ptx_builder *b, ptx_label label)
{
    if (!label.id || label.id > b->labels.size || label.id <= b->kernel_start_label)
        ptx_fail(b, "this is not a label of the kernel");
    return ptx_ok(b);
}

void ptx_label_place(ptx_builder *b, ptx_label label)
{
    if (builder_ready(b, "label_place") && is_label(b, label))
        place(b, label.id);
}

void ptx_bra(ptx_builder *b, ptx_label label)
{
    if (builder_ready(b, "bra") && is_label(b, label))
        jump(b, "bra", label.id, take_uniform(b));
}

void ptx_bra_if(ptx_builder *b, ptx_val pred, ptx_label label)
{
    if (builder_ready(b, "bra_if") && is_label(b, label))
        jump_if(b, pred, true, "bra", label.id, take_uniform(b));
}

void ptx_bra_unless(ptx_builder *b, ptx_val pred, ptx_label label)
{
    if (builder_ready(b, "bra_unless") && is_label(b, label))
        jump_if(b, pred, false, "bra", label.id, take_uniform(b));
}

/* ---- modifiers of the next instruction ---- */

void ptx_uniform(ptx_builder *b)
{
    if (builder_ready(b, "uniform"))
        b->uniform = true;
}

void ptx_rolled(ptx_builder *b)
{
    if (builder_ready(b, "rolled"))
        b->rolled = true;
}

void ptx_when(ptx_builder *b, ptx_val pred)
{
    if (builder_ready(b, "when"))
        set_guard(b, pred, false);
}

void ptx_unless(ptx_builder *b, ptx_val pred)
{
    if (builder_ready(b, "unless"))
        set_guard(b, pred, true);
}

/* ---- leaving the kernel ---- */

void ptx_ret(ptx_builder *b)
{
    if (builder_ready(b, "ret"))
        jump(b, "ret", 0, take_uniform(b));
}

void ptx_ret_if(ptx_builder *b, ptx_val pred)
{
    if (builder_ready(b, "ret_if"))
        jump_if(b, pred, true, "ret", 0, take_uniform(b));
}

void ptx_ret_unless(ptx_builder *b, ptx_val pred)
{
    if (builder_ready(b, "ret_unless"))
        jump_if(b, pred, false, "ret", 0, take_uniform(b));
}

void ptx_trap(ptx_builder *b)
{
    EMIT_VOID(b, trap, PTX_NOTYPE, {0});
}

void ptx_exit(ptx_builder *b)
{
    EMIT_VOID(b, exit, PTX_NOTYPE, {0});
}

/* ---- frames ---- */

static const char *const frame_names[] = {"kernel", "if", "else", "for", "loop"};

static ptx_frame *push(ptx_builder *b, frame_kind kind)
{
    if (b->depth == MAX_DEPTH) {
        ptx_fail(b, "more than %d nested ifs and loops", MAX_DEPTH - 1);
        return NULL;
    }
    ptx_frame *frame = &b->frames[b->depth++];
    *frame = (ptx_frame){.kind = kind, .scope = ++b->scopes, .file = b->file, .line = b->line};
    return frame;
}

/* The innermost frame, if it is of this kind (or the other). */
static ptx_frame *top(ptx_builder *b, frame_kind kind, frame_kind or_kind)
{
    ptx_frame *frame = &b->frames[b->depth - 1];
    if (frame->kind == kind || frame->kind == or_kind)
        return frame;
    ptx_fail(b, "there is no open %s here (the innermost: %s)", frame_names[kind], frame_names[frame->kind]);
    return NULL;
}

static ptx_frame *innermost_loop(ptx_builder *b)
{
    for (int i = b->depth; i-- > 0;)
        if (b->frames[i].kind == FRAME_FOR || b->frames[i].kind == FRAME_LOOP)
            return &b->frames[i];
    ptx_fail(b, "there is no open loop here");
    return NULL;
}

void control_open_kernel(ptx_builder *b)
{
    b->depth = 0;
    b->kernel_start_label = (uint32_t)b->labels.size;
    b->guard = b->into = (ptx_val){0};
    b->uniform = b->rolled = false;
    push(b, FRAME_KERNEL);
}

void control_check_closed(ptx_builder *b)
{
    b->doing = "end of the kernel";
    if (b->depth > 1) {
        const ptx_frame *frame = &b->frames[b->depth - 1];
        ptx_mark(b, frame->file, frame->line);
        ptx_fail(b, "the %s opened here is never closed", frame_names[frame->kind]);
    }
    if (b->guard.kind != PTX_NOTHING || b->into.kind != PTX_NOTHING || b->uniform || b->rolled)
        ptx_fail(b,
                 "a ptx_when, ptx_unless, ptx_into, ptx_uniform or ptx_rolled has no instruction after it");
    for (size_t i = b->kernel_start_label; i < b->labels.size; i++)
        if (!b->labels.data[i])
            ptx_fail(b, "label $L%zu is never placed", i + 1);
}

/* ---- if ---- */

static void open_if(ptx_builder *b, ptx_val pred, bool when)
{
    bool uniform = take_uniform(b);
    uint32_t label = new_label(b);
    jump_if(b, pred, !when, "bra", label, uniform);
    ptx_frame *frame = ptx_ok(b) ? push(b, FRAME_IF) : NULL;
    if (frame) {
        frame->next = label;
        frame->uniform = uniform;
    }
}

void ptx_if(ptx_builder *b, ptx_val pred)
{
    if (builder_ready(b, "if"))
        open_if(b, pred, true);
}

void ptx_if_not(ptx_builder *b, ptx_val pred)
{
    if (builder_ready(b, "if_not"))
        open_if(b, pred, false);
}

void ptx_else(ptx_builder *b)
{
    ptx_frame *frame = builder_ready(b, "else") ? top(b, FRAME_IF, FRAME_IF) : NULL;
    if (!frame)
        return;
    frame->kind = FRAME_ELSE;
    frame->scope = ++b->scopes;
    frame->end = new_label(b);
    if (!ptx_ok(b))
        return;
    jump(b, "bra", frame->end, frame->uniform);
    place(b, frame->next);
}

void ptx_end_if(ptx_builder *b)
{
    ptx_frame *frame = builder_ready(b, "end_if") ? top(b, FRAME_IF, FRAME_ELSE) : NULL;
    if (!frame)
        return;
    place(b, frame->kind == FRAME_IF ? frame->next : frame->end);
    b->depth--;
}

/* ---- loops ---- */

/* The start of a loop: creates its labels and its frame, and places the label that it jumps back to. */
/* PTX ISA, "Pragma Strings": it stands at the head of the loop. */
static void keep_rolled(ptx_builder *b)
{
    char *at = text_room(b, &b->body, MAX_INSTRUCTION);
    if (!at)
        return;
    at = put_string(at, "\t.pragma \"nounroll\";\n");
    b->body.size = (size_t)(at - b->body.data);
    b->rolled = false;
}

static ptx_frame *open_loop(ptx_builder *b, frame_kind kind)
{
    bool uniform = take_uniform(b);
    uint32_t again = new_label(b), end = new_label(b);
    if (!ptx_ok(b))
        return NULL;
    place(b, again);
    if (b->rolled)
        keep_rolled(b);
    ptx_frame *frame = ptx_ok(b) ? push(b, kind) : NULL;
    if (frame) {
        frame->again = again;
        frame->end = end;
        frame->uniform = uniform;
    }
    return frame;
}

static void close_loop(ptx_builder *b, ptx_frame *frame)
{
    jump(b, "bra", frame->again, frame->uniform);
    place(b, frame->end);
    b->depth--;
}

ptx_val ptx_for(ptx_builder *b, ptx_val start, ptx_val bound, ptx_val step)
{
    if (!builder_ready(b, "for"))
        return (ptx_val){0};
    ptx_type type = emit_common(b, "for", (const ptx_val[]){start, bound, step}, 3);
    if (ptx_ok(b) && !isa_type_is_integer(type))
        ptx_fail(b, "a loop counts integers, not %s", isa_type_text(type));
    bool uniform = take_uniform(b);
    ptx_val i = ptx_var(b, emit_number(b, type, start));
    b->uniform = uniform;
    ptx_frame *frame = ptx_ok(b) ? open_loop(b, FRAME_FOR) : NULL;
    if (!frame)
        return (ptx_val){0};
    frame->var = i;
    frame->step = step;
    ptx_val done = ptx_setp(b, PTX_GE, i, bound);
    jump_if(b, done, true, "bra", frame->end, frame->uniform);
    return i;
}

void ptx_end_for(ptx_builder *b)
{
    ptx_frame *frame = builder_ready(b, "end_for") ? top(b, FRAME_FOR, FRAME_FOR) : NULL;
    if (!frame)
        return;
    if (frame->next)
        place(b, frame->next);
    ptx_into(b, frame->var);
    ptx_add(b, frame->var, frame->step);
    if (ptx_ok(b))
        close_loop(b, frame);
}

void ptx_loop(ptx_builder *b)
{
    if (builder_ready(b, "loop"))
        open_loop(b, FRAME_LOOP);
}

void ptx_end_loop(ptx_builder *b)
{
    ptx_frame *frame = builder_ready(b, "end_loop") ? top(b, FRAME_LOOP, FRAME_LOOP) : NULL;
    if (frame)
        close_loop(b, frame);
}

static uint32_t break_label(ptx_builder *b, const char *doing)
{
    ptx_frame *frame = builder_ready(b, doing) ? innermost_loop(b) : NULL;
    return frame ? frame->end : 0;
}

/* The label where the next iteration starts; in a for, before the step. */
static uint32_t continue_label(ptx_builder *b, const char *doing)
{
    ptx_frame *frame = builder_ready(b, doing) ? innermost_loop(b) : NULL;
    if (!frame || frame->kind == FRAME_LOOP)
        return frame ? frame->again : 0;
    if (!frame->next)
        frame->next = new_label(b);
    return frame->next;
}

/* Defines ptx_NAME, ptx_NAME_if and ptx_NAME_unless: jumps to the label that NAME_label returns. */
#define LOOP_JUMP(name)                                                                                      \
    void ptx_##name(ptx_builder *b)                                                                          \
    {                                                                                                        \
        uint32_t label = name##_label(b, #name);                                                             \
        if (label)                                                                                           \
            jump(b, "bra", label, take_uniform(b));                                                          \
    }                                                                                                        \
    void ptx_##name##_if(ptx_builder *b, ptx_val pred)                                                       \
    {                                                                                                        \
        uint32_t label = name##_label(b, #name "_if");                                                       \
        if (label)                                                                                           \
            jump_if(b, pred, true, "bra", label, take_uniform(b));                                           \
    }                                                                                                        \
    void ptx_##name##_unless(ptx_builder *b, ptx_val pred)                                                   \
    {                                                                                                        \
        uint32_t label = name##_label(b, #name "_unless");                                                   \
        if (label)                                                                                           \
            jump_if(b, pred, false, "bra", label, take_uniform(b));                                          \
    }
LOOP_JUMP(break)
LOOP_JUMP(continue)
