/* Tensor maps: their rules (CUDA driver API, cuTensorMapEncodeTiled), checked when one is made and whenever one is used. */
#include "tensormap.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* CUtensorMapDataType; 0 bytes: not supported. Bytes of packed types: those of a unit. */
static const struct {
    const char *name;
    uint8_t bytes;
    bool is_float;
} types[] = {
    {"UINT8", 1, false},          {"UINT16", 2, false},       {"UINT32", 4, false},
    {"INT32", 4, false},          {"UINT64", 8, false},       {"INT64", 8, false},
    {"FLOAT16", 2, true},         {"FLOAT32", 4, true},       {"FLOAT64", 8, true},
    {"BFLOAT16", 2, true},        {"FLOAT32_FTZ", 0, true},   {"TFLOAT32", 4, true},
    {"TFLOAT32_FTZ", 0, true},    {"16U4_ALIGN8B", 1, false}, {"16U4_ALIGN16B", 8, false},
    {"16U6_ALIGN16B", 12, false},
};

/* Packed types move as units of several elements, which may have a gap behind them in shared memory. */
enum { FIRST_PACKED = 13 };
static const struct {
    uint8_t elements, spaced; /* bytes of a unit with its gap */
} packed[] = {{2, 1}, {16, 16}, {16, 16}};

enum { TYPES = sizeof types / sizeof types[0], SWIZZLES = 5 /* that are supported */, SWIZZLES_KNOWN = 7 };

uint32_t vm_tensormap_element_bytes(const vm_tensormap *map)
{
    return types[map->type].bytes;
}

uint32_t vm_tensormap_unit(const vm_tensormap *map)
{
    return map->type < FIRST_PACKED ? 1 : packed[map->type - FIRST_PACKED].elements;
}

uint32_t vm_tensormap_shared_bytes(const vm_tensormap *map)
{
    return map->type < FIRST_PACKED ? types[map->type].bytes : packed[map->type - FIRST_PACKED].spaced;
}

bool vm_tensormap_rounds(const vm_tensormap *map)
{
    return map->type == 11;
}

bool vm_tensormap_is_float(const vm_tensormap *map)
{
    return types[map->type].is_float;
}

uint32_t vm_tensormap_extent(const vm_tensormap *map, int i)
{
    return ((uint32_t)map->box[i] + map->element_stride[i] - 1) / map->element_stride[i] /
           (i ? 1 : vm_tensormap_unit(map));
}

uint32_t vm_tensormap_width(const vm_tensormap *map)
{
    return map->swizzle == VM_SWIZZLE_BY_32 ? 128 : 16u << map->swizzle;
}

static ptxvm_status wrong(ptxvm_status status, char *why, size_t size, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static ptxvm_status wrong(ptxvm_status status, char *why, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, size, format, args);
    va_end(args);
    return status;
}

#define BROKEN(...)      return wrong(PTXVM_ERROR_ARGUMENT, why, size, __VA_ARGS__)
#define UNSUPPORTED(...) return wrong(PTXVM_ERROR_UNSUPPORTED, why, size, __VA_ARGS__)

static ptxvm_status kind_problem(const vm_tensormap *map, char *why, size_t size)
{
    if (map->type >= TYPES)
        BROKEN("data type %u: the last one is %d", map->type, TYPES - 1);
    if (!types[map->type].bytes)
        UNSUPPORTED("data type %s is not supported by ptxvm", types[map->type].name);
    if (map->interleave > 2)
        BROKEN("interleave %u: it is 0, 1 or 2", map->interleave);
    if (map->interleave)
        UNSUPPORTED("interleaved layouts are not supported by ptxvm");
    if (map->swizzle >= SWIZZLES_KNOWN)
        BROKEN("swizzle %u: the last one is %d", map->swizzle, SWIZZLES_KNOWN - 1);
    if (map->swizzle >= SWIZZLES)
        UNSUPPORTED("swizzle %u, which exchanges halves or pieces of 64 bytes, is not supported by ptxvm",
                    map->swizzle);
    if (map->l2_promotion > 3)
        BROKEN("L2 promotion %u: it is 0 to 3", map->l2_promotion);
    if (map->fill > 1)
        BROKEN("fill %u: it is 0 or 1", map->fill);
    if (map->fill && !types[map->type].is_float)
        BROKEN("a fill with NaN needs a floating-point type, not %s", types[map->type].name);
    if (map->rank < 1 || map->rank > PTXVM_TENSORMAP_RANK)
        BROKEN("rank %u: it is 1 to 5", map->rank);
    return PTXVM_OK;
}

static ptxvm_status dimension_problem(const vm_tensormap *map, int i, char *why, size_t size)
{
    if (i && map->stride[i] % 16)
        BROKEN("the stride of dimension %d is %llu bytes: it must be a multiple of 16", i,
               (unsigned long long)map->stride[i]);
    if (i && map->stride[i] >> 40)
        BROKEN("the stride of dimension %d is %llu bytes: it must be less than 2^40", i,
               (unsigned long long)map->stride[i]);
    if (map->box[i] < 1 || map->box[i] > 256)
        BROKEN("the box has %u elements in dimension %d: it may have 1 to 256", map->box[i], i);
    if (map->element_stride[i] < 1 || map->element_stride[i] > 8)
        BROKEN("the element stride of dimension %d is %u: it may be 1 to 8", i, map->element_stride[i]);
    return PTXVM_OK;
}

/* Packed types: of the innermost dimension, and of the addresses of those with gaps. */
static ptxvm_status packed_problem(const vm_tensormap *map, char *why, size_t size)
{
    const char *name = types[map->type].name;
    const bool spaced = vm_tensormap_shared_bytes(map) != types[map->type].bytes;
    const unsigned elements = spaced ? 128 : vm_tensormap_unit(map);
    if (map->type < FIRST_PACKED)
        return PTXVM_OK;
    if ((map->last[0] + UINT64_C(1)) % elements)
        BROKEN("dimension 0 has %llu elements: with %s it must be a multiple of %u",
               (unsigned long long)map->last[0] + 1, name, elements);
    if (map->element_stride[0] != 1)
        BROKEN("the element stride of dimension 0 is %u: with %s it must be 1", map->element_stride[0], name);
    if (spaced ? map->box[0] != elements : map->box[0] % elements)
        BROKEN("the box has %u elements in dimension 0: with %s it must be %s%u", map->box[0], name,
               spaced ? "" : "a multiple of ", elements);
    if (spaced && map->address % 32)
        BROKEN("the global address 0x%llx is not a multiple of 32, as %s needs",
               (unsigned long long)map->address, name);
    for (int i = 1; spaced && i < map->rank; i++)
        if (map->stride[i] % 32)
            BROKEN("the stride of dimension %d is %llu bytes: with %s it must be a multiple of 32", i,
                   (unsigned long long)map->stride[i], name);
    if (spaced && map->swizzle && map->swizzle != 3)
        BROKEN("swizzle %u: with %s it is 0 or 3", map->swizzle, name);
    return PTXVM_OK;
}

ptxvm_status vm_tensormap_problem(const vm_tensormap *map, char *why, size_t size)
{
    if (map->magic != VM_TENSORMAP_MAGIC)
        BROKEN("there is no tensor map that cuTensorMapEncodeTiled of ptxvm has made");
    ptxvm_status status = kind_problem(map, why, size);
    if (!status && map->address % 16)
        BROKEN("the global address 0x%llx is not a multiple of 16", (unsigned long long)map->address);
    for (int i = 0; !status && i < map->rank; i++)
        status = dimension_problem(map, i, why, size);
    if (!status)
        status = packed_problem(map, why, size);
    if (status)
        return status;
    uint32_t inner = vm_tensormap_extent(map, 0) * vm_tensormap_shared_bytes(map);
    if (inner % 16)
        BROKEN("a row of the box has %u bytes: it must be a multiple of 16", inner);
    if (map->swizzle && inner > vm_tensormap_width(map))
        BROKEN("a row of the box has %u bytes: with a swizzle of %u bytes it may not have more", inner,
               vm_tensormap_width(map));
    return PTXVM_OK;
}

static ptxvm_status size_problem(const ptxvm_tensormap_config *c, char *why, size_t size)
{
    for (int i = 0; i < c->rank; i++) {
        if (!c->dim[i] || c->dim[i] > UINT64_C(1) << 32)
            BROKEN("dimension %d has %llu elements: it may have 1 to 2^32", i, (unsigned long long)c->dim[i]);
        if (c->box[i] > 256)
            BROKEN("the box has %u elements in dimension %d: it may have 1 to 256", c->box[i], i);
        if (c->element_stride[i] > 8)
            BROKEN("the element stride of dimension %d is %u: it may be 1 to 8", i, c->element_stride[i]);
    }
    return PTXVM_OK;
}

/* Numbers that do not fit their field are as wrong as the largest that does. */
static uint8_t byte_of(int value)
{
    return value < 0 || value > UINT8_MAX ? UINT8_MAX : (uint8_t)value;
}

ptxvm_status ptxvm_tensormap_encode(void *to, const ptxvm_tensormap_config *c, char *why, size_t size)
{
    vm_tensormap map = {.address = c->address,
                        .type = byte_of(c->type),
                        .rank = byte_of(c->rank),
                        .interleave = byte_of(c->interleave),
                        .swizzle = byte_of(c->swizzle),
                        .fill = byte_of(c->fill),
                        .l2_promotion = byte_of(c->l2_promotion),
                        .magic = VM_TENSORMAP_MAGIC};
    ptxvm_status status = kind_problem(&map, why, size);
    if (!status)
        status = size_problem(c, why, size);
    if (status)
        return status;
    for (int i = 0; i < c->rank; i++) {
        map.stride[i] = i ? c->stride[i] : 0;
        map.last[i] = (uint32_t)(c->dim[i] - 1);
        map.box[i] = (uint16_t)c->box[i];
        map.element_stride[i] = (uint8_t)c->element_stride[i];
    }
    status = vm_tensormap_problem(&map, why, size);
    if (!status) {
        map.stride[0] = vm_tensormap_element_bytes(&map);
        memcpy(to, &map, sizeof map);
    }
    return status;
}

ptxvm_status ptxvm_tensormap_replace_address(void *at, ptxvm_address address, char *why, size_t size)
{
    vm_tensormap map;
    memcpy(&map, at, sizeof map);
    map.address = address;
    ptxvm_status status = vm_tensormap_problem(&map, why, size);
    if (!status)
        memcpy(at, &map, sizeof map);
    return status;
}
