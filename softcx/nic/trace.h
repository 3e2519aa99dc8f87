/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.h - readers of a trace: they pass records from the engine to control connections.
 *
 * Each reader has a ring of its own. The engine never waits for a reader: records that find the ring full are
 * counted, and a record with the number stands where they are missing. Without a reader the engine's hook is
 * off.
 */
#ifndef SOFTCX_NIC_TRACE_H
#define SOFTCX_NIC_TRACE_H

#include "softcx/nic/files.h"
#include "softcx/proto/hosts.h"

#include <pthread.h>
#include <sys/queue.h>

struct tracer;

struct trace_source {
	struct tracers *tracers;
	unsigned dev;
	char label[SOFTCX_MAX_LABEL];
};

struct tracers {
	const struct files *files; /* to find the process of a QP */
	LIST_HEAD(, tracer) list;
	struct trace_source source[HOSTS_MAX_DEVS];
	pthread_mutex_t lock;       /* of owners and of the readers' rings: several engines fill them */
	uint32_t kinds;             /* of 1 << enum hw_trace_kind, that some reader wants */
	struct trace_owner *owners; /* QPNs seen lately; NULL without a reader */
	unsigned users;             /* files->users when they were */
};

/** @ndevs: of files->devs. */
void tracers_init(struct tracers *t, const struct files *files, unsigned ndevs);
/** Sends the records that match @filter to @fd (not owned): words "pid=N", "qp=N", "kinds=MASK" (of 1 << enum
 * hw_trace_kind; without it send WQEs). -EINVAL: other words. */
int tracer_new(struct tracers *t, int fd, const char *filter, struct tracer **tracer);
/** No new records; when the last one has been sent, the sending half of the connection is shut down. */
void tracer_end(struct tracer *tracer);
void tracer_free(struct tracer *tracer); /* NULL is fine */
/** Sends what the connections take; true when a reader has more coming. */
bool tracers_flush(struct tracers *t);

#endif
