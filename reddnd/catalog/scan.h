/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scan.h - private to the catalog: checks the files that a configuration includes before libconfig reads
 * them. At a directory, as in @include "", the scanner of libconfig 1.5 ends the process (its input function
 * is the one that flex makes), and a FIFO would block it.
 */
#ifndef CATALOG_SCAN_H
#define CATALOG_SCAN_H

#include <stdio.h>

/**
 * Writes to @errors a line for each @include, in the file @path and in files that it includes, that names
 * something else than a regular file. Relative names start at @dir, as in libconfig. Files that cannot be
 * opened are left to libconfig, which reports them. Returns the number of lines.
 */
unsigned scan_includes(const char *path, const char *dir, FILE *errors);

#endif
