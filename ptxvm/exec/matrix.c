/* Where the pieces of a matrix in shared memory are. */
#include "matrix.h"

/* Swizzling exchanges the pieces within a row of the pattern: their number, in the address, is combined with that of
 * the row. */
static uint32_t swizzled(const vm_matrix *m, uint32_t address)
{
    uint32_t row = m->by_pairs ? address >> 2 & 0x60 : address >> 3 & (m->width - 16);
    return (address ^ row) & VM_MATRIX_ADDRESS;
}

uint32_t vm_matrix_by_line(const vm_matrix *m, uint32_t line, uint32_t piece)
{
    uint32_t apart = m->width == 16 ? m->leading : 16;
    return swizzled(m, m->start + line % 8 * m->width + line / 8 * m->stride + piece * apart);
}

uint32_t vm_matrix_by_depth(const vm_matrix *m, uint32_t k, uint32_t piece)
{
    uint32_t across = m->width / 16, rows = m->by_pairs ? 4 : 8, row = k % rows * m->width;
    uint32_t at = m->width == 16
                      ? piece * m->stride + row + k / 8 * m->leading
                      : piece % across * 16 + piece / across * m->leading + row + k / rows * m->stride;
    return swizzled(m, m->start + at);
}
