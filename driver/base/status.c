/* The version and the names of the statuses. */
#include <qdnn/qdnn.h>

#define STATUS(name, number) _Static_assert(QDNN_STATUS_##name == number, "the number of a status is frozen");
#include "driver/base/status.def"
#undef STATUS

int qdnnGetVersion(void)
{
    return QDNN_VERSION;
}

const char *qdnnGetErrorString(qdnnStatus_t status)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {
#define STATUS(name, number) {number, "QDNN_STATUS_" #name},
#include "driver/base/status.def"
#undef STATUS
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].number == (int)status)
            return names[i].name;
    return "unknown status";
}
