/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddn-probe/clock-file.h"

#include "costs/costs.h"
#include "reddnd/rnic/identity.h"
#include "tools/common/tool.h"
#include "util/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

DEFINE_CLEANUP(FILE *, fclose)

static void write_head(FILE *f, const struct rnic_device *dev, const struct rnic_device *other)
{
	struct rnic_identity id = {.model = "unknown"};

	rnic_identity_read(dev, &id);
	fprintf(f, "# Times of work requests on a %s (MT%u), firmware %s, measured by reddn-probe %s\n",
		id.model, id.part, id.firmware, REDDN_VERSION);
	if (other)
		fprintf(f, "# from %s to %s.\n\n", rnic_device_name(dev), rnic_device_name(other));
	else
		fprintf(f,
			"# in loopback on %s, without a second port: the network takes no time, and the port "
			"carries what the "
			"bus does.\n\n",
			rnic_device_name(dev));
}

static void write_figures(FILE *f, const struct measured *m)
{
	fprintf(f,
		"# From posting until the completion is seen, of one WR on an idle NIC, microseconds\n"
		"latency = {\n"
		"  bytes = %d;\n"
		"  noop = %.4f;\n"
		"  write = %.4f;  # its data in the WQE\n"
		"  read = %.4f;\n"
		"  atomic = %.4f;  # compare-and-swap\n"
		"  network = %.4f;  # part of these, both ways together\n"
		"};\n\n"
		"# What one more NOOP adds to a chain of them, microseconds\n"
		"order = {\n"
		"  wq = %.4f;\n"
		"  completion = %.4f;\n"
		"  doorbell = %.4f;\n"
		"};\n\n",
		MEASURE_BYTES, m->noop, m->write, m->read, m->atomic, m->network, m->wq, m->completion,
		m->doorbell);
	fprintf(f,
		"# Million verbs per second of one port\n"
		"throughput = {\n"
		"  pus = %u;  # by queues that slow each other down\n"
		"  write = %.3f;\n"
		"  read = %.3f;\n"
		"  atomic = %.3f;\n"
		"};\n\n"
		"# Gigabits per second, of WRITEs of 64 KiB\n"
		"bandwidth = {\n"
		"  port = %.2f;\n"
		"  pcie = %.2f;  # in loopback\n"
		"};\n\n"
		"timestamp_khz = %.0f;\n",
		m->pus, m->write_rate, m->read_rate, m->atomic_rate, m->port, m->pcie, m->timestamp_khz);
}

static int write_file(const char *path, const struct measured *m, const struct rnic_device *dev,
	const struct rnic_device *other)
{
	CLEANUP(fclosep) FILE *f = fopen(path, "we");

	if (!f)
		return TOOL_FAIL(EX_CANTCREAT, "%s: %s", path, strerror(errno));
	write_head(f, dev, other);
	write_figures(f, m);
	return fflush(f) ? TOOL_FAIL(EX_IOERR, "%s: %s", path, strerror(errno)) : 0;
}

int clock_file_make(const char *path, struct rnic_device *dev, struct rnic_device *other)
{
	struct measured m;
	struct costs costs;
	char why[256];
	int r = measure(dev, other, &m, why, sizeof(why));

	if (r < 0)
		return TOOL_FAIL(EX_UNAVAILABLE, "%s cannot be measured: %s", rnic_device_name(dev), why);
	r = write_file(path, &m, dev, other);
	if (r)
		return r;
	if (costs_read(path, &costs, why, sizeof(why)) < 0)
		return TOOL_FAIL(EX_DATAERR, "%s: %s", path, why);
	return 0;
}
