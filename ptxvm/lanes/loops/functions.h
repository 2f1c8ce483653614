/* Turns the lines of a .def file into functions: include this, then the .def. rows.h turns the same lines
 * into table rows. A line is L2(add, INTEGERS, NONE, a + b) the shape (how many sources and of which types),
 * the opcode, the types it exists for, the flags that choose it (V_...), and what it does to one element. A
 * type list calls its first argument with (type, type of the result, ...). */
#undef L1
#undef L2
#undef L2S
#undef L3
#undef L3S
#define L1(op, types, flags, ...)  types(LANE_DEF1, op, flags, __VA_ARGS__)
#define L2(op, types, flags, ...)  types(LANE_DEF2, op, flags, __VA_ARGS__)
#define L2S(op, types, flags, ...) types(LANE_DEF2S, op, flags, __VA_ARGS__) /* b is a u32: a shift amount */
#define L3(op, types, flags, ...)  types(LANE_DEF3, op, flags, __VA_ARGS__)  /* c is of the result's type */
#define L3S(op, types, flags, ...) types(LANE_DEF3S, op, flags, __VA_ARGS__) /* b and c are u32 */

#define LANE_DEF1(T, D, op, flags, ...) LANE_FN1(lane_##op##_##T##_##flags, n_##T, t_##D, t_##T, __VA_ARGS__)
#define LANE_DEF2(T, D, op, flags, ...)                                                                      \
    LANE_FN2(lane_##op##_##T##_##flags, n_##T, t_##D, t_##T, t_##T, __VA_ARGS__)
#define LANE_DEF2S(T, D, op, flags, ...)                                                                     \
    LANE_FN2(lane_##op##_##T##_##flags, n_##T, t_##D, t_##T, uint32_t, __VA_ARGS__)
#define LANE_DEF3(T, D, op, flags, ...)                                                                      \
    LANE_FN3(lane_##op##_##T##_##flags, n_##T, t_##D, t_##T, t_##T, t_##D, __VA_ARGS__)
#define LANE_DEF3S(T, D, op, flags, ...)                                                                     \
    LANE_FN3(lane_##op##_##T##_##flags, n_##T, t_##D, t_##T, uint32_t, uint32_t, __VA_ARGS__)
