/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * public.h - for libreddn's own sources: marks what the library exports (see also libreddn.map), and
 * the way errors get their words.
 */
#ifndef LIBCLIENT_PUBLIC_H
#define LIBCLIENT_PUBLIC_H

#include <stddef.h>

#define PUBLIC __attribute__((visibility("default")))

/** Put formatted text into `err` (may be NULL) of `errlen` bytes, cut where it does not fit. Returns `ret`.
 */
int reddn_fail(int ret, char *err, size_t errlen, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#endif
