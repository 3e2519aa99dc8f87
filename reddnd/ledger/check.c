/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/ledger/ledger.h"

#include "util/cleanup.h"
#include "util/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	CQE = 64,
	WQEBB = 64,
	RECORD = 8,   /* bytes of a doorbell record */
	PROGRESS = 8, /* of a number of requests */
	MAX_CQES = 1 << 22,
	MAX_WQES = 1 << 15,
	MAX_CONNECTIONS = 16, /* of a session (wire.h) */
	MIN_STRIDE = 16,
	MAX_STRIDE = 512,
	REPLY_SLOT = 64, /* reply slots are multiples of it (wire.h) */
};

#define MAX_SLOTS (1u << 20)
#define MAX_NUMBER LEDGER_SESSION_MASK

/* What a slot of each kind may have, by 1 << enum ledger_type, and what it must have if it goes on */
static const struct {
	uint32_t may, must;
	bool block;
} kinds[] = {
	[LEDGER_DEVICE] = {1 << LEDGER_PD | 1 << LEDGER_UAR, 1 << LEDGER_PD | 1 << LEDGER_UAR, false},
	[LEDGER_TENANT] = {1 << LEDGER_PD, 1 << LEDGER_PD, false},
	[LEDGER_OWN] = {1 << LEDGER_QP | 1 << LEDGER_CQ | 1 << LEDGER_UMEM, 0, true},
	[LEDGER_WINDOW] = {1 << LEDGER_MR, 1 << LEDGER_MR, false},
	[LEDGER_SESSION] = {1 << LEDGER_QP | 1 << LEDGER_CQ | 1 << LEDGER_UMEM | 1 << LEDGER_MR,
		1 << LEDGER_QP | 1 << LEDGER_CQ | 1 << LEDGER_UMEM, true},
};

bool ledger_goes_on(const struct ledger_slot *slot)
{
	return slot->state == LEDGER_LIVE && (slot->kind != LEDGER_SESSION || slot->session.recycled);
}

static bool power_of_two(uint64_t n)
{
	return n && (n & (n - 1)) == 0;
}

static bool fits(const struct ledger_block *b, uint64_t offset, uint64_t bytes)
{
	return bytes <= b->size && offset <= b->size - bytes;
}

/* Names go into logs, and are looked up in the configuration. */
static bool is_name(const char *name, size_t size)
{
	size_t len = strnlen(name, size);

	if (len == 0 || len == size)
		return false;
	for (size_t i = 0; i < len; i++)
		if (name[i] <= ' ' || name[i] > '~')
			return false;
	return true;
}

/* ---- a slot: NULL, or what is wrong ---- */

static const char *check_queue(const struct ledger_slot *slot, const struct ledger_object *o)
{
	if (o->db_off % RECORD || !fits(&slot->block, o->db_off, RECORD))
		return "a doorbell record is not in its block";
	if (!power_of_two(o->entries) || o->entries > (o->type == LEDGER_CQ ? MAX_CQES : MAX_WQES))
		return "a queue has an impossible size";
	if (o->offset % WQEBB)
		return "a queue is misaligned";
	if (o->type == LEDGER_CQ && (o->rq_entries || o->rq_stride))
		return "a CQ has a receive queue";
	if (o->type == LEDGER_CQ)
		return fits(&slot->block, o->offset, (uint64_t)o->entries * CQE) ? NULL
										 : "a CQ is not in its block";
	if (o->rq_entries &&
		(!power_of_two(o->rq_entries) || o->rq_entries > MAX_WQES || !power_of_two(o->rq_stride) ||
			o->rq_stride < MIN_STRIDE || o->rq_stride > MAX_STRIDE))
		return "a receive queue has an impossible size";
	return fits(&slot->block, o->offset,
		       (uint64_t)o->entries * WQEBB + (uint64_t)o->rq_entries * o->rq_stride)
		       ? NULL
		       : "a work queue is not in its block";
}

static const char *check_objects(const struct ledger_slot *slot)
{
	uint32_t has = 0;

	for (unsigned i = 0; i < LEDGER_OBJECTS; i++) {
		const struct ledger_object *o = &slot->object[i];
		const char *why = NULL;

		if (o->type == LEDGER_NONE)
			continue;
		if (o->type > LEDGER_PD || !(kinds[slot->kind].may >> o->type & 1))
			return "an object is of a type that its slot cannot have";
		if (o->type == LEDGER_CQ || o->type == LEDGER_QP)
			why = check_queue(slot, o);
		if (why)
			return why;
		has |= 1u << o->type;
	}
	return ledger_goes_on(slot) && (kinds[slot->kind].must & ~has) ? "a slot lacks an object" : NULL;
}

static const char *check_block(const struct ledger_head *head, const struct ledger_slot *slot)
{
	const struct ledger_block *b = &slot->block;

	if (b->size == 0)
		return ledger_goes_on(slot) && slot->kind == LEDGER_SESSION ? "a session has no memory"
									    : NULL;
	if (!kinds[slot->kind].block)
		return "a slot has memory that needs none";
	if (b->offset % LEDGER_PAGE || b->size % LEDGER_PAGE || b->size > head->arena_bytes ||
		b->offset > head->arena_bytes - b->size)
		return "a block is not in the arena";
	return NULL;
}

static bool is_session(const struct ledger_slot *slot)
{
	return slot->state == LEDGER_LIVE && slot->kind == LEDGER_SESSION;
}

/* Of a session and one of its connections */
static bool is_number(const struct ledger_head *head, uint64_t n)
{
	return (n & LEDGER_SESSION_MASK) && (n & LEDGER_SESSION_MASK) <= head->last_session &&
	       n >> LEDGER_CONNECTION_SHIFT < MAX_CONNECTIONS;
}

static const char *check_session(const struct ledger_head *head, const struct ledger_slot *slot)
{
	const struct ledger_session *s = &slot->session;

	if (!is_number(head, s->number) || s->further >= MAX_CONNECTIONS)
		return "a session has an impossible number";
	if (s->accepted > 1 || s->established > 1 || s->recycled > 1 || s->publishes > 1)
		return "a session is neither one thing nor the other";
	if (!is_name(s->tenant, sizeof(s->tenant)) || !is_name(s->offload, sizeof(s->offload)))
		return "a session has no sound names";
	if (s->depth == 0 || s->depth > MAX_WQES || !power_of_two(s->slots) || s->slots > MAX_WQES)
		return "a session has an impossible depth";
	if (s->slot_size == 0 || s->slot_size % REPLY_SLOT ||
		s->slot_addr + (uint64_t)s->depth * s->slot_size < s->slot_addr)
		return "a session has impossible reply slots";
	if (s->recycled &&
		(s->recycler.progress % PROGRESS || !fits(&slot->block, s->recycler.progress, PROGRESS)))
		return "the progress of a session is not in its block";
	return NULL;
}

static const char *check_slot(const struct ledger_head *head, const struct ledger_slot *slot)
{
	const char *why;

	if (slot->state == LEDGER_FREE)
		return NULL;
	if (slot->state > LEDGER_ENDING)
		return "a slot is in no known state";
	if (slot->kind < LEDGER_DEVICE || slot->kind > LEDGER_SESSION)
		return "a slot is of no known kind";
	why = check_block(head, slot);
	if (!why)
		why = check_objects(slot);
	if (!why && is_session(slot))
		why = check_session(head, slot);
	if (!why && slot->state == LEDGER_LIVE && slot->kind == LEDGER_TENANT &&
		!is_name(slot->tenant.name, sizeof(slot->tenant.name)))
		why = "a tenant has no sound name";
	return why;
}

static const char *check_head(const struct ledger_head *head)
{
	if (head->magic != LEDGER_MAGIC)
		return "it is not one";
	if (head->version != LEDGER_VERSION)
		return "it is of another version";
	if (head->slot_bytes != sizeof(struct ledger_slot) || head->slots > MAX_SLOTS ||
		head->used > head->slots)
		return "its slots are of another size";
	if (head->nlisteners > LEDGER_LISTENERS)
		return "it has too many listeners";
	if (head->nrequests > LEDGER_REQUESTS)
		return "it has too many requests";
	if (head->generation == 0 || head->last_session >= MAX_NUMBER)
		return "it counts what there cannot be";
	if (!is_name(head->device, sizeof(head->device)))
		return "it names no device";
	return NULL;
}

/* ---- what slots must not have in common ---- */

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static bool has_twins(uint64_t *values, size_t n)
{
	qsort(values, n, sizeof(*values), by_value);
	for (size_t i = 1; i < n; i++)
		if (values[i] == values[i - 1])
			return true;
	return false;
}

static int by_offset(const void *a, const void *b)
{
	const struct ledger_block *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

static bool overlap(struct ledger_block *blocks, size_t n)
{
	qsort(blocks, n, sizeof(*blocks), by_offset);
	for (size_t i = 1; i < n; i++)
		if (blocks[i].offset - blocks[i - 1].offset < blocks[i - 1].size)
			return true;
	return false;
}

static const char *check_memory(const struct ledger_view *v, struct ledger_block *blocks)
{
	size_t n = 0;

	for (uint32_t i = 0; i < v->head.used; i++)
		if (v->slots[i].state != LEDGER_FREE && v->slots[i].block.size)
			blocks[n++] = v->slots[i].block;
	return overlap(blocks, n) ? "two slots have the same memory" : NULL;
}

static const char *check_numbers(const struct ledger_view *v, uint64_t *values)
{
	size_t n = 0;

	for (uint32_t i = 0; i < v->head.used; i++)
		if (is_session(&v->slots[i]))
			values[n++] = v->slots[i].session.number;
	return has_twins(values, n) ? "two sessions have one number" : NULL;
}

static const char *check_ids(const struct ledger_view *v, uint64_t *values)
{
	size_t n = 0;

	for (uint32_t i = 0; i < v->head.nlisteners; i++)
		if (v->head.listeners[i] != LEDGER_NO_ID)
			values[n++] = v->head.listeners[i];
	for (uint32_t i = 0; i < v->head.used; i++)
		if (is_session(&v->slots[i]))
			values[n++] = v->slots[i].session.cm_id;
	return has_twins(values, n) ? "two connections have one id" : NULL;
}

static const char *check_handles(struct ledger_view *v, uint64_t *values)
{
	size_t n = 0;

	for (uint32_t i = 0; i < v->head.used; i++)
		for (unsigned k = 0; ledger_goes_on(&v->slots[i]) && k < LEDGER_OBJECTS; k++)
			if (v->slots[i].object[k].type != LEDGER_NONE)
				values[n++] = v->slots[i].object[k].handle;
	if (has_twins(values, n))
		return "two objects have one handle";
	for (size_t i = 0; i < n; i++)
		v->kept[i] = (uint32_t)values[i];
	v->nkept = n;
	return NULL;
}

/* Objects go with the file of the device, which is kept if there is a slot for it */
static const char *check_device(const struct ledger_view *v)
{
	return v->nkept && !ledger_has_device(v) ? "there are objects of no device" : NULL;
}

/* True if @number, from 1, is a slot of that kind that goes on; 0 is none. */
static bool is_live(const struct ledger_view *v, uint32_t number, enum ledger_kind kind)
{
	return number == 0 || (number <= v->head.used && v->slots[number - 1].state == LEDGER_LIVE &&
				      v->slots[number - 1].kind == kind);
}

static const char *check_references(const struct ledger_view *v)
{
	for (uint32_t i = 0; i < v->head.used; i++) {
		const struct ledger_session *s = &v->slots[i].session;

		if (!is_session(&v->slots[i]))
			continue;
		for (unsigned w = 0; w < LEDGER_WINDOWS; w++)
			if (!is_live(v, s->windows[w], LEDGER_WINDOW))
				return "a session has a window that is none";
	}
	return NULL;
}

static int check_together(struct ledger_view *v, const char **why)
{
	size_t most = (size_t)v->head.used * LEDGER_OBJECTS + LEDGER_LISTENERS;
	CLEANUP(cleanup_free) struct ledger_block *blocks = calloc(v->head.used + 1, sizeof(*blocks));
	CLEANUP(cleanup_free) uint64_t *values = calloc(most, sizeof(*values));

	v->kept = calloc(most, sizeof(*v->kept));
	if (!blocks || !values || !v->kept)
		return -ENOMEM;
	*why = check_memory(v, blocks);
	if (!*why)
		*why = check_numbers(v, values);
	if (!*why)
		*why = check_ids(v, values);
	if (!*why)
		*why = check_handles(v, values);
	if (!*why)
		*why = check_device(v);
	if (!*why)
		*why = check_references(v);
	return *why ? -EBADMSG : 0;
}

/* ---- reading ---- */

DEFINE_CLEANUP(struct ledger_view *, ledger_view_free)

/* @v has the head already. */
static int check_slots(struct ledger_view *v, const char **why)
{
	for (uint32_t i = 0; i < v->head.used; i++) {
		*why = check_slot(&v->head, &v->slots[i]);
		if (*why)
			return -EBADMSG;
	}
	return check_together(v, why);
}

int ledger_parse(const void *bytes, size_t size, struct ledger_view **out, const char **why)
{
	CLEANUP(ledger_view_freep) struct ledger_view *v = calloc(1, sizeof(*v));
	int r;

	if (!v)
		return -ENOMEM;
	*why = "it is too short";
	if (size < LEDGER_PAGE)
		return -EBADMSG;
	memcpy(&v->head, bytes, sizeof(v->head));
	*why = check_head(&v->head);
	if (*why)
		return -EBADMSG;
	*why = "it is too short";
	if ((size - LEDGER_PAGE) / sizeof(*v->slots) < v->head.used)
		return -EBADMSG;
	v->slots = calloc((size_t)v->head.used + 1, sizeof(*v->slots));
	if (!v->slots)
		return -ENOMEM;
	memcpy(v->slots, (const uint8_t *)bytes + LEDGER_PAGE, v->head.used * sizeof(*v->slots));
	r = check_slots(v, why);
	if (r == 0)
		*out = steal_ptr(&v);
	return r;
}

int ledger_load(int fd, struct ledger_view **view, const char **why)
{
	CLEANUP(cleanup_free) uint8_t *bytes = NULL;
	struct ledger_head head = {0};
	/* slots that were never used are not in the file */
	long n = file_read_at(fd, 0, &head, sizeof(head));

	*why = "it cannot be read";
	if (n < 0)
		return (int)n;
	*why = check_head(&head);
	if (*why)
		return -EBADMSG;
	bytes = malloc(LEDGER_PAGE + (size_t)head.used * sizeof(struct ledger_slot));
	if (!bytes)
		return -ENOMEM;
	n = file_read_at(fd, 0, bytes, LEDGER_PAGE + (size_t)head.used * sizeof(struct ledger_slot));
	return n < 0 ? (int)n : ledger_parse(bytes, (size_t)n, view, why);
}

void ledger_view_free(struct ledger_view *v)
{
	free(v->slots);
	free(v->kept);
	free(v);
}

/* ---- looking up ---- */

bool ledger_has_device(const struct ledger_view *v)
{
	for (uint32_t i = 0; i < v->head.used; i++)
		if (v->slots[i].state == LEDGER_LIVE && v->slots[i].kind == LEDGER_DEVICE)
			return true;
	return false;
}

bool ledger_keeps(const struct ledger_view *v, uint32_t handle)
{
	size_t from = 0, to = v->nkept;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (v->kept[middle] == handle)
			return true;
		if (v->kept[middle] < handle)
			from = middle + 1;
		else
			to = middle;
	}
	return false;
}

const struct ledger_object *ledger_find(
	const struct ledger_view *v, enum ledger_type type, uint32_t handle, const struct ledger_slot **slot)
{
	for (uint32_t i = 0; i < v->head.used; i++)
		for (unsigned k = 0; v->slots[i].state != LEDGER_FREE && k < LEDGER_OBJECTS; k++)
			if (v->slots[i].object[k].type == type && v->slots[i].object[k].handle == handle) {
				*slot = &v->slots[i];
				return &v->slots[i].object[k];
			}
	return NULL;
}
