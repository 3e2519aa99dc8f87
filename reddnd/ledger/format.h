/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * format.h - the ledger: what a daemon has in the device and in the kernel's connection manager, in a memfd
 * that outlives it. The next daemon goes on with what it names, and destroys what it does not name.
 *
 * A head, then slots of one size. A slot has what was made, and will be destroyed, together: a session; the
 * protection domain of a tenant, or that of the daemon itself with the doorbell page; a window of memory;
 * queues of the daemon itself. It goes through
 *
 *   FREE -> BUILDING -> LIVE -> ENDING -> FREE
 *
 * and while it is LIVE no object is added to it or taken from it. Queues of the daemon itself, which the next
 * one makes anew, are BUILDING for as long as they exist. Every step is one store, after all stores before
 * it. A handle is written right after its object was made, and cleared right after it was destroyed. So
 * whenever the daemon is killed, at most one object of each of its threads is in no slot, and at most one
 * handle of each is of an object that is gone.
 *
 * A session that is not recycled ends with the daemon. Its slot has its objects, which the next daemon
 * destroys, and whom to tell why it ended.
 *
 * Numbers are those of this machine; the file never leaves it. A reader trusts nothing: check.c.
 */
#ifndef LEDGER_FORMAT_H
#define LEDGER_FORMAT_H

#include <stdint.h>

enum {
	LEDGER_VERSION = 17,
	LEDGER_LISTENERS = 16,
	LEDGER_REQUESTS = 512,
	LEDGER_EVENT = 384,  /* bytes */
	LEDGER_OBJECTS = 32, /* of a slot */
	LEDGER_WINDOWS = 8,  /* of a session */
	LEDGER_VERDICTS = 16,
	LEDGER_MESSAGES = 8, /* of a reply */
	LEDGER_NAME = 24,    /* bytes of a name, the zero byte included */
	LEDGER_PAGE = 4096,
};

#define LEDGER_NO_ID UINT32_MAX
#define LEDGER_CONNECTION_SHIFT 48
#define LEDGER_SESSION_MASK ((UINT64_C(1) << LEDGER_CONNECTION_SHIFT) - 1)
#define LEDGER_MAGIC UINT64_C(0x5245444e4c454447) /* "REDNLEDG" */

struct ledger_head {
	uint64_t magic;
	uint32_t version;
	uint32_t slot_bytes;
	uint32_t slots;      /* there is room for */
	uint32_t used;       /* slots from here on have always been free */
	uint8_t boot_id[16]; /* objects end with the kernel that made them */
	uint64_t generation; /* of daemons that have had it; 1 is the first */
	uint32_t failed;     /* adoptions in a row */
	uint32_t distrusted; /* the configuration of the last that failed may be why */
	uint32_t nlisteners;
	uint32_t listeners[LEDGER_LISTENERS]; /* ids of the connection manager; LEDGER_NO_ID: none */
	uint64_t arena_bytes;
	uint64_t last_session; /* number */
	char device[64];
	/* Where the connection manager stores an event, so that a request that was read is in the ledger */
	uint8_t event[LEDGER_EVENT];
	uint32_t unused;
	uint32_t nrequests;                 /* places that have been used */
	uint32_t requests[LEDGER_REQUESTS]; /* ids of connections that nobody has answered; LEDGER_NO_ID: none
					     */
};

enum ledger_state { LEDGER_FREE, LEDGER_BUILDING, LEDGER_LIVE, LEDGER_ENDING };

enum ledger_kind {
	LEDGER_DEVICE = 1,
	LEDGER_TENANT,
	LEDGER_OWN, /* queues of the daemon itself: of a master QP, or a CQ of the pool */
	LEDGER_WINDOW,
	LEDGER_SESSION, /* on a device without direct commands it has no objects */
};

/** In the order in which they are destroyed. */
enum ledger_type { LEDGER_NONE, LEDGER_QP, LEDGER_CQ, LEDGER_MR, LEDGER_UMEM, LEDGER_UAR, LEDGER_PD };

struct ledger_object {
	uint32_t type; /* enum ledger_type; stored last */
	uint32_t handle;
	uint32_t number;                /* as the device has it: CQN, QPN, lkey, umem id, page id, PDN */
	uint32_t entries;               /* of a CQ; WQEBBs of an SQ. A power of two */
	uint64_t offset;                /* in the block: of CQEs, of the work queue. Of a UAR: of mmap(2) */
	uint64_t db_off;                /* in the block: of the doorbell record */
	uint64_t cookie;                /* of its events */
	uint32_t rq_entries, rq_stride; /* of a QP; 0, or powers of two */
};

struct ledger_block {          /* of the arena */
	uint64_t offset, size; /* size 0: none */
};

/** Rates per second, 0: none; times of CLOCK_MONOTONIC in us. */
struct ledger_limits {
	uint64_t rate, burst; /* of requests, as configured or as an operator set them */
	uint64_t bytes_rate;  /* of replies */
	uint64_t throttle_rate, throttle_until;
};

/** As the daemon last knew them; what the NIC has done since then is in its memory. */
struct ledger_counters {
	uint64_t done, posted;
	uint64_t hits, misses, bytes_out, unseen, iterations;
	uint64_t verdicts[LEDGER_VERDICTS];
	uint64_t read; /* stored last: outcomes are rather counted twice than not at all */
};

/** A message of a reply: a WRITE, or a SEND. */
struct ledger_message {
	uint16_t wqebb; /* of an instance, in the reply queue */
	uint8_t segments, conditional;
};

/** What a daemon that does not have the program of a recycled session needs to look after it. */
struct ledger_recycler {
	uint64_t progress;   /* in the block: of the word that the recycler counts in */
	uint64_t log;        /* the same: of what instances left in the reply queue (chain/ring/recycle.h) */
	uint16_t recv_en[8]; /* by section of it: WQEBBs of the recycler's ring in which its RECV_ENs are */
	uint32_t request_bytes, reply_bytes; /* of a reply: of the longest */
	uint16_t wqes;                       /* of a request */
	uint16_t sends;                      /* bit i: messages[i] is a SEND */
	uint16_t reply_wqebbs;               /* of an instance */
	uint16_t nmessages;                  /* 0: there are too many for the ledger */
	struct ledger_message messages[LEDGER_MESSAGES];
};

/** A connection of a client: a session, or one of several that are a session together (session/session.h). */
struct ledger_session {
	uint64_t number; /* what events of its connection carry: of the session, and that of the connection
			    above LEDGER_CONNECTION_SHIFT */
	uint64_t secret; /* of the first connection: shows that a further one comes from the same client */
	uint64_t since;  /* CLOCK_MONOTONIC, us */
	uint64_t image;  /* hash of what its instances are written from */
	uint32_t cm_id;
	uint8_t accepted;    /* ledger_accepted(); if it is recycled too, the next daemon goes on with it */
	uint8_t established; /* the client has the answer */
	uint8_t recycled; /* it goes on under the next daemon; else what follows .slot_rkey is not kept up */
	uint8_t further;  /* of the first connection: number of those that are accepted besides */
	char tenant[LEDGER_NAME], offload[LEDGER_NAME];
	uint8_t address[16]; /* of the client */
	uint64_t slot_addr;  /* of its reply slots */
	uint32_t slot_rkey, slot_size;
	uint32_t depth;
	uint32_t slots;                   /* instances: a power of two */
	uint32_t windows[LEDGER_WINDOWS]; /* slots of its regions and extents, from 1; 0: none */
	uint32_t false_alarms;
	uint32_t publishes; /* a recycled one, to whose recycler the daemon gives sections */
	uint64_t settled;   /* instances of which the store knows what became of their extents */
	struct ledger_recycler recycler;
	struct ledger_limits limits;
	struct ledger_counters counters;
};

/** Limits of all its sessions together, as an operator has set them, in place of those that are configured.
 */
struct ledger_override {
	uint64_t rate, burst, bytes_rate;
};

struct ledger_tenant {
	char name[LEDGER_NAME];
	struct ledger_override configured; /* that were in force before, and which these replace */
	struct ledger_override set;
	uint32_t is_set; /* stored last */
	uint32_t unused;
};

/** Memory of a file that is pinned and has a key. What it is of decides whether the next daemon uses it. */
struct ledger_window {
	uint64_t iova;
	uint64_t dev, ino;      /* the file */
	uint64_t offset, bytes; /* in the file */
	uint32_t pd;            /* slot, from 1 */
	uint32_t access;        /* enum rnic_access */
	uint32_t watch;         /* of the file, since before its pages were pinned; 0: none */
	uint32_t unused;
};

struct ledger_slot {
	uint32_t state; /* enum ledger_state */
	uint32_t kind;  /* enum ledger_kind */
	struct ledger_block block;
	struct ledger_object object[LEDGER_OBJECTS];
	union {
		struct ledger_session session;
		struct ledger_tenant tenant;
		struct ledger_window window;
		uint8_t room[488];
	};
};

_Static_assert(sizeof(struct ledger_head) <= LEDGER_PAGE, "the head has a page");
_Static_assert(sizeof(struct ledger_session) <= 488, "a session has its room");
_Static_assert(sizeof(struct ledger_object) == 48 && sizeof(struct ledger_slot) == 2048, "no padding");

#endif
