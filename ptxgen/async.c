/* Asynchronous copies from global to shared memory (cp.async), and the barriers that signal their
 * completion. */
#include "ptxgen/internal.h"

static const char *prefetch_size(ptx_builder *b, unsigned cache)
{
    switch (cache) {
    case 0:
        return "";
    case PTX_L2_64B:
        return ".L2::64B";
    case PTX_L2_128B:
        return ".L2::128B";
    case PTX_L2_256B:
        return ".L2::256B";
    default:
        ptx_fail(b, "cp_async: the only cache hints are those of L2 sizes");
        return "";
    }
}

/* `in`: the shared and the global address with their offsets, the bytes, and for the zfill form how many of
 * them to read. */
static void copy(ptx_builder *b, isa_id id, const char *level, unsigned bytes, unsigned cache,
                 const ptx_val *in)
{
    char modifier[64];
    if (!builder_ready(b, "cp_async"))
        return;
    if (bytes != 16 && bytes != 8 && bytes != 4)
        ptx_fail(b, "%u bytes cannot be copied at once: 4, 8 and 16 can", bytes);
    char *at = put_string(put_string(modifier, level), ".shared.global");
    *put_string(at, prefetch_size(b, cache)) = 0;
    emit(b, &(ptx_instruction){
                .id = id, .modifier = modifier, .in = in, .need = cache ? NEED_SM80_V74 : NEED_BASE});
}

void ptx_cp_async_ca(ptx_builder *b, ptx_val shared, int so, ptx_val global, int go, unsigned bytes,
                     unsigned cache)
{
    const ptx_val in[] = {shared, ptx_from_int(so), global, ptx_from_int(go), ptx_from_int(bytes)};
    copy(b, ISA_cp_async, ".ca", bytes, cache, in);
}

void ptx_cp_async_cg(ptx_builder *b, ptx_val shared, int so, ptx_val global, int go, unsigned cache)
{
    const ptx_val in[] = {shared, ptx_from_int(so), global, ptx_from_int(go), ptx_from_int(16)};
    copy(b, ISA_cp_async, ".cg", 16, cache, in);
}

void ptx_cp_async_ca_zfill(ptx_builder *b, ptx_val shared, int so, ptx_val global, int go, unsigned bytes,
                           ptx_val src_bytes, unsigned cache)
{
    const ptx_val in[] = {shared, ptx_from_int(so), global, ptx_from_int(go), ptx_from_int(bytes), src_bytes};
    copy(b, ISA_cp_async_zfill, ".ca", bytes, cache, in);
}

void ptx_cp_async_cg_zfill(ptx_builder *b, ptx_val shared, int so, ptx_val global, int go, ptx_val src_bytes,
                           unsigned cache)
{
    const ptx_val in[] = {shared, ptx_from_int(so), global, ptx_from_int(go), ptx_from_int(16), src_bytes};
    copy(b, ISA_cp_async_zfill, ".cg", 16, cache, in);
}

void ptx_cp_async_commit(ptx_builder *b)
{
    EMIT_VOID(b, cp_async_commit, PTX_NOTYPE, {0});
}

void ptx_cp_async_wait(ptx_builder *b, unsigned pending_groups)
{
    EMIT_VOID(b, cp_async_wait, PTX_NOTYPE, ptx_from_int(pending_groups));
}

void ptx_cp_async_wait_all(ptx_builder *b)
{
    EMIT_VOID(b, cp_async_wait_all, PTX_NOTYPE, {0});
}

void ptx_cp_async_mbarrier_arrive(ptx_builder *b, ptx_val shared, int offset)
{
    EMIT_VOID(b, cp_async_mbarrier_arrive, PTX_NOTYPE, shared, ptx_from_int(offset));
}

void ptx_cp_async_mbarrier_arrive_noinc(ptx_builder *b, ptx_val shared, int offset)
{
    EMIT_VOID(b, cp_async_mbarrier_arrive_noinc, PTX_NOTYPE, shared, ptx_from_int(offset));
}

/* ---- mbarrier ---- */

void ptx_mbarrier_init(ptx_builder *b, ptx_val shared, int offset, ptx_val count)
{
    EMIT_VOID(b, mbarrier_init, PTX_NOTYPE, shared, ptx_from_int(offset), count);
}

void ptx_mbarrier_inval(ptx_builder *b, ptx_val shared, int offset)
{
    EMIT_VOID(b, mbarrier_inval, PTX_NOTYPE, shared, ptx_from_int(offset));
}

ptx_val ptx_mbarrier_arrive(ptx_builder *b, ptx_val shared, int offset)
{
    return EMIT(b, mbarrier_arrive, PTX_NOTYPE, shared, ptx_from_int(offset));
}

ptx_val ptx_mbarrier_arrive_expect_tx(ptx_builder *b, ptx_val shared, int offset, ptx_val bytes)
{
    return EMIT(b, mbarrier_arrive_expect_tx, PTX_NOTYPE, shared, ptx_from_int(offset), bytes);
}

ptx_val ptx_mbarrier_test_wait(ptx_builder *b, ptx_val shared, int offset, ptx_val state)
{
    return EMIT(b, mbarrier_test_wait, PTX_NOTYPE, shared, ptx_from_int(offset), state);
}

ptx_val ptx_mbarrier_test_wait_parity(ptx_builder *b, ptx_val shared, int offset, ptx_val parity)
{
    return EMIT(b, mbarrier_test_wait_parity, PTX_NOTYPE, shared, ptx_from_int(offset), parity);
}

ptx_val ptx_mbarrier_try_wait(ptx_builder *b, ptx_val shared, int offset, ptx_val state)
{
    return EMIT(b, mbarrier_try_wait, PTX_NOTYPE, shared, ptx_from_int(offset), state);
}

ptx_val ptx_mbarrier_try_wait_parity(ptx_builder *b, ptx_val shared, int offset, ptx_val parity)
{
    return EMIT(b, mbarrier_try_wait_parity, PTX_NOTYPE, shared, ptx_from_int(offset), parity);
}
