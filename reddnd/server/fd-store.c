/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/fd-store.h"

#include "protocol/table-format.h"
#include "reddnd/rnic/region.h"
#include "reddnd/util/log.h"
#include "reddnd/util/notify.h"
#include "util/cleanup.h"
#include "util/number.h"

#include <inttypes.h>
#include <stdarg.h>
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

static void __attribute__((format(printf, 2, 3))) tell_manager(int fd, const char *name, ...)
{
	/* FDPOLL=0: none of them has an end that the service manager could wait for (systemd 246) */
	char text[FD_STORE_NAME_BYTES + 40] = "FDSTORE=1\nFDPOLL=0\nFDNAME=";
	size_t len;
	va_list ap;

	if (fd < 0)
		strcpy(text, "FDSTOREREMOVE=1\nFDNAME=");
	len = strlen(text);
	va_start(ap, name);
	vsnprintf(text + len, FD_STORE_NAME_BYTES, name, ap);
	va_end(ap);
	notify_send(text, fd);
}

/* The service manager keeps a copy of @fd under a name, or closes the one that it has */
#define KEEP(fd, ...) tell_manager(fd, __VA_ARGS__)
#define DROP(...) tell_manager(-1, __VA_ARGS__)

static void free_names(char ***list)
{
	for (char **name = *list; name && *name; name++)
		free(*name);
	free(*list);
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

static void drop_configuration(struct fd_store *store)
{
	if (store->configuration < 0)
		return;
	DROP(CONFIGURATION_PREFIX "%" PRIu64, store->configuration_number);
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
		DROP("%s", name);
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
		DROP("%s", list[i]);
		close(SD_LISTEN_FDS_START + i);
	}
}

bool fd_store_is_empty(const struct fd_store *store)
{
	return store->ndevices == 0;
}

static void drop_cm(const struct fd_store_device *device, unsigned i)
{
	DROP(CM_PREFIX "%" PRIu64 "-%s", device->cm_number[i], device->name);
}

void fd_store_drop_old_cm(struct fd_store_device *device)
{
	for (unsigned i = 0; i < device->ncm; i++)
		drop_cm(device, i);
	device->cm_number[0] = device->cm_number[device->ncm];
	device->ncm = 0;
}

void fd_store_device_clear(struct fd_store_device *device)
{
	for (unsigned k = 0; k < FD_STORE_NAMES; k++) {
		DROP("%s%s", prefixes[k], device->name);
		if (device->fd[k] >= 0)
			close(device->fd[k]);
		device->fd[k] = -1;
	}
	for (unsigned i = 0; i < device->ncm; i++)
		close(device->cm[i]);
	fd_store_drop_old_cm(device);
	if (device->has_own_cm)
		drop_cm(device, 0);
	device->has_own_cm = false;
	sd_notify_barrier(false, PATIENCE_US);
}

void fd_store_drop_record(struct fd_store *store)
{
	DROP(RECORD);
	if (store->record >= 0)
		close(store->record);
	store->record = -1;
}

void fd_store_clear(struct fd_store *store)
{
	fd_store_drop_record(store);
	drop_configuration(store);
	DROP(STORED);
	close(store->stored);
	store->stored = -1;
	sd_notify_barrier(false, PATIENCE_US);
}

void fd_store_put(const struct fd_store_device *device, enum fd_store_name part, int fd)
{
	KEEP(fd, "%s%s", prefixes[part], device->name);
}

void fd_store_put_record(int fd)
{
	KEEP(fd, RECORD);
}

void fd_store_put_stored(struct fd_store *store, int fd)
{
	if (store->stored >= 0) {
		DROP(STORED);
		close(store->stored);
	}
	store->stored = fd;
	KEEP(fd, STORED);
}

void fd_store_put_cm(struct fd_store_device *device, uint64_t generation, int fd)
{
	device->cm_number[device->ncm] = generation;
	device->has_own_cm = true;
	KEEP(fd, CM_PREFIX "%" PRIu64 "-%s", generation, device->name);
}

void fd_store_put_configuration(struct fd_store *store, int fd)
{
	uint64_t number = store->configuration_number + 1;

	KEEP(fd, CONFIGURATION_PREFIX "%" PRIu64, number);
	drop_configuration(store);
	store->configuration = fd;
	store->configuration_number = number;
}

void fd_store_put_locked(uint64_t number, int fd)
{
	KEEP(fd, LOCKED_PREFIX "%" PRIu64, number);
}

void fd_store_drop_locked(uint64_t number)
{
	DROP(LOCKED_PREFIX "%" PRIu64, number);
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
	DROP(REGION_PREFIX "%s", name);
	KEEP(fd, REGION_PREFIX "%s", name);
}

void fd_store_drop_region(const char *name)
{
	DROP(REGION_PREFIX "%s", name);
}
