/* Each builder call as a macro of the same name: it records the source location of the call, for errors,
 * allows C numbers where values are expected, and evaluates operands from left to right. One line per
 * function of ptx.h that takes the builder; included by it. (A macro's own name in its replacement is not
 * expanded again, so these call the functions.) */
#ifndef PTXGEN_PTX_CALL_H
#define PTXGEN_PTX_CALL_H

/* clang-format off */
#define PTX_AT(b) ptx_mark((b), __FILE__, __LINE__)
#define PTX_V(x) \
    _Generic((x), ptx_val: ptx_from_val, float: ptx_from_real, double: ptx_from_real, \
             default: ptx_from_int)(x)

/* Evaluates the operands in order, then calls. Operands are often calls themselves, and C does not define the
 * order of evaluation of arguments: without this, another compiler would write the instructions in another
 * order. */
#define PTX_CALL1(x, call) __extension__({ __auto_type ptx_x = (x); call; })
#define PTX_CALL2(x, y, call) __extension__({ __auto_type ptx_x = (x); __auto_type ptx_y = (y); call; })
#define PTX_CALL3(x, y, z, call) \
    __extension__({ __auto_type ptx_x = (x); __auto_type ptx_y = (y); __auto_type ptx_z = (z); call; })
#define PTX_CALL4(x, y, z, w, call) \
    __extension__({ __auto_type ptx_x = (x); __auto_type ptx_y = (y); __auto_type ptx_z = (z); \
                    __auto_type ptx_w = (w); call; })

#define ptx_fail(b, ...) ptx_fail(PTX_AT(b), __VA_ARGS__)
#define ptx_kernel(b, name) ptx_kernel(PTX_AT(b), name)
#define ptx_comment(b, text) ptx_comment(PTX_AT(b), text)
#define ptx_param(b, type, name) ptx_param(PTX_AT(b), type, name)
#define ptx_param_ptr(b, name, align) ptx_param_ptr(PTX_AT(b), name, align)
#define ptx_reqntid(b, x, y, z) ptx_reqntid(PTX_AT(b), x, y, z)
#define ptx_maxntid(b, threads) ptx_maxntid(PTX_AT(b), threads)
#define ptx_minnctapersm(b, blocks) ptx_minnctapersm(PTX_AT(b), blocks)
#define ptx_maxnreg(b, registers) ptx_maxnreg(PTX_AT(b), registers)
#define ptx_u16(b, x) ptx_u16(PTX_AT(b), x)
#define ptx_s16(b, x) ptx_s16(PTX_AT(b), x)
#define ptx_u32(b, x) ptx_u32(PTX_AT(b), x)
#define ptx_s32(b, x) ptx_s32(PTX_AT(b), x)
#define ptx_u64(b, x) ptx_u64(PTX_AT(b), x)
#define ptx_s64(b, x) ptx_s64(PTX_AT(b), x)
#define ptx_f32(b, x) ptx_f32(PTX_AT(b), x)
#define ptx_f64(b, x) ptx_f64(PTX_AT(b), x)
#define ptx_bits(b, type, bits) ptx_bits(PTX_AT(b), type, bits)
#define ptx_as(b, type, x) PTX_CALL1(x, ptx_as(PTX_AT(b), type, PTX_V(ptx_x)))
#define ptx_var(b, x) PTX_CALL1(x, ptx_var(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_var_of(b, type) ptx_var_of(PTX_AT(b), type)
#define ptx_assign(b, var, x) PTX_CALL2(var, x, ptx_assign(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_into(b, var) PTX_CALL1(var, ptx_into(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_mov(b, x) PTX_CALL1(x, ptx_mov(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_sreg(b, name) ptx_sreg(PTX_AT(b), name)
#define ptx_tid_x(b) ptx_tid_x(PTX_AT(b))
#define ptx_tid_y(b) ptx_tid_y(PTX_AT(b))
#define ptx_ntid_x(b) ptx_ntid_x(PTX_AT(b))
#define ptx_ctaid_x(b) ptx_ctaid_x(PTX_AT(b))
#define ptx_ctaid_y(b) ptx_ctaid_y(PTX_AT(b))
#define ptx_ctaid_z(b) ptx_ctaid_z(PTX_AT(b))
#define ptx_nctaid_x(b) ptx_nctaid_x(PTX_AT(b))
#define ptx_laneid(b) ptx_laneid(PTX_AT(b))
#define ptx_global_index(b) ptx_global_index(PTX_AT(b))
#define ptx_global_index64(b) ptx_global_index64(PTX_AT(b))
#define ptx_if(b, pred) PTX_CALL1(pred, ptx_if(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_if_not(b, pred) PTX_CALL1(pred, ptx_if_not(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_else(b) ptx_else(PTX_AT(b))
#define ptx_end_if(b) ptx_end_if(PTX_AT(b))
#define ptx_for(b, start, bound, step) \
    PTX_CALL3(start, bound, step, ptx_for(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y), PTX_V(ptx_z)))
#define ptx_end_for(b) ptx_end_for(PTX_AT(b))
#define ptx_loop(b) ptx_loop(PTX_AT(b))
#define ptx_end_loop(b) ptx_end_loop(PTX_AT(b))
#define ptx_break(b) ptx_break(PTX_AT(b))
#define ptx_break_if(b, pred) PTX_CALL1(pred, ptx_break_if(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_break_unless(b, pred) PTX_CALL1(pred, ptx_break_unless(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_continue(b) ptx_continue(PTX_AT(b))
#define ptx_continue_if(b, pred) PTX_CALL1(pred, ptx_continue_if(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_continue_unless(b, pred) PTX_CALL1(pred, ptx_continue_unless(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_ret(b) ptx_ret(PTX_AT(b))
#define ptx_ret_if(b, pred) PTX_CALL1(pred, ptx_ret_if(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_ret_unless(b, pred) PTX_CALL1(pred, ptx_ret_unless(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_trap(b) ptx_trap(PTX_AT(b))
#define ptx_exit(b) ptx_exit(PTX_AT(b))
#define ptx_uniform(b) ptx_uniform(PTX_AT(b))
#define ptx_rolled(b) ptx_rolled(PTX_AT(b))
#define ptx_when(b, pred) PTX_CALL1(pred, ptx_when(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_unless(b, pred) PTX_CALL1(pred, ptx_unless(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_label_new(b) ptx_label_new(PTX_AT(b))
#define ptx_label_place(b, label) ptx_label_place(PTX_AT(b), label)
#define ptx_bra(b, label) ptx_bra(PTX_AT(b), label)
#define ptx_bra_if(b, pred, label) PTX_CALL1(pred, ptx_bra_if(PTX_AT(b), PTX_V(ptx_x), label))
#define ptx_bra_unless(b, pred, label) PTX_CALL1(pred, ptx_bra_unless(PTX_AT(b), PTX_V(ptx_x), label))
#define ptx_add(b, x, y) PTX_CALL2(x, y, ptx_add(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_sub(b, x, y) PTX_CALL2(x, y, ptx_sub(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_mul(b, x, y) PTX_CALL2(x, y, ptx_mul(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_mul_hi(b, x, y) PTX_CALL2(x, y, ptx_mul_hi(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_mul_wide(b, x, y) PTX_CALL2(x, y, ptx_mul_wide(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_mad(b, x, y, z) PTX_CALL3(x, y, z, ptx_mad(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y), PTX_V(ptx_z)))
#define ptx_mad_wide(b, x, y, z) \
    PTX_CALL3(x, y, z, ptx_mad_wide(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y), PTX_V(ptx_z)))
#define ptx_div(b, x, y) PTX_CALL2(x, y, ptx_div(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_rem(b, x, y) PTX_CALL2(x, y, ptx_rem(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_fma(b, x, y, z) PTX_CALL3(x, y, z, ptx_fma(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y), PTX_V(ptx_z)))
#define ptx_fma_relu(b, x, y, z) \
    PTX_CALL3(x, y, z, ptx_fma_relu(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y), PTX_V(ptx_z)))
#define ptx_sqrt(b, x) PTX_CALL1(x, ptx_sqrt(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_rcp(b, x) PTX_CALL1(x, ptx_rcp(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_min(b, x, y) PTX_CALL2(x, y, ptx_min(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_max(b, x, y) PTX_CALL2(x, y, ptx_max(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_min_nan(b, x, y) PTX_CALL2(x, y, ptx_min_nan(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_max_nan(b, x, y) PTX_CALL2(x, y, ptx_max_nan(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_abs(b, x) PTX_CALL1(x, ptx_abs(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_neg(b, x) PTX_CALL1(x, ptx_neg(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_copysign(b, sign, magnitude) \
    PTX_CALL2(sign, magnitude, ptx_copysign(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_sad(b, x, y, z) PTX_CALL3(x, y, z, ptx_sad(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y), PTX_V(ptx_z)))
#define ptx_clamp(b, x, lo, hi) \
    PTX_CALL3(x, lo, hi, ptx_clamp(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y), PTX_V(ptx_z)))
#define ptx_clamp_s32(b, x, lo, hi) PTX_CALL1(x, ptx_clamp_s32(PTX_AT(b), PTX_V(ptx_x), lo, hi))
#define ptx_testp_nan(b, x) PTX_CALL1(x, ptx_testp_nan(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_testp_finite(b, x) PTX_CALL1(x, ptx_testp_finite(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_dp4a(b, x, y, c) PTX_CALL3(x, y, c, ptx_dp4a(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y), PTX_V(ptx_z)))
#define ptx_dp2a_lo(b, x, y, c) \
    PTX_CALL3(x, y, c, ptx_dp2a_lo(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y), PTX_V(ptx_z)))
#define ptx_dp2a_hi(b, x, y, c) \
    PTX_CALL3(x, y, c, ptx_dp2a_hi(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y), PTX_V(ptx_z)))
#define ptx_add_cc(b, x, y) PTX_CALL2(x, y, ptx_add_cc(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_addc(b, x, y) PTX_CALL2(x, y, ptx_addc(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_sub_cc(b, x, y) PTX_CALL2(x, y, ptx_sub_cc(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_subc(b, x, y) PTX_CALL2(x, y, ptx_subc(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_and(b, x, y) PTX_CALL2(x, y, ptx_and(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_or(b, x, y) PTX_CALL2(x, y, ptx_or(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_xor(b, x, y) PTX_CALL2(x, y, ptx_xor(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_not(b, x) PTX_CALL1(x, ptx_not(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_cnot(b, x) PTX_CALL1(x, ptx_cnot(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_lop3(b, x, y, z, table) \
    PTX_CALL3(x, y, z, ptx_lop3(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y), PTX_V(ptx_z), table))
#define ptx_prmt(b, x, y, selector) \
    PTX_CALL3(x, y, selector, ptx_prmt(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y), PTX_V(ptx_z)))
#define ptx_shl(b, x, count) PTX_CALL2(x, count, ptx_shl(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_shr(b, x, count) PTX_CALL2(x, count, ptx_shr(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_shf_l(b, lo, hi, count) \
    PTX_CALL3(lo, hi, count, ptx_shf_l(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y), PTX_V(ptx_z)))
#define ptx_shf_r(b, lo, hi, count) \
    PTX_CALL3(lo, hi, count, ptx_shf_r(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y), PTX_V(ptx_z)))
#define ptx_bfe(b, x, pos, len) \
    PTX_CALL3(x, pos, len, ptx_bfe(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y), PTX_V(ptx_z)))
#define ptx_bfi(b, x, base, pos, len) \
    PTX_CALL4(x, base, pos, len, ptx_bfi(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y), PTX_V(ptx_z), PTX_V(ptx_w)))
#define ptx_bfind(b, x) PTX_CALL1(x, ptx_bfind(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_popc(b, x) PTX_CALL1(x, ptx_popc(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_clz(b, x) PTX_CALL1(x, ptx_clz(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_brev(b, x) PTX_CALL1(x, ptx_brev(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_pack(b, ...) ptx_pack(PTX_AT(b), __VA_ARGS__)
#define ptx_pack2(b, type, lo, hi) PTX_CALL2(lo, hi, ptx_pack2(PTX_AT(b), type, PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_unpack(b, part, x, ...) PTX_CALL1(x, ptx_unpack(PTX_AT(b), part, PTX_V(ptx_x), __VA_ARGS__))
#define ptx_setp(b, cmp, x, y) PTX_CALL2(x, y, ptx_setp(PTX_AT(b), cmp, PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_setp_and(b, cmp, x, y, p) \
    PTX_CALL3(x, y, p, ptx_setp_and(PTX_AT(b), cmp, PTX_V(ptx_x), PTX_V(ptx_y), PTX_V(ptx_z)))
#define ptx_setp_or(b, cmp, x, y, p) \
    PTX_CALL3(x, y, p, ptx_setp_or(PTX_AT(b), cmp, PTX_V(ptx_x), PTX_V(ptx_y), PTX_V(ptx_z)))
#define ptx_selp(b, if_true, if_false, pred) \
    PTX_CALL3(if_true, if_false, pred, ptx_selp(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y), PTX_V(ptx_z)))
#define ptx_setp_x2(b, cmp, x, y, ...) \
    PTX_CALL2(x, y, ptx_setp_x2(PTX_AT(b), cmp, PTX_V(ptx_x), PTX_V(ptx_y), __VA_ARGS__))
#define ptx_cvt(b, to, x) PTX_CALL1(x, ptx_cvt(PTX_AT(b), to, PTX_V(ptx_x)))
#define ptx_cvt_rn(b, to, x) PTX_CALL1(x, ptx_cvt_rn(PTX_AT(b), to, PTX_V(ptx_x)))
#define ptx_cvt_rz(b, to, x) PTX_CALL1(x, ptx_cvt_rz(PTX_AT(b), to, PTX_V(ptx_x)))
#define ptx_cvt_rm(b, to, x) PTX_CALL1(x, ptx_cvt_rm(PTX_AT(b), to, PTX_V(ptx_x)))
#define ptx_cvt_rp(b, to, x) PTX_CALL1(x, ptx_cvt_rp(PTX_AT(b), to, PTX_V(ptx_x)))
#define ptx_cvt_rni(b, to, x) PTX_CALL1(x, ptx_cvt_rni(PTX_AT(b), to, PTX_V(ptx_x)))
#define ptx_cvt_rzi(b, to, x) PTX_CALL1(x, ptx_cvt_rzi(PTX_AT(b), to, PTX_V(ptx_x)))
#define ptx_cvt_rmi(b, to, x) PTX_CALL1(x, ptx_cvt_rmi(PTX_AT(b), to, PTX_V(ptx_x)))
#define ptx_cvt_rpi(b, to, x) PTX_CALL1(x, ptx_cvt_rpi(PTX_AT(b), to, PTX_V(ptx_x)))
#define ptx_cvt_rna_tf32(b, x) PTX_CALL1(x, ptx_cvt_rna_tf32(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_cvt_low(b, to, from, x) PTX_CALL1(x, ptx_cvt_low(PTX_AT(b), to, from, PTX_V(ptx_x)))
#define ptx_cvt_sat(b, to, x) PTX_CALL1(x, ptx_cvt_sat(PTX_AT(b), to, PTX_V(ptx_x)))
#define ptx_cvt_pair(b, to, lo, hi) PTX_CALL2(lo, hi, ptx_cvt_pair(PTX_AT(b), to, PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_cvt_pair_relu(b, to, lo, hi) \
    PTX_CALL2(lo, hi, ptx_cvt_pair_relu(PTX_AT(b), to, PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_cvt_pair_rz(b, to, lo, hi) \
    PTX_CALL2(lo, hi, ptx_cvt_pair_rz(PTX_AT(b), to, PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_cvt_relu(b, to, x) PTX_CALL1(x, ptx_cvt_relu(PTX_AT(b), to, PTX_V(ptx_x)))
#define ptx_cvt_satfinite(b, to, x) PTX_CALL1(x, ptx_cvt_satfinite(PTX_AT(b), to, PTX_V(ptx_x)))
#define ptx_cvt_ue8m0_rz(b, lo, hi) PTX_CALL2(lo, hi, ptx_cvt_ue8m0_rz(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_cvt_ue8m0_rp(b, lo, hi) PTX_CALL2(lo, hi, ptx_cvt_ue8m0_rp(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_at(b, base, index, scale) \
    PTX_CALL2(base, index, ptx_at(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y), scale))
#define ptx_ld(b, space, cache, type, address, offset) \
    PTX_CALL1(address, ptx_ld(PTX_AT(b), space, cache, type, PTX_V(ptx_x), offset))
#define ptx_ld_vec(b, space, cache, type, address, ...) \
    PTX_CALL1(address, ptx_ld_vec(PTX_AT(b), space, cache, type, PTX_V(ptx_x), __VA_ARGS__))
#define ptx_ld_vec_into(b, space, cache, type, address, ...) \
    PTX_CALL1(address, ptx_ld_vec_into(PTX_AT(b), space, cache, type, PTX_V(ptx_x), __VA_ARGS__))
#define ptx_ld_if(b, pred, space, cache, type, address, offset, otherwise) \
    PTX_CALL3(pred, address, otherwise, \
        ptx_ld_if(PTX_AT(b), PTX_V(ptx_x), space, cache, type, PTX_V(ptx_y), offset, PTX_V(ptx_z)))
#define ptx_st(b, space, cache, address, offset, x) \
    PTX_CALL2(address, x, ptx_st(PTX_AT(b), space, cache, PTX_V(ptx_x), offset, PTX_V(ptx_y)))
#define ptx_st_as(b, space, cache, type, address, offset, x) \
    PTX_CALL2(address, x, ptx_st_as(PTX_AT(b), space, cache, type, PTX_V(ptx_x), offset, PTX_V(ptx_y)))
#define ptx_st_vec(b, space, cache, address, ...) \
    PTX_CALL1(address, ptx_st_vec(PTX_AT(b), space, cache, PTX_V(ptx_x), __VA_ARGS__))
#define ptx_ld_global(b, type, address, offset) \
    PTX_CALL1(address, ptx_ld_global(PTX_AT(b), type, PTX_V(ptx_x), offset))
#define ptx_ld_global_nc(b, type, address, offset) \
    PTX_CALL1(address, ptx_ld_global_nc(PTX_AT(b), type, PTX_V(ptx_x), offset))
#define ptx_ld_shared(b, type, address, offset) \
    PTX_CALL1(address, ptx_ld_shared(PTX_AT(b), type, PTX_V(ptx_x), offset))
#define ptx_ld_const(b, type, address, offset) \
    PTX_CALL1(address, ptx_ld_const(PTX_AT(b), type, PTX_V(ptx_x), offset))
#define ptx_st_global(b, address, offset, x) \
    PTX_CALL2(address, x, ptx_st_global(PTX_AT(b), PTX_V(ptx_x), offset, PTX_V(ptx_y)))
#define ptx_st_global_u8(b, address, offset, x) \
    PTX_CALL2(address, x, ptx_st_global_u8(PTX_AT(b), PTX_V(ptx_x), offset, PTX_V(ptx_y)))
#define ptx_st_shared(b, address, offset, x) \
    PTX_CALL2(address, x, ptx_st_shared(PTX_AT(b), PTX_V(ptx_x), offset, PTX_V(ptx_y)))
#define ptx_prefetch_l1(b, address, offset) \
    PTX_CALL1(address, ptx_prefetch_l1(PTX_AT(b), PTX_V(ptx_x), offset))
#define ptx_prefetch_l2(b, address, offset) \
    PTX_CALL1(address, ptx_prefetch_l2(PTX_AT(b), PTX_V(ptx_x), offset))
#define ptx_shared(b, name, type, count, align) ptx_shared(PTX_AT(b), name, type, count, align)
#define ptx_local(b, name, type, count, align) ptx_local(PTX_AT(b), name, type, count, align)
#define ptx_shared_dynamic(b, align) ptx_shared_dynamic(PTX_AT(b), align)
#define ptx_table(b, space, name, type, bits, count) ptx_table(PTX_AT(b), space, name, type, bits, count)
#define ptx_cvta_to(b, space, generic) PTX_CALL1(generic, ptx_cvta_to(PTX_AT(b), space, PTX_V(ptx_x)))
#define ptx_cvta(b, space, address) PTX_CALL1(address, ptx_cvta(PTX_AT(b), space, PTX_V(ptx_x)))
#define ptx_atom(b, op, space, address, offset, x) \
    PTX_CALL2(address, x, ptx_atom(PTX_AT(b), op, space, PTX_V(ptx_x), offset, PTX_V(ptx_y)))
#define ptx_atom_acq_rel(b, op, space, address, offset, x) \
    PTX_CALL2(address, x, ptx_atom_acq_rel(PTX_AT(b), op, space, PTX_V(ptx_x), offset, PTX_V(ptx_y)))
#define ptx_atom_cas(b, space, address, offset, expected, x) \
    PTX_CALL3(address, expected, x, \
        ptx_atom_cas(PTX_AT(b), space, PTX_V(ptx_x), offset, PTX_V(ptx_y), PTX_V(ptx_z)))
#define ptx_red(b, op, space, address, offset, x) \
    PTX_CALL2(address, x, ptx_red(PTX_AT(b), op, space, PTX_V(ptx_x), offset, PTX_V(ptx_y)))
#define ptx_cp_async_ca(b, shared, so, global, go, bytes, cache) \
    PTX_CALL2(shared, global, ptx_cp_async_ca(PTX_AT(b), PTX_V(ptx_x), so, PTX_V(ptx_y), go, bytes, cache))
#define ptx_cp_async_cg(b, shared, so, global, go, cache) \
    PTX_CALL2(shared, global, ptx_cp_async_cg(PTX_AT(b), PTX_V(ptx_x), so, PTX_V(ptx_y), go, cache))
#define ptx_cp_async_ca_zfill(b, shared, so, global, go, bytes, src_bytes, cache) \
    PTX_CALL3(shared, global, src_bytes, \
        ptx_cp_async_ca_zfill(PTX_AT(b), PTX_V(ptx_x), so, PTX_V(ptx_y), go, bytes, PTX_V(ptx_z), cache))
#define ptx_cp_async_cg_zfill(b, shared, so, global, go, src_bytes, cache) \
    PTX_CALL3(shared, global, src_bytes, \
        ptx_cp_async_cg_zfill(PTX_AT(b), PTX_V(ptx_x), so, PTX_V(ptx_y), go, PTX_V(ptx_z), cache))
#define ptx_cp_async_commit(b) ptx_cp_async_commit(PTX_AT(b))
#define ptx_cp_async_wait(b, pending_groups) ptx_cp_async_wait(PTX_AT(b), pending_groups)
#define ptx_cp_async_wait_all(b) ptx_cp_async_wait_all(PTX_AT(b))
#define ptx_mbarrier_init(b, shared, offset, count) \
    PTX_CALL2(shared, count, ptx_mbarrier_init(PTX_AT(b), PTX_V(ptx_x), offset, PTX_V(ptx_y)))
#define ptx_mbarrier_inval(b, shared, offset) \
    PTX_CALL1(shared, ptx_mbarrier_inval(PTX_AT(b), PTX_V(ptx_x), offset))
#define ptx_mbarrier_arrive(b, shared, offset) \
    PTX_CALL1(shared, ptx_mbarrier_arrive(PTX_AT(b), PTX_V(ptx_x), offset))
#define ptx_mbarrier_arrive_expect_tx(b, shared, offset, bytes) \
    PTX_CALL2(shared, bytes, ptx_mbarrier_arrive_expect_tx(PTX_AT(b), PTX_V(ptx_x), offset, PTX_V(ptx_y)))
#define ptx_mbarrier_test_wait(b, shared, offset, state) \
    PTX_CALL2(shared, state, ptx_mbarrier_test_wait(PTX_AT(b), PTX_V(ptx_x), offset, PTX_V(ptx_y)))
#define ptx_mbarrier_test_wait_parity(b, shared, offset, parity) \
    PTX_CALL2(shared, parity, ptx_mbarrier_test_wait_parity(PTX_AT(b), PTX_V(ptx_x), offset, PTX_V(ptx_y)))
#define ptx_mbarrier_try_wait(b, shared, offset, state) \
    PTX_CALL2(shared, state, ptx_mbarrier_try_wait(PTX_AT(b), PTX_V(ptx_x), offset, PTX_V(ptx_y)))
#define ptx_mbarrier_try_wait_parity(b, shared, offset, parity) \
    PTX_CALL2(shared, parity, ptx_mbarrier_try_wait_parity(PTX_AT(b), PTX_V(ptx_x), offset, PTX_V(ptx_y)))
#define ptx_cp_async_mbarrier_arrive(b, shared, offset) \
    PTX_CALL1(shared, ptx_cp_async_mbarrier_arrive(PTX_AT(b), PTX_V(ptx_x), offset))
#define ptx_cp_async_mbarrier_arrive_noinc(b, shared, offset) \
    PTX_CALL1(shared, ptx_cp_async_mbarrier_arrive_noinc(PTX_AT(b), PTX_V(ptx_x), offset))
#define ptx_shfl_bfly(b, x, lane_mask) \
    PTX_CALL2(x, lane_mask, ptx_shfl_bfly(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_shfl_up(b, x, delta) PTX_CALL2(x, delta, ptx_shfl_up(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_shfl_down(b, x, delta) PTX_CALL2(x, delta, ptx_shfl_down(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_shfl_idx(b, x, lane) PTX_CALL2(x, lane, ptx_shfl_idx(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_shfl(b, mode, x, lane, clamp, members, ...) \
    PTX_CALL4(x, lane, clamp, members, \
        ptx_shfl(PTX_AT(b), mode, PTX_V(ptx_x), PTX_V(ptx_y), PTX_V(ptx_z), PTX_V(ptx_w), __VA_ARGS__))
#define ptx_vote_all(b, pred) PTX_CALL1(pred, ptx_vote_all(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_vote_any(b, pred) PTX_CALL1(pred, ptx_vote_any(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_vote_uni(b, pred) PTX_CALL1(pred, ptx_vote_uni(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_ballot(b, pred) PTX_CALL1(pred, ptx_ballot(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_match_any(b, x) PTX_CALL1(x, ptx_match_any(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_match_all(b, x) PTX_CALL1(x, ptx_match_all(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_activemask(b) ptx_activemask(PTX_AT(b))
#define ptx_redux(b, op, x) PTX_CALL1(x, ptx_redux(PTX_AT(b), op, PTX_V(ptx_x)))
#define ptx_syncthreads(b) ptx_syncthreads(PTX_AT(b))
#define ptx_bar_sync(b, barrier, threads) ptx_bar_sync(PTX_AT(b), barrier, threads)
#define ptx_bar_arrive(b, barrier, threads) ptx_bar_arrive(PTX_AT(b), barrier, threads)
#define ptx_barrier_sync(b, barrier, threads) \
    PTX_CALL2(barrier, threads, ptx_barrier_sync(PTX_AT(b), PTX_V(ptx_x), PTX_V(ptx_y)))
#define ptx_bar_red_and(b, barrier, pred) PTX_CALL1(pred, ptx_bar_red_and(PTX_AT(b), barrier, PTX_V(ptx_x)))
#define ptx_bar_red_or(b, barrier, pred) PTX_CALL1(pred, ptx_bar_red_or(PTX_AT(b), barrier, PTX_V(ptx_x)))
#define ptx_bar_red_popc(b, barrier, pred) PTX_CALL1(pred, ptx_bar_red_popc(PTX_AT(b), barrier, PTX_V(ptx_x)))
#define ptx_syncwarp(b) ptx_syncwarp(PTX_AT(b))
#define ptx_membar_cta(b) ptx_membar_cta(PTX_AT(b))
#define ptx_membar_gl(b) ptx_membar_gl(PTX_AT(b))
#define ptx_membar_sys(b) ptx_membar_sys(PTX_AT(b))
#define ptx_fence_acq_rel_gpu(b) ptx_fence_acq_rel_gpu(PTX_AT(b))
#define ptx_fence_acq_rel_cta(b) ptx_fence_acq_rel_cta(PTX_AT(b))
#define ptx_nanosleep(b, nanoseconds) PTX_CALL1(nanoseconds, ptx_nanosleep(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_griddepcontrol_wait(b) ptx_griddepcontrol_wait(PTX_AT(b))
#define ptx_griddepcontrol_launch(b) ptx_griddepcontrol_launch(PTX_AT(b))
#define ptx_dependent(b)             ptx_dependent(PTX_AT(b))
#define ptx_ldmatrix(b, shared, ...) PTX_CALL1(shared, ptx_ldmatrix(PTX_AT(b), PTX_V(ptx_x), __VA_ARGS__))
#define ptx_ldmatrix_trans(b, shared, ...) \
    PTX_CALL1(shared, ptx_ldmatrix_trans(PTX_AT(b), PTX_V(ptx_x), __VA_ARGS__))
#define ptx_stmatrix(b, shared, ...) PTX_CALL1(shared, ptx_stmatrix(PTX_AT(b), PTX_V(ptx_x), __VA_ARGS__))
#define ptx_movmatrix_trans(b, x) PTX_CALL1(x, ptx_movmatrix_trans(PTX_AT(b), PTX_V(ptx_x)))
#define ptx_mma(b, ...) ptx_mma(PTX_AT(b), __VA_ARGS__)
#define ptx_mma_into(b, ...) ptx_mma_into(PTX_AT(b), __VA_ARGS__)
#define ptx_mma_satfinite(b, ...) ptx_mma_satfinite(PTX_AT(b), __VA_ARGS__)
/* clang-format on */

#endif
