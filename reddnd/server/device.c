/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/device.h"

#include "reddnd/selftest/selftest.h"
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

int device_test(struct rnic_device *dev, struct master_qp *master, bool fences)
{
	const char *name = rnic_device_name(dev);
	char why[200];
	int fenced, unchecked, limits;
	int r = selftest_run(master, rnic_caps_masked_atomics(rnic_device_caps(dev)), why, sizeof(why));

	if (r < 0) {
		log_error("%s does not run chains as it must: %s", name, why);
		return r;
	}
	fenced = fences ? selftest_fenced_enables(master) : 0;
	if (fenced < 0)
		return log_errno(fenced, "%s: cannot test the fences of SEND_EN", name);
	unchecked = selftest_unchecked_wqes(master);
	if (unchecked < 0)
		return log_errno(unchecked, "%s: cannot test if it checks WQE indices", name);
	limits = selftest_limits_messages(master);
	if (limits < 0)
		return log_errno(limits, "%s: cannot test if it limits the length of messages", name);
	rnic_device_set_observed(dev, fenced, unchecked, limits);
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
