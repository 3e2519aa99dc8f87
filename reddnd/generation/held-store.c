/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/held-store.h"

#include "reddnd/rnic/file-watch.h"
#include "reddnd/util/bus-guard.h"
#include "reddnd/util/log.h"
#include "util/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

struct held_store {
	struct table table; /* as it is since the store was opened */
	struct rnic_region
		*file; /* a mapping of its own, and the lock of the writer; NULL: it was given up */
	int watches;   /* of that file; -1: none */
	struct store *store;
	pthread_mutex_t writing; /* held while anything is written to the file */
	atomic_bool bad;
	atomic_uint sessions; /* that have joined */
	unsigned refs;        /* with the lock held */
	uint64_t lock_number; /* 0: it is not inherited */
	uint64_t returned;
	SLIST_ENTRY(held_store) link;
};

/* @opening: held while a store is opened, which may take seconds */
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER, lock = PTHREAD_MUTEX_INITIALIZER;
static SLIST_HEAD(, held_store) all = SLIST_HEAD_INITIALIZER(all);

/* What a daemon before this one left: extents of files, and locks */
struct expected {
	uint64_t dev, ino;
	struct store_held *held;
	size_t n;
	SLIST_ENTRY(expected) link;
};

static SLIST_HEAD(, expected) expected = SLIST_HEAD_INITIALIZER(expected);
static struct held_store_inherited *locks;
static unsigned nlocks;

/* With a copy of what was in it a moment ago, perhaps, which has the same header: there is an event of it.
 * Neither this process nor a NIC causes one */
static bool is_written(const struct held_store *h)
{
	struct pollfd p = {.fd = h->watches, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

/* ---- under the guard --------------------------------------------------------------------------- */

/* Arguments of a call of store.h, and what it returns */
struct call {
	struct held_store *h;
	void (*work)(void *call);
	bool overwritten;
	uint64_t at, place, old;
	uint32_t bytes;
	int error;
	bool yes;
	struct store_numbers *numbers;
	const struct expected *expected;
	char *why;
	size_t why_size;
};

/* Nobody looks at the file before each access, and clients go on to put: so this does */
static void work_if_same(void *arg)
{
	struct call *c = arg;

	c->overwritten = !table_has_header(&c->h->table, rnic_region_at(c->h->file, 0));
	if (!c->overwritten)
		c->work(c);
}

/* False: the file was cut off or overwritten, now or before. What the store had begun to allocate may be lost
 */
static bool guarded(struct held_store *h, void (*work)(void *call), struct call *c)
{
	bool was_bad;

	c->h = h;
	c->work = work;
	pthread_mutex_lock(&h->writing);
	was_bad = h->bad;
	if (!was_bad)
		h->bad = bus_guard(work_if_same, c) < 0 || c->overwritten;
	pthread_mutex_unlock(&h->writing);
	if (h->bad && !was_bad)
		log_error("the file of a store has been cut off or overwritten: what is in it is served no "
			  "more");
	return !h->bad;
}

static void open_it(void *arg)
{
	struct call *c = arg;
	const struct expected *e = c->expected;
	uint8_t *file = rnic_region_at(c->h->file, 0);

	c->error = store_open(&c->h->store, file, rnic_region_size(c->h->file), e ? e->held : NULL,
		e ? e->n : 0, c->why, c->why_size);
	c->h->table.header.opened = ((const struct reddn_table_header *)file)->opened;
}

static void leave(void *arg)
{
	struct call *c = arg;

	store_leave(c->h->store);
}

static void take(void *arg)
{
	struct call *c = arg;

	c->error = store_take(c->h->store, c->bytes, &c->at);
}

static void renew(void *arg)
{
	struct call *c = arg;

	store_renew(c->h->store, c->at);
}

static void give(void *arg)
{
	struct call *c = arg;

	store_give(c->h->store, c->at);
}

static void published(void *arg)
{
	struct call *c = arg;

	c->yes = store_published(c->h->store, c->place, c->old, c->at);
}

static void unplaced(void *arg)
{
	struct call *c = arg;

	c->yes = store_unplaced(c->h->store, c->at, c->bytes);
}

static void unfinished(void *arg)
{
	struct call *c = arg;

	store_unfinished(c->h->store, c->place, c->old, c->at);
}

static void work(void *arg)
{
	struct call *c = arg;

	c->overwritten = is_written(c->h);
	c->yes = !c->overwritten && store_work(c->h->store);
}

static void grace_begins(void *arg)
{
	struct call *c = arg;

	store_grace_begins(c->h->store);
}

static void grace_over(void *arg)
{
	struct call *c = arg;

	store_grace_over(c->h->store);
}

static void count(void *arg)
{
	struct call *c = arg;

	store_numbers(c->h->store, c->numbers);
}

/* ---- life -------------------------------------------------------------------------------------- */

/* Somebody may have a copy of the descriptor */
static void unlock_and_close(struct rnic_region *file)
{
	rnic_unlock(rnic_region_fd(file), REDDN_TABLE_LOCK_WRITER);
	rnic_region_close(file);
}

static void held_store_close(struct held_store *h)
{
	struct call c = {0};

	if (h->store) {
		guarded(h, leave, &c);
		store_close(h->store);
	}
	if (h->file)
		unlock_and_close(h->file);
	if (h->watches >= 0)
		close(h->watches);
	pthread_mutex_destroy(&h->writing);
	free(h);
}

DEFINE_CLEANUP(struct held_store *, held_store_close)

/* One that was given up is not found any more */
static struct held_store *find(const struct rnic_region *file)
{
	struct held_store *h;

	pthread_mutex_lock(&lock);
	SLIST_FOREACH (h, &all, link)
		if (h->file && rnic_region_is(h->file, file))
			break;
	if (h)
		h->refs++;
	pthread_mutex_unlock(&lock);
	return h;
}

/* The file is for another store: it is unlocked. False: chains may still publish in it */
static bool give_up(struct held_store *h)
{
	struct rnic_region *file = NULL;

	held_store_end(h);
	pthread_mutex_lock(&lock);
	if (!h->sessions)
		file = steal_ptr(&h->file);
	pthread_mutex_unlock(&lock);
	if (file)
		unlock_and_close(file);
	return file;
}

/* ---- what was left ----------------------------------------------------------------------------- */

static struct expected *find_expected(uint64_t dev, uint64_t ino)
{
	struct expected *e;

	SLIST_FOREACH (e, &expected, link)
		if (e->dev == dev && e->ino == ino)
			break;
	return e;
}

int held_store_expect(uint64_t dev, uint64_t ino, const struct store_held *held, size_t n)
{
	struct expected *e = find_expected(dev, ino);
	struct store_held *more;

	if (!e) {
		e = calloc(1, sizeof(*e));
		if (!e)
			return -ENOMEM;
		e->dev = dev;
		e->ino = ino;
		SLIST_INSERT_HEAD(&expected, e, link);
	}
	more = reallocarray(e->held, e->n + n, sizeof(*more));
	if (!more)
		return -ENOMEM;
	memcpy(more + e->n, held, n * sizeof(*held));
	e->held = more;
	e->n += n;
	return 0;
}

void held_store_expect_none(void)
{
	struct expected *e;

	while ((e = SLIST_FIRST(&expected))) {
		SLIST_REMOVE_HEAD(&expected, link);
		free(e->held);
		free(e);
	}
}

void held_store_inherit_locks(struct held_store_inherited *inherited, unsigned n)
{
	locks = inherited;
	nlocks = n;
}

static bool is_lock_of(const struct held_store_inherited *l, const struct rnic_region *file)
{
	return l->fd >= 0 && rnic_region_is_file(file, l->fd);
}

static int lock_writer(struct rnic_region **out)
{
	int r = rnic_region_lock(*out, REDDN_TABLE_LOCK_WRITER);

	if (r < 0)
		rnic_region_close(steal_ptr(out));
	return r;
}

/* Other writers may not have the file for a moment either: the lock is that of the open file. Of several the
 * others have none: a store that was given up has left its open file too */
static int open_inherited(
	struct rnic_region **out, const struct rnic_region *file, struct held_store_inherited **inherited)
{
	for (unsigned i = 0; i < nlocks; i++) {
		if (!is_lock_of(&locks[i], file) ||
			rnic_region_take(out, fcntl(locks[i].fd, F_DUPFD_CLOEXEC, 3)) < 0 ||
			lock_writer(out) < 0)
			continue;
		*inherited = &locks[i];
		return 0;
	}
	return -ENOENT;
}

static int open_locked(
	struct rnic_region **out, const struct rnic_region *file, struct held_store_inherited **inherited)
{
	int r = open_inherited(out, file, inherited);

	if (r == 0)
		return 0;
	r = rnic_region_again(out, file);
	return r == 0 ? lock_writer(out) : r;
}

/* Others may be copies of it (reddnd-run, where the kernel cannot compare): nobody unlocks them */
static void use_lock(struct held_store *h, struct held_store_inherited *inherited)
{
	h->lock_number = inherited->number;
	inherited->used = true;
	for (unsigned i = 0; i < nlocks; i++)
		if (is_lock_of(&locks[i], h->file))
			close(steal_fd(&locks[i].fd));
}

/* No other writer comes between looking and opening: the lock is taken before */
static int open_new(struct held_store **out, const struct table *table, const struct rnic_region *file,
	char *why, size_t n)
{
	CLEANUP(held_store_closep) struct held_store *h = calloc(1, sizeof(*h));
	const struct rnic_file_id id = rnic_region_id(file);
	struct call c = {.why = why, .why_size = n, .expected = find_expected(id.dev, id.ino)};
	struct held_store_inherited *inherited = NULL;
	int r;

	if (!h)
		return -ENOMEM;
	pthread_mutex_init(&h->writing, NULL);
	h->table = *table;
	h->refs = 1;
	h->watches = file_watch_new();
	file_watch_add(h->watches, rnic_region_fd(file));
	r = open_locked(&h->file, file, &inherited);
	if (r == -EAGAIN)
		snprintf(why, n, "another program writes it; only this daemon may");
	else if (r < 0)
		snprintf(why, n, "it cannot be opened for writing: %s", strerror(-r));
	if (r < 0)
		return r;
	if (!guarded(h, open_it, &c)) {
		snprintf(why, n, "it has been cut off or overwritten");
		c.error = -EINVAL;
	}
	if (c.error < 0) {
		/* It stays locked until the sessions that publish there have ended */
		if (inherited)
			rnic_region_close(steal_ptr(&h->file));
		return c.error;
	}
	if (inherited)
		use_lock(h, inherited);
	*out = steal_ptr(&h);
	pthread_mutex_lock(&lock);
	SLIST_INSERT_HEAD(&all, *out, link);
	pthread_mutex_unlock(&lock);
	return 0;
}

/* With @opening held */
static int get(struct held_store **out, const struct table *table, const struct rnic_region *file, char *why,
	size_t n)
{
	struct held_store *h = find(file);
	bool given_up;

	if (!h)
		return open_new(out, table, file, why, n);
	if (!h->bad && !is_written(h) && !table_is_overwritten(&h->table, file)) {
		*out = h;
		return 0;
	}
	given_up = give_up(h);
	held_store_unref(h);
	if (given_up)
		return open_new(out, table, file, why, n);
	snprintf(why, n, "it was cut off or overwritten, and sessions of what it was have not ended yet");
	return -EBUSY;
}

int held_store_get(
	struct held_store **h, struct table *table, const struct rnic_region *file, char *why, size_t n)
{
	int r;

	pthread_mutex_lock(&opening);
	r = get(h, table, file, why, n);
	if (r == 0)
		*table = (*h)->table;
	pthread_mutex_unlock(&opening);
	return r;
}

void held_store_end(struct held_store *h)
{
	pthread_mutex_lock(&h->writing);
	h->bad = true;
	pthread_mutex_unlock(&h->writing);
}

void held_store_join(struct held_store *h)
{
	h->sessions++;
}

void held_store_leave(struct held_store *h)
{
	h->sessions--;
}

struct held_store *held_store_ref(struct held_store *h)
{
	pthread_mutex_lock(&lock);
	h->refs++;
	pthread_mutex_unlock(&lock);
	return h;
}

void held_store_unref(struct held_store *h)
{
	bool last;

	pthread_mutex_lock(&lock);
	last = --h->refs == 0;
	if (last)
		SLIST_REMOVE(&all, h, held_store, link);
	pthread_mutex_unlock(&lock);
	if (last)
		held_store_close(h);
}

bool held_store_has(const struct rnic_region *file)
{
	struct held_store *h = find(file);

	if (!h)
		return false;
	held_store_unref(h);
	return true;
}

int held_store_lock(const struct held_store *h)
{
	int fd = -EBADF;

	pthread_mutex_lock(&lock);
	if (h->file) {
		fd = fcntl(rnic_region_fd(h->file), F_DUPFD_CLOEXEC, 3);
		if (fd < 0)
			fd = -errno;
	}
	pthread_mutex_unlock(&lock);
	return fd;
}

uint64_t held_store_lock_number(const struct held_store *h)
{
	return h->lock_number;
}

bool held_store_is_shared(const struct held_store *h)
{
	bool shared;

	pthread_mutex_lock(&lock);
	shared = h->refs > 1;
	pthread_mutex_unlock(&lock);
	return shared;
}

bool held_store_is_bad(const struct held_store *h)
{
	return h->bad;
}

/* ---- extents ----------------------------------------------------------------------------------- */

int held_store_take(struct held_store *h, uint32_t bytes, uint64_t *at)
{
	struct call c = {.bytes = bytes};

	if (!guarded(h, take, &c))
		return -EIO;
	if (c.error == 0)
		*at = c.at;
	return c.error;
}

bool held_store_may_hold(const struct held_store *h, uint32_t bytes, unsigned n)
{
	return store_may_hold(h->store, bytes, n);
}

void held_store_renew(struct held_store *h, uint64_t at)
{
	guarded(h, renew, &(struct call){.at = at});
}

void held_store_give(struct held_store *h, uint64_t at)
{
	h->returned++;
	guarded(h, give, &(struct call){.at = at});
}

bool held_store_published(struct held_store *h, uint64_t place, uint64_t old, uint64_t now)
{
	struct call c = {.place = place, .old = old, .at = now};

	return !guarded(h, published, &c) || c.yes;
}

bool held_store_unplaced(struct held_store *h, uint64_t at, uint32_t bytes)
{
	struct call c = {.at = at, .bytes = bytes};

	return !guarded(h, unplaced, &c) || c.yes;
}

void held_store_unfinished(struct held_store *h, uint64_t place, uint64_t old, uint64_t now)
{
	guarded(h, unfinished, &(struct call){.place = place, .old = old, .at = now});
}

/* ---- turns ------------------------------------------------------------------------------------- */

bool held_store_work(struct held_store *h)
{
	struct call c = {0};

	return guarded(h, work, &c) && c.yes;
}

void held_store_grace_begins(struct held_store *h)
{
	guarded(h, grace_begins, &(struct call){0});
}

void held_store_grace_over(struct held_store *h)
{
	h->returned++;
	guarded(h, grace_over, &(struct call){0});
}

uint64_t held_store_returned(const struct held_store *h)
{
	return h->returned;
}

void held_store_numbers(struct held_store *h, struct store_numbers *n)
{
	*n = (struct store_numbers){0};
	guarded(h, count, &(struct call){.numbers = n});
}
