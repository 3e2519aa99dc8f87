/* SPDX-License-Identifier: BSD-2-Clause */
/* What the daemon makes of the checks: it refuses the device, or adapts to it. */
#include "reddnd/probe/probe.h"

#include "reddnd/util/log.h"

#include <errno.h>

/* What follows if a check does not hold, for the log; NULL: nothing that chains need */
static const char *consequence(enum probe_number number, unsigned value)
{
	switch (number) {
	case PROBE_ATOMICS:
		return value == RNIC_ATOMICS_SWAPPED ? "each old value that a program uses takes a copy more"
						     : "atomics do not work";
	case PROBE_MASKED_ATOMICS:
		return "masked atomics do not work";
	case PROBE_RECV_ENABLE:
		return "RECV_EN does not work";
	case PROBE_FETCH:
		return value ? "chains that patch their WQEs take NOPs between them"
			     : "chains that patch their WQEs cannot run";
	case PROBE_RECV_FETCH:
		return "no chain that publishes is recycled";
	case PROBE_FLUSH:
		return "a queue that fails gives more completions than it had work: each session gets a "
		       "completion queue of its own";
	default:
		return NULL;
	}
}

/* Where one of these does not hold, the CPU executes all offloads */
static bool chains_need(enum probe_number number)
{
	return number == PROBE_CHAIN || number == PROBE_MESSAGE_LIMIT;
}

/*
 * 0, or the negative errno for which no chains run. A device that runs chains may refuse what a
 * single check needs: what that check would have shown is taken not to hold, and only offloads that need it
 * are disabled. A shortage does not tell what the device can do.
 */
static int heed(
	const struct probe_attr *attr, const struct probe_check *check, const struct probe_result *result)
{
	const char *name = rnic_device_name(attr->master->block.dev);
	const char *words = consequence(check->number, result->value);

	/* No source reports which devices have CALC, so the log does */
	if (check->number == PROBE_CALC && !result->error)
		log_info("%s: %s: %s", name, check->name, *result->words ? result->words : result->measured);
	if (result->verdict == PROBE_HOLDS)
		return 0;
	if (result->error && (chains_need(check->number) || rnic_is_shortage(result->error))) {
		log_error("%s: cannot try if %s: %s", name, check->assumes, result->words);
		return result->error;
	}
	if (result->error) {
		log_warning("%s: cannot try if %s: %s; the daemon goes on as if not", name, check->assumes,
			result->words);
		return 0;
	}
	if (chains_need(check->number)) {
		log_error("%s does not run chains as it must: %s", name, result->words);
		return -EIO;
	}
	if (words)
		log_warning("%s: %s: %s", name, words, result->words);
	return 0;
}

static void observe(
	struct rnic_observed *seen, const struct probe_check *check, const struct probe_result *result)
{
	bool holds = result->verdict == PROBE_HOLDS;

	switch (check->number) {
	case PROBE_RECV_ENABLE:
		seen->recv_enables = holds;
		break;
	case PROBE_ATOMICS:
		seen->atomics = result->value;
		break;
	case PROBE_MASKED_ATOMICS:
		seen->masked_atomics = holds;
		break;
	case PROBE_FETCH:
		seen->fetch_group = result->value;
		break;
	case PROBE_RECV_FETCH:
		seen->patched_recvs = holds;
		break;
	case PROBE_FLUSH:
		seen->flushes_enabled_only = holds;
		break;
	case PROBE_FENCED_ENABLE:
		seen->fenced_enables = holds;
		break;
	case PROBE_CALC:
		seen->calc = (uint8_t)result->value;
		break;
	case PROBE_WQE_CHECKS:
		seen->unchecked_wqes = result->value;
		break;
	default:
		break;
	}
}

int probe_at_start(const struct probe_attr *attr, bool fences, struct rnic_observed *seen)
{
	unsigned n;
	const struct probe_check *checks = probe_checks(&n);
	struct probe_result result;
	int r = 0;

	*seen = (struct rnic_observed){0};
	for (unsigned i = 0; i < n && r == 0; i++) {
		if (!(checks[i].flags & PROBE_AT_START) || (checks[i].flags & PROBE_IF_ASKED && !fences))
			continue;
		probe_run(attr, &checks[i], &result);
		observe(seen, &checks[i], &result);
		r = heed(attr, &checks[i], &result);
	}
	return r;
}
