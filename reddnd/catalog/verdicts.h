/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verdicts.h - kinds of verdicts, that is, of trouble with a session, and the action that the operator
 * chooses for each. Pure.
 */
#ifndef CATALOG_VERDICTS_H
#define CATALOG_VERDICTS_H

#include <stdbool.h>
#include <stdint.h>

enum verdict_kind {
	VERDICT_STEP,        /* a work request of the chain failed */
	VERDICT_QUEUE,       /* the NIC ended a queue, and no work request of it explains why */
	VERDICT_REQUEST,     /* the client sent what the protocol does not allow */
	VERDICT_RNR,         /* the client repeatedly had no receive posted for a reply */
	VERDICT_UNREACHABLE, /* the client's NIC did not acknowledge a reply, however often it was sent */
	VERDICT_TIME,        /* a request was accepted and not answered within the offload's time_budget */
	VERDICT_LOOP,        /* a loop without a bound had more iterations than the loop_budget allows */
	VERDICT_KINDS
};

/** From the mildest to the hardest. Each includes those before it, where that makes sense. */
enum verdict_action {
	VERDICT_LOG,
	VERDICT_THROTTLE,  /* the session gets a lower rate for a while, and so do new sessions of its client
			    */
	VERDICT_TERMINATE, /* the session ends */
	VERDICT_BAN,       /* the session ends, and its client is refused for a while */
};

struct verdict_policy {
	uint8_t action;   /* enum verdict_action */
	uint32_t seconds; /* of a throttle or a ban */
	uint64_t rate;    /* of a throttle: requests per second, >= 1 */
};

/** The name in the configuration, the journal and JSON: "step", "queue", ... */
const char *verdict_kind_name(enum verdict_kind kind);
/** VERDICT_KINDS if there is no kind of that name. */
enum verdict_kind verdict_kind_named(const char *name);

/** "log", "throttle", "terminate", "ban" */
const char *verdict_action_name(enum verdict_action action);

/** "log", "throttle:100:60s", "terminate" or "ban:60s". 0 or -EINVAL. */
int verdict_policy_parse(const char *text, struct verdict_policy *policy);

#endif
