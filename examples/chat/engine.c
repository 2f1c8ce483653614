/* Runs the programs. */
#include "chat.h"

#include <stdlib.h>
#include <string.h>

/* ---- a crowd: other sequences in the same runs, whose tokens mean nothing. It shows that they change no bit. ---- */

typedef struct crowd {
    int64_t count, *at;                              /* how many tokens each has had */
    int32_t *tokens, *sequences, *positions, *slots; /* of a run, on the host */
    void *device_tokens, *device_sequences, *device_positions, *device_slots; /* and on the device */
} crowd;

enum { CROWD_ROWS = 2 }; /* of a member in a run, at most */

static crowd *crowd_open(qdnnHandle_t handle, int64_t count, int64_t rows)
{
    crowd *c = take(sizeof *c);
    const size_t bytes = (size_t)rows * sizeof(int32_t);
    *c = (crowd){.count = count, .at = take((size_t)count * sizeof *c->at)};
    c->tokens = take(bytes);
    c->sequences = take(bytes);
    c->positions = take(bytes);
    c->slots = take(bytes);
    c->device_tokens = device_take(handle, bytes);
    c->device_sequences = device_take(handle, bytes);
    c->device_positions = device_take(handle, bytes);
    c->device_slots = device_take(handle, bytes);
    return c;
}

static void crowd_close(qdnnHandle_t handle, crowd *c)
{
    if (!c)
        return;
    ok(qdnnFree(handle, c->device_tokens));
    ok(qdnnFree(handle, c->device_sequences));
    ok(qdnnFree(handle, c->device_positions));
    ok(qdnnFree(handle, c->device_slots));
    free(c->tokens);
    free(c->sequences);
    free(c->positions);
    free(c->slots);
    free(c->at);
    free(c);
}

/* The conversation is sequence 0; members of the crowd with odd numbers come before it in a run, the others behind. Returns the rows
 * of those before. */
static int64_t crowd_fill(engine *e, int64_t n, int64_t *all)
{
    crowd *c = e->crowd;
    int64_t row = 0, first = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = pass ? 2 : 1; i <= c->count; i += 2)
            for (int64_t k = 0; k <= i % CROWD_ROWS; k++, row++) {
                int64_t *at = &c->at[i - 1];
                c->tokens[row] = (int32_t)((i * 7919 + *at * 104729) % e->m->s.vocabulary);
                c->sequences[row] = (int32_t)i;
                c->positions[row] = (int32_t)*at;
                *at = (*at + 1) % e->context;
            }
        if (pass)
            break;
        first = row;
        for (int64_t k = 0; k < n; k++, row++) {
            c->sequences[row] = 0;
            c->positions[row] = (int32_t)(e->at + k);
        }
    }
    *all = row;
    for (int64_t i = 0; i < row; i++)
        c->slots[i] = cache_slot(&e->cache, c->sequences[i], c->positions[i]);
    ok(qdnnCopyToDevice(e->handle, c->device_tokens, c->tokens, (size_t)row * sizeof(int32_t)));
    ok(qdnnCopyToDevice(e->handle, c->device_sequences, c->sequences, (size_t)row * sizeof(int32_t)));
    ok(qdnnCopyToDevice(e->handle, c->device_positions, c->positions, (size_t)row * sizeof(int32_t)));
    ok(qdnnCopyToDevice(e->handle, c->device_slots, c->slots, (size_t)row * sizeof(int32_t)));
    ok(qdnnCopyOnDevice(e->handle, (int32_t *)c->device_tokens + first, e->history + e->at,
                        (size_t)n * sizeof(int32_t)));
    return first;
}

/* ---- opening ---- */

static qdnnDataType_t find_data_type(qdnnHandle_t handle, const options *o)
{
    static const qdnnDataType_t types[] = {QDNN_DATA_F32, QDNN_DATA_F16, QDNN_DATA_BF16};
    qdnnDeviceInfo_t info = {.size = sizeof info};
    if (!o->type) {
        ok(qdnnGetDeviceInfo(handle, &info));
        return !o->tensor ? QDNN_DATA_F32 : info.smMajor < 8 ? QDNN_DATA_F16 : QDNN_DATA_BF16;
    }
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(qdnnGetDataTypeName(types[i]), o->type) == 0)
            return types[i];
    fail("'%s' is no type of activations; there are f32, f16 and bf16", o->type);
}

/* Whether tokens are always the likeliest, without settings. */
static bool is_greedy(const qdnnSampling_t *s)
{
    return s->temperature == 0 && s->repetition == 1 && s->frequency == 0 && s->presence == 0;
}

static bool has_penalties(const qdnnSampling_t *s)
{
    return s->repetition != 1 || s->frequency != 0 || s->presence != 0;
}

static void take_rows(engine *e, const options *o, int64_t rows)
{
    const settings *s = &e->m->s;
    const int64_t places = e->context + rows;
    e->history = device_ramp(e->handle, 4, 0, 0, places + 1);
    e->ramp = device_ramp(e->handle, 4, 0, 1, places);
    e->zeros = device_ramp(e->handle, 4, 0, 0, rows);
    e->steps = device_ramp(e->handle, 8, 0, 1, places);
    e->spare = device_take(e->handle, (size_t)e->width * sizeof *e->spare);
    e->seeds = device_ramp(e->handle, 8, o->seed, 0, e->width);
    e->hidden = device_take(e->handle, (size_t)(rows * s->width) * sizeof(float));
    e->logits = device_take(e->handle, (size_t)(e->width * s->vocabulary) * sizeof(float));
    int32_t *slots = take((size_t)e->context * sizeof *slots);
    for (int64_t i = 0; i < e->context; i++)
        slots[i] = cache_slot(&e->cache, 0, i);
    e->slots = device_copy(e->handle, slots, (size_t)e->context * sizeof *slots);
    free(slots);
    qdnnSampling_t *sampling = take((size_t)e->width * sizeof *sampling);
    for (int64_t i = 0; i < e->width; i++)
        sampling[i] = o->sampling;
    e->sampling = device_copy(e->handle, sampling, (size_t)e->width * sizeof *sampling);
    free(sampling);
    if (has_penalties(&o->sampling))
        e->counts = device_ramp(e->handle, 4, 0, 0, s->vocabulary);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

engine *engine_open(qdnnHandle_t handle, const model *m, const options *o, volatile sig_atomic_t *stop)
{
    engine *e = take(sizeof *e);
    const int64_t sizes[BODIES] = {o->width, 8, 32, o->batch}, others = o->others * CROWD_ROWS;
    int64_t rows = 0;
    const qdnnDataType_t type = find_data_type(handle, o);
    const bool greedy = is_greedy(&o->sampling), counts = has_penalties(&o->sampling);
    if (counts && (o->width > 1 || o->others))
        fail("penalties depend on each token before, and on no others: they need --width 1 and --among 0");
    *e = (engine){.handle = handle, .m = m, .context = m->s.context, .width = o->width, .stop = stop};
    e->cache = cache_make(handle, &m->s, o->cache, o->page, e->context, 1 + o->others);
    graph_head(&e->head, handle, m, o, type, e->width, greedy, counts);
    size_t arena = e->head.g.info.arenaBytes;
    for (int i = 0; i < BODIES; i++) {
        const int64_t n = (sizes[i] < o->batch || i == 0 ? sizes[i] : o->batch) + others;
        if (n <= rows)
            continue;
        graph_body(&e->bodies[e->n_bodies], handle, m, &e->cache, o, type, n, counts);
        arena = larger(arena, e->bodies[e->n_bodies++].g.info.arenaBytes);
        rows = n;
    }
    e->batch = o->batch;
    e->arena = device_take(handle, arena);
    take_rows(e, o, rows);
    if (o->others)
        e->crowd = crowd_open(handle, o->others, rows);
    if (o->hash || o->logits)
        e->digest = digest_open(o->logits, m->s.vocabulary);
    return e;
}

void engine_close(engine *e)
{
    void *const memory[] = {e->arena, e->hidden, e->logits,   e->history, e->ramp,  e->zeros,
                            e->steps, e->seeds,  e->sampling, e->counts,  e->spare, e->slots};
    for (int i = 0; i < e->n_bodies; i++)
        graph_free(&e->bodies[i].g);
    graph_free(&e->head.g);
    cache_free(e->handle, &e->cache);
    crowd_close(e->handle, e->crowd);
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        ok(qdnnFree(e->handle, memory[i]));
    free(e);
}

/* ---- running ---- */

/* Tokens e->at to e->at + n - 1 of the history, which are not counted yet; returns their hidden states. */
static const char *run_body(engine *e, int64_t n)
{
    int64_t first = 0, rows = n;
    if (e->crowd)
        first = crowd_fill(e, n, &rows);
    const stage *s = e->bodies;
    while (s->g.rows < rows)
        s++;
    s->g.pointers[s->tokens] = e->crowd ? (int32_t *)e->crowd->device_tokens : e->history + e->at;
    s->g.pointers[s->sequence] = e->crowd ? (int32_t *)e->crowd->device_sequences : e->zeros;
    s->g.pointers[s->position] = e->crowd ? (int32_t *)e->crowd->device_positions : e->ramp + e->at;
    s->g.pointers[s->hidden] = e->hidden;
    if (s->slot >= 0)
        s->g.pointers[s->slot] = e->crowd ? (int32_t *)e->crowd->device_slots : e->slots + e->at;
    if (s->counts >= 0)
        s->g.pointers[s->counts] = e->counts;
    graph_run(e->handle, &s->g, rows, e->arena);
    return (const char *)e->hidden + (size_t)(first * e->m->s.width) * sizeof(float);
}

/* From n hidden states, the first of which is that of token `first`, to the tokens that follow each. */
static void run_head(engine *e, const char *hidden, int64_t n, int64_t first, int32_t *next)
{
    const stage *s = &e->head;
    s->g.pointers[s->hidden] = hidden;
    s->g.pointers[s->logits] = e->logits;
    s->g.pointers[s->next] = next;
    if (s->step >= 0) {
        s->g.pointers[s->step] = e->steps + first;
        s->g.pointers[s->seed] = e->seeds;
        s->g.pointers[s->sampling] = e->sampling;
    }
    if (s->counts >= 0)
        s->g.pointers[s->counts] = e->counts;
    graph_run(e->handle, &s->g, n, e->arena);
}

/* Logits of the tokens of a prompt, which only a digest wants. */
static void digest_prompt(engine *e, const char *hidden, int64_t n)
{
    const size_t row = (size_t)e->m->s.width * sizeof(float);
    for (int64_t i = 0; i < n; i += e->width) {
        const int64_t rows = n - i < e->width ? n - i : e->width;
        run_head(e, hidden + (size_t)i * row, rows, e->at + i, e->spare);
        digest_rows(e->digest, e->handle, e->logits, rows);
    }
}

/* How many of the tokens that are left go into a run. Kernels for many rows compute many, so one that would be half empty leaves the work
 * to those for fewer; but not to those for one or two, which would read all weights for each. */
static int64_t choose_rows(const engine *e, int64_t left)
{
    const int64_t others = e->bodies[0].g.rows - e->width, n = left < e->batch ? left : e->batch;
    int i = 0;
    while (e->bodies[i].g.rows - others < n)
        i++;
    const int64_t rows = e->bodies[i].g.rows - others, fewer = i ? e->bodies[i - 1].g.rows - others : 0;
    return fewer >= 8 && 2 * n <= rows ? fewer : n;
}

bool engine_read(engine *e, const int32_t *tokens, int64_t count)
{
    int32_t *all = take((size_t)(count + 1) * sizeof *all);
    int64_t n = count, done = 0;
    bool pending = e->pending;
    if (pending) {
        all[0] = engine_next(e);
        n++;
    }
    memcpy(all + (pending ? 1 : 0), tokens, (size_t)count * sizeof *tokens);
    if (e->at + n > e->context)
        fail("the conversation is longer than the context of %lld tokens; --context N makes it longer",
             (long long)e->context);
    ok(qdnnCopyToDevice(e->handle, e->history + e->at, all, (size_t)n * sizeof *all));
    e->pending = false;
    while (done < n && !*e->stop) {
        const int64_t rows = choose_rows(e, n - done);
        const char *hidden = run_body(e, rows);
        if (e->digest)
            digest_prompt(e, hidden, rows);
        if (done + rows == n) {
            run_head(e, hidden + (size_t)((rows - 1) * e->m->s.width) * sizeof(float), 1, e->at + rows - 1,
                     e->history + e->at + rows);
            e->pending = true;
        }
        done += rows;
        e->at += rows;
    }
    ok(qdnnSynchronize(e->handle));
    free(all);
    return done == n;
}

int32_t engine_next(engine *e)
{
    int32_t token;
    ok(qdnnCopyToHost(e->handle, &token, e->history + e->at, sizeof token));
    return token;
}

int64_t engine_step(engine *e, const int32_t *draft, int64_t count, int32_t *made)
{
    int64_t right = 0;
    if (count)
        ok(qdnnCopyToDevice(e->handle, e->history + e->at + 1, draft, (size_t)count * sizeof *draft));
    const char *hidden = run_body(e, 1 + count);
    run_head(e, hidden, 1 + count, e->at, e->history + e->at + 1);
    ok(qdnnCopyToHost(e->handle, made, e->history + e->at + 1, (size_t)(1 + count) * sizeof *made));
    while (right < count && made[right] == draft[right])
        right++;
    if (e->digest)
        digest_rows(e->digest, e->handle, e->logits, right + 1);
    e->at += right + 1;
    return right + 1;
}
