/* Shared by the tests of bundles: bundles that ptxgen writes, and the warnings logged meanwhile. */
#ifndef QDNN_TEST_DRIVER_BUNDLE_H
#define QDNN_TEST_DRIVER_BUNDLE_H

#include "driver/bundle/bundle.h"

#include <stddef.h>

#include <qdnn/log.h>

/* The warnings that are logged between listen and stop_listening. */
typedef struct listener {
    int warnings;
    char last[1024];
} listener;
void listen_to(listener *l);
void stop_listening(void);

void folder_write(const char *dir, const char *name, const char *data, size_t bytes);
/* Null where there is none; free it. */
char *folder_read(const char *dir, const char *name, size_t *bytes);
/* A command that has to succeed, in the folder. */
void folder_run(const char *dir, const char *command);

/* A bundle by ptxgen --all with these arguments, in a folder of its own: temp_dir_remove(parent) also removes
 * what a test puts beside it, in the parent. False: a failure was reported. */
typedef struct bundle_folder {
    char parent[256], dir[300];
} bundle_folder;
bool make_folder(bundle_folder *folder, const char *arguments);
/* The same of ONE, with the kernels FILE_NAME and OTHER_NAME alone. */
bool make_small_folder(bundle_folder *folder);
/* Shortens a manifest to the entries of these files. */
void keep_entries(char *manifest, const char *const *files, int count);
/* Puts into the manifest the file's size and hash as they are now. */
void bless(const char *dir, const char *name);

/* One kernel, to which all damage is done, and one beside it, in a bundle of their settings. */
#define ONE        "--sm 90 --set data=f16,scale=f32,group_size=64,nibble_order=low"
#define FILE_NAME  "scale_nf4_f16_f32_g64_sm_90.ptx"
#define OTHER_NAME "scale_int4_f16_f32_g64_sm_90.ptx"

/* Changes the kernel's entry of the manifest. */
#define IN_ENTRY(from, to) "sed -i '/\"kernel\": \"scale_nf4\"/,/\"files\"/s#" from "#" to "#' manifest.json"

bool find_one(const bundle *b, const char *sm, bool cubins, bundle_image *image);
/* It is not found, and there is one warning, with these words in it. */
void check_warning(const char *dir, const char *sm, const char *warning);

#endif
