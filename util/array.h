/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * array.h - arrays whose length the compiler knows.
 */
#ifndef UTIL_ARRAY_H
#define UTIL_ARRAY_H

/** Number of elements of array @a. */
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#endif
