/* SPDX-License-Identifier: BSD-2-Clause */
#include "costs/costs.h"

#include "util/array.h"
#include "util/datafile.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/*
 * Headers of a packet. Not measured: InfiniBand's local route, base transport and extended transport headers
 * and its two checks, 8 + 12 + 16 + 4 + 2 bytes.
 */
enum { PACKET_BYTES = 42 };

/* The measurements, in the order of the file. */
struct measured {
	double bytes, noop, write, read, atomic, network;
	double wq, completion, doorbell;
	double pus, mwrite, mread, matomic;
	double port, pcie;
	double timestamp_khz;
};

static const struct field {
	const char *name;
	size_t offset;
	double least, most;
} fields[] = {
#define F(name, member, least, most)                                                                         \
	{                                                                                                    \
		name, offsetof(struct measured, member), least, most                                         \
	}
	F("latency.bytes", bytes, 8, 4096),
	F("latency.noop", noop, 1e-3, 1e3),
	F("latency.write", write, 1e-3, 1e3),
	F("latency.read", read, 1e-3, 1e3),
	F("latency.atomic", atomic, 1e-3, 1e3),
	F("latency.network", network, 0, 1e3),
	F("order.wq", wq, 1e-3, 1e3),
	F("order.completion", completion, 1e-3, 1e3),
	F("order.doorbell", doorbell, 1e-3, 1e3),
	F("throughput.pus", pus, 1, 64),
	F("throughput.write", mwrite, 1e-3, 1e4),
	F("throughput.read", mread, 1e-3, 1e4),
	F("throughput.atomic", matomic, 1e-3, 1e4),
	F("bandwidth.port", port, 0.1, 1e5),
	F("bandwidth.pcie", pcie, 0.1, 1e5),
	F("timestamp_khz", timestamp_khz, 1000, 1e6),
#undef F
};

static int read_fields(const config_t *cfg, struct measured *m, char *why, size_t size)
{
	for (size_t i = 0; i < COUNT(fields); i++) {
		const struct field *f = &fields[i];
		const config_setting_t *s = config_lookup(cfg, f->name);
		double v = 0;

		if (!s) {
			snprintf(why, size, "%s is missing", f->name);
			return -EINVAL;
		}
		if (config_setting_type(s) == CONFIG_TYPE_INT)
			v = config_setting_get_int(s);
		else if (config_setting_type(s) == CONFIG_TYPE_FLOAT)
			v = config_setting_get_float(s);
		if (!(v >= f->least && v <= f->most)) {
			snprintf(why, size, "line %u: %s must be a number from %g to %g",
				config_setting_source_line(s), f->name, f->least, f->most);
			return -EINVAL;
		}
		*(double *)((char *)m + f->offset) = v;
	}
	return 0;
}

/* An unknown name is a mistake. */
static int check_names(const config_setting_t *group, const char *prefix, char *why, size_t size)
{
	for (int i = 0; i < config_setting_length(group); i++) {
		const config_setting_t *s = config_setting_get_elem(group, (unsigned)i);
		char name[128];
		size_t known = 0, of = COUNT(fields);
		int rc = 0;

		snprintf(name, sizeof(name), "%s%s%s", prefix, *prefix ? "." : "", config_setting_name(s));
		if (config_setting_is_group(s) && !*prefix) {
			rc = check_names(s, name, why, size);
		} else {
			while (known < of && strcmp(fields[known].name, name) != 0)
				known++;
			if (known == of) {
				snprintf(why, size, "line %u: %s is no figure of a clock",
					config_setting_source_line(s), name);
				rc = -EINVAL;
			}
		}
		if (rc < 0)
			return rc;
	}
	return 0;
}

static uint64_t ps(double us)
{
	return us > 0 ? (uint64_t)llround(us * 1e6) : 0;
}

/* Microseconds that @bytes and the headers of a packet take on the wire: bytes * 8 / Gb/s are nanoseconds. */
static double on_wire(const struct measured *m, double bytes)
{
	return (bytes + PACKET_BYTES) * 8 / m->port * 1e-3;
}

/* Microseconds that @bytes of one packet take on the bus. */
static double on_bus(const struct measured *m, double bytes)
{
	return bytes * 8 / m->pcie * 1e-3;
}

/*
 * A step of a chain in doorbell order is a WAIT, a fetch and a NOOP; in completion order it has no fetch, and
 * in WQ order neither fetch nor WAIT. Beyond a NOOP, a WRITE crosses the wire, is placed at the responder and
 * is acknowledged. Its data were in the WQE, because its additional time (0.14 us on a ConnectX-5) is less
 * than any read of memory takes (0.35 us for a fetch). A READ crosses the wire, is read at the responder, and
 * returns over both buses and the wire. Reading data that are not in the WQE takes as long as at a responder.
 * A CQE is placed like the data of a WRITE: both are posted to the bus. The rest of a NOOP's time is between
 * the doorbell and the fetch.
 */
static int derive(const struct measured *m, struct costs *c, char *why, size_t size)
{
	double issue = m->wq, wait = m->completion - m->wq, fetch = m->doorbell - m->completion;
	double write = m->write - m->noop - m->network - on_wire(m, m->bytes) - on_bus(m, m->bytes);
	double read = m->read - m->noop - m->network - on_wire(m, 0) - on_wire(m, m->bytes) -
		      2 * on_bus(m, m->bytes);
	double atomic = m->atomic - m->noop - m->network - 2 * on_wire(m, 8) - 2 * on_bus(m, 8);
	double doorbell = m->noop - fetch - issue - write;

	if (wait < 0 || fetch < 0 || write < 0 || read < 0 || atomic < 0 || doorbell < 0) {
		snprintf(why, size, "the figures do not fit together: what is left for %s is negative",
			wait < 0     ? "a WAIT (order.completion - order.wq)"
			: fetch < 0  ? "a fetch (order.doorbell - order.completion)"
			: write < 0  ? "placing a WRITE (latency.write - latency.noop - latency.network)"
			: read < 0   ? "the responder's READ (latency.read - latency.noop - latency.network)"
			: atomic < 0 ? "the atomic (latency.atomic - latency.noop - latency.network)"
				     : "the doorbell (latency.noop without fetch, WQE and CQE)");
		return -EINVAL;
	}
	*c = (struct costs){
		.pus = (unsigned)m->pus,
		.doorbell = ps(doorbell),
		.fetch = ps(fetch),
		.issue = ps(issue),
		.wait = ps(wait),
		.cqe = ps(write),
		.wire = ps(m->network / 2),
		.write = ps(write),
		.read = ps(read),
		.atomic = ps(atomic),
		.gather = ps(read),
		.pu = ps((unsigned)m->pus / m->mwrite),
		.pu_read = ps((unsigned)m->pus / m->mread),
		.atomic_unit = ps(1 / m->matomic),
		.port_byte = (uint64_t)llround(8e6 / m->port),
		.pcie_byte = (uint64_t)llround(8e6 / m->pcie),
		.packet_bytes = PACKET_BYTES,
		.clock_khz = (uint32_t)m->timestamp_khz,
	};
	return 0;
}

/* In a build tree, programs are in folders of two levels, such as softcx/nic. */
static const char *const in_tree[] = {"../../costs", NULL};

int costs_find(const char *name, char *path, size_t size)
{
	return datafile_find(name, in_tree, COSTS_DIR, path, size);
}

int costs_read(const char *path, struct costs *costs, char *why, size_t size)
{
	struct measured m;
	config_t cfg;
	char text[160];
	unsigned line;
	int rc = datafile_read(&cfg, path, &line, text, sizeof(text));

	if (rc < 0 && line)
		snprintf(why, size, "line %u: %s", line, text);
	else if (rc < 0)
		snprintf(why, size, "%s", text);
	if (rc < 0)
		return rc;
	rc = check_names(config_root_setting(&cfg), "", why, size);
	if (rc == 0)
		rc = read_fields(&cfg, &m, why, size);
	if (rc == 0)
		rc = derive(&m, costs, why, size);
	config_destroy(&cfg);
	return rc;
}
