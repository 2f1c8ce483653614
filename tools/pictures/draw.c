/* Draws the picture: rows of 16 bytes, bit 7 of each byte on the left, bits of neighbouring elements in
 * different colours, the element's number on its lowest bit. */
#include "tools/pictures/pictures.h"

#include <stdio.h>

enum { CELL = 11, BYTE_GAP = 4, ROW_BYTES = 16, ROW_HEIGHT = 30, LEFT = 44, TOP = 52, LEGEND = 26 };

static const char *const colours[] = {"#8ecae6", "#ffd166", "#95d5b2", "#f4a6b0",
                                      "#cdb4db", "#ffb703", "#a8dadc", "#d4e09b"};
enum { COLOURS = sizeof colours / sizeof colours[0] };

static const char *colour_of(int element)
{
    return element == BIT_SHARED ? "#b8b8b8" : element == BIT_UNUSED ? "#ffffff" : colours[element % COLOURS];
}

static int byte_width(void)
{
    return 8 * CELL + BYTE_GAP;
}

/* Adjacent bits of one element form one box. */
static void draw_run(FILE *out, int x, int y, int cells, int element)
{
    fprintf(out,
            "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"16\" fill=\"%s\" stroke=\"#555\" "
            "stroke-width=\"0.6\"/>\n",
            x, y, cells * CELL, colour_of(element));
    if (element >= 0 && cells > 1 + (element > 9) + (element > 99) - 1)
        fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%d</text>\n", x + cells * CELL / 2,
                y + 12, element);
}

static void draw_byte(FILE *out, const int *bits, int64_t byte)
{
    int x = LEFT + (int)(byte % ROW_BYTES) * byte_width(), y = TOP + (int)(byte / ROW_BYTES) * ROW_HEIGHT;
    for (int high = 7; high >= 0;) {
        int low = high;
        while (low > 0 && bits[low - 1] == bits[high])
            low--;
        draw_run(out, x + (7 - high) * CELL, y, high - low + 1, bits[high]);
        high = low - 1;
    }
}

static void draw_legend(FILE *out, int y)
{
    fprintf(out,
            "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"12\" fill=\"%s\" stroke=\"#555\" "
            "stroke-width=\"0.6\"/>\n",
            LEFT, y, 2 * CELL, colour_of(BIT_SHARED));
    fprintf(out, "<text x=\"%d\" y=\"%d\">shared by several elements</text>\n", LEFT + 3 * CELL, y + 10);
    fprintf(out,
            "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"12\" fill=\"%s\" stroke=\"#555\" "
            "stroke-width=\"0.6\"/>\n",
            LEFT + 230, y, 2 * CELL, colour_of(BIT_UNUSED));
    fprintf(out, "<text x=\"%d\" y=\"%d\">no part of a value</text>\n", LEFT + 230 + 3 * CELL, y + 10);
}

bool draw_picture(const picture *p, const int *bits, int64_t bytes, const char *path)
{
    int64_t rows = (bytes + ROW_BYTES - 1) / ROW_BYTES, across = bytes < ROW_BYTES ? bytes : ROW_BYTES;
    int width = LEFT + (int)across * byte_width() + 16, height = TOP + (int)rows * ROW_HEIGHT + LEGEND;
    FILE *out = fopen(path, "w");
    if (!out)
        return false;
    if (width < 560)
        width = 560;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
            "font-size=\"9\">\n",
            width, height);
    fprintf(out, "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", width, height);
    fprintf(out, "<text x=\"8\" y=\"20\" font-size=\"14\">%s</text>\n", p->title);
    fprintf(out, "<text x=\"8\" y=\"36\" fill=\"#555\">each byte with bit 7 on the left; a number is that of "
                 "the element</text>\n");
    for (int64_t i = 0; i < bytes; i++) {
        if (i % ROW_BYTES == 0)
            fprintf(out, "<text x=\"8\" y=\"%d\" fill=\"#555\">%lld</text>\n",
                    TOP + 12 + (int)(i / ROW_BYTES) * ROW_HEIGHT, (long long)i);
        draw_byte(out, bits + 8 * i, i);
    }
    draw_legend(out, height - LEGEND + 4);
    fprintf(out, "</svg>\n");
    return fclose(out) == 0;
}
