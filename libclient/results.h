/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * results.h - from replies to results. It judges the replies that have arrived, queues requests that have to
 * be repeated, and reports the results to the caller.
 */
#ifndef LIBCLIENT_RESULTS_H
#define LIBCLIENT_RESULTS_H

#include "libclient/connection.h"

/**
 * Report results from @res on, but none at @end: of the slots in c->arrived, which is not empty, as far as
 * there is room, of which there is some. Returns their number, 0 if all requests are to be repeated, or
 * -errno if there is none because the connection is lost.
 */
int reddn_report_arrived(struct reddn *c, struct reddn_result *res, const struct reddn_result *end);

/**
 * Do what is left when c->exceptional, behind the results from @res up to @at: send what is to be sent again;
 * report the requests that have ended without a reply. Returns the same.
 */
int reddn_report_rest(
	struct reddn *c, struct reddn_result *res, struct reddn_result *at, const struct reddn_result *end);

/** The slots whose results the caller has take requests again. */
static inline void reddn_release_held(struct reddn *c)
{
	for (struct reddn_slot *s = c->held; s; s = s->next_held)
		s->request = NULL;
	c->held = NULL;
}

#endif
