/* Every function of the table gives the same bits at every level, in every rounding mode. */
#include "ptxvm/lanes/table.h"
#include "test_lanes.h"

#include <fenv.h>
#include <string.h>

static const lane_table *const tables[][2] = {
#ifdef __x86_64__
#define X(group) {&lanes_##group##_baseline, &lanes_##group##_v3},
#else
#define X(group) {&lanes_##group##_baseline, &lanes_##group##_baseline},
#endif
    LANE_GROUPS(X)
#undef X
};

static const char *const group_names[] = {
#define X(group) #group,
    LANE_GROUPS(X)
#undef X
};

static int group_count(void)
{
    return (int)(sizeof tables / sizeof *tables);
}

static void group_name(int index, char *text, size_t size)
{
    strncpy(text, group_names[index], size - 1);
    text[size - 1] = 0;
}

static const struct {
    uint32_t flag;
    uint8_t slot;
    uint16_t mod;
} readable[] = {
    {V_FTZ, S_FTZ, M_ftz},
    {V_SAT, S_SAT, M_sat},
    {V_RELU, S_RELU, M_relu},
    {V_NAN, S_NAN, M_NaN},
    {V_OOB, S_OOB, M_oob},
    {V_ABS, S_ABS, M_abs},
    {V_XORSIGN, S_XORSIGN, M_xorsign},
    {V_SATFINITE, S_SAT, M_satfinite},
    {V_RS, S_RND, M_rs},
};

/* An instruction that leads to the row, with some of the modifiers that the function reads by itself. */
static void make_inst(pvm_inst *inst, pvm_operand *operands, const lane_row *row, uint64_t random, int mode)
{
    static const uint16_t rounding[] = {M_rn, M_rz, M_rm, M_rp}, integral[] = {M_rni, M_rzi, M_rmi, M_rpi};
    memset(inst, 0, sizeof *inst);
    memset(operands, 0, 8 * sizeof *operands);
    inst->op = (pvm_opcode)row->op;
    inst->operand = operands;
    inst->n_results = 1;
    inst->n_operands = row->any & V_THREE && random & 1 ? 4 : row->any & V_THREE ? 3 : 4;
    inst->mod[S_TYPE] = (uint16_t)M_TYPE(row->type);
    inst->mod[S_TYPE2] = row->type2 ? (uint16_t)M_TYPE(row->type2) : 0;
    inst->mod[S_RND] = (row->any | row->flags) & V_INTEGRAL ? integral[mode] : rounding[mode];
    inst->mod[S_CMP] = row->op == OP_vset || row->op == OP_vset2 || row->op == OP_vset4 ? M_lt : 0;
    for (size_t i = 0; i < sizeof readable / sizeof *readable; i++)
        if (row->flags & readable[i].flag || (row->any & readable[i].flag && random >> (8 + i) & 1))
            inst->mod[readable[i].slot] = readable[i].mod;
    operands[4].bits = random >> 20;
}

static void fill_sources(uint8_t source[6][WARP * 8], uint64_t *seed, uint64_t kind)
{
    for (int k = 0; k < 6; k++)
        for (int i = 0; i < WARP * 2; i++) {
            uint64_t r = kind % 3 == 0   ? lanes_random(seed)
                         : kind % 3 == 1 ? lanes_random_float(seed, 32)
                                         : lanes_random_float(seed, 16) << 16 | lanes_random_float(seed, 16);
            uint64_t wide = lanes_random_float(seed, 64);
            memcpy(source[k] + 4 * i, &r, 4);
            if (kind % 4 == 3 && i % 2 == 0)
                memcpy(source[k] + 4 * i, &wide, 8), i++;
        }
}

static void check_row(const lane_row *row, const lane_row *other, int mode, uint64_t *seed)
{
    static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    static _Alignas(64) uint8_t source[6][WARP * 8], result[2][3][WARP * 8];
    pvm_inst inst;
    pvm_operand operands[8];
    const uint64_t random = lanes_random(seed);
    make_inst(&inst, operands, row, random, mode);
    fill_sources(source, seed, random);
    memset(result, 0, sizeof result);
    const void *s[] = {source[0], source[1], source[2], source[3], source[4], source[5]};
    fesetround((row->any | row->flags) & V_INTEGRAL ? FE_TONEAREST : modes[mode]);
    for (int level = 0; level < 2; level++)
        (level ? other : row)
            ->run((void *[]){result[level][0], result[level][1], result[level][2]}, s, &inst);
    fesetround(FE_TONEAREST);
    test_push_note("opcode %d, types %d %d, pick %d, flags %x, mode %d", row->op, row->type, row->type2,
                   row->pick, (unsigned)row->flags, mode);
    CHECK_EQ_MEM(result[1], result[0], sizeof *result);
    test_pop_note();
}

TEST_EACH(LanesLevels, GiveTheSameBits, group_count, group_name)
{
    if (lanes_best_level() == LANES_BASELINE)
        SKIP("this machine has the baseline only");
    uint64_t seed = 1;
    REQUIRE(tables[index][0]->n_rows == tables[index][1]->n_rows);
    for (int r = 0; r < tables[index][0]->n_rows; r++) {
        const lane_row *row = &tables[index][0]->rows[r];
        const bool rounds = row->op == OP_cvt || strcmp(group_names[index], "real") == 0;
        for (int round = 0; round < 4; round++)
            for (int mode = 0; mode < (rounds ? 4 : 1); mode++)
                check_row(row, &tables[index][1]->rows[r], mode, &seed);
    }
}
