/* --kernel: one kernel in one of the forms of --emit. */
#include "tools/ptxgen/tool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int render_ptx(const tool_item *item, tool_file *files)
{
    tool_append(&files[0].text, item->text.ptx, strlen(item->text.ptx));
    return TOOL_OK;
}

static int render_no_list(const tool_item *item, tool_file *files)
{
    (void)item, (void)files;
    return tool_usage_error("--emit md goes with --list");
}

static const tool_form forms[] = {
    {"ptx", {".ptx"}, false, false, render_ptx, NULL},
    {"c", {".h", ".c"}, false, false, tool_render_c, NULL},
    {"launcher", {".h", ".c"}, false, true, NULL, tool_render_launcher},
    {"cubin", {".cubin"}, true, false, tool_render_cubin, NULL},
    {"json", {".json"}, false, false, tool_render_json, NULL},
    {"md", {".md"}, false, false, render_no_list, NULL},
};
enum { FORM_COUNT = sizeof forms / sizeof forms[0] };

const char *tool_form_name(const void *list, int index)
{
    (void)list;
    return index < FORM_COUNT ? forms[index].name : NULL;
}

const tool_form *tool_form_find(const char *name)
{
    for (int i = 0; i < FORM_COUNT; i++)
        if (strcmp(forms[i].name, name) == 0)
            return &forms[i];
    return NULL;
}

const tool_form *tool_form_of(const tool_options *options)
{
    return options->form ? options->form : &forms[0];
}

int tool_item_make(tool_item *item, const tool_options *options, const kernel_row *row,
                   const kernel_spec *spec, const ptx_sm *sm)
{
    const kernel_alias *alias = options->name ? kernel_find_alias(options->name) : NULL;
    *item = (tool_item){
        .row = row, .operation = alias ? alias->name : row->operation_name, .spec = *spec, .sm = sm};
    kernel_file_name(row, KERNEL_NORMAL(row, spec), sm, item->stem, sizeof item->stem);
    kernel_entry_name(row, item->entry, sizeof item->entry);
    item->base = item->stem;
    ptx_options how = {.comments = options->comments};
    ptx_error error;
    if (kernel_emit(row, spec, sm, &how, &item->text, &error))
        return TOOL_OK;
    return tool_fail("%s for %s: %s", options->name ? options->name : row->name, sm->name, error.text);
}

/* Renders and writes every file of the form: PREFIX + suffix, or `whole` itself if the form has one file. */
static int write_files(const tool_form *form, const tool_item *items, int n, const tool_sequence *sequence,
                       const char *prefix, const char *whole, tool_file *files)
{
    for (int i = 0; form->suffixes[i]; i++)
        files[i].suffix = form->suffixes[i];
    int status = form->all_sms ? form->render_all(items, n, sequence, files) : form->render(items, files);
    for (int i = 0; form->suffixes[i] && status == TOOL_OK; i++) {
        char path[4096];
        if (snprintf(path, sizeof path, "%s%s", prefix, form->suffixes[i]) >= (int)sizeof path)
            return tool_fail("the path %.60s... is too long", prefix);
        status = tool_write(form->suffixes[1] ? path : whole ? whole : path, &files[i].text);
    }
    return status;
}

static void free_files(tool_file *files)
{
    for (int i = 0; i < TOOL_FILES_MAX; i++)
        tool_text_free(&files[i].text);
}

int tool_write_item(const tool_options *options, tool_item *item, tool_file *files)
{
    char prefix[4096];
    tool_file own[TOOL_FILES_MAX] = {0};
    snprintf(prefix, sizeof prefix, "%.3800s/%s", options->outdir, item->stem);
    int status = write_files(tool_form_of(options), item, 1, NULL, prefix, NULL, files ? files : own);
    free_files(own);
    return status;
}

/* Writes to the file of -o, or to standard output. A form with two files takes the name without the
 * suffix. */
static int write_output(const tool_options *options, tool_item *items, int n, const tool_sequence *sequence)
{
    const tool_form *form = tool_form_of(options);
    const char *path = options->output ? options->output : "-";
    bool pair = form->suffixes[1] != NULL, to_stdout = strcmp(path, "-") == 0;
    if (pair && to_stdout)
        return tool_usage_error("--emit %s writes two files: give -o NAME or --outdir DIR", form->name);
    if (form->binary && to_stdout && isatty(STDOUT_FILENO))
        return tool_usage_error("a %s cannot be printed on a terminal: give -o FILE", form->name);
    char prefix[4096];
    snprintf(prefix, sizeof prefix, "%.4000s", path);
    size_t length = strlen(prefix);
    if (pair && length > 2 &&
        (strcmp(prefix + length - 2, ".c") == 0 || strcmp(prefix + length - 2, ".h") == 0))
        prefix[length - 2] = 0;
    const char *slash = strrchr(prefix, '/');
    items->base = slash ? slash + 1 : prefix;
    tool_file files[TOOL_FILES_MAX] = {0};
    int status = write_files(form, items, n, sequence, prefix, path, files);
    free_files(files);
    return status;
}

static int apply_settings(const tool_options *options, kernel_spec *spec)
{
    for (int i = 0; i < options->n_settings; i++) {
        const tool_setting *s = &options->settings[i];
        const char *near =
            kernel_takes(options->row, s->key) ? NULL : tool_nearest(s->key, tool_key_name, NULL);
        if (near && kernel_takes(options->row, near))
            return tool_usage_error("%s has no setting '%s'; did you mean '%s'?", options->name, s->key,
                                    near);
        char error[512];
        if (!kernel_name_set(options->name, options->row, spec, s->key, s->value, error, sizeof error))
            return tool_usage_error("%s", error);
    }
    return TOOL_OK;
}

int tool_write_items(const tool_options *options, tool_item *items, int n, const tool_sequence *sequence)
{
    char *end = strstr(items[0].stem, items[0].sm->name);
    if (end && end > items[0].stem) /* the files contain all SMs, and are named after the kernel alone */
        end[-1] = 0;
    if (!options->outdir)
        return write_output(options, items, n, sequence);
    char prefix[4096];
    tool_file files[TOOL_FILES_MAX] = {0};
    snprintf(prefix, sizeof prefix, "%.3800s/%s", options->outdir, items[0].stem);
    int status = write_files(tool_form_of(options), items, n, sequence, prefix, NULL, files);
    free_files(files);
    return status;
}

/* All SMs in one pair of files. */
static int write_together(const tool_options *options, const kernel_spec *spec)
{
    tool_item items[TOOL_SMS_MAX] = {0};
    int n = 0, status = TOOL_OK;
    for (; n < options->n_sms && status == TOOL_OK; n++)
        status = tool_item_make(&items[n], options, options->row, spec, options->sms[n]);
    if (status == TOOL_OK)
        status = tool_write_items(options, items, n, NULL);
    for (int i = 0; i < n; i++)
        free(items[i].text.ptx);
    return status;
}

static int write_each(const tool_options *options, const kernel_spec *spec)
{
    int status = TOOL_OK;
    for (int i = 0; i < options->n_sms && status == TOOL_OK; i++) {
        tool_item item;
        status = tool_item_make(&item, options, options->row, spec, options->sms[i]);
        if (status == TOOL_OK)
            status = options->outdir ? tool_write_item(options, &item, NULL)
                                     : write_output(options, &item, 1, NULL);
        free(item.text.ptx);
    }
    return status;
}

int tool_kernel(const tool_options *options)
{
    kernel_spec spec = options->spec;
    int status = apply_settings(options, &spec);
    if (status == TOOL_OK && options->outdir)
        status = tool_make_directory(options->outdir);
    if (status != TOOL_OK)
        return status;
    if (options->n_sizes)
        return tool_write_sequence(options, &spec);
    if (strcmp(options->name, options->row->name) != 0 && kernel_is_sequence(options->row, &spec))
        return tool_usage_error(
            "%s takes several kernels, which depend on its sizes; fix: give them, as in --size n=4096 "
            "(the last kernel alone is --kernel %s)",
            options->name, options->row->name);
    return tool_form_of(options)->all_sms ? write_together(options, &spec) : write_each(options, &spec);
}
