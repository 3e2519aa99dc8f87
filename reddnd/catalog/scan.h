/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scan.h - private to the catalog: reads the file of a configuration, and checks it and the files that it
 * includes for what libconfig does not report. At a directory, as in @include "", the scanner of
 * libconfig 1.5 ends the process (its input function is the one that flex makes), and a FIFO would block it.
 * And it checks for what versions of libconfig read differently, such as 4294967297 without a suffix, which
 * 1.5 reads as 1, or which some of them refuse.
 */
#ifndef CATALOG_SCAN_H
#define CATALOG_SCAN_H

#include <stdio.h>

/**
 * Reads the file @path, which may be a pipe, to *@text, to be freed. Writes to @errors a line for each
 * mistake in it and in the files that it includes: it cannot be read; an @include names something else than
 * a regular file that can be read, or is too deep; versions of libconfig read a number, an escape or a comma
 * differently; a text or a comment has no end. Relative names start at @dir, as in libconfig. Returns the
 * number of lines; without any there is a *@text.
 */
unsigned scan_configuration(const char *path, const char *dir, FILE *errors, char **text);

#endif
