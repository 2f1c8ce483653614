/* Memory traffic of the kernels of flat tensors, by ptxvm's counters, for aligned data in groups of 128: every byte of codes
 * and data moves once, the sectors of a launch are those of its operands, and requests ask for at most 5% more of them. */
#include "test_kernels_parity.h"

#include "formats/ref_spec.h"
#include "test.h"

#include <stdio.h>

enum { TYPES = 4, TILE = 4096, TILES = 8 };
static const qdnnDataType_t data_types[TYPES] = {QDNN_DATA_F32, QDNN_DATA_F16, QDNN_DATA_BF16, QDNN_DATA_F64};
static const char *const type_names[TYPES] = {"f32", "f16", "bf16", "f64"};

static bool moves_elements(const kernel_row *row)
{
    kernel_operation o = kernel_operation_of(row);
    return row->operation_name && kernel_format(row) &&
           (o == KERNEL_QUANTIZE || o == KERNEL_DEQUANTIZE || o == KERNEL_DYNAMIC || o == KERNEL_SCALE) &&
           kernel_format(row)->block == QDNN_BLOCK_NONE;
}

static const kernel_row *row_at(int index)
{
    for (int i = 0; i < kernel_row_count; i++)
        if (moves_elements(&kernel_rows[i]) && index-- == 0)
            return &kernel_rows[i];
    return NULL;
}

static int count(void)
{
    int rows = 0;
    while (row_at(rows))
        rows++;
    return rows * TYPES;
}

static void name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s_%s", row_at(index / TYPES)->name, type_names[index % TYPES]);
}

/* The sectors that all operands take, each aligned. */
static uint64_t least_sectors(const kernel_row *row, const kernel_spec *spec, int64_t n)
{
    kernel_operand operands[QDNN_OPERAND_COUNT];
    uint64_t sectors = 0;
    kernel_operands_of(row, KERNEL_NORMAL(row, spec), &(kernel_problem){.rows = 1, .columns = (uint64_t)n},
                       operands);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        sectors += (operands[i].bytes + 31) / 32;
    return sectors;
}

DEVICE_EACH(KernelSectors, AreThoseOfTheOperands, count, name)
{
    ONLY_PTXVM("counters of sectors");
    const kernel_row *row = row_at(index / TYPES);
    const int64_t n = TILES * TILE;
    kernel_spec spec = kernel_spec_default();
    machine *vm = NULL;
    ptxvm_counters c = {0};
    spec.data = data_types[index % TYPES];
    const parity_trial trial = {.n = n, .kind = DATA_NORMAL, .seed = 1, .counters = &c};
    ptxvm_config config = {.sm = "sm_80", .threads = 1, .counters = PTXVM_COUNTERS_KERNEL};
    REQUIRE(machine_create(&config, &vm) == PTXVM_OK);
    parity_emit_and_run(vm, row, &spec, &trial, 1);
    machine_destroy(vm);
    uint64_t asked = c.total.load.sectors + c.total.store.sectors, least = least_sectors(row, &spec, n);
    CHECK_EQ_U64(c.unique_sectors, least);
    if (asked * 100 > least * 105)
        FAIL("%llu sectors are asked for, %llu is the least", (unsigned long long)asked,
             (unsigned long long)least);
}
