/* Which PTX ptxvm knows. */
#include "ptxvm.h"

const int ptxvm_oldest_isa = 60, ptxvm_newest_isa = 94; /* 10 * major + minor */
