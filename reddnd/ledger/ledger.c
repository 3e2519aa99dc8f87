/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/ledger/ledger.h"

#include "util/cleanup.h"
#include "util/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct ledger {
	int fd;
	struct ledger_head *head;
	struct ledger_slot *slots;
	size_t size;
	uint32_t ninherited;
	pthread_mutex_t lock; /* of what follows */
	uint32_t *free;       /* numbers of slots that have been dropped */
	uint32_t nfree;
	struct inherited *inherited; /* by slot; NULL: there is nothing */
};

struct inherited {
	bool kept;
	unsigned claims;
};

/* All stores before it can be seen when it can be seen. */
static void store(uint32_t *p, uint32_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

static int read_boot_id(uint8_t id[16])
{
	CLEANUP(cleanup_close) int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	char text[40] = "", *at = text;

	if (fd < 0)
		return -errno;
	if (read(fd, text, sizeof(text) - 1) < 36)
		return -EIO;
	for (unsigned i = 0; i < 16; i++, at += 2) {
		unsigned byte;

		at += *at == '-';
		if (sscanf(at, "%2x", &byte) != 1)
			return -EIO;
		id[i] = (uint8_t)byte;
	}
	return 0;
}

bool ledger_is_of_this_boot(const struct ledger_head *head)
{
	uint8_t id[16];

	return read_boot_id(id) == 0 && memcmp(id, head->boot_id, sizeof(id)) == 0;
}

static int write_head(int fd, size_t at, uint32_t value)
{
	ssize_t n = pwrite(fd, &value, sizeof(value), (off_t)at);

	return n == (ssize_t)sizeof(value) ? 0 : n < 0 ? -errno : -EIO;
}

int ledger_set_failed(int fd, uint32_t failed)
{
	return write_head(fd, offsetof(struct ledger_head, failed), failed);
}

int ledger_set_distrusted(int fd, bool distrusted)
{
	return write_head(fd, offsetof(struct ledger_head, distrusted), distrusted);
}

bool ledger_is_distrusted(int fd)
{
	struct ledger_head head;

	return pread(fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head) && head.version == LEDGER_VERSION &&
	       head.distrusted;
}

DEFINE_CLEANUP(struct ledger *, ledger_free)

static int make(struct ledger **out, uint32_t slots)
{
	struct ledger *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	*out = l;
	l->fd = -1;
	pthread_mutex_init(&l->lock, NULL);
	l->size = LEDGER_PAGE + (size_t)slots * sizeof(struct ledger_slot);
	l->free = calloc(slots + 1, sizeof(*l->free));
	return l->free ? 0 : -ENOMEM;
}

static void use(struct ledger *l, void *mapping)
{
	l->head = mapping;
	l->slots = (struct ledger_slot *)((uint8_t *)mapping + LEDGER_PAGE);
}

int ledger_new(struct ledger **out, uint32_t slots, uint64_t arena_bytes)
{
	CLEANUP(ledger_freep) struct ledger *l = NULL;
	int r = make(&l, slots);
	void *mapping;

	if (r < 0)
		return r;
	l->fd = file_new_sealed("reddnd-ledger", l->size, &mapping);
	if (l->fd < 0)
		return l->fd;
	use(l, mapping);
	*l->head = (struct ledger_head){
		.version = LEDGER_VERSION,
		.slot_bytes = sizeof(struct ledger_slot),
		.slots = slots,
		.generation = 1,
		.arena_bytes = arena_bytes,
	};
	r = read_boot_id(l->head->boot_id);
	if (r < 0)
		return r;
	__atomic_store_n(&l->head->magic, LEDGER_MAGIC, __ATOMIC_RELEASE);
	*out = steal_ptr(&l);
	return 0;
}

/* A session that ends, and whose queues have been destroyed */
static void empty(struct ledger_slot *slot)
{
	for (unsigned i = 0; i < LEDGER_OBJECTS; i++)
		store(&slot->object[i].type, LEDGER_NONE);
	ledger_set_block(slot, 0, 0);
}

/* What does not go on has nothing any more. The view counts: nothing is read from the file a second time. */
static int inherit(struct ledger *l, const struct ledger_view *view)
{
	l->ninherited = view->head.used;
	l->inherited = calloc((size_t)l->ninherited + 1, sizeof(*l->inherited));
	if (!l->inherited)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->ninherited; i++) {
		l->inherited[i].kept = view->slots[i].state == LEDGER_LIVE;
		if (l->inherited[i].kept && !ledger_goes_on(&view->slots[i]))
			empty(&l->slots[i]);
		if (l->inherited[i].kept)
			continue;
		store(&l->slots[i].state, LEDGER_FREE);
		l->free[l->nfree++] = i;
	}
	l->head->generation++;
	return 0;
}

int ledger_open(struct ledger **out, int fd, const struct ledger_view *view)
{
	CLEANUP(ledger_freep) struct ledger *l = NULL;
	int r = make(&l, view->head.slots);
	void *mapping;

	if (r == 0)
		r = file_map_sealed(fd, l->size, &mapping);
	if (r < 0)
		return r;
	use(l, mapping);
	r = inherit(l, view);
	if (r < 0)
		return r;
	l->fd = fd;
	*out = steal_ptr(&l);
	return 0;
}

void ledger_free(struct ledger *l)
{
	if (l->head)
		munmap(l->head, l->size);
	if (l->fd >= 0)
		close(l->fd);
	pthread_mutex_destroy(&l->lock);
	free(l->inherited);
	free(l->free);
	free(l);
}

int ledger_fd(const struct ledger *l)
{
	return l->fd;
}

struct ledger_head *ledger_head(struct ledger *l)
{
	return l->head;
}

void ledger_set_device(struct ledger *l, const char *name)
{
	if (strcmp(l->head->device, name) != 0)
		snprintf(l->head->device, sizeof(l->head->device), "%s", name);
}

void ledger_set_last_session(struct ledger *l, uint64_t number)
{
	if (l)
		__atomic_store_n(&l->head->last_session, number, __ATOMIC_RELEASE);
}

/* Lists of ids: a place that was used is used again, and *@n only grows */

static bool add_id(uint32_t *ids, uint32_t *n, uint32_t max, uint32_t id)
{
	for (uint32_t i = 0; i < *n; i++) {
		if (ids[i] == LEDGER_NO_ID) {
			store(&ids[i], id);
			return true;
		}
	}
	if (*n == max)
		return false;
	ids[*n] = id;
	store(n, *n + 1);
	return true;
}

static void remove_id(uint32_t *ids, uint32_t n, uint32_t id)
{
	for (uint32_t i = 0; i < n; i++)
		if (ids[i] == id)
			store(&ids[i], LEDGER_NO_ID);
}

int ledger_add_listener(struct ledger *l, uint32_t id)
{
	return add_id(l->head->listeners, &l->head->nlisteners, LEDGER_LISTENERS, id) ? 0 : -ENOSPC;
}

void ledger_remove_listener(struct ledger *l, uint32_t id)
{
	remove_id(l->head->listeners, l->head->nlisteners, id);
}

void ledger_add_request(struct ledger *l, uint32_t id)
{
	add_id(l->head->requests, &l->head->nrequests, LEDGER_REQUESTS, id);
}

void ledger_remove_request(struct ledger *l, uint32_t id)
{
	remove_id(l->head->requests, l->head->nrequests, id);
}

bool ledger_has_request(const struct ledger *l, uint32_t id)
{
	for (uint32_t i = 0; i < l->head->nrequests; i++)
		if (l->head->requests[i] == id)
			return true;
	return false;
}

/* ---- slots ---- */

static struct ledger_slot *find(struct ledger *l)
{
	if (l->nfree)
		return &l->slots[l->free[--l->nfree]];
	if (l->head->used == l->head->slots)
		return NULL;
	store(&l->head->used, l->head->used + 1);
	return &l->slots[l->head->used - 1];
}

struct ledger_slot *ledger_take(struct ledger *l, enum ledger_kind kind)
{
	struct ledger_slot *slot;

	pthread_mutex_lock(&l->lock);
	slot = find(l);
	pthread_mutex_unlock(&l->lock);
	if (!slot)
		return NULL;
	memset(slot, 0, sizeof(*slot)); /* FREE all the while */
	slot->kind = kind;
	store(&slot->state, LEDGER_BUILDING);
	return slot;
}

void ledger_live(struct ledger_slot *slot)
{
	store(&slot->state, LEDGER_LIVE);
}

void ledger_ending(struct ledger_slot *slot)
{
	store(&slot->state, LEDGER_ENDING);
}

static bool is_empty(const struct ledger_slot *slot)
{
	for (unsigned i = 0; i < LEDGER_OBJECTS; i++)
		if (slot->object[i].type != LEDGER_NONE)
			return false;
	return slot->block.size == 0;
}

void ledger_drop(struct ledger *l, struct ledger_slot *slot)
{
	uint32_t i = (uint32_t)(slot - l->slots);

	if (!is_empty(slot)) {
		store(&slot->state, LEDGER_ENDING);
		return;
	}
	store(&slot->state, LEDGER_FREE);
	pthread_mutex_lock(&l->lock);
	if (i < l->ninherited)
		l->inherited[i] = (struct inherited){0};
	l->free[l->nfree++] = i;
	pthread_mutex_unlock(&l->lock);
}

uint32_t ledger_number(const struct ledger *l, const struct ledger_slot *slot)
{
	return slot ? (uint32_t)(slot - l->slots) + 1 : 0;
}

struct ledger_slot *ledger_slot_of(const struct ledger *l, uint32_t number)
{
	return number ? &l->slots[number - 1] : NULL;
}

/* ---- what was inherited ---- */

static void unlock(pthread_mutex_t **lock)
{
	pthread_mutex_unlock(*lock);
}

#define LOCKED(l)                                                                                            \
	pthread_mutex_t *locked CLEANUP(unlock) = &((struct ledger *)(l))->lock;                             \
	pthread_mutex_lock(locked)

struct ledger_slot *ledger_unclaimed(
	const struct ledger *l, enum ledger_kind kind, const struct ledger_slot *after)
{
	LOCKED(l);

	for (uint32_t i = ledger_number(l, after); i < l->ninherited; i++)
		if (l->inherited[i].kept && !l->inherited[i].claims && l->slots[i].kind == kind)
			return &l->slots[i];
	return NULL;
}

void ledger_claim(struct ledger *l, const struct ledger_slot *slot)
{
	LOCKED(l);

	assert(l->inherited[slot - l->slots].kept);
	l->inherited[slot - l->slots].claims++;
}

struct ledger_slot *ledger_claim_fitting(struct ledger *l, enum ledger_kind kind,
	bool (*fits)(const struct ledger_slot *slot, const void *arg), const void *arg)
{
	LOCKED(l);

	for (uint32_t i = 0; i < l->ninherited; i++) {
		if (!l->inherited[i].kept || l->slots[i].kind != kind || !fits(&l->slots[i], arg))
			continue;
		l->inherited[i].claims++;
		return &l->slots[i];
	}
	return NULL;
}

bool ledger_release(struct ledger *l, const struct ledger_slot *slot)
{
	struct inherited *i = &l->inherited[slot - l->slots];
	LOCKED(l);

	assert(i->kept && i->claims);
	i->kept = --i->claims > 0;
	return !i->kept;
}

/* ---- what a slot has ---- */

void ledger_made(struct ledger_slot *slot, const struct ledger_object *object)
{
	struct ledger_object made = *object;
	unsigned i = 0;

	if (!slot)
		return;
	while (i < LEDGER_OBJECTS && slot->object[i].type != LEDGER_NONE)
		i++;
	assert(i < LEDGER_OBJECTS && object->type != LEDGER_NONE);
	made.type = LEDGER_NONE;
	slot->object[i] = made;
	store(&slot->object[i].type, object->type);
}

void ledger_gone(struct ledger_slot *slot, enum ledger_type type, uint32_t handle)
{
	if (!slot)
		return;
	for (struct ledger_object *o = slot->object; o < slot->object + LEDGER_OBJECTS; o++) {
		if (o->type == type && o->handle == handle) {
			store(&o->type, LEDGER_NONE);
			return;
		}
	}
}

void ledger_accepted(struct ledger_slot *slot)
{
	if (slot)
		__atomic_store_n(&slot->session.accepted, 1, __ATOMIC_RELEASE);
}

void ledger_established(struct ledger_slot *slot)
{
	if (slot)
		__atomic_store_n(&slot->session.established, 1, __ATOMIC_RELEASE);
}

void ledger_set_block(struct ledger_slot *slot, uint64_t offset, uint64_t size)
{
	if (!slot)
		return;
	if (size)
		slot->block.offset = offset;
	__atomic_store_n(&slot->block.size, size, __ATOMIC_RELEASE);
}

void ledger_set_name(char to[LEDGER_NAME], const char *name)
{
	size_t len = strnlen(name, LEDGER_NAME - 1);

	memcpy(to, name, len);
	memset(to + len, 0, LEDGER_NAME - len);
}
