/* SPDX-License-Identifier: BSD-2-Clause */
/* What completions of a queue mean for its session. The queue is a list of them. */
#include "mlx5/cqe.h"
#include "reddnd/executor/executor.h"
#include "reddnd/generation/layouts.h"
#include "reddnd/session/count.h"
#include "reddnd/session/cpu-internal.h"
#include "reddnd/session/cpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

enum { SLOTS = 64, DEPTH = 16, SLOT_BYTES = 64, BYTES = 24, BATCH = (SLOTS - DEPTH) / 2 };

static struct rnic_plain_completion queue[8 * RNIC_PLAIN_BATCH];
static unsigned there, taken;
static _Alignas(uint64_t) uint8_t memory[SLOTS * (2 * 64 + 8)];
static uint64_t executed, bad; /* the request that is executed, and the one that fails */
static unsigned looks;         /* at requests ahead */
static unsigned cut_off;       /* the look that meets the end of a file, from 1 */
static jmp_buf guard;
static unsigned replies, posted; /* that were added; and of those, by rnic_plain_flush() */

/* ---- in place of the device, and of what executes ---- */

int __wrap_bus_guard(void (*work)(void *arg), void *arg);
int __wrap_rnic_plain_new(struct rnic_plain **q, struct rnic_pd *pd, struct rnic_arena *arena,
	const struct rnic_plain_attr *attr);
void __wrap_rnic_plain_free(struct rnic_plain *q);
uint32_t __wrap_rnic_plain_qpn(const struct rnic_plain *q);
int __wrap_rnic_plain_arm(struct rnic_plain *q);
int __wrap_rnic_plain_poll(struct rnic_plain *q, struct rnic_plain_completion c[RNIC_PLAIN_BATCH]);
int __wrap_rnic_conn_connect_plain(struct rnic_conn *conn, struct rnic_plain *q, bool slow);
const struct rnic_caps *__wrap_rnic_device_caps(const struct rnic_device *dev);
struct layouts_cpu __wrap_layouts_for_cpu(const struct offload *o, unsigned slots);
int __wrap_executor_new(struct executor **x, const struct program *p, const struct executor_parts *parts);
void __wrap_executor_free(struct executor *x);
struct rnic_plain_attr __wrap_layouts_cpu_queue(const struct offload *o, unsigned slots, bool sends);
uint8_t *__wrap_rnic_plain_memory(const struct rnic_plain *q);
int __wrap_rnic_plain_flush(struct rnic_plain *q, uint32_t number);
void __wrap_executor_begin(struct executor *x, uint64_t number, const uint8_t *request, uint8_t *data);
unsigned __wrap_executor_reads(
	const struct executor *x, const uint8_t *request, const uint8_t *at[EXECUTOR_READS]);
unsigned __wrap_executor_reads_then(
	const struct executor *x, const uint8_t *request, const uint8_t *at[EXECUTOR_READS]);
enum executor_result __wrap_executor_run(struct executor *x, uint64_t wqes);
uint64_t __wrap_executor_wqes(const struct executor *x);
uint64_t __wrap_executor_iterations(const struct executor *x);
const uint8_t *__wrap_executor_replies(const struct executor *x);
const struct executor_fault *__wrap_executor_fault(const struct executor *x);
struct outcome __wrap_outcome_read(const struct outcome_plan *plan, const uint8_t *ring, unsigned slot);
const struct executor_message *__wrap_executor_messages(const struct executor *x, unsigned *n);
int __wrap_rnic_plain_send(struct rnic_plain *q, const struct rnic_plain_send *m);

/* cmocka has handlers of its own for signals */
int __wrap_bus_guard(void (*work)(void *arg), void *arg)
{
	if (setjmp(guard))
		return -EFAULT;
	work(arg);
	return 0;
}

int __wrap_rnic_plain_new(struct rnic_plain **q, struct rnic_pd *pd, struct rnic_arena *arena,
	const struct rnic_plain_attr *attr)
{
	*q = NULL;
	return 0;
}

void __wrap_rnic_plain_free(struct rnic_plain *q)
{
}

uint32_t __wrap_rnic_plain_qpn(const struct rnic_plain *q)
{
	return 0x100;
}

int __wrap_rnic_plain_arm(struct rnic_plain *q)
{
	return 0;
}

/* Writes all of what it may write */
int __wrap_rnic_plain_poll(struct rnic_plain *q, struct rnic_plain_completion c[RNIC_PLAIN_BATCH])
{
	unsigned n = there - taken < RNIC_PLAIN_BATCH ? there - taken : RNIC_PLAIN_BATCH;

	memset(c, 0xee, RNIC_PLAIN_BATCH * sizeof(*c));
	memcpy(c, queue + taken, n * sizeof(*c));
	taken += n;
	return (int)n;
}

int __wrap_rnic_conn_connect_plain(struct rnic_conn *conn, struct rnic_plain *q, bool slow)
{
	return 0;
}

const struct rnic_caps *__wrap_rnic_device_caps(const struct rnic_device *dev)
{
	static const struct rnic_caps caps;

	return &caps;
}

struct layouts_cpu __wrap_layouts_for_cpu(const struct offload *o, unsigned slots)
{
	return (struct layouts_cpu){.recv_bytes = 64, .reply_bytes = 64, .replies = slots};
}

int __wrap_executor_new(struct executor **x, const struct program *p, const struct executor_parts *parts)
{
	*x = NULL;
	return 0;
}

void __wrap_executor_free(struct executor *x)
{
}

struct rnic_plain_attr __wrap_layouts_cpu_queue(const struct offload *o, unsigned slots, bool sends)
{
	return (struct rnic_plain_attr){.recvs = {.n = slots}, .sends = slots};
}

uint8_t *__wrap_rnic_plain_memory(const struct rnic_plain *q)
{
	return memory;
}

int __wrap_rnic_plain_flush(struct rnic_plain *q, uint32_t number)
{
	if (posted != replies)
		assert_int_equal(number, replies);
	posted = replies;
	return 0;
}

void __wrap_executor_begin(struct executor *x, uint64_t number, const uint8_t *request, uint8_t *data)
{
	executed = number;
}

/* At the request that comes @later than the one that is executed, which has come as well */
static unsigned look_ahead(const uint8_t *request, uint64_t later)
{
	uint64_t n = executed + later;

	assert_ptr_equal(request, memory + n % SLOTS * 64);
	assert_in_range(n, 0, there - 1);
	return 0;
}

unsigned __wrap_executor_reads(
	const struct executor *x, const uint8_t *request, const uint8_t *at[EXECUTOR_READS])
{
	looks++;
	return look_ahead(request, 2);
}

unsigned __wrap_executor_reads_then(
	const struct executor *x, const uint8_t *request, const uint8_t *at[EXECUTOR_READS])
{
	if (++looks == cut_off)
		longjmp(guard, 1);
	return look_ahead(request, 1);
}

enum executor_result __wrap_executor_run(struct executor *x, uint64_t wqes)
{
	return executed == bad ? EXECUTOR_FAULT : EXECUTOR_DONE;
}

uint64_t __wrap_executor_wqes(const struct executor *x)
{
	return 0;
}

uint64_t __wrap_executor_iterations(const struct executor *x)
{
	return 0;
}

const uint8_t *__wrap_executor_replies(const struct executor *x)
{
	return NULL;
}

const struct executor_fault *__wrap_executor_fault(const struct executor *x)
{
	static const struct executor_fault fault; /* nothing is left to run */

	return &fault;
}

struct outcome __wrap_outcome_read(const struct outcome_plan *plan, const uint8_t *ring, unsigned slot)
{
	return (struct outcome){0};
}

const struct executor_message *__wrap_executor_messages(const struct executor *x, unsigned *n)
{
	static const struct executor_message m = {.opcode = WQE_OP_WRITE_IMM, .len = BYTES};

	*n = 1;
	return &m;
}

int __wrap_rnic_plain_send(struct rnic_plain *q, const struct rnic_plain_send *m)
{
	assert_int_equal(m->remote, replies % DEPTH * SLOT_BYTES);
	replies++;
	return 0;
}

/* ---- a session ---- */

static struct chain_image image = {.arg_len = BYTES};
static struct program_piece pieces[] = {{.len = BYTES / 2}, {.len = BYTES / 2, .inverted = true}};
static struct program program = {.pieces = pieces, .npieces = 2};
static char path[] = "test.rdn";
static const struct catalog_offload conf = {.path = path};
static const struct offload offload = {.program = &program, .img = &image, .conf = &conf, .cpu = true};
static struct tenant tenant;

static struct session *begin(void)
{
	struct session *s = calloc(1, sizeof(*s));
	const struct session_parts parts = {0};
	const struct request request = {.depth = DEPTH, .slot_size = SLOT_BYTES};

	assert_non_null(s);
	*s = (struct session){.id = 1,
		.engine = &engine_cpu,
		.offload = &offload,
		.tenant = &tenant,
		.domain = tenant.domain,
		.queues.layout.slots = SLOTS};
	assert_int_equal(session_cpu_begin(s, &parts, &request), 0);
	there = taken = replies = posted = looks = cut_off = 0;
	bad = UINT64_MAX;
	return s;
}

static void end(struct session *s)
{
	session_cpu_free(s->cpu);
	free(s);
}

static void put(unsigned n, uint8_t syndrome)
{
	while (n--)
		queue[there++] = (struct rnic_plain_completion){
			.receive = true, .syndrome = syndrome, .bytes = syndrome ? 0 : BYTES};
}

static void expect_verdict(const struct session *s, enum verdict_kind kind)
{
	const struct verdict *v = session_cpu_broken(s);

	assert_non_null(v);
	assert_int_equal(v->kind, kind);
}

static void expect(struct session *s, unsigned received, enum verdict_kind kind)
{
	assert_int_equal(session_cpu_turn(s, 1), SESSION_CPU_BROKEN);
	expect_verdict(s, kind);
	assert_int_equal(session_cpu_received(s, UINT64_MAX), received);
	assert_int_equal(taken, there);
}

/* ---- tests ---- */

/* Wherever the first of what is flushed is in a batch, and however much comes behind it: the cause is found,
 * and nothing is written beyond a batch */
static void test_cause(void **state)
{
	for (unsigned good = 0; good <= RNIC_PLAIN_BATCH; good++)
		for (unsigned flushed = 1; flushed <= 2 * RNIC_PLAIN_BATCH; flushed += 7) {
			struct session *s = begin();

			put(good, 0);
			put(flushed, CQE_SYND_FLUSH);
			put(1, CQE_SYND_LOCAL_LENGTH);
			put(3, CQE_SYND_FLUSH);
			expect(s, good, VERDICT_REQUEST);
			end(s);
		}
}

static void test_only_flushed(void **state)
{
	struct session *s = begin();

	put(RNIC_PLAIN_BATCH - 1, 0);
	put(SLOTS, CQE_SYND_FLUSH);
	expect(s, RNIC_PLAIN_BATCH - 1, VERDICT_QUEUE);
	end(s);
}

/* No device may report that; nothing is written behind the request, whatever it was */
static void test_longer_than_its_recv(void **state)
{
	struct session *s = begin();

	put(1, 0);
	queue[there - 1].bytes = BYTES + 1;
	expect(s, 0, VERDICT_REQUEST);
	end(s);
}

/* Replies whose completions came behind the last turn are counted, up to the first that failed */
static void test_left_after_the_last_turn(void **state)
{
	enum { REPLIES = 2 * RNIC_PLAIN_BATCH + 3 };
	struct session *s = begin();

	put(REPLIES, 0);
	for (unsigned i = 0; i < REPLIES; i++)
		queue[there++] = (struct rnic_plain_completion){.number = i + 1};
	put(3, CQE_SYND_FLUSH);
	session_cpu_settle(s);
	assert_int_equal(s->cpu->done, REPLIES);
	assert_null(session_cpu_broken(s));
	end(s);
}

/* A turn that finds nothing differs from one that does, while it is polled and after that */
static void test_idle(void **state)
{
	struct session *s = begin();

	queue[there++] = (struct rnic_plain_completion){.number = 1};
	assert_int_equal(session_cpu_turn(s, 1000), SESSION_CPU_BUSY);
	assert_int_equal(session_cpu_turn(s, 1000), SESSION_CPU_IDLE);
	assert_int_equal(session_cpu_turn(s, 2000), SESSION_CPU_ASLEEP);
	end(s);
}

/* Of requests that came together, all but the first are looked at before, and all but two more before that */
static void test_looks_ahead(void **state)
{
	enum { REQUESTS = 5 };
	struct session *s = begin();

	put(REQUESTS, 0);
	assert_int_equal(session_cpu_turn(s, 1), SESSION_CPU_BUSY);
	assert_int_equal(looks, REQUESTS - 1 + REQUESTS - 2);
	end(s);
}

/* What is cut off where a request ahead will read ends no request that reads elsewhere; it is not looked at
 * again */
static void test_looks_at_what_is_cut_off(void **state)
{
	enum { REQUESTS = 5 };
	struct session *s = begin();

	cut_off = 2;
	put(REQUESTS, 0);
	assert_int_equal(session_cpu_turn(s, 1), SESSION_CPU_BUSY);
	assert_int_equal(looks, cut_off);
	assert_int_equal(replies, REQUESTS);
	queue[there++] = (struct rnic_plain_completion){.number = REQUESTS};
	assert_int_equal(session_cpu_turn(s, 1), SESSION_CPU_BUSY);
	assert_null(session_cpu_broken(s));
	end(s);
}

/* A turn in which @n replies complete; those before have @done. True: the event loop hears of it */
static bool does(struct session *s, uint32_t done, unsigned n)
{
	put(n, 0);
	queue[there++] = (struct rnic_plain_completion){.number = done + n};
	assert_int_equal(session_cpu_turn(s, 1000), SESSION_CPU_BUSY);
	return session_cpu_changed(s);
}

/* The event loop hears of requests that are done before their RECVs are missing, and before the session
 * sleeps, and not for each of them; but where a rate is limited, each counts */
static void test_reports(void **state)
{
	struct session *s = begin();

	assert_false(does(s, 0, 1));
	assert_false(does(s, 1, BATCH - 2));
	assert_true(does(s, BATCH - 1, 1));
	assert_false(session_cpu_changed(s));
	assert_false(does(s, BATCH, 1));
	assert_int_equal(session_cpu_turn(s, 2000), SESSION_CPU_ASLEEP);
	assert_true(session_cpu_changed(s));
	assert_false(session_cpu_changed(s));
	session_cpu_set_paced(s, true);
	assert_true(does(s, BATCH + 1, 1));
	session_cpu_set_paced(s, false);
	assert_false(does(s, BATCH + 2, 1));
	end(s);
}

/* A turn of a session that waits for the replies before a fault, from which it would have work */
static void waits(struct session *s, uint64_t now)
{
	assert_int_equal(session_cpu_turn(s, now), SESSION_CPU_ASLEEP);
	assert_null(session_cpu_broken(s));
}

/* However many requests come with one that fails: those before it are answered, and only then the session
 * ends, with the words for that request, whatever comes meanwhile. Nothing is polled till then */
static void test_answers_before_a_fault(void **state)
{
	enum { REQUESTS = 5 };

	for (unsigned at = 1; at < REQUESTS; at++) {
		struct session *s = begin();

		bad = at;
		put(REQUESTS, 0);
		assert_int_equal(session_cpu_turn(s, 1), SESSION_CPU_BUSY);
		assert_int_equal(posted, at);
		put(1, 0);
		queue[there - 1].bytes = BYTES - 1; /* a short request */
		assert_int_equal(session_cpu_turn(s, 1), SESSION_CPU_BUSY);
		for (unsigned i = 0; i < at; i++) {
			waits(s, 1000 + 1000 * i);
			queue[there++] = (struct rnic_plain_completion){.number = i + 1};
			if (i + 1 < at)
				assert_int_equal(session_cpu_turn(s, 1000 + 1000 * i), SESSION_CPU_BUSY);
		}
		expect(s, REQUESTS + 1, VERDICT_QUEUE);
		assert_int_equal(s->cpu->done, at);
		assert_int_equal(posted, at);
		end(s);
	}
}

/* A turn with two requests: the client has no reply yet */
static struct session *begin_with(uint64_t failing, uint32_t first_bytes)
{
	struct session *s = begin();

	bad = failing;
	put(2, 0);
	queue[0].bytes = first_bytes;
	assert_int_equal(session_cpu_turn(s, 1), SESSION_CPU_BUSY);
	return s;
}

/* The client is gone before it has the answers, and before the last turn or after it */
static void test_flushed_after_a_fault(void **state)
{
	for (unsigned turns = 0; turns < 2; turns++) {
		struct session *s = begin_with(1, BYTES);

		put(3, CQE_SYND_FLUSH);
		if (turns)
			expect(s, 2, VERDICT_QUEUE);
		session_cpu_settle(s);
		expect_verdict(s, VERDICT_QUEUE);
		assert_non_null(strstr(session_cpu_broken(s)->text, "came to rest"));
		end(s);
	}
}

static void test_left_after_a_short_request(void **state)
{
	struct session *s = begin_with(UINT64_MAX, BYTES - 1);

	put(3, CQE_SYND_FLUSH);
	session_cpu_settle(s);
	expect_verdict(s, VERDICT_REQUEST);
	end(s);
}

/* Its arguments are zero, also those that arrive as their complement */
static void test_what_a_short_request_lacks(void **state)
{
	for (unsigned n = 0; n < BYTES; n++) {
		struct session *s;

		memset(memory, 0x11, sizeof(memory));
		s = begin_with(UINT64_MAX, n);
		for (unsigned i = 0; i < 64; i++)
			assert_int_equal(memory[i], i < n || i >= BYTES ? 0x11 : i < BYTES / 2 ? 0 : 0xff);
		end(s);
	}
}

static void test_left_after_a_long_request(void **state)
{
	struct session *s = begin();

	put(1, 0);
	queue[there - 1].bytes = BYTES + 1;
	session_cpu_settle(s);
	expect_verdict(s, VERDICT_REQUEST);
	end(s);
}

/* Behind a short request, which has the verdict */
static void test_fault_after_a_short_request(void **state)
{
	struct session *s = begin_with(1, BYTES - 1);

	queue[there++] = (struct rnic_plain_completion){.number = 1};
	expect(s, 2, VERDICT_REQUEST);
	end(s);
}

static void test_fault_of_the_first(void **state)
{
	struct session *s = begin();

	bad = 0;
	put(2, 0);
	expect(s, 2, VERDICT_QUEUE);
	assert_int_equal(replies, 0);
	end(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cause),
		cmocka_unit_test(test_only_flushed),
		cmocka_unit_test(test_longer_than_its_recv),
		cmocka_unit_test(test_left_after_the_last_turn),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_looks_ahead),
		cmocka_unit_test(test_looks_at_what_is_cut_off),
		cmocka_unit_test(test_reports),
		cmocka_unit_test(test_answers_before_a_fault),
		cmocka_unit_test(test_left_after_a_short_request),
		cmocka_unit_test(test_what_a_short_request_lacks),
		cmocka_unit_test(test_left_after_a_long_request),
		cmocka_unit_test(test_fault_after_a_short_request),
		cmocka_unit_test(test_fault_of_the_first),
		cmocka_unit_test(test_flushed_after_a_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
