/* SPDX-License-Identifier: BSD-2-Clause */
/* Which RECVs of a recycled session the daemon posts when a limit begins and ends, and how it learns how
 * requests ended. The NIC is two numbers, and what it leaves of replies. */
#include "mlx5/cqe.h"
#include "mlx5/wqe.h"
#include "reddnd/policy/offload-stats.h"
#include "reddnd/session/count.h"
#include "reddnd/session/heir.h"
#include "reddnd/session/limits.h"
#include "reddnd/session/queues.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "tests/lib/cmocka.h"

enum { SLOTS = 64, SECTION = 16, LOG = 64, BYTES = 100, LOG_CQES = 7 };

static struct tenant tenant;
static struct tenant_domain domain;
/* What the recycler has counted, and its log */
static _Alignas(uint64_t) uint8_t lanes[LOG + SLOTS * RNIC_WQEBB_BYTES];
static uint8_t replies[SLOTS * RNIC_WQEBB_BYTES], cqes[RNIC_CQE_BYTES << LOG_CQES];
static struct offload_stats stats;
static const struct offload offload = {.stats = &stats,
	.outcome = {.reply_wqebbs = 1,
		.conditional = true,
		.longest = BYTES,
		.nmessages = 1,
		.messages[0] = {.nsge = 1, .conditional = true}}};
static uint8_t ring[4 * 64];
static uint16_t posted; /* to the NIC */
static uint64_t noted;  /* in the ledger, by then */
static struct session session;

static unsigned waits; /* for what was posted */

int __wrap_master_qp_post_recvs(struct master_qp *m, uint32_t qpn, uint16_t index);
int __wrap_master_qp_enable_recvs(struct master_qp *m, uint32_t qpn, uint16_t index);
int __wrap_master_qp_wait(struct master_qp *m);

int __wrap_master_qp_post_recvs(struct master_qp *m, uint32_t qpn, uint16_t index)
{
	posted = index;
	if (session.slot)
		noted = session.slot->session.counters.posted;
	return 0;
}

int __wrap_master_qp_wait(struct master_qp *m)
{
	waits++;
	return -ETIMEDOUT;
}

int __wrap_master_qp_enable_recvs(struct master_qp *m, uint32_t qpn, uint16_t index)
{
	waits++;
	return __wrap_master_qp_post_recvs(m, qpn, index);
}

static int setup(void **state)
{
	struct session *s = &session;

	*s = (struct session){.state = SESSION_ACCEPTED,
		.engine = &engine_recycled,
		.tenant = &tenant,
		.domain = &domain,
		.offload = &offload,
		.first = s};
	s->queues.layout.slots = SLOTS;
	s->queues.layout.recycling.log = LOG;
	s->queues.env.lanes.mem = lanes;
	s->queues.env.queue[0].ring = replies;
	s->recycler.reply_cq = (struct rnic_cq){.cqes = cqes, .log_size = LOG_CQES};
	memset(lanes, 0, sizeof(lanes));
	memset(cqes, CQE_OP_INVALID << 4, sizeof(cqes));
	stats = (struct offload_stats){0};
	s->queues.env.recycler.ring = ring;
	for (unsigned g = 0; g < SLOTS / SECTION; g++) {
		s->queues.layout.recycling.recv_en[g] = (uint16_t)g;
		ring[g * 64 + WQE_OPCODE] = WQE_OP_RECV_EN;
	}
	posted = 0;
	waits = 0;
	domain = (struct tenant_domain){0};
	return 0;
}

static void recycled(uint64_t n)
{
	n = htole64(n);
	memcpy(lanes, &n, sizeof(n));
}

/* The client has used every RECV that was posted, in the middle of a section, and nobody has read how these
 * requests ended. The recycler waits for the end of that section. */
static void pacing_ends(void **state)
{
	struct session *s = &session;

	s->progress.posted = 10 * SECTION + 9;
	s->counters.read = s->progress.posted - SLOTS + 1;
	s->pacing.state = PACING_ON;
	recycled(10 * SECTION);
	assert_int_equal(s->engine->postable(s), s->progress.posted);
	session_set_paced(s, false);
	assert_int_equal(ring[WQE_OPCODE], WQE_OP_RECV_EN);
	assert_int_equal(s->engine->post(s, s->engine->postable(s)), 0);
	assert_int_equal(posted, 10 * SECTION + SLOTS - 1);
}

/* The same after a daemon that died before it had posted what it wrote down */
static void unsettled_pacing_ends(void **state)
{
	struct session *s = &session;

	recycled(10 * SECTION);
	s->progress.posted = 10 * SECTION + SLOTS - 1;
	s->pacing.state = PACING_ON;
	s->pacing.unsettled = true;
	session_set_paced(s, false);
	assert_false(s->pacing.unsettled);
	assert_int_equal(s->engine->post(s, s->engine->postable(s)), 0);
	assert_int_equal(posted, 10 * SECTION + SLOTS - 1);
}

/* The NIC may have posted those of the section that it was in, which are posted when that is over. It may
 * also have begun with others meanwhile, and not posted theirs: also under a daemon before this one. */
static void pacing_begins(void **state)
{
	struct session *s = &session;

	recycled(10 * SECTION);
	s->progress.posted = 1;
	session_set_paced(s, true);
	assert_int_equal(ring[WQE_OPCODE], WQE_OP_NOP);
	assert_int_equal(s->progress.posted, 11 * SECTION + SLOTS - 1);
	assert_int_equal(s->engine->post(s, s->progress.posted), 0);
	assert_int_equal(posted, 10 * SECTION + SLOTS - 1);
	assert_true(s->pacing.unsettled);
	recycled(11 * SECTION);
	assert_int_equal(s->engine->post(s, s->progress.posted), 0);
	assert_int_equal(posted, 11 * SECTION + SLOTS - 1);
}

/* A client is answered before the NIC has said that it began, and the error of that comes afterwards */
static void nobody_waits_at_the_start(void **state)
{
	struct session *s = &session;

	domain.master.waits = 1;
	assert_int_equal(s->engine->post(s, 5), 0);
	assert_int_equal(posted, 5);
	assert_int_equal(waits, 0);
	assert_int_equal(session_queues_started(s), -ETIMEDOUT);
	assert_int_equal(waits, 1);
	domain.master.waits = 0;
	assert_int_equal(s->engine->post(s, 6), 0);
	assert_int_equal(waits, 2);
}

/* A daemon that goes on with the session posts what the ledger does not have */
static void the_ledger_has_what_is_posted(void **state)
{
	struct ledger_slot slot = {0};
	struct session *s = &session;

	s->slot = &slot;
	assert_int_equal(s->engine->post(s, 5), 0);
	assert_int_equal(s->engine->post(s, 7), 0);
	assert_int_equal(posted, 7);
	assert_int_equal(noted, 5);
	assert_int_equal(slot.session.counters.posted, 7);
}

/* An instance enables the head of the next one, which is armed before its RECV is posted */
static void the_next_is_armed(void **state)
{
	struct session *s = &session;

	recycled(10 * SECTION);
	assert_int_equal(s->engine->postable(s), 10 * SECTION + SLOTS - 1);
	s->engine = &engine_unrolled;
	s->progress.armed = 77;
	assert_int_equal(s->engine->postable(s), 76);
}

/* The reply to each even request is a hit */
static void answered(uint64_t from, uint64_t to)
{
	for (uint64_t n = from; n < to; n++) {
		uint8_t *wqe = replies + n % SLOTS * RNIC_WQEBB_BYTES;

		wqe[WQE_OPCODE] = n % 2 ? WQE_OP_NOP : WQE_OP_WRITE;
		wqe_put32(wqe + WQE_RDMA_SGE + WQE_SGE_LEN, BYTES);
		cqes[n % (1 << LOG_CQES) * RNIC_CQE_BYTES + CQE_OP_OWN] = n >> LOG_CQES & 1;
	}
	session.progress.done = to;
}

/* The section up to @n: logged, and armed again */
static void section_is_over(uint64_t n)
{
	const size_t at = (n - SECTION) % SLOTS * RNIC_WQEBB_BYTES, size = SECTION * RNIC_WQEBB_BYTES;

	memcpy(lanes + LOG + at, replies + at, size);
	memset(replies + at, 0, size);
	recycled(n);
}

static void expect(uint64_t hits, uint64_t misses, uint64_t unseen)
{
	const struct session_counters *c = &session.counters;

	session_count_outcomes(&session);
	assert_int_equal(c->hits, hits);
	assert_int_equal(c->misses, misses);
	assert_int_equal(c->unseen, unseen);
	assert_int_equal(c->bytes_out, hits * BYTES);
	assert_int_equal(stats.hits, hits);
	assert_int_equal(stats.misses, misses);
	assert_int_equal(stats.unseen, unseen);
	assert_int_equal(stats.bytes_out, hits * BYTES);
}

/* Nobody waits for the daemon to look */
static void outcomes_are_read(void **state)
{
	answered(0, SECTION);
	section_is_over(SECTION);
	answered(SECTION, SECTION + 5);
	/* from the log, and from the ring */
	expect(11, 10, 0);
	answered(SECTION + 5, 2 * SECTION);
	/* the recycler may be at work on that section */
	expect(11, 10, 0);
	section_is_over(2 * SECTION);
	expect(16, 16, 0);
	for (uint64_t n = 2 * SECTION; n < 3 * SLOTS; n += SECTION) {
		answered(n, n + SECTION);
		section_is_over(n + SECTION);
	}
	/* a lap is in the log */
	expect(16 + SLOTS / 2, 16 + SLOTS / 2, 3 * SLOTS - 2 * SECTION - SLOTS);
	for (uint64_t n = 3 * SLOTS; n < 5 * SLOTS; n += SECTION) {
		answered(n, n + SECTION);
		if (n + SECTION < 5 * SLOTS)
			section_is_over(n + SECTION);
	}
	session_count_outcomes(&session);
	/* the recycler may have begun to log the last section over that of the lap before */
	assert_int_equal(session.counters.read, 5 * SLOTS - SECTION);
	section_is_over(5 * SLOTS);
	session_count_outcomes(&session);
	assert_int_equal(session.counters.read, 5 * SLOTS);
	assert_int_equal(
		session.counters.hits + session.counters.misses + session.counters.unseen, 5 * SLOTS);
	assert_int_equal(session.counters.unseen, 3 * SLOTS - 2 * SECTION - SLOTS + SLOTS);
}

/* The recycler is at work on a section when the session ends */
static void outcomes_at_the_end(void **state)
{
	answered(0, SECTION);
	expect(0, 0, 0);
	session_count_rest(&session);
	expect(0, 0, SECTION);
}

/* The section that the log had is being logged again when somebody looks */
static void outcomes_are_lost(void **state)
{
	for (uint64_t n = 0; n < SLOTS; n += SECTION) {
		answered(n, n + SECTION);
		section_is_over(n + SECTION);
	}
	answered(SLOTS, SLOTS + SECTION);
	session.progress.done = SLOTS; /* as it was counted before these */
	expect((SLOTS - SECTION) / 2, (SLOTS - SECTION) / 2, SECTION);
	/* and with two laps of CQEs more, from which that one does not differ */
	for (uint64_t n = SLOTS; n < 6 * SLOTS; n += SECTION) {
		answered(n, n + SECTION);
		section_is_over(n + SECTION);
	}
	session.progress.done = 2 * SLOTS;
	expect((SLOTS - SECTION) / 2, (SLOTS - SECTION) / 2, SECTION + SLOTS);
}

static uint64_t received(const struct session *s, uint64_t to)
{
	return to;
}

/* Those that the NIC has posted count, which are far behind what the daemon has */
static void requests_that_came(void **state)
{
	static const struct session_engine silent = {.is_silent = true, .received = received},
					   other = {.received = received};
	struct session *s = &session;

	s->progress.posted = SLOTS - 1;
	s->progress.done = 200;
	s->engine = &silent;
	assert_int_equal(session_received(s), 200 + SLOTS);
	s->engine = &other;
	assert_int_equal(session_received(s), SLOTS - 1);
}

/* ---- sections that the recycler is given ---- */

enum { END = 50, RECYCLER_RING = 256 };

static uint64_t extents; /* instances before this one get some */
static unsigned armed;   /* with an extent */
static int rung;

uint64_t __wrap_session_extents_next(struct session *s, uint64_t most, bool *broken, struct verdict *v);
void __wrap_chain_arm_extent(const struct chain_image *img, const struct chain_env *env, unsigned slot);
void __wrap_rnic_qp_ring(struct rnic_qp *qp, uint16_t index);

uint64_t __wrap_session_extents_next(struct session *s, uint64_t most, bool *broken, struct verdict *v)
{
	const uint64_t to = s->progress.done + SLOTS < most ? s->progress.done + SLOTS : most;

	*broken = false;
	return to < extents ? to : extents;
}

void __wrap_chain_arm_extent(const struct chain_image *img, const struct chain_env *env, unsigned slot)
{
	assert_int_equal(rung, -1);
	assert_int_equal(slot, armed++ % SLOTS);
}

void __wrap_rnic_qp_ring(struct rnic_qp *qp, uint16_t index)
{
	assert_int_equal(armed, session.progress.armed);
	rung = index;
}

/* @done requests are over, and the recycler has armed the instances of so many sections. True: it is behind
 */
static bool rearm(uint64_t done, uint64_t sections)
{
	struct verdict v;

	rung = -1;
	session.progress.done = done;
	recycled(sections * SECTION);
	assert_int_equal(session.engine->rearm(&session, &v), 0);
	return session.recycler.is_behind;
}

static void begin_with_extents(void)
{
	static uint64_t at[SLOTS];
	struct session *s = &session;

	s->extents.at = at;
	s->progress.armed = armed = SLOTS;
	s->queues.layout.recycling.ring_wqebbs = RECYCLER_RING;
	for (unsigned g = 0; g < SLOTS / SECTION; g++)
		s->queues.layout.recycling.end[g] = (uint16_t)((g + 1) * END);
	extents = UINT64_MAX;
}

/* Whole sections whose instances are over, and whose WQEs the recycler has renewed: those of section s in
 * section s - 2 */
static void sections_are_given(void **state)
{
	begin_with_extents();
	assert_false(rearm(SECTION - 1, 0));
	assert_int_equal(rung, -1);
	assert_false(rearm(SECTION, 0));
	assert_int_equal(rung, END);
	assert_false(rearm(2 * SECTION + 3, 0));
	assert_int_equal(rung, 2 * END);
	/* a third one is over before the first one has run */
	assert_true(rearm(3 * SECTION, 0));
	assert_int_equal(rung, -1);
	assert_false(rearm(3 * SECTION, 1));
	assert_int_equal(rung, 3 * END);
	/* two at a time, and those of the next lap, with the pad in front of them */
	assert_true(rearm(6 * SECTION, 3));
	assert_int_equal(rung, RECYCLER_RING + END);
	/* none for the sixth: whoever has extents wakes the session */
	extents = SLOTS + 5 * SECTION + 9;
	assert_false(rearm(6 * SECTION, 5));
	assert_int_equal(rung, -1);
	extents = UINT64_MAX;
	assert_false(rearm(6 * SECTION, 5));
	assert_int_equal(rung, RECYCLER_RING + 2 * END);
}

/* The NIC may have read the opcodes of all that was given */
static void pacing_begins_with_sections(void **state)
{
	struct session *s = &session;

	begin_with_extents();
	rearm(2 * SECTION, 0);
	s->progress.posted = 1;
	session_set_paced(s, true);
	assert_int_equal(s->progress.posted, 2 * SECTION + SLOTS - 1);
	recycled(SECTION);
	assert_int_equal(s->engine->post(s, s->progress.posted), 0);
	assert_int_equal(posted, SECTION + SLOTS - 1);
	assert_true(s->pacing.unsettled);
	recycled(2 * SECTION);
	assert_int_equal(s->engine->post(s, s->progress.posted), 0);
	assert_int_equal(posted, 2 * SECTION + SLOTS - 1);
}

/* And of one more that was given before pacing ended, so that three may lack their RECVs. No instance of the
 * last section would be over without them, and nothing but the recycler would post them. */
static void pacing_ends_with_sections(void **state)
{
	struct session *s = &session;

	begin_with_extents();
	rearm(2 * SECTION, 0);
	s->progress.posted = SLOTS - 1;
	session_set_paced(s, true);
	rearm(3 * SECTION, 1);
	session_set_paced(s, false);
	assert_int_equal(s->engine->post(s, s->engine->postable(s)), 0);
	assert_int_equal(posted, SECTION + SLOTS - 1);
}

static uint32_t broken; /* QPN */

int __wrap_rnic_qp_is_broken(const struct rnic_qp *qp);

int __wrap_rnic_qp_is_broken(const struct rnic_qp *qp)
{
	return qp->qpn == broken;
}

static void the_recycler_breaks(void **state)
{
	static const struct chain_image img;
	struct offload o = offload;
	struct session *s = &session;
	struct verdict v;

	o.img = &img;
	s->offload = &o;
	s->recycler.cq =
		(struct rnic_cq){.dev = (struct rnic_device *)&session, .cqes = cqes, .log_size = LOG_CQES};
	s->recycler.qp = (struct rnic_qp){.dev = (struct rnic_device *)&session, .qpn = 0x77};
	broken = 0;
	assert_int_equal(session_look(s, &v), 0);
	broken = 0x77;
	assert_int_equal(session_look(s, &v), 1);
	assert_non_null(strstr(v.text, "queue pair 0x77 broke"));
	assert_int_equal(session_event(s, SESSION_COOKIE_QP | SESSION_RECYCLER, &v), 1);
	assert_non_null(strstr(v.text, "queue pair 0x77 is broken"));
	cqes[CQE_OP_OWN] = CQE_OP_REQ_ERR << 4;
	cqes[CQE_SYNDROME] = CQE_SYND_LOCAL_QP_OP;
	assert_int_equal(session_event(s, SESSION_RECYCLER, &v), 1);
	assert_non_null(strstr(v.text, "of the recycler, the queue that arms the chain anew, failed"));
	assert_true(v.fatal && v.kind == VERDICT_QUEUE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup(requests_that_came, setup),
		cmocka_unit_test_setup(outcomes_are_read, setup),
		cmocka_unit_test_setup(outcomes_at_the_end, setup),
		cmocka_unit_test_setup(outcomes_are_lost, setup), cmocka_unit_test_setup(pacing_ends, setup),
		cmocka_unit_test_setup(unsettled_pacing_ends, setup),
		cmocka_unit_test_setup(pacing_begins, setup),
		cmocka_unit_test_setup(the_next_is_armed, setup),
		cmocka_unit_test_setup(the_ledger_has_what_is_posted, setup),
		cmocka_unit_test_setup(the_recycler_breaks, setup),
		cmocka_unit_test_setup(sections_are_given, setup),
		cmocka_unit_test_setup(pacing_begins_with_sections, setup),
		cmocka_unit_test_setup(pacing_ends_with_sections, setup),
		cmocka_unit_test_setup(nobody_waits_at_the_start, setup)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
