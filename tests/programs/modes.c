/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * modes [--programs N [FIRST [FILE]]]: programs armed by a CPU beside the same programs kept going by the NIC
 * (unrolled and recycled), on two pieces of emulated silicon with other choices each. Both get the same
 * requests, one at a time: whole ones, and such as are too short. After each, slots, replies and regions must
 * be the same. In the end comes one that is too long, or a queue pair fails, before or after a request: that
 * must not execute anything, whatever is armed. Every fourth pair begins where numbers of 16, 24 and 32 bits
 * are about to wrap.
 *
 * Without arguments: each program of the library, under some seeds, and random programs. With --programs
 * until there were so many at random, from number FIRST on; with FILE, that program instead, once.
 */
#include "tests/programs/offloads.h"
#include "tests/programs/random-offload.h"
#include "tests/programs/values.h"

#include "mlx5/wqe.h"
#include "softcx/hw/cq.h"
#include "util/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	SLOTS = 4,     /* of a recycled chain: the fewest, so that each is used again soon */
	REQUESTS = 11, /* of a pair */
	LONG_SLOTS = 256,
	LONG_REQUESTS = 300,
	LONGER = 64,    /* bytes, at most */
	REPLY = 4096,   /* takes what a SEND answers */
	PATIENCE = 600, /* polls of the silicon for one request */
	UNROLLED = 0,
	RECYCLED = 1,
};

enum kind { WHOLE, SHORT, LONG, FLUSHED, DENIED };

static const char *const KINDS[] = {"a whole request", "a request that is too short",
	"a request that is too long", "a queue pair that fails", "a reply that is refused"};

enum result { ANSWERED, FAILED, NOTHING, ENDLESS };

static const char *const RESULTS[] = {"is answered", "ends the client", "has no effect", "goes on and on"};

struct side {
	struct run *r;
	uint8_t *request, *reply;
	uint32_t imm; /* of the last answer */
};

struct pair {
	const struct run_offload *o;
	struct side side[2];
	unsigned n;
	enum kind kind;
	uint32_t len;
	char why[400];
};

static struct {
	uint64_t programs, pairs, requests, kinds[DENIED + 1], failed, endless, wrapped, loops, overlap;
} did;

/* ---- one request ------------------------------------------------------------------------------- */

static void begin(struct side *s, const struct run_offload *o, struct program *p, uint64_t seed,
	unsigned slots, uint64_t first)
{
	s->r = run_begin(o, p, seed, slots, first);
	s->request = rig_alloc(&s->r->c.rig, CHAIN_MAX_ARG + LONGER);
	s->reply = rig_alloc(&s->r->c.rig, REPLY);
}

/* False: there is no end */
static bool rest(struct side *s)
{
	unsigned polls = 0;

	while (hw_poll(s->r->c.rig.dev))
		if (++polls > PATIENCE)
			return false;
	return true;
}

static unsigned replies(struct side *s, bool *error)
{
	const uint8_t *cqe;
	unsigned n = 0;

	while ((cqe = rig_cq_next(&s->r->c.client_rcq))) {
		n++;
		s->imm = wqe_get32(cqe + 36);
		*error |= rig_cqe_op(cqe) >= CQE_OP_REQ_ERR;
	}
	while ((cqe = rig_cq_next(&s->r->c.client_scq)))
		*error |= rig_cqe_op(cqe) != CQE_OP_REQ;
	return n;
}

static void deny_slot(struct chain_rig *c)
{
	for (unsigned k = 0; k < c->nkeys; k++)
		if (c->key[k] == c->env.slot_rkey) {
			assert_int_equal(hw_mkey_destroy(c->rig.dev, c->key[k]), 0);
			c->key[k] = c->key[--c->nkeys];
			return;
		}
}

static enum result ask(struct side *s, const struct pair *p, const uint8_t *bytes)
{
	struct chain_rig *c = &s->r->c;
	bool error = false, serves;
	char why[360];
	unsigned n;

	if (p->kind == DENIED)
		deny_slot(c);
	if (p->kind == FLUSHED) {
		rig_qp_to(&c->queue[0], HW_ERR);
	} else {
		memcpy(s->request, bytes, p->len);
		rig_recv(&c->client, 1, s->reply, REPLY);
		wqe_send(&c->client, WQE_OP_SEND, s->request, p->len, SIG, 0);
		rig_ring(&c->client);
		c->sent++;
	}
	if (!rest(s))
		return ENDLESS;
	serves = chain_rig_serve(c, why, sizeof(why));
	n = replies(s, &error);
	if (!serves || error)
		return FAILED;
	return rest(s) ? n ? ANSWERED : NOTHING : ENDLESS;
}

/* ---- the same on both sides -------------------------------------------------------------------- */

static bool differ(struct pair *p, const char *what, size_t at, unsigned is, unsigned other)
{
	snprintf(p->why, sizeof(p->why), "request %u, %s of %u bytes: byte %zu of %s is %#x and %#x", p->n,
		KINDS[p->kind], p->len, at, what, is, other);
	return false;
}

static bool same_bytes(struct pair *p, const uint8_t *a, const uint8_t *b, size_t n, const char *what)
{
	for (size_t i = 0; memcmp(a, b, n) && i < n; i++)
		if (a[i] != b[i])
			return differ(p, what, i, a[i], b[i]);
	return true;
}

static bool same_memory(struct pair *p, bool slots)
{
	const struct run *a = p->side[UNROLLED].r, *b = p->side[RECYCLED].r;

	for (unsigned i = 0; i < a->p->nregions; i++)
		if (!same_bytes(p, a->region[i], b->region[i], p->o->region_bytes[i], a->p->regions[i].name))
			return false;
	return !slots ||
	       (same_bytes(p, a->slots, b->slots, RUN_SLOT, "the slot") &&
		       same_bytes(p, p->side[UNROLLED].reply, p->side[RECYCLED].reply, REPLY, "the answer"));
}

/* The model holds what was there before */
static bool unchanged(struct pair *p)
{
	for (unsigned side = 0; side < 2; side++) {
		const struct run *r = p->side[side].r;

		for (unsigned i = 0; i < r->p->nregions; i++)
			if (!same_bytes(p, r->model[i], r->region[i], p->o->region_bytes[i],
				    side == RECYCLED ? "a region, unrolled before and recycled now,"
						     : "a region, before and unrolled now,"))
				return false;
		if (!same_bytes(p, r->slots_after, r->slots, RUN_SLOT, "the slot, before and now,"))
			return false;
	}
	return true;
}

static void note_memory(struct pair *p)
{
	for (unsigned side = 0; side < 2; side++) {
		struct run *r = p->side[side].r;

		for (unsigned i = 0; i < r->p->nregions; i++)
			memcpy(r->model[i], r->region[i], p->o->region_bytes[i]);
		memcpy(r->slots_after, r->slots, RUN_SLOT);
	}
}

static uint32_t shorter(struct run *r, uint32_t whole)
{
	uint32_t at = 0;

	switch (run_random(r, 4)) {
	case 0:
		return whole - 1;
	case 1:
		return (uint32_t)run_random(r, 2) % whole;
	case 2: /* whole places, or a byte of the next */
		for (uint64_t n = run_random(r, r->c.img->nrecv + 1u); n-- > 0;)
			at += r->c.img->recv[n].len;
		return (at + (uint32_t)run_random(r, 2)) % whole;
	}
	return (uint32_t)run_random(r, whole);
}

/* 1: the same, and there may be more; 0: the same, and the client is gone; -1: not the same */
static int step(struct pair *p, enum kind kind)
{
	struct run *r = p->side[UNROLLED].r;
	uint8_t wire[CHAIN_MAX_ARG + LONGER] = {0};
	enum result a, b;

	note_memory(p);
	r->o->request(r, r->slots_after);
	if (r->enough) /* none can be answered */
		return 0;
	p->len = run_wire(r, wire);
	note_memory(p);
	p->kind = kind == SHORT && p->len == 0 ? WHOLE : kind;
	if (p->kind == SHORT)
		p->len = shorter(r, p->len);
	if (p->kind == LONG)
		for (uint64_t more = 1 + run_random(r, LONGER); more-- > 0;)
			wire[p->len++] = (uint8_t)run_random(r, 256);
	a = ask(&p->side[UNROLLED], p, wire);
	b = ask(&p->side[RECYCLED], p, wire);
	did.requests++;
	did.kinds[p->kind]++;
	did.failed += a == FAILED && kind <= SHORT;
	did.endless += a == ENDLESS || b == ENDLESS;
	if ((a == ENDLESS || b == ENDLESS) && !r->p->loop) {
		snprintf(p->why, sizeof(p->why), "request %u, %s of %u bytes, goes on and on %s", p->n,
			KINDS[p->kind], p->len, a == ENDLESS ? "unrolled" : "recycled");
		return -1;
	}
	if (a == ENDLESS || b == ENDLESS)
		return 0;
	if (p->kind == LONG || p->kind == FLUSHED) /* the modes notice it at different places */
		return unchanged(p) ? 0 : -1;
	if (a != b) {
		snprintf(p->why, sizeof(p->why), "request %u, %s of %u bytes: %s unrolled, and %s recycled",
			p->n, KINDS[p->kind], p->len, RESULTS[a], RESULTS[b]);
		return -1;
	}
	if (a == NOTHING) {
		snprintf(p->why, sizeof(p->why), "request %u, %s of %u bytes, is not answered", p->n,
			KINDS[p->kind], p->len);
		return -1;
	}
	if (p->kind == DENIED)
		return same_memory(p, false) ? 0 : -1;
	if (a == ANSWERED && p->side[UNROLLED].imm != p->side[RECYCLED].imm) {
		differ(p, "the immediate", 0, p->side[UNROLLED].imm, p->side[RECYCLED].imm);
		return -1;
	}
	/* a chain that fails has done a part of its work, and it depends on the silicon which */
	return a == FAILED ? 0 : same_memory(p, true) ? 1 : -1;
}

/* What a request lacks is documented to be arguments of zero */
static bool lacks_zeros(struct pair *p)
{
	struct run *r = p->side[UNROLLED].r;
	const struct chain_image *img = r->c.img;
	uint8_t wire[CHAIN_MAX_ARG];
	uint32_t at = 0;

	memset(r->arg, 0, sizeof(r->arg));
	run_wire(r, wire);
	for (unsigned i = 0; i < img->nrecv; i++) {
		const struct chain_recv_sge *g = &img->recv[i];
		const uint8_t *bytes =
			g->sym == CHAIN_SYM_QUEUE ? img->queue[g->index].wqes : img->scratch_init;

		if (!same_bytes(
			    p, bytes + g->offset, wire + at, g->len, "the image, and a request of zeros,"))
			return false;
		at += g->len;
	}
	return true;
}

/* Both modes beside each other. @unrolled: @prog as an unrolled session has it. False, and the reason in @why
 */
static bool run_pair(const struct run_offload *offload, struct program *unrolled, struct program *prog,
	uint64_t seed, unsigned slots, unsigned requests, char why[400])
{
	struct run_offload o = *offload;
	struct pair p = {.o = &o};
	/* the ring of a loop begins with its first request */
	uint64_t first = seed % 4 == 3 && !prog->loop ? (1ull << 32) - 2ull * slots : 0;
	int r = 1;

	o.depth = 1;
	begin(&p.side[UNROLLED], &o, unrolled, seed, 0, first);
	begin(&p.side[RECYCLED], &o, prog, seed, slots, first);
	chain_rig_seed(&p.side[RECYCLED].r->c, ~seed);
	did.pairs++;
	did.wrapped += first > 0;
	did.loops += prog->loop != NULL;
	if (!lacks_zeros(&p) || !same_memory(&p, true))
		r = -1;
	for (p.n = 0; p.n < requests && r > 0; p.n++)
		r = step(&p, run_random(p.side[UNROLLED].r, 2) ? SHORT : WHOLE);
	if (r > 0)
		r = step(&p, LONG + (enum kind)run_random(p.side[UNROLLED].r, 3));
	memcpy(why, p.why, sizeof(p.why));
	run_end(p.side[UNROLLED].r);
	run_end(p.side[RECYCLED].r);
	return r >= 0;
}

/* ---- programs ---------------------------------------------------------------------------------- */

/* Statements that a condition decides or changes: what they leave otherwise is not there for the next request
 */
static void data_setup(struct run *r)
{
	run_fill(r, r->region[0], r->o->region_bytes[0]);
}

static void coin_request(struct run *r, uint8_t *slot)
{
	(void)slot;
	run_arg(r, "x", run_random(r, 2));
}

#define CHANGED(n, access, change, rest)                                                                     \
	{                                                                                                    \
		.name = n,                                                                                   \
		.text = "program p\nregion data " access                                                     \
			"\narg x : u8\nvar v : be64 = 1\nvar w : be64 = 2\n"                                 \
			"if x == 1 {\n  " change "\n}\n" rest,                                               \
		.region_bytes = {256}, .setup = data_setup, .request = coin_request                          \
	}

static const struct run_offload changed[] = {
	CHANGED("a read", "", "read data @ 0 as be64 -> v", "write_imm v -> slot @ 0\n"),
	CHANGED("a read of what is compared", "", "read data @ 0 as be64 -> v",
		"if v == 1 {\n  mov 77 as be64 -> w\n}\nwrite_imm v, w -> slot @ 0\n"),
	CHANGED("a write", "writable", "write v -> data @ 8",
		"mov data @ 8 as be64 -> v\nwrite_imm v -> slot @ 0\n"),
	CHANGED("a read from elsewhere", "", "mov 32 as u8 -> r.remote[7]",
		"r: read data @ 0 as be64 -> v\nwrite_imm v -> slot @ 0\n"),
	CHANGED("another immediate", "", "mov 7 as be32 -> r.imm", "r: write_imm v -> slot @ 0\n"),
};

static struct program *compile_unrolled(const struct run_offload *o)
{
	struct program *p;

	run_overlap = true;
	p = run_compile(o);
	run_overlap = false;
	return p;
}

/* Instances of a recycled session overlap like those of an unrolled one, if there they can */
static bool both_overlap(const struct program *overlapping, uint64_t seed)
{
	return seed % 2 && chain_start_queue(overlapping->image) > 0 && run_recycles(overlapping->image);
}

/* What its instances are armed with follows from what became of others: payload-on-hw.c */
static bool publishes(const struct program *p)
{
	return p->image->publish.there;
}

static void both_modes_agree(void **state)
{
	const struct run_offload *o = *state;
	struct program *p = run_compile(o), *unrolled = compile_unrolled(o);
	const unsigned seeds = 8;
	char why[400];

	for (uint64_t seed = 0; seed < seeds && !publishes(p); seed++)
		if (!run_pair(o, unrolled, both_overlap(unrolled, seed) ? unrolled : p, seed, SLOTS, REQUESTS,
			    why))
			fail_msg("seed %lu: %s", (unsigned long)seed, why);
	program_free(unrolled);
	program_free(p);
}

/* And with a byte in the request's number that stays the same in a slot */
static void nothing_is_left(void **state)
{
	const struct run_offload *o = *state;
	struct program *p = run_compile(o), *unrolled = compile_unrolled(o);
	char why[400];

	if (!publishes(p) && !run_pair(o, unrolled, p, 0, LONG_SLOTS, LONG_REQUESTS, why))
		fail_msg("%u slots: %s", LONG_SLOTS, why);
	program_free(unrolled);
	program_free(p);
	both_modes_agree(state);
}

static struct random_offload program, overlapping;

/* False: not the same in both modes */
static bool one(uint64_t seed, const char *file, char why[400])
{
	struct program_target target = {.masked_atomics = seed % 5 != 0,
		.swapped_old = seed % 7 == 2,
		.fenced_enables = seed % 3 == 0,
		.calc = seed % 11 < 7 ? PROGRAM_CALC : 0,
		.fetch_group = seed % 4 == 1 ? 4 : 0};
	struct program *recycled;
	bool ok = true;

	random_offload_make(&program, seed, file, &target, true);
	if (program.p && !publishes(program.p)) {
		did.programs++;
		target.overlap = true;
		target.pad_wqebbs = seed % 3 ? CHAIN_LONGEST_PAD : 0;
		random_offload_make(&overlapping, seed, file, &target, true);
		did.overlap += chain_start_queue(overlapping.p->image) > 0;
		recycled = both_overlap(overlapping.p, seed) ? overlapping.p : program.p;
		ok = run_pair(&program.o, overlapping.p, recycled, seed, SLOTS, REQUESTS, why);
		random_offload_free(&overlapping);
	}
	random_offload_free(&program);
	return ok;
}

static void tell(FILE *f, const char *end)
{
	fprintf(f,
		"%lu programs, %lu of them with a loop without a bound, %lu that overlap; "
		"%lu requests: %lu whole, %lu short, %lu long, %lu flushed, %lu denied; %lu failed, %lu "
		"without an end%s",
		(unsigned long)did.programs, (unsigned long)did.loops, (unsigned long)did.overlap,
		(unsigned long)did.requests, (unsigned long)did.kinds[WHOLE], (unsigned long)did.kinds[SHORT],
		(unsigned long)did.kinds[LONG], (unsigned long)did.kinds[FLUSHED],
		(unsigned long)did.kinds[DENIED], (unsigned long)did.failed, (unsigned long)did.endless, end);
	fflush(f);
}

static void random_programs_agree(void **state)
{
	uint64_t wanted = SANITIZED ? 100 : 250;
	char why[400];

	(void)state;
	memset(&did, 0, sizeof(did));
	for (uint64_t seed = 0; did.programs < wanted; seed++)
		if (!one(seed, NULL, why))
			fail_msg("program %lu: %s\n%s", (unsigned long)seed, why, program.text);
	tell(stdout, "\n");
	assert_true(did.kinds[SHORT] > wanted / 4 && did.kinds[LONG] > wanted / 20 &&
		    did.kinds[FLUSHED] > wanted / 20 && did.overlap > wanted / 50);
}

static int campaign(uint64_t wanted, uint64_t first, const char *file)
{
	uint64_t seed = first, bad = 0;
	char why[400];

	for (; did.programs < wanted && (!file || seed == first); seed++) {
		if (!one(seed, file, why)) {
			printf("program %lu: %s\n", (unsigned long)seed, why);
			if (!bad++)
				printf("%s", program.text);
			fflush(stdout);
		}
		if (isatty(STDERR_FILENO) && seed % 64 == 0)
			tell(stderr, "\r");
	}
	tell(stdout, "\n");
	printf("%lu of the programs %lu to %lu that are not the same in both modes\n", (unsigned long)bad,
		(unsigned long)first, (unsigned long)seed - 1);
	return bad > 0;
}

/* All that can be recycled at all */
static unsigned add(
	struct CMUnitTest *tests, const struct run_offload *offloads, unsigned n, CMUnitTestFunction test)
{
	unsigned added = 0;

	for (unsigned i = 0; i < n; i++)
		if (!offloads[i].direct && !offloads[i].unrolled)
			tests[added++] = (struct CMUnitTest){.name = offloads[i].name,
				.test_func = test,
				.initial_state = (void *)(uintptr_t)&offloads[i]};
	return added;
}

int main(int argc, char **argv)
{
	struct CMUnitTest *tests =
		calloc(nlibrary + nloops + nfeatures + nplaces + nabove + COUNT(changed) + 1, sizeof(*tests));
	unsigned n;
	int r;

	if (argc > 2 && strcmp(argv[1], "--programs") == 0) {
		free(tests);
		return campaign(strtoull(argv[2], NULL, 0), argc > 3 ? strtoull(argv[3], NULL, 0) : 0,
			argc > 4 ? argv[4] : NULL);
	}
	assert_non_null(tests);
	n = add(tests, library, nlibrary, both_modes_agree);
	n += add(tests + n, loops, nloops, both_modes_agree);
	n += add(tests + n, features, nfeatures, both_modes_agree);
	n += add(tests + n, places, nplaces, both_modes_agree);
	n += add(tests + n, above, nabove, both_modes_agree);
	n += add(tests + n, changed, COUNT(changed), nothing_is_left);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(random_programs_agree);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	r = _cmocka_run_group_tests("modes", tests, n, NULL, NULL);
	free(tests);
	return r;
}
