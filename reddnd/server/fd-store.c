/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/fd-store.h"

#include "protocol/table-format.h"
#include "reddnd/rnic/region.h"
#include "reddnd/util/log.h"
#include "reddnd/util/notify.h"
#include "util/cleanup.h"
#include "util/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

enum { PATIENCE_US = 5000000 };

#define CM_PREFIX "rdma-cm-"
#define RECORD "record"
#define STORED "stored"
#define REGION_PREFIX "region-"
#define LOCKED_PREFIX "store-"
#define CONFIGURATION_PREFIX "configuration-"

/* Before the name of the device */
static const char *const prefixes[FD_STORE_NAMES] = {
	[FD_STORE_DEVICE] = "uverbs-",
	[FD_STORE_ARENA] = "arena-",
	[FD_STORE_LEDGER] = "ledger-",
	[FD_STORE_WATCHES] = "watches-",
};

static void remove_stored(const char *name)
{
	char text[FD_STORE_NAME_BYTES + 40];

	snprintf(text, sizeof(text), "FDSTOREREMOVE=1\nFDNAME=%s", name);
	notify_send(text, -1);
}

static void free_names(char ***list)
{
	for (char **name = *list; name && *name; name++)
		free(*name);
	free(*list);
}

static void name_part(
	char name[FD_STORE_NAME_BYTES], const struct fd_store_device *device, enum fd_store_name part)
{
	snprintf(name, FD_STORE_NAME_BYTES, "%s%s", prefixes[part], device->name);
}

static void name_cm(char name[FD_STORE_NAME_BYTES], const struct fd_store_device *device, unsigned i)
{
	snprintf(name, FD_STORE_NAME_BYTES, CM_PREFIX "%" PRIu64 "-%s", device->cm_number[i], device->name);
}

void fd_store_device_init(struct fd_store_device *device)
{
	*device = (struct fd_store_device){0};
	for (unsigned k = 0; k < FD_STORE_NAMES; k++)
		device->fd[k] = -1;
}

const struct fd_store_device *fd_store_find(const struct fd_store *store, const char *name)
{
	for (unsigned i = 0; i < store->ndevices; i++)
		if (strcmp(store->device[i].name, name) == 0)
			return &store->device[i];
	return NULL;
}

/* NULL: that cannot be, or there are too many */
static struct fd_store_device *device_of(struct fd_store *store, const char *name)
{
	struct fd_store_device *new = &store->device[store->ndevices];

	if (fd_store_find(store, name))
		return &store->device[fd_store_find(store, name) - store->device];
	if (!*name || strlen(name) >= FD_STORE_DEVICE_BYTES || store->ndevices == FD_STORE_DEVICES_MAX)
		return NULL;
	fd_store_device_init(new);
	snprintf(new->name, sizeof(new->name), "%s", name);
	store->ndevices++;
	return new;
}

static bool take_part(struct fd_store *store, const char *name, int fd)
{
	for (unsigned k = 0; k < FD_STORE_NAMES; k++) {
		struct fd_store_device *device;

		if (strncmp(name, prefixes[k], strlen(prefixes[k])) != 0)
			continue;
		device = device_of(store, name + strlen(prefixes[k]));
		if (!device || device->fd[k] >= 0)
			return false;
		device->fd[k] = fd;
		return true;
	}
	return false;
}

static bool take_cm(struct fd_store *store, const char *name, int fd)
{
	struct fd_store_device *device;
	uint64_t number;
	int at = 0;

	if (sscanf(name, CM_PREFIX "%" SCNu64 "-%n", &number, &at) != 1 || !at)
		return false;
	device = device_of(store, name + at);
	if (!device || device->ncm == FD_STORE_CM_MAX)
		return false;
	device->cm_number[device->ncm] = number;
	device->cm[device->ncm++] = fd;
	return true;
}

static bool take_region(struct fd_store *store, const char *name, int fd)
{
	if (strncmp(name, REGION_PREFIX, strlen(REGION_PREFIX)) != 0 ||
		store->nregions == FD_STORE_REGION_MAX || strlen(name) >= FD_STORE_NAME_BYTES)
		return false;
	snprintf(
		store->region_name[store->nregions], FD_STORE_NAME_BYTES, "%s", name + strlen(REGION_PREFIX));
	store->region[store->nregions++] = fd;
	return true;
}

static bool take_locked(struct fd_store *store, const char *name, int fd)
{
	if (strncmp(name, LOCKED_PREFIX, strlen(LOCKED_PREFIX)) != 0 ||
		store->nlocked == FD_STORE_REGION_MAX ||
		number_parse_decimal(name + strlen(LOCKED_PREFIX), 1, UINT64_MAX,
			&store->locked[store->nlocked].number) < 0)
		return false;
	store->locked[store->nlocked++].fd = fd;
	return true;
}

static void name_configuration(char name[FD_STORE_NAME_BYTES], uint64_t number)
{
	snprintf(name, FD_STORE_NAME_BYTES, CONFIGURATION_PREFIX "%" PRIu64, number);
}

static void drop_configuration(struct fd_store *store)
{
	char name[FD_STORE_NAME_BYTES];

	if (store->configuration < 0)
		return;
	name_configuration(name, store->configuration_number);
	remove_stored(name);
	close(store->configuration);
	store->configuration = -1;
}

/* There are two if a daemon died between storing one and removing the other: the later one counts */
static bool take_configuration(struct fd_store *store, const char *name, int fd)
{
	uint64_t number;

	if (strncmp(name, CONFIGURATION_PREFIX, strlen(CONFIGURATION_PREFIX)) != 0 ||
		number_parse_decimal(name + strlen(CONFIGURATION_PREFIX), 1, UINT64_MAX, &number) < 0)
		return false;
	if (number < store->configuration_number) {
		remove_stored(name);
		close(fd);
		return true;
	}
	drop_configuration(store);
	store->configuration = fd;
	store->configuration_number = number;
	return true;
}

static bool take(struct fd_store *store, const char *name, int fd)
{
	if (strcmp(name, STORED) == 0 && store->stored < 0) {
		store->stored = fd;
		return true;
	}
	if (strcmp(name, RECORD) == 0 && store->record < 0) {
		store->record = fd;
		return true;
	}
	return take_part(store, name, fd) || take_cm(store, name, fd) || take_region(store, name, fd) ||
	       take_locked(store, name, fd) || take_configuration(store, name, fd);
}

void fd_store_take(struct fd_store *store)
{
	CLEANUP(free_names) char **list = NULL;
	int n = sd_listen_fds_with_names(true, &list);

	*store = (struct fd_store){.configuration = -1, .record = -1, .stored = -1};
	for (int i = 0; i < n; i++) {
		if (take(store, list[i], SD_LISTEN_FDS_START + i))
			continue;
		log_warning("a descriptor \"%s\" was handed over that is not known here", list[i]);
		remove_stored(list[i]);
		close(SD_LISTEN_FDS_START + i);
	}
}

bool fd_store_is_empty(const struct fd_store *store)
{
	return store->ndevices == 0;
}

static void remove_cm(const struct fd_store_device *device, unsigned i)
{
	char name[FD_STORE_NAME_BYTES];

	name_cm(name, device, i);
	remove_stored(name);
}

void fd_store_drop_old_cm(struct fd_store_device *device)
{
	for (unsigned i = 0; i < device->ncm; i++)
		remove_cm(device, i);
	device->cm_number[0] = device->cm_number[device->ncm];
	device->ncm = 0;
}

void fd_store_device_clear(struct fd_store_device *device)
{
	char name[FD_STORE_NAME_BYTES];

	for (unsigned k = 0; k < FD_STORE_NAMES; k++) {
		name_part(name, device, (enum fd_store_name)k);
		remove_stored(name);
		if (device->fd[k] >= 0)
			close(device->fd[k]);
		device->fd[k] = -1;
	}
	for (unsigned i = 0; i < device->ncm; i++)
		close(device->cm[i]);
	fd_store_drop_old_cm(device);
	if (device->has_own_cm)
		remove_cm(device, 0);
	device->has_own_cm = false;
	sd_notify_barrier(false, PATIENCE_US);
}

void fd_store_drop_record(struct fd_store *store)
{
	remove_stored(RECORD);
	if (store->record >= 0)
		close(store->record);
	store->record = -1;
}

void fd_store_clear(struct fd_store *store)
{
	fd_store_drop_record(store);
	drop_configuration(store);
	remove_stored(STORED);
	close(store->stored);
	store->stored = -1;
	sd_notify_barrier(false, PATIENCE_US);
}

static void send_fd(const char *name, int fd)
{
	char text[FD_STORE_NAME_BYTES + 40];

	/* FDPOLL=0: none of them has an end that the service manager could wait for (systemd 246) */
	snprintf(text, sizeof(text), "FDSTORE=1\nFDNAME=%s\nFDPOLL=0", name);
	notify_send(text, fd);
}

void fd_store_put(const struct fd_store_device *device, enum fd_store_name part, int fd)
{
	char name[FD_STORE_NAME_BYTES];

	name_part(name, device, part);
	send_fd(name, fd);
}

void fd_store_put_record(int fd)
{
	send_fd(RECORD, fd);
}

void fd_store_put_stored(struct fd_store *store, int fd)
{
	if (store->stored >= 0) {
		remove_stored(STORED);
		close(store->stored);
	}
	store->stored = fd;
	send_fd(STORED, fd);
}

void fd_store_put_cm(struct fd_store_device *device, uint64_t generation, int fd)
{
	char name[FD_STORE_NAME_BYTES];

	device->cm_number[device->ncm] = generation;
	device->has_own_cm = true;
	name_cm(name, device, device->ncm);
	send_fd(name, fd);
}

void fd_store_put_configuration(struct fd_store *store, int fd)
{
	uint64_t number = store->configuration_number + 1;
	char name[FD_STORE_NAME_BYTES];

	name_configuration(name, number);
	send_fd(name, fd);
	drop_configuration(store);
	store->configuration = fd;
	store->configuration_number = number;
}

static void name_locked(char name[FD_STORE_NAME_BYTES], uint64_t number)
{
	snprintf(name, FD_STORE_NAME_BYTES, LOCKED_PREFIX "%" PRIu64, number);
}

void fd_store_put_locked(uint64_t number, int fd)
{
	char name[FD_STORE_NAME_BYTES];

	name_locked(name, number);
	send_fd(name, fd);
}

void fd_store_drop_locked(uint64_t number)
{
	char name[FD_STORE_NAME_BYTES];

	name_locked(name, number);
	remove_stored(name);
}

void fd_store_unlock(struct fd_store *store)
{
	for (unsigned i = 0; i < store->nlocked; i++) {
		const struct held_store_inherited *l = &store->locked[i];

		if (l->used)
			continue;
		if (l->fd >= 0) {
			rnic_unlock(l->fd, REDDN_TABLE_LOCK_WRITER);
			close(l->fd);
		}
		fd_store_drop_locked(l->number);
	}
	store->nlocked = 0;
}

void fd_store_put_region(const char *name, int fd)
{
	char stored[FD_STORE_NAME_BYTES];

	snprintf(stored, sizeof(stored), REGION_PREFIX "%s", name);
	remove_stored(stored);
	send_fd(stored, fd);
}

void fd_store_drop_region(const char *name)
{
	char stored[FD_STORE_NAME_BYTES];

	snprintf(stored, sizeof(stored), REGION_PREFIX "%s", name);
	remove_stored(stored);
}
