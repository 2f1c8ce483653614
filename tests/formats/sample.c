/* The sample; the full build does not need it. */
#include "formats/sample.h"

#include "kernels/formats/format.h"

#include <string.h>

#ifdef QDNN_TEST_FULL
static const bool full = true;
#else
static const bool full = false;
#endif

/* Every width of codes that is treated in a way of its own, zeros, minima and neither; and whatever has a codec that none of these has. */
static const char *const formats[] = {"int2",    "int3_zp", "int4", "int4_zp", "int5_min",
                                      "int8_zp", "nf4",     "e2m1", "e3m2",    "e4m3"};
static const char *const sms[] = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120a"};
#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

bool sample_is_full(void)
{
    return full;
}

bool sample_is_search(const kernel_row *row)
{
    const format_facts *format = kernel_format(row);
    return kernel_operation_of(row) == KERNEL_QUANTIZE && format && format->block >= QDNN_BLOCK_Q2_K &&
           format->block <= QDNN_BLOCK_Q6_K;
}

bool sample_is_elementwise(const kernel_row *row)
{
    switch (kernel_operation_of(row)) {
    case KERNEL_SCALE:
    case KERNEL_QUANTIZE:
    case KERNEL_DEQUANTIZE:
    case KERNEL_DYNAMIC:
    case KERNEL_RANGE:
        return true;
    default:
        return false;
    }
}

static bool is_listed(const format_row *format)
{
    for (int i = 0; i < LENGTH(formats); i++)
        if (strcmp(format->facts.name, formats[i]) == 0)
            return true;
    return false;
}

/* Whether a format of the list has the same codec. */
static bool is_represented(const format_row *format)
{
    for (int i = 0; i < kernel_row_count; i++)
        if (is_listed(kernel_rows[i].format) && kernel_rows[i].format->codec == format->codec)
            return true;
    return false;
}

/* What is part of an operation belongs to no format. Blocks, and operations without codes, have tests of their own. */
static bool is_sampled(const kernel_row *row)
{
    if (!sample_is_elementwise(row) || !kernel_format(row) || kernel_format(row)->block != QDNN_BLOCK_NONE)
        return false;
    if (full || !row->operation_name)
        return true;
    return is_listed(row->format) || (!format_is_plain(row->format) && !is_represented(row->format));
}

/* Found once: the tests of a program are listed by these whenever it starts. */
static const kernel_row **rows(int *count)
{
    static const kernel_row *found[1024];
    static int n;
    static bool ready;
    for (int i = 0; !ready && i < kernel_row_count; i++)
        if (is_sampled(&kernel_rows[i]) && n < LENGTH(found))
            found[n++] = &kernel_rows[i];
    ready = true;
    *count = n;
    return found;
}

const kernel_row *sample_row_at(int index)
{
    int count;
    const kernel_row **all = rows(&count);
    return index < count ? all[index] : NULL;
}

int sample_row_count(void)
{
    int count;
    rows(&count);
    return count;
}

int sample_sm_count(void)
{
    return full ? ptx_sm_count() : LENGTH(sms);
}

const ptx_sm *sample_sm_at(int index)
{
    return full ? ptx_sm_get(index) : ptx_sm_find(sms[index]);
}
