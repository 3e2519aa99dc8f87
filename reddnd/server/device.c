/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/device.h"

#include "reddnd/probe/selftest.h"
#include "reddnd/util/log.h"

#include <errno.h>
#include <string.h>

int device_open(struct rnic_device **dev, const char *name, const struct rnic_cm *cm)
{
	const char *bound = rnic_cm_device(cm);

	if (*name && bound && strcmp(name, bound) != 0) {
		log_error("\"device\" is %s, but an address of \"listen\" belongs to %s; make them agree",
			name, bound);
		return -EINVAL;
	}
	return rnic_device_open(dev, *name ? name : bound ? bound : "");
}

/* The chain; then without masked atomics if it is they that do something else. -errno: no chain can run */
static int test_chain(struct rnic_device *dev, struct master_qp *master, struct rnic_observed *seen)
{
	const char *name = rnic_device_name(dev);
	char why[200], recvs[200];
	bool masked = rnic_caps_masked_atomics(rnic_device_caps(dev));
	int r = selftest_run(master, masked, recvs, sizeof(recvs));

	seen->masked_atomics = masked && r >= 0;
	if (masked && r == -EIO) {
		memcpy(why, recvs, sizeof(why));
		r = selftest_run(master, false, recvs, sizeof(recvs));
		if (r >= 0)
			log_warning("%s: masked atomics do not work: %s", name, why);
	}
	if (r < 0) {
		log_error("%s does not run chains as it must: %s", name, recvs);
		return r;
	}
	seen->recv_enables = r == 0;
	if (r > 0)
		log_warning("%s: RECV_EN does not work: %s", name, recvs);
	return 0;
}

/* What managed queues do that no document states */
static int test_queues(struct rnic_device *dev, struct master_qp *master, struct rnic_observed *seen)
{
	const char *name = rnic_device_name(dev);
	int group = selftest_fetch_group(master), flushes;

	if (group < 0)
		return log_errno(group, "%s: cannot test how far it fetches a queue", name);
	flushes = selftest_flushes_enabled_only(master);
	if (flushes < 0)
		return log_errno(flushes, "%s: cannot test how far it flushes a queue", name);
	seen->fetch_group = (unsigned)group;
	seen->flushes_enabled_only = flushes;
	if (group != 1)
		log_warning("%s: it fetches WQEs before they are enabled, in groups of %d bytes (0: unknown)",
			name, group * RNIC_WQEBB_BYTES);
	if (!flushes)
		log_warning(
			"%s: a queue that fails gives more completions than it had work: each session gets "
			"a completion queue of its own",
			name);
	return 0;
}

int device_test(struct rnic_device *dev, struct master_qp *master, bool fences)
{
	const char *name = rnic_device_name(dev);
	struct rnic_observed seen = {0};
	int fenced, unchecked, limits;
	int r = test_chain(dev, master, &seen);

	if (r == 0)
		r = test_queues(dev, master, &seen);
	if (r < 0)
		return r;
	fenced = fences ? selftest_fenced_enables(master) : 0;
	if (fenced < 0)
		return log_errno(fenced, "%s: cannot test the fences of SEND_EN", name);
	unchecked = selftest_unchecked_wqes(master);
	if (unchecked < 0)
		return log_errno(unchecked, "%s: cannot test if it checks WQE indices", name);
	limits = selftest_limits_messages(master);
	if (limits < 0)
		return log_errno(limits, "%s: cannot test if it limits the length of messages", name);
	seen.fenced_enables = fenced;
	seen.unchecked_wqes = unchecked;
	seen.limits_messages = limits;
	rnic_device_set_observed(dev, &seen);
	log_info("%s: self-test passed; a fence holds back a SEND_EN: %s; it checks index and QPN of a WQE: "
		 "%s",
		name,
		fenced   ? "yes"
		: fences ? "no, or unknown"
			 : "not asked for (fenced_enables)",
		unchecked ? "no: operands may stand there" : "yes");
	log_info("%s: it limits the length of messages: %s", name,
		limits ? "yes" : "no: a reply that is too long is charged, but sent");
	return 0;
}
