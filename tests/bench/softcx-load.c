/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * softcx-load - loads the emulated NIC in one way and measures. Run it with `softcx run`:
 *
 *	softcx-load NIC-PID WAY [N]
 *
 * Prints one JSON object with the wall time of the work and the CPU time of process NIC-PID. Ways:
 *	writes   8-byte WRITEs, 64 to a doorbell
 *	copies   64 KiB WRITEs, and memcpy() of the same memory
 *	idle     nothing, with a connected queue pair and an armed CQ
 *	wake     one WRITE after 50 ms at rest, many times
 *	one N    single WRITEs on one queue pair, many at a time and then one, N others connected and idle
 *	spin [x] polls an empty CQ, or an extended one, until its standard input ends
 *	volley   two threads answer each other's WRITEs; they poll memory and never yield
 */
#include "tests/bench/nic-time.h"
#include "tests/lib/arg.h"
#include "tests/lib/rc.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RUN_S = 2, MEM = 16 << 20, COPY = 64 << 10, WAKES = 40, MAX_SAMPLES = 1 << 20 };

static unsigned nic;

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* ---- ways ------------------------------------------------------------------------------- */

/** Keeps @depth requests of @len bytes outstanding on a queue pair connected to itself. Returns their number.
 */
static uint64_t pump(
	struct rc *rc, struct ibv_qp *qp, uint32_t len, unsigned chain, unsigned depth, double seconds)
{
	struct ibv_send_wr wr[64] = {0}, *bad;
	struct ibv_sge sge[64];
	uint64_t posted = 0, done = 0, at = 0;
	double end = nic_time_now() + seconds;
	struct ibv_wc wc[16];
	bool more = true;

	while (more || done < posted) {
		int n;

		for (unsigned i = 0; i < chain; i++, at = (at + len) % (MEM / 2)) {
			sge[i] = (struct ibv_sge){(uintptr_t)rc->mem + at, len, rc->mr->lkey};
			wr[i] = (struct ibv_send_wr){.sg_list = &sge[i],
				.num_sge = 1,
				.opcode = IBV_WR_RDMA_WRITE,
				.next = i + 1 < chain ? &wr[i + 1] : NULL,
				.send_flags = i + 1 < chain ? 0 : IBV_SEND_SIGNALED,
				.wr.rdma = {(uintptr_t)rc->mem + MEM / 2 + at, rc->mr->rkey}};
		}
		while (more && posted - done + chain <= depth) {
			if (ibv_post_send(qp, wr, &bad) != 0)
				rc_die("ibv_post_send");
			posted += chain;
		}
		n = ibv_poll_cq(rc->cq, 16, wc);
		for (int i = 0; i < n; i++)
			if (wc[i].status != IBV_WC_SUCCESS)
				rc_die("completion \"%s\"", ibv_wc_status_str(wc[i].status));
		done += (uint64_t)n * chain;
		more = more && nic_time_now() < end;
	}
	return done;
}

static struct ibv_qp *to_itself(struct rc *rc, uint32_t depth)
{
	struct ibv_qp *qp = rc_qp(rc, depth);
	struct rc_peer self = rc_self(rc, qp);

	rc_connect(qp, &self);
	return qp;
}

static void writes(struct rc *rc)
{
	struct ibv_qp *qp = to_itself(rc, 4096);
	struct nic_time span;
	uint64_t n;

	pump(rc, qp, 8, 64, 4096, 0.2);
	span = nic_time_start(nic);
	n = pump(rc, qp, 8, 64, 4096, RUN_S);
	nic_time_stop(&span);
	printf("{\"per_s\": %.0f, \"per_cpu_s\": %.0f}\n", (double)n / span.wall, (double)n / span.cpu);
	ibv_destroy_qp(qp);
}

static void copies(struct rc *rc)
{
	struct ibv_qp *qp = to_itself(rc, 64);
	clock_t begin;
	double memcpys;
	struct nic_time span;
	uint64_t n, k = 0;

	memset(rc->mem, 1, MEM);
	pump(rc, qp, COPY, 1, 16, 0.2);
	span = nic_time_start(nic);
	n = pump(rc, qp, COPY, 1, 16, RUN_S);
	nic_time_stop(&span);
	begin = clock(); /* CPU time, as for the NIC */
	for (size_t at = 0; clock() < begin + RUN_S * CLOCKS_PER_SEC; at = (at + COPY) % (MEM / 2), k++)
		memcpy(rc->mem + MEM / 2 + at, rc->mem + at, COPY);
	memcpys = (double)k * COPY * CLOCKS_PER_SEC / (double)(clock() - begin);
	printf("{\"bytes_per_s\": %.0f, \"bytes_per_cpu_s\": %.0f, \"memcpy_bytes_per_s\": %.0f}\n",
		(double)n * COPY / span.wall, (double)n * COPY / span.cpu, memcpys);
	ibv_destroy_qp(qp);
}

static void idle(struct rc *rc)
{
	struct ibv_qp *qp = to_itself(rc, 64);
	struct rc_peer self = rc_self(rc, qp);
	struct nic_time span;

	rc_post(rc, qp, IBV_WR_RDMA_WRITE, 0, &self, 4096, 8);
	rc_expect(rc, IBV_WC_SUCCESS);
	if (ibv_req_notify_cq(rc->cq, 0) != 0)
		rc_die("ibv_req_notify_cq");
	sleep(1);
	span = nic_time_start(nic);
	sleep(2 * RUN_S);
	nic_time_stop(&span);
	printf("{\"cpu\": %.6f}\n", span.cpu / span.wall);
	ibv_destroy_qp(qp);
}

static void wake(struct rc *rc)
{
	struct ibv_qp *qp = to_itself(rc, 64);
	struct rc_peer self = rc_self(rc, qp);
	double took[WAKES];

	for (unsigned i = 0; i < WAKES; i++) {
		usleep(50000);
		took[i] = nic_time_now();
		rc_post(rc, qp, IBV_WR_RDMA_WRITE, 0, &self, 4096, 8);
		rc_expect(rc, IBV_WC_SUCCESS);
		took[i] = nic_time_now() - took[i];
	}
	qsort(took, WAKES, sizeof(took[0]), by_size);
	printf("{\"median_us\": %.1f, \"p90_us\": %.1f, \"max_us\": %.1f}\n", took[WAKES / 2] * 1e6,
		took[WAKES * 9 / 10] * 1e6, took[WAKES - 1] * 1e6);
	ibv_destroy_qp(qp);
}

static void one(struct rc *rc, unsigned others)
{
	struct ibv_qp *qp, **idlers = calloc(others + 1, sizeof(struct ibv_qp *));
	double *took = calloc(MAX_SAMPLES, sizeof(double)), end;
	struct rc_peer self;
	struct nic_time span;
	uint64_t busy;
	unsigned n = 0;

	if (!took || !idlers)
		rc_die("memory");
	for (unsigned i = 0; i < others; i++)
		idlers[i] = to_itself(rc, 1);
	qp = to_itself(rc, 64);
	self = rc_self(rc, qp);
	pump(rc, qp, 8, 1, 32, 0.1);
	span = nic_time_start(nic);
	busy = pump(rc, qp, 8, 1, 32, 0.5);
	nic_time_stop(&span);
	end = nic_time_now() + 0.5;
	while (nic_time_now() < end && n < MAX_SAMPLES) {
		took[n] = nic_time_now();
		rc_post(rc, qp, IBV_WR_RDMA_WRITE, 0, &self, 4096, 8);
		rc_expect(rc, IBV_WC_SUCCESS);
		took[n] = nic_time_now() - took[n];
		n++;
	}
	qsort(took, n, sizeof(took[0]), by_size);
	printf("{\"per_s\": %.0f, \"cpu_us\": %.4f, \"median_us\": %.2f, \"p99_us\": %.2f}\n",
		(double)busy / span.wall, span.cpu / (double)busy * 1e6, took[n / 2] * 1e6,
		took[(uint64_t)n * 99 / 100] * 1e6);
	for (unsigned i = 0; i < others; i++)
		ibv_destroy_qp(idlers[i]);
	ibv_destroy_qp(qp);
	free(idlers);
	free(took);
}

/** Polls an empty CQ, or an extended one. */
static void spin(struct rc *rc, bool extended)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 16};
	struct ibv_cq_ex *cq = extended ? ibv_create_cq_ex(rc->ctx, &attr) : NULL;
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	struct ibv_wc wc;

	while (poll(&in, 1, 0) == 0)
		for (unsigned i = 0; i < 1000; i++)
			if (cq ? ibv_start_poll(cq, &(struct ibv_poll_cq_attr){0}) != ENOENT
			       : ibv_poll_cq(rc->cq, 1, &wc) != 0)
				rc_die("polling an empty CQ");
	if (cq)
		ibv_destroy_cq(ibv_cq_ex_to_cq(cq));
}

struct side {
	struct rc rc;
	struct ibv_qp *qp;
	struct rc_peer peer;
	_Atomic(bool) *over;
};

/** Waits for number @n of the peer. False: it sends no more. */
static bool volley_wait(const struct side *s, uint64_t n)
{
	while (__atomic_load_n((uint64_t *)s->rc.mem, __ATOMIC_ACQUIRE) != n)
		if (atomic_load_explicit(s->over, memory_order_relaxed))
			return false;
	return true;
}

static void volley_send(struct side *s, uint64_t n)
{
	struct ibv_wc wc[16];
	int got;

	memcpy(s->rc.mem + 8, &n, sizeof(n));
	rc_post(&s->rc, s->qp, IBV_WR_RDMA_WRITE, 8, &s->peer, 0, sizeof(n));
	got = ibv_poll_cq(s->rc.cq, 16, wc); /* of earlier ones */
	for (int i = 0; i < got; i++)
		if (wc[i].status != IBV_WC_SUCCESS)
			rc_die("completion \"%s\"", ibv_wc_status_str(wc[i].status));
}

static void *volley_return(void *arg)
{
	struct side *s = arg;

	for (uint64_t n = 1; volley_wait(s, n); n++)
		volley_send(s, n);
	return NULL;
}

static void volley(struct rc *rc)
{
	_Atomic(bool) over = false;
	struct side side[2] = {{.rc = *rc, .over = &over}, {.over = &over}};
	double *took = calloc(MAX_SAMPLES, sizeof(double)), end = nic_time_now() + 2 * RUN_S;
	unsigned n = 0;
	pthread_t thread;

	rc_open(&side[1].rc, 0, 4096, MAP_SHARED, 128);
	for (int i = 0; i < 2; i++) {
		side[i].qp = rc_qp(&side[i].rc, 64);
		side[!i].peer = rc_self(&side[i].rc, side[i].qp);
	}
	for (int i = 0; i < 2; i++)
		rc_connect(side[i].qp, &side[i].peer);
	if (!took || pthread_create(&thread, NULL, volley_return, &side[1]) != 0)
		rc_die("memory, or a thread");
	while (nic_time_now() < end && n < MAX_SAMPLES) {
		took[n] = nic_time_now();
		volley_send(&side[0], n + 1);
		volley_wait(&side[0], n + 1);
		took[n] = nic_time_now() - took[n];
		n++;
	}
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	qsort(took, n, sizeof(took[0]), by_size);
	printf("{\"volleys\": %u, \"median_us\": %.2f, \"p99_us\": %.2f, \"max_us\": %.2f}\n", n,
		took[n / 2] * 1e6, took[(uint64_t)n * 99 / 100] * 1e6, took[n - 1] * 1e6);
	for (int i = 0; i < 2; i++)
		ibv_destroy_qp(side[i].qp);
	rc_close(&side[1].rc);
	free(took);
}

int main(int argc, char **argv)
{
	const char *way = argc > 2 ? argv[2] : "";
	struct rc rc;

	if (argc < 3 || argc > 4) {
		fprintf(stderr, "usage: softcx-load NIC-PID WAY [N]\n");
		return 2;
	}
	nic = (unsigned)arg_number(argv[1], UINT_MAX);
	rc_open(&rc, 0, MEM, MAP_SHARED, 4096);
	if (strcmp(way, "writes") == 0)
		writes(&rc);
	else if (strcmp(way, "copies") == 0)
		copies(&rc);
	else if (strcmp(way, "idle") == 0)
		idle(&rc);
	else if (strcmp(way, "wake") == 0)
		wake(&rc);
	else if (strcmp(way, "one") == 0 && argc > 3)
		one(&rc, (unsigned)arg_number(argv[3], UINT_MAX));
	else if (strcmp(way, "spin") == 0)
		spin(&rc, argc > 3);
	else if (strcmp(way, "volley") == 0)
		volley(&rc);
	else
		rc_die("%s is no way to load a NIC", way);
	rc_close(&rc);
	return 0;
}
