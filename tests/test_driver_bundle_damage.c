/* Bundles with every kind of damage: refused, with a warning or a status that says why. */
#include "test_driver_bundle.h"

#include "driver/base/alloc.h"
#include "support/process.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <qdnn/qdnn.h>

static const struct {
    const char *name, *command, *warning;
} damages[] = {
    /* clang-format off */
    {"cut", "truncate -s 100 " FILE_NAME, FILE_NAME ": it has 100 bytes; the manifest says"},
    {"empty", "truncate -s 0 " FILE_NAME, FILE_NAME ": it has 0 bytes; the manifest says"},
    {"longer", "echo >> " FILE_NAME, "bytes; the manifest says"},
    {"byte", "printf X | dd of=" FILE_NAME " bs=1 seek=500 conv=notrunc 2>/dev/null",
     FILE_NAME ": its FNV-1a hash is "},
    {"missing", "rm " FILE_NAME, FILE_NAME ": there is no such file"},
    {"link", "mv " FILE_NAME " x && ln -s x " FILE_NAME, FILE_NAME ": it is a symbolic link, not a regular file"},
    {"link_out", "mv " FILE_NAME " ../bundle_link.ptx && ln -s ../bundle_link.ptx " FILE_NAME,
     FILE_NAME ": it is a symbolic link, not a regular file"},
    {"folder", "rm " FILE_NAME " && mkdir " FILE_NAME, FILE_NAME ": it is not a regular file"},
    {"pipe", "rm " FILE_NAME " && mkfifo " FILE_NAME, FILE_NAME ": it is not a regular file"},
    {"hash", IN_ENTRY("\"fnv1a64\": \"[0-9a-f]*\"", "\"fnv1a64\": \"0123456789abcdef\""),
     "the manifest says 0123456789abcdef"},
    {"no_hash", IN_ENTRY("\"fnv1a64\": ", "\"fnv\": "), "the manifest does not give its size and hash"},
    {"bytes", IN_ENTRY("\"bytes\": \\([0-9]\\)", "\"bytes\": 1\\1"), "bytes; the manifest says 1"},
    {"bytes_no_number", IN_ENTRY("\"bytes\": [0-9][0-9]*", "\"bytes\": {}"),
     "the manifest does not give its size and hash"},
    {"version", IN_ENTRY("7\\.8", "8.0"), "its PTX does not begin with .version 8.0 and .target sm_90"},
    {"version_no_number", IN_ENTRY("\"7\\.8\"", "\"new\""), "the manifest does not give its ptx_version"},
    {"entry", IN_ENTRY("qdnn_scale_nf4", "qdnn_scale_int4"),
     "manifest.json: entry is qdnn_scale_int4; it must be qdnn_scale_nf4"},
    {"entry_wrong_type", IN_ENTRY("\"qdnn_scale_nf4\"", "17"), "manifest.json: entry is not given"},
    {"block", IN_ENTRY("\\[256, 1, 1\\]", "[128, 1, 1]"), "manifest.json: block.0 is 128; it must be 256"},
    {"block_deep", IN_ENTRY("\\[256, 1, 1\\]", "[256, 2, 1]"), "manifest.json: block.1 is 2; it must be 1"},
    {"no_block", IN_ENTRY("\\[256, 1, 1\\]", "null"), "manifest.json: block.0 is not given; it must be 256"},
    {"elements", IN_ENTRY("\"elements_per_block\": ", "\"elements_per_block\": 9"),
     "manifest.json: grid.elements_per_block is 9"},
    {"shared", IN_ENTRY("\"dynamic\": 0", "\"dynamic\": 16"),
     "manifest.json: shared.dynamic is 16; it must be 0"},
    {"offset", IN_ENTRY("\"offset\": 8", "\"offset\": 12"),
     "manifest.json: parameters.1.offset is 12; it must be 8"},
    {"size_zero", IN_ENTRY("\"size\": 8", "\"size\": 0"),
     "manifest.json: parameters.0.size is 0; it must be 8"},
    {"parameter_name", IN_ENTRY("\"name\": \"n\"", "\"name\": \"m\""),
     "manifest.json: parameters.2.name is m; it must be n"},
    {"parameter_type", IN_ENTRY("\"name\": \"n\", \"type\": \"u64\"", "\"name\": \"n\", \"type\": \"s64\""),
     "manifest.json: parameters.2.type is s64; it must be u64"},
    {"parameter_no_type", IN_ENTRY("\"type\"", "\"tipe\""),
     "manifest.json: parameters.0.type is not given; it must be u64"},
    {"parameter_no_size", IN_ENTRY("\"size\"", "\"seize\""),
     "manifest.json: parameters.0.size is not given; it must be 8"},
    {"parameter_align", IN_ENTRY("\"align\": 2", "\"align\": 4"),
     "manifest.json: parameters.0.align is 4; it must be 2"},
    {"parameter_pointer", IN_ENTRY("\"name\": \"n\", ", "\"name\": \"n\", \"align\": 8, "),
     "manifest.json: parameters.2.align is given; only a pointer has it"},
    {"parameter_missing", IN_ENTRY("{\"name\": \"n\".*}", "") " && " IN_ENTRY("\\(\"name\": \"scale\".*}\\),", "\\1"),
     "manifest.json: it has 2 parameters; it must have 3"},
    {"no_parameters", IN_ENTRY("\"parameters\"", "\"params\""), "it gives no list of parameters"},
    {"name_up", IN_ENTRY(FILE_NAME, "../" FILE_NAME), "its name is not that of a file in the folder"},
    {"name_absolute", IN_ENTRY(FILE_NAME, "/etc/x.ptx"), "its name is not that of a file in the folder"},
    {"name_below", IN_ENTRY(FILE_NAME, "./" FILE_NAME), "its name is not that of a file in the folder"},
    {"other_kernel", "cp " OTHER_NAME " " FILE_NAME, FILE_NAME ": it"},
    /* clang-format on */
};

TEST_ROWS(DriverBundle, DamageIsRefusedWithAWarning, damages)
{
    bundle_folder folder;
    if (!make_small_folder(&folder))
        return;
    folder_run(folder.dir, damages[index].command);
    check_warning(folder.dir, "sm_90", damages[index].warning);
    temp_dir_remove(folder.parent);
}

/* Kernels whose manifest, size and hash are made to fit. */
#define MORE(i, offset) ", {\"name\": \"m" i "\", \"type\": \"u64\", \"offset\": " offset ", \"size\": 8}"
#define DECLARATION     "/^.visible .entry/,/^)/"
static const struct {
    const char *name, *command, *warning;
} forgeries[] = {
    /* clang-format off */
    {"eight_parameters",
     IN_ENTRY("{\"name\": \"n\".*}", "&" MORE("3", "24") MORE("4", "32") MORE("5", "40") MORE("6", "48") MORE("7", "56"))
     " && sed -i '" DECLARATION "s/ n$/ n,\\n\\t.param .u64 m3,\\n\\t.param .u64 m4,\\n\\t.param .u64 m5,"
     "\\n\\t.param .u64 m6,\\n\\t.param .u64 m7/' " FILE_NAME,
     "manifest.json: it has 8 parameters; it must have 3"},
    {"eight_in_ptx",
     "sed -i '" DECLARATION "s/ n$/ n,\\n\\t.param .u64 m3,\\n\\t.param .u64 m4,\\n\\t.param .u64 m5,"
     "\\n\\t.param .u64 m6,\\n\\t.param .u64 m7/' " FILE_NAME,
     FILE_NAME ": its PTX does not declare qdnn_scale_nf4 with its parameters"},
    {"in_a_comment",
     "{ cat " FILE_NAME "; echo '/*'; sed -n '" DECLARATION "p' " FILE_NAME "; echo '*/'; } > x && "
     "sed -i '0,/ n$/s// n, .param .u64 m3/' x && mv x " FILE_NAME,
     FILE_NAME ": its PTX does not declare qdnn_scale_nf4 with its parameters"},
    {"in_an_open_comment",
     "{ cat " FILE_NAME "; echo '/*'; sed -n '" DECLARATION "p' " FILE_NAME "; } > x && "
     "sed -i '0,/ n$/s// n, .param .u64 m3/' x && mv x " FILE_NAME,
     FILE_NAME ": its PTX does not declare qdnn_scale_nf4 with its parameters"},
    {"in_a_string",
     "{ cat " FILE_NAME "; echo '.file 1 \"'; sed -n '" DECLARATION "p' " FILE_NAME "; echo '\"'; } > x && "
     "sed -i '0,/ n$/s// n, .param .u64 m3/' x && mv x " FILE_NAME,
     FILE_NAME ": its PTX does not declare qdnn_scale_nf4 with its parameters"},
    {"behind_if",
     "{ cat " FILE_NAME "; echo '#if 0'; sed -n '" DECLARATION "p' " FILE_NAME "; echo '#endif'; } > x && "
     "sed -i '0,/ n$/s// n, .param .u64 m3/' x && mv x " FILE_NAME,
     FILE_NAME ": its PTX does not declare qdnn_scale_nf4 with its parameters"},
    /* clang-format on */
};

TEST_ROWS(DriverBundle, ForgedParametersAreRefused, forgeries)
{
    bundle_folder folder;
    if (!make_small_folder(&folder))
        return;
    folder_run(folder.dir, forgeries[index].command);
    bless(folder.dir, FILE_NAME);
    check_warning(folder.dir, "sm_90", forgeries[index].warning);
    temp_dir_remove(folder.parent);
}

/* Comments do no harm if the declaration is outside them. */
TEST_CASE(DriverBundle, PtxWithCommentsIsTaken)
{
    bundle_folder folder;
    bundle *b = NULL;
    bundle_image image;
    if (!make_small_folder(&folder))
        return;
    folder_run(folder.dir, "sed -i 's|^.visible|/* \" // */ // \" /*\\n&|' " FILE_NAME);
    bless(folder.dir, FILE_NAME);
    CHECK_EQ_I64(bundle_open(folder.dir, &b), QDNN_STATUS_SUCCESS);
    if (CHECK(find_one(b, "sm_90", false, &image)))
        CHECK_HAS(image.data, "/* \" // */ // \" /*\n.visible .entry qdnn_scale_nf4(");
    alloc_free(image.data);
    bundle_close(b);
    temp_dir_remove(folder.parent);
}

/* A name with a newline and an escape sequence in it stays one line of the log. */
TEST_CASE(DriverBundle, NamesWithControlCharactersStayOnTheirLine)
{
    bundle_folder folder;
    if (!make_small_folder(&folder))
        return;
    folder_run(folder.dir, IN_ENTRY(FILE_NAME, "a\\\\nqdnn error: \\\\u001b[2Jb.ptx"));
    check_warning(folder.dir, "sm_90",
                  "/a\\x0aqdnn error: \\x1b[2Jb.ptx: there is no such file; not used for");
    temp_dir_remove(folder.parent);
}

TEST_CASE(DriverBundle, PtxOfAnotherSm)
{
    bundle_folder folder;
    if (!make_small_folder(&folder))
        return;
    folder_run(folder.dir, IN_ENTRY("\"sm\": \"sm_90\"", "\"sm\": \"sm_80\""));
    check_warning(folder.dir, "sm_80", "its PTX does not begin with .version 7.8 and .target sm_80");
    temp_dir_remove(folder.parent);
}

/* Other settings in the manifest: the requested kernel is not found, and the file is not used as another. */
TEST_CASE(DriverBundle, SettingsAreComparedByName)
{
    bundle_folder folder;
    bundle *b = NULL;
    bundle_image image;
    listener heard;
    if (!make_small_folder(&folder))
        return;
    folder_run(folder.dir,
               IN_ENTRY("\"data\": \"f16\", \"scale\": \"f32\"",
                        "\"scale\": \"f32\", \"data\": \"f16\"")); /* in another order they are the same */
    CHECK_EQ_I64(bundle_open(folder.dir, &b), QDNN_STATUS_SUCCESS);
    CHECK(find_one(b, "sm_90", false, &image));
    alloc_free(image.data);
    bundle_close(b);
    folder_run(folder.dir, IN_ENTRY("\"data\": \"f16\"", "\"data\": \"f32\""));
    listen_to(&heard);
    CHECK_EQ_I64(bundle_open(folder.dir, &b), QDNN_STATUS_SUCCESS);
    CHECK(!find_one(b, "sm_90", false, &image));
    stop_listening();
    CHECK_EQ_I64(heard.warnings, 1);
    CHECK_HAS(heard.last, "differs by data=f32");
    bundle_close(b);
    temp_dir_remove(folder.parent);
}

/* With a NUL inside, and with a manifest that knows of it. */
TEST_CASE(DriverBundle, PtxWithANul)
{
    bundle_folder folder;
    if (!make_small_folder(&folder))
        return;
    folder_run(folder.dir, "printf '\\0' >> " FILE_NAME);
    bless(folder.dir, FILE_NAME);
    check_warning(folder.dir, "sm_90", FILE_NAME ": its PTX has a NUL in it");
    temp_dir_remove(folder.parent);
}

/* ---- folders that cannot be opened ---- */

static void check_refused(const char *dir, const char *sentence)
{
    char error[512];
    bundle *b = (bundle *)&error;
    CHECK_EQ_I64(bundle_open(dir, &b), QDNN_STATUS_BAD_PARAM);
    CHECK(b == NULL);
    qdnnGetLastErrorString(error, sizeof error);
    CHECK_HAS(error, sentence);
}

static const struct {
    const char *name, *command, *sentence;
} closed[] = {
    {"no_manifest", "rm manifest.json",
     "manifest.json: there is no such file; give a folder that ptxgen --all wrote"},
    {"manifest_is_folder", "rm manifest.json && mkdir manifest.json", "it is not a regular file"},
    {"empty", "truncate -s 0 manifest.json",
     "manifest.json:1: the text ends too early; write it again with ptxgen --all"},
    {"nul", "truncate -s +1 manifest.json", "extra text after the value"},
    {"brackets", "head -c 10485760 /dev/zero | tr '\\0' '[' > manifest.json", "nested too deeply"},
    {"no_object", "echo 7 > manifest.json", "is not of the form that this qdnn reads (version 1)"},
    {"other_form", "sed -i 's/\"version\": 1/\"version\": 2/' manifest.json",
     "is not of the form that this qdnn reads (version 1); write it again with ptxgen --all"},
    {"no_form", "sed -i '/\"version\": 1/d' manifest.json", "is not of the form that this qdnn reads"},
    {"other_qdnn", "sed -i 's/\"qdnn\": \"[^\"]*\"/\"qdnn\": \"0.0.9\"/' manifest.json",
     "was written by qdnn 0.0.9, and this is " QDNN_PROJECT_VERSION "; write it again with ptxgen --all"},
    {"other_emitters", "sed -i 's/\"emitters\": \".*\"/\"emitters\": \"0123456789abcdef\"/' manifest.json",
     "was written by another build of qdnn " QDNN_PROJECT_VERSION},
    {"no_kernels", "sed -i 's/\"kernels\"/\"colonels\"/' manifest.json", "has no list of kernels"},
    {"kernels_is_text",
     "sed -i '/\"kernels\"/,$d' manifest.json && echo '\"kernels\": \"none\"}' >> manifest.json",
     "has no list of kernels"},
    {"no_sm", "sed -i '0,/\"sm\"/s//\"ms\"/' manifest.json", "kernel 0 lacks its name, sm or settings"},
    {"unknown_setting", "sed -i '0,/\"group_size\"/s//\"size\"/' manifest.json", "or has unknown ones"},
    {"no_files", "sed -i 's/\\.ptx\"/.txt\"/' manifest.json", "names neither PTX nor cubins"},
};

TEST_ROWS(DriverBundle, CannotBeOpened, closed)
{
    bundle_folder folder;
    if (!make_small_folder(&folder))
        return;
    folder_run(folder.dir, closed[index].command);
    check_refused(folder.dir, closed[index].sentence);
    temp_dir_remove(folder.parent);
}

TEST_CASE(DriverBundle, NoFolder)
{
    bundle *b;
    check_refused("/nowhere/at/all", "/nowhere/at/all cannot be opened as a folder");
    check_refused(QDNN_BINARY_DIR "/ptxgen/ptxgen", "cannot be opened as a folder");
    check_refused("", "cannot be opened as a folder");
    CHECK_EQ_I64(bundle_open(NULL, &b), QDNN_STATUS_BAD_PARAM_NULL_POINTER);
    CHECK_EQ_I64(bundle_open(".", NULL), QDNN_STATUS_BAD_PARAM_NULL_POINTER);
}

/* Every length: only the last, where nothing but the newline at the end may be missing, can be opened.
 */
TEST_CASE(DriverBundle, ManifestCutAnywhere)
{
    bundle_folder folder;
    size_t bytes = 0;
    if (!make_small_folder(&folder))
        return;
    char *text = folder_read(folder.dir, "manifest.json", &bytes);
    REQUIRE(text != NULL);
    keep_entries(text, (const char *const[]){FILE_NAME}, 1);
    bytes = strlen(text);
    for (size_t cut = 0; cut + 1 < bytes; cut++) {
        folder_write(folder.dir, "manifest.json", text, cut);
        check_refused(folder.dir, "; write it again with ptxgen --all");
    }
    free(text);
    temp_dir_remove(folder.parent);
}

/* A manifest with a byte changed is refused, or the kernel is not found, or it is what it was: nothing else.
 */
TEST_CASE(DriverBundle, ManifestWithAByteChanged)
{
    bundle_folder folder;
    size_t bytes = 0;
    int found = 0, changed = 0;
    if (!make_small_folder(&folder))
        return;
    char *text = folder_read(folder.dir, "manifest.json", &bytes);
    char *ptx = folder_read(folder.dir, FILE_NAME, NULL);
    REQUIRE(text && ptx);
    keep_entries(text, (const char *const[]){FILE_NAME}, 1);
    bytes = strlen(text);
    for (size_t i = 0; i < bytes; i++, changed++) {
        bundle *b = NULL;
        bundle_image image;
        char was = text[i];
        text[i] = (char)(was ^ (1 << i % 8));
        folder_write(folder.dir, "manifest.json", text, bytes);
        text[i] = was;
        bool opened = bundle_open(folder.dir, &b) == QDNN_STATUS_SUCCESS;
        if (opened && find_one(b, "sm_90", false, &image)) {
            CHECK_EQ_STR(image.data, ptx);
            alloc_free(image.data);
            found++;
        }
        bundle_close(b);
    }
    CHECK(found > 0 && found < changed);
    free(text);
    free(ptx);
    temp_dir_remove(folder.parent);
}
