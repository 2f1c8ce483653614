/* A module: its header, its directives, and the entry point of the parser. */
#include "front.h"
#include "ptxvm/sm.h"

#include <stdio.h>
#include <string.h>

/* ---- targets ---- */

/* The first .version that has the target; a and f targets have their own. */
static int target_version(pvm_target t)
{
    const sm_target *known = pvm_sm_target(t.sm);
    return !known            ? 0
           : t.suffix == 'a' ? known->a_version
           : t.suffix == 'f' ? known->f_version
                             : known->version;
}

static bool target_from_text(const char *text, int length, pvm_target *target)
{
    int i = 0, sm = 0;
    if (length > 3 && memcmp(text, "sm_", 3) == 0)
        i = 3;
    else if (length > 8 && memcmp(text, "compute_", 8) == 0)
        i = 8;
    for (; i < length && text[i] >= '0' && text[i] <= '9' && sm < 1000; i++)
        sm = 10 * sm + (text[i] - '0');
    char suffix = i < length ? text[i++] : 0;
    if (sm == 0 || i != length || (suffix && suffix != 'a' && suffix != 'f'))
        return false;
    *target = (pvm_target){sm, suffix};
    return target_version(*target) != 0;
}

bool pvm_target_from_name(const char *name, pvm_target *target)
{
    return target_from_text(name, (int)strlen(name), target);
}

int target_family(int sm)
{
    const sm_target *known = pvm_sm_target(sm);
    return known ? known->family : sm;
}

bool pvm_target_runs_on(pvm_target target, pvm_target device)
{
    if (target.suffix == 'a')
        return target.sm == device.sm;
    if (target.suffix == 'f')
        return target_family(target.sm) == target_family(device.sm) && target.sm <= device.sm;
    return target.sm <= device.sm;
}

/* ---- the header ---- */

static void parse_version(parser *p)
{
    token t = p->tok;
    int major = 0, minor = 0, i = 0;
    next_token(p);
    t = p->tok;
    for (; i < t.length && t.text[i] >= '0' && t.text[i] <= '9' && major < 100; i++)
        major = 10 * major + (t.text[i] - '0');
    bool ok = t.kind == TOKEN_F64 && i > 0 && i + 1 < t.length && t.text[i] == '.';
    for (i++; i < t.length && ok && minor < 100; i++) {
        ok = t.text[i] >= '0' && t.text[i] <= '9';
        minor = 10 * minor + (t.text[i] - '0');
    }
    if (!ok)
        parse_fail(p, PVM_ERROR_SYNTAX, ".version needs a number like 7.8");
    if (p->has_version)
        parse_fail(p, PVM_ERROR_SYNTAX, ".version is given twice");
    int newest = ptxvm_accepted_isa();
    if (newest < 0)
        parse_fail(p, PVM_ERROR_UNSUPPORTED_VERSION, "PTXVM_NEWEST_ISA is not a version like 9.6");
    if (major > newest / 10 || (major == newest / 10 && minor > newest % 10))
        parse_fail(p, PVM_ERROR_UNSUPPORTED_VERSION,
                   ".version %d.%d is later than %d.%d, the newest that ptxvm knows (PTXVM_NEWEST_ISA=%d.%d "
                   "accepts it anyway)",
                   major, minor, newest / 10, newest % 10, major, minor);
    p->module->version = 10 * major + (minor > 9 ? 9 : minor);
    p->has_version = true;
    next_token(p);
}

static void parse_sm(parser *p, const token *t)
{
    pvm_module *m = p->module;
    pvm_target target;
    if (!target_from_text(t->text, t->length, &target))
        parse_fail(p, PVM_ERROR_TARGET, "unknown target %.*s", t->length > 60 ? 60 : t->length, t->text);
    int version = target_version(target);
    if (m->version < version)
        parse_fail(p, PVM_ERROR_TARGET, "%.*s needs .version %d.%d or later", t->length, t->text,
                   version / 10, version % 10);
    m->target = target;
}

/* .target sm_90a, debug ... */
static void parse_target(parser *p)
{
    static const char *const options[] = {"texmode_unified", "texmode_independent"};
    if (!p->has_version || p->has_target)
        parse_fail(p, PVM_ERROR_SYNTAX,
                   p->has_target ? ".target is given twice" : "a module starts with .version");
    do {
        next_token(p);
        token t = p->tok;
        bool option = false;
        for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
            option |= at_name(p, options[i]);
        if (t.kind != TOKEN_NAME)
            parse_fail(p, PVM_ERROR_SYNTAX, ".target needs a name like sm_90");
        if (at_name(p, "debug"))
            p->module->has_debug = true;
        else if (!option)
            parse_sm(p, &t);
        next_token(p);
    } while (at_punct(p, ','));
    if (p->module->target.sm == 0)
        parse_fail(p, PVM_ERROR_TARGET, ".target names no SM");
    p->has_target = true;
}

static void parse_address_size(parser *p)
{
    next_token(p);
    uint64_t bits = p->tok.kind == TOKEN_INT ? p->tok.value : 0;
    if (bits == 32)
        parse_fail(p, PVM_ERROR_UNSUPPORTED, "32-bit addresses are not supported");
    if (bits != 64)
        parse_fail(p, PVM_ERROR_SYNTAX, ".address_size is 32 or 64");
    if (p->has_address_size)
        parse_fail(p, PVM_ERROR_SYNTAX, ".address_size is given twice");
    p->has_address_size = true;
    next_token(p);
}

/* ---- directives ---- */

static const struct {
    const char *word;
    void (*parse)(parser *p);
    bool early; /* allowed before .version and .target */
} directives[] = {
    {"version", parse_version, true},
    {"target", parse_target, true},
    {"address_size", parse_address_size, false},
    {"file", parse_file, false},
    {"loc", parse_loc, false},
    {"section", parse_section, false},
    {"pragma", parse_pragma, false},
    {"alias", parse_alias, false},
};

static bool parse_directive(parser *p)
{
    for (size_t i = 0; i < sizeof directives / sizeof directives[0]; i++)
        if (at_word(p, directives[i].word)) {
            if (!directives[i].early && !p->has_target)
                parse_fail(p, PVM_ERROR_SYNTAX, "a module starts with .version and .target");
            directives[i].parse(p);
            return true;
        }
    return false;
}

/* One of .visible, .extern, .weak, .common, and .align before the state space. */
static linkage parse_linkage(parser *p)
{
    linkage link = {0};
    if (accept_word(p, "visible"))
        link.is_visible = true;
    else if (accept_word(p, "extern"))
        link.is_extern = true;
    else if (accept_word(p, "weak"))
        link.is_weak = true;
    else if (accept_word(p, "common"))
        link.is_common = true;
    if (at_word(p, "align"))
        link.align = parse_align(p);
    return link;
}

static void parse_statement(parser *p)
{
    if (p->tok.kind == TOKEN_WORD && parse_directive(p))
        return;
    if (!p->has_target)
        parse_fail(p, PVM_ERROR_SYNTAX, "a module starts with .version and .target");
    if (p->tok.kind != TOKEN_WORD)
        parse_fail(p, PVM_ERROR_SYNTAX, "'%.*s' is not allowed outside a function",
                   p->tok.length > 40 ? 40 : p->tok.length, p->tok.text);
    linkage link = parse_linkage(p);
    pvm_space space;
    if (at_word(p, "entry") || at_word(p, "func"))
        parse_function(p, link);
    else if (at_word(p, "tex"))
        parse_fail(p, PVM_ERROR_UNSUPPORTED, "textures are not supported by ptxvm yet");
    else if (p->tok.kind == TOKEN_WORD && space_find(&p->tok, &space) && space != SPACE_PARAM &&
             space != SPACE_REG && space != SPACE_LOCAL) {
        next_token(p);
        parse_variables(p, space, link);
    } else
        parse_fail(p, PVM_ERROR_SYNTAX, "unknown directive '.%.*s'", p->tok.length > 40 ? 40 : p->tok.length,
                   p->tok.text);
}

/* Not inlined: none of its variables may live across the setjmp below. */
__attribute__((noinline)) static void parse_module(parser *p)
{
    scope_open(p);
    p->depth = 0;
    next_token(p);
    while (p->tok.kind != TOKEN_END)
        parse_statement(p);
    if (!p->has_target)
        parse_fail(p, PVM_ERROR_SYNTAX, "a module starts with .version and .target");
    p->depth = 1;
    scope_close(p);
}

static pvm_module *out_of_memory(pvm_error *error, pvm_arena *arena)
{
    arena_destroy(arena);
    *error = (pvm_error){.kind = PVM_ERROR_MEMORY, .message = "out of memory"};
    return NULL;
}

static pvm_module *text_too_long(pvm_error *error, const uint64_t *limits)
{
    *error = (pvm_error){.kind = PVM_ERROR_UNSUPPORTED, .line = 1, .column = 1};
    snprintf(error->message, sizeof error->message, "more than %llu %s: the limit is %s",
             (unsigned long long)limits[PTXVM_LIMIT_TEXT], ptxvm_limit_what(PTXVM_LIMIT_TEXT),
             ptxvm_limit_name(PTXVM_LIMIT_TEXT));
    return NULL;
}

pvm_module *pvm_module_parse_with(const char *text, size_t length, const pvm_allocator *allocator,
                                  const uint64_t *limits, pvm_error *error)
{
    while (length && !text[length - 1]) /* a terminating zero, as written by ptxvm-ptxas */
        length--;
    if (length > limits[PTXVM_LIMIT_TEXT])
        return text_too_long(error, limits);
    pvm_arena *arena = arena_create(allocator);
    parser *p = arena ? arena_alloc(arena, sizeof *p) : NULL;
    char *copy = p ? arena_alloc(arena, length + 1) : NULL;
    pvm_module *module = copy ? arena_alloc(arena, sizeof *module) : NULL;
    if (!module)
        return out_of_memory(error, arena);
    if (length)
        memcpy(copy, text, length);
    memcpy(p->limits, limits, sizeof p->limits);
    *error = (pvm_error){.kind = PVM_OK};
    *module = (pvm_module){.text = copy, .text_length = length, .arena = arena, .address_bits = 64};
    p->module = module;
    p->arena = arena;
    p->error = error;
    p->text = p->at = p->line_start = copy;
    p->end = copy + length;
    p->line = 1;
    p->epoch = 1;
    if (setjmp(p->failed)) {
        arena_destroy(arena);
        return NULL;
    }
    parse_module(p);
    return module;
}

pvm_module *pvm_module_parse(const char *text, size_t length, pvm_error *error)
{
    uint64_t limits[PTXVM_LIMITS] = {0};
    *error = (pvm_error){.kind = PVM_ERROR_UNSUPPORTED, .line = 1, .column = 1};
    if (!ptxvm_limits_read(limits, error->message, sizeof error->message))
        return NULL;
    return pvm_module_parse_with(text, length, NULL, limits, error);
}

void pvm_module_free(pvm_module *module)
{
    if (module)
        arena_destroy(module->arena);
}
