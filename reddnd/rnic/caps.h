/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * caps.h - capabilities of a device, from the answer of its firmware to QUERY_HCA_CAP (positions:
 * mlx5/prm.h), and the check that they suffice for chains. Pure: device.c sends the command.
 */
#ifndef RNIC_CAPS_H
#define RNIC_CAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RNIC_LACKS = 256 }; /* bytes of a reason */

/* Atomics of 8 bytes, masked ones too */
enum rnic_atomics {
	RNIC_ATOMICS_WRONG,
	RNIC_ATOMICS_HOST,    /* they do as expected */
	RNIC_ATOMICS_SWAPPED, /* but old values arrive big-endian */
};

/** What a device does that its firmware does not report, as tests on the device have observed it
 * (reddnd/probe). All zero: the least that chains need, and nothing that they can profit from. */
struct rnic_observed {
	/* What some offloads need */
	enum rnic_atomics atomics;
	bool recv_enables;   /* a RECV_EN enables RECVs, and only those */
	bool masked_atomics; /* masked atomics do as expected; false too if firmware reports none */
	bool patched_recvs;  /* a managed RECV is fetched no earlier than a RECV_EN enables it */
	/*
	 * WQEBBs that the NIC fetches together: a WQE behind the enabled index is stale if it lies in the
	 * group of one before it. 1: it fetches nothing behind the index. 0: not tried, or no group explains
	 * what was stale.
	 */
	unsigned fetch_group;
	/* A managed SQ that fails gives a CQE to each WQE that was enabled, and to none behind */
	bool flushes_enabled_only;

	/* What chains can do without */
	bool fenced_enables; /* a SEND_EN heeds a fence */
	bool unchecked_wqes; /* index and QPN in a WQE are ignored */
	uint8_t calc;        /* operations of CALC that are right: 1 << enum wqe_calc (mlx5/wqe.h) */
};

struct rnic_caps {
	char no_chains[RNIC_LACKS]; /* why the device runs no chains, a clause; "": it runs them */
	bool no_immediates;   /* no WRITE or SEND with immediate, as of iWARP: not from firmware, from the
				 device's kind */
	bool cross_channel;   /* WAIT, SEND_EN, managed queues (cap cd) */
	bool overrun_ignore;  /* CQs without polling (cap cq_oi) */
	bool infiniband;      /* link layer; otherwise Ethernet, that is RoCE */
	bool force_loopback;  /* a RoCE port: RC QPs can be connected to themselves without an address */
	bool ts_formats;      /* queues may have to name the format of their timestamps */
	bool index_ignore;    /* the NIC can be set to ignore WQE indices; only logged */
	bool host_atomics;    /* the old value of an 8 byte atomic arrives in host order */
	uint16_t atomic_ops;  /* RNIC_ATOMIC_* */
	uint16_t atomic_size; /* bit n: operands of n bytes (n a power of two) on QPs */
	unsigned log_max_qp_wqebbs, log_max_cqes;
	unsigned max_sq_wqe, max_rq_wqe;     /* bytes of one WQE */
	unsigned log_rd_atomic, log_rd_dest; /* READs and atomics in flight per QP, as requester, responder */
	struct rnic_observed observed;       /* not from firmware, but from rnic_device_set_observed() */
};

enum { RNIC_ATOMIC_CAS = 1, RNIC_ATOMIC_ADD = 2, RNIC_ATOMIC_MASKED_CAS = 4, RNIC_ATOMIC_MASKED_ADD = 8 };

/** Fills in the capabilities of the three pages (4096 bytes each; @roce, @atomic may be NULL). */
void rnic_caps_parse(
	struct rnic_caps *caps, const uint8_t *general, const uint8_t *roce, const uint8_t *atomic);

/**
 * True when chains can run on such a device; otherwise @why lists in words everything that is missing.
 */
bool rnic_caps_sufficient(const struct rnic_caps *caps, char *why, size_t size);

/** True if the device has both masked atomics, with operands of 8 bytes. */
bool rnic_caps_masked_atomics(const struct rnic_caps *caps);

/** One line for the log. */
void rnic_caps_describe(const struct rnic_caps *caps, char *text, size_t size);

/** QPC.atomic_mode for 8 byte operands and, where the device has them, masked atomics of any size (as Linux:
 * get_atomic_mode: 1 = as the InfiniBand specification, otherwise log2 of the largest operand). */
unsigned rnic_caps_atomic_mode(const struct rnic_caps *caps);

#endif
