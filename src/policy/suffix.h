/*
 * Names below which hosts belong to many owners: public suffixes (publicsuffix.org) such as com,
 * co.uk and github.io, from the list of Debian's package `publicsuffix`, made into a constant table
 * by tools/suffixes. Pure; the table's pages are touched only where it is asked.
 */
#pragma once

#include <stdbool.h>

/* Of a canonical name (policy/host.h). */
bool suffix_is_public(const char *name);
