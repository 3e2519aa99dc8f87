/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.h - "softcx trace": prints what the NIC executes, until it is interrupted, has printed enough
 * records, or the NIC ends.
 */
#ifndef SOFTCX_TOOL_TRACE_H
#define SOFTCX_TOOL_TRACE_H

#include "softcx/proto/proto.h"

#include <stdbool.h>

struct trace_options {
	uint32_t qpns[SOFTCX_TRACE_QPS];
	unsigned nqpns;
	uint32_t pid;   /* 0: any */
	uint32_t kinds; /* of trace_event_kinds(); 0: send WQEs */
	uint64_t count; /* records; 0: no end */
	bool json;
	const char *pcapng; /* file to write instead of lines, or NULL */
};

/** @fd: a control connection. Returns the exit status. */
int tool_trace(int fd, const struct trace_options *opt);

#endif
