/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reddn.h - ask a reddnd server's NIC. One handle is one connection to one offload. See libreddn(3).
 *
 * Rules that hold everywhere: a function returns 0 or a positive outcome that it documents, or -errno. A
 * handle is used by one thread at a time; different handles are independent. The library makes no threads,
 * installs no signal handlers and, once connected, allocates nothing. It uses plain verbs: any RDMA device
 * will do.
 *
 * Requests are submitted and their results polled for. At most `depth` requests are outstanding. A request
 * always gets a result: a value, REDDN_MISS, or an error; when the connection is lost, all that is
 * outstanding gets the reason.
 */
#ifndef REDDN_H
#define REDDN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct reddn;

/** The key was not in the table, at some moment between the submission and the result. */
#define REDDN_MISS 1

/** What to connect to. All that is 0 takes its default. */
struct reddn_options {
	const char *host;    /* name or address of an RDMA interface of the server; required */
	const char *offload; /* its name in the server's catalog, up to 23 bytes; required */
	uint16_t port;       /* 0: 7471 */
	uint16_t depth;      /* requests that can be outstanding. 0: 16 */
	uint32_t slot_size;  /* bytes for a reply, a multiple of 64. 0: what the server says it takes */
	uint32_t timeout_ms; /* for connecting, and for reddn_get. 0: 5000 */
	uint32_t retry_ms;   /* for asking again when a table changes under a get. 0: 1000 */
	uint32_t spin_us;    /* how long reddn_wait polls before it sleeps. 0: 20 */
	/* The key that the server wants tokens to be made with, if it does: the bytes of a file, or token_len
	 * bytes. NULL: none */
	const char *token_file;
	const void *token_key;
	size_t token_len;     /* 16 to 1024 */
	uint64_t reserved[5]; /* 0 */
};

/**
 * Connect. `err` (may be NULL) gets the reason of a failure in words, the server's own if it refused.
 * -EINVAL: an option. -ENODEV: no RDMA device leads there. -EHOSTUNREACH, -ETIMEDOUT: no answer.
 * -ECONNREFUSED: nobody listens. Refused by the server: -ENOENT no such offload, -EACCES not for this client
 * or token, -EDQUOT a quota is used up, -ERANGE depth, -EMSGSIZE slot_size, -EBUSY it is full, -ESHUTDOWN it
 * is stopping, -EREMOTEIO it failed, -EPROTONOSUPPORT it speaks another version. -EPROTO: not a reddnd, or it
 * broke the protocol.
 */
int reddn_connect(struct reddn **out, const struct reddn_options *opt, char *err, size_t errlen);

/** Disconnect and free. Outstanding requests end without a result. NULL is allowed. */
void reddn_close(struct reddn *c);

struct reddn_result {
	uint64_t cookie;
	int status;        /* 0: there is a value. REDDN_MISS. Negative: see reddn_get_submit */
	const void *value; /* in the reply slot: valid until the next reddn_poll, _wait, _get or _close of the
			      handle */
	size_t length;
};

/**
 * Ask for the value of a key in a table. Copies the key. `cookie` comes back in the result.
 * -EAGAIN: `depth` requests are outstanding, or the next slot still has a result that the caller holds:
 * release or poll first. -EINVAL: the key is empty, or the offload is no table. -EMSGSIZE: the key is longer
 * than any in the table. Another negative number: the connection is lost, as reddn_errmsg() says.
 *
 * A get may be sent more than once, unseen by the caller: when the writer of the table overtook the reply, or
 * when it moved entries and a miss is not certain. After `retry_ms` of that the result is -EAGAIN (it moves
 * all the time, or died while it moved one) or -EBADMSG (no record with a right checksum was to be had).
 * -ESTALE: another table has replaced the one that this connection knows; connect anew. -ECONNRESET, -EIO:
 * the connection was lost before the reply.
 */
int reddn_get_submit(struct reddn *c, const void *key, size_t key_len, uint64_t cookie);

/**
 * Send a request as it is, `len` bytes as reddn_info tells; for offloads whose requests the application
 * composes. The reply slot is zeroed before, up to reply_max. The result has status 0 and the slot as value,
 * reply_max bytes. Errors as above; -EINVAL: wrong length.
 */
int reddn_submit(struct reddn *c, const void *arg, size_t len, uint64_t cookie);

/** The value of one argument: `bytes`, as many as reddn_get_arg tells, or if it is NULL `number`. */
struct reddn_arg {
	const void *bytes;
	uint64_t number;
};

/**
 * Ask an offload, whatever its program is: one value for each of its arguments, in the order of the program's
 * text. The request is composed as the server has told. The reply slot is zeroed before, up to reply_max. The
 * result has status 0 and the slot as value, reply_max bytes. Errors as for reddn_get_submit; -EINVAL: wrong
 * number of arguments; -ERANGE: a number does not fit its bytes, or stands where bytes are wanted, or the
 * other way round.
 */
int reddn_call_submit(struct reddn *c, const struct reddn_arg *args, unsigned nargs, uint64_t cookie);

/**
 * Ask and wait: the first `buf_len` bytes of the reply, at most reply_max, are copied to `buf`. Errors as for
 * reddn_call_submit and its results; -EBUSY: submitted requests are outstanding; -ETIMEDOUT: no reply in
 * `timeout_ms`; the connection is given up.
 */
int reddn_call(struct reddn *c, const struct reddn_arg *args, unsigned nargs, void *buf, size_t buf_len);

/**
 * Collect up to `max` results without waiting, in the order of their completion. Results handed out before
 * are given up. Returns their number; 0: none yet. Negative: the connection is lost and all that was
 * outstanding has been reported.
 */
int reddn_poll(struct reddn *c, struct reddn_result *res, int max);

/** Give up the results handed out before the next reddn_poll does: their slots can take requests at once. */
void reddn_release(struct reddn *c);

/** As reddn_poll, but waits for the first result; 0 when there is none after `timeout_ms` (-1: no limit), or
 * nothing outstanding. */
int reddn_wait(struct reddn *c, struct reddn_result *res, int max, int timeout_ms);

/**
 * A descriptor for poll(2) or epoll(7); readable when reddn_poll should be called. Belongs to the handle. It
 * tells of results that come after reddn_arm: arm, call reddn_poll until it returns 0, then sleep.
 */
int reddn_fd(struct reddn *c);
int reddn_arm(struct reddn *c);

/**
 * Ask and wait. The value is copied to `buf`, its length is put into `*len`. REDDN_MISS: not there. -EMSGSIZE
 * with `*len` > `buf_len`: the value is that long; nothing was copied. -EBUSY: submitted requests are
 * outstanding. -ETIMEDOUT: no reply in `timeout_ms`; the connection is given up. Other errors as for
 * reddn_get_submit and its results.
 */
int reddn_get(struct reddn *c, const void *key, size_t key_len, void *buf, size_t buf_len, size_t *len);

enum reddn_shape {
	REDDN_OPAQUE = 0, /* any program: reddn_call, reddn_call_submit, reddn_submit */
	REDDN_TABLE = 1,  /* a table: reddn_get and reddn_get_submit as well */
};

struct reddn_info {
	enum reddn_shape shape;
	uint16_t depth;
	uint32_t slot_size; /* bytes */
	uint32_t arg_len;   /* bytes of a request */
	uint32_t reply_max; /* bytes of a reply */
	uint64_t session;   /* its number in the server's log */
	uint32_t nargs;     /* arguments of reddn_call */
	/* of a table */
	uint64_t hash_seed;
	uint64_t buckets;
	uint32_t max_key;
	uint32_t max_value;
	/* since the connection was made */
	uint64_t sent;            /* requests on the wire */
	uint64_t again_moved;     /* gets sent again because a miss was not certain */
	uint64_t again_overtaken; /* gets sent again because the record had changed meanwhile */
};

void reddn_get_info(const struct reddn *c, struct reddn_info *info);

enum reddn_arg_kind {
	REDDN_NUMBER = 0, /* unsigned, of up to 8 bytes */
	REDDN_BYTES = 1,
	REDDN_OFFSET = 2, /* a number: offset of a byte in a region of the server */
};

/** What argument `i` is: its kind, and how many bytes it has. -EINVAL: there is none of that number. */
int reddn_get_arg(const struct reddn *c, unsigned i, enum reddn_arg_kind *kind, uint32_t *bytes);

/** Why the connection was lost; "" while it is not. Belongs to the handle. */
const char *reddn_errmsg(const struct reddn *c);

/** How a session ended, as its server tells. There may be more of them one day. */
enum reddn_end {
	REDDN_END_UNKNOWN = 0,     /* the server knows nothing of such an end (any more), or does not tell */
	REDDN_END_FAILED = 1,      /* work in the server's NIC failed */
	REDDN_END_PROTOCOL = 2,    /* the client broke a rule of the protocol */
	REDDN_END_UNREACHABLE = 3, /* the client's NIC did not take replies, or did not answer */
	REDDN_END_BUDGET = 4,      /* a request took more time or work than the offload allows */
	REDDN_END_OPERATOR = 5,    /* the administrator of the server ended it */
	REDDN_END_SHUTDOWN = 6,    /* the server stops, or empties itself */
	REDDN_END_CLIENT = 7,      /* the client, or the network, ended it */
	REDDN_END_IDLE = 8, /* nothing was asked for too long; connect again when there is something to ask */
};

/**
 * Ask the server why it ended the session; then reddn_errmsg() has its words. A connection that is lost
 * cannot carry them, so this makes another one for the question and waits for the answer, `timeout_ms` at
 * most; the second call knows it. reddn_get and reddn_call, which wait anyway, do it themselves. Returns an
 * enum reddn_end. -EINVAL: the connection is not lost. -ECONNREFUSED: nobody listens there any more. Other
 * errors: the server is not to be reached.
 */
int reddn_end_reason(struct reddn *c);

#ifdef __cplusplus
}
#endif

#endif
