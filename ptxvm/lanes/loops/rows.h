/* Turns the lines of a .def file into rows of the table; see functions.h. */
#undef L1
#undef L2
#undef L2S
#undef L3
#undef L3S
#define L1(op, types, flags, ...)  types(LANE_ROW, op, flags)
#define L2(op, types, flags, ...)  types(LANE_ROW, op, flags)
#define L2S(op, types, flags, ...) types(LANE_ROW, op, flags)
#define L3(op, types, flags, ...)  types(LANE_ROW, op, flags)
#define L3S(op, types, flags, ...) types(LANE_ROW, op, flags)

#define LANE_ROW(T, D, op, flags) {OP_##op, T_##T, T_NONE, 0, V_##flags, 0, lane_##op##_##T##_##flags},
