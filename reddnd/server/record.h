/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * record.h - what the daemon has on record about clients, in a memfd that outlives it: who is banned or
 * throttled, and why sessions ended. Times in it are of CLOCK_MONOTONIC, so it is of one boot.
 *
 * Thread rules: one thread.
 */
#ifndef SERVER_RECORD_H
#define SERVER_RECORD_H

#include "reddnd/policy/end-reason.h"
#include "reddnd/server/enforcement.h"

enum { RECORD_VERSION = 1 }; /* of the structures below, and those that they consist of */

struct record {
	uint64_t magic;
	uint32_t version, bytes;
	struct enforcement enforcement;
	struct end_reasons end_reasons;
};

/** An empty one, and its file. -errno. */
int record_new(struct record **record, int *fd);
/** The one in file @fd. Whatever is in the file, it can be used after this; all of it may be another's
 * invention. -EBADMSG: the file is none of this version. */
int record_open(struct record **record, int fd);
void record_free(struct record *record); /* the file stays as it is */

#endif
