/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/sweep.h"

#include "reddnd/rnic/devx.h"
#include "reddnd/util/log.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Destroys the orphans of one type, newest first: QPs were made after their CQs. Adds to *@destroyed and
 * *@left. */
static int sweep_type(
	int fd, const struct ledger_view *ledger, enum rnic_devx_type type, int *destroyed, unsigned *left)
{
	static uint32_t handles[RNIC_DEVX_LIST_MAX]; /* one thread */
	int n = rnic_devx_list(fd, type, handles);

	for (int i = 0; i < n; i++) {
		int r;

		if (ledger_keeps(ledger, handles[i]))
			continue;
		r = rnic_devx_destroy(fd, type, handles[i]);
		*destroyed += r == 0;
		*left += r < 0 && r != -ENOENT;
	}
	return n < 0 ? n : 0;
}

static const enum rnic_devx_type types[] = {
	[LEDGER_QP] = RNIC_DEVX_OBJ,
	[LEDGER_CQ] = RNIC_DEVX_OBJ,
	[LEDGER_MR] = RNIC_DEVX_MR,
	[LEDGER_UMEM] = RNIC_DEVX_UMEM,
	[LEDGER_UAR] = RNIC_DEVX_UAR,
	[LEDGER_PD] = RNIC_DEVX_PD,
};

/* What was being made or ended, or ends now, may be too old for a list of the newest. Whatever has the handle
 * by now, it is in no slot that goes on. */
static int sweep_slots(int fd, const struct ledger_view *ledger, enum ledger_type type)
{
	int destroyed = 0;

	for (uint32_t i = 0; i < ledger->head.used; i++) {
		const struct ledger_slot *slot = &ledger->slots[i];

		if (slot->state == LEDGER_FREE || ledger_goes_on(slot))
			continue;
		for (const struct ledger_object *o = slot->object; o < slot->object + LEDGER_OBJECTS; o++)
			if (o->type == type && !ledger_keeps(ledger, o->handle))
				destroyed += rnic_devx_destroy(fd, types[type], o->handle) == 0;
	}
	return destroyed;
}

/* Some objects can go only after others, whether they are in a slot or not; what is left is tried again for
 * as long as something went. */
int rnic_sweep(int fd, const struct ledger_view *ledger)
{
	int destroyed = 0, before, r = 0;
	unsigned left;

	do {
		before = destroyed;
		left = 0;
		for (unsigned type = 0; type < RNIC_DEVX_TYPES && r == 0; type++)
			r = sweep_type(fd, ledger, (enum rnic_devx_type)type, &destroyed, &left);
		for (unsigned type = LEDGER_QP; type <= LEDGER_PD && r == 0; type++)
			destroyed += sweep_slots(fd, ledger, (enum ledger_type)type);
	} while (r == 0 && left && destroyed > before);
	return r < 0 ? r : left ? -EBUSY : destroyed;
}

/* ---- one slot ---- */

/* Returns the number of objects of that type that are left. */
static unsigned destroy_all(struct rnic_device *dev, struct ledger_slot *slot, enum ledger_type type)
{
	unsigned left = 0;

	for (unsigned i = 0; i < LEDGER_OBJECTS; i++) {
		const struct ledger_object *o = &slot->object[i];
		int r = o->type == type ? rnic_devx_destroy(rnic_device_fd(dev), types[type], o->handle) : 0;

		if (r < 0 && r != -ENOENT) {
			log_error("cannot destroy what a daemon before this one left: %s", strerror(-r));
			left++;
		} else if (o->type == type) {
			ledger_gone(slot, type, o->handle);
		}
	}
	return left;
}

int rnic_sweep_queues(struct rnic_device *dev, struct ledger_slot *slot)
{
	ledger_ending(slot);
	return destroy_all(dev, slot, LEDGER_QP) == 0 ? 0 : -EBUSY;
}

void rnic_sweep_slot(struct rnic_device *dev, struct rnic_arena *arena, struct ledger_slot *slot)
{
	unsigned left = 0;

	ledger_ending(slot);
	for (unsigned type = LEDGER_QP; type <= LEDGER_PD && left == 0; type++)
		left += destroy_all(dev, slot, (enum ledger_type)type);
	if (left == 0 && slot->block.size) {
		rnic_arena_release(arena, slot->block.offset);
		ledger_set_block(slot, 0, 0);
	}
	rnic_device_drop_slot(dev, slot);
}
