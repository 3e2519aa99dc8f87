/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/programs/in-parts.h"

#include "mlx5/wqe.h"

#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

struct in_parts {
	const struct program *p;
	struct executor *x;
	struct executor_parts other, own;
	unsigned asked, life; /* of .x: requests so far, and until the next one replaces it */
	uint8_t *data;
};

struct in_parts *in_parts_new(const struct program *p, const struct executor_parts *parts)
{
	struct in_parts *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	t->p = p;
	t->life = 2;
	t->other = t->own = *parts;
	for (unsigned i = 0; i < p->nregions; i++) {
		/* the last word is read whole */
		t->own.region[i].mem = malloc(parts->region[i].size + sizeof(uint64_t));
		assert_non_null(t->own.region[i].mem);
	}
	in_parts_follow(t);
	t->data = malloc(parts->data_size + 1u);
	assert_non_null(t->data);
	assert_int_equal(executor_new(&t->x, p, &t->own), 0);
	return t;
}

static bool same_region(const struct in_parts *t, unsigned i)
{
	return memcmp(t->own.region[i].mem, t->other.region[i].mem, t->own.region[i].size) == 0;
}

/* Of what nobody may write the end is enough */
void in_parts_free(struct in_parts *t)
{
	if (!t)
		return;
	executor_free(t->x);
	for (unsigned i = 0; i < t->p->nregions; i++)
		assert_true(t->own.region[i].writable || same_region(t, i));
	for (unsigned i = 0; i < t->p->nregions; i++)
		free(t->own.region[i].mem);
	free(t->data);
	free(t);
}

void in_parts_follow(struct in_parts *t)
{
	for (unsigned i = 0; i < t->p->nregions; i++)
		memcpy(t->own.region[i].mem, t->other.region[i].mem, t->other.region[i].size);
}

static bool same_fault(const struct executor_fault *a, const struct executor_fault *b)
{
	return a->queue == b->queue && a->wqebb == b->wqebb && a->syndrome == b->syndrome;
}

static bool same_message(const struct executor_message *a, const struct executor_message *b)
{
	return a->opcode == b->opcode && a->solicited == b->solicited && a->slot_at == b->slot_at &&
	       a->imm == b->imm && a->from == b->from && a->len == b->len && a->wqebb == b->wqebb;
}

static const char *messages_differ(const struct in_parts *t, const struct executor *x, const uint8_t *data)
{
	unsigned n, m;
	const struct executor_message *a = executor_messages(x, &n), *b = executor_messages(t->x, &m);

	if (n != m)
		return "the number of messages";
	for (unsigned i = 0; i < n; i++)
		if (!same_message(&a[i], &b[i]) ||
			memcmp(data + a[i].from, t->data + b[i].from, a[i].len) != 0)
			return "a message";
	return NULL;
}

/* What an executor keeps from request to request, and has learned, is not to hide what both do wrong. Making
 * one takes longer than its requests do, so the lives of later ones are longer. */
static void renew(struct in_parts *t)
{
	enum { LONGEST = 32 };

	if (t->asked++ < t->life)
		return;
	executor_free(t->x);
	assert_int_equal(executor_new(&t->x, t->p, &t->own), 0);
	t->asked = 1;
	t->life = t->life < LONGEST ? t->life * 2 : LONGEST;
}

void in_parts_receive(struct executor *x, const struct program *p, uint8_t *region, uint64_t extent,
	const uint8_t *request, uint32_t bytes)
{
	const uint32_t args = p->image->arg_len;

	if (bytes > args)
		memcpy(region + extent + args, request + args, bytes - args);
	executor_payload(x, extent, bytes);
}

static bool same_outcome(const struct in_parts *t, const struct executor *x)
{
	struct chain_outcome a = executor_outcome(t->x), b = executor_outcome(x);

	return a.tried == b.tried && a.published == b.published && a.place == b.place && a.old == b.old &&
	       a.now == b.now;
}

const char *in_parts_differs(struct in_parts *t, const struct executor *at_once, enum executor_result result,
	uint64_t number, const uint8_t *request, uint32_t bytes, uint64_t extent, uint64_t wqes,
	const uint8_t *data)
{
	enum executor_result other;

	renew(t);
	executor_begin(t->x, number, request, t->data);
	if (t->p->payload.max)
		in_parts_receive(t->x, t->p, t->own.region[t->p->payload.region].mem, extent, request, bytes);
	other = executor_run(t->x, 1);
	if (other == EXECUTOR_MORE)
		other = executor_run(t->x, wqes - 1);
	if (other != result)
		return "the result";
	if (executor_wqes(t->x) != executor_wqes(at_once))
		return "the number of work requests";
	if (result == EXECUTOR_FAULT && !same_fault(executor_fault(t->x), executor_fault(at_once)))
		return "the fault";
	if (t->p->image->publish.there && !same_outcome(t, at_once))
		return "what was published";
	for (unsigned i = 0; i < t->p->nregions; i++)
		if (t->own.region[i].writable && !same_region(t, i))
			return "a region";
	if (memcmp(executor_replies(t->x), executor_replies(at_once),
		    (size_t)t->p->image->queue[0].wqebbs * WQE_BB) != 0)
		return "the reply queue";
	return messages_differ(t, at_once, data);
}
