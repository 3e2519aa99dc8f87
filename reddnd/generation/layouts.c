/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/layouts.h"

#include "reddnd/executor/executor.h"
#include "reddnd/generation/queue-layout.h"
#include "reddnd/generation/wrong.h"
#include "reddnd/program/program.h"
#include "reddnd/rnic/cq-pool.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <xxhash.h>

/* ---- whether two daemons write the same instances ---- */

/* Each part is hashed with what came before as its seed, after its length */
static void hash_bytes(uint64_t *h, const void *bytes, size_t size)
{
	*h = XXH3_64bits_withSeed(&size, sizeof(size), *h);
	*h = XXH3_64bits_withSeed(bytes, size, *h);
}

/* By value: structures have padding */
static void hash_number(uint64_t *h, uint64_t v)
{
	hash_bytes(h, &v, sizeof(v));
}

static void hash_queue(uint64_t *h, const struct chain_queue *q)
{
	hash_bytes(h, q->wqes, (size_t)q->wqebbs * CHAIN_WQEBB);
	hash_bytes(h, q->starts, q->wqebbs);
	hash_number(h, q->head_wqebbs);
	hash_number(h, q->cqes);
}

static void hash_reloc(uint64_t *h, const struct chain_reloc *r)
{
	hash_number(h, (uint64_t)r->kind << 24 | (uint64_t)r->where << 16 | (uint64_t)r->sym << 8 | r->index);
	hash_number(h, r->offset);
	hash_number(h, (uint64_t)r->addend);
}

static void hash_recv(uint64_t *h, const struct chain_recv_sge *s)
{
	hash_number(h, (uint64_t)s->sym << 24 | (uint64_t)s->index << 16 | s->len);
	hash_number(h, s->offset);
}

static void hash_restore(uint64_t *h, const struct chain_restore *r)
{
	hash_number(h, (uint64_t)r->sym << 8 | r->index);
	hash_number(h, (uint64_t)r->offset << 32 | r->len);
}

static void hash_image(uint64_t *h, const struct chain_image *img)
{
	hash_number(h, img->nqueues);
	for (unsigned q = 0; q < img->nqueues; q++)
		hash_queue(h, &img->queue[q]);
	for (unsigned i = 0; i < img->nrelocs; i++)
		hash_reloc(h, &img->relocs[i]);
	for (unsigned i = 0; i < img->nrecv; i++)
		hash_recv(h, &img->recv[i]);
	for (unsigned i = 0; i < img->nrestores; i++)
		hash_restore(h, &img->restores[i]);
	hash_bytes(h, img->scratch_init, img->scratch_size);
	hash_bytes(h, img->region_bits, sizeof(img->region_bits));
	hash_number(h, img->nregions);
	hash_number(h, img->arg_len);
	hash_number(h, img->payload.max);
	hash_number(h, (uint64_t)img->payload.region << 32 | img->publish.was);
	hash_number(h, (uint64_t)img->publish.region << 16 | (uint64_t)img->publish.queue << 8 |
			       img->publish.swapped);
	hash_number(h, img->publish.offset);
	hash_number(h, img->pad_wqebbs);
}

static void hash_qp(uint64_t *h, const struct queue_layout_qp *q)
{
	const uint64_t all[] = {q->cqes_off, q->cq_db_off, q->cq_log_size, q->wq_off, q->qp_db_off,
		q->ring_off, q->ring_wqebbs};

	hash_bytes(h, all, sizeof(all));
}

static void hash_layout(uint64_t *h, const struct queue_layout *l)
{
	const uint64_t all[] = {l->slots, l->rq_stride, l->recycled, l->scratch_off, l->lanes_off,
		l->code_off, l->code_size, l->size, l->recycling.recvs, l->recycling.ring_wqebbs,
		l->recycling.lanes, l->recycling.progress, l->recycling.log, l->loop.lanes_off,
		l->loop.scratch_off, l->loop.shared_off};

	hash_bytes(h, all, sizeof(all));
	hash_bytes(h, l->recycling.end, sizeof(l->recycling.end));
	hash_bytes(h, l->recycling.recv_en, sizeof(l->recycling.recv_en));
	for (unsigned q = 0; q < CHAIN_MAX_QUEUES; q++)
		hash_qp(h, &l->queue[q]);
	hash_qp(h, &l->recycler);
	hash_qp(h, &l->replies);
	hash_qp(h, &l->loop.queue);
	hash_qp(h, &l->loop.credits);
}

/* What credits of a loop without a bound are counted by; its ring stays as it was written */
static void hash_loop(uint64_t *h, const struct chain_loop_info *l)
{
	hash_number(h, l->iterations);
	hash_number(h, l->lap.wqes);
	hash_number(h, l->progress);
}

/* Of all that instances of @p, in queues laid out as @l, are written and read by. A session goes on under
 * another daemon only if both have the same. Not 0. */
static uint64_t image_hash(const struct program *p, const struct queue_layout *l)
{
	uint64_t h = 0;

	hash_image(&h, p->image);
	hash_layout(&h, l);
	if (p->loop)
		hash_loop(&h, &p->loop_info);
	return h ? h : 1;
}

/* ---- layouts ---- */

enum { LAYOUTS = 17 };
/* Of a session whose requests the CPU executes. The event loop posts RECVs again in half of those slots that
 * a client at its depth does not need, and each time it wakes up takes as long as dozens of gets. OF_DEPTH:
 * slots for each request of the depth, if those are not more than MOST */
enum { CPU_SLOTS_OF_DEPTH = 8, CPU_SLOTS_LEAST = 256, CPU_SLOTS_MOST = 512 };

static unsigned log_slots(const struct offload *o, unsigned depth)
{
	return (unsigned)__builtin_ctz(layouts_slots(o, depth));
}

void layouts_forget(struct offload *o)
{
	for (unsigned i = 0; o->recyclers && i < LAYOUTS; i++)
		ring_free(o->recyclers[i]);
	free(o->recyclers);
	free(o->layouts);
	free(o->images);
	o->recyclers = NULL;
	o->layouts = NULL;
	o->images = NULL;
}

static int allocate(struct offload *o)
{
	layouts_forget(o);
	o->layouts = calloc(LAYOUTS, sizeof(*o->layouts));
	o->images = calloc(LAYOUTS, sizeof(*o->images));
	return o->layouts && o->images ? 0 : -ENOMEM;
}

int layouts_make(struct offload *o, uint32_t max_wqebbs, unsigned *most)
{
	unsigned last = log_slots(o, o->conf->depth_max);
	struct loop_size size, *loop = loop_size_of(o->program, o->conf->loop_rate, &size) ? &size : NULL;
	int r = allocate(o);

	o->recyclers = calloc(LAYOUTS, sizeof(*o->recyclers));
	if (r < 0 || !o->recyclers)
		return -ENOMEM;
	for (unsigned i = log_slots(o, 1); i <= last && r == 0; i++) {
		*most = 1u << i;
		r = queue_layout_make(o->img, loop, o->recycled, *most, max_wqebbs, &o->layouts[i]);
		if (r == 0 && o->recycled)
			o->images[i] = image_hash(o->program, &o->layouts[i]);
	}
	for (struct queue_layout l; r == -E2BIG && *most > 2;) {
		*most /= 2;
		if (queue_layout_make(o->img, loop, o->recycled, *most, max_wqebbs, &l) == 0)
			break;
	}
	return r;
}

static uint64_t between(uint64_t n, uint64_t least, uint64_t most)
{
	return n < least ? least : n < most ? n : most;
}

/* Of the slots an eighth has room for replies, and a quarter where that is not much memory; half of few,
 * which are configured: that is a client's depth, at least */
static unsigned cpu_replies(uint64_t reply_bytes, unsigned slots)
{
	enum { LEAST = 2, MUCH = 64 << 10, MOST = 1 << 20 };
	const bool few = slots < CPU_SLOTS_LEAST;
	const uint64_t n = between(MUCH / reply_bytes, slots / (few ? 2 : 8), slots / (few ? 2 : 4));

	return (unsigned)between(MOST / reply_bytes, LEAST, between(n, LEAST, slots));
}

struct layouts_cpu layouts_for_cpu(const struct offload *o, unsigned slots)
{
	enum { LINE = 64 };
	uint64_t data = (executor_bytes(o->program) + 3) / 4 * 4;
	uint64_t reply = (data + 4ull * executor_max_messages(o->program) + LINE - 1) / LINE * LINE;

	return (struct layouts_cpu){
		.recv_bytes = (o->img->arg_len + LINE - 1) / LINE * LINE,
		.data_size = (uint32_t)data,
		.reply_bytes = (uint32_t)reply,
		.replies = cpu_replies(reply, slots),
	};
}

/* A WRITE and a SEND in place of a WRITE with an immediate */
struct rnic_plain_attr layouts_cpu_queue(const struct offload *o, unsigned slots, bool sends)
{
	const struct layouts_cpu l = layouts_for_cpu(o, slots);

	return (struct rnic_plain_attr){
		.size = (uint64_t)slots * l.recv_bytes + (uint64_t)l.replies * l.reply_bytes,
		.recvs = {.n = slots, .stride = l.recv_bytes, .bytes = o->img->arg_len},
		.sends = (sends ? 2 : 1) * l.replies * executor_max_messages(o->program),
	};
}

static uint64_t cpu_bytes(const struct offload *o, const struct rnic_device *dev, unsigned slots, bool sends)
{
	const struct rnic_plain_attr queue = layouts_cpu_queue(o, slots, sends);

	return rnic_plain_bytes(dev, &queue);
}

int layouts_make_cpu(struct offload *o, const struct rnic_device *dev)
{
	const bool sends = rnic_device_caps(dev)->no_immediates;
	unsigned last = log_slots(o, o->conf->depth_max);

	if (executor_bytes(o->program) > UINT32_MAX / 2)
		return offload_wrong(o, -E2BIG, "the replies to a request may have %" PRIu64 " bytes",
			executor_bytes(o->program));
	if (allocate(o) < 0)
		return -ENOMEM;
	for (unsigned i = log_slots(o, 1); i <= last; i++) {
		o->layouts[i].slots = 1u << i;
		o->layouts[i].size = cpu_bytes(o, dev, 1u << i, sends);
		o->layouts[i].sends_size = cpu_bytes(o, dev, 1u << i, true);
	}
	return 0;
}

static unsigned cpu_slots(unsigned depth)
{
	unsigned slots = queue_layout_slots(depth, false);

	while (slots < CPU_SLOTS_LEAST || (slots < CPU_SLOTS_MOST && slots < CPU_SLOTS_OF_DEPTH * depth))
		slots *= 2;
	return slots;
}

unsigned layouts_slots(const struct offload *o, unsigned depth)
{
	if (o->conf->instances)
		return o->conf->instances;
	return o->cpu ? cpu_slots(depth) : queue_layout_slots(depth, o->recycled);
}

const struct queue_layout *layouts_of_depth(const struct offload *o, unsigned depth)
{
	assert(depth <= o->conf->depth_max);
	return &o->layouts[log_slots(o, depth)];
}

const struct queue_layout *layouts_of_slots(const struct offload *o, unsigned slots)
{
	for (unsigned i = 0; o->layouts && slots && i < LAYOUTS; i++)
		if (o->layouts[i].slots == slots)
			return &o->layouts[i];
	return NULL;
}

uint64_t layouts_image(const struct offload *o, const struct queue_layout *l)
{
	return o->images[__builtin_ctz(l->slots)];
}

int layouts_recycler(const struct offload *o, const struct queue_layout *l, const struct ring_image **out)
{
	struct ring_image **made = &o->recyclers[__builtin_ctz(l->slots)];
	struct chain_env sizes = {.slots = l->slots};
	int r = 0;

	for (unsigned q = 0; q < o->img->nqueues; q++)
		sizes.queue[q].ring_wqebbs = l->queue[q].ring_wqebbs;
	if (!*made)
		r = chain_recycle_new(made, o->img, &sizes, &l->recycling);
	*out = *made;
	return r;
}

uint32_t layouts_reply_cqes(const struct offload *o, unsigned slots)
{
	if (o->recycled || o->cpu)
		return 0;
	return (o->cq_alone ? chain_ring_wqes : chain_ring_cqes)(&o->img->queue[0], slots);
}

bool layouts_share_cqs(const struct offload *o, unsigned slots)
{
	return o->cq_alone || layouts_reply_cqes(o, slots) <= 1u << CQ_POOL_LOG_CQES;
}

uint64_t layouts_queue_bytes(const struct offload *o, unsigned depth, bool sends)
{
	const struct queue_layout *l = layouts_of_depth(o, depth);

	return sends && o->cpu ? l->sends_size : layouts_bytes(o, l);
}

uint64_t layouts_bytes(const struct offload *o, const struct queue_layout *l)
{
	uint32_t cqes = layouts_reply_cqes(o, l->slots);

	return l->size + (o->cq_alone && cqes ? cq_pool_bytes_alone(cqes) : 0);
}

uint64_t layouts_extent_bytes(const struct offload *o, const struct queue_layout *l)
{
	const struct chain_image *img = o->img;

	return img->payload.max ? l->slots * ((uint64_t)img->arg_len + img->payload.max) : 0;
}
