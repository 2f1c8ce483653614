/* The log: levels, destinations, the callback; lines of several threads stay whole. */
#include "driver/base/log.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/base/error.h"
#include "tools/toolkit.h"
#include "support/environment.h"
#include "support/process.h"
#include "test.h"

static char folder[256], path[300];

/* A log at that level, in a file of its own. */
static void begin(const char *level)
{
    char settings[400];
    temp_dir_make(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/log", folder);
    snprintf(settings, sizeof settings, "QDNN_LOGLEVEL=%s QDNN_LOGDEST=%s", level, path);
    environment_set(settings);
    log_reset();
}

/* What was written, for the caller to free; an empty text where there is no file. */
static char *end(void)
{
    log_reset();
    char *text = toolkit_read_file(path, NULL);
    temp_dir_remove(folder);
    environment_restore();
    return text ? text : calloc(1, 1);
}

static int lines_in(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

/* A line in the name of a function. */
#define tell(function, ...) (log_call = (function), log_write(__VA_ARGS__))

TEST_CASE(DriverLog, LevelsListenToTheirSeverities)
{
    static const char *const levels[] = {"", "0", "1", "2", "3"};
    for (int i = 0; i < 5; i++) {
        int level = i ? i - 1 : 0;
        begin(levels[i]);
        test_push_note("level '%s'", levels[i]);
        for (int s = QDNN_SEVERITY_ERROR; s <= QDNN_SEVERITY_INFO; s++) {
            CHECK_EQ_I64(log_on((qdnnSeverity_t)s), s <= level);
            tell("a_function", (qdnnSeverity_t)s, "severity %d", s);
        }
        char *text = end();
        CHECK_EQ_I64(lines_in(text), level);
        for (int s = 1; s <= level; s++) {
            char part[64];
            snprintf(part, sizeof part, " a_function: severity %d\n", s);
            CHECK_HAS(text, part);
        }
        free(text);
        test_pop_note();
    }
}

TEST_CASE(DriverLog, ErrorsAreWrittenByThemselves)
{
    begin("1");
    log_call = __func__;
    CHECK_EQ_I64(qdnn_error(QDNN_STATUS_BAD_PARAM, "n is %d; it must not be", 7), QDNN_STATUS_BAD_PARAM);
    char *text = end();
    CHECK(strncmp(text, "qdnn error 20", 13) == 0);
    CHECK_HAS(text, ": QDNN_STATUS_BAD_PARAM: n is 7; it must not be\n");
    CHECK_HAS(text, __func__);
    free(text);
}

static int calls;
static unsigned long long thread_seen;

static void listen(qdnnSeverity_t severity, void *user, const qdnnDebug_t *debug, const char *message)
{
    calls++;
    thread_seen = debug->threadId;
    CHECK_EQ_I64(debug->version, QDNN_VERSION);
    CHECK(debug->timeMicroseconds > 1000000000ull * 1000000);
    snprintf(user, 64, "%d %s: %s", (int)severity, debug->function, message);
    qdnn_error(QDNN_STATUS_BAD_PARAM, "from inside"); /* does not come back here */
}

TEST_CASE(DriverLog, ControlCharactersAreEscaped)
{
    char heard[64] = "", control[1200];
    memset(control, 7, sizeof control - 1);
    control[sizeof control - 1] = 0;
    begin("3");
    qdnnSetCallback(QDNN_SEVERITY_INFO_BIT, heard, listen);
    tell("f", QDNN_SEVERITY_INFO, "%s", "a\nb\r\t\x1b[2J\x7f \xc3\xa9");
    CHECK_EQ_STR(heard, "3 f: a\\x0ab\\x0d\\x09\\x1b[2J\\x7f \xc3\xa9");
    qdnnSetCallback(0, NULL, NULL);
    tell("f", QDNN_SEVERITY_WARNING, "%s", control); /* four times its length does not fit */
    char *text = end();
    CHECK_EQ_I64(lines_in(text), 3); /* and what the callback tells */
    CHECK_HAS(text, "f: a\\x0ab\\x0d\\x09\\x1b[2J\\x7f \xc3\xa9\n");
    CHECK_HAS(text, "\\x07\\x07\n");
    free(text);
}

/* Our own program in another process, where a standard stream can be read: what it writes there. */
static void check_stream(const char *settings, const char *redirections, const char *expected)
{
    process_result r =
        process_run("%s %s --gtest_filter=DriverLog.OneLine %s | grep '^qdnn' | sed 's/ 20.*thread [^ ]*//'",
                    settings, QDNN_BINARY_DIR "/tests/qdnn_tests", redirections);
    CHECK_EQ_STR(r.output, expected);
    process_free(&r);
}

TEST_CASE(DriverLog, OneLine)
{
    tell("OneLine", QDNN_SEVERITY_INFO, "hello");
    tell("OneLine", QDNN_SEVERITY_INFO, "again");
}

TEST_CASE(DriverLog, Destinations)
{
    const char *lines = "qdnn info OneLine: hello\nqdnn info OneLine: again\n", *only_err = "2>&1 >/dev/null",
               *only_out = "2>/dev/null";
    check_stream("QDNN_LOGLEVEL=3 QDNN_LOGDEST=", only_err, lines);
    check_stream("QDNN_LOGLEVEL=3 QDNN_LOGDEST=stderr", only_err, lines);
    check_stream("QDNN_LOGLEVEL=3 QDNN_LOGDEST=stderr", only_out, "");
    check_stream("QDNN_LOGLEVEL=3 QDNN_LOGDEST=stdout", only_out, lines);
    check_stream("QDNN_LOGLEVEL=0 QDNN_LOGDEST=stdout", only_out, "");
    /* A mistake is reported once. */
    check_stream("QDNN_LOGLEVEL=3 QDNN_LOGDEST=/no/such/folder/log", only_err,
                 "qdnn: QDNN_LOGDEST is '/no/such/folder/log', which cannot be written\n");
    check_stream("QDNN_LOGLEVEL=loud", only_err, "qdnn: QDNN_LOGLEVEL is 'loud'; it must be 0, 1, 2 or 3\n");
    check_stream("QDNN_LOGLEVEL=4", only_err, "qdnn: QDNN_LOGLEVEL is '4'; it must be 0, 1, 2 or 3\n");
}

TEST_CASE(DriverLog, TheCallbackGetsWhatItAskedFor)
{
    char heard[64] = "";
    begin("2");
    calls = 0;
    CHECK_EQ_I64(qdnnSetCallback(QDNN_SEVERITY_INFO_BIT | QDNN_SEVERITY_ERROR_BIT, heard, listen),
                 QDNN_STATUS_SUCCESS);
    tell("f", QDNN_SEVERITY_INFO, "one"); /* the callback alone */
    CHECK_EQ_STR(heard, "3 f: one");
    unsigned long long thread = thread_seen;
    tell("f", QDNN_SEVERITY_WARNING, "two"); /* the file alone */
    tell("f", QDNN_SEVERITY_ERROR, "three"); /* both */
    CHECK_EQ_STR(heard, "1 f: three");
    CHECK_EQ_U64(thread_seen, thread);
    CHECK_EQ_I64(calls, 2);
    CHECK_EQ_I64(qdnnSetCallback(QDNN_SEVERITY_INFO_BIT, heard, NULL), QDNN_STATUS_SUCCESS); /* removed */
    CHECK(!log_on(QDNN_SEVERITY_INFO));
    CHECK_EQ_I64(qdnnSetCallback(QDNN_SEVERITY_INFO_BIT, heard, listen), QDNN_STATUS_SUCCESS);
    CHECK_EQ_I64(qdnnSetCallback(0, heard, listen), QDNN_STATUS_SUCCESS); /* removed */
    CHECK(!log_on(QDNN_SEVERITY_INFO));
    tell("f", QDNN_SEVERITY_INFO, "four");
    CHECK_EQ_I64(calls, 2);
    char *text = end();
    CHECK_HAS(text, "f: two\n");
    CHECK_HAS(text, "f: three\n");
    CHECK_HAS(text, "from inside\n");
    CHECK(strstr(text, "one") == NULL && strstr(text, "four") == NULL);
    free(text);
}

TEST_CASE(DriverLog, AMaskHasThreeBits)
{
    char sentence[512];
    CHECK_EQ_I64(qdnnSetCallback(1, NULL, listen), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
    CHECK_EQ_I64(qdnnSetCallback(16, NULL, listen), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
    qdnnGetLastErrorString(sentence, sizeof sentence);
    CHECK_EQ_STR(sentence, "mask is 0x10; it must be made of QDNN_SEVERITY_*_BIT, 0xe at most");
}

enum { THREADS = 4, LINES = 200 };

static void *write_lines(void *argument)
{
    char filler[300];
    memset(filler, *(const char *)argument, sizeof filler - 1);
    filler[sizeof filler - 1] = 0;
    for (int i = 0; i < LINES; i++)
        tell("f", QDNN_SEVERITY_INFO, "%s", filler);
    return NULL;
}

TEST_CASE(DriverLog, LinesOfThreadsStayWhole)
{
    pthread_t threads[THREADS];
    begin("3");
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, write_lines, (void *)&"abcd"[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    char *text = end(), *rest = NULL;
    int n = 0, whole = 0;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest), n++) {
        const char *filler = strstr(line, " f: ");
        filler = filler ? filler + 4 : "";
        whole +=
            !strncmp(line, "qdnn info ", 10) && strspn(filler, (char[]){*filler, 0}) == 299 && !filler[299];
    }
    CHECK_EQ_I64(n, THREADS * LINES);
    CHECK_EQ_I64(whole, THREADS * LINES);
    free(text);
}

/* At level 3 each call is there with its arguments. */
TEST_CASE(DriverLog, CallsShowTheirArguments)
{
    begin("3");
    qdnnDestroyTensorDescriptor(NULL);
    qdnnSetQuantFloor(NULL, 0.25f);
    qdnnCreateOn(NULL, "vm:sm_80");
    qdnnSetQuantAttribute(NULL, QDNN_QUANT_GROUP_SIZE, -5);
    char *text = end();
    CHECK_HAS(text, "qdnnDestroyTensorDescriptor: called with tensor null\n");
    CHECK_HAS(text, "qdnnSetQuantFloor: called with quant null, floor 0.25\n");
    CHECK_HAS(text, "qdnnCreateOn: called with handle null, device 'vm:sm_80'\n");
    CHECK_HAS(text, "qdnnSetQuantAttribute: called with quant null, attribute 3, value -5\n");
    free(text);
}
