/* Makes instructions from their mnemonics and runs them: see test_lanes.h. */
#include "test_lanes.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *text;
    int value;
} opcodes[] =
    {
#define OPCODE(name) {#name, OP_##name},
#define MOD(name, text)
#include "ptxvm/mods.def"
#undef OPCODE
#undef MOD
},
  mods[] =
      {
#define OPCODE(name)
#define MOD(name, text) {text, M_##name},
#include "ptxvm/mods.def"
#undef OPCODE
#undef MOD
},
  types[] = {
#define X(text, name, bits) {#text, T_##name},
      PVM_TYPES(X)
#undef X
};

#define LOOKUP(table, word, length)                                                                          \
    lookup(table[0].text ? (const void *)table : NULL, sizeof table / sizeof *table, word, length)

static int lookup(const void *table, size_t n, const char *word, size_t length)
{
    const struct {
        const char *text;
        int value;
    } *rows = table;
    for (size_t i = 0; i < n; i++)
        if (strlen(rows[i].text) == length && memcmp(rows[i].text, word, length) == 0)
            return rows[i].value;
    return 0;
}

/* Where each modifier goes, as the parser puts it. */
static pvm_slot slot_of(pvm_opcode op, int mod)
{
    static const struct {
        uint16_t first, last;
        uint8_t slot;
    } ranges[] = {
        {M_rn, M_rs, S_RND},
        {M_ftz, M_ftz, S_FTZ},
        {M_sat, M_satfinite, S_SAT},
        {M_relu, M_relu, S_RELU},
        {M_approx, M_full, S_APPROX},
        {M_eq, M_nan, S_CMP},
        {M_and, M_xor, S_BOOL},
        {M_add, M_add, S_OP},
        {M_min, M_max, S_OP},
        {M_NaN, M_NaN, S_NAN},
        {M_xorsign, M_xorsign, S_XORSIGN},
        {M_abs, M_abs, S_ABS},
        {M_oob, M_oob, S_OOB},
        {M_wide, M_wide, S_HILO},
        {M_cc, M_cc, S_CC},
        {M_f4e, M_subnormal, S_MODE}, /* prmt, shf, bfind, testp */
        {M_l, M_r, S_DIR},
        {M_pack, M_pack, S_SUB},
        {M_po, M_po, S_FLAG},
        {M_shr7, M_shr15, S_SCALE},
        {M_scaled__n2__ue8m0, M_scaled__n2__ue8m0, S_SCALE},
    };
    const bool compares = op == OP_setp || op == OP_set || op == OP_vset || op == OP_vset2 || op == OP_vset4;
    if ((mod == M_lo || mod == M_hi) && !compares)
        return S_HILO;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (mod >= ranges[i].first && mod <= ranges[i].last)
            return ranges[i].slot;
    return S_COUNT;
}

/* The last letter of an opcode. */
static const char *opcode_end(pvm_opcode op)
{
    for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++)
        if (opcodes[i].value == (int)op)
            return opcodes[i].text + strlen(opcodes[i].text) - 1;
    return "";
}

/* "A:h1": the selector of a video operand, A B or D; "N:b": source b negated. */
static bool add_selector(pvm_inst *inst, const char *word, size_t length)
{
    const char *name = opcode_end(inst->op);
    const pvm_slot slot = word[0] == 'A' ? S_ASEL : word[0] == 'B' ? S_BSEL : S_DSEL;
    if (word[0] == 'N') {
        inst->operand[inst->n_results + word[2] - 'a'].negated = true;
        return true;
    }
    if (*name != '2' && *name != '4') {
        inst->mod[slot] = (uint16_t)LOOKUP(mods, word + 2, length - 2);
        return inst->mod[slot] != 0;
    }
    unsigned value = 0;
    for (size_t i = 3; i < length; i++)
        value = slot == S_DSEL ? value | 1u << (word[i] - '0') : value << 3 | (unsigned)(word[i] - '0');
    inst->mod[slot] = (uint16_t)(M_LANES + value);
    return true;
}

static bool add_word(pvm_inst *inst, const char *word, size_t length)
{
    if (length > 2 && word[1] == ':')
        return add_selector(inst, word, length);
    static const pvm_slot type_slots[] = {S_TYPE, S_TYPE2, S_TYPE3, S_TYPE4};
    int type = LOOKUP(types, word, length), mod = LOOKUP(mods, word, length);
    if (type) {
        int k = 0;
        while (k < 3 && inst->mod[type_slots[k]])
            k++;
        inst->mod[type_slots[k]] = (uint16_t)M_TYPE(type);
        return true;
    }
    pvm_slot slot = mod ? slot_of(inst->op, mod) : S_COUNT;
    if (slot == S_COUNT)
        return false;
    inst->mod[slot] = (uint16_t)mod;
    return true;
}

bool lanes_make(lanes_inst *li, const char *mnemonic, const char *shape)
{
    memset(li, 0, sizeof *li);
    const char *colon = strchr(shape, ':');
    li->n_results = (int)(colon - shape);
    li->n_sources = (int)strlen(colon + 1);
    memcpy(li->result, shape, (size_t)li->n_results);
    memcpy(li->source, colon + 1, (size_t)li->n_sources);
    /* The carry flag is a result or source of the function, but not an operand of the instruction. */
    bool writes = strstr(mnemonic, ".cc") != NULL;
    bool reads = strncmp(mnemonic, "addc", 4) == 0 || strncmp(mnemonic, "subc", 4) == 0 ||
                 strncmp(mnemonic, "madc", 4) == 0;
    li->inst.guard = -1;
    li->inst.n_results = li->n_results - writes;
    li->inst.n_operands = li->inst.n_results + li->n_sources - reads;
    li->inst.operand = li->operand;
    size_t length = strcspn(mnemonic, ".");
    li->inst.op = (pvm_opcode)LOOKUP(opcodes, mnemonic, length);
    bool ok = li->inst.op != OP_NONE;
    for (const char *at = mnemonic + length; ok && *at; at += length) {
        at++;
        length = strcspn(at, ".");
        ok = add_word(&li->inst, at, length);
    }
    /* vset has no result type of its own. */
    if (li->inst.op == OP_vset || li->inst.op == OP_vset2 || li->inst.op == OP_vset4) {
        li->inst.mod[S_TYPE3] = li->inst.mod[S_TYPE2];
        li->inst.mod[S_TYPE2] = li->inst.mod[S_TYPE];
        li->inst.mod[S_TYPE] = M_TYPE(T_U32);
    }
    if (!ok)
        FAIL("unknown word in %s", mnemonic);
    return ok;
}

void lanes_set_immediate(lanes_inst *li, int source, uint64_t bits)
{
    li->operand[li->inst.n_results + source].kind = OPERAND_IMM;
    li->operand[li->inst.n_results + source].bits = bits;
}

static int width_of(char kind)
{
    switch (kind | 0x20) {
    case 'b':
        return 1;
    case 'h':
        return 2;
    case 'w':
        return 4;
    default:
        return 8;
    }
}

void lanes_put(uint8_t *reg, char kind, int lane, uint64_t value)
{
    if (kind == 'p') {
        uint32_t mask;
        memcpy(&mask, reg, 4);
        mask = (mask & ~(1u << lane)) | (uint32_t)(value & 1) << lane;
        memcpy(reg, &mask, 4);
    } else
        memcpy(reg + lane * width_of(kind), &value, (size_t)width_of(kind));
}

uint64_t lanes_get(const uint8_t *reg, char kind, int lane)
{
    uint64_t value = 0;
    if (kind == 'p') {
        memcpy(&value, reg, 4);
        return value >> lane & 1;
    }
    memcpy(&value, reg + lane * width_of(kind), (size_t)width_of(kind));
    return value;
}

static bool execute(lanes_inst *li, lanes_level level, void *const *d)
{
    const lane_op op = lanes_find(&li->inst, level);
    if (!op.run)
        return false;
    const void *s[LANES_MAX_SOURCES];
    for (int k = 0; k < LANES_MAX_SOURCES; k++)
        s[k] = li->s[k];
    lanes_run(&op, d, s, &li->inst);
    return true;
}

bool lanes_execute(lanes_inst *li, lanes_level level)
{
    void *d[LANES_MAX_RESULTS];
    for (int k = 0; k < LANES_MAX_RESULTS; k++)
        d[k] = li->d[k];
    return CHECK(execute(li, level, d));
}

static void fill(lanes_inst *li, const uint64_t *sources)
{
    for (int k = 0; k < li->n_sources; k++) {
        if (li->source[k] >= 'A' && li->source[k] <= 'Z')
            lanes_set_immediate(li, k, sources[k]);
        for (int lane = 0; lane < WARP; lane++)
            lanes_put(li->s[k], li->source[k], lane, sources[k]);
    }
}

uint64_t lanes_one(const char *mnemonic, const char *shape, const uint64_t *sources)
{
    lanes_inst li;
    if (!lanes_make(&li, mnemonic, shape))
        return 0;
    fill(&li, sources);
    lanes_execute(&li, LANES_BASELINE);
    return lanes_get(li.d[0], li.result[0], 0);
}

static void check_results(const lanes_inst *li, const lanes_row *row)
{
    for (int k = 0; k < li->n_results; k++)
        for (int lane = 0; lane < WARP; lane += 31)
            CHECK_EQ_U64(lanes_get(li->d[k], li->result[k], lane), row->result[k]);
}

/* Once more with the result in the register of each source of the same width. */
static void check_in_place(lanes_inst *li, const lanes_row *row, lanes_level level)
{
    for (int k = 0; k < li->n_sources; k++) {
        if (li->source[k] != li->result[0])
            continue;
        fill(li, row->source);
        void *d[LANES_MAX_RESULTS] = {li->s[k], li->d[1], li->d[2]};
        CHECK(execute(li, level, d));
        CHECK_EQ_U64(lanes_get(li->s[k], li->result[0], 7), row->result[0]);
    }
}

void lanes_check_rows(const lanes_row *rows, int n)
{
    for (int i = 0; i < n; i++)
        for (lanes_level level = LANES_BASELINE; level <= lanes_best_level(); level++) {
            lanes_inst li;
            test_push_note("%s %s, row %d, level %d", rows[i].mnemonic, rows[i].shape, i, (int)level);
            if (lanes_make(&li, rows[i].mnemonic, rows[i].shape)) {
                fill(&li, rows[i].source);
                if (lanes_execute(&li, level)) {
                    check_results(&li, &rows[i]);
                    check_in_place(&li, &rows[i], level);
                }
            }
            test_pop_note();
        }
}

uint64_t lanes_random(uint64_t *state)
{
    *state += 0x9E3779B97F4A7C15u;
    uint64_t z = *state;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

uint64_t lanes_random_float(uint64_t *state, int bits)
{
    static const uint64_t edges32[] = {0,          0x80000000, 1,          0x807FFFFF, 0x00800000,
                                       0x3F800000, 0xBF800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000,
                                       0xFF800000, 0x7FC00001, 0xFF800001, 0x4B000000, 0x4F000000,
                                       0xCF000000, 0x4F800000, 0x3EFFFFFF};
    uint64_t r = lanes_random(state), pick = lanes_random(state) % 8;
    if (pick == 0) {
        uint64_t edge = edges32[r % (sizeof edges32 / sizeof *edges32)];
        if (bits == 32)
            return edge;
        if (bits == 16)
            return edge >> 16 ^ (edge & 1);
        float f;
        double x;
        uint32_t u = (uint32_t)edge;
        memcpy(&f, &u, 4);
        x = f;
        memcpy(&r, &x, 8);
        return r + lanes_random(state) % 3 - 1;
    }
    if (pick < 4 && bits == 32) /* near one, so that sums cancel */
        return (r & 0x807FFFFF) | (uint64_t)(120 + lanes_random(state) % 16) << 23;
    if (pick < 4 && bits == 64)
        return (r & 0x800FFFFFFFFFFFFF) | (uint64_t)(1016 + lanes_random(state) % 16) << 52;
    return bits == 64 ? r : r & (((uint64_t)1 << bits) - 1);
}
