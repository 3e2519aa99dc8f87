/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/fit.h"

#include "reddnd/chain/ring/lap.h"
#include "util/array.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static int lacks(char why[static FIT_WHY], const char *format, ...) __attribute__((format(printf, 2, 3)));

static int lacks(char why[static FIT_WHY], const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(why, FIT_WHY, format, ap);
	va_end(ap);
	return -EOPNOTSUPP;
}

/* Reported, and seen to do what they must */
static bool has_masked_atomics(const struct rnic_caps *caps)
{
	return rnic_caps_masked_atomics(caps) && caps->observed.masked_atomics;
}

/* A WQE with a remote address has two segments before its data segments */
static unsigned max_sge(const struct rnic_caps *caps)
{
	unsigned n = caps->max_sq_wqe / 16 - 2;

	return n < CHAIN_MAX_SGE ? n : CHAIN_MAX_SGE;
}

unsigned fit_group(const struct rnic_caps *caps)
{
	unsigned group = caps->observed.fetch_group;

	return group <= CHAIN_MAX_GROUP && (group & (group - 1)) == 0 ? group : 0;
}

/* Pads of rings are executed once in a lap, and each of their NOPs takes as long as any work request */
static unsigned max_pad(const struct rnic_caps *caps)
{
	unsigned wqebbs = caps->max_sq_wqe / CHAIN_WQEBB;

	return wqebbs < CHAIN_LONGEST_PAD ? wqebbs : CHAIN_LONGEST_PAD;
}

struct program_target fit_target(const struct rnic_caps *caps, bool recycled)
{
	return (struct program_target){
		.masked_atomics = has_masked_atomics(caps),
		.swapped_old = caps->observed.atomics == RNIC_ATOMICS_SWAPPED,
		.fenced_enables = caps->observed.fenced_enables,
		.calc = caps->observed.calc & PROGRAM_CALC,
		.ignores_index = caps->observed.unchecked_wqes && !recycled,
		.overlap = true,
		.max_sge = max_sge(caps),
		.fetch_group = fit_group(caps),
		.pad_wqebbs = max_pad(caps),
	};
}

/* The executor heeds order by itself, and looks at neither index nor QPN. */
struct program_target fit_cpu_target(void)
{
	return (struct program_target){.masked_atomics = true,
		.fenced_enables = true,
		.calc = PROGRAM_CALC,
		.max_sge = CHAIN_MAX_SGE};
}

/* True if the chain writes into its own WQEs */
static bool patches(const struct program *p, bool recycled)
{
	const struct chain_desc *d = p->desc;

	for (unsigned i = 0; i < p->image->nrecv; i++)
		if (p->image->recv[i].sym == CHAIN_SYM_QUEUE)
			return true;
	for (unsigned s = 0; s < d->nsteps; s++)
		for (unsigned i = 0; i < CHAIN_MAX_SGE && d->steps[s].local[i].kind != CHAIN_AT_NONE; i++)
			if (d->steps[s].local[i].kind == CHAIN_AT_FIELD)
				return true;
	return recycled || p->loop;
}

/* A WQE that the NIC fetched before it was enabled is executed as it was then, without any error */
static int check_fetch(
	const struct program *p, bool recycled, const struct rnic_caps *caps, char why[static FIT_WHY])
{
	unsigned group = caps->observed.fetch_group;

	if (fit_group(caps) || !patches(p, recycled))
		return 0;
	if (group == 0)
		return lacks(why, "the device fetches WQEs before they are enabled, so it would not see that "
				  "the chain patches them");
	return lacks(why,
		"the device fetches %u bytes of a queue together, beyond what is enabled, so it would not "
		"see that the chain patches WQEs there; NOPs can fill at most %u bytes",
		group * CHAIN_WQEBB, CHAIN_MAX_GROUP * CHAIN_WQEBB);
}

static int check_atomics(const struct program *p, const struct rnic_caps *caps, char why[static FIT_WHY])
{
	if (caps->observed.atomics != RNIC_ATOMICS_WRONG)
		return 0;
	if (p->image->n_atomic == 0 && !p->loop)
		return 0;
	return lacks(why, "its program needs atomics, which do not work on the device");
}

static unsigned segments_of(const struct chain_step *s)
{
	unsigned n = 0;

	while (n < CHAIN_MAX_SGE && s->local[n].kind != CHAIN_AT_NONE)
		n++;
	return n;
}

static int check_segments(const struct program *p, const struct rnic_caps *caps, char why[static FIT_WHY])
{
	const struct chain_desc *descs[] = {p->desc, p->loop};

	for (unsigned i = 0; i < COUNT(descs) && descs[i]; i++)
		for (unsigned s = 0; s < descs[i]->nsteps; s++) {
			const struct chain_step *step = &descs[i]->steps[s];

			if (segments_of(step) > max_sge(caps))
				return lacks(why,
					"line %u needs %u data segments in a work request, the device can "
					"only do %u",
					step->line, segments_of(step), max_sge(caps));
		}
	return 0;
}

/* What rings that renew themselves need, and requests */
static int check_ring(
	const struct program *p, bool recycled, const struct rnic_caps *caps, char why[static FIT_WHY])
{
	enum { REFRESHING_READ = (2 + LAP_MAX_SGE) * 16 };
	bool renews = recycled || p->loop;
	const char *without = p->loop ? "there are no loops without a bound; give it one, as in `loop max 8`"
				      : "no chain can be recycled";

	if (renews && !has_masked_atomics(caps))
		return lacks(why, "the device has no masked fetch-and-add, without which %s", without);
	if (recycled && !caps->observed.recv_enables)
		return lacks(why, "RECV_EN does not work on the device, without which %s", without);
	if (recycled && p->payload.max && !caps->observed.patched_recvs)
		return lacks(why,
			"the device fetches RECVs before they are enabled, or it is not known whether it "
			"does, so they could not get their extents");
	if (recycled && p->payload.max && p->nregions == CHAIN_MAX_WINDOWS)
		return lacks(why,
			"its program has %u regions and a payload, and no recycled one has more than %u",
			p->nregions, CHAIN_MAX_WINDOWS - 1);
	if (renews && caps->max_sq_wqe < REFRESHING_READ)
		return lacks(why, "the device has no send WQEs of %u bytes, without which %s",
			REFRESHING_READ, without);
	if (p->image->nrecv * 16 > caps->max_rq_wqe)
		return lacks(why, "a request is scattered to %u places, the device can only do %u",
			p->image->nrecv, caps->max_rq_wqe / 16);
	return 0;
}

int fit_check(const struct program *p, bool recycled, const struct rnic_caps *caps, char why[static FIT_WHY])
{
	int r = check_fetch(p, recycled, caps, why);

	if (r == 0)
		r = check_atomics(p, caps, why);
	if (r == 0)
		r = check_segments(p, caps, why);
	return r == 0 ? check_ring(p, recycled, caps, why) : r;
}
