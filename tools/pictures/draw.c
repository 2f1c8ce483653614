/* Draws the picture: rows of 8 bytes, bit 7 of each byte on the left, bits of neighbouring elements in different
 * colours, the element's number on them; scales and minima with their names. Drawn as wide as a page shows it. */
#include "tools/pictures/pictures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CELL = 13,
    BYTE_GAP = 4,
    ROW_BYTES = 8,
    BOX = 20,
    ROW_HEIGHT = 28,
    LEFT = 44,
    TOP = 56,
    LINE = 22,
    LETTER = 7
};

static const char *const colours[] = {"#8ecae6", "#ffd166", "#95d5b2", "#f4a6b0",
                                      "#cdb4db", "#ffb703", "#a8dadc", "#d4e09b"};
enum { COLOURS = sizeof colours / sizeof colours[0] };

static const char *colour_of(bit_use use)
{
    switch (use.kind) {
    case BIT_ELEMENT:
        return colours[use.first % COLOURS];
    case BIT_SCALE:
        return "#b8b8b8";
    case BIT_MINIMUM:
        return "#dedede";
    case BIT_SHARED:
        return "#e8d8c0";
    default:
        return "#ffffff";
    }
}

static bool same_use(bit_use a, bit_use b)
{
    return a.kind == b.kind && a.first == b.first && a.last == b.last;
}

/* ---- Names ---- */

/* What occurs in a picture. */
typedef struct inventory {
    bool kinds[BIT_SHARED + 1];
    bool whole_scale;              /* of all elements: d */
    bool part_scales, part_minima; /* of a part of them */
    int scale_width, minimum_width;
} inventory;

static inventory list_uses(const picture *p, const bit_use *bits, int64_t bytes)
{
    inventory all = {0};
    for (int64_t b = 0; b < 8 * bytes; b++) {
        int width = bits[b].last - bits[b].first + 1;
        bool part = width < p->rows * p->columns;
        all.kinds[bits[b].kind] = true;
        all.whole_scale |= bits[b].kind == BIT_SCALE && !part;
        if (bits[b].kind == BIT_SCALE && part)
            all.part_scales = true, all.scale_width = width;
        if (bits[b].kind == BIT_MINIMUM && part)
            all.part_minima = true, all.minimum_width = width;
    }
    return all;
}

static void name_use(const picture *p, const inventory *all, bit_use use, char *name, size_t size)
{
    int width = use.last - use.first + 1;
    bool whole = width == p->rows * p->columns;
    name[0] = 0;
    if (use.kind == BIT_ELEMENT)
        snprintf(name, size, "%d", use.first);
    else if (use.kind == BIT_SCALE && whole)
        snprintf(name, size, "d");
    else if (use.kind == BIT_MINIMUM && whole)
        snprintf(name, size, all->part_minima ? "dmin" : "m");
    else if (use.kind == BIT_SCALE || use.kind == BIT_MINIMUM)
        snprintf(name, size, "%c%d", use.kind == BIT_SCALE ? 's' : 'm', use.first / width);
}

/* ---- Boxes ---- */

static void draw_box(FILE *out, int x, int y, int width, bit_use use, const char *name)
{
    fprintf(out,
            "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\" stroke=\"#555\" "
            "stroke-width=\"0.6\"/>\n",
            x, y, width, BOX, colour_of(use));
    if (*name && width >= LETTER * (int)strlen(name))
        fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x + width / 2, y + 15,
                name);
    else if (*name) /* upwards */
        fprintf(out,
                "<text transform=\"translate(%d %d) rotate(-90)\" text-anchor=\"middle\" "
                "font-size=\"9.5\">%s</text>\n",
                x + width / 2 + 3, y + BOX / 2, name);
}

/* Adjacent bits of one use form one box. */
static void draw_byte(FILE *out, const picture *p, const inventory *all, const bit_use *bits, int64_t byte)
{
    int left = LEFT + (int)(byte % ROW_BYTES) * (8 * CELL + BYTE_GAP);
    int y = TOP + (int)(byte / ROW_BYTES) * ROW_HEIGHT;
    for (int high = 7; high >= 0;) {
        char name[16];
        int low = high;
        while (low > 0 && same_use(bits[low - 1], bits[high]))
            low--;
        name_use(p, all, bits[high], name, sizeof name);
        draw_box(out, left + (7 - high) * CELL, y, (high - low + 1) * CELL, bits[high], name);
        high = low - 1;
    }
}

/* ---- What stands below ---- */

static void draw_line(FILE *out, int *y, const bit_use *use, const char *name, const char *text)
{
    if (use)
        draw_box(out, LEFT, *y - 15, 4 * CELL, *use, name);
    fprintf(out, "<text x=\"%d\" y=\"%d\">%s</text>\n", use ? LEFT + 5 * CELL : LEFT, *y, text);
    *y += LINE;
}

/* Only what occurs. */
static void draw_legend(FILE *out, const picture *p, const inventory *all, int *y)
{
    const int last = (int)(p->rows * p->columns) - 1;
    const bit_use scale = {BIT_SCALE, 0, last}, minimum = {BIT_MINIMUM, 0, last};
    const bit_use shared = {BIT_SHARED, 0, 0}, unused = {BIT_UNUSED, 0, 0};
    char text[128];
    if (all->part_scales) {
        snprintf(text, sizeof text, "s0, s1, ...: scales of %d elements each%s", all->scale_width,
                 all->whole_scale ? "; d multiplies them" : "");
        draw_line(out, y, &scale, "s0", text);
    } else if (all->kinds[BIT_SCALE])
        draw_line(out, y, &scale, "d", "the scale of the block");
    if (all->part_minima) {
        snprintf(text, sizeof text, "m0, m1, ...: minima of %d elements each; dmin multiplies them",
                 all->minimum_width);
        draw_line(out, y, &minimum, "m0", text);
    } else if (all->kinds[BIT_MINIMUM])
        draw_line(out, y, &minimum, "m", "the minimum of the block, which is added");
    if (all->kinds[BIT_SHARED])
        draw_line(out, y, &shared, "", "digits of several elements");
    if (all->kinds[BIT_UNUSED])
        draw_line(out, y, &unused, "", "no part of a value");
}

/* Outside blocks, scales and zeros are arrays of their own: how codes become values. */
static void draw_rule(FILE *out, const picture *p, int *y)
{
    static const char *const rules[] = {
        [QDNN_ZERO_NONE] = "number(code) * scale of its group",
        [QDNN_ZERO_POINT] = "(code - zero point of its group) * scale of its group",
        [QDNN_ZERO_MINIMUM] = "code * scale of its group + minimum of its group"};
    float values[16];
    char text[256];
    const int count = probe_codes(p, values);
    const bool plain = p->spec.storage == QDNN_DATA_F32 || p->spec.storage == QDNN_DATA_F16 ||
                       p->spec.storage == QDNN_DATA_BF16;
    if (p->spec.block != QDNN_BLOCK_NONE || plain)
        return;
    snprintf(text, sizeof text, "value = %s", rules[p->spec.zero_kind]);
    draw_line(out, y, NULL, "", text);
    if (!count || p->spec.zero_kind != QDNN_ZERO_NONE)
        return;
    size_t used = (size_t)snprintf(text, sizeof text, "number(0), number(1), ... =");
    for (int i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, " %.4g", (double)values[i]);
    draw_line(out, y, NULL, "", text);
}

static void draw_bytes(FILE *out, const picture *p, const inventory *all, const bit_use *bits, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i++) {
        if (i % ROW_BYTES == 0)
            fprintf(out, "<text x=\"8\" y=\"%d\" fill=\"#555\">%lld</text>\n",
                    TOP + 15 + (int)(i / ROW_BYTES) * ROW_HEIGHT, (long long)i);
        draw_byte(out, p, all, bits + 8 * i, i);
    }
}

bool draw_picture(const picture *p, const bit_use *bits, int64_t bytes, const char *path)
{
    const inventory all = list_uses(p, bits, bytes);
    const int rows = (int)((bytes + ROW_BYTES - 1) / ROW_BYTES);
    const int width = LEFT + ROW_BYTES * (8 * CELL + BYTE_GAP) + 4, below = TOP + rows * ROW_HEIGHT + 16;
    char *foot = NULL;
    size_t foot_size = 0;
    int y = below;
    FILE *out = fopen(path, "w"), *lines = open_memstream(&foot, &foot_size);
    if (out && lines) {
        draw_rule(lines, p, &y);
        draw_legend(lines, p, &all, &y);
        fflush(lines);
        fprintf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
                "font-size=\"12\">\n",
                width, y);
        fprintf(out, "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", width, y);
        fprintf(out, "<text x=\"8\" y=\"20\" font-size=\"16\">%s</text>\n", p->title);
        fprintf(out,
                "<text x=\"8\" y=\"40\" fill=\"#555\">each byte with bit 7 on the left; a number is that of "
                "the element</text>\n");
        draw_bytes(out, p, &all, bits, bytes);
        fputs(foot, out);
        fprintf(out, "</svg>\n");
    }
    bool ok = lines && fclose(lines) == 0;
    ok = out && fclose(out) == 0 && ok;
    free(foot);
    return ok;
}
