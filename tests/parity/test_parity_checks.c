/* The suite detects what it is meant to detect: calls with deliberate mistakes fail. Without these tests a
 * parity suite that checks nothing would pass as well. */
#include <stdio.h>

#include "device/under_test.h"
#include "parity/trial.h"
#include "support/process.h"
#include "test.h"

/* What is done wrong with one operand. */
typedef enum { NOTHING, TOO_SHORT, NOT_WRITTEN } mistake;

static quant_case small_case(const kernel_row *row)
{
    return (quant_case){.row = row,
                        .spec = kernel_spec_default(),
                        .granularity = QDNN_GRANULARITY_GROUP,
                        .extent = 32,
                        .rank = 1,
                        .dims = {quant_case_columns(row, 1001)},
                        .seed = 1};
}

/* Calls with a mistake in one operand's buffer; returns what the call does. Buffers are exact, so ptxvm sees
 * the byte behind them; and not aligned, as it lets aligned vector loads reach over the end. */
static qdnnStatus_t call_with(qdnnHandle_t handle, const quant_case *c, const quant_operands *o, mistake what,
                              int where)
{
    device_buffer buffers[QDNN_OPERAND_COUNT] = {0};
    void *pointers[QDNN_OPERAND_COUNT];
    quant_descriptors d;
    bool ok = quant_descriptors_make(c, &d);
    for (int i = 0; i < QDNN_OPERAND_COUNT && ok; i++) {
        mistake here = i == where ? what : NOTHING;
        if ((o->reads | o->writes) >> i & 1)
            ok = device_buffer_make(handle, BUFFER_EXACT, o->bytes[i] - (here == TOO_SHORT), o->element[i],
                                    &buffers[i]);
        if (ok && o->reads >> i & 1 && here != NOT_WRITTEN)
            ok = device_buffer_write(&buffers[i], o->host[i]);
        pointers[i] = device_buffer_at(&buffers[i]);
    }
    qdnnStatus_t status = ok ? quant_call_plan(handle, c, &d, pointers) : QDNN_STATUS_INTERNAL_ERROR;
    for (int i = 0; i < QDNN_OPERAND_COUNT; i++)
        device_buffer_free(&buffers[i]);
    quant_descriptors_free(&d);
    return status;
}

static void read_text(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, size - 1, file) : 0;
    text[length] = 0;
    if (file)
        fclose(file);
}

/* The call fails as on a GPU whose kernel failed; the handle is dead, and the log says where it was. */
static void check_found(const quant_case *c, const quant_operands *o, mistake what, int where,
                        const char *words)
{
    char folder[256], log[300], text[4096], entry[64];
    temp_dir_make(folder, sizeof folder);
    snprintf(log, sizeof log, "%s/log", folder);
    test_push_note("%s, operand %s, mistake %d", c->row->name, quant_operand_name(where), (int)what);
    qdnnHandle_t handle = device_begin_logged("sm_90", 1, "all", log);
    if (handle) {
        CHECK_EQ_I64(call_with(handle, c, o, what, where), QDNN_STATUS_EXECUTION_FAILED_STICKY);
        CHECK_EQ_I64(qdnnSynchronize(handle), QDNN_STATUS_EXECUTION_FAILED_STICKY);
        read_text(log, text, sizeof text);
        kernel_entry_name(c->row, entry, sizeof entry);
        CHECK_HAS(text, entry);
        CHECK_HAS(text, words);
    }
    device_end(handle);
    test_pop_note();
    temp_dir_remove(folder);
}

/* The mistake in each operand; or in those that are read. */
static void check_operands(const kernel_row *row, mistake what, bool written_too, const char *words)
{
    quant_case c = small_case(row);
    quant_operands o;
    bool ok = quant_operands_make(&c, &o);
    uint64_t operands = written_too ? o.reads | o.writes : o.reads;
    for (int i = 0; i < QDNN_OPERAND_COUNT && ok; i++)
        if (operands >> i & 1)
            check_found(&c, &o, what, i, words);
    quant_operands_free(&o);
}

DEVICE_EACH(ParityFinds, AByteTooShort, parity_row_count, parity_row_name)
{
    ONLY_PTXVM("checks of memory");
    check_operands(parity_row_at(index), TOO_SHORT, true, "past the end");
}

DEVICE_EACH(ParityFinds, AnInputThatNobodyWrote, parity_row_count, parity_row_name)
{
    ONLY_PTXVM("checks of memory");
    check_operands(parity_row_at(index), NOT_WRITTEN, false, "were never written");
}

/* It is the check that finds it: without it, and without the mistake, the calls succeed. */
DEVICE_CASE(ParityFinds, NothingWhereNothingIs)
{
    ONLY_PTXVM("checks of memory");
    static const struct {
        const char *checks;
        mistake what;
    } calls[] = {{"all", NOTHING}, {"none", NOT_WRITTEN}};
    quant_case c = small_case(kernel_find("quantize_int4"));
    quant_operands o;
    REQUIRE(quant_operands_make(&c, &o));
    for (int i = 0; i < 2; i++) {
        qdnnHandle_t handle = device_begin("sm_90", 1, calls[i].checks);
        if (handle)
            CHECK_QDNN(call_with(handle, &c, &o, calls[i].what, QDNN_OPERAND_X));
        device_end(handle);
    }
    quant_operands_free(&o);
}

/* ---- Mistakes that no check of ptxvm sees: the comparison has to ---- */

/* Changes a byte of a buffer or of its bands. */
static bool comparison_sees(qdnnHandle_t handle, int64_t place)
{
    const uint8_t expected[4] = {1, 2, 3, 4}, other = 0x77;
    device_buffer buffer;
    bool ok = device_buffer_make(handle, BUFFER_BANDS, sizeof expected, 1, &buffer) &&
              device_buffer_write(&buffer, expected) && device_buffer_is(&buffer, expected);
    qdnnStatus_t changed =
        qdnnCopyToDevice(handle, (char *)device_buffer_at(&buffer) + place, &other, sizeof other);
    bool seen = ok && CHECK_QDNN(changed) && !device_buffer_is(&buffer, expected);
    device_buffer_free(&buffer);
    return seen;
}

DEVICE_CASE(ParityFinds, AChangedByteInABufferAndAroundIt)
{
    static const int64_t places[] = {-65, -1, 0, 3, 4, 67};
    device_launches_nothing();
    qdnnHandle_t handle = device_begin("sm_90", 1, "all");
    for (size_t i = 0; handle && i < sizeof places / sizeof places[0]; i++)
        CHECK(comparison_sees(handle, places[i]));
    device_end(handle);
}
