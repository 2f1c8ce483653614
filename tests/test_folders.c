/* Folders include each other in one direction only: what a folder is built on can be read, and changed, without it. */
#include "test.h"

#include <dirent.h>
#include <string.h>
#include <unistd.h>

enum { FOLDERS_MAX = 128, PATH_CHARS = 512 };

typedef struct folders {
    int count, files, includes;
    char name[FOLDERS_MAX][64];
    char example[FOLDERS_MAX][FOLDERS_MAX]
                [2 * PATH_CHARS]; /* of an include of one in the other; "": there is none */
} folders;

static int number_of(folders *f, const char *name)
{
    for (int i = 0; i < f->count; i++)
        if (strcmp(f->name[i], name) == 0)
            return i;
    if (f->count == FOLDERS_MAX || strlen(name) >= sizeof f->name[0]) {
        FAIL("there are more folders than %d, or a longer name than %s", FOLDERS_MAX, name);
        return 0;
    }
    strcpy(f->name[f->count], name);
    return f->count++;
}

static void add(folders *f, const char *from, const char *to, const char *example)
{
    const int a = number_of(f, from), b = number_of(f, to);
    f->includes++;
    if (a != b && !f->example[a][b][0])
        snprintf(f->example[a][b], sizeof f->example[a][b], "%s", example);
}

/* ---- Cycles ---- */

/* Walks on from the last folder of a path, along folders that were not left yet. True if it comes back to one of the path, which then
 * is a cycle from its first folder on. */
static bool goes_round(const folders *f, int *path, int *length, bool *was_left)
{
    const int from = path[*length - 1];
    for (int to = 0; to < f->count; to++) {
        if (!f->example[from][to][0] || was_left[to])
            continue;
        for (int i = 0; i < *length; i++)
            if (path[i] == to) {
                memmove(path, path + i, (size_t)(*length - i) * sizeof *path);
                *length -= i;
                return true;
            }
        path[(*length)++] = to;
        if (goes_round(f, path, length, was_left))
            return true;
    }
    was_left[from] = true;
    (*length)--;
    return false;
}

/* The number of folders in a cycle, and these; 0: there is none. */
static int find_cycle(const folders *f, int path[FOLDERS_MAX])
{
    bool was_left[FOLDERS_MAX] = {false};
    for (int i = 0; i < f->count; i++) {
        int length = 1;
        path[0] = i;
        if (!was_left[i] && goes_round(f, path, &length, was_left))
            return length;
    }
    return 0;
}

TEST_CASE(Folders, CyclesAreFound)
{
    static folders f;
    int path[FOLDERS_MAX];
    add(&f, "a", "b", "a/1.c -> b/1.h");
    add(&f, "a", "c", "a/1.c -> c/1.h");
    add(&f, "b", "d", "b/1.h -> d/1.h");
    add(&f, "c", "d", "c/1.h -> d/1.h");
    CHECK_EQ_I64(find_cycle(&f, path), 0);
    add(&f, "d", "c", "d/1.c -> c/2.h");
    CHECK_EQ_I64(find_cycle(&f, path), 2);
    add(&f, "d", "b", "d/2.c -> b/1.h");
    CHECK_EQ_I64(find_cycle(&f, path), 2);
    CHECK_EQ_I64(f.includes, 6);
}

/* ---- Sources ---- */

static const char *folder_of(const char *path, char folder[PATH_CHARS])
{
    snprintf(folder, PATH_CHARS, "%s", path);
    char *slash = strrchr(folder, '/');
    *(slash ? slash : folder) = 0;
    return folder;
}

/* Removes "./" and "x/../". */
static void simplify(char *path)
{
    for (char *dots; (dots = strstr(path, "/../"));) {
        char *start = dots;
        while (start > path && start[-1] != '/')
            start--;
        memmove(start, dots + 4, strlen(dots + 4) + 1);
    }
}

static bool exists(const char *path)
{
    char whole[2 * PATH_CHARS];
    snprintf(whole, sizeof whole, "%s/%s", QDNN_SOURCE_DIR, path);
    return access(whole, R_OK) == 0;
}

/* A name in quotes is looked for beside the file, then from the root. */
static void read_include(folders *f, const char *file, const char *name)
{
    char from[PATH_CHARS], to[PATH_CHARS], folder[PATH_CHARS], example[2 * PATH_CHARS];
    folder_of(file, from);
    snprintf(to, sizeof to, "%.200s/%.200s", from, name);
    simplify(to);
    if (!exists(to))
        snprintf(to, sizeof to, "%s", name);
    if (!exists(to)) /* public headers */
        return;
    snprintf(example, sizeof example, "%.400s includes %.400s", file, to);
    add(f, from, folder_of(to, folder), example);
}

static void read_file(folders *f, const char *path)
{
    char whole[2 * PATH_CHARS], line[1024], name[256];
    snprintf(whole, sizeof whole, "%s/%s", QDNN_SOURCE_DIR, path);
    FILE *file = fopen(whole, "r");
    if (!CHECK(file != NULL))
        return;
    f->files++;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, " # include \"%255[^\"]\"", name) == 1)
            read_include(f, path, name);
    fclose(file);
}

static void read_folder(folders *f, const char *path)
{
    char whole[2 * PATH_CHARS];
    snprintf(whole, sizeof whole, "%s/%s", QDNN_SOURCE_DIR, path);
    DIR *folder = opendir(whole);
    if (!CHECK(folder != NULL))
        return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char inside[PATH_CHARS];
        const char *dot = strrchr(entry->d_name, '.');
        snprintf(inside, sizeof inside, "%.200s/%.255s", path, entry->d_name);
        if (!dot)
            read_folder(f, inside);
        else if (strcmp(dot, ".c") == 0 || strcmp(dot, ".h") == 0 || strcmp(dot, ".def") == 0)
            read_file(f, inside);
    }
    closedir(folder);
}

TEST_CASE(Folders, IncludeEachOtherInOneDirection)
{
    static const char *const roots[] = {"base",     "boards",  "clock",  "codebooks", "driver", "files",
                                        "host_ref", "kernels", "ptxgen", "ptxvm",     "tools"};
    static folders f;
    int path[FOLDERS_MAX];
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++)
        read_folder(&f, roots[i]);
    CHECK(f.files > 500);
    CHECK(f.includes > 1000);
    const int length = find_cycle(&f, path);
    for (int i = 0; i < length; i++)
        FAIL("folders include each other in a circle: %s", f.example[path[i]][path[(i + 1) % length]]);
}
