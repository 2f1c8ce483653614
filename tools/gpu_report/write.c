/* Writes the report as Markdown, as JSON for programs, and as a picture. */
#include "tools/gpu_report/report.h"

#include <stdio.h>
#include <string.h>

#include "tools/tool.h"

/* ---- Figures of a result ---- */

/* The bandwidth of the copy, the first result: what the memory achieves in practice. */
static double copy_rate(const report *r)
{
    return r->results[0].seconds > 0 ? r->results[0].bytes / r->results[0].seconds : 0;
}

/* How close a call is to ideal, 1 being perfect: the rate of its minimum bytes relative to the copy's rate;
 * on ptxvm, the minimum number of sectors relative to those accessed. */
static double share(const report *r, const result *one)
{
    if (one->why[0])
        return 0;
    if (r->counted)
        return one->counts.sectors ? one->bytes / 32 / (double)one->counts.sectors : 0;
    return copy_rate(r) > 0 ? one->bytes / one->seconds / copy_rate(r) : 0;
}

int report_wrong(const report *r)
{
    int count = 0;
    for (int i = 0; i < r->n; i++)
        count += r->results[i].is_wrong;
    return count;
}

/* ---- Markdown ---- */

static void write_facts(const report *r, tool_text *out)
{
    const qdnnDeviceInfo_t *d = &r->device;
    tool_printf(out, "# qdnn on %s\n\n", d->name);
    if (r->counted)
        tool_printf(
            out, "**No GPU**: this was run on ptxvm, the interpreter. Figures are counters, not times.\n\n");
    tool_printf(out, "| | |\n|---|---|\n| qdnn | %d.%d.%d |\n", QDNN_MAJOR, QDNN_MINOR, QDNN_PATCH);
    tool_printf(out, "| compute capability | %d.%d, kernels for %s |\n| driver | CUDA %d.%d |\n", d->smMajor,
                d->smMinor, d->target, d->driverVersion / 1000, d->driverVersion % 1000 / 10);
    tool_printf(out, "| multiprocessors | %d |\n| memory | %.1f GiB, %.0f GB/s by its clock |\n\n",
                d->multiprocessors, (double)d->memoryBytes / (1 << 30), d->memoryBytesPerSecond * 1e-9);
}

static void write_tests(const report *r, tool_text *out)
{
    tool_text tests = {0};
    if (!r->tests || tool_read(r->tests, &tests) != TOOL_OK)
        return;
    tool_printf(out, "## Tests\n\n```\n%.*s```\n\n", (int)tests.size, (const char *)tests.data);
    tool_text_free(&tests);
}

/* The rate of the minimum bytes in percent of the memory's peak bandwidth. */
static const char *peak_text(const report *r, const result *one, char text[16])
{
    const double peak = r->device.memoryBytesPerSecond;
    snprintf(text, 16, peak > 0 ? "%.0f%%" : "?", peak > 0 ? one->bytes / one->seconds / peak * 100 : 0);
    return text;
}

static void write_row(const report *r, const result *one, tool_text *out)
{
    char peak[16];
    tool_printf(out, "| %s | %s | %s | %lld |", one->operation, one->format, one->how, (long long)one->rows);
    if (one->is_wrong)
        tool_printf(out, " <b style=\"color:red\">\xF0\x9F\x94\xB4 %s</b> | |%s |\n", one->why,
                    r->counted ? "" : " |");
    else if (one->why[0])
        tool_printf(out, " %s | |%s |\n", one->why, r->counted ? "" : " |");
    else if (r->counted)
        tool_printf(out, " %llu | %llu | %.2f |\n", one->counts.instructions, one->counts.sectors,
                    share(r, one));
    else
        tool_printf(out, " %.1f | %.0f | %s | %.2f |\n", one->seconds * 1e6, one->bytes / one->seconds * 1e-9,
                    peak_text(r, one, peak), share(r, one));
}

static void write_markdown(const report *r, tool_text *out)
{
    write_facts(r, out);
    write_tests(r, out);
    if (report_wrong(r))
        tool_printf(out,
                    "<b style=\"color:red\">\xF0\x9F\x94\xB4 %d of %d calls are wrong</b>: they are not "
                    "measured.\n\n",
                    report_wrong(r), r->n);
    else
        tool_printf(out, "Each call was compared with host_ref before it was measured: none is wrong.\n\n");
    tool_printf(out, "## Cost\n\nMatrices of %lld x %lld, f16 beside the weights. ", (long long)r->side,
                (long long)r->side);
    tool_printf(out, r->counted
                         ? "The last column is the least sectors over those asked for.\n\n"
                         : "The last column is the rate of the least bytes over that of a plain copy.\n\n");
    tool_printf(
        out,
        "![shares](shares.svg)\n\n| operation | format | by | rows |%s\n|---|---|---|---|---|---|---|%s\n",
        r->counted ? " warp instructions | sectors | share |" : " us | GB/s | of peak | share of a copy |",
        r->counted ? "" : "---|");
    for (int i = 0; i < r->n; i++)
        write_row(r, &r->results[i], out);
}

/* ---- JSON ---- */

static void write_json(const report *r, tool_text *out)
{
    const qdnnDeviceInfo_t *d = &r->device;
    tool_printf(out, "{\"device\": ");
    tool_quote(out, d->name);
    tool_printf(
        out,
        ", \"gpu\": %s, \"sm\": %d, \"driver\": %d, \"multiprocessors\": %d,\n \"memory_bytes\": %llu, "
        "\"memory_bytes_per_second\": %.6g, \"side\": %lld,\n \"results\": [",
        r->counted ? "false" : "true", d->smMajor * 10 + d->smMinor, d->driverVersion, d->multiprocessors,
        (unsigned long long)d->memoryBytes, d->memoryBytesPerSecond, (long long)r->side);
    for (int i = 0; i < r->n; i++) {
        const result *one = &r->results[i];
        tool_printf(out,
                    "%s\n  {\"operation\": \"%s\", \"format\": \"%s\", \"by\": \"%s\", \"rows\": %lld, "
                    "\"bytes\": %.0f, ",
                    i ? "," : "", one->operation, one->format, one->how, (long long)one->rows, one->bytes);
        if (one->why[0]) {
            tool_printf(out, "\"wrong\": %s, \"why\": ", one->is_wrong ? "true" : "false");
            tool_quote(out, one->why);
        } else if (r->counted)
            tool_printf(out, "\"instructions\": %llu, \"sectors\": %llu", one->counts.instructions,
                        one->counts.sectors);
        else
            tool_printf(out, "\"seconds\": %.9g", one->seconds);
        tool_printf(out, "}");
    }
    tool_printf(out, "\n ]}\n");
}

/* ---- The picture: one bar per result, with a line at the ideal ---- */

enum { BAR = 14, LEFT = 260, WIDTH = 420, TOP = 30 };

static void write_picture(const report *r, tool_text *out)
{
    tool_printf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
        "font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
        "<text x=\"10\" y=\"18\" font-size=\"13\">%s: %s</text>\n",
        LEFT + WIDTH + 90, TOP + BAR * r->n + 20, r->device.target,
        r->counted ? "least sectors over those asked for (counted on ptxvm, no GPU)"
                   : "rate of the least bytes over that of a plain copy");
    for (int i = 0; i < r->n; i++) {
        const result *one = &r->results[i];
        double part = share(r, one) < 1.2 ? share(r, one) : 1.2;
        int y = TOP + BAR * i;
        tool_printf(out,
                    "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s %s %s, %lld row%s</text>"
                    "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>"
                    "<text x=\"%.1f\" y=\"%d\"%s>%s%.2f</text>\n",
                    LEFT - 6, y + 10, one->operation, one->format, one->how, (long long)one->rows,
                    one->rows == 1 ? "" : "s", LEFT, y + 1, part * WIDTH / 1.2, BAR - 3,
                    one->why[0] ? "#cccccc" : "#4477aa", LEFT + part * WIDTH / 1.2 + 4, y + 10,
                    one->is_wrong ? " fill=\"red\" font-weight=\"bold\"" : "",
                    one->is_wrong ? "wrong "
                    : one->why[0] ? "not measured "
                                  : "",
                    share(r, one));
    }
    double one_at = LEFT + WIDTH / 1.2;
    tool_printf(out, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#cc3311\"/>\n</svg>\n",
                one_at, TOP, one_at, TOP + BAR * r->n);
}

bool report_write(const report *r, const char *folder)
{
    static const struct {
        const char *name;
        void (*write)(const report *r, tool_text *out);
    } files[] = {{"report.md", write_markdown}, {"report.json", write_json}, {"shares.svg", write_picture}};
    bool ok = true;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[1024];
        tool_text text = {0};
        snprintf(path, sizeof path, "%s/%s", folder, files[i].name);
        files[i].write(r, &text);
        ok = tool_write(path, &text) == TOOL_OK && ok;
        tool_text_free(&text);
    }
    return ok;
}
