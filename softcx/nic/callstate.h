/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * callstate.h - a call between its arrival and its answer: the other side of call.h. channel.c fills in what
 * the driver sent, runs the handler, and sends what call_need() or call_reply() built.
 */
#ifndef SOFTCX_NIC_CALLSTATE_H
#define SOFTCX_NIC_CALLSTATE_H

#include "softcx/nic/files.h"
#include "softcx/nic/mm.h"
#include "softcx/proto/call.h"
#include "softcx/proto/proto.h"

/** A question of a handler and the answer of the process; kept until the call ends. */
struct call_answer {
	uint32_t kind; /* SOFTCX_NEED_MEM or SOFTCX_NEED_STAT */
	uint32_t flags;
	uint64_t va, len;
	int rc;
	struct hw_mem *mem;
	struct stat st;
	int fd; /* of SOFTCX_SEND_FD, or -1 */
};

struct nic_call {
	const struct files *files;
	pid_t pid;
	struct softcx_request req;
	uint8_t *data; /* what followed the request */
	size_t size;

	struct call_answer *answers;
	unsigned nanswers;
	bool remote_copy;         /* the process must copy the memory that is asked for */
	struct softcx_reply need; /* kind 0: nothing is being asked */
	struct mm_piece *pieces;  /* of the answer that is arriving */
	unsigned npieces;
	int *piece_fds;
	unsigned npiece_fds;

	uint8_t *stores; /* struct softcx_store and bytes, as the reply will carry them */
	size_t stores_size;
	uint64_t nstores;
	int fds[SOFTCX_MAX_FDS];
	unsigned nfds;
};

/** Copies @bytes. NULL without memory, or when the parts of the request do not fit together (errno EPROTO).
 */
struct nic_call *call_new(const struct files *files, pid_t pid, const struct softcx_request *req,
	const void *bytes, size_t size);
void call_free(struct nic_call *call); /* NULL is fine */
/** Notes the answer to a question about descriptor @fd that nobody has asked yet. -ENOMEM. */
int call_presume_stat(struct nic_call *call, int fd, const struct stat *st);

/** Stores into the memory of the process, which is about to die and will not read its reply. Without
 * descriptors; what process_vm_writev(2) does not reach is left as it is. */
void call_store_remotely(const struct nic_call *call);
/** Forgets stores of a run that ended with NIC_AGAIN. */
void call_restart(struct nic_call *call);

/**
 * Takes the process's answer to @call->need; @fds become the call's. 1: more packets follow, 0: run the
 * handler again, -EPROTO: malformed.
 */
int call_answer(struct nic_call *call, const struct softcx_request *req, const void *bytes, size_t size,
	const int *fds, unsigned nfds);

/** Drops descriptors that a failed call would have installed. */
void call_drop_fds(struct nic_call *call);

#endif
