/* The types that the command can write. */
#include "tools/qdnn/types.h"

#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const out_type types[] = {
    {"f32",    QDNN_FILE_GGUF, true,  STORED_ALONE, "F32",   QDNN_WEIGHTS_F32,         0, "plain"},
    {"f16",    QDNN_FILE_GGUF, true,  STORED_ALONE, "F16",   QDNN_WEIGHTS_F16,         0, "plain"},
    {"bf16",   QDNN_FILE_GGUF, true,  STORED_ALONE, "BF16",  QDNN_WEIGHTS_BF16,        0, "plain"},
    {"q4_0",   QDNN_FILE_GGUF, false, STORED_ALONE, "Q4_0",  QDNN_WEIGHTS_GGUF_Q4_0,   0, "4 bits, 32 share an f16 scale"},
    {"q4_1",   QDNN_FILE_GGUF, false, STORED_ALONE, "Q4_1",  QDNN_WEIGHTS_GGUF_Q4_1,   0, "4 bits with minima"},
    {"q5_0",   QDNN_FILE_GGUF, false, STORED_ALONE, "Q5_0",  QDNN_WEIGHTS_GGUF_Q5_0,   0, "5 bits"},
    {"q5_1",   QDNN_FILE_GGUF, false, STORED_ALONE, "Q5_1",  QDNN_WEIGHTS_GGUF_Q5_1,   0, "5 bits with minima"},
    {"q8_0",   QDNN_FILE_GGUF, false, STORED_ALONE, "Q8_0",  QDNN_WEIGHTS_GGUF_Q8_0,   0, "8 bits"},
    {"q2_k",   QDNN_FILE_GGUF, false, STORED_ALONE, "Q2_K",  QDNN_WEIGHTS_GGUF_Q2_K,   0, "2 bits in super-blocks of 256, scales searched for: 2.63 a weight"},
    {"q3_k",   QDNN_FILE_GGUF, false, STORED_ALONE, "Q3_K",  QDNN_WEIGHTS_GGUF_Q3_K,   0, "3 bits, the same: 3.44"},
    {"q4_k",   QDNN_FILE_GGUF, false, STORED_ALONE, "Q4_K",  QDNN_WEIGHTS_GGUF_Q4_K,   0, "4 bits: 4.5"},
    {"q5_k",   QDNN_FILE_GGUF, false, STORED_ALONE, "Q5_K",  QDNN_WEIGHTS_GGUF_Q5_K,   0, "5 bits: 5.5"},
    {"q6_k",   QDNN_FILE_GGUF, false, STORED_ALONE, "Q6_K",  QDNN_WEIGHTS_GGUF_Q6_K,   0, "6 bits: 6.56"},
    {"tq1_0",  QDNN_FILE_GGUF, false, STORED_ALONE, "TQ1_0", QDNN_WEIGHTS_GGUF_TQ1_0,  0, "-1, 0, 1 in 1.69 bits"},
    {"tq2_0",  QDNN_FILE_GGUF, false, STORED_ALONE, "TQ2_0", QDNN_WEIGHTS_GGUF_TQ2_0,  0, "-1, 0, 1 in 2.06 bits"},
    {"q1_0",   QDNN_FILE_GGUF, false, STORED_ALONE, "Q1_0",  QDNN_WEIGHTS_GGUF_Q1_0,   0, "signs in units of the mean magnitude of 128: 1.13"},
    {"q2_0",   QDNN_FILE_GGUF, false, STORED_ALONE, "Q2_0",  QDNN_WEIGHTS_GGUF_Q2_0,   0, "2 bits, 64 share an f16 scale: 2.25"},
    {"mxfp4",  QDNN_FILE_GGUF, false, STORED_ALONE, "MXFP4", QDNN_WEIGHTS_GGUF_MXFP4,  0, "E2M1, 32 share a power of two"},
    {"nvfp4",  QDNN_FILE_GGUF, false, STORED_ALONE, "NVFP4", QDNN_WEIGHTS_GGUF_NVFP4,  0, "E2M1, 16 share an E4M3 scale (convert alone)"},
    {"int4",   QDNN_FILE_SAFETENSORS, false, STORED_PACKED, "I32", QDNN_WEIGHTS_COMPRESSED_TENSORS_4BIT, 128, "pack-quantized of compressed-tensors, symmetric"},
    {"int4zp", QDNN_FILE_SAFETENSORS, false, STORED_PACKED, "I32", QDNN_WEIGHTS_COMPRESSED_TENSORS_4BIT_ZP, 128, "the same with zero points"},
    {"int8",   QDNN_FILE_SAFETENSORS, false, STORED_BESIDE, "I8",  QDNN_WEIGHTS_INT8_BLOCK, -1, "int-quantized of compressed-tensors, symmetric"},
    {"fp8",    QDNN_FILE_SAFETENSORS, false, STORED_BESIDE, "F8_E4M3", QDNN_WEIGHTS_FP8_E4M3, -1, "E4M3, float-quantized of compressed-tensors"},
    {"nf4",    QDNN_FILE_SAFETENSORS, false, STORED_BNB,    "U8",  QDNN_WEIGHTS_BNB_NF4,  64, "NF4 of bitsandbytes"},
    {"fp4",    QDNN_FILE_SAFETENSORS, false, STORED_BNB,    "U8",  QDNN_WEIGHTS_BNB_FP4,  64, "FP4 of bitsandbytes"},
    {"nvfp4",  QDNN_FILE_SAFETENSORS, false, STORED_FP4,    "U8",  QDNN_WEIGHTS_COMPRESSED_TENSORS_NVFP4, 0, "nvfp4-pack-quantized of compressed-tensors"},
    {"nvfp4_modelopt", QDNN_FILE_SAFETENSORS, false, STORED_MODELOPT, "U8", QDNN_WEIGHTS_MODELOPT_NVFP4, 0, "NVFP4 of ModelOpt"},
    {"mxfp4",  QDNN_FILE_SAFETENSORS, false, STORED_FP4,    "U8",  QDNN_WEIGHTS_MXFP4, 0, "mxfp4-pack-quantized of compressed-tensors"},
};
/* clang-format on */
enum { TYPES = sizeof types / sizeof types[0] };

const out_type *type_at(int index)
{
    return index < TYPES ? &types[index] : NULL;
}

static const char *type_name(const void *list, int index)
{
    (void)list;
    return index < TYPES ? types[index].name : index == TYPES ? "keep" : index == TYPES + 1 ? "drop" : NULL;
}

/* The row of that name and kind; *other: only the other kind of file has it. */
static const out_type *find(const char *name, size_t length, qdnnFileKind_t kind, bool *other)
{
    *other = false;
    for (int i = 0; i < TYPES; i++) {
        if (strlen(types[i].name) != length || strncmp(types[i].name, name, length) != 0)
            continue;
        if (types[i].kind == kind || types[i].either_kind)
            return &types[i];
        *other = true;
    }
    return NULL;
}

/* "-g64" after the name. */
static int parse_group(const char *text, const char *tail, type_choice *choice)
{
    char *end;
    choice->group = choice->type->group;
    if (!*tail)
        return TOOL_OK;
    long long group = strncmp(tail, "-g", 2) == 0 ? strtoll(tail + 2, &end, 10) : 0;
    if (group < 1 || group > 1 << 30 || *end)
        return tool_usage_error("the type '%s' is not of the form %s-gSIZE", text, choice->type->name);
    if (choice->type->group == 0)
        return tool_usage_error("the type '%s' has groups of its own; write %s", text, choice->type->name);
    choice->group = group;
    return TOOL_OK;
}

int type_parse(const char *text, qdnnFileKind_t kind, type_choice *choice)
{
    size_t length = strcspn(text, "-");
    bool other;
    *choice = (type_choice){.drop = strcmp(text, "drop") == 0};
    if (choice->drop || strcmp(text, "keep") == 0)
        return TOOL_OK;
    choice->type = find(text, length, kind, &other);
    if (choice->type)
        return parse_group(text, text + length, choice);
    if (other)
        return tool_usage_error("the type '%s' cannot be stored in %s; write to %s", text,
                                kind == QDNN_FILE_GGUF ? "GGUF" : "safetensors",
                                kind == QDNN_FILE_GGUF ? "OUT.safetensors" : "OUT.gguf");
    return tool_unknown("type", text, type_name, NULL, "qdnn --help lists them");
}

/* ---- descriptors ---- */

static void set(qdnnFileWeight_t *how, qdnnQuantAttribute_t attribute, int64_t value)
{
    how->setting[how->settings++] = (qdnnFileSetting_t){attribute, value};
}

qdnnFileWeight_t type_describe(type_choice choice, int rank, const int64_t *dims, int scale)
{
    const out_type *type = choice.type;
    qdnnFileWeight_t how = {.quantized = true, .weights = type->weights, .rank = rank};
    int64_t group = choice.group == -1 ? dims[rank - 1] : choice.group;
    memcpy(how.dims, dims, (size_t)rank * sizeof *dims);
    if (type->stored == STORED_PACKED || type->stored == STORED_BNB)
        how.extent = group;
    if (type->stored == STORED_BESIDE) {
        set(&how, QDNN_QUANT_LAYOUT, QDNN_LAYOUT_BYTES);
        set(&how, QDNN_QUANT_ZERO_KIND, QDNN_ZERO_NONE);
        set(&how, QDNN_QUANT_GRANULARITY, QDNN_GRANULARITY_GROUP);
        set(&how, QDNN_QUANT_GROUPS, QDNN_GROUPS_ROWS);
        set(&how, QDNN_QUANT_GROUP_SIZE, group > 0 ? group : 1);
    }
    if (scale >= 0 && type->group != 0)
        set(&how, QDNN_QUANT_SCALE_TYPE, scale);
    return how;
}

/* Readers find scales by the name of their weight, and infer groups by dividing rows. */
static const char *refused_shape(type_choice choice, const char *name, const qdnnFileWeight_t *how)
{
    const out_type *type = choice.type;
    size_t length = strlen(name);
    int64_t block = type->weights == QDNN_WEIGHTS_MXFP4 ? 32 : 16;
    bool by_name = type->stored != STORED_ALONE && type->stored != STORED_BNB;
    int64_t columns = how->dims[how->rank - 1];
    if (by_name && (length < 7 || strcmp(name + length - 7, ".weight") != 0))
        return "its name does not end in .weight, by which its scales are found";
    if (type->stored != STORED_ALONE && how->rank < 2)
        return "it is not a matrix";
    if ((type->stored == STORED_PACKED || type->stored == STORED_FP4) && how->rank != 2)
        return "it has more than two dimensions, and this type is for matrices";
    if (type->stored == STORED_PACKED && columns % 8)
        return "its rows do not fill whole words of 8 codes";
    if ((type->stored == STORED_MODELOPT || type->stored == STORED_FP4) && columns % block)
        return "its rows are not a multiple of the group size";
    if ((type->stored == STORED_PACKED || type->stored == STORED_BESIDE) && choice.group > 0 &&
        columns % choice.group)
        return "its rows are not a multiple of the group size";
    return NULL;
}

int type_refused(type_choice choice, const char *name, const qdnnFileWeight_t *how, const char **why)
{
    *why = refused_shape(choice, name, how);
    return *why ? TOOL_OK : tensor_refused(name, how, why);
}

/* ---- tensors ---- */

static const char *scale_type_name(const tensor *t)
{
    static const char *const names[] = {"F32", "F16", "BF16", "F8_E4M3", "U8"};
    int64_t type = 0;
    qdnnGetQuantAttribute(t->quant, QDNN_QUANT_SCALE_TYPE, &type);
    return names[type];
}

/* A tensor to be written: an operand of the weight, or bytes of its own. */
typedef struct part {
    const char *suffix; /* appended to the weight's name; "weight..." replaces the name's own "weight" */
    const char *type;
    int rank;
    int64_t dims[QDNN_DIMS_MAX];
    const void *data;
    uint64_t bytes;
} part;

enum { PARTS_MAX = 4, STATE_BYTES = 512 };
typedef struct parts {
    part list[PARTS_MAX];
    int n;
    int64_t shape[2]; /* of compressed-tensors */
    float map[16];    /* of bitsandbytes */
    char state[STATE_BYTES];
} parts;

static part *add(parts *p, const char *suffix, const char *type, const void *data, uint64_t bytes)
{
    part *made = &p->list[p->n++];
    *made = (part){.suffix = suffix, .type = type, .data = data, .bytes = bytes};
    return made;
}

static part *add_operand(parts *p, const char *suffix, const char *type, const tensor *t,
                         qdnnOperand_t operand)
{
    return add(p, suffix, type, t->host[operand], t->bytes[operand]);
}

static void shape(part *p, const tensor *t, int64_t columns)
{
    p->rank = t->how.rank;
    memcpy(p->dims, t->how.dims, sizeof p->dims);
    p->dims[p->rank - 1] = columns;
}

static void shape_flat(part *p, int64_t n)
{
    p->rank = 1;
    p->dims[0] = n;
}

static int64_t groups_of(const tensor *t)
{
    ref_quant_spec spec = reference_spec(t);
    return t->rows ? ref_group_count(&spec, t->rows, t->columns) / t->rows : 0;
}

/* A suffix below that begins with "weight" replaces the name's own "weight". */
static void packed(const tensor *t, bool words, parts *p)
{
    int64_t columns =
        words ? (int64_t)t->bytes[QDNN_OPERAND_CODES] / 4 / (t->rows ? t->rows : 1) : t->columns / 2;
    shape(add_operand(p, "weight_packed", words ? "I32" : "U8", t, QDNN_OPERAND_CODES), t, columns);
    shape(add_operand(p, "weight_scale", scale_type_name(t), t, QDNN_OPERAND_SCALE), t, groups_of(t));
    if (t->bytes[QDNN_OPERAND_GLOBAL_SCALE])
        shape_flat(add_operand(p, "weight_global_scale", "F32", t, QDNN_OPERAND_GLOBAL_SCALE), 1);
    if (!words)
        return;
    p->shape[0] = t->rows;
    p->shape[1] = t->columns;
    shape_flat(add(p, "weight_shape", "I64", p->shape, sizeof p->shape), 2);
    if (t->bytes[QDNN_OPERAND_ZERO]) {
        part *zeros = add_operand(p, "weight_zero_point", "I32", t, QDNN_OPERAND_ZERO);
        shape(zeros, t, groups_of(t));
        zeros->dims[0] = zeros->dims[1] ? (int64_t)zeros->bytes / 4 / zeros->dims[1] : 0;
    }
}

static void beside(const out_type *type, const tensor *t, parts *p)
{
    shape(add_operand(p, "weight", type->codes, t, QDNN_OPERAND_CODES), t, t->columns);
    shape(add_operand(p, "weight_scale", scale_type_name(t), t, QDNN_OPERAND_SCALE), t, groups_of(t));
}

static void modelopt(const tensor *t, parts *p)
{
    shape(add_operand(p, "weight", "U8", t, QDNN_OPERAND_CODES), t, t->columns / 2);
    shape(add_operand(p, "weight_scale", "F8_E4M3", t, QDNN_OPERAND_SCALE), t, groups_of(t));
    add_operand(p, "weight_scale_2", "F32", t, QDNN_OPERAND_GLOBAL_SCALE);
}

/* The numbers that codes represent, as decoded by host_ref. */
static void fill_map(const tensor *t, float *map)
{
    uint8_t codes[8];
    ref_quant_spec spec = reference_spec(t);
    ref_arrays arrays = {.codes = codes};
    for (int i = 0; i < 8; i++)
        codes[i] = (uint8_t)(2 * i << 4 | (2 * i + 1));
    spec.no_scale = true;
    ref_dequantize(&spec, 1, 16, &arrays, map);
}

static void bnb(const out_type *type, const tensor *t, parts *p)
{
    bool nf4 = type->weights == QDNN_WEIGHTS_BNB_NF4;
    part *codes = add_operand(p, "", "U8", t, QDNN_OPERAND_CODES);
    codes->rank = 2;
    codes->dims[0] = (int64_t)codes->bytes;
    codes->dims[1] = 1;
    shape_flat(add_operand(p, ".absmax", "F32", t, QDNN_OPERAND_SCALE),
               (int64_t)t->bytes[QDNN_OPERAND_SCALE] / 4);
    fill_map(t, p->map);
    shape_flat(add(p, ".quant_map", "F32", p->map, sizeof p->map), 16);
    int n = snprintf(p->state, STATE_BYTES,
                     "{\"quant_type\": \"%s\", \"blocksize\": %lld, \"dtype\": \"float32\", \"shape\": [",
                     type->name, (long long)t->how.extent);
    for (int i = 0; i < t->how.rank; i++)
        n += snprintf(p->state + n, STATE_BYTES - (size_t)n, "%s%lld", i ? ", " : "",
                      (long long)t->how.dims[i]);
    n += snprintf(p->state + n, STATE_BYTES - (size_t)n, "]}");
    shape_flat(add(p, nf4 ? ".quant_state.bitsandbytes__nf4" : ".quant_state.bitsandbytes__fp4", "U8",
                   p->state, (uint64_t)n),
               n);
}

static void codes_alone(const out_type *type, const tensor *t, parts *p)
{
    shape(add_operand(p, "", type->codes, t, QDNN_OPERAND_CODES), t, t->columns);
}

static void list_parts(const out_type *type, const tensor *t, parts *p)
{
    p->n = 0;
    switch (type->stored) {
    case STORED_ALONE:
        codes_alone(type, t, p);
        return;
    case STORED_PACKED:
    case STORED_FP4:
        packed(t, type->stored == STORED_PACKED, p);
        return;
    case STORED_BESIDE:
        beside(type, t, p);
        return;
    case STORED_MODELOPT:
        modelopt(t, p);
        return;
    case STORED_BNB:
        bnb(type, t, p);
        return;
    }
}

int type_add(output *out, type_choice choice, const tensor *t, int *first)
{
    parts p;
    int status = TOOL_OK, index;
    list_parts(choice.type, t, &p);
    for (int i = 0; i < p.n && status == TOOL_OK; i++) {
        tool_text name = {0};
        bool instead = strncmp(p.list[i].suffix, "weight", 6) == 0;
        int kept = (int)strlen(t->name) - (instead ? 6 : 0);
        tool_printf(&name, "%.*s%s", kept, t->name, p.list[i].suffix);
        status = name.failed ? tool_fail("out of memory")
                             : output_add(out, name.data, p.list[i].type, p.list[i].rank, p.list[i].dims,
                                          p.list[i].bytes, i ? &index : first);
        tool_text_free(&name);
    }
    return status;
}

int type_put(output *out, type_choice choice, const tensor *t, int first)
{
    parts p;
    int status = TOOL_OK;
    list_parts(choice.type, t, &p);
    for (int i = 0; i < p.n && status == TOOL_OK; i++)
        status = output_put(out, first + i, p.list[i].data);
    return status;
}
