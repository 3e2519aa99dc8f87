/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client-calls - the costs of a call of libreddn, and of the plain verbs in it. Run it with `softcx run`:
 *
 *	client-calls HOST PORT OFFLOAD PARTS BASELINE-PORT KEY
 *
 * One half of the program traces the other in single steps and counts instructions. The numbers are exact,
 * need no counters of the processor, and do not depend on other work of the machine. The kernel's
 * instructions are not counted. System calls are counted in the same way. OFFLOAD is a table that has KEY,
 *and so has PARTS, which has a part for gets of KEYS keys, and the baseline-server at BASELINE-PORT. Prints a
 *JSON object per line.
 */
#include "libclient/reddn.h"
#include "tests/bench/ways/link.h"
#include "tests/bench/ways/requests.h"
#include "tools/common/tool.h"
#include "util/number.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH = 16, CALLS = DEPTH, KEYS = 4, LOOPED = 1000, ANSWER_BYTES = 4096, PATIENCE_MS = 10000 };

/* The kinds of counts between two SIGUSR1 of the traced half. */
enum counted { INSTRUCTIONS, SYSTEM_CALLS };

/* Shared by the halves. */
static struct {
	enum counted counted;
	uint64_t count, yields; /* yields: sched_yield() among the system calls */
} * shared;

static uint64_t empty_section; /* instructions to enter and leave a section */

static void must(bool good, const char *what)
{
	if (!good)
		exit(tool_complain("%s: %s", what, strerror(errno)));
}

/* ---- the half that traces --------------------------------------------------------------- */

static void count_call(pid_t pid)
{
	struct __ptrace_syscall_info info = {0};

	if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) <= 0 ||
		info.op != PTRACE_SYSCALL_INFO_ENTRY)
		return;
	shared->count++;
	shared->yields += info.entry.nr == SYS_sched_yield;
}

/* Traces @pid to its end. Returns the exit status. */
static int trace(pid_t pid)
{
	bool counting = false;
	int status, sig = 0;

	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		int stopped = WSTOPSIG(status);

		sig = 0;
		if (stopped == SIGUSR1) {
			counting = !counting;
			if (counting)
				shared->count = shared->yields = 0;
		} else if (stopped == (SIGTRAP | 0x80)) {
			count_call(pid);
		} else if (stopped == SIGTRAP && counting) {
			shared->count++;
		} else if (stopped != SIGSTOP) {
			sig = stopped;
		}
		if (ptrace(!counting                          ? PTRACE_CONT
			    : shared->counted == INSTRUCTIONS ? PTRACE_SINGLESTEP
							      : PTRACE_SYSCALL,
			    pid, 0, sig) < 0)
			return tool_complain("ptrace: %s", strerror(errno));
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

/* ---- the half that is traced ------------------------------------------------------------ */

static void begin(enum counted counted)
{
	shared->counted = counted;
	raise(SIGUSR1);
}

/* Returns the count since begin(). */
static uint64_t end(void)
{
	raise(SIGUSR1);
	return shared->counted == INSTRUCTIONS && shared->count > empty_section
		       ? shared->count - empty_section
		       : shared->count;
}

static void tell(const char *call, uint64_t instructions, unsigned calls)
{
	printf("{\"call\": \"%s\", \"calls\": %u, \"instructions\": %.1f}\n", call, calls,
		(double)instructions / calls);
}

static void pause_ms(long ms)
{
	struct timespec ts = {.tv_nsec = ms * 1000000};

	nanosleep(&ts, NULL);
}

/* Waits until the answers to CALLS requests have certainly arrived, without polling, which is counted. */
static void let_answers_come(void)
{
	pause_ms(200);
}

static void submit_all(struct reddn *c, const char *key, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		must(reddn_get_submit(c, key, strlen(key), i) == 0, "reddn_get_submit");
}

/* Takes all outstanding answers. */
static void collect(struct reddn *c, unsigned n)
{
	struct reddn_result res[DEPTH];

	while (n) {
		int got = reddn_wait(c, res, DEPTH, PATIENCE_MS);

		must(got > 0 && res[0].status == 0, "a get");
		n -= (unsigned)got;
	}
	reddn_release(c);
}

/* One request at a time */
static void library_alone(struct reddn *c, const char *key)
{
	struct reddn_result res;
	uint64_t instructions = 0;

	for (unsigned i = 0; i < CALLS; i++) {
		int got;

		submit_all(c, key, 1);
		let_answers_come();
		begin(INSTRUCTIONS);
		got = reddn_poll(c, &res, 1);
		instructions += end();
		must(got == 1, "an answer in time");
	}
	tell("reddn_poll, one result that comes alone, and its receive", instructions, CALLS);
}

static void library(struct reddn *c, const char *key)
{
	struct reddn_result res[DEPTH];
	int got = 0;

	/* the first calls do things that happen only once, as the linker's look-up of a function. From here
	 * on a round is CALLS gets, so that each has what is done once for a batch of sends or receives */
	for (unsigned i = 0; i < 4; i++) {
		submit_all(c, key, CALLS);
		collect(c, CALLS);
		must(reddn_poll(c, res, DEPTH) == 0, "reddn_poll");
	}
	begin(INSTRUCTIONS);
	for (unsigned i = 0; i < CALLS; i++)
		reddn_get_submit(c, key, strlen(key), i);
	tell("reddn_get_submit", end(), CALLS);
	let_answers_come();
	begin(INSTRUCTIONS);
	for (unsigned i = 0; i < CALLS - 1; i++)
		got += reddn_poll(c, &res[i], 1);
	tell("reddn_poll, one result", end(), CALLS - 1);
	begin(INSTRUCTIONS);
	got += reddn_poll(c, &res[CALLS - 1], 1);
	tell("reddn_poll, one result, and 16 receives are posted", end(), 1);
	must(got == CALLS, "answers in time");
	reddn_release(c);
	submit_all(c, key, CALLS);
	let_answers_come();
	begin(INSTRUCTIONS);
	got = reddn_poll(c, res, DEPTH);
	tell("reddn_poll, each of 16 results, and its receive", end(), CALLS);
	must(got == CALLS, "answers in time");
	begin(INSTRUCTIONS);
	for (unsigned i = 0; i < CALLS; i++)
		reddn_poll(c, res, DEPTH);
	tell("reddn_poll, nothing there", end(), CALLS);
	library_alone(c, key);
}

static void submit_keys(struct reddn *c, const struct reddn_key *keys, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		must(reddn_mget_submit(c, keys, KEYS, 0) == 0, "reddn_mget_submit");
}

static uint64_t sent_by(struct reddn *c)
{
	struct reddn_info info;

	reddn_get_info(c, &info);
	return info.sent;
}

/* Requests of several keys, when there is a session with the part for them: until then each key is one */
static void library_parts(struct reddn *c, const char *key)
{
	struct reddn_result res[CALLS * KEYS];
	struct reddn_key keys[KEYS];
	uint64_t before;
	int got;

	for (unsigned k = 0; k < KEYS; k++)
		keys[k] = (struct reddn_key){key, strlen(key)};
	do {
		before = sent_by(c);
		submit_keys(c, keys, 1);
		collect(c, KEYS);
	} while (sent_by(c) - before > 1);
	for (unsigned i = 0; i < 4; i++) {
		submit_keys(c, keys, CALLS);
		collect(c, CALLS * KEYS);
		must(reddn_poll(c, res, 1) == 0, "reddn_poll");
	}
	begin(INSTRUCTIONS);
	for (unsigned i = 0; i < CALLS; i++)
		reddn_mget_submit(c, keys, KEYS, 0);
	tell("reddn_mget_submit, 4 keys", end(), CALLS);
	let_answers_come();
	begin(INSTRUCTIONS);
	got = reddn_poll(c, res, CALLS * KEYS);
	tell("reddn_poll, each of 16 replies to 4 keys", end(), CALLS);
	must(got == CALLS * KEYS, "answers in time");
	reddn_release(c);
}

static void library_calls(struct reddn *c, const char *key)
{
	struct reddn_result res[DEPTH];
	unsigned asked = 0, done = 0;
	uint64_t calls;

	begin(SYSTEM_CALLS);
	while (done < LOOPED) {
		int n;

		while (asked < LOOPED && reddn_get_submit(c, key, strlen(key), asked) == 0)
			asked++;
		n = reddn_poll(c, res, DEPTH);
		must(n >= 0, "reddn_poll");
		done += (unsigned)n;
	}
	calls = end();
	printf("{\"call\": \"1000 gets, %u at a time\", \"calls\": %u, \"system_calls\": %" PRIu64
	       ", \"of_them_yields\": %" PRIu64 "}\n",
		DEPTH, LOOPED, calls, shared->yields);
}

static void verbs(const char *host, uint16_t port, const char *key)
{
	struct link l = {0};
	struct link_wish wish = {LINK_REQUESTS, DEPTH, 1};
	struct ibv_qp_cap cap = {4 * DEPTH, DEPTH, 1, 1, REQUEST_INLINE};
	struct ibv_sge sge;
	struct ibv_send_wr *bad_send,
		wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE};
	struct ibv_recv_wr *bad_recv, recvs[CALLS] = {0};
	struct request *q;
	struct ibv_wc wc;
	int got = 0;

	must(link_connect(&l, host, port, wish, cap) == 0 && be32toh(l.offer.reply_max) <= ANSWER_BYTES &&
			link_memory(&l, 2 * ANSWER_BYTES) == 0,
		"the baseline server");
	q = (struct request *)l.mem;
	*q = (struct request){
		.key_len = (uint32_t)strlen(key),
		.val_len = REQUEST_GET,
		.to = (uintptr_t)l.mem + ANSWER_BYTES,
		.rkey = l.mr->rkey,
	};
	memcpy(q->bytes, key, q->key_len);
	sge = (struct ibv_sge){(uintptr_t)q, (uint32_t)sizeof(*q) + q->key_len, l.mr->lkey};
	must(sge.length <= REQUEST_INLINE, "the length of the key");
	for (unsigned round = 0; round < 2; round++) { /* the second round counts */
		uint64_t post, poll, receive;

		for (unsigned i = 0; i < CALLS - 1; i++)
			recvs[i].next = &recvs[i + 1];
		begin(INSTRUCTIONS);
		must(ibv_post_recv(l.id->qp, recvs, &bad_recv) == 0, "ibv_post_recv");
		receive = end();
		begin(INSTRUCTIONS);
		for (unsigned i = 0; i < CALLS; i++)
			ibv_post_send(l.id->qp, &wr, &bad_send);
		post = end();
		let_answers_come();
		begin(INSTRUCTIONS);
		for (unsigned i = 0; i < CALLS; i++)
			got += ibv_poll_cq(l.cq, 1, &wc);
		poll = end();
		if (!round)
			continue;
		tell("ibv_post_send, inline", post, CALLS);
		tell("ibv_post_recv, each of 16", receive, CALLS);
		tell("ibv_poll_cq, one completion", poll, CALLS);
	}
	must(got == 2 * CALLS, "answers in time");
	begin(INSTRUCTIONS);
	for (unsigned i = 0; i < CALLS; i++)
		ibv_poll_cq(l.cq, 1, &wc);
	tell("ibv_poll_cq, nothing there", end(), CALLS);
	link_close(&l);
}

static struct reddn *connect_to(const char *host, uint16_t port, const char *offload)
{
	struct reddn_options opt = {.host = host, .port = port, .offload = offload, .depth = DEPTH};
	struct reddn *c;
	char err[256];

	if (reddn_connect(&c, &opt, err, sizeof(err)) < 0)
		exit(tool_complain("%s", err));
	return c;
}

static int measure(char **argv)
{
	uint64_t port, baseline;
	struct reddn *c;

	if (number_parse(argv[2], 1, UINT16_MAX, &port) || number_parse(argv[5], 1, UINT16_MAX, &baseline))
		return tool_complain("ports are numbers");
	c = connect_to(argv[1], (uint16_t)port, argv[3]);
	begin(INSTRUCTIONS);
	empty_section = end();
	begin(INSTRUCTIONS);
	empty_section = 0;
	empty_section = end();
	library(c, argv[6]);
	library_calls(c, argv[6]);
	reddn_close(c);
	c = connect_to(argv[1], (uint16_t)port, argv[4]);
	library_parts(c, argv[6]);
	reddn_close(c);
	verbs(argv[1], (uint16_t)baseline, argv[6]);
	return 0;
}

int main(int argc, char **argv)
{
	pid_t pid;

	if (argc != 7) {
		fprintf(stderr, "usage: client-calls HOST PORT OFFLOAD PARTS BASELINE-PORT KEY\n");
		return 2;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(shared != MAP_FAILED, "memory");
	pid = fork();
	must(pid >= 0, "fork");
	if (pid) {
		int status;

		must(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status), "waiting");
		must(ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) == 0 &&
				ptrace(PTRACE_CONT, pid, 0, 0) == 0,
			"ptrace");
		return trace(pid);
	}
	must(ptrace(PTRACE_TRACEME, 0, 0, 0) == 0, "ptrace");
	raise(SIGSTOP);
	return measure(argv);
}
