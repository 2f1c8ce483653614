/* A picture of modelled times: for each product a bar from the low to the high end of its share of the DRAM roofline. */
#ifndef BENCH_CLOCK_PICTURE_H
#define BENCH_CLOCK_PICTURE_H

#include <stdbool.h>

enum { TIME_BARS = 128 };

typedef struct time_bar {
    char name[96];
    double low, high;    /* shares of the roofline: 1 is the board's peak bandwidth */
    double plain, issue; /* what a plain read reaches; what issue allows */
} time_bar;

/* False: the file cannot be written. */
bool time_picture(const char *path, const time_bar *bars, int n);

#endif
