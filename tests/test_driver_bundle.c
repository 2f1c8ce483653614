/* Bundles: what ptxgen wrote is found with the bytes that would be emitted; what is damaged is refused, with
 * a warning that says why. */
#include "test_driver_bundle.h"

#include "driver/base/alloc.h"
#include "driver/bundle/bundle_check.h"
#include "tools/toolkit.h"
#include "support/process.h"
#include "support/scarce.h"
#include "test.h"
#include "test_json.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PTXGEN QDNN_BINARY_DIR "/ptxgen/ptxgen"

/* ---- what is told meanwhile ---- */

static void hear(qdnnSeverity_t severity, void *user, const qdnnDebug_t *debug, const char *message)
{
    listener *l = user;
    (void)severity;
    (void)debug;
    l->warnings++;
    snprintf(l->last, sizeof l->last, "%s", message);
}

void listen_to(listener *l)
{
    *l = (listener){0};
    CHECK_EQ_I64(qdnnSetCallback(QDNN_SEVERITY_WARNING_BIT, l, hear), QDNN_STATUS_SUCCESS);
}

void stop_listening(void)
{
    qdnnSetCallback(0, NULL, NULL);
}

/* ---- folders ---- */

void folder_write(const char *dir, const char *name, const char *data, size_t bytes)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    REQUIRE(f != NULL);
    CHECK(fwrite(data, 1, bytes, f) == bytes);
    CHECK(fclose(f) == 0);
}

char *folder_read(const char *dir, const char *name, size_t *bytes)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return toolkit_read_file(path, bytes);
}

void folder_run(const char *dir, const char *command)
{
    process_result r = process_run("cd '%s' && %s", dir, command);
    if (!CHECK_EQ_I64(r.status, 0))
        FAIL("%s: %s", command, r.output);
    process_free(&r);
}

bool make_folder(bundle_folder *folder, const char *arguments)
{
    temp_dir_make(folder->parent, sizeof folder->parent);
    snprintf(folder->dir, sizeof folder->dir, "%s/bundle", folder->parent);
    process_result r = process_run("%s --all --outdir '%s' %s", PTXGEN, folder->dir, arguments);
    bool ok = CHECK_EQ_I64(r.status, 0);
    process_free(&r);
    return ok;
}

/* The entry of a file in a manifest, from the line of its bracket to the other bracket. */
static const char *entry_of(const char *manifest, const char *file, size_t *length)
{
    static const char first_line[] = "\n    {\n", last_line[] = "\n    }";
    const char *name = strstr(manifest, file), *entry = NULL, *next = manifest;
    while (name && (next = strstr(next, first_line)) != NULL && next < name)
        entry = next++;
    const char *end = entry ? strstr(name, last_line) : NULL;
    *length = end ? (size_t)(end - entry) + strlen(last_line) : 0;
    return end ? entry : NULL;
}

void keep_entries(char *manifest, const char *const *files, int count)
{
    static const char kernels[] = "\"kernels\": [";
    char *old = malloc(strlen(manifest) + 1), *to = strstr(manifest, kernels);
    REQUIRE(old && to);
    strcpy(old, manifest);
    to += strlen(kernels);
    for (int i = 0; i < count; i++) {
        size_t length;
        const char *entry = entry_of(old, files[i], &length);
        if (!CHECK(entry != NULL))
            break;
        to += sprintf(to, "%s%.*s", i ? "," : "", (int)length, entry);
    }
    strcpy(to, "\n  ]\n}\n");
    free(old);
}

/* Written by ptxgen once in a process: most tests need little of the hundreds of files. */
static const char *const small_files[] = {FILE_NAME, OTHER_NAME, "manifest.json"};
enum { SMALL_FILES = sizeof small_files / sizeof small_files[0] };

static bool read_small_bundle(char **texts)
{
    bundle_folder folder;
    bool ok = make_folder(&folder, ONE);
    for (int i = 0; ok && i < SMALL_FILES; i++)
        ok = CHECK((texts[i] = folder_read(folder.dir, small_files[i], NULL)) != NULL);
    if (ok)
        keep_entries(texts[SMALL_FILES - 1], small_files, SMALL_FILES - 1);
    temp_dir_remove(folder.parent);
    return ok;
}

bool make_small_folder(bundle_folder *folder)
{
    static char *texts[SMALL_FILES];
    if (!texts[SMALL_FILES - 1] && !read_small_bundle(texts))
        return false;
    temp_dir_make(folder->parent, sizeof folder->parent);
    snprintf(folder->dir, sizeof folder->dir, "%s/bundle", folder->parent);
    folder_run(folder->parent, "mkdir bundle");
    for (int i = 0; i < SMALL_FILES; i++)
        folder_write(folder->dir, small_files[i], texts[i], strlen(texts[i]));
    return true;
}

void bless(const char *dir, const char *name)
{
    size_t bytes = 0;
    char *data = folder_read(dir, name, &bytes);
    REQUIRE(data != NULL);
    uint64_t hash = bundle_hash(BUNDLE_HASH_START, data, bytes);
    free(data);
    char command[512];
    snprintf(
        command, sizeof command,
        "sed -i 's/\\(\"name\": \"%s\"\\), \"bytes\": [0-9]*, \"fnv1a64\": \"[0-9a-f]*\"/\\1, \"bytes\": "
        "%zu, \"fnv1a64\": \"%016llx\"/' manifest.json",
        name, bytes, (unsigned long long)hash);
    folder_run(dir, command);
}

bool find_one(const bundle *b, const char *sm, bool cubins, bundle_image *image)
{
    kernel_spec spec = kernel_spec_default();
    spec.data = QDNN_DATA_F16;
    spec.stored.group_size = 64;
    return bundle_find(b, kernel_find("scale_nf4"), KERNEL_NORMAL(kernel_find("scale_nf4"), &spec), ptx_sm_find(sm), cubins, image);
}

void check_warning(const char *dir, const char *sm, const char *warning)
{
    listener heard;
    bundle *b = NULL;
    bundle_image image;
    listen_to(&heard);
    CHECK_EQ_I64(bundle_open(dir, &b), QDNN_STATUS_SUCCESS);
    CHECK(!find_one(b, sm, true, &image));
    CHECK(image.data == NULL);
    stop_listening();
    CHECK_EQ_I64(heard.warnings, 1);
    CHECK_HAS(heard.last, warning);
    bundle_close(b);
}

/* ---- what is whole ---- */

/* The specification of an entry of the manifest. */
static kernel_spec spec_of(const kernel_row *row, const json_value *entry)
{
    kernel_spec spec = kernel_spec_default();
    char error[256];
    for (const json_value *s = json_at(entry, "settings")->first; s; s = s->next)
        CHECK(kernel_spec_set(row, &spec, s->name, s->text, error, sizeof error));
    return spec;
}

static void check_same(const bundle *b, const json_value *entry)
{
    const kernel_row *row = kernel_find(json_string(entry, "kernel"));
    const ptx_sm *sm = ptx_sm_find(json_string(entry, "sm"));
    REQUIRE(row && sm);
    kernel_spec spec = spec_of(row, entry);
    bundle_image image;
    kernel_text text;
    ptx_error error;
    REQUIRE(kernel_emit(row, &spec, sm, NULL, &text, &error));
    if (CHECK(bundle_find(b, row, KERNEL_NORMAL(row, &spec), sm, true, &image))) {
        CHECK_EQ_STR(image.data, text.ptx);
        CHECK(!image.is_cubin);
        CHECK_EQ_I64(image.version, text.info.version);
        alloc_free(image.data);
    }
    free(text.ptx);
}

static const struct {
    const char *name, *arguments;
    int at_least;
} wholes[] = {
#ifdef QDNN_TEST_FULL
    {"all", "--sm 75,90", 2000},
#else
    {"all", "--sm 75", 1000},
#endif
    {"settings", "--sm 90a,121f --set rounding=away,division=reciprocal,floor=0,group_size=7", 50},
};

TEST_ROWS(DriverBundle, EveryKernelIsFoundAsItWouldBeEmitted, wholes)
{
    bundle_folder folder;
    listener heard;
    bundle *b = NULL;
    if (!make_folder(&folder, wholes[index].arguments))
        return;
    listen_to(&heard);
    CHECK_EQ_I64(bundle_open(folder.dir, &b), QDNN_STATUS_SUCCESS);
    char *text = folder_read(folder.dir, "manifest.json", NULL);
    json *doc = read_json(text);
    CHECK(json_count(doc, "kernels") >= wholes[index].at_least);
    for (const json_value *k = json_at(json_root(doc), "kernels.0"); k; k = k->next)
        check_same(b, k);
    stop_listening();
    CHECK_EQ_I64(heard.warnings, 0);
    CHECK_EQ_STR(heard.last, "");
    json_free(doc);
    free(text);
    bundle_close(b);
    temp_dir_remove(folder.parent);
}

/* Each miss is one warning: what was asked for, and how the nearest kernel differs. */
TEST_CASE(DriverBundle, WhatIsNotThereIsNotFoundAndTold)
{
    bundle_folder folder;
    listener heard;
    bundle *b = NULL;
    bundle_image image;
    kernel_spec spec = kernel_spec_default();
    const kernel_row *row = kernel_find("quantize_nf4");
    if (!make_folder(&folder, "--sm 90 --set data=f16"))
        return;
    listen_to(&heard);
    CHECK_EQ_I64(bundle_open(folder.dir, &b), QDNN_STATUS_SUCCESS);
    CHECK(!bundle_find(b, row, KERNEL_NORMAL(row, &spec), ptx_sm_find("sm_90"), true, &image)); /* f32 */
    CHECK(image.data == NULL);
    CHECK_HAS(heard.last,
              " has no quantize_nf4 sm_90 data=f32 scale=f32 group_size=128 channels=0 nibble_order=low "
              "division=exact, which is emitted; the nearest that it has differs by data=f16");
    spec.data = QDNN_DATA_F16;
    spec.stored.group_size = 77;
    CHECK(!bundle_find(b, row, KERNEL_NORMAL(row, &spec), ptx_sm_find("sm_80"), true, &image));
    CHECK_HAS(heard.last, "the nearest that it has differs by sm_90, group_size=128");
    spec.stored.group_size = 128;
    CHECK(!bundle_find(b, row, KERNEL_NORMAL(row, &spec), ptx_sm_find("sm_90a"), true, &image));
    CHECK_HAS(heard.last, "quantize_nf4 sm_90a data=f16 ");
    CHECK_HAS(heard.last, "the nearest that it has differs by sm_90");
    CHECK_EQ_I64(heard.warnings, 3);
    CHECK(!bundle_find(NULL, row, KERNEL_NORMAL(row, &spec), ptx_sm_find("sm_90"), true, &image));
    spec.quantize.rounding = QDNN_ROUND_TIES_AWAY; /* NF4 has no such setting: it is the same kernel */
    CHECK(bundle_find(b, row, KERNEL_NORMAL(row, &spec), ptx_sm_find("sm_90"), true, &image));
    alloc_free(image.data);
    CHECK_EQ_I64(heard.warnings, 3);
    stop_listening();
    bundle_close(b);
    bundle_close(NULL);
    temp_dir_remove(folder.parent);
}

/* ---- cubins ---- */

static const struct {
    const char *command, *warning;
} cubin_damages[] = {
    {"printf X | dd of=F bs=1 seek=0 conv=notrunc", "it does not begin like a 64-bit ELF file"},
    {"printf '\\076' | dd of=F bs=1 seek=18 conv=notrunc",
     "it is an ELF file for machine 62, not for CUDA (190)"},
    {"printf '\\120\\120' | dd of=F bs=1 seek=48 conv=notrunc",
     "it is machine code for sm_80, not for sm_90"},
    {"truncate -s 63 F", "it does not begin like a 64-bit ELF file"},
};

static void check_cubin_damage(const char *dir, const char *name, int i)
{
    char command[512];
    test_push_note("%s", cubin_damages[i].command);
    snprintf(command, sizeof command, "cp whole F && (%s) 2>/dev/null && mv F %s", cubin_damages[i].command,
             name);
    folder_run(dir, command);
    bless(dir, name);
    check_warning(dir, "sm_90", cubin_damages[i].warning);
    test_pop_note();
}

TEST_CASE(DriverBundle, CubinsWhereTheyAreAllowed)
{
    char ptxas[1024];
    bundle_folder folder;
    static const char name[] = "scale_nf4_f16_f32_g64_sm_90.cubin";
    bundle *b = NULL;
    bundle_image image;
    size_t bytes = 0;
    if (!toolkit_find_ptxas(ptxas, sizeof ptxas))
        SKIP("there is no ptxas");
    if (!make_small_folder(&folder))
        return;
    folder_run(folder.dir, PTXGEN " --kernel scale_nf4 --sm 90 --set data=f16,group_size=64 --emit cubin "
                                  "--outdir . && rm " FILE_NAME);
    folder_run(folder.dir, IN_ENTRY(FILE_NAME, "scale_nf4_f16_f32_g64_sm_90.cubin"));
    bless(folder.dir, name);
    CHECK_EQ_I64(bundle_open(folder.dir, &b), QDNN_STATUS_SUCCESS);
    CHECK(!find_one(b, "sm_90", false, &image));
    char *data = folder_read(folder.dir, name, &bytes);
    if (CHECK(find_one(b, "sm_90", true, &image))) {
        CHECK(image.is_cubin);
        CHECK_EQ_MEM(image.data, data, bytes);
        alloc_free(image.data);
    }
    free(data);
    bundle_close(b);
    folder_run(folder.dir, "cp scale_nf4_f16_f32_g64_sm_90.cubin whole");
    for (int i = 0; i < (int)(sizeof cubin_damages / sizeof cubin_damages[0]); i++)
        check_cubin_damage(folder.dir, name, i);
    temp_dir_remove(folder.parent);
}

/* An entry with both: the cubin where it may be and is whole, else the PTX. A header of ELF will do here. */
TEST_CASE(DriverBundle, CubinBeforePtx)
{
    bundle_folder folder;
    bundle *b = NULL;
    bundle_image image;
    listener heard;
    static const char elf[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0x41, 8, [18] = (char)190, [49] = 90};
    if (!make_small_folder(&folder))
        return;
    folder_write(folder.dir, "k.cubin", elf, sizeof elf);
    folder_run(folder.dir, IN_ENTRY("\"files\": \\[", "\"files\": [{\"name\": \"k.cubin\", \"bytes\": 0, "
                                                      "\"fnv1a64\": \"0\"}, "));
    bless(folder.dir, "k.cubin");
    CHECK_EQ_I64(bundle_open(folder.dir, &b), QDNN_STATUS_SUCCESS);
    for (int cubins = 0; cubins < 2; cubins++) {
        CHECK(find_one(b, "sm_90", cubins, &image));
        CHECK(image.is_cubin == cubins);
        alloc_free(image.data);
    }
    folder_write(folder.dir, "k.cubin", elf, sizeof elf - 1);
    listen_to(&heard);
    CHECK(find_one(b, "sm_90", true, &image));
    CHECK(!image.is_cubin);
    alloc_free(image.data);
    stop_listening();
    CHECK_HAS(heard.last, "k.cubin: it has 63 bytes; the manifest says 64");
    bundle_close(b);
    temp_dir_remove(folder.parent);
}

/* ---- no memory, several threads ---- */

TEST_CASE(DriverBundle, EveryAllocationMayFail)
{
    bundle_folder folder;
    if (!make_small_folder(&folder))
        return;
    scarce memory = {.fails = -1};
    uint64_t hash;
    CHECK(bundle_own_emitters(&hash)); /* which takes thousands of allocations, and has a test of its own */
    do {
        bundle *b = NULL;
        bundle_image image = {0};
        memory = (scarce){.fails = memory.fails + 1};
        alloc_set_hook(scarce_resize, &memory);
        qdnnStatus_t status = bundle_open(folder.dir, &b);
        bool opened = status == QDNN_STATUS_SUCCESS, failed = memory.asked > memory.fails;
        CHECK_EQ_I64(status, failed ? QDNN_STATUS_INTERNAL_ERROR_ALLOCATION_FAILED : QDNN_STATUS_SUCCESS);
        CHECK(opened == (b != NULL));
        bool found = opened && find_one(b, "sm_90", true, &image);
        CHECK(found == (memory.asked <= memory.fails));
        alloc_free(image.data);
        bundle_close(b);
        alloc_set_hook(NULL, NULL);
        CHECK_EQ_I64(memory.living, 0);
    } while (memory.asked > memory.fails);
    CHECK(memory.fails > 20);
    temp_dir_remove(folder.parent);
}

/* Emitting without memory fails, wherever memory ends, and leaves nothing behind. */
TEST_CASE(DriverBundle, EmittersWithoutMemory)
{
    uint64_t usual, hash;
    scarce memory = {.fails = INT32_MAX};
    alloc_set_hook(scarce_resize, &memory);
    CHECK(bundle_emitters(&usual));
    alloc_set_hook(NULL, NULL);
    const int asked = (int)memory.asked;
    CHECK(asked > 1000);
    for (int i = 0; i < 24; i++) {
        int fails = i < 12 ? i : i == 23 ? asked - 1 : asked / 12 * (i - 12) + i;
        memory = (scarce){.fails = fails};
        alloc_set_hook(scarce_resize, &memory);
        CHECK(!bundle_emitters(&hash));
        alloc_set_hook(NULL, NULL);
        CHECK_EQ_I64(memory.living, 0);
    }
    CHECK(bundle_own_emitters(&hash));
    CHECK_EQ_U64(hash, usual);
}

enum { THREADS = 4, ROUNDS = 50 };

static void *find_many(void *user)
{
    const bundle *b = user;
    kernel_spec spec = kernel_spec_default();
    uintptr_t found = 0;
    spec.data = QDNN_DATA_F16;
    spec.stored.group_size = 64;
    for (int i = 0; i < ROUNDS; i++) {
        bundle_image image;
        const kernel_row *row = &kernel_rows[i % kernel_row_count];
        spec.stored.channels =
            row->operation_name ? 0 : 1; /* parts of operations are there for whole tensors */
        if (bundle_find(b, row, KERNEL_NORMAL(row, &spec), ptx_sm_find("sm_90"), i % 2, &image))
            found++;
        alloc_free(image.data);
    }
    return (void *)found;
}

TEST_CASE(DriverBundle, ThreadsFindAtOnce)
{
    bundle_folder folder;
    bundle *b = NULL;
    pthread_t threads[THREADS];
    if (!make_folder(&folder, ONE))
        return;
    CHECK_EQ_I64(bundle_open(folder.dir, &b), QDNN_STATUS_SUCCESS);
    for (int i = 0; i < THREADS; i++)
        REQUIRE(pthread_create(&threads[i], NULL, find_many, b) == 0);
    for (int i = 0; i < THREADS; i++) {
        void *found;
        pthread_join(threads[i], &found);
        CHECK_EQ_I64((intptr_t)found, ROUNDS);
    }
    bundle_close(b);
    temp_dir_remove(folder.parent);
}
