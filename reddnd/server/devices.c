/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/devices.h"

#include "reddnd/server/clients.h"
#include "reddnd/server/device.h"
#include "reddnd/util/log.h"
#include "util/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

enum { LEDGER_SLOTS = 65536 };

/* What is opened, and why */
struct opening {
	struct device *device;
	unsigned number;
	const struct catalog *catalog;
	const struct assignment *assignment;
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

static int assign(const struct catalog *c, struct assignment *a)
{
	char belongs[CATALOG_LISTEN_MAX][CATALOG_DEVICE_BYTES] = {0}, why[ASSIGN_WHY];
	int r = 0;

	for (unsigned i = 0; assign_asks(c) && i < c->nlisten && r == 0; i++)
		r = find_device(&c->listen[i], belongs[i]);
	if (r < 0)
		return r;
	r = assign_devices(c, belongs, a, why);
	if (r < 0)
		log_error("%s", why);
	return r;
}

/* Without a name, what was left decides, and of several the address */
static const struct store_device *find_left(
	const struct store *left, const char *name, const struct catalog *c)
{
	char bound[CATALOG_DEVICE_BYTES] = "";

	if (*name)
		return store_find(left, name);
	if (left->ndevices > 1 && find_device(&c->listen[0], bound) == 0 && store_find(left, bound))
		return store_find(left, bound);
	return left->ndevices ? &left->device[0] : NULL;
}

static bool is_taken(const struct store *left, const struct assignment *a, const struct catalog *c,
	const struct store_device *one)
{
	for (unsigned i = 0; i < a->n; i++)
		if (find_left(left, a->name[i], c) == one)
			return true;
	return false;
}

/* A device that does not exist is a mistake of the configuration, and no reason to end sessions */
static bool all_exist(const struct store *left, const struct catalog *c)
{
	for (unsigned i = 0; i < c->ndevices; i++) {
		if (store_find(left, c->devices[i]) || rnic_device_exists(c->devices[i]))
			continue;
		log_error("there is no device \"%s\"; sessions go on with %s", c->devices[i],
			left->device[0].name);
		return false;
	}
	return true;
}

/* The next daemon has the configuration that was last in force */
static void __attribute__((noreturn)) leave_to_the_next(const struct store *left)
{
	for (unsigned i = 0; i < left->ndevices; i++)
		if (left->device[i].fd[STORE_LEDGER] >= 0)
			ledger_set_distrusted(left->device[i].fd[STORE_LEDGER], true);
	_exit(EX_TEMPFAIL);
}

/* ---- a device ---- */

static int bind_all(const struct opening *o)
{
	const struct catalog *c = o->catalog;
	int r = 0;

	for (unsigned i = 0; i < c->nlisten && r == 0; i++)
		if (o->assignment->of[i] == o->number)
			r = rnic_cm_bind(o->device->cm, c->listen[i].address, c->listen[i].port);
	return r;
}

static void keep_device(struct device *d)
{
	const struct store_device *store = &d->inheritance.store;

	if (!rnic_device_outlives(d->dev))
		return;
	store_put(store, STORE_ARENA, rnic_arena_fd(d->arena));
	store_put(store, STORE_DEVICE, rnic_device_fd(d->dev));
}

static void keep_for_the_next(struct device *d)
{
	struct store_device *store = &d->inheritance.store;

	snprintf(store->name, sizeof(store->name), "%s", rnic_device_name(d->dev));
	store_put(store, STORE_LEDGER, ledger_fd(d->ledger));
	keep_device(d);
	store_put_cm(store, ledger_head(d->ledger)->generation, rnic_cm_fd(d->cm));
}

static const char *name_of(const struct opening *o)
{
	return o->assignment->name[o->number];
}

/* Nothing was left */
static int open_afresh(const struct opening *o)
{
	struct device *d = o->device;
	int r;

	r = rnic_arena_new(&d->arena, o->catalog->arena);
	if (r < 0)
		return log_errno(r, "cannot make an arena of %" PRIu64 " bytes", o->catalog->arena);
	r = ledger_new(&d->ledger, LEDGER_SLOTS, rnic_arena_size(d->arena));
	if (r < 0)
		return log_errno(r, "cannot make a ledger");
	r = rnic_cm_new(&d->cm, &clients_cm_ops, &d->dispatch, d->ledger);
	if (r == 0)
		r = bind_all(o);
	if (r == 0)
		r = device_open(&d->dev, name_of(o), d->cm, d->ledger);
	if (r == 0)
		keep_for_the_next(d);
	return r;
}

/* The new file of the connection manager is kept before anything moves into it */
static int open_inherited(const struct opening *o)
{
	struct device *d = o->device;
	struct store_device *left = &d->inheritance.store;
	int r = inheritance_open(&d->inheritance, &d->arena, &d->ledger);

	if (r == 0)
		r = rnic_cm_new(&d->cm, &clients_cm_ops, &d->dispatch, d->ledger);
	if (r < 0)
		return r;
	store_put_cm(left, ledger_head(d->ledger)->generation, rnic_cm_fd(d->cm));
	rnic_cm_inherit(d->cm, left->cm, left->ncm);
	r = bind_all(o);
	if (r == 0)
		r = inheritance_has_device(&d->inheritance)
			    ? rnic_device_import(&d->dev, left->fd[STORE_DEVICE], d->ledger)
			    : device_open(&d->dev, left->name, d->cm, d->ledger);
	if (r == 0 && !inheritance_has_device(&d->inheritance))
		keep_device(d);
	if (r == 0 && rnic_arena_size(d->arena) != o->catalog->arena)
		log_notice("the arena keeps its size of %" PRIu64 " bytes until the daemon is stopped",
			rnic_arena_size(d->arena));
	return r;
}

static int open_one(const struct opening *o, const struct store_device *left)
{
	struct device *d = o->device;
	int r;

	inheritance_take(&d->inheritance, left);
	r = d->inheritance.view ? open_inherited(o) : open_afresh(o);
	if (r == 0)
		inheritance_open_watches(&d->inheritance, d->dev);
	return r == 0 ? device_test(d->dev, d->arena, &d->master, o->catalog->fenced_enables,
				inheritance_has_device(&d->inheritance))
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

int devices_open(struct devices *d, const struct store *left, const struct catalog *c)
{
	bool was_served = !store_is_empty(left) && left->configuration >= 0;
	struct assignment a;
	int r;

	if (was_served && !all_exist(left, c))
		leave_to_the_next(left);
	r = assign(c, &a);
	if (r < 0 && was_served)
		leave_to_the_next(left);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < left->ndevices; i++)
		if (!is_taken(left, &a, c, &left->device[i]))
			inheritance_give_up(&left->device[i]);
	for (; d->n < a.n && r == 0; d->n++) {
		struct opening o = {
			.device = &d->device[d->n], .number = d->n, .catalog = c, .assignment = &a};

		r = open_one(&o, find_left(left, a.name[d->n], c));
		d->served.device[d->n] =
			(struct served_device){.dev = o.device->dev, .arena = o.device->arena};
	}
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

void devices_distrust(struct devices *d)
{
	DEVICES_EACH (device, d)
		if (device->ledger)
			ledger_set_distrusted(ledger_fd(device->ledger), true);
}

bool devices_clear_store(struct devices *d)
{
	bool any = false;

	DEVICES_EACH (device, d) {
		if (!device->dev)
			continue;
		store_device_clear(&device->inheritance.store);
		any = true;
	}
	return any;
}

void devices_close(struct devices *d)
{
	DEVICES_EACH (device, d)
		close_one(device);
}
