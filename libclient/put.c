/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/put.h"

/*
 * FULL_ENOUGH: so often in a row must the server have no room when the key is in neither bucket. It may have
 * had none for another key, and not have seen this one yet, which takes it up to a few hundred us: the pauses
 * between so many are 2 ms at least.
 */
enum { PAUSE_NS = 20000, PAUSE_MOST_NS = 1000000, FULL_ENOUGH = 8 };

enum { LEN_BYTES = sizeof(((struct reddn_bucket *)0)->len) };

uint64_t reddn_put_pad(const struct reddn_geometry *g, uint8_t *memory)
{
	const struct reddn_record *r = reddn_put_record(memory);
	uint64_t record = REDDN_PUT_RECORD + reddn_record_size(r->key_len, r->val_len),
		 size = reddn_put_size(g, r->key_len, r->val_len);

	memset(memory + record, 0, size - record);
	return size;
}

void reddn_put_compose(const struct reddn_geometry *g, uint8_t *memory, const void *key, size_t key_len,
	const void *value, size_t value_len, bool apart)
{
	const struct reddn_apart all = {
		.record = memory + REDDN_PUT_RECORD, .value = value, .room = value_len};
	struct reddn_record *r = (struct reddn_record *)(memory + REDDN_PUT_RECORD);

	r->key_len = (uint32_t)key_len;
	r->val_len = (uint32_t)value_len;
	memcpy(r->bytes, key, key_len);
	if (value_len && !apart)
		memcpy(r->bytes + key_len, value, value_len);
	reddn_put_pad(g, memory);
	r->sum = apart ? reddn_apart_sum(&all, r->key_len, r->val_len) : reddn_record_sum(r);
}

uint8_t *reddn_put_address(const struct reddn_geometry *g, uint8_t *memory, const struct reddn_put *put)
{
	const struct reddn_record *r = reddn_put_record(memory);
	const struct reddn_place p = reddn_hash_key(g->seed, g->buckets, r->bytes, r->key_len);
	uint32_t len = reddn_probe_len(g);
	uint8_t both[REDDN_REQUEST_ROOM], *at = memory + REDDN_PUT_RECORD - g->header;
	uint64_t word = htobe64((put->expiry ? put->expiry : put->asked) << (64 - 8 * REDDN_STORE_VERSION));

	reddn_request_write(g, &p, both);
	memcpy(at, both + put->probe * len, len);
	memcpy(at + len, &word, REDDN_STORE_VERSION);
	return at;
}

/*
 * Not in this bucket. What needs a record has nothing to do if the key was in neither, and no entry moved
 * meanwhile. That is known by three answers in a row with the same even number of moves: both buckets were
 * read between two readings of it, whether a server reads it before a bucket or after it.
 */
static enum reddn_put_state absent(struct reddn_put *p, bool needs_record, const struct reddn_wire_put *now)
{
	unsigned n = p->absent;
	uint64_t moves = le64toh(now->moves), before = p->moves[p->probe];
	bool full = le64toh(now->state) & REDDN_TABLE_FULL;

	p->moves[p->probe] = moves;
	p->probe = !p->probe;
	p->absent = (uint8_t)(n < UINT8_MAX ? n + 1 : UINT8_MAX - 1);
	if (needs_record && n >= 2 && moves == before && !(moves & 1))
		return REDDN_PUT_NOTHING;
	if (n % 2 == 0 || (needs_record && n == 1))
		return REDDN_PUT_OTHER;
	p->full = full && !needs_record ? p->full + 1 : 0;
	return p->full == FULL_ENOUGH ? REDDN_PUT_FULL : REDDN_PUT_NO_ENTRY;
}

enum reddn_put_state reddn_put_learn(
	struct reddn_put *p, const struct reddn_geometry *g, bool is_delete, const struct reddn_wire_put *now)
{
	if (now->was == REDDN_PUT_ABSENT)
		return absent(p, is_delete, now);
	p->absent = p->full = 0;
	if (be64toh(now->expected) != le64toh(now->was))
		return REDDN_PUT_CONFLICT;
	/* What the bucket had was no record */
	if (is_delete && reddn_locator_len(now->was) == g->header)
		return REDDN_PUT_NOTHING;
	return REDDN_PUT_DONE;
}

enum reddn_put_state reddn_put_if_learn(struct reddn_put *p, const struct reddn_geometry *g,
	const struct reddn_wire_put_if *now, uint64_t *version)
{
	const uint64_t expected = be64toh(now->put.expected);
	const bool is_record = reddn_locator_len(expected) != g->header;
	enum reddn_put_state state;
	uint64_t seen = 0;

	*version = 0;
	memcpy(&seen, now->version, sizeof(now->version));
	seen = le64toh(seen);
	if (seen == REDDN_VERSION_NONE) {
		state = absent(p, p->version, &now->put);
		return state == REDDN_PUT_NOTHING ? REDDN_PUT_VERSION : state;
	}
	p->absent = p->full = 0;
	if (expected == le64toh(now->put.was))
		return REDDN_PUT_DONE;
	if (now->put.was != REDDN_PUT_ABSENT ||
		memcmp(now->off, (const uint8_t *)&expected + LEN_BYTES, sizeof(now->off)) != 0)
		return REDDN_PUT_CONFLICT;
	if (!is_record && !p->version) {
		p->asked = seen;
		return REDDN_PUT_AGAIN;
	}
	*version = is_record ? seen : 0;
	return REDDN_PUT_VERSION;
}

uint64_t reddn_put_pause(unsigned times)
{
	uint64_t ns = PAUSE_NS;

	while (times-- && ns < PAUSE_MOST_NS)
		ns *= 2;
	return ns < PAUSE_MOST_NS ? ns : PAUSE_MOST_NS;
}
