/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether a session that the CPU served goes on with this daemon, and from where. The queue is a list. */
#include "reddnd/executor/executor.h"
#include "reddnd/generation/layouts.h"
#include "reddnd/policy/offload-stats.h"
#include "reddnd/session/count.h"
#include "reddnd/session/cpu.h"
#include "reddnd/session/heir.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SLOTS = 16, BYTES = 8, NONE = -1 };

static struct rnic_plain_completion queue[RNIC_PLAIN_BATCH];
static unsigned there;
static uint16_t posted;    /* RECVs, as the doorbell record has it */
static int64_t went_on;    /* from that request, or NONE */
static uint64_t asked_for; /* WQEBBs of the SQ */
static _Alignas(uint64_t) uint8_t memory[SLOTS * (2 * 64 + 8)];

/* ---- in place of the device, and of what executes ---- */

int __wrap_rnic_plain_adopt(struct rnic_plain **q, struct rnic_pd *pd, struct rnic_arena *arena,
	const struct rnic_plain_attr *attr, const struct rnic_plain_position *at);
void __wrap_rnic_plain_go_on(struct rnic_plain *q, uint64_t number);
void __wrap_rnic_plain_forget(struct rnic_plain *q);
uint16_t __wrap_rnic_plain_received(const struct rnic_plain *q);
uint32_t __wrap_rnic_plain_qpn(const struct rnic_plain *q);
uint8_t *__wrap_rnic_plain_memory(const struct rnic_plain *q);
int __wrap_rnic_plain_poll(struct rnic_plain *q, struct rnic_plain_completion c[RNIC_PLAIN_BATCH]);
uint32_t __wrap_rnic_plain_taken(const struct rnic_plain *q);
void __wrap_rnic_plain_release(struct rnic_plain *q);
struct layouts_cpu __wrap_layouts_for_cpu(const struct offload *o, unsigned slots);
struct rnic_plain_attr __wrap_layouts_cpu_queue(const struct offload *o, unsigned slots, bool sends);
int __wrap_executor_new(struct executor **x, const struct program *p, const struct executor_parts *parts);
void __wrap_executor_free(struct executor *x);
bool __wrap_region_is_bad(const struct region *r, char why[REGION_WHY]);

int __wrap_rnic_plain_adopt(struct rnic_plain **q, struct rnic_pd *pd, struct rnic_arena *arena,
	const struct rnic_plain_attr *attr, const struct rnic_plain_position *at)
{
	(void)pd;
	(void)arena;
	(void)at;
	asked_for = attr->sends;
	*q = NULL;
	return 0;
}

void __wrap_rnic_plain_go_on(struct rnic_plain *q, uint64_t number)
{
	(void)q;
	went_on = (int64_t)number;
}

void __wrap_rnic_plain_forget(struct rnic_plain *q)
{
	(void)q;
}

uint16_t __wrap_rnic_plain_received(const struct rnic_plain *q)
{
	(void)q;
	return posted;
}

uint32_t __wrap_rnic_plain_qpn(const struct rnic_plain *q)
{
	(void)q;
	return 0x100;
}

uint8_t *__wrap_rnic_plain_memory(const struct rnic_plain *q)
{
	(void)q;
	return memory;
}

int __wrap_rnic_plain_poll(struct rnic_plain *q, struct rnic_plain_completion c[RNIC_PLAIN_BATCH])
{
	const unsigned n = there;

	(void)q;
	memcpy(c, queue, n * sizeof(*c));
	there = 0;
	return (int)n;
}

uint32_t __wrap_rnic_plain_taken(const struct rnic_plain *q)
{
	(void)q;
	return 0;
}

void __wrap_rnic_plain_release(struct rnic_plain *q)
{
	(void)q;
}

struct layouts_cpu __wrap_layouts_for_cpu(const struct offload *o, unsigned slots)
{
	(void)o;
	return (struct layouts_cpu){.recv_bytes = 64, .reply_bytes = 64, .replies = slots};
}

struct rnic_plain_attr __wrap_layouts_cpu_queue(const struct offload *o, unsigned slots, bool sends)
{
	(void)o;
	return (struct rnic_plain_attr){.recvs = {.n = slots}, .sends = sends ? 2 * slots : slots};
}

int __wrap_executor_new(struct executor **x, const struct program *p, const struct executor_parts *parts)
{
	(void)p;
	(void)parts;
	*x = NULL;
	return 0;
}

void __wrap_executor_free(struct executor *x)
{
	(void)x;
}

bool __wrap_region_is_bad(const struct region *r, char why[REGION_WHY])
{
	(void)r;
	*why = 0;
	return false;
}

/* ---- what a daemon left ---- */

enum { IMAGE = 77, SIZE = 1 << 16, SENDS_SIZE = SIZE + 4096 };

static struct chain_image image = {.arg_len = BYTES};
static struct program program;
static const struct catalog_offload conf;
static struct queue_layout layouts[17] = {[4] = {.slots = SLOTS, .size = SIZE, .sends_size = SENDS_SIZE}};
static uint64_t images[17] = {[4] = IMAGE};
static struct offload_stats stats;
static struct tenant tenant;
static struct offload offload;
static struct ledger_slot slot;

/* 9 requests came, 7 are answered, 6 of them done, and of these 5 are counted */
static int setup(void **state)
{
	struct ledger_session *s = &slot.session;

	(void)state;
	memset(&slot, 0, sizeof(slot));
	memset(&stats, 0, sizeof(stats));
	offload = (struct offload){.program = &program,
		.img = &image,
		.conf = &conf,
		.layouts = layouts,
		.images = images,
		.stats = &stats,
		.cpu = true};
	slot.kind = LEDGER_CPU_SESSION;
	slot.block.size = SIZE;
	s->accepted = 1;
	s->depth = SLOTS / 2;
	s->slots = SLOTS;
	s->image = IMAGE;
	s->cpu.begun = 7;
	s->cpu.finished = 7 << 16 | 7;
	s->cpu.taken[0].received = 9;
	s->cpu.taken[0].done = 6;
	s->counters.done = s->counters.read = 5;
	posted = 12;
	went_on = NONE;
	there = 0;
	return 0;
}

static struct session *make(void)
{
	struct session *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	*s = (struct session){.id = 1,
		.engine = &engine_cpu,
		.offload = &offload,
		.tenant = &tenant,
		.slot = &slot,
		.domain = tenant.domain,
		.queues.layout = layouts[4]};
	return s;
}

static int adopt(struct session *s)
{
	const struct session_parts parts = {0};
	const struct request request = {.depth = SLOTS / 2, .slot_size = 64};

	return session_cpu_adopt(s, &parts, &request);
}

static void end(struct session *s)
{
	session_cpu_forget(s->cpu);
	free(s);
}

static struct session *adopted(void)
{
	struct session *s = make();

	assert_int_equal(adopt(s), 0);
	return s;
}

/* ---- going on ---- */

static void goes_on(void **state)
{
	struct session *s = adopted();

	(void)state;
	assert_int_equal(went_on, 7);
	assert_int_equal(s->progress.done, 5);
	assert_int_equal(s->progress.posted, 12);
	assert_int_equal(session_cpu_received(s, UINT64_MAX), 9);
	assert_int_equal(session_cpu_done(s), 6);
	end(s);
}

/* Of 2^32 requests something was sent, too */
static void low_bits_are_zero(void **state)
{
	const uint64_t n = UINT64_C(1) << 32;
	struct session *s;

	(void)state;
	slot.session.cpu.begun = n;
	slot.session.cpu.finished = n << 16;
	slot.session.cpu.taken[0].received = slot.session.cpu.taken[0].done = n;
	slot.session.counters.done = slot.session.counters.read = n;
	posted = 0;
	s = adopted();
	assert_int_equal(went_on, (int64_t)n);
	end(s);
}

/* Without immediates it has what it was charged for */
static void sends(void **state)
{
	struct session *s;

	(void)state;
	slot.session.cpu.sends = 1;
	s = adopted();
	assert_int_equal(asked_for, 2 * SLOTS);
	assert_int_equal(layouts_bytes(&offload, &s->queues.layout), SENDS_SIZE);
	end(s);
}

/* Nothing is posted before all has been checked */
static void impossible_progress(void **state)
{
	static const struct {
		uint64_t done, read;
		uint16_t posted;
	} bad[] = {
		{7, 7, 12},     /* counted, and not done */
		{5, 6, 12},     /* outcomes of requests that are not done */
		{5, 5, 5 + 17}, /* RECVs without room */
		{5, 5, 8},      /* fewer than have come */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct session *s = make();

		slot.session.counters.done = bad[i].done;
		slot.session.counters.read = bad[i].read;
		posted = bad[i].posted;
		assert_int_equal(adopt(s), -EBADMSG);
		assert_int_equal(went_on, NONE);
		end(s);
	}
}

static void many_unread(void **state)
{
	struct session *s = make();

	(void)state;
	slot.session.cpu.taken[0].done = slot.session.counters.done = SLOTS + 1;
	slot.session.cpu.taken[0].received = slot.session.cpu.begun = SLOTS + 1;
	slot.session.cpu.finished = (SLOTS + 1) << 16;
	slot.session.counters.read = 0;
	posted = SLOTS + 1;
	assert_int_equal(adopt(s), -EBADMSG);
	assert_int_equal(went_on, NONE);
	end(s);
}

static uint64_t timed(void)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < SERVICE_BUCKETS; i++)
		n += stats.service.count[i];
	return n;
}

/* When those came that the other daemon received, nobody knows */
static void service_times(void **state)
{
	struct session *s = adopted();

	(void)state;
	assert_int_equal(session_count(s), 1);
	assert_int_equal(timed(), 0);
	queue[there++] = (struct rnic_plain_completion){.receive = true, .bytes = BYTES};
	queue[there++] = (struct rnic_plain_completion){.number = 9};
	session_cpu_settle(s);
	assert_int_equal(session_count(s), 3);
	assert_int_equal(timed(), 0);
	queue[there++] = (struct rnic_plain_completion){.number = 10};
	session_cpu_settle(s);
	assert_int_equal(session_count(s), 1);
	assert_int_equal(timed(), 1);
	end(s);
}

/* ---- not going on ---- */

static void expect(const struct offload *o, const char *words)
{
	const char *why = session_obstacle(&slot, o);

	if (!words)
		assert_null(why);
	else if (!why)
		fail_msg("it goes on, in spite of: %s", words);
	else if (!strstr(why, words))
		fail_msg("\"%s\", not \"%s\"", why, words);
}

static void no_obstacle(void **state)
{
	(void)state;
	expect(&offload, NULL);
	slot.session.cpu.begun++; /* it writes to nothing */
	expect(&offload, NULL);
}

static void no_queues(void **state)
{
	(void)state;
	slot.block.size = 0;
	expect(&offload, "its CPU executes this offload");
}

static void spoilt(void **state)
{
	(void)state;
	slot.session.cpu.spoilt = 1;
	expect(&offload, "when the session was about to end");
}

static void other_engine(void **state)
{
	(void)state;
	offload.cpu = false;
	expect(&offload, "the NIC executes the offload now");
}

/* It has no engine */
static void disabled(void **state)
{
	(void)state;
	offload.cpu = false;
	offload.program = NULL;
	snprintf(offload.why, sizeof(offload.why), "the device is lost");
	expect(&offload, "the offload is disabled");
}

static void not_configured(void **state)
{
	(void)state;
	expect(NULL, "no longer configured");
}

static void other_program(void **state)
{
	(void)state;
	slot.session.image++;
	expect(&offload, "another one now");
}

static void in_the_middle(void **state)
{
	struct program writing = {.nregions = 1};
	struct region region = {0};

	(void)state;
	offload.program = &writing;
	offload.bound[0].region = &region;
	offload.bound[0].writable = true;
	slot.session.cpu.begun++;
	expect(&offload, "in the middle of a request");
	slot.session.cpu.begun--;
	expect(&offload, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(goes_on, setup),
		cmocka_unit_test_setup(low_bits_are_zero, setup),
		cmocka_unit_test_setup(sends, setup),
		cmocka_unit_test_setup(impossible_progress, setup),
		cmocka_unit_test_setup(many_unread, setup),
		cmocka_unit_test_setup(service_times, setup),
		cmocka_unit_test_setup(no_obstacle, setup),
		cmocka_unit_test_setup(no_queues, setup),
		cmocka_unit_test_setup(spoilt, setup),
		cmocka_unit_test_setup(other_engine, setup),
		cmocka_unit_test_setup(disabled, setup),
		cmocka_unit_test_setup(not_configured, setup),
		cmocka_unit_test_setup(other_program, setup),
		cmocka_unit_test_setup(in_the_middle, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
