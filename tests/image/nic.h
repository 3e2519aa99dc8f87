/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic.h - executes the WQEs of a chain in the abstract (values.h), as they lie in memory, and looks at each
 * byte that a NIC would heed. Private to the second opinion on images (check.h).
 *
 * Memory is a list of spaces. The chain's own space is known byte by byte, and every access to it must be to
 * a constant place within it, because its key spans other instances too. What a region holds is anything; its
 * key spans it and nothing else, so that a place in it may be any. The reply slot is the client's.
 */
#ifndef TESTS_IMAGE_NIC_H
#define TESTS_IMAGE_NIC_H

#include "reddnd/chain/ir/build.h"
#include "tests/image/values.h"

enum space_kind { SPACE_OWN, SPACE_REGION, SPACE_SLOT, SPACE_CQE };

struct space {
	uint8_t kind; /* enum space_kind */
	bool writable, steered, shared;
	uint32_t key;
	uint64_t base, size; /* size 0, of a region: not known */
	struct word *words;  /* of its own space */
	char name[24];
};

enum { SPACES = 24 };

struct nic {
	struct pool_of_cases *pool;
	struct space space[SPACES];
	unsigned nspaces;
	bool ignores_index; /* the device: of WQEs */
	bool swapped_old;   /* the device: old values of atomics have their bytes in reverse order */
	uint32_t decisions; /* so far */
	char *why;          /* the first thing that is wrong */
	size_t size;
};

/** A WQE: where it is, whose it is. */
struct nic_wqe {
	struct space *in;
	uint32_t at;
	uint8_t ds;      /* as it was posted */
	struct actor by; /* for what one queue knows of another */
	bool reply;      /* of the queue that the client is connected to */
	bool renewed;    /* its index and its number may change, by values of the ring itself */
	const struct chain_place
		*local; /* for the declared lengths of its data segments; NULL: there are none */
	const struct nic_publish *publish; /* of the chain, or NULL */
};

/** What an image has about its publish. */
struct nic_publish {
	const struct space *in, *scratch, *words; /* words: the region that the publish changes */
	uint32_t at, was;                         /* of its WQE; of what it finds, in scratch */
	bool extent;                              /* else a constant */
};

struct space *nic_add(struct nic *n, const struct space *s);
struct space *nic_of_key(struct nic *n, uint32_t key);
/** Bytes that are there before anything runs. */
void nic_fill(struct nic *n, struct space *s, const uint8_t *bytes);
/** @len bytes at @at of an own space become anything of @from (bits of enum value_origin), certainly. */
void nic_receive(struct nic *n, struct space *s, uint32_t at, uint32_t len, uint8_t from);
/** Marks the keys of a WQE, which nobody may read. */
void nic_mark_keys(struct nic *n, const struct nic_wqe *w);

/** The opcodes that the WQE may have, as a set. */
struct bytes nic_opcodes(const struct nic_wqe *w);
uint32_t nic_get32(const struct nic_wqe *w, unsigned at); /* of bytes that are constant */
/** Executes @w. False if something is wrong, with the reason in n->why. */
bool nic_execute(struct nic *n, const struct nic_wqe *w);
/** What is to be true of @w at any time: of the bytes that have no business to change. */
bool nic_check(struct nic *n, const struct nic_wqe *w);

#endif
