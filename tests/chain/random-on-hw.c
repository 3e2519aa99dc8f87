/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chains at random, ordered by chain_derive(): nothing that it put in can be spared, and on the emulated
 * silicon each does what its steps do one after the other, without a fault, and without touching anything
 * else.
 *
 * random-on-hw [FIRST [COUNT]]: the chains of COUNT seeds from FIRST on.
 */
#include "mlx5/wqe.h"
#include "reddnd/chain/schedule/derive.h"
#include "reddnd/chain/verify/bounds.h"
#include "reddnd/chain/verify/order.h"
#include "tests/chain/chain-rig.h"
#include "tests/chain/random-chain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REQUESTS = 6, SILICON_SEEDS = 2 };

static uint64_t first_seed, nseeds = 300;
static unsigned long accepted, refused, runs, answered_early;

/* ---- what the steps mean ----------------------------------------------------------------- */

/* Memory as the NIC sees it, of another session in which steps run one after the other */
struct model {
	const struct chain_desc *d;
	const struct chain_image *img;
	const struct chain_writer *writer;
	struct chain_env env;
	uint32_t at[CHAIN_MAX_STEPS]; /* first byte of a step in its queue's image */
	uint8_t *region[RANDOM_REGIONS], *slot;
	uint8_t buf[4 * RANDOM_SLOT];
	uint64_t limit; /* bytes of a region that its key spans */
	bool failed;    /* a step went beyond */
	bool answered;  /* before that */
};

static uint8_t *model_at(struct model *m, uint64_t addr, uint64_t len)
{
	struct {
		uint64_t iova, size;
		uint8_t *mem;
	} all[CHAIN_MAX_QUEUES + RANDOM_REGIONS + 2];
	unsigned n = 0;

	for (unsigned q = 0; q < m->img->nqueues; q++, n++) {
		all[n].iova = m->env.queue[q].iova;
		all[n].size = (uint64_t)m->env.queue[q].ring_wqebbs * CHAIN_WQEBB;
		all[n].mem = m->env.queue[q].ring;
	}
	for (unsigned i = 0; i < RANDOM_REGIONS; i++, n++) {
		all[n].iova = m->env.region[i].iova;
		all[n].size = RANDOM_REGION_SIZE;
		all[n].mem = m->region[i];
	}
	all[n].iova = m->env.scratch.iova;
	all[n].size = (uint64_t)m->env.slots * m->img->scratch_size;
	all[n++].mem = m->env.scratch.mem;
	all[n].iova = m->env.slot_addr;
	all[n].size = RANDOM_SLOT;
	all[n++].mem = m->slot;
	for (unsigned i = 0; i < n; i++)
		if (addr >= all[i].iova && addr + len <= all[i].iova + all[i].size)
			return all[i].mem + (addr - all[i].iova);
	fail_msg("%#lx is nowhere", (unsigned long)addr);
	return NULL;
}

/* A step that uses such a place fails */
static bool is_beyond(const struct model *m, uint64_t addr, uint64_t len)
{
	for (unsigned i = 0; i < RANDOM_REGIONS; i++) {
		uint64_t end = m->env.region[i].iova + m->limit;

		if (addr >= m->env.region[i].iova && addr < end + RANDOM_REGION_SIZE && addr + len > end)
			return true;
	}
	return false;
}

static uint64_t get_le(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint64_t masked_add(uint64_t a, uint64_t b, uint64_t boundary)
{
	uint64_t sum = 0, carry = 0;

	for (unsigned i = 0; i < 64; i++) {
		uint64_t bits = (a >> i & 1) + (b >> i & 1) + carry;

		sum |= (bits & 1) << i;
		carry = boundary >> i & 1 ? 0 : bits >> 1;
	}
	return sum;
}

static void model_atomic(struct model *m, const uint8_t *wqe, const struct chain_verb_info *v)
{
	uint8_t *word = model_at(m, wqe_get(wqe + WQE_RADDR, 8), 8), *old;
	uint64_t was = get_le(word), now = was, a = wqe_get(wqe + WQE_ATOMIC, 8),
		 b = wqe_get(wqe + WQE_ATOMIC + 8, 8);
	uint64_t swap_mask = ~0ull, compare_mask = ~0ull;

	if (v->opcode == WQE_OP_MASKED_CAS) {
		swap_mask = wqe_get(wqe + WQE_ATOMIC + 16, 8);
		compare_mask = wqe_get(wqe + WQE_ATOMIC + 24, 8);
	}
	if (v->opcode == WQE_OP_FETCH_ADD)
		now = was + a;
	else if (v->opcode == WQE_OP_MASKED_FETCH_ADD)
		now = masked_add(was, a, b);
	else if (((was ^ b) & compare_mask) == 0)
		now = (was & ~swap_mask) | (a & swap_mask);
	memcpy(word, &now, 8);
	old = model_at(m, wqe_get(wqe + v->sge_at + WQE_SGE_ADDR, 8), 8);
	memcpy(old, &was, 8);
}

static void model_step(struct model *m, unsigned s, uint64_t seq)
{
	unsigned q = m->d->steps[s].queue;
	const uint8_t *ring =
		m->env.queue[q].ring + seq % m->env.slots * m->img->queue[q].wqebbs * CHAIN_WQEBB;
	uint8_t wqe[CHAIN_WQEBB * 4], *remote, *local, *buf;
	const struct chain_verb_info *v;
	uint64_t addr;

	memcpy(wqe, ring + m->at[s], CHAIN_WQEBB * ((wqe_get(ring + m->at[s] + WQE_DSCOUNT, 1) + 3) / 4));
	v = chain_verb_info(chain_verb_of(wqe[WQE_OPCODE], wqe[WQE_OPMOD]));
	if (v->class == CHAIN_CLASS_SYNC || wqe[WQE_OPCODE] == WQE_OP_NOP)
		return;
	if (v->atomic_bytes) {
		model_atomic(m, wqe, v);
		return;
	}
	addr = wqe_get(wqe + WQE_RADDR, 8);
	for (unsigned at = v->sge_at; at < wqe[WQE_DSCOUNT] * 16u; at += WQE_DS) {
		uint64_t len = wqe_get(wqe + at + WQE_SGE_LEN, 4);

		m->failed |=
			is_beyond(m, addr, len) || is_beyond(m, wqe_get(wqe + at + WQE_SGE_ADDR, 8), len);
		addr += len;
	}
	if (m->failed)
		return;
	/* all is read before anything is written */
	for (unsigned writing = 0; writing < 2; writing++) {
		addr = wqe_get(wqe + WQE_RADDR, 8);
		buf = m->buf;
		for (unsigned at = v->sge_at; at < wqe[WQE_DSCOUNT] * 16u; at += WQE_DS) {
			uint64_t len = wqe_get(wqe + at + WQE_SGE_LEN, 4);

			remote = model_at(m, addr, len);
			local = model_at(m, wqe_get(wqe + at + WQE_SGE_ADDR, 8), len);
			if (writing)
				memcpy(v->scatters ? local : remote, buf, len);
			else
				memcpy(buf, v->scatters ? remote : local, len);
			addr += len;
			buf += len;
		}
	}
}

static void model_request(struct model *m, const uint8_t *arg, uint64_t seq)
{
	chain_arm(m->writer, &m->env, seq, seq + 1);
	for (unsigned i = 0; i < m->img->nrecv; i++) {
		const struct chain_recv_sge *r = &m->img->recv[i];
		uint64_t slot = seq % m->env.slots;

		if (r->sym == CHAIN_SYM_SCRATCH)
			memcpy(m->env.scratch.mem + slot * m->img->scratch_size + r->offset, arg, r->len);
		else
			memcpy(m->env.queue[r->index].ring +
					slot * m->img->queue[r->index].wqebbs * CHAIN_WQEBB + r->offset,
				arg, r->len);
		arg += r->len;
	}
	m->answered = false;
	for (unsigned s = 0; s < m->d->nsteps && !m->failed; s++) {
		model_step(m, s, seq);
		m->answered |= m->d->steps[s].verb == CHAIN_WRITE_IMM && !m->failed;
	}
}

static void *copy_of(const void *p, size_t n)
{
	void *c = malloc(n + 1);

	assert_non_null(c);
	memcpy(c, p, n);
	return c;
}

static void model_open(
	struct model *m, const struct chain_desc *d, const struct chain_rig *c, uint8_t *const region[])
{
	unsigned next[CHAIN_MAX_QUEUES] = {0};

	memset(m, 0, sizeof(*m));
	m->d = d;
	m->img = c->img;
	m->writer = c->writer;
	m->env = c->env;
	for (unsigned s = 0; s < d->nsteps; s++) {
		unsigned q = d->steps[s].queue, i = 0, k = next[q]++;

		while (m->img->labels[i].queue != q || k-- > 0)
			i++;
		m->at[s] = m->img->labels[i].wqebb * CHAIN_WQEBB;
	}
	for (unsigned q = 0; q < m->img->nqueues; q++)
		m->env.queue[q].ring =
			copy_of(c->env.queue[q].ring, c->env.queue[q].ring_wqebbs * CHAIN_WQEBB);
	m->env.scratch.mem = copy_of(c->env.scratch.mem, (size_t)m->env.slots * m->img->scratch_size);
	for (unsigned i = 0; i < RANDOM_REGIONS; i++)
		m->region[i] = copy_of(region[i], RANDOM_REGION_SIZE);
	m->slot = calloc(1, RANDOM_SLOT);
	assert_non_null(m->slot);
}

static void model_close(struct model *m)
{
	for (unsigned q = 0; q < m->img->nqueues; q++)
		free(m->env.queue[q].ring);
	for (unsigned i = 0; i < RANDOM_REGIONS; i++)
		free(m->region[i]);
	free(m->env.scratch.mem);
	free(m->slot);
}

/* ---- the same on the silicon --------------------------------------------------------------- */

static void show(const struct chain_desc *d)
{
	for (unsigned s = 0; s < d->nsteps; s++) {
		const struct chain_step *st = &d->steps[s];

		print_error("%2u %s %-5s %-9s%s%s%s %s %s\n", s, d->queues[st->queue].name,
			st->label ? st->label : "", chain_verb_info(st->verb)->name,
			st->flags & CHAIN_DORMANT ? " dormant" : "", st->flags & CHAIN_FENCE ? " fenced" : "",
			st->flags & CHAIN_SIGNALLED ? " signalled" : "",
			st->verb == CHAIN_SEND_EN ? d->queues[st->target].name
			: st->until               ? st->until
						  : "",
			st->why ? st->why : "");
	}
}

static void answer(struct chain_rig *c, const struct chain_desc *d, uint64_t seed)
{
	uint64_t want = c->completed + 1;
	char why[400];
	unsigned idle = 0;

	while (c->completed < want || !rig_cq_next(&c->client_rcq)) {
		idle = hw_poll(c->rig.dev) ? 0 : idle + 1;
		if (idle > 100 || !chain_rig_serve(c, why, sizeof(why))) {
			show(d);
			fail_msg("seed %lu: %s", (unsigned long)seed, idle > 100 ? "no answer" : why);
		}
	}
	rig_run(&c->rig);
}

static void fill_region(struct chain_rig *c, uint8_t *p)
{
	for (unsigned i = 0; i < RANDOM_REGION_SIZE; i++)
		p[i] = (uint8_t)chain_rig_random(c, chain_rig_random(c, 2) ? 2 : 256);
}

/* Whether all memory is as the steps would leave it */
static bool as_the_text_says(const struct model *m, uint8_t *const region[], const uint8_t *slot)
{
	for (unsigned i = 0; i < RANDOM_REGIONS; i++)
		if (memcmp(region[i], m->region[i], RANDOM_REGION_SIZE) != 0)
			return false;
	return memcmp(slot, m->slot, RANDOM_SLOT) == 0;
}

/* Nothing is to be done any more, and the client has not got an answer that comes after what failed
 */
static void assert_silence(
	struct chain_rig *c, const struct chain_desc *d, const struct model *m, uint64_t seed)
{
	const uint8_t *cqe;

	for (unsigned idle = 0; idle < 100;)
		idle = hw_poll(c->rig.dev) ? 0 : idle + 1;
	cqe = rig_cq_next(&c->client_rcq);
	answered_early += m->answered && cqe && rig_cqe_op(cqe) == CQE_OP_RESP_WRITE_IMM;
	if (m->answered || !cqe || rig_cqe_op(cqe) != CQE_OP_RESP_WRITE_IMM)
		return;
	show(d);
	fail_msg("seed %lu: a step failed, and the client was answered", (unsigned long)seed);
}

/* With keys that span @limit bytes of a region. false: a step went beyond */
static bool run(const struct chain_desc *d, uint64_t seed, uint64_t silicon, uint64_t limit)
{
	struct hw_config cfg = {.seed = silicon};
	uint8_t *region[RANDOM_REGIONS], *slot, arg[CHAIN_MAX_ARG];
	struct chain_image *img = NULL;
	struct chain_rig c;
	struct model m;
	struct chain_error err;

	if (chain_build(d, &img, &err))
		fail_msg("seed %lu: %s", (unsigned long)seed, chain_error_name(err.code));
	chain_rig_open(&c, &cfg, img, 1);
	for (unsigned i = 0; i < RANDOM_REGIONS; i++) {
		region[i] = rig_alloc(&c.rig, RANDOM_REGION_SIZE);
		fill_region(&c, region[i]);
		c.env.region[i].iova = (uint64_t)(i + 1) << 40;
		c.env.region[i].lkey = c.env.region[i].rkey = chain_rig_key(&c, region[i], limit,
			c.env.region[i].iova, i == RANDOM_STORE ? CHAIN_RIG_ALL_RIGHTS : HW_REMOTE_READ);
	}
	slot = rig_alloc(&c.rig, RANDOM_SLOT);
	memset(slot, 0, RANDOM_SLOT);
	chain_rig_start(&c, slot, RANDOM_SLOT, 1);
	model_open(&m, d, &c, region);
	m.limit = limit;
	for (unsigned n = 0; n < REQUESTS && !m.failed; n++, runs++) {
		for (unsigned i = 0; i < img->arg_len; i++)
			arg[i] = (uint8_t)chain_rig_random(&c, chain_rig_random(&c, 2) ? 2 : 256);
		model_request(&m, arg, n);
		chain_rig_send(&c, arg, img->arg_len, NULL, 0);
		if (m.failed) {
			assert_silence(&c, d, &m, seed);
			continue;
		}
		answer(&c, d, seed);
		if (!as_the_text_says(&m, region, slot)) {
			show(d);
			fail_msg("seed %lu: this is not what the text means", (unsigned long)seed);
		}
	}
	model_close(&m);
	chain_rig_close(&c);
	return !m.failed;
}

/* The chain of @seed with its order, or NULL if it has none */
static struct chain_desc *ordered(struct random_chain *r, uint64_t seed)
{
	struct chain_desc *d = NULL;
	struct chain_error err;

	random_chain(r, seed);
	if (!chain_derive(&r->d, &d, &err) && !chain_check_bounds(d, NULL, &err)) {
		accepted++;
		return d;
	}
	if (getenv("RANDOM_CHAINS_SAY_WHY"))
		print_message("seed %lu: %s\n", (unsigned long)seed, chain_error_name(err.code));
	chain_derive_free(d);
	refused++;
	return NULL;
}

static void accepted_chains_do_what_they_say(void **state)
{
	struct random_chain r;

	(void)state;
	for (uint64_t seed = first_seed; seed < first_seed + nseeds; seed++) {
		struct chain_desc *d = ordered(&r, seed);

		for (uint64_t k = 0; d && k < SILICON_SEEDS; k++)
			assert_true(run(d, seed, seed * SILICON_SEEDS + k, RANDOM_REGION_SIZE));
		chain_derive_free(d);
	}
	print_message("%lu chains accepted, %lu refused, %lu runs\n", accepted, refused, runs);
	assert_true(accepted > nseeds / 3);
}

/* Regions that are too small make steps fail anywhere */
static void errors_do_not_lie(void **state)
{
	unsigned long failed = 0;
	struct random_chain r;

	(void)state;
	for (uint64_t seed = first_seed; seed < first_seed + nseeds; seed++) {
		struct chain_desc *d = ordered(&r, seed);

		for (uint64_t k = 0; d && k < SILICON_SEEDS; k++)
			failed += !run(d, seed, seed * SILICON_SEEDS + k, 64 + seed % 512);
		chain_derive_free(d);
	}
	print_message("%lu sessions ended with a failed step, %lu of them after an answer\n", failed,
		answered_early);
	assert_true(failed > nseeds / 8);
}

/* ---- nothing can be spared ------------------------------------------------------------------ */

static void assert_needed(const struct chain_desc *d, struct chain_step *steps, unsigned s, uint64_t seed)
{
	struct chain_desc without = *d;
	struct chain_error err;

	without.steps = steps;
	if (chain_check_order(&without, &err) == CHAIN_REFUSED)
		return;
	show(d);
	fail_msg("seed %lu: step %u is not needed", (unsigned long)seed, s);
}

/* The step that enables what follows @s, a SEND_EN of its own queue, without it: the one before for the same
 * queue */
static bool merge_enables(struct chain_step *steps, unsigned s)
{
	for (unsigned e = s; e-- > 0;)
		if (steps[e].verb == CHAIN_SEND_EN && steps[e].target == steps[s].target) {
			steps[e].upto = steps[s].upto;
			steps[e].through = steps[s].through;
			return true;
		}
	return false;
}

/* Where something is ahead of the rest, SEND_ENs come for its sake */
static bool is_in_a_hurry(const struct chain_desc *d)
{
	for (unsigned s = 0; s < d->nsteps; s++)
		if (d->steps[s].flags & CHAIN_AHEAD)
			return true;
	return false;
}

static void nothing_can_be_spared(void **state)
{
	struct chain_step steps[CHAIN_MAX_STEPS];
	const struct chain_step nop = {.verb = CHAIN_NOP};
	unsigned long waits = 0, fences = 0, enables = 0;
	struct random_chain r;

	(void)state;
	for (uint64_t seed = first_seed; seed < first_seed + nseeds; seed++) {
		struct chain_desc *d = ordered(&r, seed);

		for (unsigned s = 0; d && s < d->nsteps; s++) {
			const struct chain_step *st = &d->steps[s];

			memcpy(steps, d->steps, d->nsteps * sizeof(*steps));
			if (st->flags & CHAIN_FENCE) {
				steps[s].flags &= (uint8_t)~CHAIN_FENCE;
				assert_needed(d, steps, s, seed);
				fences++;
			} else if (st->verb == CHAIN_WAIT ||
				   (st->verb == CHAIN_SEND_EN && !is_in_a_hurry(d) &&
					   merge_enables(steps, s))) {
				waits += st->verb == CHAIN_WAIT;
				enables += st->verb == CHAIN_SEND_EN;
				steps[s] = nop;
				steps[s].label = st->label;
				steps[s].queue = st->queue;
				assert_needed(d, steps, s, seed);
			}
		}
		chain_derive_free(d);
	}
	print_message("%lu WAITs, %lu fences, %lu SEND_ENs\n", waits, fences, enables);
	accepted = refused = 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_can_be_spared),
		cmocka_unit_test(accepted_chains_do_what_they_say),
		cmocka_unit_test(errors_do_not_lie),
	};

	if (argc > 1)
		first_seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		nseeds = strtoull(argv[2], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
