/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reddn.h - send requests to the NIC of a reddnd server. One handle has a session with one offload, and when
 * that is lost, makes the next. See libreddn(3).
 *
 * Rules for all functions:
 *   - They return 0 or a positive outcome that they document, or -errno.
 *   - One thread at a time uses a handle. Different handles are independent.
 *   - The library makes no threads, but one that looks a host name up, without signals; it ends by itself. It
 * installs no signal handlers.
 *   - A request allocates nothing. A new session takes memory and queues as reddn_connect does, and the
 * questions to the server, reddn_describe and reddn_end_reason, make an event channel, an id and a queue pair
 * for their time. reddn_get, reddn_mget and reddn_call ask for the reason if they fail by a lost session.
 *   - It uses plain verbs and works with any RDMA device.
 *
 * A program submits requests and polls for their results. At most `depth` requests of each connection of the
 * session are outstanding. Every request gets a result: a value, REDDN_MISS, or an error.
 *
 * When the session is lost, reddn_poll makes another one, in steps that wait for nothing, for as long as it
 * takes. What was outstanding is sent again, but for requests that may have changed something at the server:
 * those end with -EINPROGRESS. What is submitted meanwhile waits. A handle that names several hosts has a
 * second session that takes the place of the first at once. With REDDN_NO_RECONNECT, the handle ends
 * with its session, and all outstanding requests get the reason as their result.
 */
#ifndef REDDN_H
#define REDDN_H

#include "reddn-as-of.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A handle. Its session has one connection or several. */
struct reddn;

/** The key was absent from the table at some moment between the submission and the result. */
#define REDDN_MISS 1

enum reddn_option_flag {
	/* The handle ends with its first session. */
	REDDN_NO_RECONNECT = 1,
	/* Requests of the program may be executed twice: those that a lost session has not answered are sent
	 * again. Without it, that is done for gets of tables, and for programs that write to no region of the
	 * server, as the server reports. Such a handle is not for reddn_cas, reddn_faa, and locks. */
	REDDN_REPEATABLE = 2,
	/* The offload is one of hash-into.rdn: values go to memory of the caller, by reddn_get_into. */
	REDDN_INTO = 4,
};

/** Which of several hosts a handle asks first. */
enum reddn_policy {
	REDDN_FIRST = 0,  /* in the order of reddn_options.host */
	REDDN_SPREAD = 1, /* in a random order, so that many handles use all of them */
};

/** How keys are divided between several sets of hosts. */
enum reddn_shards {
	REDDN_SHARDS_NONE = 0, /* there is one set */
	/* By the slot of Redis Cluster that the key has, or its {tag}. Each set, a shard, has tables that
	 * follow a range of the slots (reddn-follow(1)), and state it with each reply */
	REDDN_SHARDS_REDIS = 1,
};

/** Options of a connection. A member that is 0 selects its default. The strings stay the caller's. */
struct reddn_options {
	/* Name or address of an RDMA interface of the server, a link-local one as fe80::1%eth0; required.
	 * Or several that offer the same, at most 16, with commas between them; each as HOST, HOST:PORT or
	 * [ADDRESS]:PORT. With `shards`, several such sets, with semicolons between them */
	const char *host;
	const char *offload; /* name in the server's catalog, 1 to 23 bytes; required */
	uint16_t port;       /* of hosts without one. 0: 7471 */
	uint16_t depth; /* largest number of outstanding requests of a connection, up to 4096; of a recycled
			 offload the next power of two. 0: 16, or the offload's most if that is less */
	uint32_t slot_size;  /* bytes of a reply slot, a multiple of 64. 0: the size that the server asks for,
				up to 256 MiB + 64. A process that connects again has it from before */
	uint32_t timeout_ms; /* limit of reddn_connect, reddn_get, reddn_mget and reddn_call. 0: 5000. At
				most 24 days: more is as much */
	uint32_t retry_ms;   /* how long a get is repeated while its table changes. 0: 1000 */
	uint32_t spin_us;    /* how long reddn_wait polls before it sleeps. 0: 20 */
	/* Key of the access tokens, if the server requires tokens: in a file, or as bytes. NULL: none */
	const char *token_file;
	const void *token_key;
	size_t token_key_len; /* bytes at token_key, 16 to 1024 */
	/* Queue pairs, up to 16, that requests are spread over. The server's NIC serves the requests of one
	 * after the other, and those of several at the same time: results then come in any order. To the
	 * server's quotas and rates it is one session, which ends when one of them is lost. 0: 1 */
	uint16_t connections;
	uint16_t flags;  /* enum reddn_option_flag */
	uint16_t policy; /* enum reddn_policy */
	uint16_t shards; /* enum reddn_shards */
	/* How old the answer to a get may be, if its table follows a source; else it ends with -ESTALE. See
	 * reddn_get_submit. 0: any age */
	uint32_t max_age_ms;
	uint32_t reserved32;  /* 0 */
	uint64_t reserved[3]; /* 0 */
};

/**
 * Connect. On success *out is a handle that reddn_close frees. On failure `err` (may be NULL) receives the
 * reason in words; if the server refused, its own words. On success it receives "".
 *
 * The hosts are tried in the order of the policy until one accepts, and the addresses of each in the order of
 * getaddrinfo(3) until a reddnd accepts or refuses at one. What is left of `timeout_ms` is shared equally by
 * those that are left. With shards, each has an equal share of the time, and one of which no host can be
 * reached is connected later, as one that is lost, unless there is no other, or with REDDN_NO_RECONNECT. The
 * error is that of the last host that refused; if there is none, of the last address that a connect request
 * was sent to; else of the last one. To look the names up may take `timeout_ms`, too, which begins after
 * that.
 *
 * -EINVAL: a wrong option. -EOPNOTSUPP: the offload is none that REDDN_INTO needs, or needs it; or that of a
 * shard is no table. -ENODEV: no RDMA device leads to the host. -EHOSTUNREACH, -ETIMEDOUT: no answer.
 * -ECONNREFUSED: no server listens there. Refused by the server: -ENOENT: no such offload. -EACCES: the
 * client or its token is not allowed, or the client is banned for a while. -EDQUOT: a quota is used up.
 * -ERANGE: depth is too large. -EMSGSIZE: slot_size is too small. -EBUSY: the server is full. -ESHUTDOWN: it
 * is stopping. -EREMOTEIO: it failed. -EPROTONOSUPPORT: it speaks another version. -EOPNOTSUPP: it knows no
 * sessions of several connections. -ECONNRESET: it closed the first connection while others were made.
 * -EPROTO: the peer is no reddnd, or it broke the protocol.
 */
int reddn_connect(struct reddn **out, const struct reddn_options *opt, char *err, size_t errlen);

/** Disconnect and free the handle. Outstanding requests get no result. NULL is allowed. */
void reddn_close(struct reddn *c);

/** Result of one request. */
struct reddn_result {
	uint64_t cookie;   /* of the request */
	int status;        /* 0: there is a value. REDDN_MISS. Negative: see reddn_get_submit */
	const void *value; /* in the reply slot; valid until the next reddn_poll, _wait, _get, _call, _release
			      or _close of the handle. NULL without a value */
	size_t length;     /* bytes of the value */
	/* of a get: as of which moment it is right at least, by what was known before it was sent. That is
	 * not known of the first answer of a session */
	struct reddn_as_of as_of;
	uint64_t version; /* of a value of a store: no other value has had it, or will. Of REDDN_MISS: of a
			     value that has expired and is still there. Of REDDN_CONFLICT: see
			     reddn_put_if_submit. Else 0 */
};

/**
 * Submit a get of a key in a table. Copies the key. The result carries `cookie`.
 * -EAGAIN: `depth` requests are outstanding, with shards at that of the key, or the next slot holds a result
 * that the caller has not released: poll or release first. -EINVAL: the key is empty, or the offload is no
 * table. -EMSGSIZE: the key is longer than the table's max_key. Any other negative number: there is no
 * session and the server wants none, or the handle does not connect again; see reddn_errmsg.
 *
 * The library repeats a get when the writer of the table overtook the reply, or when it moved entries and a
 * miss is not certain. After `retry_ms` the result is -EAGAIN (entries moved all the time, or the writer died
 * during a move) or -EBADMSG (no record with a right checksum arrived).
 * When another table has replaced the one of the session, the get is sent again, with a session that has that
 * table. So it is when the session is lost before the reply.
 *
 * Other errors of the result: -EMSGSIZE: the key is longer than the new table's max_key. -ECONNRESET, -EIO,
 * -EPROTO: 4 sessions were lost while it was outstanding. -ENOENT, -EACCES and others of reddn_connect: the
 * server refuses the next session. -ESTALE: slot_size is too small for the new table, or the offload is none
 * any more.
 * With max_age_ms, and a table that follows a source: -ESTALE: as_of of the result, or of the line that came
 * with it, is older, by the clocks of this host and of that of the table's writer. Before, a get is repeated
 * if that line is young enough, as after a time without gets: then the next answer is. Of several hosts, the
 * next one is asked, and one whose table was too old within the last second is not.
 * With shards: -ESTALE: no shard has stated for `retry_ms` that its table has the slot of the key. A request
 * for a shard that has no session waits for the next one, also if it is not known yet which slots it has.
 * With REDDN_NO_RECONNECT: -ESTALE: another table has replaced the one of the session. -ECONNRESET, -EIO: the
 * session was lost before the reply. -EPROTO: the reply to a later request came instead, because a queue of
 * the server has failed.
 */
int reddn_get_submit(struct reddn *c, const void *key, size_t key_len, uint64_t cookie);

/**
 * Submit a request whose bytes the application composed: `len` must be reddn_info.request_len. The library
 * zeroes the reply slot before, up to reply_max. The result has status 0, and the slot as its value,
 * reply_max bytes. Errors as for reddn_get_submit; -EINVAL: wrong length. -EINPROGRESS, of the result: the
 * session was lost before the reply, and the server may have executed the request or not; see
 * REDDN_REPEATABLE. -ESTALE, of the result: the offload takes other requests now.
 */
int reddn_submit(struct reddn *c, const void *request, size_t len, uint64_t cookie);

/**
 * Submit a put of a key and its value in a store: the NIC of the server replaces what the key had. Puts and
 * deletes have a session of their own, with the offload of the store's name and ".put", which the first of
 * them makes, in steps of reddn_poll. Copies the key, and the value unless it is in registered memory
 * (reddn_register). The result has status 0, and no value: every get that is submitted after that finds this
 * value or a later one. Errors as for reddn_get_submit and its results, -ENOENT, the server offers no puts,
 * and -EACCES, not to this client; -EINVAL: the key is empty, the offload is that of no store, the handle has
 * REDDN_REPEATABLE, or it names several hosts, or one by a name with several addresses of one family: each
 * machine has a store of its own. -EMSGSIZE: the key is longer than max_key, the value longer than max_value,
 * or the record longer than record_max.
 *
 * The library repeats a put of which the server has reported that it did nothing: because another client's
 * put of that key came first, or while the key is a new one for which the server makes an entry. It pauses in
 * between, from 20 us to 1 ms. After `retry_ms` the result is -EAGAIN: it did nothing. -ENOSPC: it did
 * nothing, the store has no room for another key.
 *
 * -EINPROGRESS, -ETIMEDOUT of reddn_put, and any error of a session that was lost with REDDN_NO_RECONNECT:
 * the put took place, or it did not, or it will: a request that is on its way may be executed a little later.
 * The library does not repeat such a put, because another client may have put a later value.
 */
int reddn_put_submit(struct reddn *c, const void *key, size_t key_len, const void *value, size_t value_len,
	uint64_t cookie);

/** Put a value, as reddn_put_submit, and wait. Errors as for reddn_put_submit and its results. -EBUSY:
 * submitted requests are outstanding. -ETIMEDOUT: no reply within `timeout_ms`; the session is then left. */
int reddn_put(struct reddn *c, const void *key, size_t key_len, const void *value, size_t value_len);

/**
 * Submit a put whose value expires `ttl_ms` milliseconds from now. From then on gets find the key absent, and
 * the server removes its entry within a second or two. What asks no clock takes it for a
 * key that exists until then: reddn_exists, reddn_delete, and the conditions of reddn_put_if and
 * reddn_delete_if, for which the result of the get has the version. Another put of the key, with a time or
 * without, replaces both. A put on a condition takes no time: the version is where the time would be in the
 * request.
 *
 * The time is sent as one of CLOCK_REALTIME of this host, and judged by that of the host that gets and that
 * of the server: keep these clocks together, as by NTP. By as much as one is ahead it finds the value expired
 * too early. Errors as for reddn_put_submit; -EINVAL: `ttl_ms` is 0, or ends behind 2^56 ms.
 */
int reddn_put_ttl_submit(struct reddn *c, const void *key, size_t key_len, const void *value,
	size_t value_len, uint64_t ttl_ms, uint64_t cookie);

/** Put a value that expires, as reddn_put_ttl_submit, and wait. Errors as for reddn_put. */
int reddn_put_ttl(struct reddn *c, const void *key, size_t key_len, const void *value, size_t value_len,
	uint64_t ttl_ms);

/**
 * Submit a delete of a key in a store. The result has status 0, or REDDN_MISS if the key was absent, and no
 * value. Errors as for reddn_put_submit. -EAGAIN of the result may also be that entries of the store moved
 * all the time, so that a miss is not certain.
 */
int reddn_delete_submit(struct reddn *c, const void *key, size_t key_len, uint64_t cookie);

/** Delete a key, as reddn_delete_submit, and wait. REDDN_MISS: it was absent. Errors as for reddn_put. */
int reddn_delete(struct reddn *c, const void *key, size_t key_len);

/** Value of one argument. A REDDN_BYTES argument takes `bytes`, as many as reddn_get_arg returns. The other
 * kinds take `number`, with `bytes` NULL. */
struct reddn_arg {
	const void *bytes;
	uint64_t number;
};

/**
 * Submit a call of any offload: one value for each argument, in the order of the program's text. Copies the
 * values. The library encodes the request as the server described it, and zeroes the reply slot before, up to
 * reply_max. The result has status 0, and the slot as its value, reply_max bytes. Errors as for
 * reddn_get_submit; -EINVAL: wrong number of arguments. -ERANGE: a number does not fit its argument, or an
 * argument has the wrong kind of value.
 */
int reddn_call_submit(struct reddn *c, const struct reddn_arg *args, unsigned nargs, uint64_t cookie);

/**
 * Call an offload and wait. Copies the first `buf_len` bytes of the reply, at most reply_max, to `buf`.
 * Errors as for reddn_call_submit and its results. -EBUSY: submitted requests are outstanding. -ETIMEDOUT: no
 * reply within `timeout_ms`; the session is then left, and the server may have executed the request.
 */
int reddn_call(struct reddn *c, const struct reddn_arg *args, unsigned nargs, void *buf, size_t buf_len);

/**
 * Submit a compare-and-swap of a word: if word number `word` of the region, 8 bytes each, is `old`, it
 * becomes `new_word`. The offload is one of compare-and-swap.rdn. The result has status 0, and reddn_word()
 * of it is what the word was before: it has become `new_word` if that is `old`. To read a word, expect any
 * value, and swap it for itself. Errors as for reddn_call_submit and its results; -EINVAL: the offload takes
 * other arguments, the handle has REDDN_REPEATABLE, or it names several hosts, or one by a name with several
 * addresses of one family: each machine has words of its own. -ERANGE: no offset of the offload reaches the
 * word; one that is reached and is not in the region ends the session.
 *
 * -EINPROGRESS, -ETIMEDOUT of reddn_cas, and any error of a session that was lost with REDDN_NO_RECONNECT:
 * the swap took place, or it did not, or it will: a request that is on its way may be executed a little
 * later. Read the word, and expect what it was in the next swap. It is safe to ask for the same swap again if
 * the word never becomes `old` a second time.
 */
int reddn_cas_submit(struct reddn *c, uint64_t word, uint64_t old, uint64_t new_word, uint64_t cookie);

/** Compare and swap a word, as reddn_cas_submit, and wait. 0: `*was` is the word before. Errors as for
 * reddn_call and reddn_cas_submit. */
int reddn_cas(struct reddn *c, uint64_t word, uint64_t old, uint64_t new_word, uint64_t *was);

/**
 * Submit a fetch-and-add to a word: adds `by`, modulo 2^64. The offload is one of fetch-and-add.rdn. Results
 * and errors as for reddn_cas_submit. -EINPROGRESS, and -ETIMEDOUT of reddn_faa: it was added once or not at
 * all, or will be.
 */
int reddn_faa_submit(struct reddn *c, uint64_t word, uint64_t by, uint64_t cookie);

/** Fetch a word and add to it, as reddn_faa_submit, and wait. 0: `*was` is the word before. Errors as for
 * reddn_call and reddn_faa_submit. */
int reddn_faa(struct reddn *c, uint64_t word, uint64_t by, uint64_t *was);

/** The word in a result of reddn_cas_submit or reddn_faa_submit, whose status is 0. */
uint64_t reddn_word(const struct reddn_result *res);

/**
 * A lock: a word that is 0 at first, and that its clients change with an offload of compare-and-swap.rdn, as
 * these functions do. Bit 63: it is held. Bits 16 to 62: the token, which grows each time somebody takes the
 * lock. Bits 0 to 15: how often the holder has renewed it, modulo 2^16. The caller sets `word` and
 * `lease_ms`, zeroes the rest, and keeps it as long as it uses the lock. One thread at a time uses it, with
 * one handle.
 */
struct reddn_lock {
	uint64_t word;     /* its number, as of reddn_cas */
	uint32_t lease_ms; /* the same for all clients of the lock, at least 1 */
	uint32_t step;     /* the library's */
	uint64_t token;    /* the fencing token of the holder, 47 bits; 0: not the holder */
	/* the library's: the word when it was last seen, since when it is known to be that, or the lease has
	 * begun, in ns of CLOCK_MONOTONIC; what it is to become, and when that was asked for */
	uint64_t seen, since, next, asked;
};

/** What is asked of a lock. */
enum reddn_lock_step {
	REDDN_LOCK = 0,
	REDDN_RENEW = 1,
	REDDN_UNLOCK = 2,
};

/** The lock is to be asked once more, at once: its word was another one than expected. That is normal once; a
 * server may answer so for ever. */
#define REDDN_AGAIN 2

/**
 * Take a lock, waiting for `timeout_ms` at most; 0: not at all; -1: without a limit. 0: `l->token` is the
 * caller's, until it calls reddn_unlock, or has not called reddn_lock_renew for lease_ms. -EAGAIN: another
 * one holds it. Waiters are served in no order.
 *
 * A waiter that has seen the same word for lease_ms, by its own clock, takes the lock from a holder that has
 * died: no clocks are compared, no server decides. One that has not asked for 16384 leases begins anew: the
 * holder may have renewed as often as makes the word the same. Nothing stops a holder that was only slow, and
 * does not know that its lease is over. So the lock alone protects nothing: what it protects is changed by a
 * reddn_cas that expects the token in the word that it changes; see "Locks" in libreddn(3).
 *
 * Errors as for reddn_cas. -EINVAL: lease_ms is 0. -EDEADLK: the caller has it. -EOVERFLOW: no tokens are
 * left. -EINPROGRESS, -ETIMEDOUT: perhaps the lock was taken, for nobody. Call it again: like any other
 * waiter, the caller has it after a lease.
 */
int reddn_lock(struct reddn *c, struct reddn_lock *l, int timeout_ms);

/**
 * Renew the lease of a lock: at least half of it is left then. Call it as often as is convenient; it asks the
 * server only when less than that is left. -EPERM: not the holder, or no longer: its lease was over, and
 * another client has taken the lock. Errors as for reddn_cas. -EINPROGRESS, -ETIMEDOUT, also after answers
 * that were another word each time: call it again.
 */
int reddn_lock_renew(struct reddn *c, struct reddn_lock *l);

/** Give a lock back. -EPERM: as of reddn_lock_renew. Errors as for reddn_cas. -EINPROGRESS, -ETIMEDOUT: call
 * it again, or let the lease end. */
int reddn_unlock(struct reddn *c, struct reddn_lock *l);

/**
 * Submit one request of a lock, of which one at a time is outstanding. Its result is for reddn_lock_result.
 * REDDN_RENEW always asks the server; while half of the lease is left, it only looks if the caller still has
 * the lock. Errors as for reddn_cas_submit, and those of reddn_lock, reddn_lock_renew and reddn_unlock.
 */
int reddn_lock_submit(struct reddn *c, struct reddn_lock *l, enum reddn_lock_step step, uint64_t cookie);

/**
 * What the result of reddn_lock_submit means, before it is released. 0: it is taken, renewed or given back.
 * REDDN_AGAIN: submit the same step again. -EAGAIN: another one holds it; submit again after a pause, since
 * the library sees by that when the lease is over. -EPERM: as of reddn_lock_renew. Other errors: the status
 * of the result.
 */
int reddn_lock_result(struct reddn_lock *l, const struct reddn_result *res);

/**
 * Submit an append to a log, which an offload of log-append.rdn has: an entry of `len` bytes. Copies the
 * value. The result is for reddn_append_result. Errors as for reddn_cas_submit; -EMSGSIZE: an entry of the
 * log has no room for so many bytes.
 *
 * -EINPROGRESS, -ETIMEDOUT of reddn_append, and any error of a session that was lost with REDDN_NO_RECONNECT:
 * it was appended once, or not at all, or will be.
 */
int reddn_append_submit(struct reddn *c, const void *value, size_t len, uint64_t cookie);

/**
 * What the result of reddn_append_submit means, before it is released. 0: it is the entry `*number` of the
 * log. Numbers grow in the order in which the server's NIC has drawn them, and none comes twice. REDDN_AGAIN:
 * nothing was appended, because the request that was to fill the entry a lap of the ring ago has not done so;
 * submit it again. Other errors: the status of the result.
 */
int reddn_append_result(const struct reddn_result *res, uint64_t *number);

/** Append, as reddn_append_submit, and wait. Submits again by itself, within `timeout_ms` of the options. 0:
 * `*number` is that of the entry. -EAGAIN: nothing was appended in that time. Other errors as for reddn_call
 * and reddn_append_submit. */
int reddn_append(struct reddn *c, const void *value, size_t len, uint64_t *number);

/** Of reddn_log.next: what is appended next. */
#define REDDN_LOG_END UINT64_MAX

/**
 * A reader who follows a log: it gets all entries in the order of their numbers, or learns how many it did
 * not get. The caller sets `next` and `patience_ms`, zeroes the rest, and keeps it as long as it follows the
 * log. One thread at a time uses it, with one handle.
 */
struct reddn_log {
	uint64_t next; /* number of the entry that is read next; 0: the first; REDDN_LOG_END */
	/* How long to wait for an entry whose number is drawn and that is not there: longer than a request
	 * may take, see "Logs" in libreddn(3). 0: a second */
	uint32_t patience_ms;
	/* counted by the library: entries that were overwritten, or were about to be, before they were read;
	 * and numbers without an entry */
	uint64_t lost, skipped;
	uint64_t since; /* when it began to wait for an entry that is under way, in ns of CLOCK_MONOTONIC; or
			   0 */
	/* the library's: the first number that was not drawn yet then, numbers that it has passed one after
	 * the other, and when it has asked for the next one */
	uint64_t drawn, passed, asked;
};

/**
 * Read the next entry, with an offload of log-read.rdn, waiting for `timeout_ms` at most; 0: not at all; -1:
 * without a limit. 0: `buf` has the `*len` bytes of entry `l->next - 1`. -EAGAIN: there is none yet.
 * -EMSGSIZE: it has `*len` bytes, more than `room`, and stays the next one. -EBADMSG: entry `l->next - 1` is
 * longer than an entry can be, by what whoever appended it has sent. -ESTALE: the log has no entry `l->next -
 * 1` yet, so it is another one than before; or the offload is, with words in reddn_errmsg. Other errors as
 * for reddn_cas.
 *
 * An entry is never torn, nor another one than that of its number. Who reads slower than others append is
 * overtaken: the reader then goes on an eighth of the ring behind the oldest entry, and `l->lost` grows by
 * those that it has not got.
 */
int reddn_log_next(struct reddn *c, struct reddn_log *l, void *buf, size_t room, size_t *len, int timeout_ms);

/** Submit one request for the next entry, of which one at a time is outstanding. Its result is for
 * reddn_log_result. Errors as for reddn_cas_submit. */
int reddn_log_submit(struct reddn *c, struct reddn_log *l, uint64_t cookie);

/**
 * What the result of reddn_log_submit means, before it is released. 0: `res->value` has the `res->length`
 * bytes of entry `l->next - 1`. REDDN_AGAIN: `l->next` is another one, submit again. -EAGAIN: there is none
 * yet; submit again after a pause. -EBADMSG, -ESTALE: as of reddn_log_next. -EPROTO: the result is none of
 * log-read.rdn. Other errors: the status of the result.
 */
int reddn_log_result(struct reddn_log *l, struct reddn_result *res);

/**
 * Collect up to `max` results in the order of their completion, without waiting. Releases the results of the
 * previous call. Takes the steps of a handle that connects again. Returns the number of results; 0: none yet.
 * -EINVAL: `max` is negative. Any other negative number: as of reddn_get_submit, and all outstanding requests
 * have been reported. If the server has refused, later calls go on to ask it, and return no error any more
 * when it accepts.
 */
int reddn_poll(struct reddn *c, struct reddn_result *res, int max);

/** Release the results of the last reddn_poll or reddn_wait: their slots can take requests at once. */
void reddn_release(struct reddn *c);

/** As reddn_poll, but waits for the first result. 0: no result within `timeout_ms` (-1: no limit), or nothing
 * outstanding, or `max` is 0. */
int reddn_wait(struct reddn *c, struct reddn_result *res, int max, int timeout_ms);

/**
 * A descriptor for poll(2) or epoll(7), readable when reddn_poll should be called. Belongs to the handle. It
 * reports results that come after reddn_arm: arm, call reddn_poll until it returns 0, then sleep.
 */
int reddn_fd(struct reddn *c);

/** Arm the descriptor of reddn_fd. Also 0 without a session: the descriptor then reports the steps to the
 * next one. -errno: the CQ cannot be armed. */
int reddn_arm(struct reddn *c);

/**
 * Get the value of a key and wait. Copies the value to `buf` and its length to `*len`. REDDN_MISS: absent.
 * -EMSGSIZE with `*len` > `buf_len`: the value has `*len` bytes; nothing was copied. -EBUSY: submitted
 * requests are outstanding. -ETIMEDOUT: no reply within `timeout_ms`, or no session; a session is then left.
 * Other errors as for reddn_get_submit and its results.
 */
int reddn_get(struct reddn *c, const void *key, size_t key_len, void *buf, size_t buf_len, size_t *len);

/** A key of reddn_mget_submit. */
struct reddn_key {
	const void *key;
	size_t key_len;
};

/**
 * Submit a get of up to reddn_info.keys keys, in one request to the smallest part of the offload that has so
 * many. Copies the keys. Each has a result of its own, that of key i with the cookie `cookie` + i; all of
 * them come with one reply, and its slot is free again when all are released. Errors as for reddn_get_submit,
 * and no key has been submitted then. -EINVAL: no keys, or more than reddn_info.keys. The keys are sent in
 * several requests as long as there is no session with such a part, of which the first submission makes one;
 * with several hosts always; and if the offload has taken more keys before, for what reddn_get_info has
 * reported stays right across a reconnect.
 */
int reddn_mget_submit(struct reddn *c, const struct reddn_key *keys, unsigned n, uint64_t cookie);

/** A key of reddn_mget, and what becomes of it. */
struct reddn_mget {
	const void *key;
	size_t key_len;
	void *buf; /* room for the value */
	size_t buf_len;
	size_t len;               /* result: bytes of the value */
	int status;               /* result: as reddn_get returns it */
	struct reddn_as_of as_of; /* result: as in struct reddn_result */
	uint64_t version;         /* the same */
};

/**
 * Get the values of any number of keys of a table, and wait for all. Submits as many keys at a time as
 * reddn_mget_submit takes, and sends as many requests at a time as the depth allows. 0: each key has its
 * status. Otherwise no status has a meaning: -EINVAL: the offload is no table. -EBUSY: submitted requests are
 * outstanding. -ETIMEDOUT: no reply within `timeout_ms`, or no session; a session is then left. Other errors
 * as for reddn_poll.
 */
int reddn_mget(struct reddn *c, struct reddn_mget *keys, size_t n);

/**
 * Submit the question which of up to reddn_info.exists_keys keys of a table or a store exist, in one request
 * to the smallest part of the offload that has so many. Copies the keys, which may be the same. Each has a
 * result of its own, as of reddn_mget_submit: status 0: it exists; REDDN_MISS: it does not; no value. Errors
 * as for reddn_mget_submit and its results; -EINVAL: the offload has no such part, or this client may not use
 * it. The first submission makes a session with the part, and waits for it as results do.
 *
 * A key that is there from the submission to the result is never reported as missing. A key that is not there
 * may be reported as existing, because the server compares nothing: the library compares 16 bits of a hash
 * with those in two places of the table. For each place that has a key, chance makes one of 64,524 absent
 * keys exist (2^-16 times 1.016), so one of 32,262 in a full table, and the same keys again while the table
 * stays the same. The get that follows knows. Who is to learn no more than that must get: the server's
 * answers tell more (reddnd-security(7)).
 */
int reddn_exists_submit(struct reddn *c, const struct reddn_key *keys, unsigned n, uint64_t cookie);

/** A key of reddn_exists, and what becomes of it. */
struct reddn_exists {
	const void *key;
	size_t key_len;
	int status; /* result: that of reddn_exists_submit's. -EINVAL: empty; -EMSGSIZE: too long */
	struct reddn_as_of as_of; /* result: as in struct reddn_result */
};

/**
 * Ask which keys exist, any number of them, and wait for all; see reddn_exists_submit. Asks for as many keys
 * in one request as a part has, and sends as many requests at a time as the depth allows. 0: each key has its
 * status. Otherwise as of reddn_mget; -EINVAL: the offload does not tell that.
 */
int reddn_exists(struct reddn *c, struct reddn_exists *keys, size_t n);

/**
 * Ask for the first key that is missing: the same, but no more keys are asked for than those that are sent
 * already when one is found. 0: `*first` is its index, or `n` if all exist; those before it exist, and of
 * those behind it no status has a meaning. A key that is too long for the table is missing. Negative: as of
 * reddn_exists, or the status of key `*first`, before which all exist.
 */
int reddn_first_missing(struct reddn *c, struct reddn_exists *keys, size_t n, size_t *first);

/**
 * Register `len` bytes of the caller's memory, writable, up to 16 pieces of a handle: with REDDN_INTO, so
 * that values can be received there, and of a handle that puts, so that values are sent from there. That pins
 * the pages, and may take long: register once what is used often. The memory stays the caller's, and mapped,
 * until reddn_unregister or reddn_close. The server gets no key to it: the own NIC writes to it, and only
 * where an outstanding request wants its value, or reads it.
 *
 * A value that is whole in one registered piece is not copied by any call that puts it: the NIC reads it, as
 * often as the request is sent, and the library once, for the checksum. From the submission to the result it
 * has to stay as it is. If it changes, the store has the value as it was, or a record with a wrong checksum,
 * which no get takes for a value: gets of the key end with -EBADMSG until it is put again or deleted. With
 * the result, whatever that is, the memory is the caller's: what the NIC may read there later, to repeat
 * packets, a server's NIC drops.
 *
 * Each session has its own registration. One that the library makes, on whatever device, registers all pieces
 * in the reddn_poll that ends its connecting, so that this one takes as long as reddn_register.
 *
 * -EINVAL: a handle that neither has REDDN_INTO nor can put, or no bytes. -ENOSPC: the handle has 16.
 * -ENOMEM, -EFAULT and others of ibv_reg_mr(3), -EFAULT for memory that it does not pin. Memory that a CPU
 * cannot read cannot be used: checksums are compared there.
 */
int reddn_register(struct reddn *c, void *at, size_t len);

/**
 * The same of memory of a dmabuf, `fd`, of which `len` bytes from `offset` on are mapped at `at`. Places are
 * those of the mapping, and a CPU reads there what the NIC has written, to compare it with its checksum: so
 * memory that cannot be mapped, as that of most GPUs, cannot be used, and the exporter has to keep what a CPU
 * reads coherent without DMA_BUF_IOCTL_SYNC, as those of the system's memory do on x86. The library keeps a
 * duplicate of `fd` for its next sessions.
 *
 * -EOPNOTSUPP: the device, its driver or the kernel takes no dmabuf (ibv_reg_dmabuf_mr(3)). -EBADF, -EINVAL:
 * `fd` is none, or has fewer bytes. reddn_errmsg() has the words for these. Others as of reddn_register.
 */
int reddn_register_dmabuf(struct reddn *c, void *at, size_t len, int fd, uint64_t offset);

/** Take back memory by its first byte. -ENOENT: it is not registered. -EBUSY: requests of the handle are
 * outstanding. */
int reddn_unregister(struct reddn *c, void *at);

/**
 * Submit a get whose value is to be at `at`, with `room` bytes for it, all in one registered piece; of a
 * handle with REDDN_INTO, which takes no other gets. There is no slot for it and no copy: the answer is a
 * message, and the own NIC puts the value there when it arrives. The result has `at` as its value, which
 * stays valid.
 *
 * From here to the result, the `room` bytes belong to the library: they may have anything, also without a
 * value, or behind a shorter one. Places of requests that are outstanding must not overlap. With the result
 * they are the caller's: nothing is written there any more. It comes when the receive that names them is used
 * up, or when the queue pair that has it was destroyed. So such a handle ends a session that does not answer
 * in time, or whose table was replaced, before it asks with another one, or reports.
 *
 * Errors as for reddn_get_submit; -EINVAL: the handle lacks REDDN_INTO. -EFAULT: the place is not registered.
 * -EMSGSIZE of the result: the value has `length` bytes, more than `room`.
 */
int reddn_get_into_submit(
	struct reddn *c, const void *key, size_t key_len, void *at, size_t room, uint64_t cookie);

/** Get a value into registered memory, as reddn_get_into_submit, and wait. `*len`: its length. REDDN_MISS:
 * absent. -EBUSY, -ETIMEDOUT: as of reddn_get. Other errors as for reddn_get_into_submit and its results. */
int reddn_get_into(struct reddn *c, const void *key, size_t key_len, void *at, size_t room, size_t *len);

/** A key of reddn_mget_into, and what becomes of it. */
struct reddn_into {
	const void *key;
	size_t key_len;
	void *at; /* as of reddn_get_into_submit */
	size_t room;
	size_t len;               /* result: bytes of the value */
	int status;               /* result: as reddn_get_into returns it */
	struct reddn_as_of as_of; /* result: as in struct reddn_result */
};

/** Get the values of any number of keys into registered memory, and wait for all; as many at a time as the
 * depth allows. 0: each key has its status. Otherwise as of reddn_mget, -EFAULT: the place of one is not
 * registered; and all of the memory is the caller's again. */
int reddn_mget_into(struct reddn *c, struct reddn_into *keys, size_t n);

/** The key does not have the version that a put or a delete names. */
#define REDDN_CONFLICT 3

/**
 * Submit a put on a condition: only if the value of the key has this version, that of the result of a get, or
 * with 0, only if the key is absent. The condition and the put are one step: whoever else puts or deletes
 * meanwhile makes it fail. Like puts and deletes without a condition these have a session of their own, with
 * the offload of the store's name and ".put_if". The result has status 0, or REDDN_CONFLICT and in `version`
 * that which the key has, 0 if it is absent; then nothing was put. No value. The version of what was put is
 * that of a get: the server gives it to the memory before the request comes, and the NIC's answer does not
 * have it. Errors as for reddn_put_submit and its results; -EINVAL also: no version is so high.
 *
 * -EINPROGRESS, and what else leaves it unknown if the put took place: with a version it is safe to ask for
 * the same again, because no value gets it a second time. REDDN_CONFLICT then means that this put or another
 * one took place: get the key.
 */
int reddn_put_if_submit(struct reddn *c, const void *key, size_t key_len, const void *value, size_t value_len,
	uint64_t version, uint64_t cookie);

/** Put on a condition, as reddn_put_if_submit, and wait. REDDN_CONFLICT: `*version` is that which the key
 * has. Errors as for reddn_put. */
int reddn_put_if(struct reddn *c, const void *key, size_t key_len, const void *value, size_t value_len,
	uint64_t *version);

/** Submit a delete on a condition, as reddn_put_if_submit. -EINVAL also for version 0. */
int reddn_delete_if_submit(
	struct reddn *c, const void *key, size_t key_len, uint64_t version, uint64_t cookie);

/** Delete on a condition, as reddn_delete_if_submit, and wait. Results as of reddn_put_if. */
int reddn_delete_if(struct reddn *c, const void *key, size_t key_len, uint64_t *version);

/** What an offload takes. */
enum reddn_shape {
	REDDN_OPAQUE = 0, /* any program: reddn_call, reddn_call_submit, reddn_submit */
	/* a table: reddn_get and reddn_get_submit as well; a store: reddn_put, reddn_put_if and both
	 * deletes, too */
	REDDN_TABLE = 1,
	REDDN_PUT = 2,        /* the part of a store that puts: reddn_put and reddn_delete alone */
	REDDN_EXISTS = 3,     /* the part of a table or a store for reddn_exists_submit alone */
	REDDN_TABLE_INTO = 4, /* with REDDN_INTO: reddn_get_into and those like it alone */
	REDDN_PUT_IF = 5,     /* the part for reddn_put_if and reddn_delete_if alone */
};

struct reddn_info {
	enum reddn_shape shape;
	uint16_t depth; /* largest number of outstanding requests, of all connections */
	uint16_t connections;
	uint32_t slot_size;   /* bytes of a reply slot */
	uint32_t request_len; /* bytes of a request */
	uint32_t reply_max;   /* largest reply, bytes */
	uint64_t session;     /* number of the session in the server's log */
	uint32_t nargs;       /* arguments of reddn_call */
	uint32_t keys;        /* REDDN_TABLE and REDDN_EXISTS: of a request, see reddn_mget_submit. At most 16
			       * and 64 */
	/* not of REDDN_OPAQUE */
	uint64_t hash_seed;
	uint64_t buckets;
	uint32_t max_key;   /* bytes */
	uint32_t max_value; /* bytes */
	/* of a store: bytes of the longest record, which are 16, those of key and value, and a padding,
	 * mostly of up to 7. 0: it takes no puts */
	uint32_t record_max;
	/* of a store: number of the session of puts in the server's log, 0: there is none now; most of its
	 * outstanding requests, 0: there was no put yet */
	uint64_t put_session;
	uint32_t put_depth;
	uint32_t exists_keys; /* of a request, see reddn_exists_submit; 0: no reddn_exists */
	/* counted since reddn_connect, over all sessions */
	uint64_t sent;              /* requests on the wire, repeated ones included */
	uint64_t retries_moved;     /* gets repeated because a miss was not certain */
	uint64_t retries_overtaken; /* gets repeated because the record changed while the NIC read it */
	uint64_t retries_old;       /* gets repeated because of max_age_ms */
	uint64_t retries_conflict;  /* puts and deletes repeated because another client was first */
	uint64_t retries_absent;    /* and because the key had no entry */
	uint64_t reconnects;        /* how often another session took the place of the one in use */
	struct reddn_as_of as_of;   /* REDDN_TABLE, _EXISTS: of the latest reply of the session in use */
};

/** Properties of the session, or of the last one, and counters of the handle. A new session may have other
 * properties, but for `shape`; of an opaque offload, the session's number and `depth` only. */
void reddn_get_info(const struct reddn *c, struct reddn_info *info);

enum reddn_host_state {
	REDDN_HOST_NONE = 0,    /* there is no session with it */
	REDDN_HOST_IN_USE = 1,  /* requests are sent to it */
	REDDN_HOST_STANDBY = 2, /* there is a session that is ready to take the place of the one in use */
};

/** A host of reddn_options. */
struct reddn_host_info {
	const char *name; /* belongs to the handle */
	uint16_t port;
	uint16_t state;    /* enum reddn_host_state */
	uint32_t sessions; /* that were made with it */
	uint64_t sent;     /* requests on the wire, repeated ones included */
	uint64_t late;     /* of them, those that were then sent to another host because this one was late */
};

/** Host `i`, counted from 0, in the order of the policy. -EINVAL: there is no such host. */
int reddn_get_host(const struct reddn *c, unsigned i, struct reddn_host_info *info);

enum reddn_arg_kind {
	REDDN_NUMBER = 0, /* unsigned, 1 to 8 bytes */
	REDDN_BYTES = 1,
	REDDN_OFFSET = 2, /* a number: offset of a byte in a region of the server */
};

/** Kind and size in bytes of argument `i`, counted from 0. -EINVAL: there is no such argument. */
int reddn_get_arg(const struct reddn *c, unsigned i, enum reddn_arg_kind *kind, uint32_t *bytes);

/**
 * Ask the server for the names of the arguments, and for the names, places and types of what is in a reply.
 * They are those of the program that this session runs. The question takes connections of its own, which the
 * server refuses with the answer; it waits at most `timeout_ms`. Later calls return at once, but for a table
 * whose session has another program now: then they ask again. Memory for the names is allocated and stays
 * until that or reddn_close. -EINVAL: there is no session. -EOPNOTSUPP: the server is
 * older than this call, or does not have the program any more. -EBUSY: it was asked too often. -EPROTO: the
 * answer is wrong. -ENOMEM. Other errors: the server cannot be reached.
 */
int reddn_describe(struct reddn *c);

/** Name of argument `i`, as "key" or "probe[1].at"; belongs to the handle. NULL before reddn_describe, if
 * the session has another program since, and if there is no such argument. */
const char *reddn_arg_name(const struct reddn *c, unsigned i);

enum reddn_reply_kind {
	REDDN_REPLY_BE = 0,    /* unsigned, 1 to 8 bytes, the most significant first */
	REDDN_REPLY_LE = 1,    /* unsigned, 1 to 8 bytes, the least significant first */
	REDDN_REPLY_BYTES = 2, /* bytes */
	REDDN_REPLY_UP_TO = 3, /* the same, but the server may write fewer; the rest is zero */
};

/** A part of a reply: `bytes` bytes from byte `offset` of it on. */
struct reddn_reply_field {
	const char *name; /* belongs to the handle */
	enum reddn_reply_kind kind;
	uint32_t offset, bytes; /* within reply_max */
};

/** Part `i` of a reply, counted from 0, in the order of offsets. -EINVAL: there is none, or
 * reddn_describe was not called for the program of this session. */
int reddn_get_reply_field(const struct reddn *c, unsigned i, struct reddn_reply_field *field);

/** The number that `reply` has in `field`; 0 if the field is none. At `reply` are reply_max bytes. */
uint64_t reddn_reply_number(const struct reddn_reply_field *field, const void *reply);

/** Why there is no session, in words: how the last one was lost, and what came of the last attempt to
 * connect.
 * "" while there is one. Belongs to the handle, and changes with the next call. */
const char *reddn_errmsg(const struct reddn *c);

/** Why a session ended, as its server reports. Later versions may add reasons. */
enum reddn_end {
	REDDN_END_UNKNOWN = 0,     /* the server does not know, or no longer, or does not report it */
	REDDN_END_FAILED = 1,      /* work in the server's NIC failed */
	REDDN_END_PROTOCOL = 2,    /* the client broke a rule of the protocol */
	REDDN_END_UNREACHABLE = 3, /* the client's NIC did not accept replies, or did not answer */
	REDDN_END_BUDGET = 4,      /* a request used more time or work than the offload allows */
	REDDN_END_OPERATOR = 5,    /* the administrator of the server ended it, or replaced its table */
	REDDN_END_SHUTDOWN = 6,    /* the server stops or drains */
	REDDN_END_CLIENT = 7,      /* the client, or the network, ended it */
	REDDN_END_IDLE = 8,        /* no request for too long */
};

/**
 * Ask the server why it ended the last session that was lost, and add its words to reddn_errmsg(). A lost
 * session cannot carry them, so this opens a connection for the question and waits for the answer, at most
 * `timeout_ms`. Later calls return the same answer at once, and those about a session that is lost by
 * -ESTALE, which the server has not ended. reddn_get, reddn_mget and reddn_call, which wait anyway, call it
 * themselves if they fail by the loss of a session. Returns an enum reddn_end. -EINVAL: none was lost.
 * -ECONNREFUSED: no server listens any more. Other errors: the server cannot be reached.
 */
int reddn_end_reason(struct reddn *c);

#ifdef __cplusplus
}
#endif

#endif
