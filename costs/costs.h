/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * costs.h - what work requests cost on a NIC, derived from the measurements in a clock file such as cx5.conf.
 * The emulated NIC's clock and the compiler's model of a chain's time use these costs.
 */
#ifndef COSTS_COSTS_H
#define COSTS_COSTS_H

#include <stddef.h>
#include <stdint.h>

/**
 * Costs in picoseconds, unless said otherwise (softcx/hw/clock.h computes times from them). "Occupies" is the
 * time until the next user of a unit can start, "takes" is the duration.
 */
struct costs {
	unsigned pus;      /* processing units; each queue belongs to one */
	uint64_t doorbell; /* from software's store until the fetch of the WQE, and all else that only a first
			      WQE takes */
	uint64_t fetch;    /* takes: reading enabled WQEs from memory */
	uint64_t issue;    /* takes: a WQE in its queue, before the next one of the queue starts */
	uint64_t wait;     /* takes: a WAIT, after its CQE */
	uint64_t cqe;      /* takes: from completion until software can see the CQE */
	uint64_t wire;     /* takes: one way, without loopback */
	uint64_t write;    /* takes: placing data, at the responder */
	uint64_t read;     /* takes: reading data, at the responder */
	uint64_t atomic;   /* takes: an atomic, at the responder */
	uint64_t gather;   /* takes: reading the data that a WQE sends, unless it is inline */
	uint64_t pu;       /* occupies its PU: a WQE, */
	uint64_t pu_read;  /* or a READ */
	uint64_t atomic_unit;  /* occupies the responder's only atomic unit: an atomic */
	uint64_t port_byte;    /* occupies the port, in either direction: a byte (femtoseconds) */
	uint64_t pcie_byte;    /* occupies the bus: a byte (femtoseconds) */
	uint32_t packet_bytes; /* headers of a packet, on the port */
	uint32_t clock_khz;    /* resolution of the timestamps */
};

/** Picoseconds that @len bytes occupy the bus. */
static inline uint64_t costs_on_bus(const struct costs *c, uint64_t len)
{
	return len * c->pcie_byte / 1000;
}

/** Picoseconds that @len bytes, in packets of @mtu, occupy the port. */
static inline uint64_t costs_on_port(const struct costs *c, uint64_t len, uint64_t mtu)
{
	uint64_t packets = len ? (len + mtu - 1) / mtu : 1;

	return (len + packets * c->packet_bytes) * c->port_byte / 1000;
}

/** The path of clock file @name: itself if there is a / in it or it ends in .conf, else NAME.conf of the
 * installed ones. 0 or -ENAMETOOLONG. */
int costs_find(const char *name, char *path, size_t size);

/** Read a clock file and derive the costs. 0, or -EINVAL (-ENOENT, ...) with the mistake and its place in
 * @why. */
int costs_read(const char *path, struct costs *costs, char *why, size_t size);

#endif
