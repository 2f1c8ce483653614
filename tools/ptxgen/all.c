/* --all: every kernel in its common settings for a set of SMs, and one manifest that lists every file. */
#include "tools/ptxgen/tool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <qdnn/qdnn.h>

#include "driver/bundle/bundle.h"

enum { VALUES_MAX = 8 };

/* The values of a setting that --all enumerates; "=data" means the value of data. A setting without a row
 * keeps its default. */
typedef struct axis {
    kernel_key key;
    const char *values[VALUES_MAX];
} axis;

static const axis common[] = {
    {KERNEL_KEY(DATA), {"f32", "f16", "bf16"}},    {KERNEL_KEY(SCALE), {"f32", "=data"}},
    {KERNEL_KEY(GROUP_SIZE), {"32", "64", "128"}}, {KERNEL_KEY(CHANNELS), {"0", "1"}},
    {KERNEL_KEY(NIBBLE_ORDER), {"low", "high"}},
};

/* Further settings, for kernels whose name contains `part`: those of public weight formats, of products, and
 * of the programs in docs/guide.md, which run from a bundle. A row is enumerated for every kernel that has
 * all of its settings. */
typedef struct addition {
    const char *part, *settings; /* values separated by '|' */
} addition;

static const addition additions[] = {
    {"", "data=f32 scale=f16 group_size=32|64|128"},
    {"quantize_nf4", "division=reciprocal nibble_order=high group_size=64"}, /* bitsandbytes */
    {"scale_nf4", "floor=0 group_size=64"},
    {"_e2m1", "data=f32|f16|bf16 scale=e4m3 group_size=16 global_scale=yes"}, /* NVFP4 */
    {"_e2m1", "data=f32|f16|bf16 scale=e8m0 group_size=32"},                  /* MXFP4 */
    {"_e4m3", "data=f32|f16|bf16 scale=e8m0 group_size=32"},                  /* MXFP8 */
    {"_int8", "data=f32|f16|bf16 group_size=8|64|128 row_index=yes"},         /* caches, embeddings */
    {"matmul_", "product=gemv|blocks|ternary data=f32|f16|bf16 output==data tile_rows=1|4"},
    {"matmul_", "product=gemv|blocks|ternary data=f32|f16|bf16 output==data tile_rows=1 split=2|4|8"},
    {"matmul_", "product=ragged data=f32|f16|bf16 output==data tile_rows=1"},
    {"matmul_", "product=tile data=f16|bf16 output==data tile_rows=64"},
    {"matmul_int4", "product=lanewise tile_rows=128 split=1|8"},
    {"matmul_int4", "product=gemv group_size=32 bias=f32 activation=silu tile_rows=4 split=8"},
    {"matmul_nf4", "product=gemv group_size=32 tile_rows=1 split=8"},
    {"matmul_plain_f32", "grouped=yes row_weight=yes product=staged tile_rows=2"},
    {"matmul_plain_f32", "grouped=yes row_weight=yes product=ragged tile_rows=2 split=4"},
    {"matmul_plain_f32", "product=gemv|ragged tile_rows=4 split=4"},
    {"matmul_plain_f32", "grouped=yes product=ragged tile_rows=2 split=4"},
    {"matmul_plain_f32",
     "grouped=yes gated=yes activation=relu x_share=2 product=ragged tile_rows=2 split=2"},
    {"route", "data=f32|f16|bf16 expert_count=4|8 chosen=2 renormalize=yes"},
    {"route", "data=f32|f16|bf16 expert_count=32|128 chosen=4 renormalize=yes"}, /* gpt-oss */
    {"route", "data=f32|f16|bf16 expert_count=128 chosen=8 renormalize=yes"},
    {"route",
     "data=f32|f16|bf16 expert_count=256 chosen=8 expert_groups=8 kept_groups=4 group_score=two_largest "
     "scores=sigmoid expert_bias=yes renormalize=yes"}, /* DeepSeek-V3 */
    {"combine", "data=f32|f16|bf16 output==data chosen=2|4|8 residual=no|yes"},
    {"w8a8_matmul", "tile=4|64|128"},
    {"_int4", "group_size=4|4096"},
    {"_int4", "data=f16 scale=f16 group_size=8"},
    {"_int8", "group_size=4"},
    {"_e4m3", "group_size=4"},
    {"matmul_e4m3", "groups=none alpha=column product=tile tile_rows=2 x_fp8=e4m3 x_scale=yes"},
    {"scale_nf4", "group_size=4"},
    {"scale_nf4", "group_size=1 channels=4"},
    {"matmul_int4", "layout=interleaved code=unsigned groups=none group_size=1 reduction=rows"},
    {"matmul_int4_zp", "layout=interleaved zero=u32 groups=columns group_size=4 reduction=rows"},
    {"matmul_int4", "layout=words code=twos group_size=8 product=ragged split=8"},
    {"w4a4_matmul", "tile=4"},
    {"int8_conv2d", "rounding=away window_h=2 window_w=2 window_c=1"},
    {"lsq_backward", "group_size=1 channels=1 rounding=away bits=4"},
};

static const char *const common_sms[] = {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"};

/* A kernel for the current SM, or an operation of several; its specification is normal. */
typedef struct known {
    const kernel_row *row;
    kernel_spec spec;
} known;

typedef struct known_list {
    known *at;
    int count, room;
} known_list;

/* The state of the run. */
typedef struct work {
    tool_options options; /* with the folder that files are written to first */
    tool_text kernels, operations;
    bool counts; /* the first pass, which only counts */
    int done, total, n_operations, shown;
    bool talks; /* stderr is a terminal */
    known_list written, planned;
} work;

/* Whether it is new; several settings may have the same normal form. *status is an exit code. */
static bool remember(known_list *list, const kernel_row *row, const kernel_spec *spec, int *status)
{
    const known one = {row, kernel_spec_normal(row, spec)};
    for (int i = list->count; i-- > 0;)
        if (list->at[i].row == row && kernel_spec_equal(&list->at[i].spec, &one.spec))
            return false;
    if (list->count == list->room) {
        int room = list->room ? 2 * list->room : 1024;
        known *more = realloc(list->at, (size_t)room * sizeof *more);
        if (!more) {
            *status = tool_fail("out of memory");
            return false;
        }
        list->at = more;
        list->room = room;
    }
    list->at[list->count++] = one;
    return true;
}

static const char *key_name(kernel_key key)
{
    for (int i = 0; kernel_key_at(i); i++)
        if (kernel_key_at(i)->key == key)
            return kernel_key_at(i)->name;
    return "";
}

/* The setting of that name, which must exist. */
static kernel_key key_of(const char *name)
{
    int i = 0;
    while (strcmp(kernel_key_at(i)->name, name) != 0)
        i++;
    return kernel_key_at(i)->key;
}

static bool has_axis(const axis *axes, int n, kernel_key key)
{
    for (int i = 0; i < n; i++)
        if (axes[i].key == key)
            return true;
    return false;
}

static const tool_setting *find_setting(const tool_options *options, const char *key)
{
    for (int i = options->n_settings; i-- > 0;)
        if (strcmp(options->settings[i].key, key) == 0)
            return &options->settings[i];
    return NULL;
}

/* The axes of one kernel: a setting fixed by --set has only that value. */
static int axes_of(const tool_options *options, const kernel_row *row, axis *axes)
{
    int n = 0;
    for (int i = 0; kernel_key_at(i); i++) {
        const kernel_key_info *info = kernel_key_at(i);
        if (!kernel_has_key(row, info->key))
            continue;
        axes[n] = (axis){info->key, {info->preset}};
        for (size_t k = 0; k < sizeof common / sizeof common[0]; k++)
            if (common[k].key == info->key)
                axes[n] = common[k];
        const tool_setting *fixed = find_setting(options, info->name);
        if (fixed)
            axes[n] = (axis){info->key, {fixed->value}};
        n++;
    }
    return n;
}

/* The first value of a setting that --all enumerates. */
static const char *first_value(const tool_options *options, kernel_key key)
{
    const tool_setting *fixed = find_setting(options, key_name(key));
    for (size_t i = 0; !fixed && i < sizeof common / sizeof common[0]; i++)
        if (common[i].key == key)
            return common[i].values[0];
    return fixed ? fixed->value : "";
}

/* With one channel for the whole tensor the group size has no effect, so only the first is written. A kernel
 * that is only a step of another operation is needed just for that channel: small groups are done in one
 * pass. */
static bool is_common(const tool_options *options, const kernel_row *row, const kernel_spec *spec)
{
    if (spec->stored.channels == 1)
        return spec->stored.group_size == strtoull(first_value(options, KERNEL_KEY(GROUP_SIZE)), NULL, 10);
    return row->operation_name || find_setting(options, "channels");
}

/* "[#####               ]  25%  759 of 3036  quantize_nf4_..." */
static void show_progress(work *b, const char *stem)
{
    enum { WIDTH = 20 };
    int percent = b->total ? (int)((int64_t)b->done * 100 / b->total) : 0, filled = percent * WIDTH / 100;
    if (!b->talks || (percent == b->shown && b->done > 1))
        return;
    b->shown = percent;
    fprintf(stderr, "\r\033[K[%.*s%*s] %3d%%  %d of %d  %.60s", filled, "####################",
            WIDTH - filled, "", percent, b->done, b->total, stem);
}

static int write_one(work *b, const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm)
{
    tool_item item;
    tool_file files[TOOL_FILES_MAX] = {0};
    bool manifest_alone = b->options.form && strcmp(b->options.form->name, "json") == 0;
    int n_files = 0;
    b->done++;
    if (b->counts)
        return TOOL_OK;
    if (tool_interrupted())
        return TOOL_FAILED;
    int status = tool_item_make(&item, &b->options, row, spec, sm);
    if (status == TOOL_OK)
        show_progress(b, item.stem);
    if (status == TOOL_OK && !manifest_alone)
        status = tool_write_item(&b->options, &item, files);
    while (n_files < TOOL_FILES_MAX && files[n_files].suffix)
        n_files++;
    if (status == TOOL_OK) {
        tool_printf(&b->kernels, "%s\n", b->done > 1 ? "," : "");
        tool_manifest(&b->kernels, &item, files, n_files, 4);
    }
    for (int i = 0; i < TOOL_FILES_MAX; i++)
        tool_text_free(&files[i].text);
    free(item.text.ptx);
    return status;
}

/* Settings may require a later SM than the kernel does with its defaults: tensor cores for bf16, for
 * example. */
static bool is_for(const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm)
{
    kernel_text text;
    ptx_error error;
    bool ok = kernel_emit(row, spec, sm, NULL, &text, &error);
    if (ok)
        free(text.ptx);
    return ok || error.no_memory; /* which is reported when it is written */
}

static int write_new(work *b, const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm)
{
    int status = TOOL_OK;
    if (!remember(&b->written, row, spec, &status) || !is_for(row, spec, sm))
        return status;
    return write_one(b, row, spec, sm);
}

/* Whether the SM supports every kernel of an operation. */
static bool are_for(const kernel_steps *steps, const ptx_sm *sm)
{
    for (int i = 0; i < steps->count; i++)
        if (!is_for(steps->at[i].row, &steps->at[i].spec, sm))
            return false;
    return true;
}

/* An operation that takes several kernels: writes each of them, and their sequence. */
static int write_operation(work *b, const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm)
{
    kernel_steps steps;
    int status = TOOL_OK;
    const kernel_problem problem = tool_common_problem(spec);
    if (!row->operation_name || kernel_operation_of(row) == KERNEL_INT8_CONV2D)
        return TOOL_OK; /* a convolution is one kernel, whatever its size */
    kernel_steps_of(row, KERNEL_NORMAL(row, spec), &problem, &steps);
    if (steps.count < 2 || !remember(&b->planned, row, spec, &status) || !are_for(&steps, sm))
        return status;
    for (int i = 0; i < steps.count && status == TOOL_OK; i++)
        status = write_new(b, steps.at[i].row, &steps.at[i].spec, sm);
    if (status == TOOL_OK && !b->counts) {
        tool_printf(&b->operations, "%s\n", b->n_operations++ ? "," : "");
        tool_operation(&b->operations, row, spec, sm);
    }
    return status;
}

/* Looked-up groups come from a table where that holds all of them, and channels that are columns have the kernel of groups
 * down columns; both depend on the matrix, so all of these kernels are written. */
static int write_variants(work *b, const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm)
{
    const kernel_operation o = kernel_operation_of(row);
    int status = write_new(b, row, spec, sm);
    if (status != TOOL_OK || (o != KERNEL_QUANTIZE && o != KERNEL_DEQUANTIZE))
        return status;
    kernel_steps steps;
    kernel_spec with_table = *spec;
    with_table.stored.group_table = 1;
    status = write_new(b, row, &with_table, sm);
    kernel_steps_of(row, KERNEL_NORMAL(row, spec),
                    &(kernel_problem){.rows = 1, .columns = spec->stored.channels}, &steps);
    return status == TOOL_OK && steps.count ? write_new(b, row, &steps.at[0].spec, sm) : status;
}

static int write_settings(work *b, const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm)
{
    char reason[256];
    int status = TOOL_OK;
    if (!kernel_spec_check(row, spec, reason, sizeof reason))
        return TOOL_OK;
    if (kernel_is_emitted(row, spec, reason, sizeof reason))
        status = write_variants(b, row, spec, sm);
    else if (kernel_is_product(row))
        return TOOL_OK; /* there is no kernel for it, nor a sequence of kernels */
    return status == TOOL_OK ? write_operation(b, row, spec, sm) : status;
}

/* "=data" means the name of the data type. */
static const char *resolve(const char *value, const kernel_spec *spec)
{
    if (strcmp(value, "=data") != 0)
        return value;
    return spec->data == QDNN_DATA_F16 ? "f16" : spec->data == QDNN_DATA_BF16 ? "bf16" : "f32";
}

/* Whether the axis has the same value before index i. */
static bool repeated(const axis *a, int i, const kernel_spec *spec)
{
    for (int k = 0; k < i; k++)
        if (strcmp(resolve(a->values[k], spec), resolve(a->values[i], spec)) == 0)
            return true;
    return false;
}

/* Enumerates every combination of n axes; data comes before the settings that refer to it. */
static int walk(work *b, const kernel_row *row, kernel_spec spec, const ptx_sm *sm, const axis *axes, int n,
                bool is_addition)
{
    int status = TOOL_OK;
    if (n == 0)
        return is_addition || is_common(&b->options, row, &spec) ? write_settings(b, row, &spec, sm)
                                                                 : TOOL_OK;
    for (int i = 0; i < VALUES_MAX && axes->values[i] && status == TOOL_OK; i++) {
        char error[512];
        kernel_spec next = spec;
        if (repeated(axes, i, &spec))
            continue;
        if (!kernel_spec_set(row, &next, key_name(axes->key), resolve(axes->values[i], &spec), error,
                             sizeof error))
            return tool_usage_error("%s", error);
        status = walk(b, row, next, sm, axes + 1, n - 1, is_addition);
    }
    return status;
}

/* The axes of an addition. A setting fixed by --set has only that value. Negative: the kernel lacks a
 * setting, or the addition excludes a fixed value. The values are stored in `text`. */
static int axes_of_addition(const tool_options *options, const kernel_row *row, const addition *add,
                            char *text, axis *axes)
{
    char *word_end, *value_end;
    int n = 0;
    if (!strstr(row->name, add->part))
        return -1;
    for (char *word = strtok_r(text, " ", &word_end); word; word = strtok_r(NULL, " ", &word_end)) {
        char *values = strchr(word, '=');
        *values++ = 0;
        const tool_setting *fixed = find_setting(options, word);
        if (!kernel_takes(row, word))
            return -1;
        axes[n] = (axis){.key = key_of(word)};
        int count = 0;
        for (char *v = strtok_r(values, "|", &value_end); v && count < VALUES_MAX;
             v = strtok_r(NULL, "|", &value_end))
            if (!fixed || strcmp(v, fixed->value) == 0 || *v == '=')
                axes[n].values[count++] = fixed ? fixed->value : v;
        if (!count)
            return -1;
        n++;
    }
    for (int i = 0; i < options->n_settings; i++)
        if (kernel_takes(row, options->settings[i].key) &&
            !has_axis(axes, n, key_of(options->settings[i].key)))
            axes[n++] = (axis){key_of(options->settings[i].key), {options->settings[i].value}};
    return n;
}

static int write_additions(work *b, const kernel_row *row, const ptx_sm *sm)
{
    int status = TOOL_OK;
    for (size_t i = 0; i < sizeof additions / sizeof additions[0] && status == TOOL_OK; i++) {
        char text[256];
        axis axes[KERNEL_KEY_COUNT];
        snprintf(text, sizeof text, "%s", additions[i].settings);
        int n = axes_of_addition(&b->options, row, &additions[i], text, axes);
        if (n >= 0)
            status = walk(b, row, kernel_spec_default(), sm, axes, n, true);
    }
    return status;
}

static int write_kernels(work *b, const ptx_sm *sm)
{
    int status = TOOL_OK;
    b->written.count = b->planned.count = 0;
    for (int i = 0; i < kernel_row_count && status == TOOL_OK; i++) {
        const kernel_row *row = &kernel_rows[i];
        const ptx_sm *lowest = tool_lowest_sm(row);
        axis axes[KERNEL_KEY_COUNT];
        int n = axes_of(&b->options, row, axes);
        if (!lowest || lowest->number > sm->number)
            continue; /* not for this SM */
        status = walk(b, row, kernel_spec_default(), sm, axes, n, false);
        if (status == TOOL_OK)
            status = write_additions(b, row, sm);
    }
    return status;
}

static int check_settings(const tool_options *options)
{
    for (int i = 0; i < options->n_settings; i++) {
        bool known = false;
        for (int k = 0; tool_key_name(NULL, k); k++)
            known = known || strcmp(tool_key_name(NULL, k), options->settings[i].key) == 0;
        if (!known)
            return tool_unknown("setting", options->settings[i].key, tool_key_name, NULL,
                                "ptxgen --list names them");
    }
    return TOOL_OK;
}

/* What a loader compares with its own values before it trusts the rest. */
static bool write_head(tool_text *out)
{
    uint64_t emitters;
    if (!bundle_emitters(&emitters))
        return false;
    tool_printf(out, "{\n  \"version\": %d,\n  \"qdnn\": \"%d.%d.%d\",\n", BUNDLE_FORM, QDNN_MAJOR,
                QDNN_MINOR, QDNN_PATCH);
    tool_printf(out, "  \"emitters\": \"%016llx\",\n  \"kernels\": [", (unsigned long long)emitters);
    return true;
}

static int write_all(work *b)
{
    int status = TOOL_OK;
    const tool_options *o = &b->options;
    int n = o->n_sms ? o->n_sms : (int)(sizeof common_sms / sizeof common_sms[0]);
    b->done = 0;
    for (int i = 0; i < n && status == TOOL_OK; i++)
        status = write_kernels(b, o->n_sms ? o->sms[i] : ptx_sm_find(common_sms[i]));
    return status;
}

static int write_manifest(const work *b)
{
    char path[4200];
    tool_text manifest = {0};
    if (b->kernels.failed || b->operations.failed || !write_head(&manifest))
        return tool_fail("out of memory");
    tool_append(&manifest, b->kernels.data ? b->kernels.data : "", b->kernels.size);
    tool_printf(&manifest, "\n  ],\n  \"operations\": [");
    tool_append(&manifest, b->operations.data ? b->operations.data : "", b->operations.size);
    tool_printf(&manifest, "%s]\n}\n", b->n_operations ? "\n  " : "");
    snprintf(path, sizeof path, "%s/manifest.json", b->options.outdir);
    int status = tool_write(path, &manifest);
    tool_text_free(&manifest);
    return status;
}

static int write_bundle(work *b)
{
    int status = TOOL_OK;
    if (b->talks) {
        b->counts = true;
        status = write_all(b);
        b->counts = false;
        b->total = b->done;
    }
    if (status == TOOL_OK)
        status = write_all(b);
    if (b->talks)
        fprintf(stderr, "\r\033[K");
    return status == TOOL_OK ? write_manifest(b) : status;
}

int tool_all(const tool_options *options)
{
    staging stage;
    int status = check_settings(options);
    if (status == TOOL_OK)
        status = staging_begin(&stage, options->outdir);
    if (status != TOOL_OK)
        return status;
    work b = {.options = *options, .talks = isatty(STDERR_FILENO), .shown = -1};
    b.options.outdir = stage.folder;
    status = staging_end(&stage, write_bundle(&b));
    if (status == TOOL_OK && b.talks)
        fprintf(stderr, "%d kernels in %s\n", b.done, options->outdir);
    tool_text_free(&b.kernels);
    tool_text_free(&b.operations);
    free(b.written.at);
    free(b.planned.at);
    return status;
}
