/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/schedule/derive.h"

#include "mlx5/wqe.h"
#include "protocol/table-format.h"
#include "reddnd/chain/ring/arm.h"
#include "reddnd/chain/verify/order.h"
#include "tests/chain/by-hand.h"
#include "tests/lib/nomem.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/cmocka.h"

/* clang-format off */
#define WORD(w, at, n) {.kind = CHAIN_AT_SCRATCH, .name = (w), .from = (at), .len = (n)}
#define REGION(i, at, n) {.kind = CHAIN_AT_REGION, .index = (i), .from = (at), .len = (n)}
#define FIELD(step, f, at, n) {.kind = CHAIN_AT_FIELD, .name = (step), .field = (f), .from = (at), .len = (n)}
#define SLOT(at) {.kind = CHAIN_AT_SLOT, .from = (at)}

#define LOOK(q, name, hit, fp) \
	{.label = (name), .queue = (q), .verb = CHAIN_READ, .remote = REGION(0, 0, 0), .line = __LINE__, \
	 .local = {FIELD(hit, CHAIN_F_LOCAL_LEN, 1, 3), FIELD(hit, CHAIN_F_LOCAL_ADDR, 3, 5), WORD("probe", fp, 7)}}
#define MATCH(q, name, at, tag, to) \
	{.label = (name), .queue = (q), .verb = CHAIN_CAS, .remote = WORD("probe", at, 0), \
	 .compare = (tag), .swap = (to), .line = __LINE__}
#define HIT(name) \
	{.label = (name), .verb = CHAIN_WRITE, .flags = CHAIN_DORMANT, .remote = SLOT(64), .local = {REGION(1, 0, 1)}, \
	 .line = __LINE__}
#define DONE(f) \
	{.label = "done", .verb = CHAIN_WRITE_IMM, .flags = CHAIN_IMM_SEQ | (f), .remote = SLOT(0), \
	 .local = {REGION(2, 0, 64)}, .line = __LINE__}
#define TAG ((uint64_t)REDDN_TABLE_TAG)
/* clang-format on */

static struct chain_desc *derive(const struct chain_desc *d)
{
	struct chain_desc *out = NULL;
	struct chain_error err;

	if (chain_derive(d, &out, &err))
		fail_msg("refused: %s", chain_error_name(err.code));
	return out;
}

static const struct chain_queue_desc queues[] = {{"reply", 0}, {"look0", 0}, {"look1", 0}};

static void free_image(struct chain_image **img)
{
	chain_free(*img);
}

#define IMAGE __attribute__((cleanup(free_image))) struct chain_image

static int derive_and_free(const struct chain_desc *d)
{
	struct chain_desc *out = NULL;
	struct chain_error err;
	int r = chain_derive(d, &out, &err);

	chain_derive_free(out);
	return r;
}

/* The chain of test-by-hand.c, but for what that orders by hand */
static void assert_hash_get(bool parallel, const struct chain_step *steps, unsigned nsteps)
{
	static const uint8_t init[24] = {[16] = WQE_OP_WRITE_IMM};
	struct chain_word word = {"probe", parallel ? 24 : 16, parallel ? init : NULL};
	unsigned p = parallel;
	struct chain_place args[] = {
		FIELD("match0", CHAIN_F_COMPARE, 2, 6),
		FIELD("look0", CHAIN_F_REMOTE_ADDR, 3, 5),
		FIELD("match1", CHAIN_F_COMPARE, 1 + p, 6),
		FIELD("look1", CHAIN_F_REMOTE_ADDR, 3, 5),
	};
	struct chain_desc text =
				  {
					  .name = parallel ? "hash-get-parallel" : "hash-get",
					  .queues = queues,
					  .nqueues = parallel ? 3 : 2,
					  .words = &word,
					  .nwords = 1,
					  .nregions = 3,
					  .steps = steps,
					  .nsteps = nsteps,
					  .args = args,
					  .nargs = 4,
				  },
			  *d = derive(&text);
	IMAGE *got = NULL, *want = NULL;
	struct chain_error err;

	assert_int_equal(chain_hash_get(&(struct chain_hash_get){parallel, 5}, &want), 0);
	if (chain_build(d, &got, &err))
		fail_msg("refused: %s", chain_error_name(err.code));
	assert_int_equal(got->nqueues, want->nqueues);
	assert_int_equal(got->n_copy, want->n_copy);
	assert_int_equal(got->n_sync, want->n_sync);
	assert_int_equal(got->n_atomic, want->n_atomic);
	for (unsigned q = 0; q < want->nqueues; q++) {
		assert_int_equal(got->queue[q].wqebbs, want->queue[q].wqebbs);
		assert_int_equal(got->queue[q].head_wqebbs, want->queue[q].head_wqebbs);
		assert_int_equal(got->queue[q].cqes, want->queue[q].cqes);
		assert_memory_equal(got->queue[q].wqes, want->queue[q].wqes, want->queue[q].wqebbs * 64);
	}
	assert_int_equal(got->nrelocs, want->nrelocs);
	assert_memory_equal(got->relocs, want->relocs, want->nrelocs * sizeof(*want->relocs));
	chain_derive_free(d);
	NOMEM_TRY(-ENOMEM, derive_and_free(&text));
	assert_int_equal(nomem_result, 0);
}

static void hash_get_as_by_hand(void **state)
{
	static const struct chain_step sequential[] = {
		LOOK(1, "look0", "hit0", 0),
		LOOK(1, "look1", "hit1", 9),
		MATCH(1, "match0", 0, TAG << 48, (uint64_t)WQE_OP_WRITE << 56),
		MATCH(1, "match1", 8, TAG << 56, WQE_OP_WRITE),
		{.label = "decide",
			.queue = 1,
			.verb = CHAIN_READ,
			.remote = WORD("probe", 7, 0),
			.local = {FIELD("hit0", CHAIN_F_OPCODE, 0, 1), FIELD("hit1", CHAIN_F_OPCODE, 0, 1)}},
		HIT("hit0"),
		HIT("hit1"),
		DONE(0),
	};
	static const struct chain_step parallel[] = {
		LOOK(1, "look0", "hit0", 0),
		MATCH(1, "match0", 0, TAG << 48, (uint64_t)WQE_OP_WRITE << 56),
		{.label = "decide0",
			.queue = 1,
			.verb = CHAIN_READ,
			.remote = WORD("probe", 7, 0),
			.local = {FIELD("hit0", CHAIN_F_OPCODE, 0, 1)}},
		HIT("hit0"),
		LOOK(2, "look1", "hit1", 8),
		MATCH(2, "match1", 8, TAG << 48, (uint64_t)WQE_OP_WRITE << 56),
		{.label = "decide1",
			.queue = 2,
			.verb = CHAIN_READ,
			.remote = WORD("probe", 15, 0),
			.local = {FIELD("hit1", CHAIN_F_OPCODE, 0, 1), FIELD("done", CHAIN_F_OPCODE, 0, 1)}},
		HIT("hit1"),
		DONE(CHAIN_DORMANT),
	};

	assert_hash_get(false, sequential, sizeof(sequential) / sizeof(sequential[0]));
	assert_hash_get(true, parallel, sizeof(parallel) / sizeof(parallel[0]));
}

/* Where the device heeds it, a fence takes the place of the WAIT before the SEND_EN of what is patched */
static void fences_for_waits(void **state)
{
	static const struct chain_word word = {"w", 16, NULL};
	static const struct chain_step steps[] = {
		{.label = "look",
			.queue = 1,
			.verb = CHAIN_READ,
			.remote = REGION(0, 0, 0),
			.local = {FIELD("next", CHAIN_F_REMOTE_ADDR, 3, 5)}},
		{.label = "next",
			.queue = 1,
			.verb = CHAIN_READ,
			.remote = REGION(0, 0, 0),
			.local = {WORD("w", 0, 8)}},
		{.label = "keep",
			.queue = 1,
			.verb = CHAIN_WRITE,
			.remote = WORD("w", 8, 0),
			.local = {WORD("w", 0, 8)}},
		{.label = "done", .verb = CHAIN_WRITE_IMM, .remote = SLOT(0), .local = {WORD("w", 8, 8)}},
	};
	struct chain_desc text = {.name = "fences",
		.queues = queues,
		.nqueues = 2,
		.words = &word,
		.nwords = 1,
		.nregions = 1,
		.steps = steps};

	for (unsigned n = 3; n <= 4; n++)
		for (unsigned fenced = 0; fenced < 2; fenced++) {
			struct chain_step some[4] = {steps[0], steps[1], steps[n == 4 ? 2 : 3], steps[3]};
			unsigned waits = 0, fences = 0;
			struct chain_desc *d;

			some[n - 1].local[0].from = n == 4 ? 8 : 0;
			text.steps = some;
			text.nsteps = n;
			text.fenced_enables = fenced;
			d = derive(&text);
			for (unsigned s = 0; s < d->nsteps; s++) {
				waits += d->steps[s].verb == CHAIN_WAIT;
				fences +=
					d->steps[s].verb == CHAIN_SEND_EN && d->steps[s].flags & CHAIN_FENCE;
			}
			/* for the request, for "look", and for the last; that for a WRITE stays */
			assert_int_equal(waits, fenced ? n - 2 : 3);
			assert_int_equal(fences, fenced ? 5 - n : 0);
			chain_derive_free(d);
		}
}

/* A fence is for the READ, and not for the WRITE before it: the end waits for that, and SEND_ENs before can
 * be fenced all the same */
static void fences_for_no_writes(void **state)
{
	static const struct chain_word word = {"w", 32, NULL};
	const struct chain_step steps[] = {
		{.label = "keep",
			.queue = 1,
			.verb = CHAIN_WRITE,
			.remote = WORD("w", 8, 0),
			.local = {WORD("w", 24, 8)}},
		{.label = "look",
			.queue = 1,
			.verb = CHAIN_READ,
			.remote = REGION(0, 0, 0),
			.local = {WORD("w", 0, 8)}},
		{.label = "add", .queue = 1, .verb = CHAIN_FETCH_ADD, .remote = WORD("w", 0, 0), .add = 1},
		{.label = "again",
			.queue = 1,
			.verb = CHAIN_READ,
			.remote = REGION(0, 0, 0),
			.local = {FIELD("next", CHAIN_F_REMOTE_ADDR, 3, 5)}},
		{.label = "next",
			.queue = 1,
			.verb = CHAIN_READ,
			.remote = REGION(0, 0, 0),
			.local = {WORD("w", 16, 8)}},
		{.label = "done", .verb = CHAIN_WRITE_IMM, .remote = SLOT(0), .local = {WORD("w", 0, 8)}},
	};
	struct chain_desc text = {.name = "writes",
				  .queues = queues,
				  .nqueues = 2,
				  .words = &word,
				  .nwords = 1,
				  .nregions = 1,
				  .steps = steps,
				  .nsteps = sizeof(steps) / sizeof(steps[0]),
				  .fenced_enables = true},
			  *d = derive(&text);
	unsigned waits = 0, fences = 0;

	for (unsigned s = 0; s < d->nsteps; s++) {
		const struct chain_step *st = &d->steps[s];

		waits += st->verb == CHAIN_WAIT && st->until != NULL;
		fences += st->verb == CHAIN_SEND_EN && st->flags & CHAIN_FENCE;
	}
	assert_int_equal(waits, 1);
	assert_int_equal(fences, 2);
	chain_derive_free(d);
}

/* On a device that fetches groups, what is patched is in another group than what is enabled before */
static void groups_are_filled(void **state)
{
	static const struct chain_word word = {"w", 8, NULL};
	static const struct chain_step steps[] = {
		{.label = "look",
			.queue = 1,
			.verb = CHAIN_READ,
			.remote = REGION(0, 0, 0),
			.local = {FIELD("next", CHAIN_F_REMOTE_ADDR, 3, 5)}},
		{.label = "next",
			.queue = 1,
			.verb = CHAIN_READ,
			.remote = REGION(0, 0, 0),
			.local = {WORD("w", 0, 8)}},
		{.label = "done", .verb = CHAIN_WRITE_IMM, .remote = SLOT(0), .local = {WORD("w", 0, 8)}},
	};
	struct chain_desc text = {.name = "groups",
		.queues = queues,
		.nqueues = 2,
		.words = &word,
		.nwords = 1,
		.nregions = 1,
		.steps = steps,
		.nsteps = 3};
	struct chain_desc *d = derive(&text);
	struct chain_error err;
	IMAGE *plain = NULL;

	assert_int_equal(chain_build(d, &plain, &err), 0);
	d->fetch_group = 4;
	assert_int_equal(chain_check_order(d, &err), CHAIN_REFUSED);
	chain_derive_free(d);
	for (unsigned group = 2; group <= CHAIN_MAX_GROUP; group *= 2) {
		IMAGE *img = NULL;

		text.fetch_group = (uint16_t)group;
		d = derive(&text);
		assert_int_equal(chain_check_order(d, &err), 0);
		assert_int_equal(chain_build(d, &img, &err), 0);
		for (unsigned q = 0; q < img->nqueues; q++) {
			assert_int_equal(img->queue[q].wqebbs % group, 0);
			assert_int_equal(img->queue[q].head_wqebbs % group, 0);
		}
		for (unsigned i = 0; i < img->nrelocs; i++)
			if (img->relocs[i].kind == CHAIN_REL_ENABLE)
				assert_int_equal(img->relocs[i].addend % group, 0);
		assert_true(img->n_pad > 0 && d->nsteps == img->n_pad + img->n_copy + img->n_sync);
		assert_int_equal(img->n_copy, plain->n_copy);
		assert_int_equal(img->n_sync, plain->n_sync);
		chain_derive_free(d);
	}
	NOMEM_TRY(-ENOMEM, derive_and_free(&text));
	assert_int_equal(nomem_result, 0);
}

struct ahead {
	unsigned waits, enables, early; /* SEND_ENs of the reply, and those before the second read */
};

/* Two reads, the second at the address from the first, and an answer to each; and perhaps @more */
static struct ahead derive_ahead(uint8_t flags, const struct chain_step more[2])
{
	static const struct chain_word word = {"w", 24, NULL};
	const struct chain_step steps[] = {
		{.label = "look",
			.queue = 1,
			.verb = CHAIN_READ,
			.remote = REGION(0, 0, 0),
			.local = {FIELD("next", CHAIN_F_REMOTE_ADDR, 3, 5), WORD("w", 0, 8)}},
		{.label = "hello", .verb = CHAIN_SEND, .flags = flags, .local = {WORD("w", 0, 8)}},
		{.label = "next",
			.queue = 1,
			.verb = CHAIN_READ,
			.remote = REGION(0, 0, 0),
			.local = {WORD("w", 8, 8)}},
		more ? more[0] : (struct chain_step){.queue = 1, .verb = CHAIN_NOP},
		more ? more[1] : (struct chain_step){.queue = 1, .verb = CHAIN_NOP},
		{.label = "done", .verb = CHAIN_WRITE_IMM, .remote = SLOT(0), .local = {REGION(0, 0, 8)}},
	};
	struct chain_desc text = {.name = "ahead",
		.queues = queues,
		.nqueues = more && more[0].queue == 2 ? 3 : 2,
		.words = &word,
		.nwords = 1,
		.nregions = 1,
		.steps = steps,
		.nsteps = sizeof(steps) / sizeof(steps[0])};
	struct chain_desc *d = derive(&text);
	struct ahead n = {0};
	bool next = false;

	for (unsigned s = 0; s < d->nsteps; s++) {
		const struct chain_step *st = &d->steps[s];
		bool reply = st->verb == CHAIN_SEND_EN && st->target == 0;

		next |= st->label && strcmp(st->label, "next") == 0;
		n.waits += st->verb == CHAIN_WAIT;
		n.enables += reply;
		n.early += reply && !next;
	}
	chain_derive_free(d);
	return n;
}

/* What is ahead of other steps is enabled before them: by a SEND_EN more, and no WAIT */
static void ahead_of_the_rest(void **state)
{
	static const struct chain_step by_hand[2] = {
		{.queue = 1, .verb = CHAIN_WAIT, .until = "next"},
		{.queue = 1, .verb = CHAIN_SEND_EN, .target = 0, .through = "done"},
	};
	static const struct chain_step beside[2] = {
		{.queue = 2, .verb = CHAIN_NOP},
		{.queue = 2, .verb = CHAIN_NOP},
	};
	struct ahead plain = derive_ahead(0, NULL), ahead = derive_ahead(CHAIN_AHEAD, NULL);

	assert_int_equal(plain.enables, 1);
	assert_int_equal(plain.early, 0);
	assert_int_equal(ahead.enables, 2);
	assert_int_equal(ahead.early, 1);
	assert_int_equal(ahead.waits, plain.waits);
	/* not if the author orders it by hand, or with work in several queues */
	assert_int_equal(derive_ahead(CHAIN_AHEAD, by_hand).enables, 1);
	assert_int_equal(derive_ahead(CHAIN_AHEAD, beside).early, 0);
}

/* Where the chain changes nothing, the head may stand in the code */
static void instances_overlap(void **state)
{
	static const struct chain_word word = {"w", 8, NULL};
	static const struct chain_step steps[] = {
		{.label = "look",
			.queue = 1,
			.verb = CHAIN_READ,
			.remote = REGION(0, 0, 0),
			.local = {WORD("w", 0, 8)}},
		{.label = "keep",
			.queue = 1,
			.verb = CHAIN_WRITE,
			.remote = REGION(0, 8, 0),
			.local = {WORD("w", 0, 8)}},
		{.label = "done", .verb = CHAIN_WRITE_IMM, .remote = SLOT(0), .local = {WORD("w", 0, 8)}},
	};
	struct chain_desc text = {.name = "overlap",
		.queues = queues,
		.nqueues = 2,
		.words = &word,
		.nwords = 1,
		.nregions = 1};

	for (unsigned i = 0; i < 4; i++) {
		bool overlap = i & 1, changes = i & 2;
		const struct chain_step some[] = {steps[0], steps[changes ? 1 : 2], steps[2]};
		struct chain_desc *d;
		unsigned q;

		text.steps = some;
		text.nsteps = changes ? 3 : 2;
		text.overlap = overlap;
		d = derive(&text);
		q = overlap && !changes;
		assert_int_equal(d->queues[q].head, 2);
		assert_int_equal(d->queues[!q].head, 0);
		assert_true(d->steps[0].queue == q && d->steps[0].verb == CHAIN_WAIT && !d->steps[0].until);
		assert_true(d->steps[1].queue == q && d->steps[1].verb == CHAIN_SEND_EN &&
			    d->steps[1].target == 1);
		assert_int_equal(d->steps[1].upto, q ? CHAIN_UPTO_NEXT_HEAD : CHAIN_UPTO_END);
		chain_derive_free(d);
	}
	text.steps = steps;
	text.nsteps = 3;
	NOMEM_TRY(-ENOMEM, derive_and_free(&text));
	assert_int_equal(nomem_result, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hash_get_as_by_hand),
		cmocka_unit_test(fences_for_waits),
		cmocka_unit_test(fences_for_no_writes),
		cmocka_unit_test(groups_are_filled),
		cmocka_unit_test(ahead_of_the_rest),
		cmocka_unit_test(instances_overlap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
