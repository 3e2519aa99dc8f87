/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/tenant.h"

#include "reddnd/util/log.h"
#include "util/cleanup.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void free_domain(struct tenant_domain *m)
{
	struct rnic_device *dev = m->pd ? rnic_pd_device(m->pd) : NULL;

	if (m->slot)
		ledger_ending(m->slot);
	master_qp_deinit(&m->master);
	if (m->pd)
		rnic_pd_free(m->pd);
	if (dev)
		rnic_device_drop_slot(dev, m->slot);
}

static void tenant_free(struct tenant *t)
{
	for (unsigned i = 0; i < t->ndomains; i++)
		free_domain(&t->domain[i]);
	free(t);
}

DEFINE_CLEANUP(struct tenant *, tenant_free)

/* Those that an operator set under a daemon before this one; it wrote them down in each device, one after the
 * other. NULL: there are none. */
static const struct ledger_tenant *inherited_limits(const struct tenant *t)
{
	for (unsigned i = 0; i < t->ndomains; i++)
		if (t->domain[i].slot && t->domain[i].slot->tenant.is_set)
			return &t->domain[i].slot->tenant;
	return NULL;
}

/* The PD that a daemon before this one had for the tenant: keys and queues of sessions that go on are in it
 */
static struct ledger_slot *find_inherited(const struct ledger *ledger, const char *name)
{
	struct ledger_slot *slot = NULL;

	while (ledger && (slot = ledger_unclaimed(ledger, LEDGER_TENANT, slot)))
		if (strcmp(slot->tenant.name, name) == 0)
			return slot;
	return NULL;
}

static int get_pd(struct tenant_domain *m, const char *name, struct rnic_device *dev)
{
	struct ledger *ledger = rnic_device_ledger(dev);
	struct ledger_slot *slot = find_inherited(ledger, name);
	int r;

	if (slot) {
		r = rnic_pd_adopt(&m->pd, dev, slot);
		if (r < 0)
			return r;
		ledger_claim(ledger, slot);
		m->slot = slot;
		return 0;
	}
	r = rnic_device_take_slot(dev, LEDGER_TENANT, &m->slot);
	if (r < 0)
		return log_errno(r, "no room for tenant %s", name);
	if (m->slot)
		ledger_set_name(m->slot->tenant.name, name);
	r = rnic_pd_new(&m->pd, dev, m->slot);
	if (r < 0)
		rnic_device_drop_slot(dev, steal_ptr(&m->slot));
	return r;
}

static int make_domain(struct tenant_domain *m, const char *name, const struct served_device *on)
{
	int r = rnic_device_is_lost(on->dev) ? 0 : get_pd(m, name, on->dev);

	if (r == 0 && m->pd && !*rnic_device_caps(on->dev)->no_chains)
		r = master_qp_init(&m->master, m->pd, on->arena);
	if (r == 0 && m->slot)
		ledger_live(m->slot);
	return r;
}

int tenant_get(struct tenant **out, struct tenant **all, const char *name, const struct served *served)
{
	CLEANUP(tenant_freep) struct tenant *made = NULL;
	struct tenant *t;
	int r = 0;

	HASH_FIND_STR(*all, name, t);
	if (t) {
		t->refs++;
		*out = t;
		return 0;
	}
	made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	snprintf(made->name, sizeof(made->name), "%s", name);
	for (; made->ndomains < served->n && r == 0; made->ndomains++)
		r = make_domain(&made->domain[made->ndomains], name, &served->device[made->ndomains]);
	if (r < 0)
		return r;
	made->inherited = inherited_limits(made);
	made->all = all;
	made->refs = 1;
	t = *out = steal_ptr(&made);
	HASH_ADD_STR(*all, name, t);
	return 0;
}

void tenant_unref(struct tenant *t)
{
	if (!t || --t->refs > 0)
		return;
	assert(t->sessions == 0 && t->depth == 0 && t->queue_bytes == 0 && t->slot_bytes == 0 &&
		t->extent_bytes == 0);
	HASH_DEL(*t->all, t);
	tenant_free(t);
}

/* A new limit starts with a full bucket, so that the first client is not refused */
static void limit_connects(struct tenant *t, uint64_t now_us)
{
	const struct catalog_limits *l = &t->limits;
	uint64_t burst = l->connect_burst ? l->connect_burst : l->connect_rate;

	if (t->connects.per_second)
		rate_set(&t->connects, l->connect_rate, burst, now_us);
	else
		rate_init(&t->connects, l->connect_rate, burst, now_us);
}

static struct ledger_override override_of(const struct catalog_limits *l)
{
	return (struct ledger_override){.rate = l->rate, .burst = l->burst, .bytes_rate = l->bytes_rate};
}

static void write_override(
	struct ledger_tenant *l, const struct ledger_override *configured, const struct ledger_override *set)
{
	__atomic_store_n(&l->is_set, 0, __ATOMIC_RELEASE);
	l->configured = *configured;
	if (!set)
		return;
	l->set = *set;
	__atomic_store_n(&l->is_set, 1, __ATOMIC_RELEASE);
}

static bool has_override(const struct ledger_tenant *l, const struct ledger_override *configured,
	const struct ledger_override *set)
{
	return l->is_set && memcmp(&l->configured, configured, sizeof(*configured)) == 0 &&
	       memcmp(&l->set, set, sizeof(*set)) == 0;
}

/* The next daemon has them, or those that are configured: nothing in between. What is right stays. A daemon
 * before this one may not have got to all devices, or not have served on them */
static void record_override(
	struct tenant *t, const struct ledger_override *configured, const struct ledger_override *set)
{
	for (unsigned i = 0; i < t->ndomains; i++) {
		struct ledger_slot *slot = t->domain[i].slot;

		if (slot && !(set && has_override(&slot->tenant, configured, set)))
			write_override(&slot->tenant, configured, set);
	}
}

static void apply(struct tenant *t, const struct catalog_limits *limits, uint64_t now_us)
{
	t->limits = *limits;
	rate_set(&t->rate, limits->rate, limits->burst, now_us);
	rate_set(&t->bytes, limits->bytes_rate, rate_burst(limits->bytes_rate, t->reply_most), now_us);
	limit_connects(t, now_us);
}

/* What an operator set under the daemon before this one is in force until the configuration has other limits
 */
void tenant_limit(struct tenant *t, const struct catalog_limits *limits, uint64_t now_us)
{
	const struct ledger_override configured = override_of(limits);
	const struct ledger_tenant *before = t->inherited ? inherited_limits(t) : NULL;
	struct catalog_limits now = *limits;

	if (before && memcmp(&before->configured, &configured, sizeof(configured)) == 0) {
		const struct ledger_override set = before->set;

		now.rate = set.rate;
		now.burst = set.burst;
		now.bytes_rate = set.bytes_rate;
		record_override(t, &configured, &set);
	} else {
		record_override(t, &configured, NULL);
	}
	t->inherited = false;
	t->configured = *limits;
	apply(t, &now, now_us);
}

void tenant_override(struct tenant *t, const struct catalog_limits *limits, uint64_t now_us)
{
	const struct ledger_override configured = override_of(&t->configured), set = override_of(limits);

	record_override(t, &configured, &set);
	apply(t, limits, now_us);
}

void tenant_expect_replies(struct tenant *t, uint64_t bytes, uint64_t now_us)
{
	if (bytes <= t->reply_most)
		return;
	t->reply_most = bytes;
	rate_set(&t->bytes, t->bytes.per_second, rate_burst(t->bytes.per_second, bytes), now_us);
}

static uint64_t left(uint64_t quota, uint64_t used)
{
	return used < quota ? quota - used : 0;
}

void tenant_charge_heir(struct tenant *t, const struct tenant_charge *c)
{
	t->sessions += c->sessions;
	t->depth += c->depth;
	t->queue_bytes += c->queue_bytes;
	t->slot_bytes += c->slot_bytes;
	t->extent_bytes += c->extent_bytes;
}

/* @want bytes more of @what are within the @quota of that name, of which some are in @use */
static bool has_bytes(const struct tenant *t, const char *what, const char *name, uint64_t want,
	uint64_t quota, uint64_t use, struct reddn_wire_rej *rej)
{
	if (!quota || want <= left(quota, use))
		return true;
	return request_refuse(rej, REDDN_REJ_QUOTA, 0,
		"%s of %" PRIu64 " bytes; tenant %s has %" PRIu64 " left of its quota \"%s\" of %" PRIu64,
		what, want, t->name, left(quota, use), name, quota);
}

bool tenant_charge(
	struct tenant *t, const struct tenant_charge *c, uint64_t now_us, struct reddn_wire_rej *rej)
{
	const struct catalog_limits *l = &t->limits;

	if (l->sessions && c->sessions && t->sessions >= l->sessions)
		return request_refuse(rej, REDDN_REJ_QUOTA, l->sessions,
			"tenant %s has used up its quota \"sessions\" of %u", t->name, l->sessions);
	if (l->depth && c->depth > left(l->depth, t->depth))
		return request_refuse(rej, REDDN_REJ_QUOTA, (uint32_t)left(l->depth, t->depth),
			"depth is %u; tenant %s has %" PRIu64 " left of its quota \"depth\" of %u", c->depth,
			t->name, left(l->depth, t->depth), l->depth);
	if (!has_bytes(t, "queues", "queue_bytes", c->queue_bytes, l->queue_bytes, t->queue_bytes, rej) ||
		!has_bytes(
			t, "reply slots", "slot_bytes", c->slot_bytes, l->slot_bytes, t->slot_bytes, rej) ||
		!has_bytes(
			t, "extents", "extent_bytes", c->extent_bytes, l->extent_bytes, t->extent_bytes, rej))
		return false;
	if (rate_available(&t->connects, now_us) == 0)
		return request_refuse(rej, REDDN_REJ_QUOTA, (uint32_t)l->connect_rate,
			"tenant %s has used up its quota \"connect_rate\" of %" PRIu64
			" per second; there is room again in %" PRIu64 " ms",
			t->name, l->connect_rate, rate_delay(&t->connects, 1, now_us) / 1000 + 1);
	rate_take(&t->connects, 1);
	tenant_charge_heir(t, c);
	return true;
}

void tenant_refund(struct tenant *t, const struct tenant_charge *c)
{
	assert(t->sessions >= c->sessions && t->depth >= c->depth && t->queue_bytes >= c->queue_bytes &&
		t->slot_bytes >= c->slot_bytes && t->extent_bytes >= c->extent_bytes);
	t->sessions -= c->sessions;
	t->depth -= c->depth;
	t->queue_bytes -= c->queue_bytes;
	t->slot_bytes -= c->slot_bytes;
	t->extent_bytes -= c->extent_bytes;
}

void tenant_uncharge(struct tenant *t, const struct tenant_charge *c)
{
	tenant_refund(t, c);
	rate_give(&t->connects, 1);
}
