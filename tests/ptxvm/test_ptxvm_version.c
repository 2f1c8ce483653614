/* Which PTX ptxvm says it reads. */
#include "test.h"

#include "ptxvm/ptxvm.h"

TEST_CASE(Ptxvm, IsaRange)
{
    CHECK_EQ_I64(ptxvm_oldest_isa, 60);
    CHECK_EQ_I64(ptxvm_newest_isa, 94);
}
