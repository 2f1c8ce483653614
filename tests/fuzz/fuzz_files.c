/* libFuzzer target: any bytes are a GGUF or safetensors file, or an error that names the file. What is a file can be looked at to
 * the last byte: every tensor and operand lies inside the mapping or in memory of the file. The first byte chooses: the rest is
 * a file by itself, or the index of two shards that there are. */
#include <qdnn/files.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[256];

static void write_file(const char *name, const void *data, size_t size)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || write(file, data, size) != (ssize_t)size)
        abort();
    close(file);
}

static void make_folder(void)
{
    static const char shard[] = "{\"a\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1]}}";
    const char *parent = getenv("TMPDIR");
    uint8_t file[8 + sizeof shard] = {sizeof shard - 1};
    memcpy(file + 8, shard, sizeof shard); /* the zero at the end is its one byte of data */
    snprintf(folder, sizeof folder, "%s/fuzz_files_XXXXXX", parent && *parent ? parent : ".");
    if (!mkdtemp(folder))
        abort();
    write_file("1.safetensors", file, sizeof file);
    write_file("2.safetensors", file, sizeof file);
}

/* Reads every byte. */
static unsigned sum(const void *data, uint64_t bytes)
{
    unsigned n = 0;
    for (uint64_t i = 0; i < bytes; i++)
        n += ((const uint8_t *)data)[i];
    return n;
}

static unsigned look(qdnnFile_t file)
{
    qdnnFileInfo_t info;
    qdnnFileTensor_t t;
    qdnnFileWeight_t w;
    qdnnFileMetadata_t m;
    unsigned n = 0;
    if (qdnnGetFileInfo(file, &info))
        abort();
    for (int i = 0; i < info.tensors; i++) {
        int found;
        if (qdnnGetFileTensor(file, i, &t) || qdnnFindFileTensor(file, t.name, &found) || found != i ||
            t.weight >= info.weights)
            abort();
        n += sum(t.data, t.bytes) + (unsigned)strlen(t.typeName);
    }
    for (int i = 0; i < info.weights; i++) {
        if (qdnnGetFileWeight(file, i, &w) || !w.name || !w.format || w.operands < 1)
            abort();
        for (int k = 0; k < w.operands; k++)
            n += sum(w.operand[k].data, w.operand[k].bytes);
    }
    for (int i = 0; i < info.metadata; i++) {
        if (qdnnGetFileMetadata(file, i, &m))
            abort();
        n += (unsigned)(strlen(m.key) + strlen(m.text)) + sum(m.data, m.bytes);
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static volatile unsigned keep __attribute__((unused));
    char path[300], why[1200] = "";
    qdnnFile_t file = NULL;
    if (!folder[0])
        make_folder();
    if (size == 0)
        return 0;
    const char *name = data[0] & 1 ? "model.safetensors.index.json" : "model.safetensors";
    write_file(name, data + 1, size - 1);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (qdnnOpenFile(path, &file) == QDNN_STATUS_SUCCESS) {
        keep += look(file);
    } else {
        qdnnGetLastFileErrorString(why, sizeof why);
        if (file || !why[0])
            abort();
    }
    qdnnCloseFile(file);
    return 0;
}
