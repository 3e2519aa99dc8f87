/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libconfig-leaks.h - included by one source file of a program that reads damaged configurations:
 * LeakSanitizer forgives libconfig that its lexer never frees a string that does not end, or that precedes a
 * syntax error.
 */
#ifndef TESTS_LIB_LIBCONFIG_LEAKS_H
#define TESTS_LIB_LIBCONFIG_LEAKS_H

const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libconfig_yylex\nleak:strbuf_append\n";
}

#endif
