/* gpu_report FOLDER [--tests FILE] [--side N] [--quick]: compares, measures the device named by QDNN_DEVICE and writes the
 * report. gpu_report --facts: describes the device on one line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "tools/gpu_report/report.h"
#include "tools/tool.h"

const char tool_program[] = "gpu_report";

static report the_report;

static int usage(void)
{
    fprintf(stderr,
            "usage: gpu_report FOLDER [--tests FILE] [--side N] [--quick]   (N: a multiple of 256; 4096, or "
            "512 on ptxvm; quick: each call once)\n");
    return 2;
}

static bool parse(int argc, char **argv, report *r)
{
    for (int i = 2; i < argc; i += 2) {
        if (!strcmp(argv[i], "--quick")) {
            r->is_quick = true;
            i--;
            continue;
        }
        if (i + 1 == argc)
            return false;
        if (!strcmp(argv[i], "--tests"))
            r->tests = argv[i + 1];
        else if (!strcmp(argv[i], "--side"))
            r->side = atoll(argv[i + 1]);
        else
            return false;
    }
    return argc >= 2 && r->side >= 0 && r->side % 256 == 0;
}

static int fail(void)
{
    char why[512];
    qdnnGetLastErrorString(why, sizeof why);
    fprintf(stderr, "gpu_report: %s\n", why);
    return 1;
}

int main(int argc, char **argv)
{
    DEFAULT_ENVIRONMENT();
    report *r = &the_report;
    bool facts = argc == 2 && !strcmp(argv[1], "--facts");
    if (!facts && !parse(argc, argv, r))
        return usage();
    vm_counters_open();
    r->device.size = sizeof r->device;
    if (qdnnCreate(&r->handle) || qdnnGetDeviceInfo(r->handle, &r->device))
        return fail();
    r->counted = r->device.kind == QDNN_DEVICE_PTXVM;
    if (facts) {
        printf("%s, compute capability %d.%d, CUDA %d.%d\n", r->device.name, r->device.smMajor,
               r->device.smMinor, r->device.driverVersion / 1000, r->device.driverVersion % 1000 / 10);
        qdnnDestroy(r->handle);
        vm_counters_close();
        return 0;
    }
    if (!r->side)
        r->side = r->counted ? 512 : 4096;
    fprintf(stderr, "measuring on %s\n", r->device.name);
    report_measure(r);
    bool ok = report_write(r, argv[1]);
    qdnnDestroy(r->handle);
    vm_counters_close();
    if (ok)
        printf("%s/report.md, report.json and shares.svg: the report of %s\n", argv[1], r->device.name);
    if (report_wrong(r))
        fprintf(stderr, "gpu_report: %d calls are wrong; the report names them\n", report_wrong(r));
    return ok && !report_wrong(r) ? 0 : 1;
}
