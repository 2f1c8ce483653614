/* Which PTX ptxvm says it reads. */
#include "support/environment.h"
#include "test.h"

#include <string.h>

#include "ptxvm/ptxvm.h"

TEST_CASE(Ptxvm, IsaRange)
{
    CHECK_EQ_I64(ptxvm_oldest_isa, 60);
    CHECK_EQ_I64(ptxvm_newest_isa, 94);
}

static const struct {
    const char *name, *setting, *version;
    ptxvm_status status;
    const char *error;
} settings[] = {
    {"none", "PTXVM_NEWEST_ISA=", "9.5", PTXVM_ERROR_UNSUPPORTED_VERSION,
     ".version 9.5 is later than 9.4, the newest that ptxvm knows (PTXVM_NEWEST_ISA=9.5 accepts it anyway)"},
    {"newest", "PTXVM_NEWEST_ISA=", "9.4", PTXVM_OK, NULL},
    {"later", "PTXVM_NEWEST_ISA=9.5", "9.5", PTXVM_OK, NULL},
    {"later_still", "PTXVM_NEWEST_ISA=9.5", "9.6", PTXVM_ERROR_UNSUPPORTED_VERSION, "later than 9.5"},
    {"major", "PTXVM_NEWEST_ISA=10.2", "10.2", PTXVM_OK, NULL},
    {"earlier_changes_nothing", "PTXVM_NEWEST_ISA=8.0", "9.4", PTXVM_OK, NULL},
    {"no_version", "PTXVM_NEWEST_ISA=later", "9.4", PTXVM_ERROR_UNSUPPORTED_VERSION,
     "not a version like 9.6"},
    {"two_digits", "PTXVM_NEWEST_ISA=9.55", "9.4", PTXVM_ERROR_UNSUPPORTED_VERSION, "not a version like 9.6"},
};

TEST_ROWS(Ptxvm, NewestIsaIsASetting, settings)
{
    ptxvm *vm;
    ptxvm_module *module;
    char text[128];
    snprintf(text, sizeof text,
             ".version %s\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n",
             settings[index].version);
    REQUIRE(ptxvm_create(NULL, &vm) == PTXVM_OK);
    environment_set(settings[index].setting);
    CHECK_EQ_I64(ptxvm_module_load(vm, text, strlen(text), &module), settings[index].status);
    environment_restore();
    if (settings[index].error)
        CHECK_HAS(ptxvm_last_error(vm), settings[index].error);
    ptxvm_destroy(vm);
}
