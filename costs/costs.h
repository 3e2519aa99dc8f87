/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * costs.h - what work requests cost on a NIC, from a clock file: what somebody measured of one, as cx5.conf
 * has it, and what follows for each unit of it. The emulated NIC's clock and the compiler's model of a
 * chain's time have their costs from here.
 */
#ifndef COSTS_COSTS_H
#define COSTS_COSTS_H

#include <stddef.h>
#include <stdint.h>

/**
 * What work costs, for a modelled clock (hw-clock.h says how they make up a time). Picoseconds, unless said
 * otherwise. "Occupies" is how long the next user of a unit has to wait, "takes" how long it lasts.
 */
struct costs {
	unsigned pus;         /* processing units; each queue belongs to one */
	uint64_t doorbell;    /* from software's store until the WQE's fetch begins, and what else a first WQE
				 takes */
	uint64_t fetch;       /* reading enabled WQEs from memory takes */
	uint64_t issue;       /* a WQE takes in its queue, before the next one of the queue starts */
	uint64_t wait;        /* a WAIT takes, after its CQE */
	uint64_t cqe;         /* from completion until software can see the CQE */
	uint64_t wire;        /* one way, not of a loop-back */
	uint64_t write;       /* the responder takes to place data, */
	uint64_t read;        /* to read them, */
	uint64_t atomic;      /* and for an atomic */
	uint64_t gather;      /* reading what a WQE sends takes, when it is not in the WQE */
	uint64_t pu;          /* a WQE occupies its PU, */
	uint64_t pu_read;     /* a READ */
	uint64_t atomic_unit; /* an atomic occupies the responder's only unit for them */
	uint64_t port_byte;   /* a byte occupies the port, in either direction (femtoseconds) */
	uint64_t pcie_byte;   /* and the bus (femtoseconds) */
	uint32_t packet_bytes; /* headers of a packet, on the port */
	uint32_t clock_khz;    /* resolution of the timestamps */
};

/** How long @len bytes occupy a bus, and, in packets of @mtu, a port. Picoseconds. */
static inline uint64_t costs_on_bus(const struct costs *c, uint64_t len)
{
	return len * c->pcie_byte / 1000;
}

static inline uint64_t costs_on_port(const struct costs *c, uint64_t len, uint64_t mtu)
{
	uint64_t packets = len ? (len + mtu - 1) / mtu : 1;

	return (len + packets * c->packet_bytes) * c->port_byte / 1000;
}

/**
 * The file that @name means: itself if there is a / in it, else NAME.conf of those that are installed.
 * -ENAMETOOLONG.
 */
int costs_find(const char *name, char *path, size_t size);
/** 0, or -EINVAL (-ENOENT, ...) and in @why what is wrong and where. */
int costs_read(const char *path, struct costs *costs, char *why, size_t size);

#endif
