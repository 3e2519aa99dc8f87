/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * output.h - what a program printed is written when it ends, or its exit status is that of a failure.
 */
#ifndef UTIL_OUTPUT_H
#define UTIL_OUTPUT_H

/** Call it first in main(). Descriptors 0 to 2 exist from now on (file_fill_standard()). When the process
 * exits, stdout is flushed. If anything that was printed to it could not be written, the reason goes to
 * stderr, and @status is the exit status, whatever it was before.
 *
 * stdout stays open: a program does not close it. A closed descriptor is no failure of a program that prints
 * nothing. */
void output_begin(int status);

#endif
