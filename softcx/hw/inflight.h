/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inflight.h - effects of executed WQEs that have not reached memory yet. Internal to softcx/hw.
 *
 * RC promises less than a naive emulator gives. A send queue goes on to the next WQE before the last one is
 * complete:
 * - the data of a READ and the old value of an atomic are in local memory for certain once a CQE of that SQ,
 * for this or a later WQE, can be seen, or when a later WQE of the SQ waits for them with a fence;
 * - a WRITE is placed for certain before anything later of its connection has an effect, and before such a
 * CQE;
 * - a CQE itself comes some time after its WQE, before those of later WQEs.
 * So nothing of this need have happened when, say, the SEND_EN that follows in the same SQ takes effect. What
 * may be late waits here until something forces it or the seed lets it happen.
 */
#ifndef SOFTCX_HW_INFLIGHT_H
#define SOFTCX_HW_INFLIGHT_H

#include "softcx/hw/mem.h"
#include "softcx/hw/qp.h"

enum { HW_INFLIGHT_READ = 512 }; /* bytes of a response that may be late */

/**
 * HW_INFLIGHT_READ bytes for the data of the next READ of @qp, which hw_inflight_read() then need not copy.
 * NULL: there is no room.
 */
uint8_t *hw_inflight_room(struct hw_qp *qp);

/**
 * Keeps @data for the local @dst of a READ or atomic, or for the remote @dst of a WRITE. False: it is too
 * large to keep, or the seed lets it land now; then older effects of the same kind have landed and the caller
 * goes ahead.
 */
bool hw_inflight_read(
	struct hw_qp *qp, const struct hw_span *dst, unsigned ndst, const void *data, uint32_t len);
bool hw_inflight_write(
	struct hw_qp *qp, const struct hw_span *dst, const struct hw_span *src, unsigned nsrc, uint32_t len);

/** Writes a CQE of the SQ, now, after all that is in flight, or later. */
void hw_inflight_complete(struct hw_qp *qp, const struct hw_cqe *cqe);

unsigned hw_inflight_reads(const struct hw_qp *qp); /* outstanding */
void hw_inflight_land_reads(struct hw_qp *qp);
void hw_inflight_land_writes(struct hw_qp *qp);
void hw_inflight_land(struct hw_qp *qp); /* everything */
void hw_inflight_land_everywhere(void);  /* before a key goes away */
void hw_inflight_free(struct hw_qp *qp);

/** Lets something land; the seed chooses. False: nothing is in flight. */
bool hw_inflight_tick(struct hw_dev *dev);
/**
 * The same for a queue that cannot execute now, and has a CQE in flight that a WAIT may be for: what nobody
 * waits for does not come earlier. False: none was found.
 */
bool hw_inflight_tick_at_rest(struct hw_dev *dev);

#endif
