/* Whatever the parser accepts for an SM can be executed as that SM: every row of isa.def, with each choice of
 * its modifiers and its operands in each style, becomes a kernel that ptxvm_module_kernel decodes. */
#include "test.h"

#include "ptxvm/ptxvm.h"
#include "support/form_examples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const devices[] = {"sm_75",  "sm_80",   "sm_86",   "sm_87",   "sm_88",   "sm_89",
                                      "sm_90a", "sm_100a", "sm_103a", "sm_110a", "sm_120a", "sm_121a"};

static int count_devices(void)
{
    return sizeof devices / sizeof devices[0];
}

static void name_device(int index, char *name, size_t size)
{
    snprintf(name, size, "%s", devices[index]);
}

enum { MAX_PLANS = 256, MAX_BODY = 1 << 16 };

typedef struct decoder {
    ptxvm *vm;
    const char *device;
    char body[MAX_BODY], module[MAX_BODY + 4096];
    int decoded;
} decoder;

static void put_module(decoder *d, const char *needs)
{
    form_text t = {d->module, d->module + sizeof d->module};
    if (strcmp(needs, "old") == 0)
        form_put_header(&t, needs, 90);
    else
        form_put(&t, ".version 9.4\n.target %s\n.address_size 64\n", d->device);
    form_put_kernel(&t, 0, d->body);
}

/* False: the parser refuses the instructions in d->body. */
static bool decode_body(decoder *d, const char *needs)
{
    ptxvm_module *module;
    ptxvm_kernel *kernel;
    put_module(d, needs);
    if (ptxvm_module_load(d->vm, d->module, strlen(d->module), &module))
        return false;
    if (ptxvm_module_kernel(module, "k0", &kernel))
        FAIL("%s:\n%s%s", d->device, d->body, ptxvm_last_error(d->vm));
    d->decoded++;
    ptxvm_module_unload(module);
    return true;
}

/* All plans of a form as one kernel, or, where the parser does not take every one, a kernel each. */
static void decode_form(decoder *d, const form_table *table, const form *f, form_style style)
{
    form_plan plans[MAX_PLANS];
    int n = form_plans(table, f, plans, MAX_PLANS);
    form_text all = {d->body, d->body + sizeof d->body};
    for (int k = 0; k < n; k++) {
        plans[k].style = style;
        form_put_example(&all, table, f, plans[k]);
    }
    bool whole = decode_body(d, f->needs);
    for (int k = 0; k < n && !whole; k++) {
        form_text one = {d->body, d->body + sizeof d->body};
        form_put_example(&one, table, f, plans[k]);
        decode_body(d, f->needs);
    }
}

/* Whether a style changes how the form is written at all. */
static bool style_matters(const form_table *table, const form *f, form_style style)
{
    char plain[1024], styled[1024];
    form_text a = {plain, plain + sizeof plain}, b = {styled, styled + sizeof styled};
    form_plan how = form_plan_plain;
    form_put_example(&a, table, f, how);
    how.style = style;
    form_put_example(&b, table, f, how);
    return style == FORM_REGISTERS || strcmp(plain, styled) != 0;
}

TEST_EACH(FormsDecode, WhatParsesExecutes, count_devices, name_device)
{
    const form_table *table = form_table_get();
    decoder *d = calloc(1, sizeof *d);
    REQUIRE(d != NULL);
    d->device = devices[index];
    REQUIRE(ptxvm_create(&(ptxvm_config){.sm = d->device, .threads = 1}, &d->vm) == PTXVM_OK);
    for (int i = 0; i < table->n_forms; i++)
        for (form_style style = FORM_REGISTERS; style < FORM_STYLES; style++)
            if (table->forms[i].op != OP_call && style_matters(table, &table->forms[i], style))
                decode_form(d, table, &table->forms[i], style);
    CHECK(d->decoded > 500);
    ptxvm_destroy(d->vm);
    free(d);
}
