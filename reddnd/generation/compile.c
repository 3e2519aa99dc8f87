/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/compile.h"

#include "reddnd/generation/fit.h"
#include "reddnd/generation/stored.h"
#include "reddnd/generation/table.h"
#include "reddnd/generation/wrong.h"
#include "reddnd/rnic/qp.h"
#include "reddnd/util/log.h"
#include "util/cleanup.h"

#include <errno.h>
#include <string.h>

/* 0: o->program is that for @target; 1 and what is wrong with it; a negative errno, which has been logged */
static int compile_for(struct offload *o, const struct program_setting *more, unsigned nmore,
	const struct program_target *target, char **messages)
{
	struct program *program = NULL;
	int r = catalog_compile(o->conf, o->found && !o->found->wrong ? &o->found->in : NULL, more, nmore,
		target, &program, messages);

	if (r < 0)
		return offload_wrong(o, r, "it cannot be compiled: %s", strerror(-r));
	if (r > 0)
		return r;
	program_free(o->program);
	o->program = program;
	o->img = program->image;
	return 0;
}

/* The program has mistakes for @target, the device. If it has none for a device that has more, it is the
 * device that lacks something, and o->program is the one for the other device: it has a name and regions */
static int find_lack(struct offload *o, const struct program_setting *more, unsigned nmore,
	const struct program_target *target)
{
	CLEANUP(cleanup_free) char *masked = NULL, *both = NULL, *all = NULL;
	struct program_target t = *target;
	int r;

	t.masked_atomics = true;
	r = compile_for(o, more, nmore, &t, &masked);
	if (r <= 0)
		return r < 0 ? r
			     : offload_unfit(o, "its program needs masked atomics, which the device has not");
	t.max_sge = 0;
	r = compile_for(o, more, nmore, &t, &both);
	if (r <= 0)
		return r < 0 ? r
			     : offload_unfit(o,
				       "its program needs WQEs with more than %u data segments, which the "
				       "device has not",
				       target->max_sge);
	t.fetch_group = 0;
	r = compile_for(o, more, nmore, &t, &all);
	if (r <= 0)
		return r < 0 ? r
			     : offload_unfit(o,
				       "its program is too long for NOPs that fill the groups of %u bytes "
				       "that the device fetches together",
				       target->fetch_group * RNIC_WQEBB_BYTES);
	return -EINVAL;
}

int compile_offload(
	struct offload *o, const struct program_setting *more, unsigned nmore, const struct rnic_caps *caps)
{
	struct program_target target =
		o->cpu || *caps->no_chains ? fit_cpu_target() : fit_target(caps, o->conf->recycled);
	CLEANUP(cleanup_free) char *messages = NULL;
	int r;

	target.overlap = target.overlap && !o->in_turn;
	r = compile_for(o, more, nmore, &target, &messages);
	if (r <= 0)
		return r;
	r = find_lack(o, more, nmore, &target);
	if (r != -EINVAL)
		return r;
	offload_wrong(o, -EINVAL, "its program has mistakes");
	if (messages)
		offload_log_lines(messages);
	return -EINVAL;
}

static bool has_param(const struct program *p, const char *name)
{
	for (unsigned i = 0; i < p->nparams; i++)
		if (strcmp(p->params[i].name, name) == 0)
			return true;
	return false;
}

int compile_for_table(struct offload *o, const struct table_geometry *g, const struct rnic_caps *caps)
{
	const struct program_setting all[] = {
		{"width", g->offset_len},
		{"record", table_slot_need(g) - REDDN_SLOT_RECORD},
	};
	struct program_setting more[2];
	unsigned n = 0;

	for (unsigned i = 0; i < 2; i++)
		if (has_param(o->program, all[i].name))
			more[n++] = all[i];
	return n ? compile_offload(o, more, n, caps) : 0;
}
