/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/device.h"

#include "reddnd/probe/probe.h"
#include "reddnd/util/log.h"
#include "util/cleanup.h"

#include <errno.h>
#include <string.h>

int device_open(struct rnic_device **dev, const char *name, const struct rnic_cm *cm, struct ledger *ledger)
{
	const char *bound = rnic_cm_device(cm);

	if (*name && bound && strcmp(name, bound) != 0) {
		log_error("\"device\" is %s, but an address of \"listen\" belongs to %s; make them agree",
			name, bound);
		return -EINVAL;
	}
	return rnic_device_open(dev, *name ? name : bound ? bound : "", ledger);
}

/* Sparse: what the self-test needs, and no page more */
enum { TEST_ARENA = 4 << 20 };

DEFINE_CLEANUP(struct rnic_arena *, rnic_arena_free)

static int test(struct rnic_device *dev, struct master_qp *master, bool fences)
{
	const struct probe_attr attr = {.master = master};
	const char *name = rnic_device_name(dev);
	struct rnic_observed seen;
	int r = probe_at_start(&attr, fences, &seen);

	if (r < 0)
		return r;
	rnic_device_set_observed(dev, &seen);
	log_info("%s: self-test passed; a fence holds back a SEND_EN: %s; it checks index and QPN of a WQE: "
		 "%s",
		name,
		seen.fenced_enables ? "yes"
		: fences            ? "no, or unknown"
				    : "not asked for (fenced_enables)",
		seen.unchecked_wqes ? "no: operands may stand there" : "yes");
	return 0;
}

/* Whether it would serve by the NIC or by the CPU must not depend on what was free when it started */
static int refuse_shortage(const struct rnic_device *dev, int r)
{
	return log_errno(r,
		"%s: its self-test lacks memory, descriptors or room in the device, which does not show "
		"what the device can do; the daemon does not start, and would not let the CPU serve for that",
		rnic_device_name(dev));
}

static int run_chains(
	struct rnic_device *dev, struct rnic_arena *arena, struct master_qp *master, bool fences)
{
	int r = master_qp_init(master, rnic_device_pd(dev), arena);

	return r == 0 ? test(dev, master, fences) : r;
}

/* Sessions of a daemon before this one may have all of @arena but the room of its master QP */
static int run_chains_beside(
	struct rnic_device *dev, struct rnic_arena *arena, struct master_qp *master, bool fences)
{
	CLEANUP(rnic_arena_freep) struct rnic_arena *own = NULL;
	struct master_qp tester = {0};
	int r = rnic_arena_new(&own, TEST_ARENA);

	if (r == 0)
		r = run_chains(dev, own, &tester, fences);
	master_qp_deinit(&tester);
	return r == 0 ? master_qp_init(master, rnic_device_pd(dev), arena) : r;
}

int device_test(
	struct rnic_device *dev, struct rnic_arena *arena, struct master_qp *master, bool fences, bool in_use)
{
	const char *why = rnic_device_caps(dev)->no_chains;
	int r = *why ? 0 : (in_use ? run_chains_beside : run_chains)(dev, arena, master, fences);

	if (rnic_is_shortage(r))
		return refuse_shortage(dev, r);
	if (r < 0 && in_use)
		return r;
	if (r < 0) {
		master_qp_deinit(master);
		rnic_device_deny_chains(dev, "it failed the self-test (see the log)");
	}
	if (*why)
		log_warning(
			"%s runs no chains: %s; the CPU executes what engine = \"auto\" or \"cpu\" allows",
			rnic_device_name(dev), why);
	return 0;
}
