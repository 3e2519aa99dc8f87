/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts and deletes on the emulated silicon, with a pool of extents as a server has it: after each request
 * every extent is in one place, what came of a publish is what the client was answered, and a record that is
 * published is what was sent, as long as that was. Another writer comes in between, messages are short or too
 * long, or end in the middle.
 */
#include "reddnd/chain/ring/recycle.h"
#include "reddnd/program/program.h"
#include "softcx/hw/dev.h"
#include "tests/chain/chain-rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	BUCKETS = 8,
	BUCKET = 16,
	MAX = 256,
	EXTENT = 320,
	EXTENTS = BUCKETS + CHAIN_RIG_SLOTS + 16,
	DEPTH = 7,
	SLOTS = 32, /* of a recycled chain */
	SLOT = 64
};
enum { FP = 6, AT = 4, ARGS = FP + AT };
#define TAG 0xa5ull
#define TOMBSTONE 0x080000ull

static const char put_text[] = "program put\n"
			       "const tag = 0xa5 << 48\n"
			       "region buckets writable steered\n"
			       "region heap\n"
			       "struct bucket { loc : le64, mark : le56, _ : u8 }\n"
			       "arg fp : u48\n"
			       "arg at : offset(4) in buckets\n"
			       "payload record : max 256 in heap\n"
			       "var was : le64\n"
			       "look: read buckets @ at as bucket { loc -> pub.compare, mark -> mark }\n"
			       "if mark == fp + tag {\n"
			       "  pub: cas buckets @ at as le64 : 0 -> record, was -> was\n"
			       "}\n"
			       "write_imm pub.compare, was -> slot @ 0\n";
static const char del_text[] = "program del\n"
			       "const tag = 0xa5 << 48\n"
			       "region buckets writable steered\n"
			       "region heap\n"
			       "struct bucket { loc : le64, mark : le56, _ : u8 }\n"
			       "arg fp : u48\n"
			       "arg at : offset(4) in buckets\n"
			       "var was : le64\n"
			       "look: read buckets @ at as bucket { loc -> pub.compare, mark -> mark }\n"
			       "if mark == fp + tag {\n"
			       "  pub: cas buckets @ at as le64 : 0 -> 0x080000 in heap, was -> was\n"
			       "}\n"
			       "write_imm pub.compare, was -> slot @ 0\n";

/* Who has an extent */
enum owner { FREE, SLOT_OF, BUCKET_OF };

struct store {
	struct chain_rig c;
	struct program *p;
	struct profile device;
	uint8_t *buckets, *heap, *slots;
	struct {
		uint8_t by; /* enum owner */
		unsigned of;
	} extent[EXTENTS];
	uint64_t taken;               /* CQEs of the client */
	uint64_t other_old;           /* what the other writer has replaced; */
	struct chain_outcome outcome; /* of the last request */
	unsigned published, lost, absent;
	unsigned depth;
};

enum arming { UNROLLED, RECYCLED };

static struct program *compile(const char *text, bool swapped)
{
	struct program_source src = {.name = "p", .text = text, .len = strlen(text)};
	const struct program_target target = {
		.masked_atomics = true, .calc = PROGRAM_CALC, .swapped_old = swapped};
	struct program *p;
	char *messages;

	if (program_compile(&src, NULL, 0, &target, &p, &messages))
		fail_msg("%s", messages);
	return p;
}

static uint64_t word(const struct store *s, unsigned bucket)
{
	uint64_t v;

	memcpy(&v, s->buckets + bucket * BUCKET, sizeof(v));
	return le64toh(v);
}

static void set_word(struct store *s, unsigned bucket, uint64_t v)
{
	v = htole64(v);
	memcpy(s->buckets + bucket * BUCKET, &v, sizeof(v));
}

static uint64_t fp_of(unsigned bucket)
{
	return 0x112233445501 + bucket;
}

/* ---- the server's part --------------------------------------------------------------------------- */

/* Not the first one: with 8 bytes its locator would be that of the tombstone, whose place nobody else has in
 * a store either */
static unsigned take_extent(struct store *s, enum owner by, unsigned of)
{
	unsigned from = (unsigned)chain_rig_random(&s->c, EXTENTS - 1);

	for (unsigned i = 0; i < EXTENTS - 1; i++) {
		unsigned e = 1 + (from + i) % (EXTENTS - 1);

		if (s->extent[e].by != FREE)
			continue;
		s->extent[e].by = (uint8_t)by;
		s->extent[e].of = of;
		return e;
	}
	fail_msg("no extent is free");
	return 0;
}

static void retire(struct store *s, uint64_t locator)
{
	uint64_t e = chain_located_at(locator) / EXTENT;

	if (locator == TOMBSTONE)
		return;
	assert_true(e < EXTENTS && chain_located_at(locator) % EXTENT == 0);
	assert_int_equal(s->extent[e].by, BUCKET_OF);
	s->extent[e].by = FREE;
}

/* An instance is over, and its slot is not armed again. Nothing else is at work: what was replaced is free */
static void over(void *arg, uint64_t seq)
{
	struct store *s = arg;
	const unsigned slot = (unsigned)seq & (s->c.env.slots - 1);
	const uint64_t e = s->c.extent[slot] / EXTENT;
	struct chain_outcome o = chain_rig_outcome(&s->c, seq);
	unsigned bucket = (unsigned)((o.place - s->c.env.region[0].iova) / BUCKET);

	s->outcome = o;
	if (o.published) {
		if (s->p->payload.max) {
			assert_int_equal(s->extent[e].by, SLOT_OF);
			assert_int_equal(chain_located_at(o.now), e * EXTENT);
			s->extent[e].by = BUCKET_OF;
			s->extent[e].of = bucket;
		} else {
			assert_int_equal(o.now, TOMBSTONE);
		}
		retire(s, o.old);
	}
	if (s->p->payload.max && o.published)
		s->c.extent[slot] = take_extent(s, SLOT_OF, slot) * EXTENT;
}

/* Each bucket names an extent that is its own, or the tombstone; each slot has another one */
static void check_extents(struct store *s)
{
	unsigned seen[EXTENTS] = {0};

	for (unsigned b = 0; b < BUCKETS; b++) {
		uint64_t w = word(s, b), e = chain_located_at(w) / EXTENT;

		if (w == TOMBSTONE)
			continue;
		assert_int_equal(s->extent[e].by, BUCKET_OF);
		assert_int_equal(s->extent[e].of, b);
		seen[e]++;
	}
	for (unsigned i = 0; s->p->payload.max && i < s->c.env.slots; i++) {
		uint64_t e = s->c.extent[i] / EXTENT;

		assert_int_equal(s->extent[e].by, SLOT_OF);
		seen[e]++;
	}
	for (unsigned e = 0; e < EXTENTS; e++)
		assert_int_equal(seen[e], s->extent[e].by != FREE);
}

static void fill_buckets(struct store *s)
{
	for (unsigned b = 0; b < BUCKETS; b++) {
		uint64_t mark = htole64(TAG << 48 | fp_of(b));
		unsigned e = take_extent(s, BUCKET_OF, b);

		set_word(s, b, chain_locator(e * EXTENT, ARGS + 1));
		memcpy(s->buckets + b * BUCKET + 8, &mark, sizeof(mark));
	}
}

/* A recycled slot always answers to the same place */
static void begin(struct store *s, const char *text, uint64_t seed, bool swapped, enum arming arming)
{
	struct hw_config cfg = {.seed = seed,
		.lenient = seed == 0,
		.profile = &s->device,
		.pass = seed ? 1 + (unsigned)(seed % 3) : 0};
	struct chain_error err;
	struct chain_image *img;

	memset(s, 0, sizeof(*s));
	s->device = *profile_default();
	s->device.value[PROFILE_HOST_ATOMICS] = !swapped;
	s->p = compile(text, swapped);
	s->depth = arming == RECYCLED ? 4 : DEPTH;
	assert_int_equal(chain_build(s->p->desc, &img, &err), 0);
	chain_rig_open(&s->c, &cfg, img, s->depth);
	if (arming == RECYCLED)
		chain_rig_recycle(&s->c, SLOTS);
	s->buckets = rig_alloc(&s->c.rig, BUCKETS * BUCKET);
	s->heap = rig_alloc(&s->c.rig, EXTENTS * EXTENT);
	s->slots = rig_alloc(&s->c.rig, DEPTH * SLOT);
	s->c.env.region[0].iova = 1ull << 57;
	s->c.env.region[0].lkey = s->c.env.region[0].rkey = chain_rig_key(
		&s->c, s->buckets, BUCKETS * BUCKET, s->c.env.region[0].iova, CHAIN_RIG_ALL_RIGHTS);
	s->c.env.region[1].iova = 1ull << 58; /* nothing in the chain needs it */
	s->c.env.region[1].lkey = s->c.env.region[1].rkey =
		chain_rig_key(&s->c, s->heap, EXTENTS * EXTENT, s->c.env.region[1].iova, HW_REMOTE_READ);
	fill_buckets(s);
	if (s->p->payload.max) {
		chain_rig_extents(&s->c, s->heap, EXTENTS * EXTENT);
		for (unsigned i = 0; i < s->c.env.slots; i++)
			s->c.extent[i] = take_extent(s, SLOT_OF, i) * EXTENT;
	}
	s->c.over = over;
	s->c.over_arg = s;
	chain_rig_start(&s->c, s->slots, SLOT, s->depth);
}

static void end(struct store *s)
{
	chain_rig_close(&s->c);
	program_free(s->p);
}

/* ---- the client's part --------------------------------------------------------------------------- */

static void send(struct store *s, uint64_t fp, uint64_t at, const uint8_t *payload, uint32_t bytes)
{
	uint8_t message[ARGS + MAX + 1];

	assert_int_equal(s->c.img->arg_len, ARGS);
	for (unsigned i = 0; i < FP; i++)
		message[i] = (uint8_t)(fp >> 8 * (FP - 1 - i));
	for (unsigned i = 0; i < AT; i++)
		message[FP + i] = (uint8_t)(at >> 8 * (AT - 1 - i));
	memcpy(message + ARGS, payload, MAX + 1);
	chain_rig_send(&s->c, message, bytes, NULL, 0);
}

/* Some of the silicon's work */
static void poll_some(struct store *s, uint64_t n)
{
	while (n-- > 0)
		hw_poll(s->c.rig.dev);
}

/* The answer, and what the server does then */
static void finish(struct store *s)
{
	const uint64_t before = s->c.completed;
	const uint8_t *cqe = NULL;
	char why[360] = "";

	for (unsigned n = 0; n < 100000 && (!cqe || s->c.completed == before); n++) {
		hw_poll(s->c.rig.dev);
		if (!cqe)
			cqe = rig_cq_next(&s->c.client_rcq);
		if (!chain_rig_serve(&s->c, why, sizeof(why)))
			fail_msg("%s", why);
	}
	if (!cqe || rig_cqe_op(cqe) != CQE_OP_RESP_WRITE_IMM)
		fail_msg("no answer");
	s->taken++;
	rig_run(&s->c.rig);
	rig_cq_count(&s->c.client_scq);
}

static void answer(const struct store *s, uint64_t *seen, uint64_t *was)
{
	const uint8_t *slot = s->slots + (s->taken - 1) % s->depth * SLOT;
	uint64_t w;

	*seen = wqe_get64(slot);
	memcpy(&w, slot + 8, sizeof(w));
	*was = le64toh(w);
}

/* What arguments are of which only @bytes have come */
static uint64_t came(uint64_t v, unsigned size, unsigned bytes)
{
	for (unsigned i = 0; i < size; i++)
		if (i >= bytes)
			v &= ~(0xffull << 8 * (size - 1 - i));
	return v;
}

/* ---- tests --------------------------------------------------------------------------------------- */

/* Another writer replaces the word of a bucket as an atomic does, and its record is an extent, or none */
static void replace_by_other(struct store *s, unsigned bucket)
{
	uint64_t old = word(s, bucket), now = TOMBSTONE;

	if (chain_rig_random(&s->c, 3))
		now = chain_locator(take_extent(s, BUCKET_OF, bucket) * EXTENT, ARGS);
	set_word(s, bucket, now);
	s->other_old = old;
}

static void one_put(struct store *s)
{
	const unsigned bucket = (unsigned)chain_rig_random(&s->c, BUCKETS);
	const bool right = chain_rig_random(&s->c, 4), meets = chain_rig_random(&s->c, 2);
	const uint32_t args =
		(uint32_t)chain_rig_random(&s->c, 8) ? ARGS : (uint32_t)chain_rig_random(&s->c, ARGS + 1);
	const uint32_t bytes = args == ARGS ? ARGS + (uint32_t)chain_rig_random(&s->c, MAX + 1) : args;
	const uint64_t fp = fp_of(right ? bucket : BUCKETS), at = bucket * BUCKET;
	const uint64_t extent = s->c.extent[s->c.sent & (s->c.env.slots - 1)], before = word(s, bucket);
	const uint64_t own = chain_locator(extent, bytes);
	uint8_t payload[MAX + 1], old[EXTENT];
	uint64_t seen, was;
	bool hits;

	chain_rig_fill(&s->c, payload, sizeof(payload));
	memcpy(old, s->heap + extent, EXTENT);
	send(s, fp, at, payload, bytes);
	if (meets) {
		poll_some(s, chain_rig_random(&s->c, 40));
		replace_by_other(s, bucket);
	}
	finish(s);
	answer(s, &seen, &was);
	hits = came(fp, FP, bytes) == fp_of((unsigned)(came(at, AT, bytes > FP ? bytes - FP : 0) / BUCKET));
	assert_int_equal(s->outcome.tried, hits);
	assert_int_equal(s->outcome.old, seen);
	assert_int_equal(s->outcome.now, own);
	assert_int_equal(s->outcome.published, hits && seen == was);
	if (hits)
		assert_int_equal(s->outcome.place, s->c.env.region[0].iova + at);
	if (hits && !meets)
		assert_true(s->outcome.published && seen == before);
	if (meets)
		retire(s, s->other_old);
	if (s->outcome.published && !meets)
		assert_int_equal(word(s, bucket), own);
	/* it has come to its place, with the server's header in front, and nothing behind it */
	assert_memory_equal(s->heap + extent, old, ARGS);
	assert_memory_equal(s->heap + extent + ARGS, payload, bytes > ARGS ? bytes - ARGS : 0);
	if (bytes >= ARGS)
		assert_memory_equal(s->heap + extent + bytes, old + bytes, EXTENT - bytes);
	s->published += s->outcome.published;
	s->lost += hits && !s->outcome.published;
	s->absent += !hits;
	check_extents(s);
}

static void puts_under_seeds(bool swapped, enum arming arming)
{
	struct store *s = test_malloc(sizeof(*s));
	unsigned published = 0, lost = 0, absent = 0;

	const uint64_t seeds = CHAIN_RIG_SEEDS / (arming == RECYCLED ? 20 : 5);

	for (uint64_t seed = 0; seed < seeds; seed++) {
		begin(s, put_text, seed, swapped, arming);
		for (unsigned i = 0; i < (arming == RECYCLED ? 5 * SLOTS : 40); i++)
			one_put(s);
		published += s->published;
		lost += s->lost;
		absent += s->absent;
		end(s);
	}
	print_message("%u published, %u lost their word, %u absent\n", published, lost, absent);
	assert_true(published > absent && lost > seeds / 2 && absent > 0);
	test_free(s);
}

static void puts_of_one_client(void **state)
{
	(void)state;
	puts_under_seeds(false, UNROLLED);
}

static void puts_whose_old_words_are_big_endian(void **state)
{
	(void)state;
	puts_under_seeds(true, UNROLLED);
}

static void deletes(void **state)
{
	static const uint8_t none[MAX + 1];
	struct store *s = test_malloc(sizeof(*s));
	uint64_t seen, was, before;

	(void)state;
	for (uint64_t seed = 0; seed < 50; seed++) {
		begin(s, del_text, seed, false, UNROLLED);
		for (unsigned i = 0; i < 3 * BUCKETS; i++) {
			const unsigned bucket = i % BUCKETS;
			const bool right = i % 5;

			before = word(s, bucket);
			send(s, fp_of(right ? bucket : BUCKETS), bucket * BUCKET, none, ARGS);
			finish(s);
			answer(s, &seen, &was);
			assert_int_equal(seen, before);
			assert_int_equal(s->outcome.old, before);
			assert_int_equal(s->outcome.published, right);
			assert_int_equal(was, right ? before : UINT64_MAX);
			assert_int_equal(word(s, bucket), right ? TOMBSTONE : before);
			check_extents(s);
		}
		end(s);
	}
	test_free(s);
}

/* Many at a time: each has the extent of its own slot */
static void many_under_seeds(enum arming arming)
{
	struct store *s = test_malloc(sizeof(*s));
	uint8_t payload[DEPTH][MAX + 1];

	for (uint64_t seed = 0; seed < (arming == RECYCLED ? 10 : 50); seed++) {
		begin(s, put_text, seed, false, arming);
		for (unsigned round = 0; round < (arming == RECYCLED ? 2 * SLOTS : 10); round++) {
			for (unsigned i = 0; i < s->depth; i++) {
				chain_rig_fill(&s->c, payload[i], sizeof(payload[i]));
				send(s, fp_of(i), i * BUCKET, payload[i], ARGS + 1 + 7 * i);
			}
			while (s->c.completed < s->c.sent) {
				char why[360];

				hw_poll(s->c.rig.dev);
				if (!chain_rig_serve(&s->c, why, sizeof(why)))
					fail_msg("%s", why);
				while (rig_cq_next(&s->c.client_rcq))
					s->taken++;
				rig_cq_count(&s->c.client_scq);
			}
			rig_run(&s->c.rig);
			check_extents(s);
			for (unsigned i = 0; i < s->depth; i++) {
				uint64_t w = word(s, i);

				assert_int_equal(chain_located_bytes(w), ARGS + 1 + 7 * i);
				assert_memory_equal(
					s->heap + chain_located_at(w) + ARGS, payload[i], 1 + 7 * i);
			}
		}
		end(s);
	}
	test_free(s);
}

static void puts_at_a_time(void **state)
{
	(void)state;
	many_under_seeds(UNROLLED);
}

static void recycled_puts(void **state)
{
	(void)state;
	puts_under_seeds(false, RECYCLED);
	many_under_seeds(RECYCLED);
}

/* Nobody looks what became of extents: no slot is armed again, and the client waits until somebody does. Then
 * all sections but one are due at the same time, and the silicon fetches as far as it may. */
static void no_sections(void **state)
{
	struct store *s = test_malloc(sizeof(*s));
	uint8_t payload[MAX + 1] = {0};
	char why[360];

	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		begin(s, put_text, seed, false, RECYCLED);
		for (unsigned lap = 1; lap <= 4; lap++) {
			s->c.no_sections = true;
			for (unsigned i = 0; i < SLOTS - 1; i++) {
				send(s, fp_of(i % BUCKETS), i % BUCKETS * BUCKET, payload, ARGS + 24);
				finish(s);
			}
			send(s, fp_of(0), 0, payload, ARGS + 24);
			poll_some(s, 5000);
			assert_true(chain_rig_serve(&s->c, why, sizeof(why)));
			assert_int_equal(s->c.completed, lap * SLOTS - 1);
			s->c.no_sections = false;
			finish(s);
			assert_int_equal(s->c.looked, lap * SLOTS);
			while (s->c.given < lap * (SLOTS / chain_recycle_together(SLOTS))) {
				rig_run(&s->c.rig);
				assert_true(chain_rig_serve(&s->c, why, sizeof(why)));
			}
			rig_run(&s->c.rig);
			check_extents(s);
		}
		end(s);
	}
	test_free(s);
}

/* Nothing is published, and nothing that is there changes */
static void assert_nothing(struct store *s, const uint8_t *buckets)
{
	rig_settle(&s->c.rig);
	assert_memory_equal(s->buckets, buckets, BUCKETS * BUCKET);
	assert_false(chain_rig_outcome(&s->c, s->c.sent - 1).tried);
	check_extents(s);
}

static void a_message_that_is_too_long(void **state)
{
	static const uint8_t zero[MAX + 1];
	struct store *s = test_malloc(sizeof(*s));
	uint8_t buckets[BUCKETS * BUCKET];

	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		begin(s, put_text, seed, false, UNROLLED);
		memcpy(buckets, s->buckets, sizeof(buckets));
		send(s, fp_of(3), 3 * BUCKET, zero, ARGS + MAX + 1);
		assert_nothing(s, buckets);
		end(s);
	}
	test_free(s);
}

/* Some of it is in the extent when the client is gone: the RECV is flushed */
static void a_client_that_dies_in_the_middle(void **state)
{
	struct store *s = test_malloc(sizeof(*s));
	uint8_t buckets[BUCKETS * BUCKET];

	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		begin(s, put_text, seed, false, UNROLLED);
		memcpy(buckets, s->buckets, sizeof(buckets));
		chain_rig_fill(&s->c, s->heap + s->c.extent[0] + ARGS, MAX / 2);
		s->c.sent++;
		poll_some(s, seed);
		rig_qp_to(&s->c.client, HW_ERR);
		rig_qp_to(&s->c.queue[0], HW_ERR);
		assert_nothing(s, buckets);
		end(s);
	}
	test_free(s);
}

/* Nobody would look what became of it */
static void no_recycling_without_a_payload(void **state)
{
	struct program *p = compile(del_text, false);
	struct chain_env env = {.slots = 64};
	struct chain_recycle size;

	(void)state;
	for (unsigned q = 0; q < p->image->nqueues; q++)
		env.queue[q].ring_wqebbs = chain_recycle_ring(p->image, q, env.slots);
	assert_int_equal(chain_recycle_size(p->image, &env, &size), -EOPNOTSUPP);
	program_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(puts_of_one_client),
		cmocka_unit_test(puts_whose_old_words_are_big_endian),
		cmocka_unit_test(puts_at_a_time),
		cmocka_unit_test(deletes),
		cmocka_unit_test(a_message_that_is_too_long),
		cmocka_unit_test(a_client_that_dies_in_the_middle),
		cmocka_unit_test(recycled_puts),
		cmocka_unit_test(no_sections),
		cmocka_unit_test(no_recycling_without_a_payload),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
