/* --all: every kernel in its common settings for a set of SMs, and one manifest that names every file. */
#include "tools/ptxgen/tool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <qdnn/qdnn.h>

#include "driver/bundle/bundle.h"

enum { VALUES_MAX = 8, AXES_MAX = KERNEL_KEY_COUNT /* no kernel takes more */ };

/* The values of a setting that --all goes through; "=data" is whatever data is. A setting without a row keeps
 * its default. */
typedef struct axis {
    kernel_key_set key;
    const char *values[VALUES_MAX];
} axis;

static const axis common[] = {
    {KERNEL_KEY(DATA), {"f32", "f16", "bf16"}}, {KERNEL_KEY(SCALE), {"f32", "=data"}},
    {KERNEL_KEY(GROUP_SIZE), {"32", "64", "128"}}, {KERNEL_KEY(CHANNELS), {"0", "1"}},
    {KERNEL_KEY(NIBBLE_ORDER), {"low", "high"}},
};

static const char *const common_sms[] = {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"};

/* What is under way. */
typedef struct work {
    const tool_options *options;
    tool_text manifest;
    int done;
    bool talks; /* stderr is a terminal */
    kernel_spec *written; /* normal specifications of the kernel and SM at hand */
    int n_written, room;
} work;

/* Whether the kernel is new; several settings may come to the same. *status is an exit code. */
static bool remember(work *b, const kernel_row *row, const kernel_spec *spec, int *status)
{
    kernel_spec normal = kernel_spec_normal(row, spec);
    for (int i = 0; i < b->n_written; i++)
        if (kernel_spec_equal(&b->written[i], &normal))
            return false;
    if (b->n_written == b->room) {
        int room = b->room ? 2 * b->room : 64;
        kernel_spec *more = realloc(b->written, (size_t)room * sizeof *more);
        if (!more) {
            *status = tool_fail("out of memory");
            return false;
        }
        b->written = more;
        b->room = room;
    }
    b->written[b->n_written++] = normal;
    return true;
}

static const char *key_name(kernel_key_set key)
{
    for (int i = 0; kernel_key_at(i); i++)
        if (kernel_key_at(i)->key == key)
            return kernel_key_at(i)->name;
    return "";
}

static const tool_setting *given(const tool_options *options, const char *key)
{
    for (int i = options->n_settings; i-- > 0;)
        if (strcmp(options->settings[i].key, key) == 0)
            return &options->settings[i];
    return NULL;
}

/* The axes of one kernel: what --set fixes has that value alone. */
static int axes_of(const tool_options *options, const kernel_row *row, axis *axes)
{
    int n = 0;
    for (int i = 0; kernel_key_at(i); i++) {
        const kernel_key_info *info = kernel_key_at(i);
        if (!(kernel_keys(row) & info->key))
            continue;
        axes[n] = (axis){info->key, {info->preset}};
        for (size_t k = 0; k < sizeof common / sizeof common[0]; k++)
            if (common[k].key == info->key)
                axes[n] = common[k];
        const tool_setting *fixed = given(options, info->name);
        if (fixed)
            axes[n] = (axis){info->key, {fixed->value}};
        n++;
    }
    return n;
}

/* The first value of a setting that --all goes through. */
static const char *first_value(const tool_options *options, kernel_key_set key)
{
    const tool_setting *fixed = given(options, key_name(key));
    for (size_t i = 0; !fixed && i < sizeof common / sizeof common[0]; i++)
        if (common[i].key == key)
            return common[i].values[0];
    return fixed ? fixed->value : "";
}

/* With one channel for the whole tensor the size of groups says nothing: the first stands for all. What is a part
 * of another operation is needed for that channel alone: groups so small are done in one pass. */
static bool is_common(const tool_options *options, const kernel_row *row, const kernel_spec *spec)
{
    if (spec->channels == 1)
        return spec->group_size == strtoull(first_value(options, KERNEL_KEY(GROUP_SIZE)), NULL, 10);
    return row->operation_name || given(options, "channels");
}

static int write_one(work *b, const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm)
{
    tool_item item;
    tool_file files[TOOL_FILES_MAX] = {0};
    bool manifest_alone = b->options->form && strcmp(b->options->form->name, "json") == 0;
    int n_files = 0;
    int status = tool_item_make(&item, b->options, row, spec, sm);
    if (status == TOOL_OK && b->talks)
        fprintf(stderr, "\r\033[K%d  %s", b->done + 1, item.stem);
    if (status == TOOL_OK && !manifest_alone)
        status = tool_write_item(b->options, &item, files);
    while (n_files < TOOL_FILES_MAX && files[n_files].suffix)
        n_files++;
    if (status == TOOL_OK) {
        tool_printf(&b->manifest, "%s\n", b->done ? "," : "");
        tool_manifest(&b->manifest, &item, files, n_files, 4);
        b->done++;
    }
    for (int i = 0; i < TOOL_FILES_MAX; i++)
        tool_text_free(&files[i].text);
    free(item.text.ptx);
    return status;
}

/* "=data" is the name of the data's type. */
static const char *resolve(const char *value, const kernel_spec *spec)
{
    if (strcmp(value, "=data") != 0)
        return value;
    return spec->data == QDNN_DATA_F16 ? "f16" : spec->data == QDNN_DATA_BF16 ? "bf16" : "f32";
}

/* Whether the axis has the value before its place i already. */
static bool repeated(const axis *a, int i, const kernel_spec *spec)
{
    for (int k = 0; k < i; k++)
        if (strcmp(resolve(a->values[k], spec), resolve(a->values[i], spec)) == 0)
            return true;
    return false;
}

/* Every combination of n axes; the data comes before what refers to it. */
static int walk(work *b, const kernel_row *row, kernel_spec spec, const ptx_sm *sm, const axis *axes, int n)
{
    char reason[256];
    int status = TOOL_OK;
    if (n == 0)
        return is_common(b->options, row, &spec) && kernel_is_emitted(row, &spec, reason, sizeof reason) &&
                       remember(b, row, &spec, &status)
                   ? write_one(b, row, &spec, sm)
                   : status;
    for (int i = 0; i < VALUES_MAX && axes->values[i] && status == TOOL_OK; i++) {
        char error[512];
        kernel_spec next = spec;
        if (repeated(axes, i, &spec))
            continue;
        if (!kernel_spec_set(row, &next, key_name(axes->key), resolve(axes->values[i], &spec), error,
                             sizeof error))
            return tool_usage_error("%s", error);
        status = walk(b, row, next, sm, axes + 1, n - 1);
    }
    return status;
}

static int write_kernels(work *b, const ptx_sm *sm)
{
    for (int i = 0; i < kernel_row_count; i++) {
        const kernel_row *row = &kernel_rows[i];
        const ptx_sm *lowest = tool_lowest_sm(row);
        axis axes[AXES_MAX];
        int n = axes_of(b->options, row, axes);
        if (!lowest || lowest->number > sm->number)
            continue; /* not for this SM */
        b->n_written = 0;
        int status = walk(b, row, kernel_spec_default(), sm, axes, n);
        if (status != TOOL_OK)
            return status;
    }
    return TOOL_OK;
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

/* What a loader compares with itself before it trusts the rest. */
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

static int write_bundle(work *b)
{
    int status = TOOL_OK;
    const tool_options *o = b->options;
    int n = o->n_sms ? o->n_sms : (int)(sizeof common_sms / sizeof common_sms[0]);
    if (!write_head(&b->manifest))
        return tool_fail("out of memory");
    for (int i = 0; i < n && status == TOOL_OK; i++)
        status = write_kernels(b, o->n_sms ? o->sms[i] : ptx_sm_find(common_sms[i]));
    tool_printf(&b->manifest, "\n  ]\n}\n");
    if (b->talks)
        fprintf(stderr, "\r\033[K");
    return status;
}

int tool_all(const tool_options *options)
{
    int status = check_settings(options);
    if (status == TOOL_OK)
        status = tool_make_directory(options->outdir);
    if (status != TOOL_OK)
        return status;
    work b = {.options = options, .talks = isatty(STDERR_FILENO)};
    char path[4096];
    snprintf(path, sizeof path, "%.4000s/manifest.json", options->outdir);
    status = write_bundle(&b);
    if (status == TOOL_OK)
        status = tool_write(path, &b.manifest);
    if (status == TOOL_OK && b.talks)
        fprintf(stderr, "%d kernels in %s\n", b.done, options->outdir);
    tool_text_free(&b.manifest);
    free(b.written);
    return status;
}
