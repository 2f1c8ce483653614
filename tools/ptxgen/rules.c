/* The parameters of a kernel in its manifest, as its operation describes them (kernels/describe.h). Names in rules are those of the
 * kernel's own parameters. */
#include "tools/ptxgen/tool.h"

#include <string.h>

#include "kernels/operations.h"

static void describe(const tool_item *item, kernel_description *d)
{
    kernel_describe(item->row, KERNEL_NORMAL(item->row, &item->spec), d);
}

bool tool_pointer_of(const tool_item *item, int index, tool_pointer *out)
{
    kernel_description d;
    describe(item, &d);
    if (index >= d.count)
        return false;
    const kernel_pointer *p = &d.pointers[index];
    *out = (tool_pointer){.workspace = p->kind == KERNEL_WORKSPACE,
                          .direction = p->writes ? "out" : "in",
                          .element = p->element.name};
    if (!out->workspace)
        kernel_rule_text(&p->bytes, KERNEL_RULE_TEXT, out->bytes);
    return true;
}

int tool_number_of(const tool_item *item, int index)
{
    kernel_description d;
    describe(item, &d);
    index -= d.count;
    for (int i = 0; i < NUMBERS && index >= 0; i++)
        if (d.numbers >> i & 1 && index-- == 0)
            return i;
    return -1;
}

int tool_launch_number(const tool_item *item, int i)
{
    kernel_description d;
    describe(item, &d);
    for (int axis = 0, number; axis < 3; axis++)
        for (int k = 0; (number = kernel_rule_number(&item->text.geometry.grid[axis], k)) >= 0; k++) {
            const number_set bit = (number_set)1 << number;
            if (!(d.numbers & bit) && i-- == 0)
                return number;
            d.numbers |= bit;
        }
    return -1;
}

const char *tool_number_name(int number)
{
    return kernel_number_name((kernel_number)number);
}

const char *tool_number_meaning(int number)
{
    return kernel_number_meaning((kernel_number)number);
}
