/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link.h - a client's connection to one of the servers of this directory: rdma_cm, one queue pair, one CQ,
 * one registered memory. Errors: 0 or a negative errno, with a message on stderr.
 */
#ifndef TESTS_BENCH_WAYS_LINK_H
#define TESTS_BENCH_WAYS_LINK_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Private data of a client: its request to the server. Big-endian. */
struct link_wish {
	uint32_t way;   /* enum link_way */
	uint32_t depth; /* requests that can be outstanding */
	uint32_t keys;  /* of a request at most, for LINK_REQUESTS; for LINK_TABLE records to put, or 0 */
} __attribute__((packed));

enum link_way {
	LINK_TABLE,     /* READs of a table file as it is */
	LINK_HOPSCOTCH, /* READs of a hopscotch array and of the file's heap */
	LINK_LIST,      /* READs of the nodes and of the values of a list */
	LINK_REQUESTS,  /* requests that the server's CPU answers */
};

/** Private data of the server's reply. Big-endian. The second range is the hopscotch array, the list, or
 * memory for records that the client puts. */
struct link_offer {
	struct link_range {
		uint64_t addr, size;
		uint32_t rkey;
	} __attribute__((packed)) file, array;
	uint32_t request_max, reply_max; /* bytes, for LINK_REQUESTS */
} __attribute__((packed));

struct link {
	struct rdma_cm_id *id;
	bool connected; /* otherwise rdma_disconnect() would wait for an event that does not come */
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *mem;
	size_t bytes;            /* size of the memory */
	struct link_offer offer; /* from the server */
};

/** @cap: of the queue pair. The CQ has room for all its completions. */
int link_connect(
	struct link *l, const char *host, uint16_t port, struct link_wish wish, struct ibv_qp_cap cap);
/** Allocates zeroed memory, registered for local and remote writes, in place of the earlier one. */
int link_memory(struct link *l, size_t bytes);
void link_close(struct link *l);

#endif
