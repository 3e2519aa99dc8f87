/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/nic/trace.h"
#include "mlx5/wqe.h"
#include "softcx/nic/ident.h"

#include "softcx/proto/proto.h"
#include "util/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum {
	RING = 16384,  /* records of a reader; a power of two */
	OWNERS = 1024, /* entries of the cache of owners; a power of two */
};

struct trace_owner {
	uint32_t qpn; /* 0: empty, no file has QP 0 */
	uint32_t dev, pid;
};

struct tracer {
	struct tracers *tracers;
	int fd;
	uint32_t pid;   /* 0: any */
	uint32_t kinds; /* of 1 << enum hw_trace_kind */
	uint32_t qpns[SOFTCX_TRACE_QPS];
	unsigned nqpns; /* 0: any */
	struct softcx_trace *ring;
	uint32_t head, tail; /* put, taken */
	uint32_t lost;       /* since the last record */
	bool ends, shut;
	LIST_ENTRY(tracer) link;
};

/* QPNs are handed out in a circle: one in the cache does not become somebody else's soon. */
static uint32_t owner(struct tracers *t, unsigned dev, uint32_t qpn)
{
	struct trace_owner *o = &t->owners[(qpn + dev) & (OWNERS - 1)];

	if (t->users != t->files->users)
		memset(t->owners, 0, OWNERS * sizeof(*t->owners));
	t->users = t->files->users;
	if (o->qpn != qpn || o->dev != dev)
		*o = (struct trace_owner){qpn, dev, (uint32_t)files_qp_owner(t->files, (int)dev, qpn)};
	return o->pid;
}

static bool wanted(const struct tracer *r, const struct softcx_trace *rec)
{
	if (r->ends || !(r->kinds >> rec->kind & 1) || (r->pid && r->pid != rec->pid))
		return false;
	for (unsigned i = 0; i < r->nqpns; i++)
		if (r->qpns[i] == rec->qpn)
			return true;
	return r->nqpns == 0;
}

static void put_lost(struct tracer *r)
{
	struct softcx_trace *rec = &r->ring[r->head++ & (RING - 1)];

	*rec = (struct softcx_trace){.ns = clock_read_ns(CLOCK_REALTIME), .lost = r->lost};
	r->lost = 0;
}

static void put(struct tracer *r, const struct softcx_trace *rec, const struct hw_trace *t)
{
	size_t bytes = (t->ds ? t->ds : 1u) * 16u;
	struct softcx_trace *slot;

	if (r->head - r->tail + 1 + (r->lost > 0) > RING) {
		r->lost++;
		return;
	}
	if (r->lost)
		put_lost(r);
	slot = &r->ring[r->head++ & (RING - 1)];
	memcpy(slot, rec, offsetof(struct softcx_trace, wqe));
	if (bytes > sizeof(slot->wqe))
		bytes = sizeof(slot->wqe);
	memcpy(slot->wqe, t->wqe, bytes);
	memset(slot->wqe + bytes, 0, sizeof(slot->wqe) - bytes);
}

/* Packets on a loop-back path have no headers; these are as if they went out and came back. */
static void loopback_av(struct hw_av *av, const struct hw_dev *dev, uint32_t qpn)
{
	hw_gid(dev, av->sgid_index, av->dgid);
	hw_gid_mac(av->dgid, av->dmac);
	av->hop_limit = 1;
	av->dscp = 0;
	av->udp_sport = (uint16_t)(0xc000 | (qpn & 0x3fff)); /* the entropy differs between queues */
}

static void add_path(struct softcx_trace *rec, const struct trace_source *source, const struct hw_trace *t)
{
	struct hw_dev *dev = source->tracers->files->devs[source->dev];
	const struct hw_qp *qp = hw_qp_find(dev, rec->qpn);
	struct hw_qp_mod mod;
	uint16_t sq, rq;

	if (!qp)
		return;
	hw_qp_query(qp, &mod, &sq, &rq);
	rec->dest_qpn = mod.dest_qpn;
	if (t->kind == HW_TRACE_WQE && t->type == HW_UD && t->ds >= WQE_UD_SGE_DS)
		mod.av = hw_datagram_av(dev, t->wqe);
	else if (mod.av.loopback)
		loopback_av(&mod.av, dev, rec->qpn);
	hw_gid(dev, mod.av.sgid_index, rec->sgid);
	memcpy(rec->dgid, mod.av.dgid, sizeof(rec->dgid));
	hw_gid_mac(rec->sgid, rec->smac);
	memcpy(rec->dmac, mod.av.dmac, sizeof(rec->dmac));
	rec->dscp = mod.av.dscp;
	rec->hop_limit = mod.av.hop_limit;
	rec->udp_sport = mod.av.udp_sport;
	rec->roce_v1 = !mod.av.loopback && hw_gid_is_v1(dev, mod.av.sgid_index);
}

static void on_trace(void *arg, const struct hw_trace *t)
{
	const struct trace_source *source = arg;
	if (!(source->tracers->kinds >> t->kind & 1))
		return;

	struct softcx_trace rec = {
		.kind = t->kind,
		.cqn = t->cqn,
		.number = t->number,
		.qpn = t->qpn,
		.index = t->idx,
		.type = t->type,
		.opcode = t->opcode,
		.opmod = t->opmod,
		.syndrome = t->syndrome,
		.ds = t->ds,
	};
	struct tracer *r;

	memcpy(rec.device, source->label, sizeof(rec.device));
	add_path(&rec, source, t);
	pthread_mutex_lock(&source->tracers->lock);
	rec.pid = owner(source->tracers, source->dev, t->qpn);
	rec.ns = clock_read_ns(CLOCK_REALTIME);
	LIST_FOREACH (r, &source->tracers->list, link)
		if (wanted(r, &rec))
			put(r, &rec, t);
	pthread_mutex_unlock(&source->tracers->lock);
}

static void hook(struct tracers *t, hw_trace_fn fn)
{
	for (unsigned i = 0; i < HOSTS_MAX_DEVS && t->source[i].tracers; i++)
		hw_set_trace(t->files->devs[i], fn, &t->source[i]);
}

void tracers_init(struct tracers *t, const struct files *files, unsigned ndevs)
{
	memset(t, 0, sizeof(*t));
	LIST_INIT(&t->list);
	pthread_mutex_init(&t->lock, NULL);
	t->files = files;
	for (unsigned i = 0; i < ndevs; i++) {
		t->source[i].tracers = t;
		t->source[i].dev = i;
		ident_dev(i, t->source[i].label);
	}
}

/* The kinds that some reader wants. */
static void find_kinds(struct tracers *t)
{
	struct tracer *r;

	t->kinds = 0;
	LIST_FOREACH (r, &t->list, link)
		t->kinds |= r->kinds;
}

static int parse_filter(struct tracer *r, const char *filter)
{
	while (*filter) {
		uint32_t n;
		int len = 0;

		if (sscanf(filter, " pid=%u%n", &n, &len) == 1 && len) {
			r->pid = n;
		} else if (sscanf(filter, " kinds=%u%n", &n, &len) == 1 && len) {
			r->kinds = n;
		} else if (sscanf(filter, " qp=%u%n", &n, &len) == 1 && len) {
			if (r->nqpns == SOFTCX_TRACE_QPS)
				return -EINVAL;
			r->qpns[r->nqpns++] = n;
		} else {
			return -EINVAL;
		}
		filter += len;
	}
	return 0;
}

int tracer_new(struct tracers *t, int fd, const char *filter, struct tracer **tracer)
{
	struct tracer *r = calloc(1, sizeof(*r));
	int rc = -ENOMEM;

	if (!r)
		return rc;
	r->tracers = t;
	r->fd = fd;
	r->kinds = 1 << HW_TRACE_WQE;
	rc = parse_filter(r, filter);
	if (rc == 0) {
		r->ring = calloc(RING, sizeof(*r->ring));
		if (!t->owners)
			t->owners = calloc(OWNERS, sizeof(*t->owners));
		rc = r->ring && t->owners ? 0 : -ENOMEM;
	}
	if (rc < 0) {
		free(r->ring);
		free(r);
		return rc;
	}
	if (LIST_EMPTY(&t->list))
		hook(t, on_trace);
	LIST_INSERT_HEAD(&t->list, r, link);
	find_kinds(t);
	*tracer = r;
	return 0;
}

void tracer_end(struct tracer *r)
{
	r->ends = true;
}

void tracer_free(struct tracer *r)
{
	struct tracers *t;

	if (!r)
		return;
	t = r->tracers;
	LIST_REMOVE(r, link);
	find_kinds(t);
	free(r->ring);
	free(r);
	if (LIST_EMPTY(&t->list)) {
		hook(t, NULL);
		free(t->owners);
		t->owners = NULL;
	}
}

/* True when there is more to send. */
static bool flush(struct tracer *r)
{
	while (r->head != r->tail) {
		uint32_t at = r->tail & (RING - 1), n = r->head - r->tail;

		n = n < SOFTCX_TRACE_PACKET ? n : SOFTCX_TRACE_PACKET;
		n = n < RING - at ? n : RING - at;
		if (send(r->fd, &r->ring[at], n * sizeof(*r->ring), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
			if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM)
				return true;
			/* the reader has gone; its connection will say so */
			r->tail = r->head;
			r->lost = 0;
			r->ends = true;
			break;
		}
		r->tail += n;
	}
	if (!r->ends || r->shut)
		return false;
	if (r->lost) {
		put_lost(r);
		return true;
	}
	shutdown(r->fd, SHUT_WR);
	r->shut = true;
	return false;
}

bool tracers_flush(struct tracers *t)
{
	struct tracer *r;
	bool more = false;

	if (LIST_EMPTY(&t->list))
		return false;
	pthread_mutex_lock(&t->lock);
	LIST_FOREACH (r, &t->list, link)
		more |= flush(r);
	pthread_mutex_unlock(&t->lock);
	return more;
}
