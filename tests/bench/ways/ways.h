/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ways.h - the ways of asking that gets by the NIC are compared with. Each opens a connection that
 * tools/load/load.h drives; the options that mean something to them are host, port and depth. Nobody may
 * write to a table that is read by one-sided READs: unlike libreddn they do not notice that an entry moved
 * while they looked for it.
 */
#ifndef TESTS_BENCH_WAYS_WAYS_H
#define TESTS_BENCH_WAYS_WAYS_H

#include "tools/load/load.h"

/** One READ of so many bytes of the server's table, wherever: what no get can be faster than. The answer is
 * those bytes. */
int way_ideal_open(struct load_way *way, const struct reddn_options *opt);
extern uint32_t way_ideal_bytes;

/** A READ of each of both buckets at once, then one of the record that the fingerprint points at. */
int way_onesided_open(struct load_way *way, const struct reddn_options *opt);

/** As in FaRM: one READ of the six neighbouring buckets of a hopscotch table, then one of the record. */
int way_hopscotch_open(struct load_way *way, const struct reddn_options *opt);

/** A SEND to the server, whose CPU looks the key up, or sets it, and answers with a SEND. */
int way_requests_open(struct load_way *way, const struct reddn_options *opt);

/** The NIC of a reddnd; the offload, a table, is the option of that name. */
int way_get_open(struct load_way *way, const struct reddn_options *opt);
/** Any offload there: a "key" is the numbers that are its arguments, in decimal and with commas between them.
 */
int way_call_open(struct load_way *way, const struct reddn_options *opt);

/** memcached and Redis in their own protocols over TCP; what is submitted between two polls goes into one
 * segment. */
int way_memcached_open(struct load_way *way, const struct reddn_options *opt);
int way_redis_open(struct load_way *way, const struct reddn_options *opt);

#endif
