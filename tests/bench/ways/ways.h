/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ways.h - baselines for gets and puts by the NIC. Each opens a connection for tools/load/load.h and uses the
 * options host, port and depth. Nobody but clients of the same way may write to a table that one-sided READs
 * read: unlike libreddn they do not notice that an entry moved during the lookup.
 */
#ifndef TESTS_BENCH_WAYS_WAYS_H
#define TESTS_BENCH_WAYS_WAYS_H

#include "tools/load/load.h"

/** Keys of a request, which the depth then counts: of mget and exists, onesided and hopscotch (READs for all
 * of them at once), requests, memcached and redis. 0: as many as the offload takes; the others ask for one
 * key at a time. */
extern unsigned way_keys;
/** onesided, requests, memcached, redis: only if the keys exist. An answer has no value. */
extern bool way_exists;

/** memcached: gets have versions, for LOAD_PUT_IF. */
extern bool way_versions;

/** One READ of this many bytes at any place of the server's table: a lower bound for every get. The answer is
 * those bytes. */
int way_ideal_open(struct load_way *way, const struct reddn_options *opt);
extern uint32_t way_ideal_bytes;

/** One compare-and-swap of such a place, of 0 for 0, of a server that is shared. */
int way_swap_open(struct load_way *way, const struct reddn_options *opt);

/**
 * A READ of each of both buckets at once, then one of the record that the fingerprint points at; which
 * exist, without that one: two fingerprints of 48 bits are hardly ever the same.
 *
 * Of a server that is shared, also puts, as in FUSEE: a WRITE of the record together with these READs, into
 * memory that the client has (way_extents), then a CAS of the bucket's locator, again if another one was
 * first. A put on a condition knows the locator from its get: WRITE and CAS together. A delete is a CAS to
 * the null record. What a client has replaced is its memory from then on. A get that finds another key than
 * it looked for begins anew. There are puts only of keys that have, or have had, an entry: -ENOENT.
 */
int way_onesided_open(struct load_way *way, const struct reddn_options *opt);
extern unsigned way_extents; /* records that a connection has memory for at first; 0: it changes nothing */

/** As in FaRM: one READ of the six neighbouring buckets of a hopscotch table, then one of the record. */
int way_hopscotch_open(struct load_way *way, const struct reddn_options *opt);

/** A SEND to the server, whose CPU looks the key up, or changes it, and answers with a WRITE from where the
 * record is. A version is the checksum of the record. The client compares the checksum, as libreddn does, and
 * asks again if a set has overtaken the WRITE. */
int way_requests_open(struct load_way *way, const struct reddn_options *opt);

/** The nodes of a list up to that with the key, then its value: by READs one after the other, or by the
 * server's CPU. The server has a list. */
int way_list_open(struct load_way *way, const struct reddn_options *opt);
int way_list_requests_open(struct load_way *way, const struct reddn_options *opt);

/** The NIC of a reddnd; the option offload names a table. */
int way_get_open(struct load_way *way, const struct reddn_options *opt);
/** The same by requests of several keys. */
int way_mget_open(struct load_way *way, const struct reddn_options *opt);
/** Whether the keys exist, likewise: an answer has no value. */
int way_exists_open(struct load_way *way, const struct reddn_options *opt);
/** A lock of each word of a reddnd's compare-and-swap, whose number is the key: it is taken by one who does
 * not know the word, and given back before the next request, without a result. */
int way_append_open(struct load_way *way, const struct reddn_options *opt);
int way_lock_open(struct load_way *way, const struct reddn_options *opt);
/** Any offload of a reddnd: a "key" is the decimal numbers of its arguments, separated by commas.
 */
int way_call_open(struct load_way *way, const struct reddn_options *opt);

/** memcached, by its meta commands, and Redis over TCP, or a Unix socket if the host begins with a slash;
 * requests between two polls share a segment. */
int way_memcached_open(struct load_way *way, const struct reddn_options *opt);
int way_redis_open(struct load_way *way, const struct reddn_options *opt);

#endif
