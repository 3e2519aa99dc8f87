/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test-rig.h - for tests of this room: stores in memory, and records.
 */
#ifndef STORE_TEST_RIG_H
#define STORE_TEST_RIG_H

#include "protocol/table-hash.h"
#include "reddnd/store/store.h"

struct rig {
	uint64_t size, buckets, chunk, chunks;
	uint32_t header, max_key, max_value;
	bool evict;
	uint8_t *file;
	struct reddn_table_header *h;
	uint64_t *words; /* of the buckets */
	uint8_t *heap;
	uint64_t null;
};

/** An empty store of rig->buckets buckets and so on in rig->file, which the test frees. */
void rig_make(struct rig *rig);
/** Another one with the same bytes; where what lies in it is. */
void rig_look(struct rig *copy, const struct rig *rig, uint8_t *file);
/** store_open(), which must succeed, and the first grace. */
struct store *rig_open(const struct rig *rig);

/** Bytes of the message that puts the value of @val_len bytes for a key of 4 bytes, header included; fills in
 * @record what follows the header. @val is repeated. */
uint32_t rig_record(const struct rig *rig, uint8_t *record, uint32_t key, uint64_t val, uint32_t val_len);
struct reddn_place rig_place(const struct rig *rig, uint32_t key);
/** The bucket that has the key; -1: none has */
int64_t rig_bucket(const struct rig *rig, uint32_t key);

/** Work and graces until nothing is left to do. */
void rig_settle(struct store *s);
/** What a NIC does with a message of @bytes that has come into the extent of @at, whose key has a bucket; and
 * what store_published() returns then. */
bool rig_publish(struct store *s, const struct rig *rig, uint64_t at, uint32_t key, uint32_t bytes);

enum { RIG_MESSAGE = 128 };

/** A client puts, with a value of 16 bytes, until it is done; -ENOSPC: the store is full. */
int rig_put(struct store *s, const struct rig *rig, uint32_t key, uint64_t val);
void rig_delete(struct store *s, const struct rig *rig, uint32_t key);

#endif
