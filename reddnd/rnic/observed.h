/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * observed.h - what a device does that its firmware does not report, as tests on the device have observed it
 * (reddnd/probe). All zero: the least that chains need, and nothing that they can profit from.
 */
#ifndef RNIC_OBSERVED_H
#define RNIC_OBSERVED_H

#include <stdbool.h>
#include <stdint.h>

/* Atomics of 8 bytes, masked ones too */
enum rnic_atomics {
	RNIC_ATOMICS_WRONG,
	RNIC_ATOMICS_HOST,    /* they do as expected */
	RNIC_ATOMICS_SWAPPED, /* but old values arrive big-endian */
};

struct rnic_observed {
	/* What some offloads need */
	enum rnic_atomics atomics;
	bool recv_enables;   /* a RECV_EN enables RECVs, and only those */
	bool masked_atomics; /* masked atomics do as expected; false too if firmware reports none */
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
	/* Operations of CALC that are right: 1 << enum wqe_calc (mlx5/wqe.h), of vectors 1 << enum
	 * wqe_vcalc_op */
	uint8_t calc, vector_calc;
};

#endif
