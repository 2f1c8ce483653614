/* Environment variables for the duration of a test. */
#include "support/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    char name[64];
    char *before; /* null: it was not set */
} saved[32];
static int n_saved;

static void put(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static void set_one(const char *name, const char *value)
{
    const char *before = getenv(name);
    if (n_saved == (int)(sizeof saved / sizeof *saved))
        abort();
    snprintf(saved[n_saved].name, sizeof saved->name, "%s", name);
    saved[n_saved++].before = before ? strdup(before) : NULL;
    put(name, *value ? value : NULL);
}

void environment_set(const char *settings)
{
    char text[2048];
    snprintf(text, sizeof text, "%s", settings ? settings : "");
    char *rest = NULL;
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(word, '=');
        *value++ = 0;
        set_one(word, value);
    }
}

void environment_restore(void)
{
    while (n_saved) {
        n_saved--;
        put(saved[n_saved].name, saved[n_saved].before);
        free(saved[n_saved].before);
    }
}
