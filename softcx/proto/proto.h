/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * proto.h - the messages between the preloaded driver, the tool and the NIC process. All run on one machine
 * and are of one build: structures go over the wire as they are.
 *
 * Every device file is a listening Unix stream socket "softcx:NAME" in the directory of its host. The first
 * host has the NIC's directory; those of the others are below it (hosts.h). Opening the device connects to
 * the socket. That connection is the application's descriptor, so it lives exactly as long as the open file
 * would, whoever holds copies of it. On it travel:
 * - driver to NIC: struct softcx_hello with one descriptor (SCM_RIGHTS), the far end of a command channel;
 * once per process image that uses the file, and again when it has closed the channel of a file that it did
 * not use for a while;
 * - NIC to driver, rdma_cm only: one byte while events are queued, so that the descriptor is readable.
 * The application's last close is end of file here, and the NIC destroys the file's objects.
 *
 * A command channel is a SOCK_SEQPACKET pair; one packet is one message. The driver sends a softcx_request
 * and receives softcx_replies until one is SOFTCX_DONE. A NEED_* asks for something that only the process
 * knows; another request answers it.
 *
 * "softcx:control" (SOCK_SEQPACKET), the same in every host's directory, is for the softcx tool, which sends
 * a line and receives an answer:
 * - status: JSON.
 * - stop: ends the NIC.
 * - hold: the connection counts as a client while it is open.
 * - fault WORD...: the words of the command line. The answer is "+" and text, or "-" and the mistake.
 * - objects: a descriptor of a file with the status and every object, in JSON.
 * - watch: records from now on what the files of the caller's descendants leave behind; "ok".
 * - left: a descriptor of a file with that record, in JSON.
 * - trace [pid=N] [kinds=MASK] [qp=N]...: packets of softcx_trace, until the tool sends "end" and the rest
 * has arrived.
 */
#ifndef SOFTCX_PROTO_PROTO_H
#define SOFTCX_PROTO_PROTO_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define SOFTCX_SOCKET_PREFIX "softcx:"
#define SOFTCX_CONTROL SOFTCX_SOCKET_PREFIX "control"
#define SOFTCX_SYSFS "sys" /* directory below the NIC's, shown in place of parts of /sys */

/* Where the devices are on the PCI bus: a domain that no machine has. */
#define SOFTCX_PCI_DOMAIN "5c00"
#define SOFTCX_PCI_ROOT "pci" SOFTCX_PCI_DOMAIN ":00"

enum {
	SOFTCX_VERSION = 5,
	SOFTCX_MAX_MSG = 176 * 1024, /* fits the default socket buffer */
	SOFTCX_MAX_FDS = 64,         /* descriptors in one packet; the kernel allows 253 */
	SOFTCX_MAX_DIR = 80,         /* bytes of a directory's name: sun_path has 108 */
	SOFTCX_MAX_HOST = 15,        /* bytes of a host's name */
	SOFTCX_MAX_LABEL = 32,       /* bytes of a device's name, a host's name and a zero byte included */
};

/* Device numbers, as Linux assigns them: uverbsN and the misc device rdma_cm. */
#define SOFTCX_UVERBS_DEV(n) makedev(231, 192 + (n))
#define SOFTCX_RDMA_CM_DEV makedev(10, 58)

struct softcx_hello {
	uint32_t version;  /* SOFTCX_VERSION */
	uint32_t opener;   /* 1: sent by open() itself. Only that image may write() (channel.c) */
	uint32_t think_ns; /* modelled clock: time of this process for each message; $SOFTCX_THINK */
	uint32_t in_turn;  /* the same: 1: it does one thing after the other; $SOFTCX_IN_TURN */
	uint64_t ino;      /* of the application's end of the connection, as fstat reports it */
	uint64_t image;    /* of the process: a number of its own; 0: it opens no further channel */
	uint32_t creds;    /* of the process: changes with its credentials */
	uint32_t unused;
};

enum softcx_op {
	SOFTCX_WRITE = 1, /* @va, @len; the bytes follow */
	SOFTCX_IOCTL,     /* @va, @len: header and attributes; they follow, then the data of attributes longer
			     than 8 bytes */
	SOFTCX_MMAP,      /* @va: file offset, @len: length */
	SOFTCX_MEM,       /* answers NEED_MEM: @count softcx_segs follow; @rc < 0: there is no such memory */
	SOFTCX_STAT, /* answers NEED_STAT: a struct stat follows; @rc < 0: bad descriptor. One descriptor, if
			it was asked for */
	/*
	 * Not a call, has no answer and may come at any time. The UAR page with mmap offset @va is mapped;
	 * the descriptor that comes along, if one does, is a userfaultfd with that mapping registered for
	 * missing pages.
	 */
	SOFTCX_GUARD,
};

struct softcx_request {
	uint32_t op;
	int32_t rc;
	uint64_t va, len;
	uint32_t count;
	uint32_t flags;
};
enum {                   /* softcx_request.flags */
	SOFTCX_MORE = 1, /* MEM: another packet of segments follows */
	SOFTCX_COPY_SOCKET =
		4, /* MEM: the descriptor is not memory but a socket that answers struct softcx_copy */
	SOFTCX_INHERIT = 2,    /* GUARD: of a mapping that no MMAP was for: a forked child, not the channel's
				  owner, has it */
	SOFTCX_NEW_CREDS = 8,  /* WRITE: the process has got other credentials since it opened the file */
	SOFTCX_WITH_STAT = 16, /* IOCTL: @count softcx_stats come last, which the NIC is likely to ask for */
};

/** What NEED_STAT would ask for. */
struct softcx_stat {
	int32_t fd;
	uint32_t unused;
	struct stat st;
};
enum { SOFTCX_MAX_STATS = 2 };

/** A piece of memory, in ascending order and without gaps. */
struct softcx_seg {
	uint64_t va, len;
	uint64_t offset; /* in the file */
	int32_t fd;      /* which of the packet's descriptors, or -1: only process_vm access reaches it */
	uint32_t unused;
};

enum softcx_kind {
	SOFTCX_DONE =
		1, /* @rc; @count softcx_stores follow. Of an MMAP: one descriptor, @va is the offset in it */
	SOFTCX_NEED_MEM,  /* @va, @len, @flags */
	SOFTCX_NEED_STAT, /* @va: descriptor */
};

struct softcx_reply {
	uint32_t kind;
	uint32_t flags;
	int64_t rc;
	uint64_t va, len;
	uint64_t count;
};
enum {                       /* softcx_reply.flags */
	SOFTCX_WRITABLE = 1, /* NEED_MEM: the NIC will write */
	SOFTCX_DIRECT = 2,   /* NEED_MEM: must be shared memory */
	/* NEED_MEM: if it cannot be shared, answer with a COPY_SOCKET: process_vm does not reach it either */
	SOFTCX_REMOTE_COPY = 16,
	SOFTCX_SEND_FD = 32, /* NEED_STAT: the descriptor, too */
	SOFTCX_DRAIN = 4,    /* DONE: take the byte off the application's descriptor */
	SOFTCX_WAIT = 8, /* DONE: nothing there yet; wait until the descriptor is readable and ask again */
};

/** Followed by @len bytes, padded to 8; with @fd >= 0 the number of that descriptor is stored instead. */
struct softcx_store {
	uint64_t va;
	uint32_t len;
	int32_t fd;
};

/**
 * On a COPY_SOCKET: asks the process to read bytes of its memory, or to store those that follow. One packet;
 * so is the answer.
 */
struct softcx_copy {
	uint64_t va;
	uint32_t len;
	uint32_t store;
	uint32_t id;
	uint32_t unused;
};

/** The bytes that were asked for follow if @rc is 0. */
struct softcx_copied {
	int32_t rc; /* errno */
	uint32_t id;
};
enum { SOFTCX_MAX_COPY = 65536 };

/** An event in the NIC. A packet has one or more. */
struct softcx_trace {
	uint64_t ns;   /* CLOCK_REALTIME */
	uint32_t lost; /* not 0: nothing but the number of records that found no room at this place */
	uint32_t pid;  /* who uses the file of the queue; 0: unknown */
	uint32_t qpn;
	uint16_t index; /* of the WQE or RECV */
	uint8_t type;   /* enum hw_qp_type */
	uint8_t opcode, opmod;
	uint8_t syndrome;  /* 0: executed */
	uint8_t ds;        /* length of the WQE in units of 16 bytes */
	uint32_t dest_qpn; /* of a connected queue */
	uint32_t kind;     /* enum hw_trace_kind, on which it depends which members are set */
	uint32_t cqn, number;
	uint8_t sgid[16], dgid[16];
	uint8_t smac[6], dmac[6], dscp, hop_limit; /* of the headers of its packets */
	uint16_t udp_sport;
	uint8_t roce_v1;               /* packets have the header of RoCE v1, without UDP */
	char device[SOFTCX_MAX_LABEL]; /* "mlx5_0", or "HOST/mlx5_0" when there are several hosts */
	uint8_t wqe[256];              /* the first bytes of it */
};
enum {
	SOFTCX_TRACE_PACKET = 64, /* most records in a packet */
	SOFTCX_TRACE_QPS = 64,    /* most queues to ask for */
};

/** @msg gets @n descriptors, 0 is fine. @control is room for CMSG_SPACE(@n * sizeof(int)) bytes, which the
 * caller keeps until the message is sent. */
static inline void softcx_put_fds(struct msghdr *msg, struct cmsghdr *control, const int *fds, unsigned n)
{
	if (!n)
		return;
	memset(control, 0, CMSG_SPACE(n * sizeof(int)));
	control->cmsg_level = SOL_SOCKET;
	control->cmsg_type = SCM_RIGHTS;
	control->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(control), fds, n * sizeof(int));
	msg->msg_control = control;
	msg->msg_controllen = CMSG_SPACE(n * sizeof(int));
}

/** Where a NIC lives, its sockets, its sysfs tree and its log: $SOFTCX_DIR, else $XDG_RUNTIME_DIR/softcx,
 * else /tmp/softcx-UID. -ENAMETOOLONG above SOFTCX_MAX_DIR. */
static inline int softcx_dir(char *buf, size_t size)
{
	const char *dir = getenv("SOFTCX_DIR");
	const char *run = getenv("XDG_RUNTIME_DIR");
	int n;

	if (dir && *dir)
		n = snprintf(buf, size, "%s", dir);
	else if (run && *run)
		n = snprintf(buf, size, "%s/softcx", run);
	else
		n = snprintf(buf, size, "/tmp/softcx-%u", (unsigned)getuid());
	return n < 0 || (size_t)n >= size || n > SOFTCX_MAX_DIR ? -ENAMETOOLONG : 0;
}

#endif
