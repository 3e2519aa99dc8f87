/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/ledger/ledger.h"

#include "util/cleanup.h"

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
	pthread_mutex_t lock; /* of what follows */
	uint32_t *free;       /* numbers of slots that have been dropped */
	uint32_t nfree;
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

DEFINE_CLEANUP(struct ledger *, ledger_free)

int ledger_new(struct ledger **out, uint32_t slots, uint64_t arena_bytes)
{
	CLEANUP(ledger_freep) struct ledger *l = calloc(1, sizeof(*l));
	void *map;
	int r;

	if (!l)
		return -ENOMEM;
	l->fd = -1;
	pthread_mutex_init(&l->lock, NULL);
	l->size = LEDGER_PAGE + (size_t)slots * sizeof(struct ledger_slot);
	l->free = calloc(slots, sizeof(*l->free));
	if (!l->free)
		return -ENOMEM;
	l->fd = memfd_create("reddnd-ledger", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (l->fd < 0 || ftruncate(l->fd, (off_t)l->size) < 0 ||
		fcntl(l->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	map = mmap(NULL, l->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, l->fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	l->head = map;
	l->slots = (struct ledger_slot *)((uint8_t *)map + LEDGER_PAGE);
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

void ledger_free(struct ledger *l)
{
	if (l->head)
		munmap(l->head, l->size);
	if (l->fd >= 0)
		close(l->fd);
	pthread_mutex_destroy(&l->lock);
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
	snprintf(l->head->device, sizeof(l->head->device), "%s", name);
}

void ledger_set_last_session(struct ledger *l, uint64_t number)
{
	if (l)
		__atomic_store_n(&l->head->last_session, number, __ATOMIC_RELEASE);
}

int ledger_add_listener(struct ledger *l, uint32_t id)
{
	if (l->head->nlisteners == LEDGER_LISTENERS)
		return -ENOSPC;
	l->head->listeners[l->head->nlisteners] = id;
	store(&l->head->nlisteners, l->head->nlisteners + 1);
	return 0;
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
	if (!is_empty(slot)) {
		store(&slot->state, LEDGER_ENDING);
		return;
	}
	store(&slot->state, LEDGER_FREE);
	pthread_mutex_lock(&l->lock);
	l->free[l->nfree++] = (uint32_t)(slot - l->slots);
	pthread_mutex_unlock(&l->lock);
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
