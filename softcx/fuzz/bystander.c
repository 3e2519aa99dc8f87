/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bystander.c - a correct program beside wrong ones. It makes transfers of every kind between two queue pairs
 * of its own, checks each, and compares all of its memory with what must be there. Exits with 0 on SIGTERM,
 * or with 1 after a line that describes the fault.
 */
#include "softcx/fuzz/random.h"
#include "softcx/fuzz/shared.h"
#include "softcx/fuzz/verbs.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { AREA = 8192, AREAS = 8, MEMORY = AREA * AREAS, MOST = 4000, WAIT_SECONDS = 60 };
/* Areas with odd numbers are never touched. */
enum { FROM = 0, TO = 2, BACK = 4, COUNTER = 6 };

static uint8_t memory[MEMORY] __attribute__((aligned(4096))), expected[MEMORY];
static volatile sig_atomic_t stopped;
static struct ibv_cq *cq;
static struct ibv_qp *qp[2];
static struct ibv_mr *mr;
static uint64_t rng;

static void on_stop(int sig)
{
	(void)sig;
	stopped = 1;
}

__attribute__((noreturn)) static void wrong(const char *what, const char *more)
{
	fprintf(stderr, "the bystander: %s%s%s\n", what, *more ? ": " : "", more);
	exit(1);
}

static void completion(const char *what, unsigned n)
{
	time_t end = time(NULL) + WAIT_SECONDS;
	struct ibv_wc wc;

	while (n) {
		int got = ibv_poll_cq(cq, 1, &wc);

		if (got < 0)
			wrong(what, "the CQ cannot be polled");
		if (got > 0 && wc.status != IBV_WC_SUCCESS)
			wrong(what, ibv_wc_status_str(wc.status));
		n -= (unsigned)got;
		if (got == 0 && time(NULL) > end)
			wrong(what, "no completion");
		if (got == 0)
			sched_yield();
	}
}

static void post(struct ibv_qp *on, struct ibv_send_wr *wr, const char *what)
{
	struct ibv_send_wr *bad;

	wr->send_flags = IBV_SEND_SIGNALED;
	wr->wr.rdma.rkey = wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? wr->wr.rdma.rkey : mr->rkey;
	if (ibv_post_send(on, wr, &bad) != 0)
		wrong(what, "cannot be posted");
}

static struct ibv_sge place(unsigned area, size_t offset, size_t len)
{
	return (struct ibv_sge){(uintptr_t)memory + area * AREA + offset, (uint32_t)len, mr->lkey};
}

static void transfer(enum ibv_wr_opcode op, unsigned local, unsigned remote, size_t offset, size_t len)
{
	struct ibv_sge sge = place(local, offset, len);
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = op};

	wr.wr.rdma.remote_addr = (uintptr_t)memory + remote * AREA + offset;
	post(qp[fuzz_pick(&rng, 2)], &wr, op == IBV_WR_RDMA_READ ? "READ" : "WRITE");
	completion(op == IBV_WR_RDMA_READ ? "READ" : "WRITE", 1);
}

static void message(size_t offset, size_t len)
{
	struct ibv_sge from = place(FROM, offset, len), to = place(TO, offset, len);
	struct ibv_recv_wr recv = {.sg_list = &to, .num_sge = 1}, *bad;
	struct ibv_send_wr send = {.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND};
	unsigned way = fuzz_pick(&rng, 2);

	if (ibv_post_recv(qp[!way], &recv, &bad) != 0)
		wrong("RECV", "cannot be posted");
	post(qp[way], &send, "SEND");
	completion("SEND", 2);
}

static void count(void)
{
	struct ibv_sge sge = place(COUNTER, 64, 8);
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};
	uint64_t value;

	memcpy(&value, expected + COUNTER * AREA, 8);
	memcpy(expected + COUNTER * AREA + 64, &value, 8);
	value += 7;
	memcpy(expected + COUNTER * AREA, &value, 8);
	wr.wr.atomic.remote_addr = (uintptr_t)memory + COUNTER * AREA;
	wr.wr.atomic.rkey = mr->rkey;
	wr.wr.atomic.compare_add = 7;
	wr.send_flags = IBV_SEND_SIGNALED;
	if (ibv_post_send(qp[0], &wr, &(struct ibv_send_wr *){NULL}) != 0)
		wrong("FETCH_ADD", "cannot be posted");
	completion("FETCH_ADD", 1);
}

static void one_round(void)
{
	size_t len = 1 + fuzz_pick(&rng, MOST), offset = fuzz_pick(&rng, AREA - MOST);
	uint8_t *from = memory + FROM * AREA + offset;

	for (size_t i = 0; i < len; i++)
		from[i] = (uint8_t)fuzz_random(&rng);
	memcpy(expected + FROM * AREA + offset, from, len);
	if (fuzz_pick(&rng, 2))
		transfer(IBV_WR_RDMA_WRITE, FROM, TO, offset, len);
	else
		message(offset, len);
	memcpy(expected + TO * AREA + offset, from, len);
	transfer(IBV_WR_RDMA_READ, BACK, TO, offset, len);
	memcpy(expected + BACK * AREA + offset, from, len);
	count();
	for (size_t i = 0; i < MEMORY; i++) {
		char where[80];

		if (memory[i] == expected[i])
			continue;
		snprintf(where, sizeof(where), "0x%02x at byte %zu of area %zu, expected 0x%02x", memory[i],
			i % AREA, i / AREA, expected[i]);
		wrong("memory that nobody may write has changed, or a transfer went wrong", where);
	}
}

static void make_queues(void)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			   IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_context *ctx = fuzz_device();
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1}};

	mr = pd ? ibv_reg_mr(pd, memory, MEMORY, access) : NULL;
	cq = ctx ? ibv_create_cq(ctx, 64, NULL, NULL, 0) : NULL;
	init.send_cq = init.recv_cq = cq;
	for (unsigned i = 0; i < 2; i++)
		qp[i] = mr && cq ? ibv_create_qp(pd, &init) : NULL;
	if (!qp[0] || !qp[1] || fuzz_connect(qp[0], qp[1]->qp_num) || fuzz_connect(qp[1], qp[0]->qp_num))
		wrong("no queues", "");
}

int main(void)
{
	const struct sigaction stop = {.sa_handler = on_stop};
	struct fuzz_shared *shared = fuzz_shared_map();

	if (!shared)
		wrong("no shared memory", "");
	sigaction(SIGTERM, &stop, NULL);
	for (size_t i = 0; i < MEMORY; i++)
		memory[i] = expected[i] = (uint8_t)fuzz_random(&rng);
	make_queues();
	shared->bystander = (struct fuzz_place){(uintptr_t)memory, mr->rkey, qp[0]->qp_num};
	while (!stopped) {
		one_round();
		__atomic_add_fetch(&shared->rounds, 1, __ATOMIC_RELAXED);
		usleep(2000);
	}
	return 0;
}
