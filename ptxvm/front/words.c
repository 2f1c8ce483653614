/* The fixed words of PTX: opcodes, modifiers and types, special registers. Looked up in hash tables that are
 * built once. */
#include "front.h"

#include <pthread.h>
#include <string.h>

static const char *const opcode_names[OP_COUNT] = {
    "",
#define OPCODE(name) #name,
#define MOD(name, text)
#include "../mods.def"
#undef OPCODE
#undef MOD
};

static const char *const mod_texts[M_COUNT] = {
    "",
#define OPCODE(name)
#define MOD(name, text) "." text,
#include "../mods.def"
#undef OPCODE
#undef MOD
};

static const char *const type_texts[T_COUNT] = {"",
#define X(text, name, bits) "." #text,
                                                PVM_TYPES(X)
#undef X
};

static const uint8_t type_sizes[T_COUNT] = {0,
#define X(text, name, bits) bits,
                                            PVM_TYPES(X)
#undef X
};

/* clang-format off */
static const sreg_info sregs[] = {
    {"tid", SREG_tid, T_U32, 4, 0, 10, 0}, {"ntid", SREG_ntid, T_U32, 4, 0, 10, 0},
    {"ctaid", SREG_ctaid, T_U32, 4, 0, 10, 0}, {"nctaid", SREG_nctaid, T_U32, 4, 0, 10, 0},
    {"laneid", SREG_laneid, T_U32, 0, 0, 13, 0}, {"warpid", SREG_warpid, T_U32, 0, 0, 13, 0},
    {"nwarpid", SREG_nwarpid, T_U32, 0, 0, 20, 0}, {"smid", SREG_smid, T_U32, 0, 0, 13, 0},
    {"nsmid", SREG_nsmid, T_U32, 0, 0, 20, 0}, {"gridid", SREG_gridid, T_U64, 0, 0, 10, 0},
    {"clusterid", SREG_clusterid, T_U32, 4, 0, 78, 90}, {"nclusterid", SREG_nclusterid, T_U32, 4, 0, 78, 90},
    {"cluster_ctaid", SREG_cluster_ctaid, T_U32, 4, 0, 78, 90},
    {"cluster_nctaid", SREG_cluster_nctaid, T_U32, 4, 0, 78, 90},
    {"cluster_ctarank", SREG_cluster_ctarank, T_U32, 0, 0, 78, 90},
    {"cluster_nctarank", SREG_cluster_nctarank, T_U32, 0, 0, 78, 90},
    {"is_explicit_cluster", SREG_is_explicit_cluster, T_PRED, 0, 0, 78, 90},
    {"lanemask_eq", SREG_lanemask_eq, T_U32, 0, 0, 20, 0}, {"lanemask_le", SREG_lanemask_le, T_U32, 0, 0, 20, 0},
    {"lanemask_lt", SREG_lanemask_lt, T_U32, 0, 0, 20, 0}, {"lanemask_ge", SREG_lanemask_ge, T_U32, 0, 0, 20, 0},
    {"lanemask_gt", SREG_lanemask_gt, T_U32, 0, 0, 20, 0},
    {"clock", SREG_clock, T_U32, 0, 0, 10, 0}, {"clock_hi", SREG_clock_hi, T_U32, 0, 0, 50, 0},
    {"clock64", SREG_clock64, T_U64, 0, 0, 20, 0}, {"globaltimer", SREG_globaltimer, T_U64, 0, 0, 31, 0},
    {"globaltimer_lo", SREG_globaltimer_lo, T_U32, 0, 0, 31, 0},
    {"globaltimer_hi", SREG_globaltimer_hi, T_U32, 0, 0, 31, 0},
#define PM(n) {"pm" #n, SREG_pm, T_U32, 0, n, 13, 0}, {"pm" #n "_64", SREG_pm64, T_U64, 0, n, 40, 0}
    PM(0), PM(1), PM(2), PM(3), PM(4), PM(5), PM(6), PM(7),
#define ENV(n) {"envreg" #n, SREG_envreg, T_B32, 0, n, 21, 0}
    ENV(0), ENV(1), ENV(2), ENV(3), ENV(4), ENV(5), ENV(6), ENV(7), ENV(8), ENV(9), ENV(10), ENV(11), ENV(12),
    ENV(13), ENV(14), ENV(15), ENV(16), ENV(17), ENV(18), ENV(19), ENV(20), ENV(21), ENV(22), ENV(23), ENV(24),
    ENV(25), ENV(26), ENV(27), ENV(28), ENV(29), ENV(30), ENV(31),
    {"reserved_smem_offset_begin", SREG_reserved_smem_offset_begin, T_B32, 0, 0, 76, 80},
    {"reserved_smem_offset_end", SREG_reserved_smem_offset_end, T_B32, 0, 0, 76, 80},
    {"reserved_smem_offset_cap", SREG_reserved_smem_offset_cap, T_B32, 0, 0, 76, 80},
    {"reserved_smem_offset_0", SREG_reserved_smem_offset, T_B32, 0, 0, 76, 80},
    {"reserved_smem_offset_1", SREG_reserved_smem_offset, T_B32, 0, 1, 76, 80},
    {"total_smem_size", SREG_total_smem_size, T_U32, 0, 0, 41, 0},
    {"aggr_smem_size", SREG_aggr_smem_size, T_U32, 0, 0, 81, 90},
    {"dynamic_smem_size", SREG_dynamic_smem_size, T_U32, 0, 0, 41, 0},
    {"current_graph_exec", SREG_current_graph_exec, T_U64, 0, 0, 80, 50},
};
/* clang-format on */

enum { SLOTS = 1024, N_SREGS = sizeof sregs / sizeof sregs[0] };

/* A closed hash table of words; value 0 marks an empty slot. */
typedef struct word_table {
    const char *text[SLOTS];
    uint16_t value[SLOTS];
} word_table;

static word_table opcodes, words, sreg_words;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint32_t hash_text(const char *text, int length)
{
    uint32_t h = 2166136261u;
    for (int i = 0; i < length; i++)
        h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h ^ h >> 15;
}

static void add_word(word_table *table, const char *text, unsigned value)
{
    uint32_t slot = hash_text(text, (int)strlen(text)) % SLOTS;
    while (table->value[slot])
        slot = (slot + 1) % SLOTS;
    table->text[slot] = text;
    table->value[slot] = (uint16_t)value;
}

static unsigned lookup(const word_table *table, const char *text, int length)
{
    for (uint32_t slot = hash_text(text, length) % SLOTS; table->value[slot]; slot = (slot + 1) % SLOTS)
        if (strncmp(table->text[slot], text, (size_t)length) == 0 && table->text[slot][length] == 0)
            return table->value[slot];
    return 0;
}

static void make_tables(void)
{
    for (int i = 1; i < OP_COUNT; i++)
        add_word(&opcodes, opcode_names[i], (unsigned)i);
    /* Types first: .b1 as a modifier is a type; selectors are looked up elsewhere. */
    for (int i = 1; i < T_COUNT; i++)
        add_word(&words, type_texts[i] + 1, (unsigned)M_TYPE(i));
    for (int i = 1; i < M_COUNT; i++)
        if (!lookup(&words, mod_texts[i] + 1, (int)strlen(mod_texts[i] + 1)))
            add_word(&words, mod_texts[i] + 1, (unsigned)i);
    for (int i = 0; i < N_SREGS; i++)
        add_word(&sreg_words, sregs[i].name, (unsigned)i + 1);
}

pvm_opcode opcode_find(const char *text, int length)
{
    pthread_once(&once, make_tables);
    return (pvm_opcode)lookup(&opcodes, text, length);
}

unsigned word_find(const char *text, int length)
{
    pthread_once(&once, make_tables);
    return lookup(&words, text, length);
}

pvm_type type_find(const char *text, int length)
{
    return MOD_TYPE(word_find(text, length));
}

const sreg_info *sreg_find(const char *text, int length)
{
    pthread_once(&once, make_tables);
    unsigned i = length > 1 && text[0] == '%' ? lookup(&sreg_words, text + 1, length - 1) : 0;
    return i ? &sregs[i - 1] : NULL;
}

const char *pvm_opcode_name(pvm_opcode op)
{
    return op > OP_NONE && op < OP_COUNT ? opcode_names[op] : "?";
}

const char *pvm_type_name(pvm_type type)
{
    return type > T_NONE && type < T_COUNT ? type_texts[type] : "?";
}

int pvm_type_bits(pvm_type type)
{
    return type > T_NONE && type < T_COUNT ? type_sizes[type] : 0;
}

const char *pvm_mod_text(pvm_mod mod)
{
    unsigned m = (unsigned)mod;
    if (MOD_IS_TYPE(m))
        return pvm_type_name(MOD_TYPE(m));
    return m > M_NONE && m < M_COUNT ? mod_texts[m] : "?";
}

static int number_after(const char **text, char letter)
{
    int value = 0;
    if (**text != letter)
        return -1;
    for (++*text; **text >= '0' && **text <= '9'; ++*text)
        value = 10 * value + (**text - '0');
    return value;
}

bool pvm_shape_of(unsigned mod, int *m, int *n, int *k)
{
    const char *text = mod && mod < M_COUNT ? mod_texts[mod] + 1 : "";
    *m = number_after(&text, 'm');
    *n = number_after(&text, 'n');
    *k = number_after(&text, 'k');
    return *m > 0 && *n > 0 && *k > 0 && !*text;
}

/* ---- misspelled words ---- */

static int min3(int a, int b, int c)
{
    int m = a < b ? a : b;
    return m < c ? m : c;
}

/* The edit distance from a word of `length` characters to another; long words are not considered. */
static int distance(const char *a, int length, const char *b)
{
    int row[40], n = (int)strlen(b);
    if (length >= 40 || n >= 40)
        return 99;
    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (int i = 1; i <= length; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int changed = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = min3(changed, row[j] + 1, row[j - 1] + 1);
        }
    }
    return row[n];
}

static const char *nearest(const word_table *table, const char *text, int length)
{
    const char *best = NULL;
    int least = length <= 3 ? 2 : 3;
    for (int i = 0; i < SLOTS; i++) {
        int d = table->value[i] ? distance(text, length, table->text[i]) : 99;
        if (d < least || (d == least && best && strcmp(table->text[i], best) < 0)) {
            least = d;
            best = table->text[i];
        }
    }
    return best;
}

const char *opcode_suggestion(const char *text, int length)
{
    return nearest(&opcodes, text, length);
}

const char *word_suggestion(const char *text, int length)
{
    return nearest(&words, text, length);
}

pvm_space pvm_mod_space(unsigned mod)
{
    static const uint8_t spaces[M_COUNT] = {
        [M_global] = SPACE_GLOBAL, [M_const] = SPACE_CONST,        [M_local] = SPACE_LOCAL,
        [M_param] = SPACE_PARAM,   [M_param__entry] = SPACE_PARAM, [M_param__func] = SPACE_PARAM,
        [M_shared] = SPACE_SHARED, [M_shared__cta] = SPACE_SHARED, [M_shared__cluster] = SPACE_SHARED,
    };
    return mod < M_COUNT ? (pvm_space)spaces[mod] : SPACE_NONE;
}
