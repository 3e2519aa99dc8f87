/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/devices.h"

#include "reddnd/probe/probe.h"
#include "reddnd/rnic/cm.h"
#include "reddnd/rnic/master-qp.h"
#include "reddnd/util/log.h"
#include "util/cleanup.h"
#include "util/file-limit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

/* ---- which device serves which address of "listen" ---- */

enum { ASSIGN_WHY = 400, ASSIGN_MISSING = CATALOG_DEVICES_MAX };

struct assignment {
	/* Of each device; "": the one that addresses belong to, or the machine's only one */
	char name[CATALOG_DEVICES_MAX][CATALOG_DEVICE_BYTES];
	unsigned n;
	unsigned of[CATALOG_LISTEN_MAX]; /* the device of each address, or ASSIGN_MISSING */
};

/* True if what addresses belong to decides: "device" is a list, or "all". */
static bool assign_asks(const struct catalog *c)
{
	return c->all_devices || c->ndevices > 1;
}

static unsigned assign_find(const struct assignment *a, const char *name)
{
	unsigned i = 0;

	while (i < a->n && strcmp(a->name[i], name) != 0)
		i++;
	return i;
}

static int assign_address(
	const struct catalog *c, unsigned i, const char *name, struct assignment *a, char why[ASSIGN_WHY])
{
	const struct catalog_listen *l = &c->listen[i];
	unsigned device = assign_find(a, name);

	if (!*name)
		snprintf(why, ASSIGN_WHY,
			"\"listen\": %s port %u belongs to no device in particular; "
			"with several devices, give addresses of each",
			l->address, l->port);
	else if (device == a->n && !c->all_devices)
		snprintf(why, ASSIGN_WHY,
			"\"listen\": %s port %u belongs to %s, which is not in the list \"device\"; "
			"add it, or listen on an address of a device that is",
			l->address, l->port, name);
	else if (device == CATALOG_DEVICES_MAX)
		snprintf(why, ASSIGN_WHY, "the addresses of \"listen\" belong to more than %d devices",
			CATALOG_DEVICES_MAX);
	else
		a->of[i] = device;
	if (*why)
		return -EINVAL;
	if (device == a->n)
		snprintf(a->name[a->n++], CATALOG_DEVICE_BYTES, "%s", name);
	return 0;
}

/* True if an address of @c is assigned to device @device of @a. */
static bool assign_has_address(const struct catalog *c, const struct assignment *a, unsigned device)
{
	for (unsigned i = 0; i < c->nlisten; i++)
		if (a->of[i] == device)
			return true;
	return false;
}

static void assign_begin(const struct catalog *c, struct assignment *a)
{
	*a = (struct assignment){.n = assign_asks(c) ? c->ndevices : 1};
	memcpy(a->name, c->devices, sizeof(a->name));
}

/* @belongs: the device that each address of @c belongs to, "" if to none in particular; not used unless
 * assign_asks(). 0; or -EINVAL and @why, a line, if an address belongs to no device of the list, or a device
 * has no address. */
static int assign_devices(const struct catalog *c, const char belongs[][CATALOG_DEVICE_BYTES],
	struct assignment *a, char why[ASSIGN_WHY])
{
	int r = 0;

	assign_begin(c, a);
	*why = '\0';
	if (!assign_asks(c))
		return 0;
	for (unsigned i = 0; i < c->nlisten && r == 0; i++)
		r = assign_address(c, i, belongs[i], a, why);
	for (unsigned k = 0; k < a->n && r == 0; k++) {
		if (assign_has_address(c, a, k))
			continue;
		snprintf(why, ASSIGN_WHY,
			"no address of \"listen\" belongs to %s, which is in the list \"device\"; "
			"add one, or take it out",
			a->name[k]);
		r = -EINVAL;
	}
	return r;
}

/* The same of a configuration that has been in force, which cannot be wrong: addresses may have gone since,
 * or may belong to others. Those are MISSING, and a device may have no address. @belongs: also "" of an
 * address that has gone. */
static void assign_again(
	const struct catalog *c, const char belongs[][CATALOG_DEVICE_BYTES], struct assignment *a)
{
	assign_begin(c, a);
	for (unsigned i = 0; assign_asks(c) && i < c->nlisten; i++) {
		char why[ASSIGN_WHY] = "";

		if (assign_address(c, i, belongs[i], a, why) < 0)
			a->of[i] = ASSIGN_MISSING;
	}
}

/* ---- one device: opened and tested ---- */

/* Opens the device @name; if that is "", the one that an address of @cm belongs to; else the first one.
 * -EINVAL if @name and the addresses disagree. Errors have been logged. */
static int device_open(
	struct rnic_device **dev, const char *name, const struct rnic_cm *cm, struct ledger *ledger)
{
	const char *bound = rnic_cm_device(cm);

	if (*name && bound && strcmp(name, bound) != 0) {
		log_error("\"device\" is %s, but an address of \"listen\" belongs to %s; make them agree",
			name, bound);
		return -EINVAL;
	}
	return rnic_device_open(dev, *name ? name : bound ? bound : "", ledger);
}

/* Sparse: what the self-test needs, and no page more */
enum { TEST_ARENA = 4 << 20 };

DEFINE_CLEANUP(struct rnic_arena *, rnic_arena_free)

static int test(struct rnic_device *dev, struct master_qp *master, bool fences)
{
	const struct probe_attr attr = {.master = master};
	const char *name = rnic_device_name(dev);
	struct rnic_observed seen;
	int r = probe_at_start(&attr, fences, &seen);

	if (r < 0)
		return r;
	rnic_device_set_observed(dev, &seen);
	log_info("%s: self-test passed; a fence holds back a SEND_EN: %s; it checks index and QPN of a WQE: "
		 "%s",
		name,
		seen.fenced_enables ? "yes"
		: fences            ? "no, or unknown"
				    : "not asked for (fenced_enables)",
		seen.unchecked_wqes ? "no: operands may stand there" : "yes");
	return 0;
}

/* Whether it would serve by the NIC or by the CPU must not depend on what was free when it started */
static int refuse_shortage(const struct rnic_device *dev, int r)
{
	return log_errno(r,
		"%s: its self-test lacks memory, descriptors or room in the device, which does not show "
		"what the device can do; the daemon does not start, and would not let the CPU serve for that",
		rnic_device_name(dev));
}

static int run_chains(
	struct rnic_device *dev, struct rnic_arena *arena, struct master_qp *master, bool fences)
{
	int r = master_qp_init(master, rnic_device_pd(dev), arena);

	return r == 0 ? test(dev, master, fences) : r;
}

/* Sessions of a daemon before this one may have all of @arena but the room of its master QP */
static int run_chains_beside(
	struct rnic_device *dev, struct rnic_arena *arena, struct master_qp *master, bool fences)
{
	CLEANUP(rnic_arena_freep) struct rnic_arena *own = NULL;
	struct master_qp tester = {0};
	int r = rnic_arena_new(&own, TEST_ARENA);

	if (r == 0)
		r = run_chains(dev, own, &tester, fences);
	master_qp_deinit(&tester);
	return r == 0 ? master_qp_init(master, rnic_device_pd(dev), arena) : r;
}

/* If @dev may run chains, makes @master in @arena, runs chains through it, and notes what the device does
 * that firmware does not report (rnic_device_set_observed()); whether a SEND_EN heeds a fence only if
 * @fences, else that is not relied on. If they do not run as they must, the device is one that runs none
 * (rnic_device_deny_chains()); where @in_use, chains of a daemon before this one run on it, and that is an
 * error; they may have all of @arena, so the chains run in an arena of their own. So is a shortage of memory
 * or the like in any case, because it does not tell what the device can do. Errors have been logged. */
static int device_test(
	struct rnic_device *dev, struct rnic_arena *arena, struct master_qp *master, bool fences, bool in_use)
{
	const char *why = rnic_device_caps(dev)->no_chains;
	int r = *why ? 0 : (in_use ? run_chains_beside : run_chains)(dev, arena, master, fences);

	if (rnic_is_shortage(r))
		return refuse_shortage(dev, r);
	if (r < 0 && in_use)
		return r;
	if (r < 0) {
		master_qp_deinit(master);
		rnic_device_deny_chains(dev, "it failed the self-test (see the log)");
	}
	if (*why)
		log_warning(
			"%s runs no chains: %s; the CPU executes what engine = \"auto\" or \"cpu\" allows",
			rnic_device_name(dev), why);
	return 0;
}

enum { LEDGER_SLOTS = 65536 };

/* What is opened, and why */
struct opening {
	struct device *device;
	unsigned number;
	const struct catalog *catalog;
	const struct assignment *assignment;
};

/* What devices_open() has */
struct begin {
	struct devices *devices;
	const struct fd_store *left;
	const struct catalog *catalog;
	bool kept;
	struct assignment assignment;
	unsigned number[CATALOG_DEVICES_MAX]; /* in the assignment, of each device that goes on */
	bool done[CATALOG_DEVICES_MAX];       /* by number in the assignment */
};

/* ---- which devices ---- */

DEFINE_CLEANUP(struct rnic_cm *, rnic_cm_free)

/* At any port: a daemon before this one may have the one that is configured */
static int find_device(const struct catalog_listen *l, char name[CATALOG_DEVICE_BYTES])
{
	CLEANUP(rnic_cm_freep) struct rnic_cm *cm = NULL;
	int r = rnic_cm_new(&cm, NULL, NULL, NULL);

	if (r == 0)
		r = rnic_cm_bind(cm, l->address, 0);
	if (r == 0)
		snprintf(name, CATALOG_DEVICE_BYTES, "%s", rnic_cm_device(cm) ? rnic_cm_device(cm) : "");
	return r;
}

static int assign(const struct catalog *c, bool kept, struct assignment *a)
{
	char belongs[CATALOG_LISTEN_MAX][CATALOG_DEVICE_BYTES] = {0}, why[ASSIGN_WHY];
	int r = 0;

	for (unsigned i = 0; assign_asks(c) && i < c->nlisten && (r == 0 || kept); i++)
		r = find_device(&c->listen[i], belongs[i]);
	if (kept) {
		assign_again(c, belongs, a);
		return 0;
	}
	if (r < 0)
		return r;
	r = assign_devices(c, belongs, a, why);
	if (r < 0)
		log_error("%s", why);
	return r;
}

/* With "all" nothing names a device whose addresses have gone, but what was left */
static void assign_left(const struct fd_store *left, const struct catalog *c, struct assignment *a)
{
	bool missing = false;

	for (unsigned i = 0; i < c->nlisten; i++)
		missing |= a->of[i] == ASSIGN_MISSING;
	for (unsigned i = 0; missing && c->all_devices && i < left->ndevices; i++) {
		const char *name = left->device[i].name;
		bool has = a->n == CATALOG_DEVICES_MAX;

		for (unsigned k = 0; k < a->n; k++)
			has |= strcmp(a->name[k], name) == 0;
		if (!has)
			snprintf(a->name[a->n++], CATALOG_DEVICE_BYTES, "%s", name);
	}
}

/* Without a name, what was left decides, and of several the address */
static const struct fd_store_device *find_left(
	const struct fd_store *left, const char *name, const struct catalog *c)
{
	char bound[CATALOG_DEVICE_BYTES] = "";

	if (*name)
		return fd_store_find(left, name);
	if (left->ndevices > 1 && find_device(&c->listen[0], bound) == 0 && fd_store_find(left, bound))
		return fd_store_find(left, bound);
	return left->ndevices ? &left->device[0] : NULL;
}

static bool is_taken(const struct fd_store *left, const struct assignment *a, const struct catalog *c,
	const struct fd_store_device *one)
{
	for (unsigned i = 0; i < a->n; i++)
		if (find_left(left, a->name[i], c) == one)
			return true;
	return false;
}

/* A device that does not exist is a mistake of the configuration, and no reason to end sessions */
static bool all_exist(const struct fd_store *left, const struct catalog *c)
{
	for (unsigned i = 0; i < c->ndevices; i++) {
		if (fd_store_find(left, c->devices[i]) || rnic_device_exists(c->devices[i]))
			continue;
		log_error("there is no device \"%s\"; sessions go on with %s", c->devices[i],
			left->device[0].name);
		return false;
	}
	return true;
}

/* The next daemon has the configuration that was last in force */
static void __attribute__((noreturn)) leave_to_the_next(const struct fd_store *left)
{
	for (unsigned i = 0; i < left->ndevices; i++)
		if (left->device[i].fd[FD_STORE_LEDGER] >= 0)
			ledger_set_distrusted(left->device[i].fd[FD_STORE_LEDGER], true);
	_exit(EX_TEMPFAIL);
}

/* ---- a device ---- */

/* Address @i is the device's; one that is missing, if a listener was left there */
static bool is_own(const struct opening *o, unsigned i)
{
	const struct catalog_listen *l = &o->catalog->listen[i];
	const unsigned of = o->assignment->of[i];
	bool was_left;

	if (of != o->number && of != ASSIGN_MISSING)
		return false;
	was_left = rnic_cm_keep(o->device->cm, l->address, l->port);
	return was_left || of == o->number;
}

static int bind_all(const struct opening *o)
{
	const struct catalog *c = o->catalog;
	int r = 0;

	for (unsigned i = 0; i < c->nlisten && r == 0; i++)
		if (is_own(o, i))
			r = rnic_cm_bind(o->device->cm, c->listen[i].address, c->listen[i].port);
	return r;
}

static void keep_device(struct device *d)
{
	const struct fd_store_device *store = &d->inheritance.store;

	if (!rnic_device_outlives(d->dev))
		return;
	fd_store_put(store, FD_STORE_ARENA, rnic_arena_fd(d->arena));
	fd_store_put(store, FD_STORE_DEVICE, rnic_device_fd(d->dev));
}

static void keep_for_the_next(struct device *d)
{
	struct fd_store_device *store = &d->inheritance.store;

	snprintf(store->name, sizeof(store->name), "%s", rnic_device_name(d->dev));
	fd_store_put(store, FD_STORE_LEDGER, ledger_fd(d->ledger));
	keep_device(d);
	fd_store_put_cm(store, ledger_head(d->ledger)->generation, rnic_cm_fd(d->cm));
}

static const char *name_of(const struct opening *o)
{
	return o->assignment->name[o->number];
}

int devices_make_arena(struct rnic_arena **arena, uint64_t size)
{
	int r = rnic_arena_new(arena, size);

	if (r == -EFBIG)
		log_error("an arena of %" PRIu64 " bytes: this process may make files of up to %" PRIu64
			  " (ulimit -f, LimitFSIZE=); raise that, or lower \"arena\"",
			size, file_limit());
	else if (r < 0)
		log_errno(r, "cannot make an arena of %" PRIu64 " bytes", size);
	return r;
}

/* Nothing was left */
static int open_afresh(const struct opening *o)
{
	struct device *d = o->device;
	int r = devices_make_arena(&d->arena, o->catalog->arena);

	if (r < 0)
		return r;
	r = ledger_new(&d->ledger, LEDGER_SLOTS, rnic_arena_size(d->arena));
	if (r < 0)
		return log_errno(r, "cannot make a ledger");
	r = rnic_cm_new(&d->cm, &connect_cm_ops, &d->dispatch, d->ledger);
	if (r == 0)
		r = bind_all(o);
	if (r == 0)
		r = device_open(&d->dev, name_of(o), d->cm, d->ledger);
	if (r == 0)
		keep_for_the_next(d);
	return r;
}

/*
 * Listeners of addresses that are not the device's any more end before any address is bound: two devices may
 * have exchanged theirs. The new file of the connection manager is kept before anything moves into it.
 * *@listens: it has an address.
 */
static int inherit(const struct opening *o, bool *listens)
{
	struct device *d = o->device;
	struct fd_store_device *left = &d->inheritance.store;
	int r = inheritance_open(&d->inheritance, &d->arena, &d->ledger);

	*listens = false;
	if (r == 0)
		r = rnic_cm_new(&d->cm, &connect_cm_ops, &d->dispatch, d->ledger);
	if (r < 0)
		return r;
	fd_store_put_cm(left, ledger_head(d->ledger)->generation, rnic_cm_fd(d->cm));
	rnic_cm_inherit(d->cm, left->cm, left->ncm);
	for (unsigned i = 0; i < o->catalog->nlisten; i++)
		*listens |= is_own(o, i);
	rnic_cm_end_others(d->cm);
	return 0;
}

static int open_inherited(const struct opening *o)
{
	struct device *d = o->device;
	struct fd_store_device *left = &d->inheritance.store;
	int r = bind_all(o);

	if (r == 0)
		r = inheritance_has_device(&d->inheritance)
			    ? rnic_device_import(&d->dev, left->fd[FD_STORE_DEVICE], d->ledger)
			    : device_open(&d->dev, left->name, d->cm, d->ledger);
	if (r == 0 && !inheritance_has_device(&d->inheritance))
		keep_device(d);
	if (r == 0 && rnic_arena_size(d->arena) != o->catalog->arena)
		log_notice("the arena keeps its size of %" PRIu64 " bytes until the daemon is stopped",
			rnic_arena_size(d->arena));
	return r;
}

/* After inherit(), or afresh. Without a session nothing depends on a self-test that passed */
static int open_one(const struct opening *o)
{
	struct device *d = o->device;
	const struct inheritance *in = &d->inheritance;
	int r = in->view ? open_inherited(o) : open_afresh(o);

	if (r == 0)
		inheritance_open_watches(&d->inheritance, d->dev);
	return r == 0 ? device_test(d->dev, d->arena, &d->master, o->catalog->fenced_enables,
				inheritance_has_device(in) && inheritance_has_sessions(in))
		      : r;
}

static void close_one(struct device *d)
{
	inheritance_deinit(&d->inheritance);
	if (d->cm)
		rnic_cm_free(d->cm);
	master_qp_deinit(&d->master);
	if (d->dev)
		rnic_device_close(d->dev);
	if (d->ledger)
		ledger_free(d->ledger);
	if (d->arena)
		rnic_arena_free(d->arena);
}

/* ---- all of them ---- */

/* Device @i, as number @number of the assignment */
static struct opening opening_of(const struct begin *b, unsigned i, unsigned number)
{
	return (struct opening){.device = &b->devices->device[i],
		.number = number,
		.catalog = b->catalog,
		.assignment = &b->assignment};
}

/* @d fails: what it fails for is no reason to end sessions of others */
static void uncount_others(const struct devices *devices, const struct device *d)
{
	for (unsigned i = 0; i < devices->n; i++) {
		const struct device *other = &devices->device[i];

		if (other != d)
			inheritance_uncount(&other->inheritance,
				other->ledger ? ledger_fd(other->ledger)
					      : other->inheritance.store.fd[FD_STORE_LEDGER]);
	}
}

/* @error: why it cannot be opened, or -ENODEV. The one device of a catalog that names none is nothing that
 * others serve without */
static void note_left_out(struct devices *devices, const struct opening *o, int error)
{
	struct device_left_out *out;

	if (!*name_of(o))
		return;
	out = &devices->left_out[devices->nleft_out++];
	snprintf(out->name, sizeof(out->name), "%s", name_of(o));
	if (!rnic_device_exists(out->name))
		snprintf(out->why, sizeof(out->why), "there is no such device");
	else if (!assign_has_address(o->catalog, o->assignment, o->number))
		snprintf(out->why, sizeof(out->why), "no address of \"listen\" belongs to it");
	else
		snprintf(out->why, sizeof(out->why), "it cannot be opened: %s", strerror(-error));
	log_error("%s is left out, as %s: the next daemon tries it again", out->name, out->why);
}

static int inherit_all(struct begin *b)
{
	struct devices *d = b->devices;
	int r = 0;

	for (unsigned k = 0; k < b->assignment.n && r == 0; k++) {
		const struct fd_store_device *left = find_left(b->left, b->assignment.name[k], b->catalog);
		const struct opening o = opening_of(b, d->n, k);
		bool listens;

		inheritance_take(&o.device->inheritance, left);
		if (!o.device->inheritance.view)
			continue;
		b->done[k] = true;
		b->number[d->n++] = k;
		r = inherit(&o, &listens);
		if (r < 0)
			uncount_others(d, o.device);
		if (r < 0 || listens)
			continue;
		inheritance_drop(&o.device->inheritance, "no address of the device is left");
		note_left_out(d, &o, -ENODEV);
		close_one(o.device);
		*o.device = (struct device){0};
		d->n--;
	}
	return r;
}

static int open_inherited_all(struct begin *b)
{
	struct devices *d = b->devices;
	int r = 0;

	for (unsigned i = 0; i < d->n && r == 0; i++) {
		const struct opening o = opening_of(b, i, b->number[i]);

		r = open_one(&o);
		if (r < 0)
			uncount_others(d, o.device);
	}
	return r;
}

static void leave_out(struct devices *devices, const struct opening *o, int error)
{
	note_left_out(devices, o, error);
	fd_store_device_clear(&o->device->inheritance.store);
	close_one(o->device);
	*o->device = (struct device){0};
}

static int open_others(struct begin *b)
{
	struct devices *d = b->devices;
	int r = 0;

	for (unsigned k = 0; k < b->assignment.n && (r == 0 || b->kept); k++) {
		const struct opening o = opening_of(b, d->n, k);

		if (b->done[k])
			continue;
		inheritance_take(&o.device->inheritance, NULL);
		r = assign_has_address(b->catalog, &b->assignment, k) ? open_one(&o) : -ENODEV;
		if (r < 0 && b->kept)
			leave_out(d, &o, r);
		else
			d->n++;
	}
	if (b->kept && d->n > 0)
		r = 0;
	if (r < 0)
		uncount_others(d, NULL);
	return r;
}

int devices_open(struct devices *d, const struct fd_store *left, const struct catalog *c, bool kept)
{
	struct begin b = {.devices = d, .left = left, .catalog = c, .kept = kept};
	bool may_leave = !kept && !fd_store_is_empty(left) && left->configuration >= 0;
	int r;

	if (may_leave && !all_exist(left, c))
		leave_to_the_next(left);
	r = assign(c, kept, &b.assignment);
	if (r < 0 && may_leave)
		leave_to_the_next(left);
	if (r < 0)
		return r;
	assign_left(left, c, &b.assignment);
	for (unsigned i = 0; i < left->ndevices; i++)
		if (!is_taken(left, &b.assignment, c, &left->device[i]))
			inheritance_give_up(&left->device[i]);
	r = inherit_all(&b);
	if (r == 0)
		r = open_inherited_all(&b);
	if (r == 0)
		r = open_others(&b);
	for (unsigned i = 0; i < d->n; i++)
		d->served.device[i] =
			(struct served_device){.dev = d->device[i].dev, .arena = d->device[i].arena};
	d->served.n = d->n;
	return r;
}

unsigned devices_number(const struct devices *d, const struct device *device)
{
	return (unsigned)(device - d->device);
}

bool devices_go_on(const struct devices *d)
{
	for (unsigned i = 0; i < d->n; i++)
		if (d->device[i].inheritance.view)
			return true;
	return false;
}

void devices_count(struct devices *d)
{
	DEVICES_EACH (device, d)
		dispatch_count(&device->dispatch);
}

void devices_distrust(struct devices *d, bool distrusted)
{
	DEVICES_EACH (device, d)
		if (device->ledger)
			ledger_set_distrusted(ledger_fd(device->ledger), distrusted);
}

bool devices_clear_store(struct devices *d)
{
	bool any = false;

	DEVICES_EACH (device, d) {
		if (!device->dev)
			continue;
		fd_store_device_clear(&device->inheritance.store);
		any = true;
	}
	return any;
}

void devices_close(struct devices *d)
{
	DEVICES_EACH (device, d)
		close_one(device);
}
