/* Compiles isa.def for matching, once: each row's modifiers and operands become small structs in fixed
 * tables. The notation is explained at the top of isa.def. */
#include "front.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct form_row {
    pvm_opcode op;
    const char *mods, *operands, *needs;
} form_row;

static const form_row rows[] = {
#define GROUP(name, slot, choices)
#define FORM(op, mods, operands, needs) {OP_##op, mods, operands, needs},
#include "isa.def"
#undef FORM
};

/* Named lists of choices, with the slot that each goes to. */
static const struct {
    const char *name;
    pvm_slot slot;
    const char *choices;
} groups[] = {
#undef GROUP
#define GROUP(name, slot, choices) {#name, S_##slot, choices},
#define FORM(op, mods, operands, needs)
#include "isa.def"
#undef GROUP
#undef FORM
};

/* The slot of a modifier that is alone in its place in a row. */
static const struct {
    pvm_slot slot;
    const char *words;
} default_slot_words[] = {
    {S_RND, "rn rz rm rp rni rzi rmi rpi rna rs"},
    {S_FTZ, "ftz"},
    {S_SAT, "sat satfinite"},
    {S_RELU, "relu"},
    {S_APPROX, "approx full"},
    {S_NAN, "NaN"},
    {S_XORSIGN, "xorsign"},
    {S_ABS, "abs"},
    {S_OOB, "oob"},
    {S_HILO, "lo hi wide"},
    {S_CC, "cc"},
    {S_SPACE, "global shared local param const param::entry param::func shared::cta shared::cluster"},
    {S_VEC, "v2 v4 v8"},
    {S_SEM, "weak volatile relaxed acquire release acq_rel sc"},
    {S_SCOPE, "cta cluster gpu sys gl"},
    {S_CACHE, "ca cg cs lu cv wb wt"},
    {S_NC, "nc"},
    {S_EVICT, "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate"},
    {S_EVICT2, "L2::evict_normal L2::evict_first L2::evict_last L2::evict_unchanged"},
    {S_PREFETCH, "L2::64B L2::128B L2::256B"},
    {S_HINT, "L2::cache_hint"},
    {S_OP, "and or xor not popc add inc dec min max exch cas any all ballot"},
    {S_MODE,
     "up down bfly idx f4e b4e rc8 ecl ecr rc16 clamp wrap shiftamt finite infinite number notanumber normal "
     "subnormal L1 L2"},
    {S_DIR, "l r to"},
    {S_SYNC, "sync"},
    {S_ALIGNED, "aligned"},
    {S_UNI, "uni"},
    {S_NUM, "x1 x2 x4 x8 x16 x32 x64 x128"},
    {S_TRANS, "trans"},
    {S_SCALE, "block_scale scaled::n2::ue8m0 shr7 shr15"},
    {S_SCALEVEC, "scale_vec::1X scale_vec::2X scale_vec::4X block16 block32"},
    {S_KIND, "kind::f8f6f4 kind::mxf8f6f4 kind::mxf4 kind::mxf4nvf4"},
    {S_SHAPE,
     "m8n8 m16n16 m8n16 m16n8 m8n8k4 m8n8k16 m8n8k32 m8n8k128 m16n8k4 m16n8k8 m16n8k16 m16n8k32 m16n8k64 "
     "m16n8k128 m16n8k256 m16n16k16 m32n8k16 m8n32k16 m16n16k8 1d 2d 3d 4d 5d 32x32b 16x64b 16x128b 16x256b "
     "16x32bx2 128x256b 4x256b 128x128b 64x128b 32x128b"},
    {S_FLAG, "po noftz"},
};

static const char *const slot_names[S_COUNT] = {
    [S_TYPE] = "TYPE",         [S_TYPE2] = "TYPE2",     [S_TYPE3] = "TYPE3",     [S_TYPE4] = "TYPE4",
    [S_STYPE] = "STYPE",       [S_CMP] = "CMP",         [S_BOOL] = "BOOL",       [S_SPACE] = "SPACE",
    [S_SPACE2] = "SPACE2",     [S_SEM] = "SEM",         [S_SCOPE] = "SCOPE",     [S_OP] = "OP",
    [S_MODE] = "MODE",         [S_ALAYOUT] = "ALAYOUT", [S_BLAYOUT] = "BLAYOUT", [S_KIND] = "KIND",
    [S_FRAG] = "FRAG",         [S_SUB] = "SUB",         [S_FLAG] = "FLAG",       [S_FLAG2] = "FLAG2",
    [S_FLAG3] = "FLAG3",       [S_EVICT] = "EVICT",     [S_EVICT2] = "EVICT2",   [S_SAT] = "SAT",
    [S_CACHE] = "CACHE",       [S_HILO] = "HILO",       [S_SCALE] = "SCALE",     [S_UNI] = "UNI",
    [S_PREFETCH] = "PREFETCH", [S_NUM] = "NUM",
};

enum {
    N_ROWS = sizeof rows / sizeof rows[0],
    MAX_MODS = N_ROWS * 8,
    MAX_OPERANDS = N_ROWS * 6,
    MAX_CHOICES = N_ROWS * 24
};

static form forms[N_ROWS];
static form_mod mods[MAX_MODS];
static form_operand operands[MAX_OPERANDS];
static uint16_t choices[MAX_CHOICES];
static uint16_t first_of[OP_COUNT + 1];
static int n_mods, n_operands, n_choices;
static char problem[160];
static form_table table;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void complain(const form *f, const char *what, const char *where)
{
    if (!problem[0])
        snprintf(problem, sizeof problem, "isa.def: %s%s: %s '%.40s'", pvm_opcode_name(f->op), f->mods, what,
                 where);
}

static int word_length(const char *text)
{
    return (int)strcspn(text, ".{}()|= ");
}

static bool same_word(const char *text, int length, const char *word)
{
    return strncmp(text, word, (size_t)length) == 0 && word[length] == 0;
}

/* The slot of each word, from the lists above; 0 for none, else the slot plus one. */
static uint8_t default_slots[M_COUNT];

static void find_homes(void)
{
    for (size_t i = 0; i < sizeof default_slot_words / sizeof default_slot_words[0]; i++)
        for (const char *s = default_slot_words[i].words; *s; s += strspn(s, " ")) {
            int length = (int)strcspn(s, " ");
            unsigned word = word_find(s, length);
            if (word && word < M_COUNT && !default_slots[word])
                default_slots[word] = (uint8_t)(default_slot_words[i].slot + 1);
            s += length;
        }
}

/* -1 if the word has none: it is a type, or its slot is always named. */
static int default_slot_of(const char *text, int length)
{
    unsigned word = word_find(text, length);
    return word < M_COUNT ? default_slots[word] - 1 : -1;
}

static int slot_by_name(const char *text, int length)
{
    for (int i = 0; i < S_COUNT; i++)
        if (slot_names[i] && same_word(text, length, slot_names[i]))
            return i;
    return -1;
}

static void add_choice(const form *f, const char *text, int length)
{
    unsigned value = word_find(text, length);
    if (!value || n_choices >= MAX_CHOICES) {
        complain(f, "unknown word", text);
        return;
    }
    choices[n_choices++] = (uint16_t)value;
}

/* "a|b|c", each a word or the name of a group. Returns the slot that they imply, -1 for types. */
static int add_choices(const form *f, const char **at)
{
    int slot = -1;
    for (bool more = true; more; more = **at == '|' && (*at)++) {
        int length = word_length(*at);
        const char *list = NULL;
        for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
            if (same_word(*at, length, groups[i].name)) {
                list = groups[i].choices;
                if (groups[i].slot != S_TYPE)
                    slot = (int)groups[i].slot;
            }
        if (list)
            add_choices(f, &list);
        else {
            add_choice(f, *at, length);
            slot = slot < 0 ? default_slot_of(*at, length) : slot;
        }
        *at += length;
    }
    return slot;
}

/* One element after its dot: "[SLOT=]choices". */
static void add_mod(form *f, const char **at, int optional, bool implied, int *n_types)
{
    if (n_mods >= MAX_MODS) {
        complain(f, "too many modifiers", *at);
        return;
    }
    form_mod *m = &mods[n_mods++];
    *m = (form_mod){.optional = (uint8_t)optional, .implied = implied, .first = (uint16_t)n_choices};
    int length = word_length(*at), named = -1;
    if ((*at)[length] == '=') {
        named = slot_by_name(*at, length);
        if (named < 0)
            complain(f, "unknown slot", *at);
        *at += length + 1;
    }
    int slot = add_choices(f, at);
    m->count = (uint16_t)(n_choices - m->first);
    if (named < 0 && slot < 0) {
        if (m->count && !MOD_IS_TYPE(choices[m->first]))
            complain(f, "no slot for", *at);
        slot = S_TYPE + (*n_types)++;
    }
    m->slot = (uint8_t)(named >= 0 ? named : slot);
    if (named >= S_TYPE && named <= S_TYPE4)
        *n_types = named - S_TYPE + 1;
    f->n_mods++;
}

static void compile_mods(form *f)
{
    int optional = 0, n_optional = 0, n_types = 0;
    f->first_mod = (uint16_t)n_mods;
    for (const char *s = f->mods; *s;) {
        char c = *s++;
        if (c == '{')
            optional = ++n_optional;
        else if (c == '}')
            optional = 0;
        else if (c == '.')
            add_mod(f, &s, optional, false, &n_types);
        else if (c == '(') {
            add_mod(f, &s, 0, true, &n_types);
            s += *s == ')';
        } else {
            complain(f, "cannot read", s - 1);
            return;
        }
    }
}

static const struct {
    char letter;
    uint32_t flags;
} kinds[] = {
    {'d', TAKES_REG | IS_RESULT},
    {'D', TAKES_REG | IS_RESULT | TAKES_SINK},
    {'a', TAKES_REG | TAKES_IMM},
    {'b', TAKES_REG | TAKES_IMM},
    {'c', TAKES_REG | TAKES_IMM},
    {'e', TAKES_REG | TAKES_IMM},
    {'r', TAKES_REG},
    {'i', TAKES_IMM},
    {'q', TAKES_REG | TAKES_IMM | TAKES_SREG},
    {'s', TAKES_REG | TAKES_IMM | TAKES_SREG | TAKES_SYMBOL},
    {'y', TAKES_REG | TAKES_IMM | TAKES_SYMBOL},
    {'p', TAKES_REG | TAKES_IMM | TAKES_NOT},
    {'x', TAKES_REG | TAKES_IMM | TAKES_SELECTOR | TAKES_MINUS},
    {'X', TAKES_REG | IS_RESULT | TAKES_SELECTOR},
    {'h', TAKES_REG | TAKES_IMM | IS_HINT},
    {'l', IS_LABEL},
    {'t', IS_TARGETS},
    {'k', TAKES_REG | TAKES_IMM | IS_WITHIN},
};

static uint8_t operand_type(form *f, const char *text, int length)
{
    static const struct {
        const char *word;
        uint8_t type;
    } derived[] = {{"T", TYPE_SLOT + S_TYPE},
                   {"T2", TYPE_SLOT + S_TYPE2},
                   {"T3", TYPE_SLOT + S_TYPE3},
                   {"T4", TYPE_SLOT + S_TYPE4},
                   {"W", TYPE_WIDE},
                   {"DOT", TYPE_DOT}};
    for (size_t i = 0; i < sizeof derived / sizeof derived[0]; i++)
        if (same_word(text, length, derived[i].word))
            return derived[i].type;
    pvm_type type = type_find(text, length);
    if (type == T_NONE)
        complain(f, "unknown type", text);
    return (uint8_t)type;
}

/* "[a]", "[a:SPACE2]", "[a:shared]". */
static const char *compile_address(form *f, form_operand *o, const char *s)
{
    static const char *const spaces[] = {[SPACE_GLOBAL] = "global",
                                         [SPACE_SHARED] = "shared",
                                         [SPACE_LOCAL] = "local",
                                         [SPACE_TENSOR] = "tensor"};
    o->flags |= IS_ADDRESS;
    o->space_slot = S_SPACE;
    s += strcspn(s, ":]");
    if (*s == ':') {
        int n = (int)strcspn(++s, "]");
        if (same_word(s, n, "SPACE2"))
            o->space_slot = S_SPACE2;
        else if (same_word(s, n, "generic")) /* a slot that no instruction with addresses has */
            o->space_slot = S_STYPE;
        else
            for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
                if (spaces[i] && same_word(s, n, spaces[i]))
                    o->space = (uint8_t)i;
        if (o->space_slot == S_SPACE && !o->space)
            complain(f, "unknown space", s);
        s += n;
    }
    return s + 1;
}

/* "4", "V", "D", "R", "N/2" */
static int8_t vector_count(const char *s)
{
    if (*s == 'V')
        return COUNT_VEC;
    if (*s == 'D')
        return COUNT_DIM;
    if (*s == 'R')
        return COUNT_FRAGMENT;
    return *s == 'N' ? s[2] == '2' ? COUNT_HALF_N : COUNT_QUARTER_N : (int8_t)atoi(s);
}

/* "d:f32", "a[4]:T", "d[V]:>T", "i:u32(0..15)?" */
static const char *compile_value(form *f, form_operand *o, const char *s)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].letter == *s)
            o->flags |= kinds[i].flags;
    if (o->flags & TAKES_NOT)
        o->type = T_PRED;
    s++;
    if (*s == '[') {
        o->count = vector_count(s + 1);
        s += strcspn(s, "]") + 1;
    }
    if (*s == ':') {
        s++;
        if (*s == '>') {
            o->flags |= TAKES_WIDER;
            s++;
        }
        int n = (int)strcspn(s, ",|?(_ ");
        while (n > 0 && s[n] == '_' && s[n + 1] && !strchr(",|?( ", s[n + 1])) /* b6x16_p32 */
            n += 1 + (int)strcspn(s + n + 1, ",|?(_ ");
        o->type = operand_type(f, s, n);
        s += n;
    }
    if (*s == '(') {
        o->flags |= IS_RANGED;
        o->lo = (int16_t)atoi(s + 1);
        s = strstr(s, "..") + 2;
        o->hi = (int16_t)atoi(s);
        s += strcspn(s, ")") + 1;
    }
    return s;
}

static void compile_operands(form *f)
{
    bool paired = false;
    f->first_operand = (uint16_t)n_operands;
    for (const char *s = f->operands; *s;) {
        if (n_operands >= MAX_OPERANDS) {
            complain(f, "too many operands", s);
            return;
        }
        form_operand *o = &operands[n_operands++];
        *o = (form_operand){.flags = paired ? IS_PAIRED : 0};
        s = *s == '[' ? compile_address(f, o, s) : compile_value(f, o, s);
        for (; *s == '?' || *s == '_'; s++)
            o->flags |= *s == '?' ? IS_OPTIONAL : TAKES_SINK;
        f->n_operands++;
        if (!(o->flags & (IS_OPTIONAL | IS_HINT)))
            f->min_operands++;
        paired = *s == '|';
        if (*s && *s != ',' && *s != '|')
            complain(f, "cannot read", s);
        s += strspn(s, ",| ");
    }
}

/* Rows by opcode; within one opcode, in the order of isa.def. */
static void sort_rows(const form_row **sorted)
{
    uint16_t at[OP_COUNT + 1];
    for (int i = 0; i < N_ROWS; i++)
        first_of[rows[i].op + 1]++;
    for (int op = 0; op < OP_COUNT; op++)
        first_of[op + 1] = (uint16_t)(first_of[op + 1] + first_of[op]);
    memcpy(at, first_of, sizeof at);
    for (int i = 0; i < N_ROWS; i++)
        sorted[at[rows[i].op]++] = &rows[i];
}

static void compile_all(void)
{
    static const form_row *sorted[N_ROWS];
    find_homes();
    sort_rows(sorted);
    for (int i = 0; i < N_ROWS; i++) {
        form *f = &forms[i];
        *f = (form){.op = sorted[i]->op,
                    .mods = sorted[i]->mods,
                    .operands = sorted[i]->operands,
                    .needs = sorted[i]->needs};
        char *rest;
        long major = strtol(f->needs, &rest, 10);
        f->version = (int)(10 * major + strtol(rest + (*rest == '.'), &rest, 10));
        f->needs = rest + strspn(rest, " ");
        compile_mods(f);
        compile_operands(f);
    }
    table = (form_table){forms, N_ROWS, mods, operands, choices, first_of};
}

const form_table *form_table_get(void)
{
    pthread_once(&once, compile_all);
    return &table;
}

const char *form_table_problem(void)
{
    form_table_get();
    return problem[0] ? problem : NULL;
}
