/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/faults.h"

#include "reddnd/session/queues.h"

/* A client that marks its SENDs as solicited wakes the daemon with each. That is no error, but it has a price
 */
enum { FALSE_ALARMS_MAX = 1000 };

/* The position of a WQE in the image of its queue; false in the pad */
static bool in_image(const struct session *s, unsigned q, uint16_t index, uint32_t *wqebb)
{
	const struct chain_image *img = s->offload->img;
	uint32_t at = index & (s->queues.layout.queue[q].ring_wqebbs - 1);

	*wqebb = at % img->queue[q].wqebbs;
	return at < chain_pad_at(img, q, s->queues.layout.slots);
}

/* True if queue @part has an error by itself: not one of what was flushed */
static bool has_cause(struct session *s, unsigned part, struct rnic_cqe *cqe)
{
	const struct rnic_cq *cq = session_cq(s, part);

	return cq && rnic_cq_find_error(cq, cqe) && cqe->syndrome != CQE_SYND_FLUSH;
}

/* What flushed a queue is an error of another one: replaces *cqe and *part by it, if it is there. Those of
 * queue 0 come first: when that fails, code may go on with RECVs that are flushed, which it does not
 * understand. */
static void find_cause(struct session *s, unsigned *part, struct rnic_cqe *cqe)
{
	struct rnic_cqe cause;

	for (unsigned i = 0; i <= SESSION_LOOP + 1 && cqe->syndrome == CQE_SYND_FLUSH; i++) {
		unsigned of = i == 0 ? 0 : i == 1 ? SESSION_REPLIES : i - 1;

		if (has_cause(s, of, &cause)) {
			*cqe = cause;
			*part = of;
		}
	}
}

void session_fault(struct session *s, unsigned part, const struct rnic_cqe *first, struct verdict *v)
{
	const struct offload *o = s->offload;
	struct rnic_cqe cqe = *first;
	const char *syndrome;
	uint32_t wqebb;

	find_cause(s, &part, &cqe);
	syndrome = rnic_syndrome_text(cqe.syndrome);
	if (part == SESSION_REPLIES)
		part = 0;
	if (cqe.syndrome == CQE_SYND_FLUSH)
		verdict_set(v, VERDICT_QUEUE, true,
			"a queue failed, though no step of it did: the NIC ended it, or the client broke a "
			"rule (%s, %#x)",
			syndrome, cqe.vendor);
	else if (cqe.receive && cqe.syndrome == CQE_SYND_LOCAL_LENGTH)
		verdict_set(v, VERDICT_REQUEST, true, "a request was longer than %u bytes (%s, %#x)",
			o->img->arg_len, syndrome, cqe.vendor);
	else if (cqe.receive)
		verdict_set(v, VERDICT_REQUEST, true, "receiving a request failed: %s (%#x)", syndrome,
			cqe.vendor);
	else if (part == SESSION_RECYCLER)
		verdict_set(v, VERDICT_QUEUE, true,
			"WQE %u of the recycler, the queue that arms the chain anew, failed: %s (%#x)",
			cqe.index, syndrome, cqe.vendor);
	else if (s->foreign)
		verdict_set(v, verdict_kind_of(cqe.syndrome, part == 0), true,
			"a step in queue %u failed: %s (%#x)", part, syndrome, cqe.vendor);
	else if (part == SESSION_LOOP)
		verdict_of_loop(v, o->program, o->conf->path, &cqe);
	else if (!in_image(s, part, cqe.index, &wqebb))
		verdict_set(v, VERDICT_QUEUE, true, "a NOP that pads a queue failed: %s (%#x)", syndrome,
			cqe.vendor);
	else
		verdict_of_step(v, o->program, o->conf->path, part, wqebb, &cqe);
	v->syndrome = cqe.syndrome;
	v->vendor = cqe.vendor;
}

/* True if the daemon asked for this event of a CQ: it paces a recycled session, or waits for a request */
static bool is_asked_for(const struct session *s, unsigned part)
{
	return (session_is_paced(s) && part == SESSION_REPLIES) || (part == 0 && s->budgets.resting);
}

/* Errors of the CQ have been looked for. An event that was not asked for is a SEND marked as solicited */
static int count_event(struct session *s, unsigned part, struct verdict *v)
{
	bool asked = is_asked_for(s, part);

	if (part == 0)
		s->budgets.resting = false;
	if (asked || ++s->counters.false_alarms <= FALSE_ALARMS_MAX)
		return 0;
	verdict_set(v, VERDICT_REQUEST, true, "more than %d SENDs of the client were solicited",
		FALSE_ALARMS_MAX);
	return 1;
}

static void arm_again(struct session *s, unsigned part, struct rnic_cq *cq)
{
	if (part < s->offload->img->nqueues)
		session_seek(s, part);
	rnic_cq_arm(cq, true);
}

int session_event(struct session *s, unsigned cookie, struct verdict *v)
{
	unsigned part = cookie & ~(unsigned)SESSION_COOKIE_QP;
	struct rnic_cq *cq = session_cq(s, part);
	struct rnic_cqe cqe;

	if (!cq)
		return 0;
	if (rnic_cq_find_error(cq, &cqe)) {
		session_fault(s, part, &cqe, v);
		return 1;
	}
	if (cookie & SESSION_COOKIE_QP) {
		verdict_set(v, VERDICT_QUEUE, true, "the device reports that queue pair %#x is broken",
			session_qpn(s, part));
		return 1;
	}
	if (count_event(s, part, v))
		return 1;
	arm_again(s, part, cq);
	/* An error between the first look and arming raises no event */
	if (!rnic_cq_find_error(cq, &cqe))
		return 0;
	session_fault(s, part, &cqe, v);
	return 1;
}
