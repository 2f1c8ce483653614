/* The reader of files by itself: no libqdnn is linked. */
#include <qdnn/files.h>
#include <stdio.h>

int main(void)
{
    qdnnFile_t file;
    char why[512];
    if (qdnnOpenFile("no-such-model.gguf", &file) == QDNN_STATUS_SUCCESS)
        return 1;
    qdnnGetLastFileErrorString(why, sizeof why);
    puts(why);
    return 0;
}
