/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reddn-mc.h - gets from a pool of memcacheds: by the NIC where a server runs reddnd, over TCP where not. See
 * libreddn-mc(3).
 *
 * The pool is libmemcached's: its configuration string names the servers, and its distribution chooses the
 * one of a key, as for every other client. Sets, deletes and everything else but gets are libmemcached's own
 * functions, on reddn_mc_memcached().
 *
 * What a get returns: a value that the key had at some moment between the call and the result, whole, with
 * its flags and its CAS id; or REDDN_MISS, if memcached answers so over TCP (see enum reddn_mc_misses). An
 * answer of the NIC that does not prove this is asked for again, and then over TCP. Two things have a window,
 * documented at their place: flush_all, and misses = REDDN_MC_MISSES_FAST.
 *
 * Rules for all functions:
 *   - They return 0 or a positive outcome that they document, or -errno.
 *   - One thread at a time uses a handle, and the memcached_st of reddn_mc_memcached() is part of it.
 *   - The library makes no threads, but those that look host names up, without signals; they end by
 *     themselves. It installs no signal handlers.
 *   - They may block: a get over TCP for as long as libmemcached's time-outs allow, and while it looks host
 *     names up; one whose NIC has to be connected to, for connect_ms.
 */
#ifndef REDDN_MC_H
#define REDDN_MC_H

#include "reddn.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct memcached_st;

/** A pool. */
struct reddn_mc;

enum reddn_mc_misses {
	/* A key that the NIC does not find is asked for over TCP: a NIC may overlook a key that is replaced
	 * at that moment */
	REDDN_MC_MISSES_CONFIRM = 0,
	/* A miss of the NIC counts if it has seen the whole bucket: no TCP for most misses. Of keys that are
	 * overwritten all the time some in a thousand gets miss. */
	REDDN_MC_MISSES_FAST = 1,
};

/** Longest time; never */
#define REDDN_MC_FOREVER UINT32_MAX
#define REDDN_MC_NEVER UINT32_MAX

/** Options of a pool. A member that is 0 selects its default. The strings stay the caller's. */
struct reddn_mc_options {
	/* Where the NICs are that are not at the address of their memcached at `port`: SERVER=PLACE, with
	 * commas between. SERVER is HOST, HOST:PORT or the path of a socket, as in the configuration string.
	 * PLACE is HOST[:PORT][/OFFLOAD], or "-": that server has none. */
	const char *nics;
	const char *offload;    /* at each server, 1 to 23 bytes. NULL: "memcached" */
	const char *token_file; /* key of the access tokens, if reddnd requires them. NULL: none */
	uint16_t port;          /* of reddnd. 0: 7471 */
	uint16_t depth;         /* largest number of outstanding gets. 0: 16 */
	uint32_t connect_ms;    /* limit of one attempt to connect to a NIC. 0: 1000 */
	uint32_t reply_ms;      /* a NIC that does not answer for so long is left, and TCP used. 0: 1000 */
	uint32_t restart_ms;    /* a get waits for so long while memcached is started again. 0: 3000 */
	/* A flush_all is noticed when reddnd has asked memcached for it, five times in a second. If its last
	 * answer is older than this, gets go over TCP. 0: 10000. REDDN_MC_FOREVER: flush_all is not used, or
	 * nobody minds: gets by the NIC go on while the daemon is dead. */
	uint32_t flush_ms;
	/* memcached evicts what nobody gets, and does not see gets by the NIC. A key is reported to it (`mg`)
	 * when its item is used first, or may be evicted soon, at most so often in a second to one
	 * server. 0: 1000. REDDN_MC_NEVER: not at all. */
	uint32_t uses_per_s;
	uint32_t spin_us; /* how long reddn_mc_wait polls before it sleeps. 0: 20 */
	enum reddn_mc_misses misses;
	bool tcp_only;        /* use no NIC */
	uint64_t reserved[5]; /* 0 */
};

/**
 * Make a pool from a configuration string of libmemcached, such as "--SERVER=a --SERVER=b:11212"
 * (libmemcached_configuration(3)). `opt` may be NULL. It connects to nothing yet: servers and NICs that are
 * away are no error. On success *out is a handle that reddn_mc_close frees. On failure `err` (may be NULL)
 * receives the reason in words. -EINVAL: the string or an option is wrong. -ENOMEM.
 */
int reddn_mc_connect(struct reddn_mc **out, const char *config, const struct reddn_mc_options *opt, char *err,
	size_t errlen);

/** Disconnect and free the handle and its memcached_st. Outstanding gets have no result. NULL is allowed. */
void reddn_mc_close(struct reddn_mc *mc);

/** The memcached_st of the pool, for sets, deletes and everything else. All functions of libmemcached may be
 * used on it but memcached_free(). What they change holds for the next get; while the namespace is changed,
 * no get may be outstanding. Belongs to the handle. */
struct memcached_st *reddn_mc_memcached(struct reddn_mc *mc);

/** `ttl`, where TCP was used, which does not say it. */
#define REDDN_MC_TTL_UNKNOWN UINT32_MAX

/** Result of one get. */
struct reddn_mc_result {
	uint64_t cookie;   /* of the get */
	int status;        /* 0: there is a value. REDDN_MISS. Negative: see reddn_mc_submit */
	const void *value; /* valid until the next reddn_mc_poll, _wait, _get, _mget, _release or _close of
			      the handle; never NULL with status 0 */
	size_t length;     /* bytes of the value */
	uint64_t cas;      /* as in memcached_cas() */
	uint32_t flags;    /* of the client who set it */
	uint32_t ttl;      /* seconds until it expires, up to one too many. 0: never. REDDN_MC_TTL_UNKNOWN */
	bool by_nic;       /* false: over TCP */
};

/**
 * Submit a get. Copies the key, 1 to 250 bytes with the namespace of the configuration. -EAGAIN: `depth` gets
 * are outstanding, or their results not released: poll or release first. -EINVAL: the length of the key, or
 * it has white space or control characters, and the pool does not use the binary protocol.
 *
 * Errors of the result are those of libmemcached after its attempt over TCP: -ECONNREFUSED, -ETIMEDOUT, and
 * so on, and reddn_mc_errmsg has words. Without an attempt over TCP a get does not fail.
 */
int reddn_mc_submit(struct reddn_mc *mc, const char *key, size_t key_len, uint64_t cookie);

/** Collect up to `max` results. Releases those of the previous call. Waits for no NIC, but for memcached
 * where TCP is needed. Returns the number of results; 0: none yet. */
int reddn_mc_poll(struct reddn_mc *mc, struct reddn_mc_result *res, int max);

/** As reddn_mc_poll, but waits for the first result. 0: no result within `timeout_ms` (-1: no limit), or
 * nothing outstanding. */
int reddn_mc_wait(struct reddn_mc *mc, struct reddn_mc_result *res, int max, int timeout_ms);

/** Release the results of the last reddn_mc_poll or reddn_mc_wait. */
void reddn_mc_release(struct reddn_mc *mc);

/** Get one key and wait. Returns res->status. -EBUSY: submitted gets are outstanding. */
int reddn_mc_get(struct reddn_mc *mc, const char *key, size_t key_len, struct reddn_mc_result *res);

/**
 * Get `n` keys and wait for all. Calls `each` once for every key, in any order, with the index of the key as
 * the cookie; the value is valid during the call, which must not use the handle. Keys of one server go to it
 * together. Returns 0 if each key has a value or is a miss, or the first error. -EBUSY: submitted gets are
 * outstanding.
 */
int reddn_mc_mget(struct reddn_mc *mc, const char *const *keys, const size_t *key_lens, size_t n,
	void (*each)(void *arg, const struct reddn_mc_result *res), void *arg);

struct reddn_mc_stats {
	uint64_t gets;       /* submitted */
	uint64_t nic_hits;   /* answered by a NIC */
	uint64_t nic_misses; /* the same, without a question over TCP */
	uint64_t tcp_hits;   /* answered over TCP, for any reason */
	uint64_t tcp_misses; /* the same */
	uint64_t errors;     /* results with an error */
	uint64_t repeated;   /* asked a NIC again: the item changed meanwhile, or the table is another one */
	uint64_t unsure;     /* asked TCP, because it changed again and again */
	uint64_t absent;     /* asked TCP, because the NIC did not find the key */
	uint64_t absent_wrong; /* of these, keys that memcached has */
	uint64_t elsewhere;    /* asked TCP: too long for the server's offloads, chunked, on flash, expired or
				flushed */
	uint64_t without_nic;  /* asked TCP: the server has no NIC, or it is not to be relied on now, or what
				the application has sent has no answer yet */
	uint64_t uses;         /* keys that were reported to memcached */
};

/** Counters of all servers, since reddn_mc_connect. */
void reddn_mc_get_stats(const struct reddn_mc *mc, struct reddn_mc_stats *stats);

struct reddn_mc_server {
	const char *name; /* HOST:PORT, or the path of a socket. Belongs to the handle */
	const char *why;  /* why its NIC is not used; "" while it is. Until the next call of the handle */
	uint64_t pid;     /* of the memcached whose items the NIC sends; 0: none */
	bool nic;
};
/** The server with index `i`, counted from 0, as libmemcached counted them at reddn_mc_connect(). -EINVAL:
 * there is none. */
int reddn_mc_get_server(const struct reddn_mc *mc, unsigned i, struct reddn_mc_server *server);

/** The last error over TCP, in words; "" if there was none. Belongs to the handle. */
const char *reddn_mc_errmsg(const struct reddn_mc *mc);

#ifdef __cplusplus
}
#endif

#endif
