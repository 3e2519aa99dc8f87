/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire.h - what client and daemon say to each other: the private data of the connection manager and the
 * layout of a reply slot. All integers are big-endian unless said otherwise.
 *
 * REQ carries struct reddn_wire_req (56 bytes, all that rdma_cm leaves), REP struct reddn_wire_rep, REJ
 * struct reddn_wire_rej. rdma_cm pads private data with zeroes: accept longer, refuse shorter.
 *
 * After that: request number n (from 0) is one SEND of exactly `arg_len` bytes. Its reply lands in reply slot
 * n % depth and ends with a WRITE_WITH_IMM whose immediate is n (mod 2^32). At most `depth` requests may be
 * outstanding; the client posts a receive for each before it sends. Replies come in request order.
 */
#ifndef PROTOCOL_WIRE_H
#define PROTOCOL_WIRE_H

#include <stdint.h>

#define REDDN_WIRE_MAGIC 0x5244444eu /* "RDDN" */
#define REDDN_WIRE_VERSION 1
#define REDDN_WIRE_PORT 7471
#define REDDN_WIRE_MAX_DEPTH 4096
/*
 * Bytes of a request that libreddn sends inline, in a WQE of two WQEBBs at most. A longer one is read from
 * memory by the client's NIC, which takes that another third of a microsecond (costs/costs.h).
 */
#define REDDN_WIRE_INLINE 108

struct reddn_wire_req {
	uint32_t magic;
	uint8_t version;
	uint8_t flags;      /* 0; with REDDN_REQ_END_REASON it is a struct reddn_wire_end_query */
	uint16_t depth;     /* outstanding requests and reply slots, >= 1 */
	uint64_t slot_addr; /* slot i starts at slot_addr + i * slot_size; 64-byte aligned */
	uint32_t slot_rkey; /* key with remote write to depth * slot_size bytes */
	uint32_t slot_size; /* bytes, multiple of 64 */
	char offload[24];   /* name in the catalog, padded with zeroes */
	uint8_t token[8];   /* proof of access, see token.h; 0: none */
} __attribute__((packed));
_Static_assert(sizeof(struct reddn_wire_req) == 56, "rdma_cm leaves 56 bytes in a REQ");

/*
 * A REQ that asks for no session: why did an earlier one end? A queue pair that has failed carries no last
 * words, so the client connects once more to ask, and the REJ that answers has them: REDDN_REJ_ENDED, _SERVED
 * or _FORGOTTEN. Only who knows slot_addr and slot_rkey of the session, and comes from its address, is told.
 * A server that does not know the flag answers REDDN_REJ_MALFORMED.
 */
enum reddn_wire_req_flag { REDDN_REQ_END_REASON = 1 };

struct reddn_wire_end_query {
	uint32_t magic;
	uint8_t version;
	uint8_t flags; /* REDDN_REQ_END_REASON */
	uint16_t reserved;
	uint64_t slot_addr; /* as in the REQ of the session */
	uint32_t slot_rkey;
	uint32_t reserved2;
	uint64_t session; /* its number, from the REP */
	uint8_t reserved3[24];
} __attribute__((packed));
_Static_assert(sizeof(struct reddn_wire_end_query) == 56, "as long as any other REQ");

enum reddn_wire_shape {
	REDDN_SHAPE_OPAQUE = 0, /* the application composes requests and reads replies */
	REDDN_SHAPE_TABLE = 1,  /* key-value get on a table: struct reddn_wire_table is valid */
};

/** Geometry of the table an offload looks up in; the client hashes with it (table-format.h). */
struct reddn_wire_table {
	uint64_t hash_seed;
	uint64_t buckets;   /* power of two */
	uint32_t max_key;   /* bytes */
	uint32_t max_value; /* bytes */
	uint8_t offset_len; /* bytes of a bucket offset in the request */
	uint8_t probes;     /* buckets a key may be in: 2 */
	uint8_t reserved[6];
} __attribute__((packed));

/** One argument of an offload, in the order of its program's text. */
struct reddn_wire_arg {
	uint8_t kind;  /* enum reddn_wire_kind */
	uint8_t bytes; /* >= 1; of a number at most 8 */
} __attribute__((packed));

enum reddn_wire_kind {
	REDDN_ARG_NUMBER = 0, /* unsigned */
	REDDN_ARG_BYTES = 1,
	REDDN_ARG_OFFSET = 2, /* unsigned: of a byte in a region */
};

/**
 * The next bytes of a request come from an argument: a number is big-endian, `bytes` long, with every bit
 * inverted if that is asked for; of that, or of the bytes of a string, those from `first` on, in reverse
 * order if that is asked for. One argument may be in several pieces, and in several forms.
 */
struct reddn_wire_piece {
	uint8_t arg;   /* index */
	uint8_t flags; /* enum reddn_wire_piece_flag */
	uint8_t first;
	uint8_t len; /* >= 1 */
} __attribute__((packed));

enum reddn_wire_piece_flag { REDDN_PIECE_REVERSED = 1, REDDN_PIECE_INVERTED = 2 };

enum { REDDN_WIRE_ARGS = 20, REDDN_WIRE_PIECES = 20 };

struct reddn_wire_rep {
	uint32_t magic;
	uint8_t version;
	uint8_t shape;
	uint16_t depth;     /* granted, = asked */
	uint32_t arg_len;   /* bytes of a request */
	uint32_t reply_max; /* bytes a reply may take of a slot */
	uint64_t session;   /* number of the session in the daemon's log */
	struct reddn_wire_table table;
	/* How a request is made of arguments: the lengths of the pieces add up to arg_len */
	uint8_t nargs, npieces;
	uint8_t reserved[2];
	struct reddn_wire_arg arg[REDDN_WIRE_ARGS];
	struct reddn_wire_piece piece[REDDN_WIRE_PIECES];
} __attribute__((packed));
_Static_assert(sizeof(struct reddn_wire_rep) <= 196, "a REP holds 196 bytes");

/** Why a connection was refused; the text says it in words. */
enum reddn_wire_reason {
	REDDN_REJ_VERSION = 1, /* need: version spoken here */
	REDDN_REJ_MALFORMED = 2,
	REDDN_REJ_OFFLOAD = 3,   /* no such offload */
	REDDN_REJ_DEPTH = 4,     /* need: largest depth allowed */
	REDDN_REJ_SLOT = 5,      /* need: slot_size this offload wants */
	REDDN_REJ_RESOURCES = 6, /* the server is full */
	REDDN_REJ_INTERNAL = 7,
	REDDN_REJ_SHUTDOWN = 8,
	REDDN_REJ_ACCESS = 9,  /* from there, with that token, this is not allowed */
	REDDN_REJ_QUOTA = 10,  /* of the tenant; need: what is left of it, or the quota */
	REDDN_REJ_BANNED = 11, /* need: seconds until the client may come again */
	REDDN_REJ_ENDED = 12,  /* of a REQ_END_REASON; need: enum reddn_wire_end */
	REDDN_REJ_SERVED =
		13, /* of a REQ_END_REASON: that session has not ended, as far as the server knows */
	REDDN_REJ_FORGOTTEN = 14, /* of a REQ_END_REASON: no such session of that client, or too long ago */
};

/** How a session ended. */
enum reddn_wire_end {
	REDDN_WIRE_END_FAILED = 1,      /* its work in the server's NIC failed */
	REDDN_WIRE_END_PROTOCOL = 2,    /* the client broke a rule of the protocol */
	REDDN_WIRE_END_UNREACHABLE = 3, /* the client's NIC did not take replies, or did not answer */
	REDDN_WIRE_END_BUDGET = 4,      /* a request took more than the offload allows */
	REDDN_WIRE_END_OPERATOR = 5,    /* the administrator of the server ended it */
	REDDN_WIRE_END_SHUTDOWN = 6,    /* the server stops, or empties itself */
	REDDN_WIRE_END_CLIENT = 7,      /* the client disconnected */
	REDDN_WIRE_END_IDLE = 8,        /* the client has asked for nothing for too long */
};

struct reddn_wire_rej {
	uint32_t magic;
	uint8_t version;
	uint8_t reason; /* enum reddn_wire_reason */
	uint16_t reserved;
	uint32_t need;  /* the number that would have been right, 0 if there is none */
	char text[132]; /* UTF-8, zero-terminated */
} __attribute__((packed));
_Static_assert(sizeof(struct reddn_wire_rej) <= 148, "a REJ holds 148 bytes");

/*
 * Reply slot of a TABLE offload. The client clears the first 8 bytes of `record` before it sends. A hit puts
 * the record (struct reddn_record of table-format.h) at `record`; then, hit or miss, the final WRITE_WITH_IMM
 * puts the table's `struct reddn_table_live` at `live`. Slot size needed: 64 + largest record, rounded up
 * to 64.
 */
enum { REDDN_SLOT_LIVE = 0, REDDN_SLOT_RECORD = 64 };

/*
 * Request of a TABLE offload, for each of the two candidate buckets b in probe order:
 *   7 bytes            the fingerprint, byte-reversed (fp[6] first)
 *   offset_len bytes   byte offset of the bucket in the bucket array, big-endian
 */

#endif
