/* qdnn/ptx.h: the PTX builder as a library (qdnn::ptxgen, qdnn_ptxgen.pc), for kernels of your own. C17 with the extensions of
 * gcc and clang; not C++. docs/guide.md ("A kernel of your own") shows how to write, check, run and time one without a GPU. */
#ifndef QDNN_PTX_H
#define QDNN_PTX_H

#include <qdnn/ptxgen/ptx.h>

#endif
