/* What checkpoint loaders expect as quantization_config in config.json: how the weights of a safetensors file
 * are quantized. It is also written to the file's own metadata, where our reader finds it. */
#include "tools/qdnn/rewrite.h"

#include <stdlib.h>
#include <string.h>

typedef enum { FAMILY_NONE, FAMILY_COMPRESSED, FAMILY_MODELOPT, FAMILY_BNB } family;

/* compressed-tensors: the name of its format, and what it calls the numbers and their scales. */
static const struct compressed {
    const char *type, *format, *number_type;
    int bits;
    bool symmetric;
    int group;           /* 0: as chosen; a whole row is a channel */
    const char *details; /* further members */
} compressed[] = {
    {"int4", "pack-quantized", "int", 4, true, 0, ""},
    {"int4zp", "pack-quantized", "int", 4, false, 0, ""},
    {"int8", "int-quantized", "int", 8, true, 0, ""},
    {"fp8", "float-quantized", "float", 8, true, 0, ""},
    {"mxfp4", "mxfp4-pack-quantized", "float", 4, true, 32, ", \"scale_dtype\": \"torch.uint8\""},
    {"nvfp4", "nvfp4-pack-quantized", "float", 4, true, 16, ", \"scale_dtype\": \"torch.float8_e4m3fn\""},
};

static const struct compressed *find_compressed(const out_type *type)
{
    for (size_t i = 0; i < sizeof compressed / sizeof compressed[0]; i++)
        if (strcmp(compressed[i].type, type->name) == 0)
            return &compressed[i];
    return NULL;
}

static family family_of(const out_type *type)
{
    return type->stored == STORED_MODELOPT ? FAMILY_MODELOPT
           : type->stored == STORED_BNB    ? FAMILY_BNB
                                           : FAMILY_COMPRESSED;
}

/* Whether it is written as codes. */
static bool is_made(const job *j)
{
    return j->choice.type && !j->choice.type->either_kind;
}

/* ---- lists of modules ---- */

/* The name of a module: that of its matrix without ".weight". Returns false if it is no matrix of a module. */
static bool append_module(tool_text *text, const job *j, const char *separator)
{
    size_t n = strlen(j->from.name);
    if (j->from.rank < 2 || n < 7 || strcmp(j->from.name + n - 7, ".weight") != 0)
        return false;
    char *name = strndup(j->from.name, n - 7);
    tool_append(text, separator, strlen(separator));
    if (name)
        tool_quote(text, name);
    else
        text->failed = true;
    free(name);
    return true;
}

/* Modules that are not quantized. */
static void list_kept(const rewrite *r, tool_text *text)
{
    bool first = true;
    tool_append(text, "[", 1);
    for (int i = 0; i < r->info.weights; i++)
        if (!is_made(&r->jobs[i]) && !r->jobs[i].choice.drop &&
            append_module(text, &r->jobs[i], first ? "" : ", "))
            first = false;
    tool_append(text, "]", 1);
}

static bool same_choice(type_choice a, type_choice b)
{
    return a.type == b.type && a.group == b.group;
}

/* Modules of one type. */
static void list_made(const rewrite *r, type_choice choice, tool_text *text)
{
    bool first = true;
    tool_append(text, "[", 1);
    for (int i = 0; i < r->info.weights; i++)
        if (is_made(&r->jobs[i]) && same_choice(r->jobs[i].choice, choice) &&
            append_module(text, &r->jobs[i], first ? "" : ", "))
            first = false;
    tool_append(text, "]", 1);
}

/* ---- compressed-tensors ---- */

enum { CHOICES_MAX = 64 };

/* The different types of the quantized weights; returns how many. */
static int list_choices(const rewrite *r, type_choice choices[CHOICES_MAX])
{
    int n = 0;
    for (int i = 0; i < r->info.weights; i++) {
        int k = 0;
        while (k < n && !same_choice(choices[k], r->jobs[i].choice))
            k++;
        if (is_made(&r->jobs[i]) && k == n && n < CHOICES_MAX)
            choices[n++] = r->jobs[i].choice;
    }
    return n;
}

/* Loaders look for modules of the class Linear; what was chosen beyond that is named. */
static bool only_linear(const rewrite *r)
{
    for (int i = 0; i < r->info.weights; i++)
        if (is_made(&r->jobs[i]) &&
            (r->jobs[i].from.rank != 2 || !folder_is_linear(&r->folder, r->jobs[i].from.name)))
            return false;
    return true;
}

static void describe_group(const rewrite *r, type_choice choice, bool by_class, tool_text *text)
{
    const struct compressed *c = find_compressed(choice.type);
    long long group = c->group ? c->group : (long long)choice.group;
    bool nested = strcmp(c->type, "nvfp4") == 0; /* a scale of the whole tensor beside those of its groups */
    tool_printf(text, "{\"targets\": ");
    if (by_class)
        tool_printf(text, "[\"Linear\"]");
    else
        list_made(r, choice, text);
    tool_printf(text,
                ", \"weights\": {\"num_bits\": %d, \"type\": \"%s\", \"symmetric\": %s, \"dynamic\": false, "
                "\"strategy\": \"%s\"",
                c->bits, c->number_type, c->symmetric ? "true" : "false",
                nested      ? "tensor_group"
                : group > 0 ? "group"
                            : "channel");
    if (group > 0)
        tool_printf(text, ", \"group_size\": %lld", group);
    tool_printf(text, "%s}, \"format\": \"%s\"}", c->details, c->format);
}

static void describe_compressed(const rewrite *r, tool_text *text)
{
    type_choice choices[CHOICES_MAX];
    int n = list_choices(r, choices);
    const char *format = find_compressed(choices[0].type)->format;
    for (int i = 1; i < n; i++)
        if (strcmp(format, find_compressed(choices[i].type)->format) != 0)
            format = "mixed-precision";
    tool_printf(text,
                "{\"quant_method\": \"compressed-tensors\", \"format\": \"%s\", \"quantization_status\": "
                "\"compressed\", \"config_groups\": {",
                format);
    for (int i = 0; i < n; i++) {
        tool_printf(text, "%s\"group_%d\": ", i ? ", " : "", i);
        describe_group(r, choices[i], n == 1 && only_linear(r), text);
    }
    tool_printf(text, "}, \"ignore\": ");
    list_kept(r, text);
    tool_printf(text, ", \"kv_cache_scheme\": null, \"global_compression_ratio\": null}");
}

/* ---- others ---- */

static void describe_modelopt(const rewrite *r, tool_text *text)
{
    tool_printf(
        text, "{\"quant_method\": \"modelopt\", \"quant_algo\": \"NVFP4\", \"group_size\": 16, \"ignore\": ");
    list_kept(r, text);
    tool_printf(text, "}");
}

/* The type in which the model computes: as configured, or else that of its plain tensors. bitsandbytes needs it. */
static const char *compute_type(const rewrite *r)
{
    static const char *const names[] = {"float32", "float16", "bfloat16"};
    const char *configured = folder_dtype(&r->folder);
    for (int i = 0; i < r->info.weights && !configured; i++) {
        qdnnWeights_t weights = r->jobs[i].from.weights;
        if (!r->jobs[i].from.quantized && !r->jobs[i].from.problem && weights <= QDNN_WEIGHTS_BF16)
            configured = names[weights];
    }
    return configured ? configured : names[0];
}

static void describe_bnb(const rewrite *r, tool_text *text)
{
    type_choice choices[CHOICES_MAX];
    list_choices(r, choices);
    tool_printf(text,
                "{\"quant_method\": \"bitsandbytes\", \"load_in_4bit\": true, \"load_in_8bit\": false, "
                "\"bnb_4bit_quant_type\": \"%s\", \"bnb_4bit_use_double_quant\": false, "
                "\"bnb_4bit_quant_storage\": \"uint8\", \"bnb_4bit_compute_dtype\": ",
                choices[0].type->name);
    tool_quote(text, compute_type(r));
    tool_printf(text, ", \"llm_int8_skip_modules\": ");
    list_kept(r, text);
    tool_printf(text, "}");
}

static void (*const describers[])(const rewrite *r, tool_text *text) = {
    [FAMILY_COMPRESSED] = describe_compressed,
    [FAMILY_MODELOPT] = describe_modelopt,
    [FAMILY_BNB] = describe_bnb,
};

/* The family of all quantized weights. One configuration cannot describe several, nor weights of the source that stay
 * quantized beside new ones; of bitsandbytes there is one type. */
static bool one_family(const rewrite *r, family *made, bool *kept)
{
    type_choice choices[CHOICES_MAX];
    bool one = true;
    *made = FAMILY_NONE;
    *kept = false;
    for (int i = 0; i < r->info.weights; i++) {
        const job *j = &r->jobs[i];
        *kept = *kept || (!j->choice.type && !j->choice.drop && j->from.quantized);
        if (!is_made(j))
            continue;
        one = one && (*made == FAMILY_NONE || *made == family_of(j->choice.type));
        *made = family_of(j->choice.type);
    }
    return one && !(*made && *kept) && (*made != FAMILY_BNB || list_choices(r, choices) == 1);
}

int rewrite_describe(rewrite *r)
{
    family made;
    bool kept;
    tool_text text = {0};
    if (r->out.kind != QDNN_FILE_SAFETENSORS)
        return TOOL_OK;
    if (!one_family(r, &made, &kept)) {
        fprintf(stderr,
                "%s: no loader's configuration describes weights of several kinds, so quantization_config is "
                "left "
                "out\n",
                tool_program);
        return TOOL_OK;
    }
    r->out.config = made ? CONFIG_NEW : kept ? CONFIG_OF_SOURCE : CONFIG_NONE;
    if (!made)
        return TOOL_OK;
    /* compressed-tensors unpacks FP4 to bf16, whatever the model's type */
    for (int i = 0; i < r->info.weights; i++)
        if (is_made(&r->jobs[i]) && r->jobs[i].choice.type->stored == STORED_FP4)
            r->out.dtype = "bfloat16";
    describers[made](r, &text);
    r->out.quant_config = text.data;
    return text.failed ? tool_fail("out of memory") : TOOL_OK;
}
