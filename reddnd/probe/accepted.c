/* SPDX-License-Identifier: BSD-2-Clause */
/* The path of a connection: a client of this process connects, sends a word, and gets one back. */
#include "reddnd/probe/bed.h"

#include "mlx5/wqe.h"
#include "reddnd/rnic/conn.h"
#include "reddnd/rnic/device.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

enum { PAGE = 4096, WQEBBS = 16, LOG_CQES = 4, MEMORY = 4 * PAGE, SIZE = 5 * PAGE };

#define QUESTION 0x1122334455667788ull
#define ANSWER 0x99aabbccddeeff00ull

struct words {
	uint64_t question, answer;
};

struct server {
	struct rnic_block block;
	struct rnic_cq send_cq, recv_cq;
	struct rnic_qp qp;
	struct rnic_conn *conn;
	int error;
};

static int init(struct server *s, const struct master_qp *master)
{
	struct rnic_cq_attr cq = {.cqes_off = PAGE, .log_size = LOG_CQES, .overrun_ignore = true};
	const struct rnic_qp_attr qp = {.wq_off = 3 * PAGE,
		.rq_entries = 16,
		.rq_stride = WQE_DS,
		.sq_wqebbs = WQEBBS,
		.db_off = 2 * RNIC_DB_BYTES,
		.send_cq = &s->send_cq,
		.recv_cq = &s->recv_cq};
	int r = rnic_block_init(
		&s->block, master->block.pd, master->block.arena, SIZE, MEMORY, SIZE - MEMORY);

	if (r == 0)
		r = rnic_cq_init(&s->send_cq, &s->block, &cq);
	cq.cqes_off += PAGE;
	cq.db_off = RNIC_DB_BYTES;
	if (r == 0)
		r = rnic_cq_init(&s->recv_cq, &s->block, &cq);
	return r == 0 ? rnic_qp_init(&s->qp, &s->block, &qp) : r;
}

static void deinit(struct server *s)
{
	if (s->conn)
		rnic_conn_free(s->conn);
	rnic_qp_deinit(&s->qp);
	rnic_cq_deinit(&s->recv_cq);
	rnic_cq_deinit(&s->send_cq);
	rnic_block_deinit(&s->block);
}

static void put_sge(const struct server *s, uint8_t *at, uint64_t offset)
{
	wqe_put_sge(at, sizeof(uint64_t), s->block.lkey, s->block.iova + offset);
}

/* ---- the connection manager's events ---------------------------------------------------- */

static void request(void *arg, struct rnic_conn *conn, const void *data, size_t size)
{
	struct server *s = arg;

	(void)data;
	(void)size;
	if (s->conn) { /* somebody else's */
		rnic_conn_reject(conn, NULL, 0);
		rnic_conn_free(conn);
		return;
	}
	s->conn = conn;
	put_sge(s, s->qp.rq, offsetof(struct words, question));
	s->error = rnic_conn_resolve(conn, s->block.dev);
	if (s->error == 0)
		s->error = rnic_conn_connect(conn, &s->qp, false);
	if (s->error == 0)
		rnic_qp_post_recvs(&s->qp, 1);
	if (s->error == 0)
		s->error = rnic_conn_accept(conn, 1, s->qp.qpn, NULL, 0);
	if (s->error < 0)
		rnic_conn_reject(conn, NULL, 0);
}

static void established(void *arg, uint64_t number)
{
	(void)arg;
	(void)number;
}

static void gone(void *arg, uint64_t number, const char *why)
{
	(void)arg;
	(void)number;
	(void)why;
}

/* Until there is a CQE, or patience ends. It counts naps: the client is on this machine, which may stand
 * still */
static bool serve(struct server *s, struct rnic_cm *cm, const struct rnic_cq *cq)
{
	struct rnic_cqe cqe;

	for (unsigned ms = 0; ms < BED_PATIENCE_MS && !rnic_cq_peek(cq, 0, &cqe) && s->error == 0; ms++) {
		s->error = rnic_cm_dispatch(cm);
		bed_sleep(1);
	}
	return rnic_cq_peek(cq, 0, &cqe) && !cqe.error;
}

/* ---- the check -------------------------------------------------------------------------- */

/* Only the answer takes the path that is tried: if nothing arrives, the client is late */
static int answer(struct server *s, struct rnic_cm *cm, struct probe_result *result)
{
	struct words *w = (struct words *)(s->block.mem + MEMORY);
	uint8_t send[RNIC_WQEBB_BYTES] = {
		[WQE_OPCODE] = WQE_OP_SEND, [WQE_DSCOUNT] = 2, [WQE_FLAGS] = WQE_SIGNALLED};
	struct rnic_cqe cqe;

	if (!serve(s, cm, &s->recv_cq) && rnic_cq_peek(&s->recv_cq, 0, &cqe))
		return probe_denies(result, "the client's message arrives with an error: %s",
			rnic_syndrome_text(cqe.syndrome));
	if (!rnic_cq_peek(&s->recv_cq, 0, &cqe))
		return s->error < 0 ? probe_denies(result, "the connection cannot be accepted: %s",
					      strerror(-s->error))
				    : probe_cannot(result, -ETIMEDOUT, "nothing of the client arrived");
	if (w->question != QUESTION)
		return probe_denies(result, "another message arrived");
	w->answer = ANSWER;
	put_sge(s, send + WQE_SEND_SGE, offsetof(struct words, answer));
	rnic_qp_post(&s->qp, send);
	return serve(s, cm, &s->send_cq) ? 1 : probe_denies(result, "the answer does not reach the client");
}

/* A client that comes now is refused, instead of waiting for somebody who listens no more */
static void leave(struct server *s, struct rnic_cm **cm)
{
	if (s->conn)
		rnic_conn_free(s->conn);
	s->conn = NULL;
	rnic_cm_free(*cm);
	*cm = NULL;
}

static int visit(struct server *s, struct rnic_cm **cm, const char *address,
	const struct probe_visitors *visitors, struct probe_result *result)
{
	struct rnic_visitor *visitor;
	uint64_t word;
	char why[120];
	int r = rnic_cm_bind(*cm, address, 0), e;

	if (r == 0)
		r = rnic_cm_listen(*cm);
	if (r == 0)
		r = visitors->start(&visitor, address, rnic_cm_port(*cm), QUESTION);
	if (r < 0)
		return r;
	r = answer(s, *cm, result);
	if (r <= 0)
		leave(s, cm);
	e = visitors->end(visitor, &word, why, sizeof(why));
	if (r <= 0)
		return r;
	if (e < 0)
		return e == -ETIMEDOUT ? probe_cannot(result, e, "%s", why) : probe_denies(result, "%s", why);
	return word == ANSWER ? 1 : probe_denies(result, "the client got another answer");
}

int check_accepted(struct probe *probe, struct probe_result *result)
{
	static const struct rnic_cm_ops ops = {.request = request, .established = established, .gone = gone};
	struct server s = {0};
	struct rnic_identity id;
	struct rnic_cm *cm = NULL;
	int r = rnic_identity_read(probe->master->block.dev, &id);

	if (!probe->visitors)
		return probe_cannot(result, -EOPNOTSUPP, "there is no client to try it with");
	if (r == 0 && !*id.address)
		return probe_cannot(result, -EADDRNOTAVAIL, "the port has no GID with an IP address");
	if (r == 0)
		r = rnic_cm_new(&cm, &ops, &s, NULL);
	if (r == 0)
		r = init(&s, probe->master);
	if (r == 0)
		r = visit(&s, &cm, id.address, probe->visitors, result);
	deinit(&s);
	if (cm)
		rnic_cm_free(cm);
	return r;
}
