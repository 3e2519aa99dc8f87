/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/memcached.h"

#include "memcached/identity.h"
#include "reddnd/util/log.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <xxhash.h>

/* ---- how long to wait before the next look: longer while it answers, or is away for long ---- */

/* LOOKS_SOON_MS: between the first LOOKS_SOON when memcached has ended, and at the next one, which does not
 * answer yet. Until that is proved, clients get nothing by the NIC. */
enum { LOOKS_MS = 200, LOOKS_SOON_MS = 10, LOOKS_SOON = 200 };

/* All zero: a memcached that has been away for long. */
struct looks {
	unsigned soon; /* looks that are soon, while no memcached answers */
};

/* A memcached began: looks are soon, until one answers. */
static void looks_begins(struct looks *l)
{
	l->soon = LOOKS_SOON;
}

/* Milliseconds to the next look, of which one is counted; @answers: memcached is proved and answers. */
static int looks_rest_ms(struct looks *l, bool answers)
{
	if (answers)
		l->soon = LOOKS_SOON;
	else if (l->soon)
		l->soon--;
	return !answers && l->soon ? LOOKS_SOON_MS : LOOKS_MS;
}

enum {
	TALK_MS = 1000,
	/* memcached starts, or makes its table larger */
	FIRST_MS = 1500,
	PAUSE_MS = 100,
};

/* Of the line of the daemon in the file */
enum { SERVED = REDDN_CACHE_NULL + offsetof(struct reddn_cache_header, served) };

struct memcached {
	const struct catalog_region *conf;
	memcached_failed *failed;
	void *arg;
	struct reader file; /* its descriptor may write */
	struct talk talk;
	bool connected;
	struct identity identity; /* of the memcached that was proved */
	uint32_t clock;           /* the server's, */
	uint64_t clock_us;        /* at this time */
	uint64_t flushed, asked;
	uint64_t silent; /* the generation that did not answer, which has been logged */
	struct looks rest;
	pthread_t thread;
	int stop; /* eventfd */
	pthread_mutex_t lock;
	struct memcached_state state;
};

/* ---- over TCP --------------------------------------------------------------------------- */

static void disconnect(struct memcached *m)
{
	if (m->connected)
		talk_close(&m->talk);
	m->connected = false;
}

static int connect_to(struct memcached *m, char why[PROOF_WHY])
{
	int e = m->connected ? 0 : talk_open(&m->talk, m->conf->server, TALK_MS, why, PROOF_WHY);

	m->connected = e == 0;
	return e;
}

/* The server's clock, how many items it has, and what flush_all has done: that hides items whose time is up
 * to "oldest", and those that were set before it in the second after (items.c, item_is_flushed). With a delay
 * "oldest" lies ahead. */
static void ask(struct memcached *m)
{
	struct talk_stat stats[] = {{.name = "uptime"}, {.name = "curr_items"}};
	struct talk_stat settings[] = {{.name = "oldest"}};
	char why[PROOF_WHY];
	uint64_t oldest;

	if (connect_to(m, why) < 0)
		return;
	if (talk_send(&m->talk, "stats\r\nstats settings") < 0 || talk_stats_answer(&m->talk, stats, 2) < 0 ||
		talk_stats_answer(&m->talk, settings, 1) < 0) {
		disconnect(m);
		return;
	}
	oldest = strtoull(settings[0].value, NULL, 10);
	m->clock = (uint32_t)strtoul(stats[0].value, NULL, 10) + CACHE_CLOCK_AHEAD;
	m->clock_us = clock_us();
	m->asked = m->clock;
	m->flushed = oldest ? oldest + 1 : 0;
	pthread_mutex_lock(&m->lock);
	m->state.items = strtoull(stats[1].value, NULL, 10);
	pthread_mutex_unlock(&m->lock);
}

/* 0; -EINVAL: this memcached cannot be served; another error: not now. @why has the reason */
static int prove(struct memcached *m, char why[PROOF_WHY])
{
	struct proof proof;
	int e = connect_to(m, why);

	if (e < 0)
		return e == -EINVAL ? -ENOTCONN : e;
	e = proof_make(&proof, &m->file, &m->talk, why);
	if (e == 0) {
		e = identity_store(&m->talk, proof.generation, &m->identity);
		if (e < 0)
			snprintf(why, PROOF_WHY, "memcached does not take its identity: %s", strerror(-e));
	}
	if (e < 0) {
		disconnect(m);
		return e;
	}
	if (proof.generation != m->state.proof.generation)
		log_info("region %s: memcached %s, process %" PRIu64 ", is proved: %s, a table of 2^%u",
			m->conf->name, proof.version, proof.pid, cache_hash_name(proof.hash), proof.power);
	m->clock = proof.clock;
	m->clock_us = clock_us();
	m->flushed = UINT64_MAX; /* until it is asked */
	pthread_mutex_lock(&m->lock);
	m->state = (struct memcached_state){
		.proof = proof, .proved = true, .items = m->state.items, .power = proof.power};
	pthread_mutex_unlock(&m->lock);
	ask(m);
	return 0;
}

/* ---- what clients see ------------------------------------------------------------------- */

/* Since 1.6.27, as far as is known */
static bool ids_move(const char *version)
{
	unsigned major = 0, minor = 0, patch = 0;

	return sscanf(version, "%u.%u.%u", &major, &minor, &patch) != 3 || major > 1 || minor > 6 ||
	       (minor == 6 && patch >= 27);
}

static void publish(struct memcached *m)
{
	uint64_t dead_s = m->state.dead_us ? (clock_us() - m->state.dead_us) / 1000000 : 0;
	struct reddn_cache_served line = {
		.generation = m->state.proved ? m->state.proof.generation : 0,
		.hash = m->state.proof.hash,
		.traits = ids_move(m->state.proof.version) ? REDDN_CACHE_IDS_MOVE : 0,
		.clock = m->clock + (clock_us() - m->clock_us) / 1000000,
		.died = m->state.dead_us ? (uint64_t)time(NULL) - dead_s : 0,
		.identity = m->identity.cas,
		.flushed = m->flushed,
		.asked = m->asked,
	};

	line.sum = XXH3_64bits(&line, offsetof(struct reddn_cache_served, sum));
	/* if the file is gone, region_look() sees it */
	(void)!pwrite(m->file.fd, &line, sizeof(line), SERVED);
}

/* ---- looking ---------------------------------------------------------------------------- */

/* A memcached with another layout has put another file in the place of ours */
static bool is_replaced(const struct memcached *m)
{
	struct stat ours, now;

	return fstat(m->file.fd, &ours) == 0 && stat(m->conf->path, &now) == 0 &&
	       (ours.st_ino != now.st_ino || ours.st_dev != now.st_dev);
}

/* Another one answers at the address of the memcached that has ended, and does not run with our file */
static bool is_another(struct memcached *m)
{
	char words[PROOF_WHY];
	int r;

	if (connect_to(m, words) < 0)
		return false;
	r = identity_ask(&m->talk, &m->identity);
	disconnect(m);
	/* one that does may have begun meanwhile */
	return r == 0 && !reader_is_served(&m->file);
}

/* No memcached runs. False: the region is not served any more, for the reason @why */
static bool look_at_dead(struct memcached *m, char why[PROOF_WHY])
{
	uint64_t now = clock_us(), dead;
	bool known = m->state.dead_us;

	disconnect(m);
	pthread_mutex_lock(&m->lock);
	if (!known) {
		m->state.dead_us = now;
		log_warning("region %s: memcached has ended; its items are served on", m->conf->name);
	}
	dead = now - m->state.dead_us;
	pthread_mutex_unlock(&m->lock);
	if (is_replaced(m)) {
		snprintf(why, PROOF_WHY, "memcached has made another file in its place");
		return false;
	}
	/* clients learn of the end first: this may wait */
	if (known && !reader_is_served(&m->file) && is_another(m)) {
		snprintf(why, PROOF_WHY,
			"memcached has ended, and another one, which does not run with this file, answers "
			"at %s",
			m->conf->server);
		return false;
	}
	if (dead >= m->conf->stale_max) {
		snprintf(why, PROOF_WHY, "memcached ended %" PRIu64 " s ago, and has not come back",
			dead / 1000000);
		return false;
	}
	return true;
}

/* False: the memcached of the file cannot be served, for the reason @why */
static bool prove_again(struct memcached *m, uint64_t generation, char why[PROOF_WHY])
{
	int e = prove(m, why);

	/* it may have ended meanwhile */
	if (e == -EINVAL && reader_is_served(&m->file))
		return false;
	if (e < 0) {
		pthread_mutex_lock(&m->lock);
		m->state.proved = false;
		pthread_mutex_unlock(&m->lock);
	}
	if (e < 0 && m->silent != generation) {
		m->silent = generation;
		looks_begins(&m->rest);
		log_warning("region %s: memcached cannot be proved yet: %s", m->conf->name, why);
	}
	return true;
}

/* Somebody has deleted its item, or the address leads to another memcached */
static bool is_unknown(struct memcached *m)
{
	int r = m->connected ? identity_ask(&m->talk, &m->identity) : -ENOTCONN;

	/* the rest of an answer is none to the next command */
	if (r < 0)
		disconnect(m);
	return r == 0;
}

/* Another memcached runs with the file */
static bool look_at_next(struct memcached *m, uint64_t generation, char why[PROOF_WHY])
{
	disconnect(m);
	pthread_mutex_lock(&m->lock);
	m->state.proved = false;
	pthread_mutex_unlock(&m->lock);
	/* clients learn at once that what they know is over */
	publish(m);
	return prove_again(m, generation, why);
}

static unsigned power_of(const struct memcached *m, const struct reddn_cache_live *live)
{
	/* bit 0 is the other place of the smallest */
	return live->tables > 1 ? 63u - (unsigned)__builtin_clzll(live->tables) : m->file.header.power_min;
}

/* False: the region is not served any more, for the reason @why */
static bool look(struct memcached *m, char why[PROOF_WHY])
{
	struct reddn_cache_live live;
	bool goes_on = true;
	int e = reader_live(&m->file, &live);

	if (e < 0) {
		snprintf(why, PROOF_WHY, "it cannot be read: %s", strerror(-e));
		return false;
	}
	if (!reader_is_served(&m->file)) {
		goes_on = look_at_dead(m, why);
	} else if (live.generation != m->state.proof.generation) {
		goes_on = look_at_next(m, live.generation, why);
	} else if (live.next || m->state.dead_us) {
		/* the next one has the file, and not its port yet; nobody may have seen that the one before
		 * ended */
		goes_on = look_at_dead(m, why);
	} else {
		pthread_mutex_lock(&m->lock);
		m->state.dead_us = 0;
		m->state.power = power_of(m, &live);
		pthread_mutex_unlock(&m->lock);
		ask(m);
		if ((m->connected && !m->state.proved) || is_unknown(m))
			goes_on = prove_again(m, live.generation, why);
	}
	publish(m);
	return goes_on;
}

/* To the next look, or until memcached closes the connection, as when it ends. True: to be ended */
static bool rest(struct memcached *m)
{
	struct pollfd fds[] = {{.fd = m->stop, .events = POLLIN},
		{.fd = m->connected ? m->talk.fd : -1, .events = POLLRDHUP}};

	return poll(fds, COUNT(fds), looks_rest_ms(&m->rest, m->connected && m->state.proved)) > 0 &&
	       fds[0].revents;
}

static void *run(void *arg)
{
	struct memcached *m = arg;
	char why[PROOF_WHY];

	while (!rest(m))
		if (!look(m, why)) {
			m->failed(m->arg, why);
			break;
		}
	return NULL;
}

/* Signals are for the loop, which reads them from a descriptor */
static int start(struct memcached *m)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&m->thread, NULL, run, m);
	if (r == 0)
		pthread_setname_np(m->thread, "reddnd-cache");
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

/* ----------------------------------------------------------------------------------------- */

static void memcached_free(struct memcached *m)
{
	disconnect(m);
	talk_deinit(&m->talk);
	if (m->file.fd >= 0)
		close(m->file.fd);
	if (m->stop >= 0)
		close(m->stop);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

DEFINE_CLEANUP(struct memcached *, memcached_free)

static int open_file(struct memcached *m, const struct rnic_region *region, char why[PROOF_WHY])
{
	m->file.fd = file_open_no_links(m->conf->path, O_RDWR);
	if (m->file.fd < 0) {
		snprintf(why, PROOF_WHY, "it cannot be opened for writing: %s", file_error(m->file.fd));
		return -EINVAL;
	}
	if (!rnic_region_is_file(region, m->file.fd)) {
		snprintf(why, PROOF_WHY, "it was replaced meanwhile");
		return -EINVAL;
	}
	return reader_init(&m->file, m->file.fd, rnic_region_size(region), why, PROOF_WHY);
}

static int first_proof(struct memcached *m, char why[PROOF_WHY])
{
	const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000};
	uint64_t until_ms = clock_ms() + FIRST_MS;
	int e = prove(m, why);

	while (e == -EAGAIN && clock_ms() < until_ms) {
		nanosleep(&pause, NULL);
		e = prove(m, why);
	}
	return e < 0 ? -EINVAL : 0;
}

int memcached_open(struct memcached **out, const struct catalog_region *conf,
	const struct rnic_region *region, memcached_failed *failed, void *arg, char why[PROOF_WHY])
{
	CLEANUP(memcached_freep) struct memcached *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->conf = conf;
	m->failed = failed;
	m->arg = arg;
	m->file.fd = -1;
	pthread_mutex_init(&m->lock, NULL);
	m->stop = eventfd(0, EFD_CLOEXEC);
	m->talk.stop = m->stop;
	r = m->stop < 0 ? -ENOMEM : open_file(m, region, why);
	if (r == 0)
		r = first_proof(m, why);
	if (r < 0)
		return r;
	publish(m);
	if (start(m) < 0)
		return -ENOMEM;
	*out = steal_ptr(&m);
	return 0;
}

void memcached_close(struct memcached *m)
{
	eventfd_write(m->stop, 1);
	pthread_join(m->thread, NULL);
	memcached_free(m);
}

const struct reddn_cache_header *memcached_header(const struct memcached *m)
{
	return &m->file.header;
}

void memcached_state(struct memcached *m, struct memcached_state *state)
{
	pthread_mutex_lock(&m->lock);
	*state = m->state;
	pthread_mutex_unlock(&m->lock);
}
