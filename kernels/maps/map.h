/* Maps: who holds what. A map takes coordinates (lane, register) to others (n, k): which element of a fragment a
 * register holds, where a code lies in prepacked weights, which lane of a sum a thread has.
 *
 * Numbers are written in mixed radix: every input is a list of digits, the lowest first, and a digit is worth a step of
 * an output. So TQ1_0's base 3, blocks of 34 bytes and K = 576 are as good as powers of two. The text of a map lists the
 * digits of each input as SIZE OUTPUT*STEP (a step of 1 may be left out):
 *
 *     lane 4k*2 8n; half 2k; register 2n*8 2k*8
 *
 * The lane's lowest digit has four values and is worth 2 of k, its next one eight, worth 1 of n. An output is the sum of
 * what its digits are worth. A term with ^ does not take the digit away and is not added, but combined by exclusive or:
 * a swizzle.
 *
 *     line ^8place 8row; piece 8place          place = piece ^ line % 8
 *
 * Maps are computed when a kernel is emitted, or in tests; nothing here emits anything. */
#ifndef QDNN_KERNELS_MAP_H
#define QDNN_KERNELS_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAP_AXES_MAX = 8, MAP_DIGITS_MAX = 32, MAP_NAME_MAX = 12 };

typedef struct map_axes {
    int count;
    char name[MAP_AXES_MAX][MAP_NAME_MAX];
} map_axes;

/* Digit x[from] / below % size of an input, worth `step` of an output. */
typedef struct map_digit {
    int from, to;
    unsigned below, size, step;
    bool flips; /* combined by exclusive or, not added */
} map_digit;

typedef struct map {
    map_axes in, out;
    int count;
    map_digit digit[MAP_DIGITS_MAX];
} map;

/* Coordinates, in the order of the axes. */
typedef struct map_point {
    unsigned at[MAP_AXES_MAX];
} map_point;

/* ---- Making ---- */

/* From text; false: `error` says what is wrong with it. map_of aborts instead: for texts that are part of the source. */
bool map_parse(const char *text, map *m, char *error, size_t error_size);
map map_of(const char *text);

/* Appends the next digit of an input. Digits of size 1 are left out; axes that are new are appended. */
void map_add(map *m, const char *in, unsigned size, const char *out, unsigned step);
void map_flip(map *m, const char *in, unsigned size, const char *out, unsigned step);

/* First one map, then the other, whose inputs are outputs of the first. False where the result is no map: where digits of
 * one would have to be cut at places that do not divide them. */
bool map_compose(const map *first, const map *then, map *result);
/* From outputs to inputs. False: the map has no inverse of this form. */
bool map_invert(const map *m, map *result);

/* ---- Asking ---- */

int map_axis(const map_axes *axes, const char *name); /* -1: there is none of that name */
/* How many values an input has, and how many values below the largest an output may have. */
unsigned map_extent(const map *m, int in);
unsigned map_reach(const map *m, int out);

map_point map_at(const map *m, const map_point *in);
/* One output of a map with one or two inputs, which come in the order of the text. */
unsigned map_value(const map *m, const char *out, unsigned first, unsigned second);

/* Whether different inputs have different outputs; and whether the outputs are all points below their reach, too. */
bool map_is_injective(const map *m);
bool map_is_bijection(const map *m);

/* "n = lane / 4 + 8 (register % 2)", a line for each output. */
void map_print(const map *m, char *text, size_t size);

/* ---- Memory, for maps whose output "byte" is an address: what one access of a warp costs, with the thread as input
 * "lane" and all other inputs as in `at` ---- */

enum { MAP_WARP = 32, MAP_SECTOR = 32 };

/* Sectors of 32 bytes that loads of `bytes` bytes per lane touch. */
unsigned map_sectors(const map *m, const map_point *at, unsigned bytes);
/* How often the banks of shared memory have to be asked: 1 for words, 2 and 4 for 8 and 16 bytes, if there are no
 * conflicts. */
unsigned map_wavefronts(const map *m, const map_point *at, unsigned bytes);

/* ---- The maps that have names (maps.def), for `ptxgen --map` and tests; null past the end ---- */

typedef struct named_map {
    const char *name, *text, *what;
} named_map;
const named_map *map_named(int index);
map map_find(const char *name); /* aborts if there is none */

#endif
