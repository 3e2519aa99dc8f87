/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * requests.h - messages between client and server of two-sided requests. Both run on one machine: host byte
 * order. The answer is a WRITE with immediate into the slot of the request; nothing is copied by a CPU.
 */
#ifndef TESTS_BENCH_WAYS_REQUESTS_H
#define TESTS_BENCH_WAYS_REQUESTS_H

#include <stdint.h>

/* instead of val_len: a get; of several keys; which of them exist; a delete */
enum {
	REQUEST_GET = UINT32_MAX,
	REQUEST_MGET = UINT32_MAX - 1,
	REQUEST_EXISTS = UINT32_MAX - 2,
	REQUEST_DELETE = UINT32_MAX - 3,
};
/* with val_len: only if the record has the checksum that stands between key and value */
#define REQUEST_IF (1u << 31)
enum { REQUEST_GATHER = 16 };  /* keys of a REQUEST_MGET, at most */
enum { REQUEST_INLINE = 128 }; /* bytes of inline data in a WQE, both ways */

struct request {
	uint32_t key_len; /* of several keys: their number */
	uint32_t val_len; /* or REQUEST_GET and the like; and REQUEST_IF */
	uint64_t to;      /* address of the slot */
	uint32_t rkey;
	uint32_t slot;   /* number of the slot, 16 bits, which comes back with the answer */
	uint8_t bytes[]; /* key, value; of several keys: length of 16 bits and key, one behind the other */
};

/**
 * The immediate of an answer. @status: as of struct reddn_result, 16 bits. Of REQUEST_MGET: a bit for each
 * key that was found; their records are in the slot, one behind the other, each padded as in the table. Of
 * REQUEST_EXISTS: 0, and the bits are in the slot, 64 of them.
 */
static inline uint32_t request_imm(uint32_t slot, int status)
{
	return slot << 16 | (uint16_t)status;
}

static inline uint32_t request_slot(uint32_t imm)
{
	return imm >> 16;
}

static inline int request_status(uint32_t imm)
{
	return (int16_t)(imm & 0xffff);
}

#endif
