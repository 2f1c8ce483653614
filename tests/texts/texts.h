/* What the project makes of a kernel and its settings, as hashes: the text for every SM, the launch, and the steps of the operation. */
#ifndef QDNN_TEXTS_TEXTS_H
#define QDNN_TEXTS_TEXTS_H

#include "kernels/kernels.h"

enum { TEXTS_KEY = KERNEL_SPEC_TEXT + 128, TEXTS_LINE = TEXTS_KEY + 2048 };

/* The kernel and the specification that a key such as "matmul_int4 data=f16 ..." stands for; null, with the reason. */
const kernel_row *texts_open(const char *key, kernel_spec *spec, char *error, size_t error_size);

/* "add=sub": from here on as if emitters wrote "sub" wherever they write "add". */
void texts_change(const char *change);

/* "sm_75=0123456789abcdef sm_80=... launch=... steps=...". An SM that the kernel is not for has the hash of the error. */
void texts_hashes(const kernel_row *row, const kernel_spec *spec, char text[TEXTS_LINE]);

/* One part of it by name in plain: the PTX for an SM, the manifest and launcher, the steps. Free it. */
char *texts_part(const kernel_row *row, const kernel_spec *spec, const char *part);

#endif
