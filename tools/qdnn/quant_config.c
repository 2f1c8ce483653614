/* What checkpoint loaders expect in config.json: how the weights of a safetensors file are quantized. It is
 * written to the file's own metadata, where our reader finds it and from where it can be copied. */
#include "tools/qdnn/rewrite.h"

#include <stdlib.h>
#include <string.h>

/* compressed-tensors: the name of its format, and the type of its numbers. */
static const struct {
    const char *type, *format, *number_type;
    int bits;
    bool symmetric;
} compressed[] = {{"int4", "pack-quantized", "int", 4, true},
                  {"int4zp", "pack-quantized", "int", 4, false},
                  {"int8", "int-quantized", "int", 8, true},
                  {"fp8", "float-quantized", "float", 8, true},
                  {"mxfp4", "mxfp4-pack-quantized", "float", 4, true}};

/* Modules that are not quantized: the names of their matrices without ".weight". */
static void list_kept(const rewrite *r, tool_text *text)
{
    const char *separator = "";
    for (int i = 0; i < r->info.weights; i++) {
        const job *j = &r->jobs[i];
        size_t n = strlen(j->from.name);
        bool kept = !j->choice.drop && (!j->choice.type || j->choice.type->either_kind);
        if (!kept || j->from.rank < 2 || n < 7 || strcmp(j->from.name + n - 7, ".weight") != 0)
            continue;
        char *name = strndup(j->from.name, n - 7);
        tool_printf(text, "%s", separator);
        tool_quote(text, name ? name : "");
        free(name);
        separator = ", ";
    }
}

static bool describe_compressed(const rewrite *r, type_choice choice, tool_text *text)
{
    int64_t group = strcmp(choice.type->name, "mxfp4") == 0 ? 32 : choice.group;
    for (size_t i = 0; i < sizeof compressed / sizeof compressed[0]; i++) {
        if (strcmp(compressed[i].type, choice.type->name) != 0)
            continue;
        tool_printf(text,
                    "{\"quant_method\": \"compressed-tensors\", \"format\": \"%s\", \"config_groups\": "
                    "{\"group_0\": {\"targets\": "
                    "[\"Linear\"], \"weights\": {\"num_bits\": %d, \"type\": \"%s\", \"symmetric\": %s, "
                    "\"strategy\": \"%s\"",
                    compressed[i].format, compressed[i].bits, compressed[i].number_type,
                    compressed[i].symmetric ? "true" : "false", group > 0 ? "group" : "channel");
        if (group > 0)
            tool_printf(text, ", \"group_size\": %lld", (long long)group);
        tool_printf(text, "}}}, \"ignore\": [");
        list_kept(r, text);
        tool_printf(text, "]}");
        return true;
    }
    return false;
}

static void describe(const rewrite *r, type_choice choice, tool_text *text)
{
    if (describe_compressed(r, choice, text))
        return;
    if (choice.type->stored == STORED_MODELOPT) {
        tool_printf(
            text,
            "{\"quant_method\": \"modelopt\", \"quant_algo\": \"NVFP4\", \"group_size\": 16, \"ignore\": [");
        list_kept(r, text);
        tool_printf(text, "]}");
    } else {
        tool_printf(
            text,
            "{\"quant_method\": \"bitsandbytes\", \"load_in_4bit\": true, \"bnb_4bit_quant_type\": \"%s\", "
            "\"bnb_4bit_use_double_quant\": false}",
            choice.type->name);
    }
}

/* The type of all quantized weights; returns false if there are several, or if weights of the source stay
 * quantized. */
static bool one_type(const rewrite *r, type_choice *choice)
{
    *choice = (type_choice){0};
    for (int i = 0; i < r->info.weights; i++) {
        const job *j = &r->jobs[i];
        if (j->choice.drop || (!j->choice.type && !j->from.quantized) ||
            (j->choice.type && j->choice.type->either_kind))
            continue;
        if (!j->choice.type ||
            (choice->type && (choice->type != j->choice.type || choice->group != j->choice.group)))
            return false;
        *choice = j->choice;
    }
    return choice->type != NULL;
}

int rewrite_describe(rewrite *r)
{
    type_choice choice;
    tool_text text = {0};
    if (r->out.kind != QDNN_FILE_SAFETENSORS || !one_type(r, &choice))
        return TOOL_OK;
    describe(r, choice, &text);
    r->out.quant_config = text.data;
    return text.failed ? tool_fail("out of memory") : TOOL_OK;
}
