/* Loads a PTX file onto a device that can run it. */
#include "tools/ptxvm/tool.h"

#include "boards/boards.h"

#include "ptxvm/module.h"

#include <stdlib.h>
#include <string.h>

/* "12:5: what is wrong", with the line and a caret below it; prefixed with the file's name, so that editors
 * can jump to it. */
static int invalid(const vm_file *file, const char *message)
{
    /* The first line is the message, "12:5: unknown modifier"; the rest shows the place. */
    size_t first = strcspn(message, "\n"), place = strspn(message, "0123456789:");
    const char *strong = tool_style_text(stderr, TOOL_STRONG), *usual = tool_style_text(stderr, TOOL_USUAL);
    fflush(stdout);
    fprintf(stderr, "%s%s:%.*s%s%s%.*s%s", strong, file->name, (int)place, message, usual, place ? "" : " ",
            (int)(first - place), message + place, tool_style_text(stderr, TOOL_GOOD));
    fprintf(stderr, "%s%s\n", message + first, usual);
    return TOOL_FAILED;
}

/* The file's own target is the smallest device that can run it. */
static int find_sm(vm_file *file, const char *sm)
{
    pvm_target target;
    if (sm)
        pvm_target_from_name(sm, &target);
    else {
        pvm_error error = {.kind = PVM_OK};
        pvm_module *parsed = pvm_module_parse(file->text.data, file->text.size, &error);
        if (!parsed)
            return invalid(file, error.message);
        target = parsed->target;
        pvm_module_free(parsed);
    }
    snprintf(file->sm, sizeof file->sm, "sm_%d%.1s", target.sm, &target.suffix);
    return TOOL_OK;
}

/* The kernel's printf; stdio keeps it in order with the command's own output. */
static void print(void *user, const char *text, size_t length)
{
    fwrite(text, 1, length, user);
}

static ptxvm_config config_of(const vm_file *file, const vm_options *o)
{
    return (ptxvm_config){.sm = file->sm,
                          .board = o->time,
                          .threads = o->threads,
                          .seed = o->seed,
                          .step_limit = o->steps,
                          .print = print,
                          .print_user = o->out,
                          .checks = o->checks,
                          .counters = o->time                  ? PTXVM_COUNTERS_PATHS
                                      : o->listing             ? PTXVM_COUNTERS_LINES
                                      : o->counters || o->json ? PTXVM_COUNTERS_KERNEL
                                                               : PTXVM_COUNTERS_OFF};
}

/* A name may contain any bytes, and is printed and written as JSON. */
static char *printable(const char *name)
{
    size_t size = 4 * strlen(name) + 1;
    char *text = malloc(size);
    if (text)
        pvm_escape(text, size, name, strlen(name));
    return text;
}

int tool_open(vm_file *file, const vm_options *options, const char *path)
{
    ptxvm_config read = {0};
    char why[256];
    *file = (vm_file){.name = printable(strcmp(path, "-") == 0 ? "<stdin>" : path)};
    if (!file->name)
        return tool_fail("out of memory");
    if (!ptxvm_config_read(&read, why, sizeof why))
        return tool_usage_error("%s", why);
    int status = tool_read(path, &file->text);
    if (status == TOOL_OK && file->text.size == 0)
        return invalid(file, "the file is empty");
    if (status == TOOL_OK && file->text.size >= 4 && memcmp(file->text.data, "\177ELF", 4) == 0)
        return invalid(
            file, "this is an ELF file, machine code as a cubin has it; give the PTX that it was made of");
    if (status == TOOL_OK)
        status = find_sm(file, options->sm);
    if (status == TOOL_OK && options->time)
        board_sm_name(board_find(options->time), file->sm, sizeof file->sm);
    if (status != TOOL_OK)
        return status;
    ptxvm_config config = config_of(file, options);
    ptxvm_status created = ptxvm_create(&config, &file->vm);
    if (created != PTXVM_OK)
        return tool_fail("no device %s: %s", file->sm, ptxvm_status_name(created));
    if (ptxvm_module_load(file->vm, file->text.data, file->text.size, &file->module) != PTXVM_OK)
        return invalid(file, ptxvm_last_error(file->vm));
    return TOOL_OK;
}

void tool_close(vm_file *file)
{
    ptxvm_destroy(file->vm);
    tool_text_free(&file->text);
    free(file->name);
}
