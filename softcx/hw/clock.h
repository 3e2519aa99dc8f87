/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * clock.h - a modelled clock: when everything that the engine does would have happened on a NIC with given
 * costs (struct costs of costs/costs.h). Internal to softcx/hw.
 *
 * The engine executes as it always does. Times are carried along; they decide only the order in which queues
 * get their turn: the queue whose next WQE is due first. All devices of the process share one axis of time,
 * in picoseconds, which does not depend on the time that the execution takes.
 *
 * Send queues. A WQE starts when it has been fetched, when the WQE before it has been issued, when the object
 * of its fence or WAIT is complete, and when its queue's PU has a place for it. It was fetched @doorbell +
 * @fetch after software rang, or @fetch after the SEND_EN that enabled it started. After @issue it passes the
 * port of either side unless it is a loop-back, both buses, and, for an atomic, the responder's unit for
 * atomics. Each packet of a longer message is whole before it goes on from one of these to the next. Data
 * that are sent and are not inline in the WQE arrive @gather later, while the next WQE of the queue is
 * issued. Then the completion is in the NIC, where a WAIT sees it. Software sees the CQE @cqe later; the CQE
 * has that time.
 *
 * Ports of one card are devices of their own, each with its PUs and its unit for atomics; they share one bus
 * (RedN, section 5.1.3 and table 4).
 *
 * A unit (a PU, one direction of a port or bus, the atomics) is a calendar. A request for the unit at some
 * time gets the first free time from then on, in pieces if need be, so the order of requests does not matter.
 *
 * Software takes no time. It posts on a queue when it sees a CQE of that queue: a loop that posts when it
 * gets a completion runs at the speed of the NIC, however slow the machine. The model does not know which CQE
 * caused a post, but it lies between two others: the last one that software has consumed, by the consumer
 * index of the CQ, and the last one that was written. The highest number of posted WQEs without a CQE so far
 * counts as the depth of a loop that posts one WQE for each CQE (of a RECV, if there are any). The CQE
 * between the two that kept this depth is the cause. A WQE without a new CQE of its queue, such as the first
 * one, or one after a long pause, is posted when its software has seen the last CQE that it consumed
 * anywhere; and so is each of software that does one thing after the other. Software can take some time for
 * each message: then it gets the messages of a CQ one after the other.
 */
#ifndef SOFTCX_HW_CLOCK_H
#define SOFTCX_HW_CLOCK_H

#include "costs/costs.h"
#include "softcx/hw/exec.h"

enum {
	HW_CLOCK_FREE = 4096, /* busy times that a calendar remembers; before the oldest all is free */
	HW_CLOCK_BELLS = 32,  /* fetches that a queue has outstanding; more are taken for one */
	HW_CLOCK_READS = 16,  /* max_qp_rd_atom */
	HW_CLOCK_SEEN = 256,  /* CQEs of a queue that software may see late */
};

struct hw_calendar {
	unsigned n;
	struct hw_busy {
		uint64_t from, to;
	} busy[HW_CLOCK_FREE]; /* ascending */
};

/** Takes @work of the unit's time, not before @from. Returns the end. */
uint64_t hw_calendar_take(struct hw_calendar *c, uint64_t from, uint64_t work);

struct hw_bus { /* of a card; all its ports share it */
	unsigned refs;
	struct hw_calendar read, write;
};

struct hw_clock { /* of a device, which is a port */
	const struct costs *costs;
	unsigned next_pu;
	struct hw_bus *bus;
	struct hw_calendar tx, rx, atomics;
	struct hw_calendar pu[];
};

struct hw_qp_clock {
	struct hw_calendar *pu;
	uint64_t software; /* when it last posted */
	uint64_t ready;    /* when the last WQE was issued */
	uint64_t begun;    /* and had been started */
	uint64_t done;     /* and all of them complete */
	uint64_t read;     /* and the READs among them */
	uint64_t placed;   /* what was sent */
	struct hw_bell {
		uint16_t to; /* WQEBBs before this one */
		uint64_t at; /* are fetched */
	} bell[HW_CLOCK_BELLS];
	uint32_t bells_in, bells_out;
	uint64_t reads[HW_CLOCK_READS]; /* completions of the last ones */
	uint32_t nreads;
	int64_t posted, depth; /* WQEs; those without a CQE at most */
	uint64_t consumed_at;  /* hw_software.consumed when the last CQE was */
	int64_t cause;         /* CQEs that were a reason to post */
	struct hw_seen {
		int64_t written, consumed;  /* CQEs */
		uint64_t at[HW_CLOCK_SEEN]; /* when software is done with each */
	} seen[2];                          /* of send WQEs, of RECVs */
};

struct hw_software {
	unsigned refs;
	uint64_t now, think_ps;
	bool in_turn;
	uint64_t consumed; /* CQEs */
	struct hw_cq_list cqs;
};

struct hw_cq_clock {
	uint32_t mask;
	uint64_t last;     /* time of the last CQE */
	uint64_t software; /* is done with it */
	uint64_t consumed; /* CQEs */
	struct hw_cqe_time {
		uint64_t at;       /* that software sees */
		uint64_t software; /* when it is done with it */
		uint32_t qpn;
		bool message;
	} cqe[];
};

int hw_clock_new(struct hw_dev *dev); /* if it has costs */
void hw_clock_free(struct hw_dev *dev);
int hw_clock_add_qp(struct hw_qp *qp); /* the same */
int hw_clock_add_cq(struct hw_cq *cq, struct hw_software *software);
void hw_clock_remove_cq(struct hw_cq *cq); /* with or without a clock */
void hw_clock_reset_qp(struct hw_qp *qp);  /* its WQEs, not its time, are gone */

/* Everything below: only with a clock. */

void hw_clock_start_qp(struct hw_qp *qp); /* to RTS: not before anything that software could know */

/** WQEBBs before @to become enabled: software rang; the WQE @by enables them. */
void hw_clock_rung(struct hw_qp *qp, uint16_t to);
void hw_clock_enabled(struct hw_qp *qp, uint16_t to, const struct hw_wqe *by);

/** When the next WQE of @qp may start: decides which queue is next. */
uint64_t hw_clock_due(const struct hw_qp *qp);
/** Sets w->at, when @w starts if only its queue counts. */
void hw_clock_start(struct hw_wqe *w);
/** Gives @w, which is no WAIT, its place on the PU. */
void hw_clock_issue(struct hw_wqe *w);
/** The WAIT @w for @index of @cq ends. */
void hw_clock_waited(struct hw_wqe *w, const struct hw_cq *cq, uint32_t index);
/** @data go to w->peer, or nowhere if it is NULL. Sets w->done. Returns when they are placed. */
uint64_t hw_clock_send(struct hw_wqe *w, const struct hw_sgl *data);
/** @len bytes come from w->peer. Sets w->done. */
void hw_clock_fetch_data(struct hw_wqe *w, uint32_t len, bool atomic);
/** @w is executed. Sets w->done if nothing has. */
void hw_clock_issued(struct hw_wqe *w);
void hw_clock_pause(struct hw_qp *qp, uint64_t ns); /* before a retry */

/** The CQE that will be number cq->producer: its timestamp. */
uint64_t hw_clock_cqe(struct hw_cq *cq, const struct hw_cqe *cqe);

#endif
