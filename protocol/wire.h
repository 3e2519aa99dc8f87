/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire.h - the protocol between client and daemon: the private data of the connection manager, and the layout
 * of a reply slot. All integers are big-endian unless said otherwise. reddn-wire(7) describes it for people
 * who write a client.
 *
 * A connect request (REQ) carries struct reddn_wire_req, 56 bytes, which is all that rdma_cm leaves. A reply
 * (REP) carries struct reddn_wire_rep, a refusal (REJ) struct reddn_wire_rej. rdma_cm pads private data with
 * zeroes: accept longer data, refuse shorter.
 *
 * Request number n (from 0) is one SEND of exactly `request_len` bytes, or, if the offload takes a payload,
 * of up to `payload_max` more. Its reply goes to reply slot n % depth and ends with a WRITE_WITH_IMM whose
 * immediate is n (mod 2^32). At most `depth` requests are outstanding. The client posts a receive for each
 * request before it sends it. Replies come in the order of the requests; one with another number than that
 * which is due comes after a failure of the server, and ends the connection. Where a device has no
 * immediates, a reply ends with two messages (REDDN_REP_SENDS).
 */
#ifndef PROTOCOL_WIRE_H
#define PROTOCOL_WIRE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define REDDN_WIRE_MAGIC 0x5244444eu /* "RDDN" */
#define REDDN_WIRE_VERSION 2
#define REDDN_WIRE_PORT 7471
#define REDDN_WIRE_MAX_DEPTH 4096
/*
 * Longest request, in bytes, that libreddn sends inline, in a WQE of at most two WQEBBs. The client's NIC
 * reads a longer one from memory, which takes another third of a microsecond (costs/costs.h).
 */
#define REDDN_WIRE_INLINE 108

struct reddn_wire_req {
	uint32_t magic;
	uint8_t version;
	uint8_t flags;      /* enum reddn_wire_req_flag */
	uint16_t depth;     /* outstanding requests, and reply slots: 1 to REDDN_WIRE_MAX_DEPTH */
	uint64_t slot_addr; /* slot i starts at slot_addr + i * slot_size; 64-byte aligned */
	uint32_t slot_rkey; /* key with remote write to depth * slot_size bytes */
	uint32_t slot_size; /* bytes, multiple of 64 */
	char offload[24];   /* name in the catalog, padded with zeroes; or struct reddn_wire_join */
	uint8_t token[8];   /* proof of access, see token.h; 0: none */
} __attribute__((packed));
_Static_assert(sizeof(struct reddn_wire_req) == 56, "rdma_cm leaves 56 bytes in a REQ");

/*
 * REDDN_REQ_SLOT_GUESS: the client does not know how large slots must be, and slot_size is its guess. A
 * REDDN_REJ_SLOT then is an answer, and the server does not count it as a refusal.
 *
 * REDDN_REQ_NO_IMMEDIATES: the client's device takes no WRITE_WITH_IMM, as devices of iWARP. Replies then end
 * as with REDDN_REP_SENDS, or the server refuses, because its NIC cannot do that for this offload.
 *
 * REDDN_REQ_END_REASON: the REQ is a struct reddn_wire_end_query. It asks why an earlier session ended, and
 * opens none. A failed queue pair cannot carry a last message, so the client connects once more to ask, and
 * the REJ holds the answer: REDDN_REJ_ENDED, _NOT_ENDED or _UNKNOWN. The server answers only a client that
 * comes from the session's address and knows the session's slot_addr and slot_rkey.
 *
 * REDDN_REQ_JOIN: the connection is a further one of a session that exists, and `offload` is a struct
 * reddn_wire_join. It has queues, slots, numbers and an order of replies of its own. What limits the session
 * limits all its connections together, and when one of them ends, all end. The server takes up to
 * REDDN_WIRE_CONNECTIONS of them, from the address of the first one and with a token like its own; another
 * request is answered by REDDN_REJ_UNKNOWN.
 *
 * REDDN_REQ_DESCRIBE: the REQ is a struct reddn_wire_query, too, about a session that goes on. It asks for
 * the names and types of the offload's arguments and of the fields of its reply, which a REP has no room for.
 * The answer is REDDN_REJ_DESCRIBED, _UNKNOWN, or _RESOURCES: ask again later.
 *
 * A server that does not know a flag answers REDDN_REJ_MALFORMED.
 */
enum reddn_wire_req_flag {
	REDDN_REQ_END_REASON = 1,
	REDDN_REQ_SLOT_GUESS = 2,
	REDDN_REQ_NO_IMMEDIATES = 4,
	REDDN_REQ_JOIN = 8,
	REDDN_REQ_DESCRIBE = 16,
};

enum { REDDN_WIRE_CONNECTIONS = 16 };

/*
 * An offload that gets may have parts: offloads of their own, named after it. reddn_wire_table.part names
 * those of gets of several keys, and of questions which keys exist, by the number of keys, with the bit
 * PART_EXISTS beside it. An offload of a store may have two more, without a number: for puts and deletes, and
 * for those on a condition.
 */
enum {
	REDDN_WIRE_PARTS = 4, /* of an offload, with a number */
	REDDN_WIRE_PART_EXISTS = 0x80,
	REDDN_WIRE_PART_PUT = 0,
	REDDN_WIRE_PART_PUT_IF = 0x80,
};

/** Keys of one request of a part. */
static inline unsigned reddn_wire_part_keys(uint8_t part)
{
	return part & (REDDN_WIRE_PART_EXISTS - 1u);
}

/** The name of a part of @whole. Returns its length, as snprintf(). */
static inline int reddn_wire_part_name(char *name, size_t size, const char *whole, uint8_t part)
{
	const unsigned keys = reddn_wire_part_keys(part);

	if (!keys)
		return snprintf(name, size, part == REDDN_WIRE_PART_PUT_IF ? "%s.put_if" : "%s.put", whole);
	if (part & REDDN_WIRE_PART_EXISTS)
		return snprintf(name, size, "%s.exists%u", whole, keys);
	return snprintf(name, size, "%s.mget%u", whole, keys);
}

struct reddn_wire_join {
	uint64_t session; /* from the REP of the first connection */
	uint64_t secret;  /* the same */
	uint8_t reserved[8];
} __attribute__((packed));
_Static_assert(
	sizeof(struct reddn_wire_join) == sizeof(((struct reddn_wire_req *)0)->offload), "in its place");

/** A question about a session. */
struct reddn_wire_query {
	uint32_t magic;
	uint8_t version;
	uint8_t flags; /* REDDN_REQ_END_REASON or REDDN_REQ_DESCRIBE, alone */
	uint16_t reserved;
	uint64_t slot_addr; /* as in the REQ of the session */
	uint32_t slot_rkey; /* as in the REQ of the session */
	uint32_t from;      /* REDDN_REQ_DESCRIBE: first byte of the description that is wanted */
	uint64_t session;   /* session number from the REP */
	uint8_t reserved2[24];
} __attribute__((packed));
_Static_assert(sizeof(struct reddn_wire_query) == 56, "as long as any other REQ");

/*
 * A description is printable ASCII text of statements. Each ends with a semicolon, and is words with one
 * space between them:
 *
 *     program NAME;              what the program calls itself
 *     arg NAME TYPE;             of the arguments, in their order
 *     reply NAME OFFSET TYPE;    part of the reply slot, bytes from its start, in the order of the offsets
 *
 * TYPE of an argument is uN (a number of N bits), "bytes N", or "offset N REGION" (N bytes). That of a part
 * of the reply is u8, beN or leN (a number of N bits, big- or little-endian), "bytes N", or "max N": up to N
 * bytes. Ignore statements that begin with other words, and what follows the known words of one.
 */
enum { REDDN_WIRE_DESCRIPTION_MAX = 16384 }; /* bytes; a program has far fewer */

enum reddn_wire_shape {
	REDDN_SHAPE_OPAQUE = 0, /* the application composes requests and reads replies */
	REDDN_SHAPE_TABLE = 1,  /* key-value get on a table: struct reddn_wire_table is valid */
	REDDN_SHAPE_MGET = 2,   /* the same of up to reddn_wire_table.keys keys in one request */
	REDDN_SHAPE_PUT = 3,    /* put and delete in a store: struct reddn_wire_table is valid */
	REDDN_SHAPE_EXISTS = 4, /* which of up to reddn_wire_table.keys keys there are: the same */
	REDDN_SHAPE_INTO = 5,   /* a get that is answered by a message: the same */
	REDDN_SHAPE_PUT_IF = 6, /* put and delete, on a condition: the same */
};

/** Geometry of the table or store that an offload searches; the client hashes with it (table-format.h). */
struct reddn_wire_table {
	uint64_t hash_seed;
	uint64_t buckets;   /* power of two */
	uint32_t max_key;   /* bytes */
	uint32_t max_value; /* bytes */
	uint8_t offset_len; /* bytes of a bucket offset in the request */
	uint8_t probes;     /* buckets a key may be in: 2 */
	uint8_t keys;       /* of a request, with REDDN_SHAPE_MGET and _EXISTS; else 0 */
	uint8_t header;     /* of a store: bytes of the server's in front of each record; 0: it is a table */
	union {
		/* REDDN_SHAPE_PUT, _PUT_IF: bytes that a request may have behind its request_len */
		uint32_t payload_max;
		/* REDDN_SHAPE_TABLE: keys of a request of each part that the client may use; 0: no part */
		uint8_t part[REDDN_WIRE_PARTS];
	};
} __attribute__((packed));

/* Of a request, at most; and of one that is answered by records */
enum { REDDN_WIRE_KEYS = 64, REDDN_WIRE_RECORDS = 16 };

/** One argument of an offload, in the order of its program's text. */
struct reddn_wire_arg {
	uint8_t kind;  /* enum reddn_wire_kind */
	uint8_t bytes; /* size, >= 1; at most 8 for a number */
} __attribute__((packed));

enum reddn_wire_kind {
	REDDN_ARG_NUMBER = 0, /* unsigned */
	REDDN_ARG_BYTES = 1,
	REDDN_ARG_OFFSET = 2, /* unsigned: offset of a byte in a region */
};

/*
 * With REDDN_SHAPE_MGET and _EXISTS arguments and fields are those of one key: a request has them table.keys
 * times, one after the other.
 */

/**
 * One field of a request: `len` bytes of an argument, from byte `first` on. A number is encoded big-endian in
 * as many bytes as its argument has, with every bit inverted under REDDN_FIELD_INVERTED. REDDN_FIELD_REVERSED
 * puts the bytes of the field in reverse order. Several fields may use the same argument.
 */
struct reddn_wire_field {
	uint8_t arg;   /* index */
	uint8_t flags; /* enum reddn_wire_field_flag */
	uint8_t first;
	uint8_t len; /* >= 1 */
} __attribute__((packed));

enum reddn_wire_field_flag { REDDN_FIELD_REVERSED = 1, REDDN_FIELD_INVERTED = 2 };

enum { REDDN_WIRE_ARGS = 20, REDDN_WIRE_FIELDS = 20 };

struct reddn_wire_rep {
	uint32_t magic;
	uint8_t version;
	uint8_t shape;        /* enum reddn_wire_shape */
	uint16_t depth;       /* granted; equal to the depth in the REQ */
	uint32_t request_len; /* bytes of a request */
	uint32_t reply_max;   /* bytes of a slot that a reply may use */
	uint64_t session;     /* number of the session in the daemon's log */
	struct reddn_wire_table table;
	/* How to encode arguments as a request: the lengths of the fields, for each key, add up to
	 * request_len */
	uint8_t nargs, nfields;
	uint8_t flags; /* enum reddn_wire_rep_flag */
	uint8_t reserved;
	struct reddn_wire_arg arg[REDDN_WIRE_ARGS];
	struct reddn_wire_field field[REDDN_WIRE_FIELDS];
	uint64_t secret;  /* for further connections; 0: the session takes none */
	uint64_t program; /* XXH3 of the description, 64 bits: another program has another; 0: not reported */
} __attribute__((packed));
_Static_assert(sizeof(struct reddn_wire_rep) <= 196, "a REP holds 196 bytes");

/*
 * REDDN_REP_SENDS: the client or the server has no WRITE_WITH_IMM. In its place there is a WRITE, and then a
 * SEND of the 4 bytes that would be the immediate, into the receive of the client. A server may choose so for
 * any client, so that a receive has room for 4 bytes.
 *
 * REDDN_REP_READS: the program writes to no region. A client whose session is lost may send the requests
 * again that have no reply.
 */
enum reddn_wire_rep_flag { REDDN_REP_SENDS = 1, REDDN_REP_READS = 2 };

/** Reason of a REJ. The comment names the content of `detail`, which is 0 for the others. */
enum reddn_wire_reason {
	REDDN_REJ_VERSION = 1, /* a version that the server speaks */
	REDDN_REJ_MALFORMED = 2,
	REDDN_REJ_OFFLOAD = 3, /* no such offload */
	REDDN_REJ_DEPTH = 4,   /* a depth that is allowed: the most, or a larger one that is a power of two */
	REDDN_REJ_SLOT = 5,    /* the smallest slot_size that the offload takes */
	REDDN_REJ_RESOURCES = 6, /* the server is full */
	REDDN_REJ_INTERNAL = 7,
	REDDN_REJ_SHUTDOWN = 8,
	REDDN_REJ_ACCESS = 9,     /* not allowed from that address or with that token */
	REDDN_REJ_QUOTA = 10,     /* the tenant's quota, or what is left of it */
	REDDN_REJ_BANNED = 11,    /* seconds until the client may connect again */
	REDDN_REJ_ENDED = 12,     /* answers REQ_END_REASON: enum reddn_wire_end */
	REDDN_REJ_NOT_ENDED = 13, /* answers REQ_END_REASON: the server has not ended that session yet */
	REDDN_REJ_UNKNOWN = 14,   /* answers questions and REQ_JOIN: no session of that client, or too old */
	REDDN_REJ_DESCRIBED = 15, /* answers REQ_DESCRIBE: bytes of the description; text: as many as fit */
};

/** How a session ended. */
enum reddn_wire_end {
	REDDN_WIRE_END_FAILED = 1,      /* its work in the server's NIC failed */
	REDDN_WIRE_END_PROTOCOL = 2,    /* the client broke a rule of the protocol */
	REDDN_WIRE_END_UNREACHABLE = 3, /* the client's NIC did not accept replies, or did not answer */
	REDDN_WIRE_END_BUDGET = 4,      /* a request used more than the offload allows */
	REDDN_WIRE_END_OPERATOR = 5,    /* the administrator of the server ended it */
	REDDN_WIRE_END_SHUTDOWN = 6,    /* the server stops or drains */
	REDDN_WIRE_END_CLIENT = 7,      /* the client disconnected */
	REDDN_WIRE_END_IDLE = 8,        /* the client sent no request for too long */
};

struct reddn_wire_rej {
	uint32_t magic;
	uint8_t version;
	uint8_t reason; /* enum reddn_wire_reason */
	uint16_t reserved;
	uint32_t detail; /* depends on the reason; 0: none */
	char text[132];  /* the reason in words: UTF-8, zero-terminated */
} __attribute__((packed));
_Static_assert(sizeof(struct reddn_wire_rej) <= 148, "a REJ holds 148 bytes");

/*
 * Reply slot of a TABLE offload. The client clears the first 8 bytes of `record` before it sends. A hit puts
 * the record (struct reddn_record of table-format.h) at `record`. Then, on a hit or a miss, the final
 * WRITE_WITH_IMM puts the table's struct reddn_table_live at `live`. The slot needs 64 bytes plus the largest
 * record, rounded up to a multiple of 64.
 */
enum { REDDN_SLOT_LIVE = 0, REDDN_SLOT_RECORD = 64 };

/*
 * The same of a store (`header` is not 0): `header` bytes are in front of the record, at REDDN_SLOT_RECORD,
 * so that the slot needs as many more. The first 8 of them are the version of what is there, little-endian:
 * each put gives it another. Behind them the record is as that of a table, or there is none: the key is
 * absent.
 */

/*
 * An MGET offload has a request like that for each key, one after the other, all zero where there are fewer
 * keys. The slot has the live line once, and for key k the record at REDDN_SLOT_RECORD + k * ((reply_max -
 * REDDN_SLOT_RECORD) / keys).
 *
 * Request of a TABLE offload, for each of the two candidate buckets b in probe order:
 *   6 bytes            the fingerprint, byte-reversed (fp[5] first)
 *   offset_len bytes   byte offset of the bucket in the bucket array, big-endian
 *
 * Request of a PUT offload: the same for one bucket, the 7 bytes of the record's expiry (table-format.h),
 * then the record, struct reddn_record with key and value, or nothing: then the key is absent. What is before
 * the record has `header` bytes. The reply puts struct reddn_wire_put at the beginning of the slot.
 *
 * Request of a PUT_IF offload: the same, but in place of the expiry the version of what the key must
 * have, big-endian. The reply has struct reddn_wire_put_if.
 */
struct reddn_wire_put {
	uint64_t expected; /* the locator that the bucket had */
	/* What was there when the NIC replaced it, little-endian: equal to `expected` (swapped) if it did.
	 * REDDN_PUT_ABSENT: it did nothing, because the key is not in that bucket; another: another client
	 * was first */
	uint64_t was;
	uint64_t moves; /* of the live line, little-endian, as it was after the bucket was read */
	uint64_t state; /* the same */
} __attribute__((packed));

#define REDDN_PUT_ABSENT UINT64_MAX

struct reddn_wire_put_if {
	struct reddn_wire_put put;
	/* Of what the bucket had, little-endian: if it is not that of the request, nothing was replaced. All
	 * bits set: the key is not in that bucket */
	uint8_t version[7];
	/* And its offset, as in a bucket: if that is not the one of `expected`, another client has replaced
	 * something in between */
	uint8_t off[5];
} __attribute__((packed));

#define REDDN_VERSION_NONE (UINT64_MAX >> 8)

/*
 * The request of an EXISTS offload that answers parts of buckets has for each key, and for each of its two
 * candidate buckets b in probe order, offset_len bytes: the offset in the bucket array, big-endian, of the
 * part of b that is asked for.
 * That part is REDDN_PART_TABLE or, of a store, REDDN_PART_STORE bytes, which end with the first two of the
 * mark. What is of fewer keys is zero.
 *
 * The slot has the live line, which the NIC reads after all buckets, and from REDDN_SLOT_RECORD on the parts
 * in the order of the request. A key exists if one of its parts ends with the two lowest bytes of its
 * fingerprint, and, in a store, begins with a length other than `header`. If none does it is absent, on the
 * same condition as a miss of a get. Another key may have the same two bytes, and so has an empty bucket if
 * they are 0: of absent keys, each probe makes one in 2^16 exist by that, or 1.016, because a byte of a
 * fingerprint that would be the tag is another one (258^2 / 2^32).
 */
enum { REDDN_PART_END = 10, REDDN_PART_TABLE = 2, REDDN_PART_STORE = REDDN_PART_END };

/*
 * One that compares itself has requests as those of a MGET offload, which are longer: by that a client knows
 * it. Each part has REDDN_PART_EXACT bytes, the first of which is 1 if the bucket has the fingerprint, and
 * else 0; the others mean nothing. In a store that is so also while the entry has no record. No other key
 * exists by chance, but one with the same fingerprint.
 */
enum { REDDN_PART_EXACT = 8 };

/*
 * The request of an INTO offload is that of a TABLE one, and behind it the low 32 bits of its number. The
 * answer is one SEND: the live line, that number, and on a hit the record, in a store with its header in
 * front of it. Nothing is written into slots, so the client need not give the server a key for them. It posts
 * a receive for each request before it sends it, and not more than that: it chooses where the value of this
 * one goes.
 */
enum { REDDN_INTO_NUMBER = 64, REDDN_INTO_NUMBER_BYTES = 4, REDDN_INTO_RECORD = 68 };

/** Bytes of the part that is answered, for a table with this `header`. */
static inline unsigned reddn_wire_part(unsigned header)
{
	return header ? REDDN_PART_STORE : REDDN_PART_TABLE;
}

#endif
