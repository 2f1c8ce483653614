/* Writes the reference pages of docs/reference: one for each public header, and an index.
 *
 *     reference_pages include/qdnn docs/reference */
#include "tools/api_pages/page.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { HEADERS_MAX = 64, PATH_LENGTH = 1024 };

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The names of the headers in a folder, in order; how many, or -1. */
static int list_headers(const char *folder, char names[HEADERS_MAX][64])
{
    DIR *dir = opendir(folder);
    int count = 0;
    if (!dir)
        return -1;
    for (struct dirent *entry; (entry = readdir(dir));) {
        const size_t length = strlen(entry->d_name);
        if (length > 2 && length < 64 && count < HEADERS_MAX && strcmp(entry->d_name + length - 2, ".h") == 0)
            strcpy(names[count++], entry->d_name);
    }
    closedir(dir);
    qsort(names, (size_t)count, sizeof names[0], by_name);
    return count;
}

static FILE *open_page(const char *folder, const char *name)
{
    char path[PATH_LENGTH];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (!file)
        fprintf(stderr, "reference_pages: %s cannot be written\n", path);
    return file;
}

/* "plan.h" becomes "plan.md". */
static bool write_page(const char *from, const char *to, const char *name, FILE *index)
{
    char path[PATH_LENGTH], page[72];
    header h;
    bool ok = false;
    snprintf(path, sizeof path, "%s/%s", from, name);
    snprintf(page, sizeof page, "%.*s.md", (int)strlen(name) - 2, name);
    if (!header_read(path, &h)) {
        fprintf(stderr, "reference_pages: %s cannot be read\n", path);
    } else {
        FILE *out = open_page(to, page);
        if (out) {
            page_write(out, name, &h);
            ok = fclose(out) == 0;
        }
        fprintf(index, "| [%s](%s) | ", name, page);
        page_summary(index, &h);
        fputs(" |\n", index);
    }
    header_free(&h);
    return ok;
}

int main(int argc, char **argv)
{
    static char names[HEADERS_MAX][64];
    if (argc != 3) {
        fprintf(stderr, "usage: reference_pages INCLUDE_FOLDER PAGES_FOLDER\n");
        return 2;
    }
    const int count = list_headers(argv[1], names);
    if (count <= 0) {
        fprintf(stderr, "reference_pages: %s has no headers\n", argv[1]);
        return 1;
    }
    FILE *index = open_page(argv[2], "README.md");
    if (!index)
        return 1;
    fputs("# Reference\n\nThe public headers, one page each. They are made from the headers by "
          "`build/tools/reference_pages "
          "include/qdnn docs/reference`; a test\ncompares them. [guide.md](../guide.md) is the place to "
          "begin.\n\n"
          "| header | what it has |\n|---|---|\n",
          index);
    bool ok = true;
    for (int i = 0; i < count; i++)
        ok = write_page(argv[1], argv[2], names[i], index) && ok;
    return fclose(index) == 0 && ok ? 0 : 1;
}
