/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: the ledger of a daemon before this one, for its reader. An input is a good ledger with damage:
 * the file's new size (2 bytes, little-endian), then patches, each an offset (2 bytes), a length (1 byte) and
 * that many bytes. A size or an offset beyond the good one wraps.
 */
#include "reddnd/ledger/ledger.h"
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOTS = 7, SIZE = LEDGER_PAGE + SLOTS * sizeof(struct ledger_slot), BLOCK = 65536, PATCH_HEAD = 3 };

static uint8_t good[SIZE], bad[SIZE];

static void make(struct ledger_slot *slot, enum ledger_type type, uint32_t handle)
{
	struct ledger_object o = {.type = type, .handle = handle};

	if (type == LEDGER_CQ || type == LEDGER_QP) {
		o.entries = 64;
		o.offset = handle % 8 * 4096u;
		o.db_off = handle * 64u;
	}
	if (type == LEDGER_QP)
		o.rq_entries = o.rq_stride = 16;
	ledger_made(slot, &o);
}

/* Three sessions, the first of them LIVE, the second ENDING, the third BUILDING */
static void make_session(struct ledger *l, uint32_t n)
{
	struct ledger_slot *slot = ledger_take(l, LEDGER_SESSION);
	struct ledger_session *s = &slot->session;

	ledger_set_block(slot, (n + 1) * BLOCK, BLOCK);
	for (unsigned i = 0; i < 4; i++)
		make(slot, (const enum ledger_type[]){LEDGER_UMEM, LEDGER_MR, LEDGER_CQ, LEDGER_QP}[i],
			4 + 4 * n + i);
	s->number = n + 1;
	s->cm_id = n + 1;
	s->depth = s->slots = 16;
	s->recycled = 1;
	s->recycler.progress = 64;
	s->windows[0] = 3;
	s->slot_size = 4096;
	ledger_set_name(s->tenant, "tenant");
	ledger_set_name(s->offload, "offload");
	if (n == 0)
		ledger_live(slot);
	if (n == 1)
		ledger_ending(slot);
}

static void make_good(void)
{
	struct ledger_slot *slot;
	struct ledger *l;

	fuzz_need(ledger_new(&l, SLOTS, 64 * BLOCK) == 0, "no ledger");
	ledger_set_device(l, "mlx5_0");
	ledger_head(l)->last_session = 3;
	fuzz_need(ledger_add_listener(l, 100) == 0, "no listener");
	slot = ledger_take(l, LEDGER_DEVICE);
	make(slot, LEDGER_PD, 0);
	make(slot, LEDGER_UAR, 1);
	ledger_live(slot);
	slot = ledger_take(l, LEDGER_TENANT);
	ledger_set_name(slot->tenant.name, "tenant");
	make(slot, LEDGER_PD, 2);
	ledger_live(slot);
	slot = ledger_take(l, LEDGER_WINDOW);
	slot->window =
		(struct ledger_window){.iova = UINT64_C(1) << 40, .ino = 7, .bytes = 9, .pd = 2, .watch = 8};
	make(slot, LEDGER_MR, 3);
	ledger_live(slot);
	slot = ledger_take(l, LEDGER_OWN);
	ledger_set_block(slot, 0, BLOCK);
	make(slot, LEDGER_UMEM, 20);
	make(slot, LEDGER_CQ, 21);
	for (uint32_t n = 0; n < 3; n++)
		make_session(l, n);
	fuzz_need(pread(ledger_fd(l), good, SIZE, 0) == SIZE, "it cannot be read");
	ledger_free(l);
}

/* Returns the size that the file shall have. */
static size_t damage(const uint8_t *p, size_t size)
{
	const uint8_t *last = p + size;
	uint16_t number;
	size_t to;

	memcpy(bad, good, SIZE);
	if (size < sizeof(number))
		return SIZE;
	memcpy(&number, p, sizeof(number));
	to = number % (SIZE + 1u);
	for (p += sizeof(number); last - p > PATCH_HEAD && last - p >= PATCH_HEAD + p[2];
		p += PATCH_HEAD + p[2]) {
		memcpy(&number, p, sizeof(number));
		for (unsigned i = 0; i < p[2]; i++)
			bad[(number + i) % SIZE] = p[PATCH_HEAD + i];
	}
	return to;
}

static void check_object(
	const struct ledger_view *v, const struct ledger_slot *slot, const struct ledger_object *o)
{
	const struct ledger_block *b = &slot->block;
	const struct ledger_slot *found;
	uint64_t bytes;

	if (o->type == LEDGER_NONE)
		return;
	fuzz_need(o->type <= LEDGER_PD, "an unknown type is accepted");
	fuzz_need(ledger_find(v, o->type, o->handle, &found) != NULL, "an object is not found");
	fuzz_need(!ledger_goes_on(slot) || ledger_keeps(v, o->handle),
		"an object of a slot that goes on is not kept");
	if (o->type != LEDGER_CQ && o->type != LEDGER_QP)
		return;
	bytes = (uint64_t)o->entries * 64 + (uint64_t)o->rq_entries * o->rq_stride;
	fuzz_need(o->offset + bytes >= o->offset && o->offset + bytes <= b->size,
		"a queue outside of its block");
	fuzz_need(o->db_off + 8 >= 8 && o->db_off + 8 <= b->size, "a doorbell record outside of its block");
}

static bool is_live(const struct ledger_view *v, uint32_t number, enum ledger_kind kind)
{
	return number == 0 || (number <= v->head.used && v->slots[number - 1].state == LEDGER_LIVE &&
				      v->slots[number - 1].kind == kind);
}

static void check_slot(const struct ledger_view *v, uint32_t n)
{
	const struct ledger_slot *slot = &v->slots[n];
	const struct ledger_block *b = &slot->block;

	if (slot->state == LEDGER_FREE)
		return;
	fuzz_need(b->offset + b->size >= b->offset || b->size == 0, "a block that wraps");
	fuzz_need(b->size == 0 || b->offset + b->size <= v->head.arena_bytes, "a block outside of the arena");
	for (uint32_t i = 0; i < n; i++) {
		const struct ledger_block *other = &v->slots[i].block;

		fuzz_need(v->slots[i].state == LEDGER_FREE || !b->size || !other->size ||
				  b->offset + b->size <= other->offset ||
				  other->offset + other->size <= b->offset,
			"two blocks in one place");
	}
	for (unsigned i = 0; i < LEDGER_OBJECTS; i++)
		check_object(v, slot, &slot->object[i]);
	if (slot->state == LEDGER_LIVE && slot->kind == LEDGER_SESSION)
		fuzz_need(memchr(slot->session.offload, 0, LEDGER_NAME) && slot->session.number &&
				  slot->session.number >> 63 == 0,
			"an impossible session");
	for (unsigned w = 0; slot->state == LEDGER_LIVE && slot->kind == LEDGER_SESSION && w < LEDGER_WINDOWS;
		w++)
		fuzz_need(is_live(v, slot->session.windows[w], LEDGER_WINDOW), "a window that is none");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ledger_view *v;
	const char *why = "";
	uint8_t *exact; /* so that a sanitizer sees reads beyond it */
	int r;

	if (!good[0])
		make_good();
	size = damage(data, size);
	exact = malloc(size + !size);
	fuzz_need(exact != NULL, "no memory");
	memcpy(exact, bad, size);
	r = ledger_parse(exact, size, &v, &why);
	free(exact);
	if (r < 0) {
		fuzz_need(r == -EBADMSG, "an error of another kind");
		fuzz_refused(why);
		return 0;
	}
	for (uint32_t i = 0; i < v->head.used; i++)
		check_slot(v, i);
	ledger_view_free(v);
	return 0;
}
