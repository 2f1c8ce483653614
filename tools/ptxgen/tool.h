/* The ptxgen tool: declarations shared by its files. tool.c shows the order of execution. */
#ifndef PTXGEN_TOOL_H
#define PTXGEN_TOOL_H

#include "boards/boards.h"
#include "kernels/kernels.h"
#include "tools/tool.h"

/* ---- options.c ---- */

typedef enum tool_mode {
    MODE_NONE,
    MODE_HELP,
    MODE_VERSION,
    MODE_LIST,
    MODE_MAP,
    MODE_KERNEL,
    MODE_ALL
} tool_mode;

enum { TOOL_SETTINGS_MAX = 32, TOOL_SMS_MAX = 64 };

typedef struct tool_setting {
    char key[64], value[64];
} tool_setting;

typedef struct tool_form tool_form;

typedef struct tool_options {
    tool_mode mode;
    const kernel_row *row;
    const char *name;      /* the kernel's or the map's, as it was given */
    kernel_spec spec;      /* the settings implied by the kernel's name, before --set */
    const tool_form *form; /* null: not given */
    const char *output, *outdir;
    bool comments;
    const ptx_sm *sms[TOOL_SMS_MAX];
    int n_sms;
    const board *on; /* null: --gpu was not given */
    tool_setting settings[TOOL_SETTINGS_MAX];
    int n_settings;
    tool_setting sizes[TOOL_SETTINGS_MAX];
    int n_sizes; /* not 0: a whole operation for these sizes, as a sequence of launches */
} tool_options;

/* Returns an exit code; errors are reported on stderr. */
int tool_parse(tool_options *options, int argc, char **argv);
int tool_print_help(void);

/* Lists of names for tool_unknown; `list` is not used. */
const char *tool_kernel_name(const void *list, int index);
const char *tool_key_name(const void *list, int index);
const char *tool_size_name(const void *list, int index);
const char *tool_sm_name(const void *list, int index);

/* ---- One kernel, and the forms it is written in ---- */

typedef struct tool_item {
    const kernel_row *row;
    const char *operation; /* its stable name; null: it is a part of others */
    kernel_spec spec;
    const ptx_sm *sm;
    char stem[KERNEL_FILE_NAME];
    const char *base; /* the name of its files without folder and suffix: the stem, or the one given by -o */
    char entry[64];
    kernel_text text;
} tool_item;

/* Emits it; free item->text.ptx. Returns an exit code. */
int tool_item_make(tool_item *item, const tool_options *options, const kernel_row *row,
                   const kernel_spec *spec, const ptx_sm *sm);

/* An operation for one problem. */
typedef struct tool_sequence {
    const kernel_row *row;
    const char *operation; /* its stable name */
    kernel_spec spec;
    kernel_problem problem;
    kernel_steps steps;
} tool_sequence;

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
    bool all_sms; /* one pair of files contains all SMs: render_all instead of render */
    /* Fills files[i].text for each suffix. Returns an exit code. */
    int (*render)(const tool_item *item, tool_file *files);
    int (*render_all)(const tool_item *items, int n, const tool_sequence *sequence, tool_file *files);
};
const tool_form *tool_form_find(const char *name);
const char *tool_form_name(const void *list, int index);

int tool_render_c(const tool_item *item, tool_file *files); /* embed.c */
void tool_c_name(const char *stem, bool capitals, char *name, size_t size);
void tool_c_literal(tool_text *out, const char *ptx); /* as string literals, one per line */
extern const char tool_c_long_strings[];
/* launcher.c: one kernel for n SMs, and functions that load and launch it. Of a sequence, all kernels: those of the first
 * step for each SM, then those of the second ... */
int tool_render_launcher(const tool_item *items, int n, const tool_sequence *sequence, tool_file *files);
int tool_render_cubin(const tool_item *item, tool_file *files); /* cubin.c */
int tool_render_json(const tool_item *item, tool_file *files);  /* manifest.c */

/* ---- rules.c: the parameters of a kernel ---- */

typedef struct tool_pointer {
    bool workspace;        /* not the caller's: another kernel of the operation writes it, or reads it */
    const char *direction; /* "in", "out" */
    const char *element;
    char bytes[KERNEL_RULE_CHARS]; /* "" for the workspace, which differs between operations */
} tool_pointer;

/* The parameter with that index; false if it is a number. */
bool tool_pointer_of(const tool_item *item, int index, tool_pointer *out);
/* Which number it is (kernel_number); -1 if it is a pointer, or there is none. */
int tool_number_of(const tool_item *item, int index);
/* The i-th number that the rules of the grid use and that is not a parameter of the kernel; -1 past the end. */
int tool_launch_number(const tool_item *item, int i);
const char *tool_number_name(int number);
const char *tool_number_meaning(int number);

/* The members of "settings": "data": "f16", ... */
void tool_settings(tool_text *out, const kernel_row *row, const kernel_spec *spec);

/* ---- steps.c: operations of several kernels ---- */

/* The size for which a bundle shows launches. */
kernel_problem tool_common_problem(const kernel_spec *spec);
/* The operation as a JSON object: its sequence of launches for that problem. */
void tool_operation(tool_text *out, const kernel_row *row, const kernel_spec *spec, const ptx_sm *sm);
/* The operation by itself: its operands, workspace and steps, and the manifests of its kernels. */
void tool_sequence_json(tool_text *out, const tool_sequence *sequence, const tool_item *items);
/* --size: writes an operation for the sizes of the options. */
int tool_write_sequence(const tool_options *options, const kernel_spec *spec);

/* ---- staging.c: a folder whose files appear together, or not at all ---- */

typedef struct staging {
    char folder[4096]; /* where the files are written first, inside `outdir` */
    const char *outdir;
    size_t existed; /* the length of the part of outdir's path that existed before */
} staging;

/* From here on, a signal that would end the process only makes tool_interrupted true. */
int staging_begin(staging *s, const char *outdir);
bool tool_interrupted(void);
/* Moves all files to outdir, manifest.json last; or removes them, and the folders that staging_begin created.
 * If there was a signal, the process then ends by it. */
int staging_end(staging *s, int status);

/* The manifest of one kernel as a JSON object, indented by `indent`, with the files that contain it (possibly
 * none). */
void tool_manifest(tool_text *out, const tool_item *item, const tool_file *files, int n_files, int indent);

/* ---- formulas.c: what an operation computes, by its stable name ---- */

const char *tool_formula(const kernel_row *row, const char *name);
const char *tool_known_answer(const char *name); /* worked out by hand; null: there is none */
/* "y 0123456789abcdef": FNV-1a of the outputs of the operation's launcher test (known.def). */
const char *tool_known_digest(const char *name);

/* ---- The modes; all return an exit code ---- */

int tool_list(const tool_options *options); /* list.c */
int tool_map(const tool_options *options);  /* list.c */
/* The lowest SM that the kernel can be emitted for with its defaults; null: none. */
const ptx_sm *tool_lowest_sm(const kernel_row *row);
int tool_kernel(const tool_options *options); /* emit.c */
int tool_all(const tool_options *options);    /* all.c */

/* Writes the item in the options' form to its outdir; files, if not null, receives what was written (the
 * caller frees it). */
int tool_write_item(const tool_options *options, tool_item *item, tool_file *files);
/* Writes items (of a sequence, if that is not null) in the options' form to -o or to outdir; their number is that of the
 * SMs times that of the steps. */
int tool_write_items(const tool_options *options, tool_item *items, int n, const tool_sequence *sequence);
const tool_form *tool_form_of(const tool_options *options);

#endif
