/* A header as a page of Markdown. */
#ifndef QDNN_API_PAGES_PAGE_H
#define QDNN_API_PAGES_PAGE_H

#include <stdio.h>

#include "tools/api_pages/header.h"

/* `name`: of the header, "plan.h". */
void page_write(FILE *out, const char *name, const header *h);

/* The first sentence of how the header describes itself, for the index. */
void page_summary(FILE *out, const header *h);

#endif
