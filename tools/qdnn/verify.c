/* The command verify: compares the device with host_ref, weight by weight. */
#include "tools/qdnn/tool.h"

#include <stdlib.h>
#include <string.h>

typedef struct tally {
    int matched; /* by --only, quantized or not */
    int weights, wrong, problems;
    uint64_t elements;
} tally;

/* Reports the first element that differs. */
static bool same(const tensor *t, const float *actual, const float *expected)
{
    int64_t n = t->rows * t->columns;
    if (n == 0 || memcmp(actual, expected, (size_t)n * sizeof(float)) == 0)
        return true;
    int64_t differ = 0, first = -1;
    for (int64_t i = 0; i < n; i++) {
        if (memcmp(&actual[i], &expected[i], sizeof(float)) == 0)
            continue;
        first = first < 0 ? i : first;
        differ++;
    }
    tool_fail(
        "%s: %lld of %lld elements differ; the first at [%lld, %lld]: the device has %08x, host_ref %08x",
        t->name, (long long)differ, (long long)n, (long long)(first / t->columns),
        (long long)(first % t->columns), (unsigned)ref_f32_to_bits(actual[first]),
        (unsigned)ref_f32_to_bits(expected[first]));
    return false;
}

static int verify_weight(device *d, const qdnnFileWeight_t *w, tally *sum)
{
    tensor t;
    int status = tensor_open(&t, w);
    if (status != TOOL_OK) {
        sum->problems++;
        return TOOL_OK; /* already reported; go on with the other weights */
    }
    size_t bytes = (size_t)(t.rows * t.columns) * sizeof(float);
    float *actual = tool_alloc(bytes), *expected = tool_alloc(bytes);
    status = actual && expected ? device_dequantize(d, &t, actual) : TOOL_FAILED;
    if (status == TOOL_OK) {
        reference_dequantize(&t, expected);
        sum->weights++;
        sum->elements += (uint64_t)(t.rows * t.columns);
        sum->wrong += !same(&t, actual, expected);
    }
    free(actual);
    free(expected);
    tensor_close(&t);
    return status;
}

/* Whether a weight is selected. */
static int wanted(const options *o, const qdnnFileWeight_t *w, bool *yes)
{
    *yes = true;
    return o->only ? regex_matches(o->only, w->name, yes) : TOOL_OK;
}

static uint64_t total_bytes(qdnnFile_t file, const options *o, int count)
{
    uint64_t sum = 0;
    qdnnFileWeight_t w;
    bool yes;
    for (int i = 0; i < count; i++)
        if (!qdnnGetFileWeight(file, i, &w) && wanted(o, &w, &yes) == TOOL_OK && yes && w.quantized)
            sum += w.bytes;
    return sum;
}

static int verify_all(qdnnFile_t file, const options *o, device *d, tally *sum)
{
    qdnnFileInfo_t info;
    int status = TOOL_OK;
    qdnnGetFileInfo(file, &info);
    progress p = progress_begin(total_bytes(file, o, info.weights));
    for (int i = 0; i < info.weights && status == TOOL_OK; i++) {
        qdnnFileWeight_t w;
        bool yes;
        qdnnGetFileWeight(file, i, &w);
        status = wanted(o, &w, &yes);
        sum->matched += status == TOOL_OK && yes;
        if (status != TOOL_OK || !yes || !w.quantized)
            continue;
        progress_step(&p, 0, w.name);
        status = verify_weight(d, &w, sum);
        progress_step(&p, w.bytes, w.name);
    }
    progress_end(&p);
    return status;
}

int command_verify(const options *o)
{
    qdnnFile_t file;
    device d = {0};
    tally sum = {0};
    int status = open_file(o->in, &file);
    if (status != TOOL_OK)
        return status;
    status = device_open(&d, o->device);
    if (status == TOOL_OK)
        status = verify_all(file, o, &d, &sum);
    if (status == TOOL_OK && o->only && !sum.matched)
        status = only_matched_nothing(o);
    if (status == TOOL_OK)
        printf("%d quantized weights, %llu elements: %s\n", sum.weights, (unsigned long long)sum.elements,
               sum.wrong ? "NOT the same on the device and by host_ref"
                         : "the same bits on the device and by host_ref");
    if (status == TOOL_OK && sum.wrong)
        status = tool_fail("%d weights differ", sum.wrong);
    if (status == TOOL_OK && sum.problems)
        status = tool_fail("%d weights could not be checked", sum.problems);
    device_close(&d);
    qdnnCloseFile(file);
    return status;
}
