/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probe.h - what the design assumes of a device, as a table of numbered checks that run on it.
 *
 * Each check makes queues of its own on the device, in loopback, and ends with a verdict: the assumption
 * holds, does not hold, or could not be tried. The daemon runs those that it depends on before it serves
 * (probe_at_start()), and the tool reddn-probe runs all. Some end a queue with an error on purpose.
 *
 * A check of an order can pass because nothing happened to be late. Such a check counts what it tried and how
 * many of these trials could have shown a wrong answer; if that is none, it could not be tried.
 *
 * Thread rules: one thread.
 */
#ifndef PROBE_PROBE_H
#define PROBE_PROBE_H

#include "reddnd/rnic/master-qp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Numbers are for bug reports: they never change, and those of checks that are gone are not used again. */
enum probe_number {
	PROBE_DEVICE = 1,
	PROBE_LONG_WQES = 2,
	PROBE_TIMESTAMPS = 3,

	PROBE_CHAIN = 10,
	PROBE_WAITS = 11,
	PROBE_FLUSHED_RECV = 12,
	PROBE_SMALLER_ENABLE = 13,
	PROBE_DOORBELL = 14,
	PROBE_RECV_ENABLE = 15,
	PROBE_SMALLER_RECV_ENABLE = 16,
	PROBE_WQE_WRAP = 17,
	PROBE_CQE_WRAP = 18,
	/* 19: a SEND_EN for a queue in RESET */

	PROBE_FETCH = 20,
	PROBE_READ_PATCH = 21,
	PROBE_RECV_PATCH = 22,
	PROBE_AWAITED_READ = 23,
	PROBE_FENCED_ENABLE = 24,
	PROBE_FENCED_WRITE = 25,
	PROBE_WQE_CHECKS = 26,
	PROBE_RECV_FETCH = 27,

	PROBE_FLUSH = 30,
	PROBE_FAILING_READ = 31,
	PROBE_MESSAGE_LIMIT = 32,

	PROBE_ATOMICS = 40,
	PROBE_MASKED_ATOMICS = 41,
	PROBE_CALC = 42,
	/* 43: CALC of vectors */
	PROBE_EVENTS = 50,

	PROBE_FORCED_LOOPBACK = 60,
	PROBE_OWN_ADDRESS = 61,
	PROBE_ACCEPTED = 62,
	PROBE_MEMORY_FILE = 70,
	PROBE_HUGE_FILE = 71,
	PROBE_DISK_FILE = 72,
};

enum probe_verdict { PROBE_NOT_TRIED, PROBE_HOLDS, PROBE_DOES_NOT };

enum probe_flag {
	PROBE_AT_START = 1, /* the daemon runs it */
	PROBE_IF_ASKED = 2, /* it does so only if its configuration asks for it */
	PROBE_LOADED = 4,   /* other queues keep the device busy meanwhile */
	PROBE_RACE = 8,     /* a wrong answer needs something to be late */
	PROBE_LONG = 16,    /* takes long: only with probe_attr.thorough, or if it is asked for by name */
};

struct probe_result {
	enum probe_verdict verdict;
	int error;              /* negative errno: why it could not be tried; 0: other reasons */
	unsigned value;         /* of some checks: what was measured */
	char words[200];        /* what it did instead, or why it could not be tried; "" if it holds */
	char measured[160];     /* "", or what was measured in words */
	uint64_t tried, showed; /* trials, and those that could have shown a wrong answer */
	double seconds;
};

struct bed;
struct probe;

struct probe_check {
	enum probe_number number;
	const char *name;    /* for command lines */
	const char *assumes; /* what the design assumes, one sentence */
	const char *breaks;  /* what does not work otherwise */
	const char *source;  /* of the assumption, or "assumed" */
	unsigned flags;      /* enum probe_flag */
	/** 1: holds. 0: does not, and the words are in the result. A negative errno: could not be tried. */
	int (*run)(struct probe *probe, struct probe_result *result);
	/** In its place: the same with queues that are made for it. */
	int (*on_bed)(struct bed *bed, struct probe_result *result);
};

/** All checks, by number; *@n of them. */
const struct probe_check *probe_checks(unsigned *n);

struct rnic_visitor;

/** A client to try connections with (rnic/visitor.h, which brings in librdmacm). */
struct probe_visitors {
	int (*start)(struct rnic_visitor **visitor, const char *address, uint16_t port, uint64_t word);
	int (*end)(struct rnic_visitor *visitor, uint64_t *answer, char *why, size_t size);
};

struct probe_attr {
	struct master_qp *master; /* the checks take PROBE_ARENA bytes of its arena, for a while */
	const char *unusable;     /* or why there is none: the device cannot be opened */
	const struct probe_visitors *visitors; /* or NULL */
	bool thorough;                         /* 100 times as many trials where something could be late */
};

enum { PROBE_ARENA = 16 << 20 };

/** Runs @check. The result is complete in any case. */
void probe_run(const struct probe_attr *attr, const struct probe_check *check, struct probe_result *result);

/**
 * Runs the checks that the daemon depends on, those of fences only if @fences, and writes what the device
 * does to @seen. Logs the results. What the device refuses to try counts as what does not hold. -errno,
 * logged: the device does not run chains, that could not be tried, or there was no room to try something
 * (rnic_is_shortage()).
 */
int probe_at_start(const struct probe_attr *attr, bool fences, struct rnic_observed *seen);

#endif
