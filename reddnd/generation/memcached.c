/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/memcached.h"

#include "reddnd/util/log.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <xxhash.h>

enum {
	LOOK_MS = 200,
	ASK_LOOKS = 5, /* a question by TCP in so many looks */
	TALK_MS = 1000,
	TRIES = 10, /* while memcached starts, or makes its table larger */
	PAUSE_MS = 100,
};

struct memcached {
	const struct catalog_region *conf;
	memcached_failed *failed;
	void *arg;
	struct reader file; /* its descriptor may write */
	struct talk talk;
	bool connected;
	uint32_t clock;         /* the server's, */
	uint64_t clock_us;      /* at this time */
	uint64_t looks, silent; /* the generation that did not answer, which has been logged */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stop;
	struct memcached_state state;
};

/* ---- over TCP --------------------------------------------------------------------------- */

static void disconnect(struct memcached *c)
{
	if (c->connected)
		talk_close(&c->talk);
	c->connected = false;
}

static int connect_to(struct memcached *c, char why[PROOF_WHY])
{
	int e = c->connected ? 0 : talk_open(&c->talk, c->conf->server, TALK_MS, why, PROOF_WHY);

	c->connected = e == 0;
	return e;
}

/* The server's clock, and how many items it has */
static void ask(struct memcached *c)
{
	struct talk_stat stats[] = {{.name = "uptime"}, {.name = "curr_items"}};
	char why[PROOF_WHY];

	if (connect_to(c, why) < 0)
		return;
	if (talk_stats(&c->talk, "", stats, 2) < 0) {
		disconnect(c);
		return;
	}
	c->clock = (uint32_t)strtoul(stats[0].value, NULL, 10) + CACHE_CLOCK_AHEAD;
	c->clock_us = clock_us();
	pthread_mutex_lock(&c->lock);
	c->state.items = strtoull(stats[1].value, NULL, 10);
	pthread_mutex_unlock(&c->lock);
}

/* 0; -EINVAL: this memcached cannot be served; another error: not now. @why has the reason */
static int prove(struct memcached *c, char why[PROOF_WHY])
{
	struct proof proof;
	int e = connect_to(c, why);

	if (e < 0)
		return e == -EINVAL ? -ENOTCONN : e;
	e = proof_make(&proof, &c->file, &c->talk, why);
	if (e < 0) {
		disconnect(c);
		return e;
	}
	c->clock = proof.clock;
	c->clock_us = clock_us();
	pthread_mutex_lock(&c->lock);
	c->state = (struct memcached_state){
		.proof = proof, .proved = true, .items = c->state.items, .power = proof.power};
	pthread_mutex_unlock(&c->lock);
	log_info("region %s: memcached %s, process %" PRIu64 ", is proved: %s, a table of 2^%u",
		c->conf->name, proof.version, proof.pid, cache_hash_name(proof.hash), proof.power);
	return 0;
}

/* ---- what clients see ------------------------------------------------------------------- */

static void publish(struct memcached *c)
{
	const uint64_t off = REDDN_CACHE_NULL + offsetof(struct reddn_cache_header, served);
	uint64_t dead_s = c->state.dead_us ? (clock_us() - c->state.dead_us) / 1000000 : 0;
	struct reddn_cache_served line = {
		.generation = c->state.proved ? c->state.proof.generation : 0,
		.hash = c->state.proof.hash,
		.clock = c->clock + (clock_us() - c->clock_us) / 1000000,
		.died = c->state.dead_us ? (uint64_t)time(NULL) - dead_s : 0,
		.looks = ++c->looks,
	};

	line.sum = XXH3_64bits(&line, offsetof(struct reddn_cache_served, sum));
	/* if the file is gone, region_check() sees it */
	(void)!pwrite(c->file.fd, &line, sizeof(line), (off_t)off);
}

/* ---- looking ---------------------------------------------------------------------------- */

/* A memcached with another layout has put another file in the place of ours */
static bool is_replaced(const struct memcached *c)
{
	struct stat ours, now;

	return fstat(c->file.fd, &ours) == 0 && stat(c->conf->path, &now) == 0 &&
	       (ours.st_ino != now.st_ino || ours.st_dev != now.st_dev);
}

/* No memcached runs. False: the region is not served any more, for the reason @why */
static bool look_at_dead(struct memcached *c, char why[PROOF_WHY])
{
	uint64_t now = clock_us(), dead;

	disconnect(c);
	pthread_mutex_lock(&c->lock);
	if (!c->state.dead_us) {
		c->state.dead_us = now;
		log_warning("region %s: memcached has ended; its items are served on", c->conf->name);
	}
	dead = now - c->state.dead_us;
	pthread_mutex_unlock(&c->lock);
	if (is_replaced(c)) {
		snprintf(why, PROOF_WHY, "memcached has made another file in its place");
		return false;
	}
	if (c->conf->stale_max && dead >= c->conf->stale_max) {
		snprintf(why, PROOF_WHY, "memcached ended %" PRIu64 " s ago, and has not come back",
			dead / 1000000);
		return false;
	}
	return true;
}

/* Another memcached runs with the file */
static bool look_at_next(struct memcached *c, uint64_t generation, char why[PROOF_WHY])
{
	int e;

	disconnect(c);
	pthread_mutex_lock(&c->lock);
	c->state.proved = false;
	pthread_mutex_unlock(&c->lock);
	/* clients learn at once that what they know is over */
	publish(c);
	e = prove(c, why);
	if (e < 0 && e != -EINVAL && c->silent != generation) {
		c->silent = generation;
		log_warning("region %s: memcached was started again, and cannot be proved yet: %s",
			c->conf->name, why);
	}
	return e != -EINVAL;
}

static unsigned power_of(const struct memcached *c, const struct reddn_cache_live *live)
{
	/* bit 0 is the other place of the smallest */
	return live->tables > 1 ? 63u - (unsigned)__builtin_clzll(live->tables) : c->file.header.power_min;
}

/* False: the region is not served any more, for the reason @why */
static bool look(struct memcached *c, char why[PROOF_WHY])
{
	struct reddn_cache_live live;
	bool goes_on = true;
	int e = reader_live(&c->file, &live);

	if (e < 0) {
		snprintf(why, PROOF_WHY, "it cannot be read: %s", strerror(-e));
		return false;
	}
	if (!reader_is_served(&c->file)) {
		goes_on = look_at_dead(c, why);
	} else if (live.generation != c->state.proof.generation) {
		goes_on = look_at_next(c, live.generation, why);
	} else {
		pthread_mutex_lock(&c->lock);
		c->state.dead_us = 0;
		c->state.power = power_of(c, &live);
		pthread_mutex_unlock(&c->lock);
		if (c->looks % ASK_LOOKS == 0)
			ask(c);
	}
	publish(c);
	return goes_on;
}

/* True: to be ended */
static bool rest(struct memcached *c)
{
	struct timespec until;
	bool stop;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += LOOK_MS * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&c->lock);
	while (!c->stop && pthread_cond_timedwait(&c->changed, &c->lock, &until) == 0)
		;
	stop = c->stop;
	pthread_mutex_unlock(&c->lock);
	return stop;
}

static void *run(void *arg)
{
	struct memcached *c = arg;
	char why[PROOF_WHY];

	while (!rest(c))
		if (!look(c, why)) {
			c->failed(c->arg, why);
			break;
		}
	return NULL;
}

/* Signals are for the loop, which reads them from a descriptor */
static int start(struct memcached *c)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&c->thread, NULL, run, c);
	if (r == 0)
		pthread_setname_np(c->thread, "reddnd-cache");
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

/* ----------------------------------------------------------------------------------------- */

static void memcached_free(struct memcached *c)
{
	disconnect(c);
	if (c->file.fd >= 0)
		close(c->file.fd);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->changed);
	free(c);
}

DEFINE_CLEANUP(struct memcached *, memcached_free)

static int open_file(struct memcached *c, const struct rnic_region *region, char why[PROOF_WHY])
{
	c->file.fd = file_open_no_links(c->conf->path, O_RDWR);
	if (c->file.fd < 0) {
		snprintf(why, PROOF_WHY, "it cannot be opened for writing: %s", file_error(c->file.fd));
		return -EINVAL;
	}
	if (!rnic_region_is_file(region, c->file.fd)) {
		snprintf(why, PROOF_WHY, "it was replaced meanwhile");
		return -EINVAL;
	}
	return reader_init(&c->file, c->file.fd, why, PROOF_WHY);
}

static int first_proof(struct memcached *c, char why[PROOF_WHY])
{
	const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000};
	int e = prove(c, why);

	for (unsigned i = 1; e == -EAGAIN && i < TRIES; i++) {
		nanosleep(&pause, NULL);
		e = prove(c, why);
	}
	return e < 0 ? -EINVAL : 0;
}

int memcached_open(struct memcached **out, const struct catalog_region *conf,
	const struct rnic_region *region, memcached_failed *failed, void *arg, char why[PROOF_WHY])
{
	CLEANUP(memcached_freep) struct memcached *c = calloc(1, sizeof(*c));
	pthread_condattr_t monotonic;
	int r;

	if (!c)
		return -ENOMEM;
	c->conf = conf;
	c->failed = failed;
	c->arg = arg;
	c->file.fd = -1;
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&c->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	r = open_file(c, region, why);
	if (r == 0)
		r = first_proof(c, why);
	if (r < 0)
		return r;
	publish(c);
	if (start(c) < 0)
		return -ENOMEM;
	*out = steal_ptr(&c);
	return 0;
}

void memcached_close(struct memcached *c)
{
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_cond_signal(&c->changed);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	memcached_free(c);
}

const struct reddn_cache_header *memcached_header(const struct memcached *c)
{
	return &c->file.header;
}

void memcached_state(struct memcached *c, struct memcached_state *state)
{
	pthread_mutex_lock(&c->lock);
	*state = c->state;
	pthread_mutex_unlock(&c->lock);
}
