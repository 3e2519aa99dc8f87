/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/probe/probe.h"

#include "reddnd/probe/bed.h"
#include "reddnd/util/log.h"
#include "util/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- one check -------------------------------------------------------------------------- */

static void conclude(const struct probe_check *check, int r, struct probe_result *result)
{
	if (r < 0) {
		result->error = r;
		if (!*result->words)
			snprintf(result->words, sizeof(result->words), "%s", strerror(-r));
		return;
	}
	if (!(check->flags & PROBE_RACE) && !result->tried)
		result->tried = result->showed = 1;
	if (r && !result->showed)
		snprintf(result->words, sizeof(result->words),
			"in %" PRIu64 " trials nothing was late, so none could have shown it", result->tried);
	else
		result->verdict = r ? PROBE_HOLDS : PROBE_DOES_NOT;
}

/* Without a device one check does not hold: the one that there is such a device */
static void refuse(const struct probe_check *check, const char *unusable, struct probe_result *result)
{
	bool is_it = check->number == PROBE_DEVICE;

	result->verdict = is_it ? PROBE_DOES_NOT : PROBE_NOT_TRIED;
	snprintf(result->words, sizeof(result->words), "%s", is_it ? unusable : "the device cannot be used");
}

/* The master QP gives up after a second, which is not long on a busy machine; it is made anew then */
static int attempt(const struct probe_check *check, struct probe *probe, struct probe_result *result)
{
	enum { ATTEMPTS = 4 };
	int r = -ETIMEDOUT;

	for (unsigned i = 0; i < ATTEMPTS && r == -ETIMEDOUT; i++) {
		*result = (struct probe_result){.verdict = PROBE_NOT_TRIED};
		r = check->on_bed ? bed_use(probe, NULL, result, check->on_bed, NULL)
				  : check->run(probe, result);
	}
	return r;
}

void probe_run(const struct probe_attr *attr, const struct probe_check *check, struct probe_result *result)
{
	struct probe probe = {.master = attr->master, .visitors = attr->visitors, .thorough = attr->thorough};
	uint64_t begun = clock_ns();
	struct load load;
	int r = 0;

	*result = (struct probe_result){.verdict = PROBE_NOT_TRIED};
	if (attr->unusable) {
		refuse(check, attr->unusable, result);
		return;
	}
	if (check->flags & PROBE_LOADED) {
		r = load_init(&load, probe.master->block.pd, probe.master->block.arena);
		probe.load = &load;
	}
	if (r == 0)
		r = attempt(check, &probe, result);
	if (probe.load)
		load_deinit(probe.load);
	result->seconds = (double)(clock_ns() - begun) * 1e-9;
	conclude(check, r, result);
}
