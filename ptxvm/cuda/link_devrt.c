/* libcudadevrt.a, the library of what kernels may call: its code is for GPUs, so what cooperative groups need
 * of it is here in PTX. A grid's handle is the address of the workspace that a cooperative launch has, 0 in
 * any other launch. */
#include "link.h"

#include <string.h>

/* The barrier counts the blocks that came, in 64 bits at the end of the workspace, and never goes back: a
 * block waits until as many have come as make its round full. Generated code keeps its own barrier at the
 * beginning of the workspace. */
const char link_devrt_ptx[] =
    ".version 6.0\n"
    ".target sm_60\n"
    ".address_size 64\n"
    ".weak .func (.param .b64 result) cudaCGGetIntrinsicHandle(.param .b32 scope)\n"
    "{\n"
    "  .reg .b32 %r<4>; .reg .b64 %rd; .reg .pred %p;\n"
    "  ld.param.u32 %r0, [scope];\n"
    "  mov.u32 %r1, %envreg1; mov.u32 %r2, %envreg2; mov.b64 %rd, {%r2, %r1};\n"
    "  setp.eq.u32 %p, %r0, 1;\n"
    "  selp.b64 %rd, %rd, 0, %p;\n"
    "  st.param.b64 [result], %rd;\n"
    "  ret;\n"
    "}\n"
    ".weak .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)\n"
    "{\n"
    "  .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p;\n"
    "  ld.param.u64 %rd0, [handle];\n"
    "  mov.u32 %r7, 1;\n" /* invalid value */
    "  setp.eq.u64 %p, %rd0, 0;\n"
    "  @%p bra done;\n"
    "  bar.sync 0;\n"
    "  mov.u32 %r0, %tid.x; mov.u32 %r1, %tid.y; mov.u32 %r2, %tid.z;\n"
    "  or.b32 %r0, %r0, %r1; or.b32 %r0, %r0, %r2;\n"
    "  setp.ne.u32 %p, %r0, 0;\n"
    "  @%p bra others;\n"
    "  mov.u32 %r0, %nctaid.x; mov.u32 %r1, %nctaid.y; mov.u32 %r2, %nctaid.z;\n"
    "  mul.lo.u32 %r0, %r0, %r1; mul.wide.u32 %rd1, %r0, %r2;\n"
    "  membar.gl;\n"
    "  atom.global.add.u64 %rd2, [%rd0 + 1016], 1;\n"
    "  div.u64 %rd3, %rd2, %rd1; mad.lo.u64 %rd3, %rd3, %rd1, %rd1;\n"
    "again:\n"
    "  ld.volatile.global.u64 %rd4, [%rd0 + 1016];\n"
    "  setp.lt.u64 %p, %rd4, %rd3;\n"
    "  @%p bra again;\n"
    "  membar.gl;\n"
    "others:\n"
    "  bar.sync 0;\n"
    "  mov.u32 %r7, 0;\n"
    "done:\n"
    "  st.param.b32 [result], %r7;\n"
    "  ret;\n"
    "}\n"
    ".weak .func (.param .b32 result) cudaCGSynchronizeGrid(.param .b64 handle, .param .b32 flags)\n"
    "{\n"
    "  .reg .b32 %r<2>; .reg .b64 %rd;\n"
    "  .param .b64 a; .param .b32 b; .param .b32 c;\n"
    "  ld.param.u64 %rd, [handle]; ld.param.u32 %r0, [flags];\n"
    "  st.param.b64 [a], %rd; st.param.b32 [b], %r0;\n"
    "  call.uni (c), cudaCGSynchronize, (a, b);\n"
    "  ld.param.b32 %r1, [c];\n"
    "  st.param.b32 [result], %r1;\n"
    "  ret;\n"
    "}\n"
    /* Threads of the grid and grids, each where its address is not null. */
    ".weak .func (.param .b32 result) cudaCGGetSize(.param .b64 threads, .param .b64 grids, .param .b64 "
    "handle)\n"
    "{\n"
    "  .reg .b32 %r<7>; .reg .b64 %rd<2>; .reg .pred %p<2>;\n"
    "  ld.param.u64 %rd0, [threads]; ld.param.u64 %rd1, [grids];\n"
    "  setp.ne.u64 %p0, %rd0, 0; setp.ne.u64 %p1, %rd1, 0;\n"
    "  mov.u32 %r0, %nctaid.x; mov.u32 %r1, %nctaid.y; mov.u32 %r2, %nctaid.z;\n"
    "  mov.u32 %r3, %ntid.x; mov.u32 %r4, %ntid.y; mov.u32 %r5, %ntid.z;\n"
    "  mul.lo.u32 %r0, %r0, %r1; mul.lo.u32 %r0, %r0, %r2; mul.lo.u32 %r0, %r0, %r3;\n"
    "  mul.lo.u32 %r0, %r0, %r4; mul.lo.u32 %r0, %r0, %r5;\n"
    "  @%p0 st.u32 [%rd0], %r0;\n"
    "  mov.u32 %r6, 1;\n"
    "  @%p1 st.u32 [%rd1], %r6;\n"
    "  st.param.b32 [result], 0;\n"
    "  ret;\n"
    "}\n"
    /* This thread among those of the grid, x fastest in blocks and in the grid; the grid is number 0. */
    ".weak .func (.param .b32 result) cudaCGGetRank(.param .b64 thread, .param .b64 grid, .param .b64 "
    "handle)\n"
    "{\n"
    "  .reg .b32 %r<12>; .reg .b64 %rd<2>; .reg .pred %p<2>;\n"
    "  ld.param.u64 %rd0, [thread]; ld.param.u64 %rd1, [grid];\n"
    "  setp.ne.u64 %p0, %rd0, 0; setp.ne.u64 %p1, %rd1, 0;\n"
    "  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ctaid.y; mov.u32 %r2, %ctaid.z;\n"
    "  mov.u32 %r3, %nctaid.x; mov.u32 %r4, %nctaid.y;\n"
    "  mad.lo.u32 %r1, %r2, %r4, %r1; mad.lo.u32 %r0, %r1, %r3, %r0;\n"
    "  mov.u32 %r5, %ntid.x; mov.u32 %r6, %ntid.y; mov.u32 %r7, %ntid.z;\n"
    "  mov.u32 %r8, %tid.x; mov.u32 %r9, %tid.y; mov.u32 %r10, %tid.z;\n"
    "  mad.lo.u32 %r0, %r0, %r7, %r10; mad.lo.u32 %r0, %r0, %r6, %r9; mad.lo.u32 %r0, %r0, %r5, %r8;\n"
    "  @%p0 st.u32 [%rd0], %r0;\n"
    "  mov.u32 %r11, 0;\n"
    "  @%p1 st.u32 [%rd1], %r11;\n"
    "  st.param.b32 [result], 0;\n"
    "  ret;\n"
    "}\n";

bool link_wants_devrt(const link_unit *units, int n)
{
    static const char *const names[] = {"cudaCGGetIntrinsicHandle", "cudaCGSynchronize",
                                        "cudaCGSynchronizeGrid", "cudaCGGetSize", "cudaCGGetRank"};
    for (int u = 0; u < n; u++)
        for (size_t i = 0; i < units[u].n_symbols; i++)
            for (size_t k = 0; k < sizeof names / sizeof *names; k++)
                if (!units[u].symbols[i].is_defined &&
                    link_is((link_token){.text = units[u].symbols[i].name}, names[k]))
                    return true;
    return false;
}

/* ---- The archive ---- */

/* A member's header has 60 bytes: its name at 0, its length in decimal digits at 48. */
enum { MAGIC_BYTES = 8, MEMBER_BYTES = 60, NAME_BYTES = 16, LENGTH_AT = 48, LENGTH_BYTES = 10 };

static size_t member_length(const char *header)
{
    size_t length = 0;
    for (int i = 0; i < LENGTH_BYTES && header[LENGTH_AT + i] >= '0' && header[LENGTH_AT + i] <= '9'; i++)
        length = 10 * length + (size_t)(header[LENGTH_AT + i] - '0');
    return length;
}

static bool contains(const char *text, size_t length, const char *part)
{
    size_t n = strlen(part);
    for (size_t i = 0; i + n <= length; i++)
        if (memcmp(text + i, part, n) == 0)
            return true;
    return false;
}

/* The object has a name that is too long for its header: it stands in the member "//". */
bool link_is_devrt(const void *archive, size_t bytes)
{
    const char *p = archive;
    if (bytes < MAGIC_BYTES || memcmp(p, "!<arch>\n", MAGIC_BYTES) != 0)
        return false;
    for (size_t at = MAGIC_BYTES; bytes - at >= MEMBER_BYTES;) {
        size_t length = member_length(p + at), left = bytes - at - MEMBER_BYTES;
        if (length > left)
            return false;
        if (contains(p + at, NAME_BYTES, "// ") &&
            contains(p + at + MEMBER_BYTES, length, "cuda_device_runtime.o/"))
            return true;
        at += MEMBER_BYTES + length + (length & 1 && length < left);
    }
    return false;
}
