/* Checkpoints of several files, their configurations, and the functions' own arguments. */
#include "files/opened.h"
#include "support/process.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

static void write_shard(const char *dir, const char *file, const char *tensor, float value)
{
    st_maker s = {0};
    st_add(&s, tensor, "F32", 1, 0, &value, 4);
    bytes b = st_make(&s);
    bytes_write(&b, dir, file);
    bytes_free(&b);
}

#define INDEX "model.safetensors.index.json"
static const char two_shards[] =
    "{\"metadata\":{\"total_size\":8},\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"2.safetensors\"}}";

TEST_CASE(FilesShards, AnIndexJoinsItsShards)
{
    opened o = {0};
    temp_dir_make(o.dir, sizeof o.dir);
    write_shard(o.dir, "1.safetensors", "a", 1);
    write_shard(o.dir, "2.safetensors", "b", 2);
    text_write(two_shards, o.dir, INDEX);
    for (int i = 0; i < 2; i++) { /* by its name, and as the folder's */
        qdnnFileInfo_t info;
        qdnnFileTensor_t t;
        if (!opened_open(&o, i ? "" : INDEX))
            break;
        qdnnGetFileInfo(o.file, &info);
        CHECK_EQ_I64(info.kind, QDNN_FILE_SAFETENSORS);
        CHECK_EQ_I64(info.shards, 2);
        CHECK_EQ_I64(info.weights, 2);
        CHECK_EQ_STR(info.quantMethod, "");
        CHECK(!qdnnGetFileTensor(o.file, 1, &t));
        CHECK_EQ_STR(t.name, "b");
        CHECK_EQ_I64(t.shard, 1);
        CHECK_EQ_MEM(t.data, &(float){2}, 4); /* at any byte of the file */
        qdnnCloseFile(o.file);
        o.file = NULL;
    }
    opened_close(&o);
}

static const struct {
    const char *name, *index, *says;
} mistakes[] = {
    {"NotJson", "{\"weight_map\"", "offset 13 (line 1): not JSON: ':' is missing after the name of a member"},
    {"NoMap", "{\"metadata\":{}}", "is not an index of shards: it has no weight_map"},
    {"EmptyMap", "{\"weight_map\":{}}", "it has no weight_map"},
    {"NumberInMap", "{\"weight_map\":{\"a\":1}}", "weight_map has no file name for 'a'"},
    {"MissingShard", "{\"weight_map\":{\"a\":\"3.safetensors\"}}",
     "the shard '3.safetensors' of the index is missing; download it"},
    {"ItselfAsShard", "{\"weight_map\":{\"a\":\"model.safetensors.index.json\"}}",
     "is itself an index; shards are safetensors files"},
    {"OtherFolder", "{\"weight_map\":{\"a\":\"../1.safetensors\"}}",
     "is not the name of a file in the same folder"},
    {"AbsolutePath", "{\"weight_map\":{\"a\":\"/etc/passwd\"}}",
     "is not the name of a file in the same folder"},
    {"EmptyName", "{\"weight_map\":{\"a\":\"\"}}", "is not the name of a file in the same folder"},
    {"NotInItsShard", "{\"weight_map\":{\"a\":\"2.safetensors\"}}",
     "the tensor 'a' of the index is not in '2.safetensors'"},
    {"InAnotherShard", "{\"weight_map\":{\"a\":\"2.safetensors\",\"b\":\"1.safetensors\"}}",
     "the tensor 'a' of the index is not in"},
    {"InTwoShards", "{\"weight_map\":{\"a\":\"1.safetensors\",\"x\":\"twin.safetensors\"}}",
     "duplicate tensor 'a'; the first is in 1.safetensors"},
    {"DamagedShard", "{\"weight_map\":{\"a\":\"cut.safetensors\"}}",
     "cut.safetensors: offset 0: 3 bytes are too few for a safetensors file"},
};

TEST_ROWS(FilesShards, Mistakes, mistakes)
{
    char dir[512];
    temp_dir_make(dir, sizeof dir);
    write_shard(dir, "1.safetensors", "a", 1);
    write_shard(dir, "2.safetensors", "b", 2);
    write_shard(dir, "twin.safetensors", "a", 3);
    text_write("cut", dir, "cut.safetensors");
    text_write(mistakes[index].index, dir, INDEX);
    check_refused(dir, INDEX, QDNN_STATUS_BAD_PARAM, mistakes[index].says);
    temp_dir_remove(dir);
}

TEST_CASE(FilesShards, FoldersWithoutACheckpoint)
{
    char dir[512];
    temp_dir_make(dir, sizeof dir);
    check_refused(dir, "", QDNN_STATUS_BAD_PARAM,
                  "the folder has neither model.safetensors.index.json nor model.safetensors");
    check_refused(dir, INDEX, QDNN_STATUS_BAD_PARAM, "cannot be read: no such file");
    write_shard(dir, "model.safetensors", "a", 1);
    text_write("{\"quantization_config\": {\"quant_method\": }}", dir, "config.json");
    check_refused(dir, "", QDNN_STATUS_BAD_PARAM, "config.json: offset 41 (line 1): not JSON");
    temp_dir_remove(dir);
}

/* ---- configurations ---- */

static const struct {
    const char *name, *file, *text, *method;
} configs[] = {
    {"Config", "config.json", "{\"quantization_config\":{\"quant_method\":\"gptq\"}}", "gptq"},
    {"TextConfig", "config.json", "{\"text_config\":{\"quantization_config\":{\"quant_method\":\"awq\"}}}",
     "awq"},
    {"Compression", "config.json", "{\"compression_config\":{\"format\":\"pack-quantized\"}}",
     "compressed-tensors"},
    {"ModelOpt", "hf_quant_config.json", "{\"quantization\":{\"quant_algo\":\"NVFP4\"}}", "modelopt"},
    {"OldGptq", "quantize_config.json", "{\"bits\":4,\"group_size\":-1}", "gptq"},
    {"OldAwq", "quant_config.json", "{\"w_bit\":4,\"q_group_size\":128}", "awq"},
    {"Unknown", "config.json", "{\"quantization_config\":{\"quant_method\":\"else\"}}", "else"},
    {"None", "config.json", "{\"hidden_size\":8}", ""},
};

TEST_ROWS(FilesShards, Configurations, configs)
{
    opened o = {0};
    qdnnFileInfo_t info;
    temp_dir_make(o.dir, sizeof o.dir);
    write_shard(o.dir, "model.safetensors", "a", 1);
    text_write(configs[index].text, o.dir, configs[index].file);
    if (opened_open(&o, "model.safetensors") && CHECK(!qdnnGetFileInfo(o.file, &info)))
        CHECK_EQ_STR(info.quantMethod, configs[index].method);
    opened_close(&o);
}

/* ---- arguments ---- */

TEST_CASE(FilesArguments, AreChecked)
{
    opened o = {0};
    qdnnFileInfo_t info;
    qdnnFileTensor_t t;
    qdnnFileWeight_t w;
    qdnnFileMetadata_t m;
    const char *path;
    char why[128];
    int found = 7;
    temp_dir_make(o.dir, sizeof o.dir);
    write_shard(o.dir, "model.safetensors", "a", 1);
    CHECK_EQ_I64(qdnnOpenFile(NULL, &o.file), QDNN_STATUS_BAD_PARAM_NULL_POINTER);
    CHECK_EQ_I64(qdnnOpenFile("x", NULL), QDNN_STATUS_BAD_PARAM_NULL_POINTER);
    qdnnGetLastFileErrorString(why, sizeof why);
    CHECK_EQ_STR(why, "file is null");
    qdnnGetLastFileErrorString(why, 5);
    CHECK_EQ_STR(why, "file");
    qdnnGetLastFileErrorString(NULL, 0);
    CHECK_EQ_I64(qdnnCloseFile(NULL), QDNN_STATUS_SUCCESS);
    if (opened_open(&o, "model.safetensors")) {
        CHECK_EQ_I64(qdnnGetFileInfo(NULL, &info), QDNN_STATUS_BAD_PARAM_NULL_POINTER);
        CHECK_EQ_I64(qdnnGetFileInfo(o.file, NULL), QDNN_STATUS_BAD_PARAM_NULL_POINTER);
        CHECK_EQ_I64(qdnnGetFileTensor(o.file, 1, &t), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
        qdnnGetLastFileErrorString(why, sizeof why);
        CHECK_EQ_STR(why, "index is 1; the file has 1 tensors");
        CHECK_EQ_I64(qdnnGetFileTensor(o.file, -1, &t), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
        CHECK_EQ_I64(qdnnGetFileTensor(NULL, 0, &t), QDNN_STATUS_BAD_PARAM_NULL_POINTER);
        CHECK_EQ_I64(qdnnGetFileWeight(o.file, 1, &w), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
        CHECK_EQ_I64(qdnnGetFileMetadata(o.file, 0, &m), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
        CHECK_EQ_I64(qdnnGetFileShard(o.file, 1, &path), QDNN_STATUS_BAD_PARAM_OUT_OF_BOUND);
        CHECK_EQ_I64(qdnnFindFileTensor(o.file, "b", &found), QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME);
        CHECK_EQ_I64(qdnnFindFileTensor(o.file, NULL, &found), QDNN_STATUS_BAD_PARAM_NULL_POINTER);
        CHECK_EQ_I64(qdnnFindFileWeight(o.file, "b", &found), QDNN_STATUS_BAD_PARAM_UNKNOWN_NAME);
        CHECK_EQ_I64(found, 7); /* untouched by calls that failed */
        CHECK_EQ_I64(qdnnFindFileWeight(o.file, "a", &found), QDNN_STATUS_SUCCESS);
        CHECK_EQ_I64(found, 0);
    }
    opened_close(&o);
}
