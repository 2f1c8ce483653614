/* ptxgen's manifests: what they say about a kernel matches its PTX, and what they say about files matches the files. */
#include "kernels/kernels.h"
#include "tools/toolkit.h"
#include "support/assemble.h"
#include "support/environment.h"
#include "support/process.h"
#include "test.h"
#include "test_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PTXGEN QDNN_BINARY_DIR "/ptxgen/ptxgen"

static int count(void)
{
    return kernel_row_count;
}

static void name(int index, char *text, size_t size)
{
    snprintf(text, size, "%s", kernel_rows[index].name);
}

/* The hash that manifests carry, written here a second time. */
static void fnv1a64(const char *data, size_t bytes, char *text)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < bytes; i++) {
        hash ^= (unsigned char)data[i];
        hash *= UINT64_C(1099511628211);
    }
    sprintf(text, "%016" PRIx64, hash);
}

static unsigned size_of(const char *type)
{
    unsigned bits = 0;
    sscanf(type, "%*[a-z]%u", &bits);
    return bits / 8;
}

/* Reads ".param .u64 .ptr .global .align 4 x," line by line, as the parameter block is laid out. */
static void check_parameters(const json *doc, const char *ptx)
{
    unsigned offset = 0;
    int index = 0;
    for (const char *p = strstr(ptx, ".param ."); p && p < strstr(ptx, "\n{\n");
         p = strstr(p + 1, ".param .")) {
        char line[256], type[16], path[64];
        snprintf(line, sizeof line, "%.*s", (int)strcspn(p, ",\n"), p);
        sscanf(line, ".param .%15s", type);
        unsigned size = size_of(type);
        offset = (offset + size - 1) / size * size;
        snprintf(path, sizeof path, "parameters.%d.name", index);
        check_json(doc, path, strrchr(line, ' ') + 1);
        snprintf(path, sizeof path, "parameters.%d.type", index);
        check_json(doc, path, type);
        snprintf(path, sizeof path, "parameters.%d.offset", index);
        check_json_number(doc, path, offset);
        snprintf(path, sizeof path, "parameters.%d.size", index);
        check_json_number(doc, path, size);
        offset += size;
        index++;
    }
    CHECK(index > 0);
    CHECK_EQ_I64(json_count(doc, "parameters"), index);
}

/* What the manifest says of shared memory, against the declarations. */
static void check_shared(const json *doc, const char *ptx)
{
    unsigned bytes = 0;
    for (const char *p = ptx; (p = strstr(p, "\t.shared .align")); p++) {
        unsigned align, bits, elements;
        char variable[64];
        if (CHECK(sscanf(p, " .shared .align %u .b%u %63[^[][%u]", &align, &bits, variable, &elements) == 4))
            bytes = (bytes + align - 1) / align * align + bits / 8 * elements;
    }
    check_json_number(doc, "shared.static", bytes);
    check_json_number(doc, "shared.dynamic", 0);
}

TEST_EACH(ToolManifest, SaysWhatThePtxSays, count, name)
{
    const kernel_row *row = &kernel_rows[index];
    const char *settings = kernel_takes(row, "data") && kernel_takes(row, "group_size") && !kernel_takes(row, "row_size") && !kernel_takes(row, "head_size")
                               ? strstr(row->name, "dynamic") ? "--set data=bf16,group_size=1024"
                                                              : "--set data=bf16,group_size=100000"
                               : "";
    process_result r = process_run("%s --kernel %s --sm 89 %s --emit json", PTXGEN, row->name, settings);
    process_result ptx = process_run("%s --kernel %s --sm 89 %s", PTXGEN, row->name, settings);
    char entry[64], text[128], hash[32];
    CHECK_EQ_I64(r.status, 0);
    json *doc = read_json(r.output);
    check_json(doc, "kernel", row->name);
    check_json(doc, "summary", row->summary);
    check_json(doc, "sm", "sm_89");
    if (*settings)
        check_json(doc, "settings.data", "bf16");
    kernel_entry_name(row, entry, sizeof entry);
    check_json(doc, "entry", entry);
    snprintf(text, sizeof text, ".visible .entry %s(", entry);
    CHECK_HAS(ptx.output, text);
    char version[16] = "";
    sscanf(ptx.output, ".version %15s", version);
    check_json(doc, "ptx_version", version);
    check_parameters(doc, ptx.output);
    check_shared(doc, ptx.output);
    fnv1a64(ptx.output, ptx.length, hash);
    check_json(doc, "ptx_fnv1a64", hash);
    check_json_number(doc, "ptx_bytes", ptx.length);
    json_free(doc);
    process_free(&r);
    process_free(&ptx);
}

TEST_EACH(ToolManifest, GivesTheLaunch, count, name)
{
    const kernel_row *row = &kernel_rows[index];
    kernel_spec spec = kernel_spec_default();
    const kernel_spec normal = kernel_spec_normal(row, &spec);
    kernel_geometry geometry = kernel_geometry_of(row, &normal);
    process_result r = process_run("%s --kernel %s --sm 90 --emit json", PTXGEN, row->name);
    json *doc = read_json(r.output);
    const char *plain = json_string(json_root(doc), "grid.x");
    check_json_number(doc, "block.0", geometry.block);
    check_json_number(doc, "block.1", 1);
    check_json_number(doc, "grid.elements_per_block", geometry.elements_per_block);
    CHECK(plain != NULL || strcmp(row->name, "int8_conv2d") == 0); /* ToolRules has what they must be */
    json_free(doc);
    process_free(&r);
}

/* With channels a kernel loops over them: its grid does not follow n. */
TEST_CASE(ToolManifest, GivesTheBlocksOfAKernelThatLoops)
{
    const char *settings = "--kernel scale_nf4 --sm 90 --set channels=100,group_size=64";
    process_result r = process_run("%s %s --emit json", PTXGEN, settings);
    json *doc = read_json(r.output);
    check_json(doc, "settings.channels", "100");
    check_json(doc, "grid.x", "100");
    check_json(doc, "grid.any", "true");
    json_free(doc);
    process_free(&r);
    char dir[256];
    temp_dir_make(dir, sizeof dir);
    process_result c = process_run("%s %s --emit c --outdir %s && cat %s/*.h", PTXGEN, settings, dir, dir);
    CHECK_HAS(c.output, "#define QDNN_SCALE_NF4_F32_F32_G64_C100_SM_90_BLOCKS 100ULL\n");
    process_free(&c);
    temp_dir_remove(dir);
}

/* ---- bundles ---- */

static void check_file(const char *dir, const json *doc, int kernel, int file)
{
    char path[64], place[1000], hash[32];
    snprintf(path, sizeof path, "kernels.%d.files.%d.name", kernel, file);
    const char *file_name = json_string(json_root(doc), path);
    REQUIRE(file_name != NULL);
    snprintf(place, sizeof place, "%s/%s", dir, file_name);
    size_t bytes = 0;
    char *data = toolkit_read_file(place, &bytes);
    REQUIRE(data != NULL);
    fnv1a64(data, bytes, hash);
    snprintf(path, sizeof path, "kernels.%d.files.%d.fnv1a64", kernel, file);
    check_json(doc, path, hash);
    snprintf(path, sizeof path, "kernels.%d.files.%d.bytes", kernel, file);
    check_json_number(doc, path, bytes);
    free(data);
}

/* The manifest of a bundle names every file in its folder. */
static void check_manifest(const char *bundle, int files_each)
{
    process_result r = process_run("ls %s | wc -l", bundle);
    int files = atoi(r.output);
    process_free(&r);
    char path[600];
    snprintf(path, sizeof path, "%s/manifest.json", bundle);
    char *text = toolkit_read_file(path, NULL);
    REQUIRE(text != NULL);
    json *doc = read_json(text);
    check_json(doc, "version", "1");
    check_json(doc, "qdnn", QDNN_PROJECT_VERSION);
    int kernels = json_count(doc, "kernels");
    CHECK(kernels >= kernel_row_count);
    CHECK_EQ_I64(files, (int64_t)kernels * files_each + 1);
    for (int i = 0; i < kernels; i++)
        for (int k = 0; k < files_each; k++)
            check_file(bundle, doc, i, k);
    json_free(doc);
    free(text);
}

/* Writes a bundle twice; the second equals the first. */
static void check_bundle(const char *dir, const char *arguments, int files_each)
{
    process_result r = process_run("cd %s && %s --all %s --outdir a && %s --all %s --outdir b && diff -r a b",
                                   dir, PTXGEN, arguments, PTXGEN, arguments);
    CHECK_EQ_I64(r.status, 0);
    process_free(&r);
    char bundle[300];
    snprintf(bundle, sizeof bundle, "%s/a", dir);
    check_manifest(bundle, files_each);
}

static const struct {
    const char *name, *arguments;
    int files_each;
} bundles[] = {
    {"ptx", "--sm 90 --set group_size=64,data=f16", 1},
    {"ptx_default_targets", "--set group_size=64,data=f32,nibble_order=low", 1},
    {"c", "--sm 75,120a --set group_size=64,data=bf16,nibble_order=high --emit c", 2},
    {"json", "--sm 80 --set group_size=32 --emit json", 0},
};

TEST_ROWS(ToolManifest, NamesEveryFileOfABundle, bundles)
{
    char dir[256];
    temp_dir_make(dir, sizeof dir);
    check_bundle(dir, bundles[index].arguments, bundles[index].files_each);
    temp_dir_remove(dir);
}

/* With a stand-in for ptxas, because the real one takes minutes; the full tests run that too. */
TEST_CASE(ToolManifest, BundleOfCubins)
{
    char dir[256], settings[300];
    temp_dir_make(dir, sizeof dir);
    stand_in_ptxas(dir);
    snprintf(settings, sizeof settings, "CUDA_HOME=%s", dir);
    environment_set(settings);
    check_bundle(dir, "--sm 90 --set group_size=128,data=f32,zero=u8,nibble_order=low --emit cubin", 1);
    environment_restore();
    temp_dir_remove(dir);
}

#ifdef QDNN_TEST_FULL
/* Every kernel that --all writes, assembled by the real ptxas. */
TEST_CASE(ToolManifest, BundleOfRealCubins)
{
    char ptxas[1024], dir[256], bundle[300];
    if (!toolkit_find_ptxas(ptxas, sizeof ptxas))
        SKIP("there is no ptxas");
    temp_dir_make(dir, sizeof dir);
    snprintf(bundle, sizeof bundle, "%s/bundle", dir);
    process_result r = process_run("%s --all --sm 90 --emit cubin --outdir %s", PTXGEN, bundle);
    CHECK_EQ_I64(r.status, 0);
    CHECK_EQ_STR(r.output, "");
    process_free(&r);
    r = process_run(
        "cd %s && for file in *.cubin; do head -c 4 \"$file\" | grep -q ELF || echo \"$file\"; done", bundle);
    CHECK_EQ_STR(r.output, ""); /* the files that are not ELF */
    process_free(&r);
    check_manifest(bundle, 1);
    temp_dir_remove(dir);
}
#endif
