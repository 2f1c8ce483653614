/* When asynchronous work takes effect: a choice of the seed, the same in every run. */
#include "launch.h"
#include "ops_common.h"

ops_landing ops_landing_of(const vm_warp *warp, uint64_t number)
{
    const vm_block *block = warp->block;
    uint64_t seed = block->launch->vm->config.seed;
    if (!seed)
        return LANDING_LATE;
    uint64_t state =
        seed ^ (block->linear_index * WARP + (uint64_t)warp->index) * UINT64_C(0xd1342543de82ef95);
    state += number * UINT64_C(0x632be59bd9b4e019);
    return (ops_landing)(vm_random(&state) % LANDINGS);
}
