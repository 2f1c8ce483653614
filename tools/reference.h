/* Translates quantization descriptors for host_ref. */
#ifndef QDNN_TOOLS_REFERENCE_H
#define QDNN_TOOLS_REFERENCE_H

#include <qdnn/qdnn.h>

#include "host_ref/host_ref.h"

/* What the descriptor says of a tensor of these dimensions, with f32 as the type of plain data. */
ref_quant_spec reference_of(qdnnQuantDescriptor_t quant, int rank, const int64_t *dims);

#endif
