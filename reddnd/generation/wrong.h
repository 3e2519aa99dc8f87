/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wrong.h - why an offload that is being opened cannot be used, or not as it was tried first.
 *
 * Thread rules: those of offload_open(), for which this is.
 */
#ifndef GENERATION_WRONG_H
#define GENERATION_WRONG_H

#include <stdbool.h>

struct offload;

/** Logs what is wrong, and keeps it as the reason why the offload cannot be used. Returns @error. */
int offload_wrong(struct offload *o, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/** The same for what the device lacks. Returns -EOPNOTSUPP. */
int offload_unfit(struct offload *o, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** True if it is to be recycled, and unrolled where that is impossible. */
bool offload_may_be_unrolled(const struct offload *o);

/** Logs the lines of @text. */
void offload_log_lines(const char *text);

#endif
