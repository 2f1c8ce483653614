/* Matches one instruction against the rows of isa.def: which form it is or, if none, the most helpful reason.
 * Like ptxas, accepts modifiers in any order; types, layouts and state spaces must be in order. */
#include "front.h"

#include <stdio.h>
#include <string.h>

/* Modifiers that are newer than the instructions that have them. */
static const struct {
    uint16_t mod;
    int version, sm;
} mod_needs[] = {
#define GROUP(name, slot, choices)
#define FORM(op, mods, operands, needs)
#define NEEDS(mod, version, sm) {M_##mod, version, sm},
#include "isa.def"
#undef GROUP
#undef FORM
#undef NEEDS
};

/* How far the best row got; a later stage gives a better message. */
typedef enum {
    STAGE_WORD,    /* a modifier that the row does not have */
    STAGE_MISSING, /* a modifier is missing */
    STAGE_COUNT,   /* number of operands */
    STAGE_OPERAND,
    STAGE_TARGET,
    STAGE_DONE
} stage;

typedef struct attempt {
    stage stage;
    int progress; /* within the stage */
    const form *form;
    int at; /* the word or operand in question */
    int line, column;
    char why[200];
} attempt;

/* ---- modifiers ---- */

/* Slots whose modifiers must be in order. */
static int ordered_class(unsigned slot)
{
    if (slot <= S_STYPE)
        return 1;
    if (slot == S_ALAYOUT || slot == S_BLAYOUT)
        return 2;
    return slot == S_SPACE || slot == S_SPACE2 ? 3 : 0;
}

static bool has_choice(const form_table *t, const form_mod *m, unsigned value)
{
    for (int i = 0; i < m->count; i++)
        if (t->choices[m->first + i] == value)
            return true;
    return false;
}

/* The modifier of the row that a word matches; -1 for none. `used` marks those matched or skipped. */
static int find_mod(const form_table *t, const form *f, unsigned value, uint32_t *used)
{
    unsigned blocked = 0;
    for (int i = 0; i < f->n_mods; i++) {
        const form_mod *m = &t->mods[f->first_mod + i];
        int class = ordered_class(m->slot);
        if (*used >> i & 1 || m->implied)
            continue;
        if (!has_choice(t, m, value)) {
            if (class && !m->optional)
                blocked |= 1u << class;
            continue;
        }
        if (class && blocked >> class & 1)
            continue;
        for (int k = 0; k < i && class; k++) /* a skipped optional modifier is no longer available */
            if (ordered_class(t->mods[f->first_mod + k].slot) == class)
                *used |= 1u << k;
        *used |= 1u << i;
        return i;
    }
    return -1;
}

static bool group_entered(const form_table *t, const form *f, uint32_t matched, int group)
{
    for (int i = 0; i < f->n_mods; i++)
        if (t->mods[f->first_mod + i].optional == group && matched >> i & 1)
            return true;
    return false;
}

/* The first required modifier that is missing; -1 for none. */
static int missing_mod(const form_table *t, const form *f, uint32_t matched)
{
    for (int i = 0; i < f->n_mods; i++) {
        const form_mod *m = &t->mods[f->first_mod + i];
        bool needed = !m->implied && (!m->optional || group_entered(t, f, matched, m->optional));
        if (needed && !(matched >> i & 1))
            return i;
    }
    return -1;
}

static bool match_words(parser *p, const form_table *t, const form *f, pvm_inst *inst, attempt *a)
{
    uint32_t used = 0, matched = 0;
    memset(inst->mod, 0, sizeof inst->mod);
    for (int w = 0; w < p->n_words; w++) {
        int i = find_mod(t, f, p->word_values[w], &used);
        if (i < 0) {
            a->stage = STAGE_WORD;
            a->progress = a->at = w;
            return false;
        }
        matched |= 1u << i;
        inst->mod[t->mods[f->first_mod + i].slot] = p->word_values[w];
    }
    for (int i = 0; i < f->n_mods; i++)
        if (t->mods[f->first_mod + i].implied)
            inst->mod[t->mods[f->first_mod + i].slot] = t->choices[t->mods[f->first_mod + i].first];
    a->stage = STAGE_MISSING;
    a->progress =
        f->n_mods ? 32 - f->n_mods : 32; /* of several rows that lack one, the simplest explains best */
    a->at = missing_mod(t, f, matched);
    return a->at < 0;
}

/* ---- operands ---- */

static bool fail_operand(attempt *a, stage s, int index, const raw_operand *raw, const char *why)
{
    a->stage = s;
    a->progress = a->at = index;
    a->line = raw ? raw->line : 0;
    a->column = raw ? raw->column : 0;
    if (why != a->why)
        snprintf(a->why, sizeof a->why, "%s", why);
    return false;
}

/* Pairs operands as written with those of the row: link[i] is the row's operand for the i-th one. */
static bool match_operands(parser *p, const form_table *t, const form *f, const pvm_inst *inst, attempt *a,
                           int *link)
{
    int r = 0;
    for (int o = 0; o < f->n_operands; o++) {
        const form_operand *want = &t->operands[f->first_operand + o];
        bool joined = r > 0 && p->raw[r - 1].paired, paired = want->flags & IS_PAIRED;
        if (want->flags & IS_HINT && !inst->mod[S_HINT])
            continue;
        if (want->flags & IS_OPTIONAL && (r == p->n_raw || paired != joined))
            continue;
        if (r == p->n_raw)
            return fail_operand(a, STAGE_COUNT, r, NULL, "too few operands");
        if (paired != joined)
            return fail_operand(a, STAGE_COUNT, r, &p->raw[r],
                                paired ? "two results joined by '|' are needed"
                                       : "has only one result: '|' is not allowed here");
        if (p->raw[r].within != !!(want->flags & IS_WITHIN))
            return fail_operand(a, STAGE_COUNT, r, &p->raw[r],
                                p->raw[r].within ? "this address takes no coordinates"
                                                 : "coordinates are needed in the brackets: [a, {b, c}]");
        pvm_type type = form_operand_type(want, inst);
        const char *misfit = operand_misfit(p, &p->raw[r], want, inst, type, a->why, sizeof a->why);
        if (misfit)
            return fail_operand(a, STAGE_OPERAND, r, &p->raw[r], misfit);
        link[r++] = o;
    }
    return r == p->n_raw ||
           fail_operand(a, STAGE_COUNT, r, &p->raw[r],
                        p->raw[r].within ? "this address takes no coordinates" : "too many operands");
}

/* .b0 .h1 of scalar video operands; lanes of SIMD ones. */
static unsigned selector_value(parser *p, const raw_operand *raw, bool is_result)
{
    const char *name = pvm_opcode_name(p->op), *s = raw->selector;
    char last = name[strlen(name) - 1];
    int lanes = last == '2' ? 2 : last == '4' ? 4 : 0, n = raw->selector_length - 1;
    char letter = lanes == 2 ? 'h' : 'b';
    unsigned value = 0;
    bool ok = n >= 1 && (lanes ? s[0] == letter && n <= lanes : n == 1 && (s[0] == 'b' || s[0] == 'h'));
    for (int i = 1; i <= n && ok; i++) {
        int digit = s[i] - '0', limit = lanes && !is_result ? 2 * lanes : lanes ? lanes : s[0] == 'b' ? 4 : 2;
        ok = digit >= 0 && digit < limit;
        value = is_result && lanes ? value | 1u << (digit & 7) : value << 3 | (unsigned)(digit & 7);
    }
    if (!ok || (lanes && !is_result && n != lanes))
        parse_fail_at(p, raw->line, raw->column, PVM_ERROR_SYNTAX, "%s has no selector .%.*s here", name,
                      raw->selector_length, s);
    return lanes ? M_LANES + value : (s[0] == 'b' ? M_b0 : M_h0) + value;
}

static void take_selectors(parser *p, const form_table *t, const form *f, const int *link, pvm_inst *inst)
{
    int sources = 0;
    for (int r = 0; r < p->n_raw; r++) {
        bool is_result = t->operands[f->first_operand + link[r]].flags & IS_RESULT;
        pvm_slot slot = is_result ? S_DSEL : (pvm_slot)(S_ASEL + sources++);
        if (p->raw[r].selector)
            inst->mod[slot] = (uint16_t)selector_value(p, &p->raw[r], is_result);
    }
}

static void make_operands(parser *p, const form_table *t, const form *f, const int *link, pvm_inst *inst)
{
    inst->operand = p->n_raw ? parse_alloc(p, (size_t)p->n_raw * sizeof *inst->operand) : NULL;
    for (int r = 0; r < p->n_raw; r++) {
        const form_operand *want = &t->operands[f->first_operand + link[r]];
        if (want->flags & IS_TARGETS) {
            inst->targets = p->raw[r].symbol->targets;
            continue;
        }
        operand_make(p, &p->raw[r], want, inst, form_operand_type(want, inst),
                     &inst->operand[inst->n_operands++]);
        inst->n_results += (want->flags & IS_RESULT) != 0;
    }
}

/* ---- targets ---- */

bool target_meets(pvm_target target, const char *needs)
{
    if (!*needs)
        return true;
    for (const char *s = needs; *s; s += strspn(s, " ")) {
        int sm = 0;
        for (; *s >= '0' && *s <= '9'; s++)
            sm = 10 * sm + (*s - '0');
        char suffix = *s == 'a' || *s == 'f' ? *s++ : 0;
        if (suffix == 'a'   ? target.sm == sm && target.suffix == 'a'
            : suffix == 'f' ? target_family(target.sm) == target_family(sm) &&
                                  (target.sm >= sm || target.sm == 101) && target.suffix
                            : target.sm >= sm)
            return true;
        if (*s && *s != ' ')
            return false;
    }
    return false;
}

static bool word_allowed(const pvm_module *m, unsigned word, char *why, size_t size)
{
    for (size_t i = 0; i < sizeof mod_needs / sizeof mod_needs[0]; i++)
        if (word == mod_needs[i].mod &&
            (m->version < mod_needs[i].version || m->target.sm < mod_needs[i].sm)) {
            snprintf(why, size, "with %s needs .version %d.%d and sm_%d or later",
                     pvm_mod_text((pvm_mod)word), mod_needs[i].version / 10, mod_needs[i].version % 10,
                     mod_needs[i].sm);
            return false;
        }
    return true;
}

static bool match_target(const parser *p, const form *f, attempt *a)
{
    const pvm_module *m = p->module;
    const char *needs = f->needs;
    a->stage = STAGE_TARGET;
    a->progress = 0;
    if (strcmp(needs, "old") == 0) { /* warp instructions without .sync */
        snprintf(a->why, sizeof a->why, "needs .sync on sm_70 and later from .version 6.4 on");
        return m->target.sm < 70 || m->version < 64;
    }
    if (m->version < f->version) {
        snprintf(a->why, sizeof a->why, "needs .version %d.%d or later", f->version / 10, f->version % 10);
        return false;
    }
    if (!target_meets(m->target, needs)) {
        snprintf(a->why, sizeof a->why, "needs .target sm_%s%s", needs,
                 strpbrk(needs, "af ") ? "" : " or later");
        return false;
    }
    for (int w = 0; w < p->n_words; w++)
        if (p->op != OP_cp && /* cp.async accepted .shared::cta earlier than others */
            !word_allowed(m, p->word_values[w], a->why, sizeof a->why))
            return false;
    return true;
}

/* ---- messages ---- */

static void list_choices(const form_table *t, const form_mod *m, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < m->count && i < 6 && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? " " : "",
                                 pvm_mod_text((pvm_mod)t->choices[m->first + i]));
    if (m->count > 6 && used < size)
        snprintf(text + used, size - used, " ...");
}

static _Noreturn void fail_word(parser *p, const attempt *a)
{
    const token *w = &p->words[a->at];
    const char *name = pvm_opcode_name(p->op);
    if (p->word_values[a->at])
        parse_fail_at(p, w->line, w->column, PVM_ERROR_SYNTAX, "%s cannot have .%.*s here", name, w->length,
                      w->text);
    const char *near = word_suggestion(w->text, w->length);
    parse_fail_at(p, w->line, w->column, PVM_ERROR_SYNTAX,
                  near ? "unknown modifier .%.*s: did you mean .%s?" : "unknown modifier .%.*s",
                  w->length > 60 ? 60 : w->length, w->text, near);
}

static _Noreturn void explain(parser *p, const form_table *t, const attempt *a)
{
    const char *name = pvm_opcode_name(p->op);
    char text[120];
    int line = a->line ? a->line : p->opcode.line, column = a->line ? a->column : p->opcode.column;
    switch (a->stage) {
    case STAGE_WORD:
        fail_word(p, a);
    case STAGE_MISSING:
        list_choices(t, &t->mods[a->form->first_mod + a->at], text, sizeof text);
        parse_fail_at(p, line, column, PVM_ERROR_SYNTAX, "%s lacks a modifier: %s", name, text);
    case STAGE_COUNT:
        parse_fail_at(p, line, column, PVM_ERROR_SYNTAX, "%s: %s; it is %s%s  %s", name, a->why, name,
                      a->form->mods, a->form->operands);
    case STAGE_OPERAND:
        parse_fail_at(p, line, column, PVM_ERROR_SYNTAX, "%s: operand %d %s", name, a->at + 1, a->why);
    default:
        parse_fail_at(p, line, column, PVM_ERROR_TARGET, "%s: this form %s", name, a->why);
    }
}

static void keep_better(attempt *best, const attempt *a)
{
    if (!best->form || a->stage > best->stage || (a->stage == best->stage && a->progress > best->progress))
        *best = *a;
}

static bool is_bits_word(unsigned value)
{
    return value == M_TYPE(T_B16) || value == M_TYPE(T_B32) || value == M_TYPE(T_B64) ||
           value == M_TYPE(T_B128);
}

/* Loads, stores and mov of bits accept one register in braces, {%r1}, instead of the register: Triton writes
 * this. */
static void open_single_braces(parser *p)
{
    bool takes = p->op == OP_ld || p->op == OP_ldu || p->op == OP_st;
    for (int i = 0; p->op == OP_mov && i < p->n_words; i++)
        takes |= is_bits_word(p->word_values[i]);
    for (int i = 0; takes && i < p->n_raw; i++) {
        raw_operand *raw = &p->raw[i];
        const raw_operand *only = &p->elements[raw->first];
        if (raw->kind == RAW_VECTOR && raw->count == 1 && !raw->within && only->kind != RAW_SINK)
            *raw = *only;
    }
}

void match_instruction(parser *p, pvm_inst *inst)
{
    open_single_braces(p);
    const form_table *t = form_table_get();
    attempt best = {.stage = STAGE_WORD};
    for (int i = t->first_of[p->op]; i < t->first_of[p->op + 1]; i++) {
        attempt a = {.form = &t->forms[i]};
        int link[MAX_RAW];
        if (match_words(p, t, a.form, inst, &a) && match_operands(p, t, a.form, inst, &a, link) &&
            match_target(p, a.form, &a)) {
            inst->form = i;
            take_selectors(p, t, a.form, link, inst);
            make_operands(p, t, a.form, link, inst);
            check_rules(p, inst);
            return;
        }
        keep_better(&best, &a);
    }
    if (!best.form)
        parse_fail_at(p, p->opcode.line, p->opcode.column, PVM_ERROR_UNSUPPORTED,
                      "%s is not supported by ptxvm yet", pvm_opcode_name(p->op));
    explain(p, t, &best);
}
