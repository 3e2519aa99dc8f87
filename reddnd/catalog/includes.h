/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * includes.h - what a configuration includes, looked at before libconfig reads it: at a directory, as in
 * @include "", its scanner ends the process (libconfig 1.5, input of the scanner that flex makes), and a FIFO
 * would hold it up.
 */
#ifndef CATALOG_INCLUDES_H
#define CATALOG_INCLUDES_H

#include <stdio.h>

/**
 * Writes to @errors a line for each @include of the file @path, and of those that it includes, that leads to
 * something else than a file. Names are relative to @dir, as libconfig takes them. What cannot be opened is
 * left to libconfig to tell. How many lines.
 */
unsigned includes_check(const char *path, const char *dir, FILE *errors);

#endif
