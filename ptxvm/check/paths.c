/* Paths: warps that execute every op equally often. Each host thread keeps a list; the lists are joined when the launch is over. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "counters.h"
#include "ptxvm/exec/decode.h"
#include "ptxvm/exec/launch.h"

/* Of one host thread; with fewer than MOST paths in a launch, what is reported does not depend on the number of threads. */
enum { MOST = 256, MOST_WARPS = 1 << 24 };

typedef struct check_path {
    uint64_t warps, first, hash;
    uint64_t *sums; /* by site, of all its warps */
    int joined;     /* the path that it is part of in the end */
    bool merged;
} check_path;

/* path: index in the list, or at the end in the list of the launch. */
typedef struct path_warp {
    uint64_t warp;
    int path;
} path_warp;

typedef struct check_paths {
    check_path *list;
    path_warp *warps;
    uint64_t n_warps, capacity;
    int n, n_sites;
} check_paths;

struct check_paths *check_paths_new(int n_sites)
{
    check_paths *paths = calloc(1, sizeof *paths);
    if (paths && !(paths->list = calloc(MOST, sizeof *paths->list))) {
        free(paths);
        return NULL;
    }
    if (paths)
        paths->n_sites = n_sites;
    return paths;
}

void check_paths_free(check_paths *paths)
{
    if (!paths)
        return;
    for (int i = 0; i < paths->n; i++)
        free(paths->list[i].sums);
    free(paths->list);
    free(paths->warps);
    free(paths);
}

/* ---- One warp ---- */

static uint64_t hash_of(const uint32_t *executed, int n)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int i = 0; i < n; i++)
        hash = (hash ^ executed[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Instructions that one warp of each executes and the other does not. */
static double distance(const check_path *a, const check_path *b, int n_sites)
{
    double sum = 0;
    for (int i = 0; i < n_sites; i++) {
        double d = (double)a->sums[i] / (double)a->warps - (double)b->sums[i] / (double)b->warps;
        sum += d < 0 ? -d : d;
    }
    return sum;
}

/* The path of the list that is most like this one, which may be in it; -1: there is no other. */
static int nearest(const check_path *list, int n, const check_path *to, int n_sites)
{
    int best = -1;
    double least = 0;
    for (int i = 0; i < n; i++) {
        if (&list[i] == to || !list[i].warps)
            continue;
        double d = distance(&list[i], to, n_sites);
        if (best < 0 || d < least) {
            best = i;
            least = d;
        }
    }
    return best;
}

static void add_to(check_path *to, const check_path *from, int n_sites, bool merged)
{
    for (int i = 0; i < n_sites; i++)
        to->sums[i] += from->sums[i];
    to->warps += from->warps;
    to->first = from->first < to->first ? from->first : to->first;
    to->merged |= merged || from->merged;
}

static bool same_path(const check_path *path, uint64_t hash, const uint32_t *executed, int n_sites)
{
    if (path->hash != hash || path->merged)
        return false;
    for (int i = 0; i < n_sites; i++)
        if (path->sums[i] != path->warps * executed[i])
            return false;
    return true;
}

static check_path path_of_warp(const uint32_t *executed, int n_sites, uint64_t warp, uint64_t hash)
{
    check_path path = {
        .warps = 1, .first = warp, .hash = hash, .sums = calloc((size_t)n_sites + 1, sizeof *path.sums)};
    for (int i = 0; path.sums && i < n_sites; i++)
        path.sums[i] = executed[i];
    return path;
}

/* Its index in the list; -1: no memory. */
static int add_warp(check_paths *paths, const uint32_t *executed, uint64_t warp)
{
    const int n_sites = paths->n_sites;
    uint64_t hash = hash_of(executed, n_sites);
    for (int i = paths->n - 1; i >= 0; i--)
        if (same_path(&paths->list[i], hash, executed, n_sites)) {
            check_path *path = &paths->list[i];
            for (int k = 0; k < n_sites; k++)
                path->sums[k] += executed[k];
            path->warps++;
            path->first = warp < path->first ? warp : path->first;
            return i;
        }
    check_path path = path_of_warp(executed, n_sites, warp, hash);
    if (!path.sums)
        return -1;
    if (paths->n < MOST) {
        paths->list[paths->n] = path;
        return paths->n++;
    }
    int to = nearest(paths->list, paths->n, &path, n_sites);
    add_to(&paths->list[to], &path, n_sites, true);
    free(path.sums);
    return to;
}

static bool remember(check_paths *paths, uint64_t warp, int path)
{
    if (paths->n_warps == paths->capacity) {
        uint64_t capacity = 2 * paths->capacity + 256;
        path_warp *warps = realloc(paths->warps, capacity * sizeof *warps);
        if (!warps)
            return false;
        paths->warps = warps;
        paths->capacity = capacity;
    }
    paths->warps[paths->n_warps++] = (path_warp){warp, path};
    return true;
}

bool check_paths_add(vm_block *block)
{
    check_paths *paths = block->watch->paths;
    for (int w = 0; w < block->n_warps; w++) {
        uint64_t warp = block->linear_index * (uint64_t)block->n_warps + (uint64_t)w;
        int path = add_warp(paths, block->executed + (size_t)w * (size_t)paths->n_sites, warp);
        if (path < 0 || (warp < MOST_WARPS && !remember(paths, warp, path)))
            return false;
    }
    return true;
}

/* ---- All of them ---- */

typedef struct joiner {
    check_path *list; /* of all host threads */
    int n, n_sites;
} joiner;

static bool identical(const check_path *a, const check_path *b, int n_sites)
{
    return a->hash == b->hash && !a->merged && !b->merged && distance(a, b, n_sites) == 0;
}

/* What is left of path i: others may have been merged with it. */
static int final_path(const joiner *j, int i)
{
    while (j->list[i].joined >= 0)
        i = j->list[i].joined;
    return i;
}

static void merge_into(joiner *j, int from, int to, bool merged)
{
    add_to(&j->list[to], &j->list[from], j->n_sites, merged);
    j->list[from].warps = 0;
    j->list[from].joined = to;
}

static int count_paths(const joiner *j)
{
    int n = 0;
    for (int i = 0; i < j->n; i++)
        n += j->list[i].warps > 0;
    return n;
}

/* The last of the paths with the fewest warps. */
static int rarest(const joiner *j)
{
    int best = -1;
    for (int i = 0; i < j->n; i++)
        if (j->list[i].warps &&
            (best < 0 || j->list[i].warps < j->list[best].warps ||
             (j->list[i].warps == j->list[best].warps && j->list[i].first > j->list[best].first)))
            best = i;
    return best;
}

static void join(joiner *j)
{
    for (int i = 0; i < j->n; i++)
        for (int k = 0; k < i && j->list[i].warps; k++)
            if (j->list[k].warps && identical(&j->list[i], &j->list[k], j->n_sites))
                merge_into(j, i, k, false);
    while (count_paths(j) > PTXVM_PATHS) {
        int from = rarest(j);
        merge_into(j, from, nearest(j->list, j->n, &j->list[from], j->n_sites), true);
    }
}

/* The paths that are left, in the order of their first warps; `place` is the place of each. */
static int sort_paths(const joiner *j, int order[PTXVM_PATHS], int *place)
{
    int n = 0;
    for (int i = 0; i < j->n; i++) {
        if (!j->list[i].warps)
            continue;
        int at = n++;
        for (; at > 0 && j->list[order[at - 1]].first > j->list[i].first; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    for (int i = 0; i < n; i++)
        place[order[i]] = i;
    return n;
}

static const uint64_t *lines_of(check_sums *sums, const check_path *path)
{
    const vm_kernel *kernel = sums->kernel;
    uint64_t *lines = vm_pool_alloc(sums->pool, (size_t)sums->counters.n_lines * sizeof *lines);
    for (int site = 0; lines && site < kernel->n_sites; site++)
        lines[kernel->sites[site]->inst->line] += path->sums[site];
    return lines;
}

static bool report_paths(check_sums *sums, const joiner *j, const int *order, int n)
{
    ptxvm_path *paths = vm_pool_alloc(sums->pool, ((size_t)n + 1) * sizeof *paths);
    for (int i = 0; paths && i < n; i++) {
        const check_path *p = &j->list[order[i]];
        paths[i] = (ptxvm_path){
            .warps = p->warps, .first = p->first, .merged = p->merged, .lines = lines_of(sums, p)};
        if (!paths[i].lines)
            return false;
    }
    sums->counters.paths = paths;
    sums->counters.n_paths = n;
    return paths != NULL;
}

static bool report_warps(check_sums *sums, const vm_launch *launch, const joiner *j, const int *place,
                         vm_watch *const *watches, int n)
{
    uint64_t warps = launch->n_blocks * (uint64_t)launch->n_warps;
    if (warps > MOST_WARPS)
        return true;
    uint8_t *path_of = vm_pool_alloc(sums->pool, warps + 1);
    if (!path_of)
        return false;
    for (int i = 0, base = 0; i < n; base += watches[i++]->paths->n)
        for (uint64_t w = 0; w < watches[i]->paths->n_warps; w++) {
            const path_warp *of = &watches[i]->paths->warps[w];
            path_of[of->warp] = (uint8_t)place[final_path(j, base + of->path)];
        }
    sums->counters.path_of = path_of;
    sums->counters.n_warps = warps;
    return true;
}

/* The sums of the lists are changed: the host threads are done with them. */
bool check_paths_finish(check_sums *sums, const vm_launch *launch, vm_watch *const *watches, int n)
{
    joiner j = {.n_sites = launch->kernel->n_sites};
    int order[PTXVM_PATHS], all = 0;
    for (int i = 0; i < n; i++) {
        if (watches[i]->out_of_memory)
            return false;
        all += watches[i]->paths->n;
    }
    j.list = malloc(((size_t)all + 1) * sizeof *j.list);
    int *place = calloc((size_t)all + 1, sizeof *place);
    bool ok = j.list && place;
    for (int i = 0; ok && i < n; i++)
        for (int k = 0; k < watches[i]->paths->n; k++) {
            j.list[j.n] = watches[i]->paths->list[k];
            j.list[j.n++].joined = -1;
        }
    if (ok) {
        join(&j);
        int left = sort_paths(&j, order, place);
        ok = report_paths(sums, &j, order, left) && report_warps(sums, launch, &j, place, watches, n);
    }
    free(j.list);
    free(place);
    return ok;
}
