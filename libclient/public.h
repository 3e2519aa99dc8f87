/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * public.h - for libreddn's own sources: the mark of exported functions (see also libreddn.map), and error
 * texts.
 */
#ifndef LIBCLIENT_PUBLIC_H
#define LIBCLIENT_PUBLIC_H

#include <stddef.h>

#define PUBLIC __attribute__((visibility("default")))
/* All that it calls in its file becomes part of it. */
#define INLINED __attribute__((flatten))
/* What is rare stays a call there. */
#define NOINLINE __attribute__((noinline))
#define LIKELY(x) __builtin_expect(!!(x), 1)

/** Format the text into @err (may be NULL) of @errlen bytes; text that does not fit is cut. Returns @ret. */
int reddn_fail(int ret, char *err, size_t errlen, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#endif
