/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run.h - the lists of send queues that can execute, wait or pause. Internal to softcx/hw.
 */
#ifndef SOFTCX_HW_RUN_H
#define SOFTCX_HW_RUN_H

#include <stdint.h>

struct hw_qp;

enum hw_run {
	HW_RUN_IDLE,  /* nothing to execute, or not in RTS */
	HW_RUN_READY, /* can execute: turns.h */
	HW_RUN_WAIT,  /* stopped at a WAIT: on the waiters of wait_cq */
	HW_RUN_TIMED, /* pause before a retry: on dev->timed until @due */
};

/** Moves the SQ between the lists of enum hw_run. @wait_cq and @due are set before. */
void hw_qp_set_run(struct hw_qp *qp, enum hw_run run);
void hw_qp_resume(struct hw_qp *qp); /* from a WAIT or a pause */
/** What is at the head of the SQ is executed @ns later. */
void hw_qp_pause(struct hw_qp *qp, uint64_t ns);

#endif
