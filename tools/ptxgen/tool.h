/* The ptxgen tool: what its files share. tool.c has the order of things. */
#ifndef PTXGEN_TOOL_H
#define PTXGEN_TOOL_H

#include "kernels/kernels.h"
#include "tools/tool.h"

/* ---- options.c ---- */

typedef enum tool_mode { MODE_NONE, MODE_HELP, MODE_VERSION, MODE_LIST, MODE_KERNEL, MODE_ALL } tool_mode;

enum { TOOL_SETTINGS_MAX = 32, TOOL_SMS_MAX = 64 };

typedef struct tool_setting {
    char key[64], value[64];
} tool_setting;

typedef struct tool_form tool_form;

typedef struct tool_options {
    tool_mode mode;
    const kernel_row *row;
    kernel_spec spec; /* what the kernel's name chooses, before --set */
    const tool_form *form; /* null: not given */
    const char *output, *outdir;
    bool comments;
    const ptx_sm *sms[TOOL_SMS_MAX];
    int n_sms;
    tool_setting settings[TOOL_SETTINGS_MAX];
    int n_settings;
} tool_options;

/* An exit code; what is wrong is on stderr. */
int tool_parse(tool_options *options, int argc, char **argv);
int tool_print_help(void);

/* Lists of names for tool_unknown; they have no need of `list`. */
const char *tool_kernel_name(const void *list, int index);
const char *tool_key_name(const void *list, int index);
const char *tool_sm_name(const void *list, int index);

/* ---- One kernel, and the forms it is written in ---- */

typedef struct tool_item {
    const kernel_row *row;
    kernel_spec spec;
    const ptx_sm *sm;
    char stem[KERNEL_FILE_NAME];
    const char *base; /* its files' name, without folder and suffix: the stem, or what -o says */
    char entry[64];
    kernel_text text;
} tool_item;

/* Emits it; free item->text.ptx. An exit code. */
int tool_item_make(tool_item *item, const tool_options *options, const kernel_row *row,
                   const kernel_spec *spec, const ptx_sm *sm);

typedef struct tool_file {
    const char *suffix;
    tool_text text;
} tool_file;

enum { TOOL_FILES_MAX = 2 };

/* A row of the table of --emit. */
struct tool_form {
    const char *name;
    const char *suffixes[TOOL_FILES_MAX + 1];
    bool binary;
    /* Fills files[i].text for each suffix. An exit code. */
    int (*render)(const tool_item *item, tool_file *files);
};
const tool_form *tool_form_find(const char *name);
const char *tool_form_name(const void *list, int index);

int tool_render_c(const tool_item *item, tool_file *files);     /* embed.c */
int tool_render_cubin(const tool_item *item, tool_file *files); /* cubin.c */
int tool_render_json(const tool_item *item, tool_file *files);  /* manifest.c */

/* The manifest of one kernel as a JSON object, indented by `indent`, with the files that hold it (there may
 * be none). */
void tool_manifest(tool_text *out, const tool_item *item, const tool_file *files, int n_files, int indent);

/* ---- The modes; all return an exit code ---- */

int tool_list(const tool_options *options); /* list.c */
/* The lowest SM that the kernel can be emitted for with its defaults; null: none. */
const ptx_sm *tool_lowest_sm(const kernel_row *row);
int tool_kernel(const tool_options *options); /* emit.c */
int tool_all(const tool_options *options);    /* all.c */

/* Writes the item in the options' form below its outdir; files, if not null, get what was written (the caller
 * frees it). */
int tool_write_item(const tool_options *options, tool_item *item, tool_file *files);

#endif
