/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reddn_poll() takes all CQEs that there are, and only if no reply is left of those before. So a caller who
 * asks for one result at a time does not begin with the CQ each time.
 */
#include "libclient/connection.h"
#include "libclient/part.h"
#include "libclient/public.h"
#include "libclient/shards.h"

#include <arpa/inet.h>
#include <errno.h>

/*
 * EVENTS_EVERY: empty polls between two checks for a disconnect, which take a system call. BATCH: CQEs of an
 * ibv_poll_cq().
 */
enum { EVENTS_EVERY = 256, BATCH = 16 };

static NOINLINE void failed(struct reddn *c, enum ibv_wc_status status, uint32_t vendor_err)
{
	if (status != IBV_WC_WR_FLUSH_ERR) {
		reddn_break(c, -EIO, "the NIC reports: %s (vendor syndrome 0x%x)", ibv_wc_status_str(status),
			vendor_err);
		return;
	}
	reddn_check_events(c);
	reddn_break(c, -ECONNRESET, "%s",
		c->session.hangup ? "the server closed the connection" : "the connection was lost");
}

static NOINLINE void violated(struct reddn *c, const struct reddn_connection *k, uint32_t number)
{
	reddn_break(c, -EPROTO, "protocol violated: reply %u when %u was due", number, (uint32_t)k->arrived);
}

/* Of signal_every SENDs one has a CQE. */
static void sent(const struct reddn *c, uint64_t wr_id)
{
	struct reddn_connection *k = (struct reddn_connection *)(uintptr_t)(wr_id - REDDN_SEND);

	k->reclaimed += c->session.signal_every;
}

/*
 * A RECV got a number, as an immediate or in a message. The opcode is not looked at: what counts is that the
 * number is the one that is due, and what is in its slot. Returns the slot, or NULL.
 */
static struct reddn_slot *received(struct reddn *c, uint64_t wr_id, uint32_t number)
{
	struct reddn_connection *k = (struct reddn_connection *)(uintptr_t)wr_id;
	struct reddn_slot *s = k->arrived_slot;

	if (k->arrived == k->sent || number != (uint32_t)k->arrived) {
		violated(c, k, number);
		return NULL;
	}
	k->arrived++;
	k->arrived_slot = s->next;
	return s;
}

/* Process the CQE that @cq is at. Returns the slot of the reply that has come with it, or NULL. */
static struct reddn_slot *read_completion(struct reddn *c, struct ibv_cq_ex *cq)
{
	if (cq->status != IBV_WC_SUCCESS)
		failed(c, cq->status, ibv_wc_read_vendor_err(cq));
	else if (cq->wr_id & REDDN_SEND)
		sent(c, cq->wr_id);
	else
		return received(c, cq->wr_id, ntohl(ibv_wc_read_imm_data(cq)));
	return NULL;
}

/* Replies become c->arrived, which is empty. A CQE more than there may be replies is not asked for. */
static void take(struct reddn *c)
{
	struct ibv_poll_cq_attr attr = {0};
	struct ibv_cq_ex *cq = c->session.cq_ex;
	struct reddn_slot **tail = &c->arrived;
	uint32_t outstanding = c->busy;
	int r = ibv_start_poll(cq, &attr);

	if (r == 0) {
		do {
			struct reddn_slot *s = read_completion(c, cq);

			if (s) {
				*tail = s;
				tail = &s->next_arrived;
				if (--outstanding == 0)
					break;
			}
		} while ((r = ibv_next_poll(cq)) == 0);
		ibv_end_poll(cq);
		*tail = NULL;
	}
	if (r && r != ENOENT)
		reddn_break(c, -EIO, "cannot poll the completion queue");
}

static struct reddn_slot *read_wc(struct reddn *c, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		failed(c, wc->status, wc->vendor_err);
	else if (wc->wr_id & REDDN_SEND)
		sent(c, wc->wr_id);
	else
		return received(c, wc->wr_id, reddn_session_number(&c->session, wc));
	return NULL;
}

/* The same where the provider knows ibv_poll_cq() only, or replies end with a SEND. */
static NOINLINE void take_batches(struct reddn *c)
{
	struct reddn_slot **tail = &c->arrived;
	struct ibv_wc wc[BATCH];
	int n;

	do {
		n = ibv_poll_cq(c->session.cq, BATCH, wc);
		if (n < 0)
			reddn_break(c, -EIO, "cannot poll the completion queue");
		for (int i = 0; i < n; i++) {
			struct reddn_slot *s = read_wc(c, &wc[i]);

			if (s) {
				*tail = s;
				tail = &s->next_arrived;
			}
		}
	} while (n == BATCH);
	*tail = NULL;
}

static void take_completions(struct reddn *c)
{
	if (c->session.cq_ex && !c->session.sends)
		take(c);
	else
		take_batches(c);
}

/* Replies that came before the server disconnected still count. */
static NOINLINE void hang_up(struct reddn *c)
{
	take_completions(c);
	if (!c->arrived)
		reddn_break(c, -ECONNRESET, "the server closed the connection");
}

static void look(struct reddn *c)
{
	take_completions(c);
	if (c->arrived)
		return;
	if (++c->idle_polls % EVENTS_EVERY == 0)
		reddn_check_events(c);
	if (c->session.hangup)
		hang_up(c);
	if (c->standby.wanted && c->state == REDDN_UP && !c->arrived)
		reddn_look_after(c);
}

static NOINLINE int poll_nic(struct reddn *c, struct reddn_result *res, const struct reddn_result *end)
{
	if (LIKELY(c->state == REDDN_UP))
		look(c);
	if (c->arrived)
		return reddn_report_arrived(c, res, end);
	if (LIKELY(!c->exceptional))
		return 0;
	if (c->state != REDDN_UP || c->before.connection)
		reddn_recover(c);
	return reddn_report_rest(c, res, res, end);
}

static int poll_one(struct reddn *c, struct reddn_result *res, const struct reddn_result *end)
{
	return c->arrived ? reddn_report_arrived(c, res, end) : poll_nic(c, res, end);
}

static bool has_work(const struct reddn *c)
{
	return c->busy || c->exceptional || c->standby.wanted;
}

static bool route_strays(struct reddn *whole)
{
	bool ended = reddn_shards_route(whole);

	for (struct reddn *p = whole->parts; p; p = reddn_next_of(whole, p))
		reddn_send_retries(p);
	return ended;
}

/* The handle and its parts have their turns, also if the caller has room for the results of one. A part that
 * is refused has reported that with its requests */
static NOINLINE int poll_all(struct reddn *c, struct reddn_result *res, const struct reddn_result *end)
{
	struct reddn *const first = c->polled, *p = first;
	struct reddn_result *at = res;
	bool busy = false;
	int own = 0;

	c->polled = reddn_next_of(c, first);
	c->polled = c->polled ? c->polled : c;
	do {
		int n;

		if (p != c)
			reddn_release_held(p);
		n = at < end && has_work(p) && !p->is_whole ? poll_one(p, at, end) : 0;
		at += n > 0 ? n : 0;
		if (p->is_part && p->state == REDDN_AWAY && reddn_part_give_back(p->owner, p))
			reddn_send_retries(p->owner);
		if (p == c)
			own = n;
		else
			busy |= p->busy > 0;
		p = reddn_next_of(c, p);
		p = p ? p : c;
	} while (p != first);
	/* The caller may sleep next */
	if (c->strays && route_strays(c) && at == res)
		return poll_all(c, res, end);
	return at > res ? (int)(at - res) : busy ? 0 : own;
}

PUBLIC int reddn_poll(struct reddn *c, struct reddn_result *res, int max)
{
	reddn_release_held(c);
	if (max <= 0)
		return max ? -EINVAL : 0;
	if (!LIKELY(!c->parts))
		return poll_all(c, res, res + max);
	return poll_one(c, res, res + max);
}
