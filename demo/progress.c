/* The progress line. */
#include "demo/demo.h"

#include <stdio.h>
#include <unistd.h>

enum { WIDTH = 30 };

static int steps, step;

void progress_begin(int count)
{
    steps = count;
    step = 0;
}

void progress_step(const char *what)
{
    double done = (double)step++ / steps;
    int filled = (int)(done * WIDTH);
    if (!isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r\033[K[%.*s%*s] %3.0f%% %s ... ", filled, "##############################",
            WIDTH - filled, "", done * 100, what);
    fflush(stderr);
}

void progress_clear(void)
{
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}
