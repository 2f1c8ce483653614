/* A launch: blocks on host threads.
 *
 * Clusters (of one block, if the launch has no others) are numbered in the seed's order, and host threads take them in
 * that order; nothing that a kernel can observe depends on the number of threads. If clusters could observe each
 * other's order (atomics that return a value, volatile loads, cooperative launches), one thread runs all of them: a
 * cluster runs until it is done or only waits, then the next, round robin; further ones are started when the running
 * ones cannot make progress. Of several faults, that of the first block in order counts. */
#include "cluster.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode.h"
#include "overlap.h"
#include "ptxvm/exec/hooks.h"
#include "ptxvm/environment.h"

/* ---- Faults ---- */

/* Names of C++ templates may be longer than a message. */
#define NAME   "%.160s%s"
#define CUT(n) (n), strlen(n) > 160 ? "..." : ""

void vm_name_place(const vm_warp *warp, const vm_op *op, int lane, char *text, size_t size)
{
    const vm_block *block = warp->block;
    const pvm_module *ptx = block->launch->kernel->module->ptx;
    const char *kernel = block->launch->kernel->function->name;
    const pvm_inst *inst = op->inst;
    int n = snprintf(text, size, "kernel " NAME ", ", CUT(kernel));
    if (op->function != block->launch->kernel->function && n >= 0 && (size_t)n < size)
        n += snprintf(text + n, size - (size_t)n, "function " NAME ", ", CUT(op->function->name));
    if (n >= 0 && (size_t)n < size)
        n += snprintf(text + n, size - (size_t)n, "line %d", inst->line);
    bool has_file =
        inst->loc_line && inst->loc_file >= 0 && inst->loc_file < ptx->n_files && ptx->files[inst->loc_file];
    if (has_file && n >= 0 && (size_t)n < size)
        n += snprintf(text + n, size - (size_t)n, " (%s:%d)", ptx->files[inst->loc_file], inst->loc_line);
    if (n >= 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, ", block (%u,%u,%u), thread (%u,%u,%u): ", block->ctaid[0],
                 block->ctaid[1], block->ctaid[2], warp->tid[0][lane], warp->tid[1][lane],
                 warp->tid[2][lane]);
}

static void record_fault(vm_run *run, uint64_t order, const ptxvm_finding *finding, const char *text)
{
    pthread_mutex_lock(&run->lock);
    if (order < run->fault.order) {
        run->fault.status = finding->status;
        run->fault.order = order;
        run->fault.finding = *finding;
        snprintf(run->fault.text, sizeof run->fault.text, "%s", text);
        atomic_store_explicit(&run->fault_order, order, memory_order_relaxed);
    }
    pthread_mutex_unlock(&run->lock);
}

static vm_result fault_here(vm_warp *warp, const vm_op *op, int lane, ptxvm_finding *finding,
                            const char *format, va_list args)
{
    char text[sizeof((vm_fault_info *)0)->text];
    vm_name_place(warp, op, lane, text, sizeof text);
    size_t n = strlen(text);
    vsnprintf(text + n, sizeof text - n, format, args);
    vm_check_place(warp, op, lane, finding);
    record_fault(warp->block->worker->run, warp->block->order, finding, text);
    return VM_FAULT;
}

vm_result vm_fault(vm_warp *warp, const vm_op *op, int lane, ptxvm_status status, const char *format, ...)
{
    ptxvm_finding finding = {.kind = status == PTXVM_ERROR_DEADLOCK     ? PTXVM_FINDING_DEADLOCK
                                     : status == PTXVM_ERROR_MISALIGNED ? PTXVM_FINDING_MISALIGNED
                                                                        : PTXVM_FINDING_OTHER,
                             .status = status};
    va_list args;
    va_start(args, format);
    fault_here(warp, op, lane, &finding, format, args);
    va_end(args);
    return VM_FAULT;
}

vm_result vm_fault_access(vm_warp *warp, const vm_op *op, int lane, ptxvm_status status,
                          const ptxvm_finding *detail, const char *format, ...)
{
    ptxvm_finding finding = *detail;
    finding.status = status;
    va_list args;
    va_start(args, format);
    fault_here(warp, op, lane, &finding, format, args);
    va_end(args);
    return VM_FAULT;
}

static void fault_memory(vm_worker *worker, uint64_t order)
{
    char text[256];
    ptxvm_finding finding = {.kind = PTXVM_FINDING_OTHER,
                             .status = vm_worker_shortage(worker, text, sizeof text),
                             .kernel = worker->run->launch->kernel->function->name};
    record_fault(worker->run, order, &finding, text);
}

/* ---- Limits ---- */

static uint64_t limit_of(const vm_launch *launch, ptxvm_limit limit)
{
    return launch->vm->config.limits[limit];
}

bool vm_worker_hold(vm_worker *worker, uint64_t bytes)
{
    uint64_t limit = limit_of(worker->run->launch, PTXVM_LIMIT_BLOCKS);
    if (worker->held > limit || bytes > limit - worker->held) {
        worker->limited = true;
        return false;
    }
    worker->held += bytes;
    return true;
}

ptxvm_status vm_worker_shortage(const vm_worker *worker, char *text, size_t size)
{
    if (!worker->limited) {
        snprintf(text, size, "the host has no memory left for the launch");
        return PTXVM_ERROR_MEMORY;
    }
    snprintf(text, size, "more than %llu %s: the limit is %s",
             (unsigned long long)limit_of(worker->run->launch, PTXVM_LIMIT_BLOCKS),
             ptxvm_limit_what(PTXVM_LIMIT_BLOCKS), ptxvm_limit_name(PTXVM_LIMIT_BLOCKS));
    return PTXVM_ERROR_EXECUTION;
}

/* ---- Output of printf ---- */

typedef struct vm_output {
    struct vm_output *next;
    uint64_t order;
    char *text;
    size_t length, capacity;
} vm_output;

/* Without a place: that would depend on which host thread ran which blocks. */
static void fault_printed(vm_run *run, uint64_t order)
{
    char text[256];
    const vm_launch *launch = run->launch;
    ptxvm_finding finding = {.kind = PTXVM_FINDING_OTHER,
                             .status = PTXVM_ERROR_EXECUTION,
                             .kernel = launch->kernel->function->name};
    snprintf(text, sizeof text, "kernel %.100s: more than %llu %s: the limit is %s", finding.kernel,
             (unsigned long long)limit_of(launch, PTXVM_LIMIT_PRINTF), ptxvm_limit_what(PTXVM_LIMIT_PRINTF),
             ptxvm_limit_name(PTXVM_LIMIT_PRINTF));
    record_fault(run, order, &finding, text);
}

static vm_output *output_of(vm_worker *worker, uint64_t order)
{
    vm_output *output = worker->outputs;
    if (output && output->order == order)
        return output;
    output = calloc(1, sizeof *output);
    if (output) {
        output->order = order;
        output->next = worker->outputs;
        worker->outputs = output;
    }
    return output;
}

static bool append_output(vm_output *output, const char *text, size_t length)
{
    if (output->capacity - output->length < length) {
        size_t capacity = 2 * output->capacity + length;
        char *grown = realloc(output->text, capacity);
        if (!grown)
            return false;
        output->text = grown;
        output->capacity = capacity;
    }
    if (length)
        memcpy(output->text + output->length, text, length);
    output->length += length;
    return true;
}

/* Each host thread stops at the limit by itself; print_outputs then finds the first block, in order, that
 * exceeded it. */
bool vm_print(vm_block *block, const char *text, size_t length)
{
    vm_worker *worker = block->worker;
    uint64_t left = limit_of(block->launch, PTXVM_LIMIT_PRINTF) - worker->printed;
    size_t taken = length < left ? length : (size_t)left;
    vm_output *output = output_of(worker, block->launch->serial ? 0 : block->order - block->rank);
    if (!output || !append_output(output, text, taken)) {
        fault_memory(worker, block->order);
        return false;
    }
    worker->printed += taken;
    if (taken < length)
        fault_printed(worker->run, block->order);
    return taken == length;
}

static int compare_outputs(const void *a, const void *b)
{
    const vm_output *x = *(vm_output *const *)a, *y = *(vm_output *const *)b;
    return (x->order > y->order) - (x->order < y->order);
}

static void print_text(const ptxvm *vm, const char *text, size_t length)
{
    if (vm->config.print)
        vm->config.print(vm->config.print_user, text, length);
    else {
        fwrite(text, 1, length, stdout);
        fflush(stdout);
    }
}

/* In the order of the blocks, up to the one that ended in a fault. */
static void print_outputs(vm_run *run, const vm_worker *workers, int n_workers)
{
    uint64_t left = limit_of(run->launch, PTXVM_LIMIT_PRINTF);
    size_t n = 0;
    for (int i = 0; i < n_workers; i++)
        for (vm_output *o = workers[i].outputs; o; o = o->next)
            n++;
    vm_output **all = n ? malloc(n * sizeof *all) : NULL;
    if (!all)
        return;
    n = 0;
    for (int i = 0; i < n_workers; i++)
        for (vm_output *o = workers[i].outputs; o; o = o->next)
            all[n++] = o;
    qsort(all, n, sizeof *all, compare_outputs);
    for (size_t i = 0; i < n && (run->launch->serial || all[i]->order <= run->fault.order); i++) {
        if (all[i]->length > left)
            fault_printed(run, all[i]->order);
        size_t length = all[i]->length < left ? all[i]->length : (size_t)left;
        print_text(run->launch->vm, all[i]->text, length);
        left -= length;
    }
    free(all);
}

/* ---- Host threads ---- */

static bool worker_begin(vm_worker *worker, vm_run *run)
{
    const vm_kernel *kernel = run->launch->kernel;
    *worker = (vm_worker){.run = run, .pool = vm_pool_create()};
    worker->sites = calloc((size_t)kernel->n_sites + 1, 1);
    worker->free_frames = calloc((size_t)kernel->n_codes + 1, sizeof *worker->free_frames);
    worker->scratch = aligned_alloc(64, (VM_SCRATCH_VALUES + VM_GATHER_VALUES) * (size_t)VM_LANE_BYTES);
    if (worker->scratch)
        memset(worker->scratch, 0, (VM_SCRATCH_VALUES + VM_GATHER_VALUES) * (size_t)VM_LANE_BYTES);
    bool watched;
    worker->watch = vm_watch_new(run->launch, &watched);
    return worker->pool && worker->sites && worker->free_frames && worker->scratch && watched;
}

static void worker_end(vm_worker *worker)
{
    for (vm_cluster *cluster = worker->free_clusters, *next; cluster; cluster = next) {
        next = cluster->next_free;
        vm_cluster_free(cluster);
    }
    for (vm_output *output = worker->outputs, *next; output; output = next) {
        next = output->next;
        free(output->text);
        free(output);
    }
    vm_pool_destroy(worker->pool);
    free(worker->sites);
    free(worker->free_frames);
    free(worker->scratch);
    vm_watch_free(worker->watch);
}

static uint64_t clusters_of(const vm_launch *launch)
{
    return launch->n_blocks / (uint64_t)launch->n_cluster;
}

/* Starts the cluster with this number; null, with the fault recorded: there is no memory for it. */
static vm_cluster *begin_cluster(vm_worker *worker, uint64_t number)
{
    uint64_t order = number * (uint64_t)worker->run->launch->n_cluster;
    vm_cluster *cluster = vm_cluster_new(worker);
    if (cluster && vm_cluster_begin(cluster, order))
        return cluster;
    if (cluster)
        vm_cluster_free(cluster);
    fault_memory(worker, order);
    return NULL;
}

/* Takes clusters until none are left or `steps` instructions have been run. Returns true if there may be
 * more. */
static bool run_clusters(vm_worker *worker, uint64_t steps)
{
    vm_run *run = worker->run;
    while (worker->warp_instructions < steps) {
        uint64_t number = atomic_fetch_add_explicit(&run->next, 1, memory_order_relaxed);
        if (number >= clusters_of(run->launch) ||
            number * (uint64_t)run->launch->n_cluster >
                atomic_load_explicit(&run->fault_order, memory_order_relaxed))
            return false;
        vm_cluster *cluster = begin_cluster(worker, number);
        if (!cluster || !vm_cluster_finish(cluster, vm_cluster_run(cluster, false)))
            return false;
    }
    return true;
}

static void *run_parallel(void *worker)
{
    PTXVM_DEFAULT_ENVIRONMENT();
    run_clusters(worker, UINT64_MAX);
    return NULL;
}

/* ---- One thread for all clusters ---- */

typedef struct residents {
    vm_cluster **clusters;
    uint64_t n, capacity;
    int patience; /* rounds that busy clusters get before others are started next to them */
    vm_wait wait; /* runs while all clusters of the grid have started and only spin */
} residents;

#define PATIENCE 16

/* Whether there are clusters that have not started: kernels may cancel them (vm_cancel_cluster). */
static bool has_next(const vm_worker *worker)
{
    return atomic_load_explicit(&worker->run->next, memory_order_relaxed) < clusters_of(worker->run->launch);
}

/* Only in launches that one host thread runs. */
bool vm_cancel_cluster(vm_block *block, uint32_t first[3])
{
    if (!has_next(block->worker))
        return false;
    uint64_t number = atomic_fetch_add_explicit(&block->worker->run->next, 1, memory_order_relaxed);
    vm_place_in_grid(block->launch, number, 0, first);
    return true;
}

static bool begin_next(vm_worker *worker, residents *r)
{
    if (r->n == r->capacity) {
        uint64_t capacity = 2 * r->capacity + 16;
        vm_cluster **clusters = realloc(r->clusters, capacity * sizeof *clusters);
        if (!clusters) {
            fault_memory(worker, 0);
            return false;
        }
        r->clusters = clusters;
        r->capacity = capacity;
    }
    vm_cluster *cluster =
        begin_cluster(worker, atomic_fetch_add_explicit(&worker->run->next, 1, memory_order_relaxed));
    if (cluster)
        r->clusters[r->n++] = cluster;
    return cluster;
}

/* One turn for each started cluster. Returns false after a fault. */
static bool run_residents(vm_worker *worker, residents *r)
{
    uint64_t kept = 0, waiting = 0;
    bool ok = true, shared = r->n > 1 || has_next(worker);
    for (uint64_t i = 0; i < r->n; i++) {
        vm_cluster *cluster = r->clusters[i];
        vm_block_state state = ok ? vm_cluster_run(cluster, shared) : BLOCK_WAITING;
        waiting += state == BLOCK_WAITING;
        if (state == BLOCK_WAITING || state == BLOCK_BUSY)
            r->clusters[kept++] = cluster;
        else
            ok &= vm_cluster_finish(cluster, state);
    }
    r->patience = kept < r->n ? PATIENCE : waiting == r->n ? 0 : r->patience - 1;
    if (waiting < r->n || has_next(worker))
        r->wait.since = 0;
    else
        ok = ok && !vm_cluster_waited(r->clusters[0], &r->wait);
    r->n = kept;
    return ok;
}

static void wake_residents(residents *r)
{
    for (uint64_t i = 0; i < r->n; i++)
        for (int b = 0; b < r->clusters[i]->n; b++)
            vm_wake(r->clusters[i]->blocks[b]);
}

/* The clusters that begin before the launch in front has ended run as far as they can, one after the other; then it ends. */
static bool run_early(vm_worker *worker, residents *r)
{
    vm_launch *launch = worker->run->launch;
    bool ok = true;
    for (uint64_t left = launch->early ? vm_overlap_early(launch) : 0; ok && left && has_next(worker);
         left--) {
        ok = begin_next(worker, r);
        vm_block_state state = ok ? vm_cluster_run_early(r->clusters[r->n - 1]) : BLOCK_WAITING;
        if (state != BLOCK_WAITING)
            ok = vm_cluster_finish(r->clusters[--r->n], state);
    }
    if (ok && launch->early)
        vm_overlap_land(launch);
    wake_residents(r);
    return ok;
}

/* If none finishes, they may be waiting for blocks that have not started: the number of started clusters is
 * then doubled, since a grid barrier needs all of them. */
static void run_serial(vm_worker *worker)
{
    residents r = {.patience = PATIENCE};
    bool ok = run_early(worker, &r);
    while (ok && (r.n || has_next(worker))) {
        uint64_t wanted = !r.n ? 1 : r.patience <= 0 ? r.n : 0;
        for (; ok && wanted && has_next(worker); wanted--)
            ok = begin_next(worker, &r);
        ok = ok && run_residents(worker, &r);
    }
    for (uint64_t i = 0; i < r.n; i++)
        vm_cluster_free(r.clusters[i]);
    free(r.clusters);
}

/* ---- The launch ---- */

#define MAX_WORKERS 256

static int thread_count(const vm_launch *launch)
{
    long n = launch->vm->config.threads;
    if (n <= 0)
        n = sysconf(_SC_NPROCESSORS_ONLN);
    if (n < 1 || launch->serial || vm_checks_need_one_thread(launch->vm))
        n = 1;
    n = n > MAX_WORKERS ? MAX_WORKERS : n;
    return (uint64_t)n > clusters_of(launch) ? (int)clusters_of(launch) : (int)n;
}

/* The calling thread is the first worker; one that cannot be started is skipped. If there are many blocks,
 * the first ones run alone: if they are so small that starting threads would cost more, all of them do. */
static void run_workers(vm_worker *workers, int n)
{
    enum { SMALL = 4000 }; /* instructions */
    const vm_launch *launch = workers[0].run->launch;
    bool started[MAX_WORKERS] = {false};
    if (launch->serial) {
        run_serial(&workers[0]);
        return;
    }
    if (clusters_of(launch) >= 4 * (uint64_t)n && !run_clusters(&workers[0], SMALL))
        return;
    for (int i = 1; i < n; i++)
        started[i] = worker_begin(&workers[i], workers[0].run) &&
                     pthread_create(&workers[i].thread, NULL, run_parallel, &workers[i]) == 0;
    run_parallel(&workers[0]);
    for (int i = 1; i < n; i++)
        if (started[i])
            pthread_join(workers[i].thread, NULL);
}

/* Adds up the counters. Returns false if there is no memory. */
static bool report_counters(vm_run *run, vm_worker *workers, int n, bool complete)
{
    vm_watch *watches[MAX_WORKERS];
    int n_watches = 0;
    for (int i = 0; i < n; i++)
        if (workers[i].watch && workers[i].watch->counts)
            watches[n_watches++] = workers[i].watch;
    return !n_watches || check_counters_finish(run->launch, watches, n_watches, complete);
}

/* Adds up the counters; returns the status of findings in a launch that completed. */
static ptxvm_status report_watched(vm_run *run, vm_worker *workers, int n)
{
    ptxvm *vm = run->launch->vm;
    if (!report_counters(run, workers, n, true))
        return vm_error(vm, PTXVM_ERROR_MEMORY, "the host has no memory left for the counters");
    if (!vm->checks->status)
        return PTXVM_OK;
    if (vm->checks->total == 1)
        return vm_error(vm, vm->checks->status, "%s", vm->checks->findings[0].message);
    return vm_error(vm, vm->checks->status, "%s (and %llu more)", vm->checks->findings[0].message,
                    (unsigned long long)vm->checks->total - 1);
}

static ptxvm_status report(vm_run *run, vm_worker *workers, int n)
{
    ptxvm *vm = run->launch->vm;
    const vm_kernel *kernel = run->launch->kernel;
    if (run->fault.order != UINT64_MAX) {
        report_counters(run, workers, n, false); /* the fault is reported even without memory for them */
        vm_check_add_fault(vm, &run->fault.finding, run->fault.text);
        return vm_error(vm, run->fault.status, "%s", run->fault.text);
    }
    for (int i = 1; i < n; i++) {
        workers[0].warp_instructions += workers[i].warp_instructions;
        workers[0].thread_instructions += workers[i].thread_instructions;
        for (int site = 0; workers[i].sites && site < kernel->n_sites; site++)
            workers[0].sites[site] |= workers[i].sites[site];
    }
    ptxvm_status status = vm_report_fill(vm, kernel, workers[0].sites, workers[0].warp_instructions,
                                         workers[0].thread_instructions);
    return status ? status : report_watched(run, workers, n);
}

static ptxvm_status run_launch(vm_launch *launch)
{
    vm_run run = {.launch = launch, .lock = PTHREAD_MUTEX_INITIALIZER, .fault = {.order = UINT64_MAX}};
    atomic_init(&run.next, 0);
    atomic_init(&run.fault_order, UINT64_MAX);
    launch->run = &run;
    int n = thread_count(launch);
    vm_worker *workers = aligned_alloc(VM_WORKER_ALIGN, (size_t)n * sizeof *workers);
    if (!workers)
        return vm_error(launch->vm, PTXVM_ERROR_MEMORY, "the host has no memory left for the launch");
    memset(workers, 0, (size_t)n * sizeof *workers);
    ptxvm_status status = PTXVM_ERROR_MEMORY;
    if (worker_begin(&workers[0], &run)) {
        run_workers(workers, n);
        print_outputs(&run, workers, n);
        status = report(&run, workers, n);
    } else
        vm_error(launch->vm, status, "the host has no memory left for the launch");
    for (int i = 0; i < n; i++)
        worker_end(&workers[i]);
    free(workers);
    pthread_mutex_destroy(&run.lock);
    return status;
}

ptxvm_status vm_launch_run(vm_launch *launch)
{
    ptxvm_status status = vm_overlap_begin(launch) ? run_launch(launch)
                                                   : vm_error(launch->vm, PTXVM_ERROR_MEMORY,
                                                              "the host has no memory left for the launch");
    vm_overlap_end(launch);
    return status;
}
