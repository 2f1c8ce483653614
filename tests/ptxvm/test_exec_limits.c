/* Limits of ptxvm at the limit and one beyond: counts of mbarriers, threads of blocks, places of mappings. (The limits
 * of a module are in test_hostile_limits.c.) */
#include "ptxvm/exec/memory.h"
#include "test.h"
#include "test_exec.h"

/* ---- instructions ---- */

#define KERNEL(body)                                                                                         \
    EXEC_HEADER ".visible .entry k(.param .u64 out) { .shared .align 8 .b64 b; .reg .b32 r<4>; .reg .b64 "   \
                "d<4>;\n" body "\nret; }"

static const struct {
    const char *name, *text;
    ptxvm_status status;
} runs[] = {
    {"MbarrierOf0", KERNEL("mbarrier.init.shared.b64 [b], 0;"), PTXVM_ERROR_EXECUTION},
    {"MbarrierOf1", KERNEL("mbarrier.init.shared.b64 [b], 1;"), PTXVM_OK},
    {"MbarrierOf1048575", KERNEL("mbarrier.init.shared.b64 [b], 1048575;"), PTXVM_OK},
    {"MbarrierOf1048576", KERNEL("mbarrier.init.shared.b64 [b], 1048576;"), PTXVM_ERROR_EXECUTION},
    {"MbarrierOf4294967295", KERNEL("mbarrier.init.shared.b64 [b], 4294967295;"), PTXVM_ERROR_EXECUTION},
    {"LastBytesOfShared", KERNEL("mov.u32 r1, b; st.shared.u32 [r1+4], 1;"), PTXVM_OK},
    {"BehindShared", KERNEL("mov.u32 r1, b; st.shared.u32 [r1+8], 1;"), PTXVM_ERROR_ADDRESS},
    {"BeforeShared", KERNEL("mov.u32 r1, b; st.shared.u32 [r1+-4], 1;"), PTXVM_ERROR_ADDRESS},
};

TEST_ROWS(ExecLimits, Instructions, runs)
{
    char error[1024];
    ptxvm_status status = exec_failing(&(ptxvm_config){.threads = 1, .checks = PTXVM_CHECK_MEMORY},
                                       runs[index].text, 1, 1, error, sizeof error);
    if (!CHECK_EQ_I64(status, runs[index].status))
        FAIL("%s", error);
}

/* ---- mappings ---- */

enum { SIZE = 4096 };
#define AT UINT64_C(0x700000000000)

/* Between [AT - SIZE, AT) and [AT + SIZE, AT + 2 SIZE) there is room for SIZE bytes. */
static const struct {
    const char *name;
    uint64_t address, extent;
    ptxvm_status status;
} mappings[] = {
    {"FillsTheGap", AT, SIZE, PTXVM_OK},
    {"OneByteIntoTheNext", AT, SIZE + 1, PTXVM_ERROR_ARGUMENT},
    {"OneByteIntoTheLast", AT - 1, SIZE, PTXVM_ERROR_ARGUMENT},
    {"ShiftedIntoTheNext", AT + 1, SIZE, PTXVM_ERROR_ARGUMENT},
    {"EndsWhereTheNextBegins", AT + SIZE - 1, 1, PTXVM_OK},
    {"LastByteInTheNext", AT + SIZE, 1, PTXVM_ERROR_ARGUMENT},
    {"FirstByteBehindTheLast", AT, 1, PTXVM_OK},
    {"AcrossBoth", AT - SIZE, 3 * SIZE, PTXVM_ERROR_ARGUMENT},
    {"OverTheNext", AT, 3 * SIZE, PTXVM_ERROR_ARGUMENT},
    {"BehindTheNext", AT + 2 * SIZE, SIZE, PTXVM_OK},
    {"BeforeTheFirst", AT - 2 * SIZE, SIZE, PTXVM_OK},
    {"BeforeTheFirstByOneTooMany", AT - 2 * SIZE, SIZE + 1, PTXVM_ERROR_ARGUMENT},
    {"ToTheEndOfTheAddresses", UINT64_MAX - SIZE + 1, SIZE - 1, PTXVM_OK},
    {"PastTheEndOfTheAddresses", UINT64_MAX - SIZE + 1, SIZE + 1, PTXVM_ERROR_ARGUMENT},
};

TEST_ROWS(ExecLimits, Mappings, mappings)
{
    static uint8_t bytes[3 * SIZE];
    vm_memory *memory = vm_memory_create(1 << 20);
    REQUIRE(memory != NULL);
    CHECK_EQ_I64(vm_memory_map(memory, AT - SIZE, bytes, SIZE, SIZE), PTXVM_OK);
    CHECK_EQ_I64(vm_memory_map(memory, AT + SIZE, bytes, SIZE, SIZE), PTXVM_OK);
    CHECK_EQ_I64(vm_memory_map(memory, mappings[index].address, bytes, 1, mappings[index].extent),
                 mappings[index].status);
    CHECK_EQ_I64(memory->n_allocs, mappings[index].status == PTXVM_OK ? 3 : 2);
    vm_memory_destroy(memory);
}

/* ---- places ---- */

/* Freed places are used again, the lowest first, whatever was allocated in between. */
TEST_CASE(ExecLimits, TheLowestGapThatIsLargeEnough)
{
    enum { GRAIN = PTXVM_PADDING, N = 40 };
    vm_memory *memory = vm_memory_create(1 << 20);
    uint64_t at[N], place;
    for (int i = 0; i < N; i++) {
        CHECK_EQ_I64(vm_memory_alloc(memory, GRAIN * (uint64_t)(1 + i % 3), 1, 0, &at[i]), PTXVM_OK);
        CHECK(i == 0 || at[i] > at[i - 1]);
    }
    CHECK_EQ_I64(vm_memory_free(memory, at[7]), PTXVM_OK); /* 2 units */
    CHECK_EQ_I64(vm_memory_free(memory, at[3]), PTXVM_OK); /* 1 unit */
    CHECK_EQ_I64(vm_memory_alloc(memory, 2 * GRAIN, 1, 0, &place), PTXVM_OK);
    CHECK_EQ_U64(place, at[7]);
    CHECK_EQ_I64(vm_memory_alloc(memory, GRAIN, 1, 0, &place), PTXVM_OK);
    CHECK_EQ_U64(place, at[3]);
    CHECK_EQ_I64(vm_memory_alloc(memory, GRAIN, 1, 0, &place), PTXVM_OK);
    CHECK(place > at[N - 1]);
    vm_memory_destroy(memory);
}
