/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test-rig.h - a handle whose NIC and server are fakes, for tests of the library's side of a connection. The
 * fake takes posted requests and looks keys up in a real table word by word, as the offload would; the
 * table's writer runs between any two of these words. Each thread has a rig of its own. What fails, fails the
 * test; so does a client that has no receive for a request, or sends more than its depth or its queues hold.
 */
#ifndef LIBCLIENT_TEST_RIG_H
#define LIBCLIENT_TEST_RIG_H

#include "libclient/connection.h"
#include "libclient/reddn-table.h"
#include "protocol/table-format.h"

#include <stdbool.h>

#include "tests/lib/cmocka.h"

enum {
	RIG_MAX_DEPTH = 64,
	RIG_HOSTS = 2,       /* a session with each, at most */
	RIG_CONNECTIONS = 3, /* at most */
	RIG_MOST_KEYS = 4,   /* of a request */
	RIG_SLOT = 512,      /* bytes, of a slot for one key */
	RIG_WIRE = 512,      /* bytes, of a request */
	RIG_HEADER = 16,     /* bytes, of a store; and of what a put has before the record */
	RIG_KEY_MAX = 32,    /* bytes */
	RIG_KEYS = 240,      /* numbers of keys, from 0 on, */
	RIG_STABLE = 60      /* of which the first ones are always in the table */
};

/* A connection. A test that replies itself counts on in served and receives. */
struct rig_end {
	union {
		struct ibv_qp qp; /* first */
		struct ibv_qp_ex qp_ex;
	};
	struct reddn_connection *k;
	uint8_t *slots; /* of the client */
	uint32_t slot_size;
	unsigned depth;
	unsigned posting; /* calls of ibv_wr_*() for a request that is being posted */
	struct rdma_cm_id id;
	uint8_t wire[RIG_MAX_DEPTH][RIG_WIRE]; /* request n at n % RIG_MAX_DEPTH, */
	uint32_t len[RIG_MAX_DEPTH];           /* and its bytes */
	uint64_t arrived, served;              /* requests */
	uint32_t receives;                     /* that no reply has used yet */
	uint64_t reclaimed;                    /* requests whose WQEs the client knows to be free */
	uint64_t signaled[RIG_MAX_DEPTH];      /* requests up to those whose CQE is to come, */
	uint64_t signals, completed, polled;   /* how many there were, came, and were polled */
	bool halfway;                          /* the oldest request: its buckets have been read */
};

/* A start zeroes it. A test may change c, sends, writing, lost_after, posts_fail, stopped, and, through fd,
 * the table's file.
 */
extern _Thread_local struct rig {
	struct reddn c;
	struct rig_end end[RIG_HOSTS * RIG_CONNECTIONS];
	bool stopped[RIG_HOSTS]; /* it serves nothing for now */
	/* when the CQE of a SEND comes; late: in some later poll; never: but for rig_complete_send() */
	enum { RIG_AT_ONCE, RIG_LATE, RIG_NEVER } sends;
	uint64_t lost_after;   /* the requests of a connection with which it is lost; 0: it stays */
	bool posts_fail;       /* from now on, */
	unsigned failed_posts; /* and so many did */
	unsigned disconnected; /* connections */
	/* the table */
	struct reddn_table *t;
	struct reddn_table_stat st; /* at the start */
	int fd;
	bool writing; /* the writer runs */
	struct {
		bool present;
		uint32_t version;     /* of its value */
		uint64_t last_absent; /* clock */
	} key[RIG_KEYS];
	uint64_t clock; /* operations of the writer */
} rig;

/** What a session is for. */
enum rig_offload {
	RIG_GETS = false,
	RIG_RAW = true, /* the test serves it itself, as it does the next one */
	RIG_PUTS,       /* in a store, with the geometry of the table */
	RIG_EXISTS,     /* which keys there are */
};

/** Gets are of a store from now on: RIG_HEADER bytes are in front of what a NIC finds, or of nothing. */
extern bool rig_store;

/** Handles from now on poll by ibv_cq_ex and post by ibv_qp_ex. Set while no other thread has a rig. */
extern bool rig_extended;

/**
 * Make the table, with @heap bytes for records and the stable keys in it, and the handle, whose connections
 * have @depth slots each. A request takes @keys keys; or, of RIG_RAW, 100 bytes. rig_stop() frees both.
 */
void rig_start_several(
	unsigned keys, uint16_t connections, unsigned depth, enum rig_offload of, uint64_t heap);
void rig_start(unsigned depth, enum rig_offload of, uint64_t heap); /* one key, one connection */
void rig_stop(void);

/** The live line of the table. */
struct reddn_table_live *rig_live(void);

/** The session is lost, with its queues. Without REDDN_NO_RECONNECT the handle wants another one, */
void rig_lose(int error);

/** and this is what the connector has made for it. The rig serves that from now on. */
void rig_next_session(unsigned keys, uint16_t connections, unsigned depth, enum rig_offload of);
/** The same of any host. */
void rig_next_session_at(
	unsigned host, unsigned keys, uint16_t connections, unsigned depth, enum rig_offload of);

/** The random numbers of this thread, by which writer and NIC choose: the same ones after the same @seed. */
void rig_seed(unsigned seed);
uint32_t rig_rnd(void);

/** Make key @k, and return its length: short ones, and such that the library has no case of their own for. */
size_t rig_key_of(uint32_t k, uint8_t key[static RIG_KEY_MAX]);

/** The value of a key in a version: up to 64 words; @len in bytes. */
void rig_value_of(uint32_t key, uint32_t version, uint32_t *val, size_t *len);

/** None, one or several operations of the writer, if it runs. */
void rig_maybe_write(void);

/** A connection that has a request to serve, any of them; or NULL. */
struct rig_end *rig_pending(void);

/** The NIC begins with the oldest request, unless it has: it looks the keys up, a word at a time. */
void rig_serve_half(struct rig_end *e);

/** And ends with it. In between it may have served others, of other connections. */
void rig_serve_of(struct rig_end *e);

/** The same for rig_pending(), which must not be NULL. */
void rig_serve(void);

/** The CQ of the session has been armed. */
bool rig_is_armed(void);

/** Put a CQE into the CQ. */
void rig_push(struct ibv_wc wc);

/** Put in the CQE of the oldest signaled SEND without one, if any. It may come later than the reply. */
void rig_complete_send(struct rig_end *e);

#endif
