/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * times.h - service times as the daemon counts them: lists of { "to_ns": longest of the bucket, "requests":
 * those in it }.
 * Pure.
 */
#ifndef TOOLS_REDDNCTL_TIMES_H
#define TOOLS_REDDNCTL_TIMES_H

#include <json-c/json.h>
#include <stdint.h>

enum { TIMES_MAX = 512 };

/** All zero: none. */
struct times {
	unsigned n;
	struct {
		uint64_t ns, count;
	} at[TIMES_MAX]; /* in the order of .ns */
};

/** Adds a list of the daemon; NULL is fine. What is no such list, or too much, is left out. */
void times_add(struct times *t, struct json_object *list);
/** Takes away what a list of the same counters had before. One that had more, of another daemon: nothing. */
void times_take_away(struct times *t, struct json_object *before);

/** The time that the fraction @part of the requests did not exceed, in ns, exact to a sixteenth; 0 without
 * requests. */
uint64_t times_at(const struct times *t, double part);

#endif
