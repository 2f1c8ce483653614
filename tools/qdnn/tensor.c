/* A weight in memory: its descriptors, and its operands. */
#include "tools/qdnn/tool.h"

#include <stdlib.h>
#include <string.h>

void *tool_alloc(size_t bytes)
{
    void *memory = calloc(bytes ? bytes : 1, 1);
    if (!memory)
        tool_fail("out of memory: %zu bytes were needed", bytes);
    return memory;
}

int fail_status(const char *what, qdnnStatus_t status)
{
    char why[1024] = "";
    qdnnGetLastErrorString(why, sizeof why);
    return tool_fail("%s: %s", what, *why ? why : qdnnGetErrorString(status));
}

int open_file(const char *path, qdnnFile_t *file)
{
    char why[1024] = "";
    if (!qdnnOpenFile(path, file))
        return TOOL_OK;
    qdnnGetLastFileErrorString(why, sizeof why);
    return tool_fail("%s", why);
}

/* Creates the descriptors and computes the sizes of operands. */
static qdnnStatus_t describe(tensor *t)
{
    qdnnStatus_t status = qdnnCreateTensorDescriptor(&t->plain);
    if (!status)
        status = qdnnCreateQuantDescriptor(&t->quant);
    if (!status)
        status = qdnnSetFileWeight(&t->how, QDNN_DATA_F32, t->plain, t->quant);
    t->columns = t->how.dims[t->how.rank - 1];
    t->rows = 1;
    for (int i = 0; i + 1 < t->how.rank; i++)
        t->rows *= t->how.dims[i];
    for (int i = QDNN_OPERAND_CODES; i <= QDNN_OPERAND_NESTED_OFFSET && !status; i++)
        status = qdnnGetOperandSize(t->quant, t->plain, (qdnnOperand_t)i, &t->bytes[i]);
    return status;
}

int tensor_describe(tensor *t, const char *name, const qdnnFileWeight_t *how)
{
    *t = (tensor){.name = name, .how = *how};
    if (how->problem)
        return tool_fail("%s: %s", name, how->problem);
    qdnnStatus_t status = describe(t);
    return status ? fail_status(name, status) : TOOL_OK;
}

/* Unsupported, or impossible for that shape; anything else is a failure. */
static bool is_refusal(qdnnStatus_t status)
{
    return (status >= QDNN_STATUS_BAD_PARAM && status < QDNN_STATUS_NOT_SUPPORTED) ||
           (status >= QDNN_STATUS_NOT_SUPPORTED && status < QDNN_STATUS_INTERNAL_ERROR);
}

int tensor_refused(const char *name, const qdnnFileWeight_t *how, const char **why)
{
    tensor t = {.how = *how};
    qdnnStatus_t status = describe(&t);
    static char text[1024];
    *why = NULL;
    int result = status && !is_refusal(status) ? fail_status(name, status) : TOOL_OK;
    if (status && result == TOOL_OK) {
        qdnnGetLastErrorString(text, sizeof text);
        *why = text;
    }
    tensor_close(&t);
    return result;
}

/* host_ref requires naturally aligned arrays, which safetensors does not guarantee: then the operand is
 * copied. */
static int bind(tensor *t, const qdnnFileOperand_t *o)
{
    size_t needed = t->bytes[o->operand];
    if (o->bytes < needed)
        return tool_fail("%s: an operand has %llu bytes; its descriptor needs %zu", t->name,
                         (unsigned long long)o->bytes, needed);
    bool aligned = (uintptr_t)o->data % sizeof(uint32_t) == 0;
    t->host[o->operand] = aligned ? (void *)(uintptr_t)o->data : tool_alloc(needed);
    t->owned[o->operand] = !aligned;
    if (!aligned && t->host[o->operand])
        memcpy(t->host[o->operand], o->data, needed);
    return t->host[o->operand] ? TOOL_OK : TOOL_FAILED;
}

int tensor_open(tensor *t, const qdnnFileWeight_t *weight)
{
    int status = tensor_describe(t, weight->name, weight);
    for (int i = 0; i < weight->operands && status == TOOL_OK; i++)
        status = bind(t, &weight->operand[i]);
    for (int i = QDNN_OPERAND_CODES; i <= QDNN_OPERAND_NESTED_OFFSET && status == TOOL_OK; i++)
        if (t->bytes[i] && !t->host[i])
            status = tool_fail("%s: operand %d of its descriptor is not in the file", t->name, i);
    if (status != TOOL_OK)
        tensor_close(t);
    return status;
}

int tensor_make(tensor *t, const char *name, const qdnnFileWeight_t *how)
{
    int status = tensor_describe(t, name, how);
    for (int i = QDNN_OPERAND_CODES; i <= QDNN_OPERAND_NESTED_OFFSET && status == TOOL_OK; i++) {
        if (!t->bytes[i])
            continue;
        t->host[i] = tool_alloc(t->bytes[i]);
        t->owned[i] = true;
        status = t->host[i] ? TOOL_OK : TOOL_FAILED;
    }
    if (status != TOOL_OK)
        tensor_close(t);
    return status;
}

void tensor_close(tensor *t)
{
    qdnnDestroyTensorDescriptor(t->plain);
    qdnnDestroyQuantDescriptor(t->quant);
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        if (t->owned[i])
            free(t->host[i]);
    *t = (tensor){0};
}
