/* Calls that are made to fail, as requested by PTXVM_FAULT: "cuMemAlloc_v2:3=2,cuLaunchKernel:1=700". */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#define MAX_FAULTS 64

static struct {
    int function;
    unsigned long nth, calls;
    CUresult code;
} faults[MAX_FAULTS];
static int n_faults;
static bool is_read, is_good;

static int function_number(const char *name, size_t length)
{
    for (int i = 0; i < FN_COUNT; i++)
        if (strlen(cuda_function_names[i]) == length && memcmp(cuda_function_names[i], name, length) == 0)
            return i;
    return -1;
}

/* One "name:nth=code"; *text moves past it. */
static bool parse_one(const char **text)
{
    const char *colon = strchr(*text, ':');
    if (!colon || n_faults == MAX_FAULTS)
        return false;
    int function = function_number(*text, (size_t)(colon - *text));
    char *end;
    unsigned long nth = strtoul(colon + 1, &end, 10);
    if (function < 0 || nth == 0 || *end != '=')
        return false;
    unsigned long code = strtoul(end + 1, &end, 10);
    if (code == 0 || code > 999 || (*end && *end != ','))
        return false;
    faults[n_faults].function = function;
    faults[n_faults].nth = nth;
    faults[n_faults].calls = 0;
    faults[n_faults++].code = (CUresult)code;
    *text = end + (*end == ',');
    return true;
}

void faults_forget(void)
{
    is_read = false;
    n_faults = 0;
}

bool faults_read(void)
{
    if (is_read)
        return is_good;
    const char *text = settings_fault();
    is_read = is_good = true;
    n_faults = 0;
    while (text && *text && is_good)
        is_good = parse_one(&text);
    if (!is_good) {
        n_faults = 0;
        cuda_log(CUDA_ERROR_INVALID_VALUE, "PTXVM_FAULT: %s is not of the form name:nth=code", text);
    }
    return is_good;
}

CUresult faults_next(int function)
{
    faults_read();
    CUresult result = CUDA_SUCCESS;
    for (int i = 0; i < n_faults; i++)
        if (faults[i].function == function && ++faults[i].calls == faults[i].nth)
            result = cuda_log(faults[i].code, "%s: call %lu fails with code %d, as PTXVM_FAULT says",
                              cuda_function_names[function], faults[i].nth, (int)faults[i].code);
    return result;
}
