/* SPDX-License-Identifier: BSD-2-Clause */
/* way-read.c - gets by one-sided READs: the ways differ in the READs before that of the record. One of them
 * also puts and deletes. */
#include "tests/bench/ways/hopscotch.h"
#include "tests/bench/ways/link.h"
#include "tests/bench/ways/list.h"
#include "tests/bench/ways/many.h"
#include "tests/bench/ways/slots.h"
#include "tests/bench/ways/ways.h"
#include "tools/common/tool.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	POLL_BATCH = 16,
	RETRIES = 100,
	BUCKET = 16,
	BUCKETS = 128,        /* bytes; before the record in a slot's memory */
	WRS = 3,              /* of a request that are not posted yet, at most */
	RECORDS_INLINE = 128, /* bytes of records that are in a WQE */
	VERSION_BUCKET = 40,  /* bit of a version: its bucket; the others are the locator, a number */
};

uint32_t way_ideal_bytes = 64;
unsigned way_extents;

enum lookup { IDEAL, TWO_CHOICES, HOPSCOTCH, LIST, SWAP };

/* What completes next: the READ of buckets, that of a record or a value, the CAS of a locator. */
enum step { LOOKING, READING, SWAPPING };

/* One request. Its READs land in its memory: buckets, then the record. */
struct get {
	struct load_op op;
	struct reddn_place place;
	uint64_t cookie;
	unsigned probe; /* bucket whose record is read, or that is checked next */
	unsigned retries;
	enum step step;
	uint64_t locator, expected; /* of a put or delete: of its record, and that which it replaces */
	uint64_t asked;             /* of a list: the key */
	uint32_t len;               /* of a list: bytes of the value */
};

struct reader {
	struct link link;
	enum lookup lookup;
	struct slots slots;
	struct get *gets;
	/* not posted yet */
	struct ibv_send_wr *wrs;
	struct ibv_sge *sges;
	unsigned unposted;
	unsigned depth, buckets; /* per lookup */
	size_t stride;           /* bytes of a slot's memory */
	uint64_t file, array, places, random;
	uint32_t file_key, array_key;
	struct reddn_table_header hdr;
	uint64_t null;     /* locator of the null record */
	uint64_t *extents; /* a ring of offsets in the heap that are free, the one that is free for longest
			      first */
	unsigned extents_room, extents_at, extents_free;
	char why[128];
};

static uint8_t *memory(struct reader *c, uint32_t slot)
{
	return c->link.mem + slot * c->stride;
}

/* What post() will post. */
static struct ibv_send_wr *next_wr(
	struct reader *c, uint32_t slot, enum ibv_wr_opcode opcode, void *at, uint32_t len, unsigned flags)
{
	struct ibv_sge *sge = &c->sges[c->unposted];
	struct ibv_send_wr *wr = &c->wrs[c->unposted++];

	*sge = (struct ibv_sge){(uintptr_t)at, len, c->link.mr->lkey};
	*wr = (struct ibv_send_wr){.wr_id = slot,
		.next = wr + 1,
		.sg_list = sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = flags};
	return wr;
}

static void read_one(
	struct reader *c, uint32_t slot, void *to, uint64_t addr, uint32_t rkey, uint32_t len, unsigned flags)
{
	struct ibv_send_wr *wr = next_wr(c, slot, IBV_WR_RDMA_READ, to, len, flags);

	wr->wr.rdma.remote_addr = addr;
	wr->wr.rdma.rkey = rkey;
}

/* What was there comes to the begin of the slot's memory. */
static void swap_one(struct reader *c, uint32_t slot, uint64_t addr, uint64_t expected, uint64_t new_word)
{
	struct ibv_send_wr *wr = next_wr(
		c, slot, IBV_WR_ATOMIC_CMP_AND_SWP, memory(c, slot), sizeof(expected), IBV_SEND_SIGNALED);

	wr->wr.atomic.remote_addr = addr;
	wr->wr.atomic.compare_add = expected;
	wr->wr.atomic.swap = new_word;
	wr->wr.atomic.rkey = c->file_key;
}

/* All work requests of a call with one doorbell */
static int post(struct reader *c)
{
	struct ibv_send_wr *bad;
	int r = 0;

	if (c->unposted) {
		c->wrs[c->unposted - 1].next = NULL;
		r = ibv_post_send(c->link.id->qp, c->wrs, &bad);
		c->unposted = 0;
	}
	if (r)
		snprintf(c->why, sizeof(c->why), "posting a work request: %s", strerror(r));
	return -r;
}

/* READs of one queue complete in order: the last one is signaled. */
static void read_both(struct reader *c, uint32_t slot)
{
	for (unsigned i = 0; i < 2; i++)
		read_one(c, slot, memory(c, slot) + BUCKET * i,
			c->file + c->hdr.buckets_off + c->gets[slot].place.bucket[i] * BUCKET, c->file_key,
			BUCKET, i ? IBV_SEND_SIGNALED : 0);
}

static uint64_t somewhere(struct reader *c)
{
	c->random = c->random * 6364136223846793005ull + 1442695040888963407ull;
	return c->hdr.heap_off + (c->random >> 20) % (c->hdr.heap_size - way_ideal_bytes) / 64 * 64;
}

static void read_node(struct reader *c, uint32_t slot, uint64_t at)
{
	read_one(c, slot, memory(c, slot), c->array + at, c->array_key, sizeof(struct list_node),
		IBV_SEND_SIGNALED);
}

static void look(struct reader *c, uint32_t slot)
{
	struct get *g = &c->gets[slot];

	g->probe = 0;
	g->step = LOOKING;
	switch (c->lookup) {
	case IDEAL:
		read_one(c, slot, memory(c, slot), c->file + somewhere(c), c->file_key, way_ideal_bytes,
			IBV_SEND_SIGNALED);
		return;
	case SWAP:
		swap_one(c, slot, c->file + somewhere(c), 0, 0);
		return;
	case TWO_CHOICES:
		read_both(c, slot);
		return;
	case LIST:
		read_node(c, slot, 0);
		return;
	case HOPSCOTCH:
		read_one(c, slot, memory(c, slot), c->array + hopscotch_place(&g->place, c->places) * BUCKET,
			c->array_key, HOPSCOTCH_NEIGHBOURS * BUCKET, IBV_SEND_SIGNALED);
	}
}

static uint64_t bucket_address(const struct reader *c, const struct get *g, unsigned probe)
{
	return c->file + c->hdr.buckets_off + g->place.bucket[probe] * BUCKET;
}

/* WRITEs the record of a put. */
static void write_record(struct reader *c, uint32_t slot)
{
	struct get *g = &c->gets[slot];
	struct reddn_record *rec = (void *)(memory(c, slot) + BUCKETS);
	const uint64_t off = c->extents[c->extents_at++ % c->extents_room];
	const uint64_t size = reddn_record_size(g->op.key_len, g->op.value_len);
	const uint32_t len = (uint32_t)reddn_record_padded(size);
	struct ibv_send_wr *wr;

	c->extents_free--;
	rec->key_len = (uint32_t)g->op.key_len;
	rec->val_len = (uint32_t)g->op.value_len;
	memcpy(rec->bytes, g->op.key, g->op.key_len);
	memcpy(rec->bytes + g->op.key_len, g->op.value, g->op.value_len);
	memset((uint8_t *)rec + size, 0, len - size);
	rec->sum = reddn_record_sum(rec);
	g->locator = reddn_locator(off, len);
	wr = next_wr(c, slot, IBV_WR_RDMA_WRITE, rec, len, len <= RECORDS_INLINE ? IBV_SEND_INLINE : 0);
	wr->wr.rdma.remote_addr = c->file + c->hdr.heap_off + off;
	wr->wr.rdma.rkey = c->file_key;
}

static void take_back(struct reader *c, uint64_t locator)
{
	/* of what deletes leave, there may be more than it has use for */
	if (locator != c->null && c->extents_free < c->extents_room)
		c->extents[(c->extents_at + c->extents_free++) % c->extents_room] =
			reddn_locator_off(locator);
}

static void swap_locator(struct reader *c, uint32_t slot, uint64_t expected)
{
	struct get *g = &c->gets[slot];

	g->step = SWAPPING;
	g->expected = expected;
	swap_one(c, slot, bucket_address(c, g, g->probe), expected, g->locator);
}

static void begin_change(struct reader *c, uint32_t slot)
{
	struct get *g = &c->gets[slot];

	g->locator = c->null;
	if (g->op.value)
		write_record(c, slot);
	if (g->op.kind != LOAD_PUT_IF) {
		look(c, slot);
		return;
	}
	g->probe = g->op.version >> VERSION_BUCKET & 1;
	swap_locator(c, slot, htobe64(g->op.version & ~(1ull << VERSION_BUCKET)));
}

/* There is a free slot. */
static void begin(struct reader *c, const struct load_op *op, uint64_t cookie)
{
	uint32_t slot = slots_take(&c->slots);
	struct get *g = &c->gets[slot];

	g->op = *op;
	g->cookie = cookie;
	g->retries = 0;
	g->asked = list_asked(op->key, op->key_len);
	if (c->lookup == TWO_CHOICES || c->lookup == HOPSCOTCH)
		g->place = reddn_hash_key(c->hdr.hash_seed, c->hdr.buckets, op->key, op->key_len);
	if (op->kind)
		begin_change(c, slot);
	else
		look(c, slot);
}

static int submit(void *conn, const struct load_op *op, uint64_t cookie)
{
	struct reader *c = conn;

	if (op->kind && !c->extents_room)
		return -EINVAL;
	if (op->kind && (op->key_len > c->hdr.max_key || op->value_len > c->hdr.max_value))
		return -EMSGSIZE;
	if (!c->slots.nfree)
		return -EAGAIN;
	if (op->value && !c->extents_free)
		return -ENOSPC;
	begin(c, op, cookie);
	return post(c);
}

static int submit_many(void *conn, const struct reddn_key *keys, unsigned n, uint64_t cookie)
{
	struct reader *c = conn;

	if (c->slots.nfree < n)
		return -EAGAIN;
	for (unsigned i = 0; i < n; i++)
		begin(c, &(struct load_op){.key = keys[i].key, .key_len = keys[i].key_len}, cookie + i);
	return post(c);
}

static int answer(struct reader *c, uint32_t slot, struct reddn_result *res, const void *value, size_t len)
{
	slots_hold(&c->slots, slot);
	*res = (struct reddn_result){.cookie = c->gets[slot].cookie,
		.status = value ? 0 : REDDN_MISS,
		.value = value,
		.length = len};
	return 1;
}

/* A put or delete is over; unless it took place, its memory is free. */
static int changed(struct reader *c, uint32_t slot, struct reddn_result *res, int status)
{
	struct get *g = &c->gets[slot];

	take_back(c, status ? g->locator : g->expected);
	if (!status && g->op.kind == LOAD_DELETE && g->expected == c->null)
		status = REDDN_MISS;
	slots_hold(&c->slots, slot);
	*res = (struct reddn_result){.cookie = g->cookie, .status = status};
	return 1;
}

/* Buckets are there: swaps the locator of that with the key. */
static int change_bucket(struct reader *c, uint32_t slot, struct reddn_result *res)
{
	struct get *g = &c->gets[slot];
	const uint64_t mark = reddn_mark(g->place.fp);
	uint64_t word[2][2];

	memcpy(word, memory(c, slot), sizeof(word));
	for (g->probe = 0; g->probe < 2; g->probe++) {
		if (word[g->probe][1] == mark) {
			swap_locator(c, slot, word[g->probe][0]);
			return 0;
		}
	}
	return changed(c, slot, res, g->op.kind == LOAD_DELETE ? REDDN_MISS : -ENOENT);
}

/* A CAS is there. */
static int swapped(struct reader *c, uint32_t slot, struct reddn_result *res)
{
	struct get *g = &c->gets[slot];
	uint64_t was;

	memcpy(&was, memory(c, slot), sizeof(was));
	if (was == g->expected)
		return changed(c, slot, res, 0);
	if (g->op.kind == LOAD_PUT_IF)
		return changed(c, slot, res, REDDN_CONFLICT);
	swap_locator(c, slot, was);
	return 0;
}

/* Reads the record of the next bucket with the right fingerprint; without one the key is absent. */
static int try_buckets(struct reader *c, uint32_t slot, struct reddn_result *res)
{
	struct get *g = &c->gets[slot];
	const uint8_t *mem = memory(c, slot);

	for (; g->probe < c->buckets; g->probe++) {
		uint64_t word[2], off;
		uint32_t len;

		memcpy(word, mem + BUCKET * g->probe, BUCKET);
		off = reddn_locator_off(word[0]);
		len = reddn_locator_len(word[0]);
		if (word[1] != reddn_mark(g->place.fp) || len + BUCKETS > c->stride ||
			off + len > c->hdr.heap_size || word[0] == c->null)
			continue;
		if (way_exists)
			return answer(c, slot, res, mem, 0);
		g->step = READING;
		g->expected = word[0];
		read_one(c, slot, memory(c, slot) + BUCKETS, c->file + c->hdr.heap_off + off, c->file_key,
			len, IBV_SEND_SIGNALED);
		return 0;
	}
	return answer(c, slot, res, NULL, 0);
}

/* Reads the value of a node with the right key, or the next node. */
static int try_node(struct reader *c, uint32_t slot, struct reddn_result *res)
{
	struct get *g = &c->gets[slot];
	const struct list_node *node = (const void *)memory(c, slot);
	uint64_t next = list_big(node->next, sizeof(node->next));

	if (g->step == READING)
		return answer(c, slot, res, memory(c, slot), g->len);
	if (list_key(node) == g->asked) {
		g->step = READING;
		g->len = (uint32_t)list_big(node->len, sizeof(node->len));
		if (g->len > c->stride)
			return -EMSGSIZE;
		read_one(c, slot, memory(c, slot), c->file + list_big(node->off, sizeof(node->off)),
			c->file_key, g->len, IBV_SEND_SIGNALED);
		return 0;
	}
	if (!next)
		return answer(c, slot, res, NULL, 0);
	read_node(c, slot, next);
	return 0;
}

/* Returns 1 with a result. */
static int completed(struct reader *c, uint32_t slot, struct reddn_result *res)
{
	struct get *g = &c->gets[slot];
	const struct reddn_record *rec = (const void *)(memory(c, slot) + BUCKETS);

	if (c->lookup == IDEAL || c->lookup == SWAP)
		return answer(c, slot, res, memory(c, slot), way_ideal_bytes);
	if (c->lookup == LIST)
		return try_node(c, slot, res);
	if (g->step == SWAPPING)
		return swapped(c, slot, res);
	if (g->step == LOOKING)
		return (g->op.kind ? change_bucket : try_buckets)(c, slot, res);
	if (rec->key_len > c->hdr.max_key || rec->val_len > c->hdr.max_value ||
		reddn_record_sum(rec) != rec->sum || rec->key_len != g->op.key_len ||
		memcmp(rec->bytes, g->op.key, rec->key_len) != 0) {
		if (++g->retries < RETRIES) {
			look(c, slot);
			return 0;
		}
		snprintf(c->why, sizeof(c->why), "a record of the table is damaged");
		return -EBADMSG;
	}
	answer(c, slot, res, rec->bytes + rec->key_len, rec->val_len);
	res->version = be64toh(g->expected) | (uint64_t)g->probe << VERSION_BUCKET;
	return 1;
}

static void release(void *conn)
{
	struct reader *c = conn;

	slots_release(&c->slots);
}

static int poll_results(void *conn, struct reddn_result *res, int max)
{
	struct reader *c = conn;
	struct ibv_wc wc[POLL_BATCH];
	int k, n = 0, r;

	release(c);
	k = ibv_poll_cq(c->link.cq, max < POLL_BATCH ? max : POLL_BATCH, wc);
	for (int i = 0; i < k; i++) {
		r = -EIO;
		if (wc[i].status == IBV_WC_SUCCESS)
			r = completed(c, (uint32_t)wc[i].wr_id, &res[n]);
		else
			snprintf(
				c->why, sizeof(c->why), "a READ failed: %s", ibv_wc_status_str(wc[i].status));
		if (r < 0)
			return r;
		n += r;
	}
	r = post(c);
	return r < 0 ? r : k < 0 ? -EIO : n;
}

static const char *errmsg(void *conn)
{
	return ((struct reader *)conn)->why;
}

static void close_reader(void *conn)
{
	struct reader *c = conn;

	link_close(&c->link);
	slots_deinit(&c->slots);
	free(c->gets);
	free(c->wrs);
	free(c->sges);
	free(c->extents);
	free(c);
}

/* The geometry is in the table's first page. */
static int read_header(struct reader *c)
{
	struct ibv_wc wc;
	int n, r = link_memory(&c->link, sizeof(c->hdr));

	if (r < 0)
		return r;
	read_one(c, 0, c->link.mem, c->file, c->file_key, sizeof(c->hdr), IBV_SEND_SIGNALED);
	r = post(c);
	if (r < 0)
		return r;
	while (!(n = ibv_poll_cq(c->link.cq, 1, &wc)))
		;
	if (n < 0 || wc.status != IBV_WC_SUCCESS)
		return -EIO;
	memcpy(&c->hdr, c->link.mem, sizeof(c->hdr));
	if (c->hdr.magic != REDDN_TABLE_MAGIC || c->hdr.version != REDDN_TABLE_VERSION ||
		c->hdr.file_size > be64toh(c->link.offer.file.size))
		return -EPROTO;
	c->null = reddn_locator(c->hdr.null_off, sizeof(struct reddn_record));
	return 0;
}

/* The client's own memory in the heap, for what it puts. */
static int make_extents(struct reader *c)
{
	const uint64_t bytes = be64toh(c->link.offer.array.size),
		       first = c->array - c->file - c->hdr.heap_off;

	c->extents_room = way_extents;
	c->extents = calloc(c->extents_room, sizeof(*c->extents));
	if (!c->extents)
		return -ENOMEM;
	for (; c->extents_free < c->extents_room; c->extents_free++)
		c->extents[c->extents_free] = first + c->extents_free * (bytes / c->extents_room);
	return 0;
}

static int make_slots(struct reader *c)
{
	size_t bytes = BUCKETS + reddn_record_padded(reddn_record_size(c->hdr.max_key, c->hdr.max_value));

	if (c->lookup == LIST) {
		bytes = LIST_VALUE_MAX;
	} else if (c->lookup == IDEAL || c->lookup == SWAP) {
		bytes = way_ideal_bytes;
		if (bytes + 64 > c->hdr.heap_size)
			return -EMSGSIZE;
	}
	c->stride = (bytes + 63) & ~(size_t)63;
	c->gets = calloc(c->depth, sizeof(*c->gets));
	if (!c->gets || slots_init(&c->slots, c->depth) < 0)
		return -ENOMEM;
	return link_memory(&c->link, c->stride * c->depth);
}

static int open_reader(struct load_way *way, const struct reddn_options *opt, enum lookup lookup)
{
	struct reader *c = calloc(1, sizeof(*c));
	static const enum link_way of[] = {LINK_TABLE, LINK_TABLE, LINK_HOPSCOTCH, LINK_LIST, LINK_TABLE};
	const unsigned depth = opt->depth * (way_keys ? way_keys : 1);
	struct link_wish wish = {of[lookup], depth, lookup == TWO_CHOICES ? way_extents : 0};
	struct ibv_qp_cap cap = {depth * (way_extents ? WRS : 2u), 1, 1, 1, way_extents ? RECORDS_INLINE : 0};
	int r;

	if (!c)
		return 2;
	*way = (struct load_way){.conn = c,
		.depth = opt->depth,
		.submit = submit,
		.poll = poll_results,
		.release = release,
		.errmsg = errmsg,
		.close = close_reader};
	c->lookup = lookup;
	c->depth = depth;
	c->buckets = lookup == HOPSCOTCH ? HOPSCOTCH_NEIGHBOURS : 2;
	r = link_connect(&c->link, opt->host, opt->port, wish, cap);
	if (r < 0)
		return 2;
	c->file = be64toh(c->link.offer.file.addr);
	c->file_key = be32toh(c->link.offer.file.rkey);
	c->array = be64toh(c->link.offer.array.addr);
	c->array_key = be32toh(c->link.offer.array.rkey);
	c->places = be64toh(c->link.offer.array.size) / BUCKET - (HOPSCOTCH_NEIGHBOURS - 1);
	c->wrs = calloc(WRS * depth, sizeof(*c->wrs));
	c->sges = calloc(WRS * depth, sizeof(*c->sges));
	if (!c->wrs || !c->sges)
		return tool_complain("%s", strerror(ENOMEM));
	r = lookup == LIST ? 0 : read_header(c);
	if (r == 0)
		r = make_slots(c);
	if (r == 0 && wish.keys)
		r = make_extents(c);
	if (r < 0)
		fprintf(stderr, "the server's table: %s\n", strerror(-r));
	return r < 0 ? 2 : way_keys ? many_wrap(way, submit_many, way_keys) : 0;
}

int way_ideal_open(struct load_way *way, const struct reddn_options *opt)
{
	return open_reader(way, opt, IDEAL);
}

int way_swap_open(struct load_way *way, const struct reddn_options *opt)
{
	return open_reader(way, opt, SWAP);
}

int way_onesided_open(struct load_way *way, const struct reddn_options *opt)
{
	return open_reader(way, opt, TWO_CHOICES);
}

int way_hopscotch_open(struct load_way *way, const struct reddn_options *opt)
{
	return open_reader(way, opt, HOPSCOTCH);
}

int way_list_open(struct load_way *way, const struct reddn_options *opt)
{
	return open_reader(way, opt, LIST);
}
