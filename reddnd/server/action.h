/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * action.h - what must happen to a session. Modules of the server decide and return one; only actions.c
 * carries it out.
 */
#ifndef SERVER_ACTION_H
#define SERVER_ACTION_H

#include "protocol/wire.h"

#include <stdint.h>

enum action_kind {
	ACTION_NONE,
	ACTION_THROTTLE,   /* at most .rate requests per second until .until_us */
	ACTION_UNTHROTTLE, /* its configured limits are in force again */
	ACTION_END,        /* for .reason, which .text explains to the client */
};

struct action {
	enum action_kind kind;
	uint64_t rate;
	uint64_t until_us; /* CLOCK_MONOTONIC */
	enum reddn_wire_end reason;
	char text[400]; /* a clause */
};

#endif
