/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hw-inflight.h - effects of executed WQEs that have not landed in memory yet. Internal to hw*.c.
 *
 * RC promises less than a naive emulator gives: the data of a READ and the old value of an atomic are in local
 * memory for certain only once a CQE of that SQ, written for this or a later WQE, can be seen, or when a later WQE of the SQ
 * waits for them with a fence. A WRITE is placed for certain before anything later on its connection and before such a CQE, but not before
 * an unrelated SEND_EN of its own SQ is executed. What may be late is kept here until something forces it or the seed lets it land.
 */
#ifndef SOFTCX_NIC_HW_INFLIGHT_H
#define SOFTCX_NIC_HW_INFLIGHT_H

#include "hw-mem.h"
#include "hw-qp.h"

/**
 * Keeps @data for the local @dst of a READ or atomic, or for the remote @dst of a WRITE. false: too large to keep, or the seed
 * says now; then what is older and of the same kind has landed and the caller goes ahead.
 */
bool hw_inflight_read(
	struct hw_qp *qp, const struct hw_span *dst, unsigned ndst, const void *data, uint32_t len);
bool hw_inflight_write(
	struct hw_qp *qp, const struct hw_span *dst, const struct hw_span *src, unsigned nsrc, uint32_t len);

unsigned hw_inflight_reads(const struct hw_qp *qp); /* outstanding */
void hw_inflight_land_reads(struct hw_qp *qp);
void hw_inflight_land_writes(struct hw_qp *qp);
void hw_inflight_land(struct hw_qp *qp);
void hw_inflight_land_everywhere(void); /* before a key goes away */
void hw_inflight_free(struct hw_qp *qp);

/** Lets some of it land, as the seed says. true: there was something. */
bool hw_inflight_tick(struct hw_dev *dev);

#endif
