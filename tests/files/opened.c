/* A file of a test. */
#include "files/opened.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/process.h"
#include "test.h"

void opened_make(opened *o, bytes b, const char *name)
{
    *o = (opened){0};
    temp_dir_make(o->dir, sizeof o->dir);
    bytes_write(&b, o->dir, name);
    bytes_free(&b);
}

bool opened_open(opened *o, const char *name)
{
    char path[1024], why[1024];
    snprintf(path, sizeof path, "%s/%s", o->dir, name);
    if (qdnnOpenFile(path, &o->file) == QDNN_STATUS_SUCCESS)
        return true;
    qdnnGetLastFileErrorString(why, sizeof why);
    FAIL("%s", why);
    return false;
}

void opened_close(opened *o)
{
    CHECK(qdnnCloseFile(o->file) == QDNN_STATUS_SUCCESS);
    temp_dir_remove(o->dir);
}

void check_refused(const char *dir, const char *name, qdnnStatus_t status, const char *says)
{
    char path[1024], why[1024];
    qdnnFile_t file = NULL;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    CHECK_EQ_I64(qdnnOpenFile(path, &file), status);
    CHECK(file == NULL);
    qdnnGetLastFileErrorString(why, sizeof why);
    CHECK_HAS(why, says);
    CHECK_HAS(why, dir); /* it names the file */
    qdnnCloseFile(file);
}

process_result run_in(const char *dir, const char *command)
{
    const char *leaks = strncmp(command, "qdnn ", 5) == 0 ? QDNN_FIND_LEAKS : "";
    return process_run("cd %s && export QDNN_DEVICE=vm && PATH=%s/qdnn:$PATH && %s%s", dir, QDNN_BINARY_DIR,
                       leaks, command);
}

void check_command(const char *dir, const char *command, int status, const char *says)
{
    process_result r = run_in(dir, command);
    test_push_note("%s", command);
    if (!CHECK_EQ_I64(r.status, status))
        FAIL("%s", r.output);
    CHECK_HAS(r.output, says);
    process_free(&r);
    test_pop_note();
}

bool find_weight(const opened *o, const char *name, qdnnFileWeight_t *w)
{
    int index;
    if (!CHECK(qdnnFindFileWeight(o->file, name, &index) == QDNN_STATUS_SUCCESS) ||
        !CHECK(qdnnGetFileWeight(o->file, index, w) == QDNN_STATUS_SUCCESS))
        return false;
    CHECK_EQ_STR(w->name, name);
    if (w->problem)
        FAIL("%s: %s", name, w->problem);
    return !w->problem;
}

/* ---- values ---- */

static qdnnStatus_t run(qdnnHandle_t h, const qdnnFileWeight_t *w, qdnnTensorDescriptor_t t,
                        qdnnQuantDescriptor_t q, float *y, size_t bytes)
{
    qdnnBinding_t bindings[QDNN_FILE_OPERANDS_MAX + 1];
    void *memory[QDNN_FILE_OPERANDS_MAX + 1] = {0};
    qdnnPlan_t plan = NULL;
    qdnnStatus_t status = qdnnSetFileWeight(w, QDNN_DATA_F32, t, q);
    for (int i = 0; i <= w->operands && !status; i++) {
        bool is_y = i == w->operands;
        size_t size = is_y ? bytes : w->operand[i].bytes;
        status = qdnnMalloc(h, &memory[i], size);
        if (!status && !is_y)
            status = qdnnCopyToDevice(h, memory[i], w->operand[i].data, size);
        bindings[i] = (qdnnBinding_t){is_y ? QDNN_OPERAND_Y : w->operand[i].operand, memory[i], size};
    }
    if (!status)
        status = qdnnCreateDequantizePlan(h, t, q, &plan);
    if (!status)
        status = qdnnExecute(h, plan, bindings, w->operands + 1, NULL, 0);
    if (!status)
        status = qdnnCopyToHost(h, y, memory[w->operands], bytes);
    qdnnDestroyPlan(plan);
    for (int i = 0; i <= w->operands; i++)
        qdnnFree(h, memory[i]);
    return status;
}

bool read_values(const qdnnFileWeight_t *w, float *y, int64_t n)
{
    qdnnHandle_t h = NULL;
    qdnnTensorDescriptor_t t = NULL;
    qdnnQuantDescriptor_t q = NULL;
    char why[1024] = "";
    qdnnStatus_t status = qdnnCreateOn(&h, "vm");
    if (!status)
        status = qdnnCreateTensorDescriptor(&t);
    if (!status)
        status = qdnnCreateQuantDescriptor(&q);
    if (!status)
        status = run(h, w, t, q, y, (size_t)n * sizeof *y);
    if (status)
        qdnnGetLastErrorString(why, sizeof why);
    qdnnDestroyTensorDescriptor(t);
    qdnnDestroyQuantDescriptor(q);
    qdnnDestroy(h);
    return CHECK_EQ_STR(why, "");
}

void check_values(const qdnnFileWeight_t *w, const float *expected, int64_t n)
{
    float *y = calloc((size_t)n, sizeof *y);
#ifdef QDNN_PTXVM
    if (read_values(w, y, n))
#else
    (void)w; /* nothing here decodes it */
    if (false)
#endif
        CHECK_EQ_MEM(y, expected, (size_t)n * sizeof *y);
    free(y);
}
