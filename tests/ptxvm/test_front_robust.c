/* The parser never crashes, hangs or leaks, whatever it is given: cut-off modules, changed bytes, no memory,
 * deep nesting. */
#include "test.h"

#include "ptxvm/front/front.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A module that has a bit of everything. */
static const char sample[] =
    ".version 8.6\n.target sm_90a\n.address_size 64\n.file 1 \"a.cu\"\n"
    ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
    ".extern .shared .align 16 .b8 dynamic[];\n"
    ".global .align 4 .u32 table[2][2] = {{1, 2}, {3}}; // comment\n"
    ".const .v2 .f32 pair = {1.5, -0f3F800000}; /* another\n one */\n"
    ".global .u64 pointers[] = {table, generic(table) + 4};\n"
    ".func (.reg .u32 out) f(.reg .u32 x) { mov.u32 out, x; ret; }\n"
    ".visible .entry k(.param .u64 .ptr .global .align 8 in, .param .align 4 .b8 s[12]) .maxntid 128, 1, "
    "1\n{\n"
    ".reg .pred %p<3>; .reg .b32 %r<30>; .reg .b64 %rd<4>; .reg .f32 %f<9>; .reg .v4 .f32 %v; .reg .b16 "
    "%h<4>;\n"
    ".loc 1 2 3\nld.param.u64 %rd1, [in]; cvta.to.global.u64 %rd1, %rd1;\n"
    "mov.u32 %r1, %tid.x; mad.lo.u32 %r1, %r1, (4 + 4) / 2, 0x10; @!%p1 bra $done;\n"
    "setp.lt.and.f32 %p1|%p2, %f1, 0f7F800000, !%p2; selp.b32 %r2, 1, WARP_SZ, %p1;\n"
    "{ .param .b64 a; .param .b32 r; st.param.b64 [a + 0], %rd1; call.uni (r), vprintf, (a, a); }\n"
    "ld.global.v4.f32 %v, [%rd1 + 16]; st.shared.v2.f32 [dynamic + 8], {%v.x, %v.w};\n"
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, "
    "%r6},\n"
    "  {%f1, %f2, %f3, %f4};\n"
    "cvt.rn.f16.f32 %h1, %f1; atom.global.add.f32 %f2, [%rd1], 1.0; shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, "
    "-1;\n"
    "list: .branchtargets $done, $next; brx.idx %r1, list; $next: call (%r1), f, (5); vadd.u32.u32.u32 %r1, "
    "%r2.b0, %r3;\n"
    "bar.sync 0; $done: ret;\n}\n.section .debug_str { L: .b8 1, 2\n.b32 L }\n";

static bool parses(const char *text, size_t length, pvm_error *error)
{
    pvm_module *m = pvm_module_parse(text, length, error);
    pvm_module_free(m);
    return m != NULL;
}

TEST_CASE(FrontRobust, SampleIsGood)
{
    pvm_error error;
    if (!CHECK(parses(sample, strlen(sample), &error)))
        FAIL("%s", error.message);
}

/* Cut off anywhere: an error with a place inside the text, or where a module may end, none. */
TEST_CASE(FrontRobust, CutOffEverywhere)
{
    int errors = 0;
    for (size_t n = 0; n < sizeof sample - 1; n++) {
        char *copy = malloc(n ? n : 1); /* of the exact size, so that a sanitizer sees every step too far */
        pvm_error error;
        memcpy(copy, sample, n);
        if (!parses(copy, n, &error)) {
            errors++;
            CHECK(error.kind != PVM_OK && error.line >= 1 && error.column >= 1 && error.message[0]);
        }
        free(copy);
    }
    CHECK(errors > (int)sizeof sample * 3 / 4);
}

static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

TEST_CASE(FrontRobust, ChangedBytes)
{
    static const char bytes[] = ".%{}[](),;:|!@+-<>_0fx9 \n\"/*#\\r\xff";
    uint32_t random = 12345;
    for (int round = 0; round < 20000; round++) {
        char text[sizeof sample];
        pvm_error error;
        memcpy(text, sample, sizeof sample);
        for (uint32_t k = 1 + next_random(&random) % 4; k > 0; k--)
            text[next_random(&random) % (sizeof sample - 1)] = bytes[next_random(&random) % sizeof bytes];
        parses(text, sizeof sample - 1, &error);
    }
}

/* A token of the sample is dropped, or put in the place of another. */
TEST_CASE(FrontRobust, MovedTokens)
{
    uint32_t random = 99;
    for (int round = 0; round < 20000; round++) {
        char text[2 * sizeof sample];
        pvm_error error;
        size_t from = next_random(&random) % (sizeof sample - 20), length = next_random(&random) % 16;
        size_t to = next_random(&random) % (sizeof sample - 20), dropped = next_random(&random) % 16;
        memcpy(text, sample, to);
        memcpy(text + to, sample + from, length);
        memcpy(text + to + length, sample + to + dropped, sizeof sample - 1 - to - dropped);
        parses(text, sizeof sample - 1 + length - dropped, &error);
    }
}

/* ---- memory ---- */

typedef struct failing {
    int left, live;
} failing;

static void *failing_alloc(void *user, size_t bytes)
{
    failing *f = user;
    if (f->left-- == 0)
        return NULL;
    f->live++;
    return malloc(bytes);
}

static void failing_release(void *user, void *memory)
{
    ((failing *)user)->live--;
    free(memory);
}

TEST_CASE(FrontRobust, EveryAllocationMayFail)
{
    /* Many variables with initial values, so that there are some chunks of memory to fail. */
    size_t size = 400000, length = 0;
    char *text = malloc(size);
    length += (size_t)snprintf(text, size, ".version 8.0\n.target sm_80\n.address_size 64\n");
    for (int i = 0; i < 4000; i++)
        length +=
            (size_t)snprintf(text + length, size - length, ".global .u32 a%d[64] = {1, 2, %d};\n", i, i);
    bool done = false;
    int k = 0;
    for (; !done && k < 1000; k++) {
        failing f = {.left = k};
        pvm_allocator allocator = {failing_alloc, failing_release, &f};
        pvm_error error;
        uint64_t limits[PTXVM_LIMITS] = {0};
        char why[256];
        CHECK(ptxvm_limits_read(limits, why, sizeof why));
        pvm_module *m = pvm_module_parse_with(text, length, &allocator, limits, &error);
        done = m != NULL;
        if (!m)
            CHECK_EQ_I64(error.kind, PVM_ERROR_MEMORY);
        pvm_module_free(m);
        CHECK_EQ_I64(f.live, 0);
    }
    CHECK(done && k > 10);
    free(text);
}

/* ---- limits ---- */

/* `count` times `part` within a kernel's body. */
static void check_nested(const char *before, const char *part, int count, const char *message)
{
    size_t size = strlen(part) * (size_t)count + 400;
    char *text = malloc(size);
    size_t n = (size_t)snprintf(text, size, ".version 8.0\n.target sm_80\n.address_size 64\n%s", before);
    for (int i = 0; i < count; i++)
        n += (size_t)snprintf(text + n, size - n, "%s", part);
    pvm_error error;
    CHECK(!parses(text, n, &error));
    CHECK_HAS(error.message, message);
    free(text);
}

TEST_CASE(FrontRobust, DeepNestingIsAnError)
{
    check_nested(".entry k() { ", "{", 100000, "blocks are nested more than");
    check_nested(".entry k() { .reg .u32 r; mov.u32 r, ", "(", 100000, "nested more than");
    check_nested(".entry k() { .reg .u32 r; mov.u32 r, ", "-", 100000, "nested more than");
    check_nested(".entry k() { .reg .u32 r; mov.u32 r, ", "1 ? ", 100000, "nested more than");
    check_nested(".global .u32 a", "[1]", 1000, "too many dimensions");
    check_nested(".global .u32 a[2] = ", "{", 100000, "too many braces");
    check_nested(".global .u64 a = ", "generic(", 100000, "nested");
    check_nested(".entry k() { .reg .u32 r; add", ".u32", 1000, "too many modifiers");
    check_nested(".entry k() { .reg .u32 r; add.u32 ", "r, ", 1000, "too many operands");
    check_nested(".entry k() { .reg .u32 r; mov.b64 {", "r, ", 1000, "too many");
}

/* Sizes that would exhaust memory if they were believed. */
TEST_CASE(FrontRobust, LargeNumbersCostNothing)
{
    static const char text[] =
        ".version 8.0\n.target sm_80\n.address_size 64\n.global .b8 big[100000000000000];\n"
        ".entry k() { .reg .b32 %r<99999999>; mov.u32 %r99999998, 1; ret; }\n";
    pvm_error error;
    pvm_module *m = pvm_module_parse(text, sizeof text - 1, &error);
    REQUIRE(m != NULL);
    CHECK_EQ_I64(m->functions[0]->n_regs, 1);
    CHECK_EQ_U64(m->vars[0]->size, 100000000000000u);
    pvm_module_free(m);
    static const char initialised[] =
        ".version 8.0\n.target sm_80\n.address_size 64\n.global .b8 big[10000000000] = {1};\n";
    CHECK(!parses(initialised, sizeof initialised - 1, &error));
    CHECK_HAS(error.message, "PTXVM_LIMIT_DATA");
}
