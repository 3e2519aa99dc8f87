/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddnc.h"

#include "reddnd/generation/fit.h"
#include "reddnd/probe/probe.h"
#include "reddnd/util/log.h"
#include "tools/common/tool.h"

#include <errno.h>
#include <sysexits.h>

enum { ARENA = 64 << 20 };

void reddnc_device_close(struct reddnc_device *d)
{
	master_qp_deinit(&d->domain.master);
	if (d->dev)
		rnic_device_close(d->dev);
	if (d->arena)
		rnic_arena_free(d->arena);
}

static int check_wishes(
	const char *name, const struct program_target *wish, const struct program_target *can, unsigned group)
{
	if (wish->ignores_index && !can->ignores_index)
		return TOOL_FAIL(EX_UNAVAILABLE, "%s checks the indices of WQEs; leave out --direct", name);
	if (wish->fenced_enables && !can->fenced_enables)
		return TOOL_FAIL(EX_UNAVAILABLE,
			"a SEND_EN of %s does not heed its fence; leave out --fenced-enables", name);
	if (wish->fetch_group && wish->fetch_group < group)
		return TOOL_FAIL(EX_UNAVAILABLE,
			"%s fetches %u bytes of a queue together; leave out --fetch-group", name,
			group * RNIC_WQEBB_BYTES);
	return 0;
}

static int choose_target(const struct reddnc_device *d, struct program_target *target)
{
	const struct rnic_caps *caps = rnic_device_caps(d->dev);
	const struct program_target wish = *target;
	int r;

	*target = fit_target(caps, false);
	r = check_wishes(rnic_device_name(d->dev), &wish, target, fit_group(caps));
	target->masked_atomics &= wish.masked_atomics;
	target->calc &= wish.calc;
	if (wish.fetch_group)
		target->fetch_group = wish.fetch_group;
	return r;
}

int reddnc_device_open(struct reddnc_device *d, const char *name, struct program_target *target)
{
	struct probe_attr attr = {.master = &d->domain.master};
	struct rnic_observed seen;

	log_name(program_invocation_short_name);
	log_init(LOG_ERR);
	if (rnic_device_open_for_chains(&d->dev, name, NULL) < 0 || rnic_arena_new(&d->arena, ARENA) < 0)
		return EX_UNAVAILABLE;
	d->domain.pd = rnic_device_pd(d->dev);
	if (master_qp_init(&d->domain.master, d->domain.pd, d->arena) < 0 ||
		probe_at_start(&attr, target->fenced_enables, &seen) < 0)
		return EX_UNAVAILABLE;
	log_init(LOG_WARNING);
	rnic_device_set_observed(d->dev, &seen);
	return choose_target(d, target);
}
