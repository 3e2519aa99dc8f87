/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cmocka.h - the cmocka of unit tests, behind the headers that it needs.
 */
#ifndef TESTS_LIB_CMOCKA_H
#define TESTS_LIB_CMOCKA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* these first */
#include <cmocka.h>

#endif
