#include "bench/clock/picture.h"

#include <math.h>
#include <stdio.h>

enum { WIDTH = 900, LEFT = 330, PLOT = 540, TOP = 50, ROW = 18, BAR = 10 };

static double x_of(double share)
{
    return LEFT + PLOT * fmin(share, 1);
}

static void draw_bar(FILE *out, const time_bar *b, int row)
{
    const int y = TOP + ROW * row;
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", LEFT - 8, y + BAR, b->name);
    fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"#bbccee\"/>\n", LEFT, y,
            x_of(b->low) - LEFT, BAR);
    fprintf(out,
            "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"#4477aa\"><title>%.0f to %.0f%%, "
            "modelled</title></rect>\n",
            x_of(b->low), y, fmax(1, x_of(b->high) - x_of(b->low)), BAR, 100 * b->low, 100 * b->high);
    fprintf(out, "<path d=\"M%.1f %d v%d\" stroke=\"#cc3311\" stroke-width=\"2\"/>\n", x_of(b->plain), y - 2,
            BAR + 4);
    fprintf(out, "<path d=\"M%.1f %d v%d\" stroke=\"#228833\" stroke-width=\"2\"/>\n", x_of(b->issue), y - 2,
            BAR + 4);
}

bool time_picture(const char *path, const time_bar *bars, int n)
{
    FILE *out = n ? fopen(path, "w") : NULL;
    if (!out)
        return false;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
            "font-size=\"11\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
            "<text x=\"10\" y=\"18\" font-size=\"13\">products, percent of the DRAM roofline: modelled, "
            "nothing was run on a GPU</text>\n"
            "<text x=\"10\" y=\"34\">dark: the interval; <tspan fill=\"#cc3311\">red: a plain read of the "
            "same bytes</tspan>; "
            "<tspan fill=\"#228833\">green: if every scheduler issued in every cycle</tspan></text>\n",
            WIDTH, TOP + ROW * n + 24);
    for (int percent = 0; percent <= 100; percent += 20)
        fprintf(out,
                "<path d=\"M%.1f %d v%d\" stroke=\"#dddddd\"/><text x=\"%.1f\" y=\"%d\" "
                "text-anchor=\"middle\">%d%%</text>\n",
                x_of(percent / 100.0), TOP - 4, ROW * n, x_of(percent / 100.0), TOP + ROW * n + 12, percent);
    for (int i = 0; i < n; i++)
        draw_bar(out, &bars[i], i);
    fprintf(out, "</svg>\n");
    return fclose(out) == 0;
}
