/* The progress line: percentage, speed and remaining time. */
#include "tools/qdnn/tool.h"

#include <time.h>
#include <unistd.h>

#include "base/escape.h"

enum { WIDTH = 24, NAME_SHOWN = 60 };

double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

const char *size_text(uint64_t bytes, char text[24])
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    double n = (double)bytes;
    int unit = 0;
    while (n >= 1000 && unit < 4) {
        n /= 1000;
        unit++;
    }
    snprintf(text, 24, unit ? "%.1f %s" : "%.0f %s", n, units[unit]);
    return text;
}

progress progress_begin(uint64_t total)
{
    return (progress){.shown = isatty(STDERR_FILENO), .total = total, .begin = seconds_now()};
}

void progress_step(progress *p, uint64_t bytes, const char *what)
{
    char rate_text[24], shown[NAME_SHOWN + 1];
    double time = seconds_now(), spent = time - p->begin;
    p->done += bytes;
    if (!p->shown || (time - p->last < 0.1 && p->done < p->total))
        return;
    p->last = time;
    double share = p->total ? (double)p->done / (double)p->total : 1,
           rate = spent > 0 ? (double)p->done / spent : 0;
    long left = rate > 0 ? (long)((double)(p->total - p->done) / rate) : 0;
    int filled = (int)(share * WIDTH);
    fprintf(stderr, "\r\033[K[%.*s%*s] %3.0f%%  %s/s  %ld:%02ld left  %s", filled, "########################",
            WIDTH - filled, "", share * 100, size_text((uint64_t)rate, rate_text), left / 60, left % 60,
            escape_string(shown, sizeof shown, what));
    fflush(stderr);
}

void progress_end(progress *p)
{
    if (p->shown)
        fputs("\r\033[K", stderr);
}
