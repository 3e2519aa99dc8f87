/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * die.h - the end of a test program that cannot go on.
 */
#ifndef TESTS_LIB_DIE_H
#define TESTS_LIB_DIE_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/** Prints the message after the name of the program, and ends the program with status 2. (1 is left to
 * programs that end so when they have found what they look for.) */
static inline _Noreturn __attribute__((format(printf, 1, 2))) void die(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(2);
}

#endif
