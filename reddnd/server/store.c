/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/store.h"

#include "reddnd/util/log.h"
#include "util/cleanup.h"
#include "util/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

enum { PATIENCE_US = 5000000 };

#define CM_PREFIX "rdma-cm"
#define REGION_PREFIX "region-"
#define CONFIGURATION_PREFIX "configuration-"

static const char *const names[STORE_NAMES] = {
	[STORE_DEVICE] = "uverbs",
	[STORE_ARENA] = "arena",
	[STORE_LEDGER] = "ledger",
	[STORE_RECORD] = "record",
	[STORE_WATCHES] = "watches",
};

static void remove_stored(const char *name)
{
	char text[STORE_NAME_BYTES + 40];

	snprintf(text, sizeof(text), "FDSTOREREMOVE=1\nFDNAME=%s", name);
	sd_notify(false, text);
}

static void free_names(char ***list)
{
	for (char **name = *list; name && *name; name++)
		free(*name);
	free(*list);
}

static bool take_cm(struct store *store, const char *name, int fd)
{
	if (strncmp(name, CM_PREFIX, strlen(CM_PREFIX)) != 0 || store->ncm == STORE_CM_MAX ||
		strlen(name) >= STORE_NAME_BYTES)
		return false;
	snprintf(store->cm_name[store->ncm], STORE_NAME_BYTES, "%s", name);
	store->cm[store->ncm++] = fd;
	return true;
}

static bool take_region(struct store *store, const char *name, int fd)
{
	if (strncmp(name, REGION_PREFIX, strlen(REGION_PREFIX)) != 0 || store->nregions == STORE_REGION_MAX ||
		strlen(name) >= STORE_NAME_BYTES)
		return false;
	snprintf(store->region_name[store->nregions], STORE_NAME_BYTES, "%s", name + strlen(REGION_PREFIX));
	store->region[store->nregions++] = fd;
	return true;
}

static void name_configuration(char name[STORE_NAME_BYTES], uint64_t number)
{
	snprintf(name, STORE_NAME_BYTES, CONFIGURATION_PREFIX "%" PRIu64, number);
}

static void drop_configuration(struct store *store)
{
	char name[STORE_NAME_BYTES];

	if (store->configuration < 0)
		return;
	name_configuration(name, store->configuration_number);
	remove_stored(name);
	close(store->configuration);
	store->configuration = -1;
}

/* There are two if a daemon died between storing one and removing the other: the later one counts */
static bool take_configuration(struct store *store, const char *name, int fd)
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

static bool take(struct store *store, const char *name, int fd)
{
	for (unsigned k = 0; k < STORE_NAMES; k++) {
		if (strcmp(name, names[k]) != 0 || store->fd[k] >= 0)
			continue;
		store->fd[k] = fd;
		return true;
	}
	return take_cm(store, name, fd) || take_region(store, name, fd) ||
	       take_configuration(store, name, fd);
}

void store_take(struct store *store)
{
	CLEANUP(free_names) char **list = NULL;
	int n = sd_listen_fds_with_names(true, &list);

	*store = (struct store){.configuration = -1};
	for (unsigned k = 0; k < STORE_NAMES; k++)
		store->fd[k] = -1;
	for (int i = 0; i < n; i++) {
		if (take(store, list[i], SD_LISTEN_FDS_START + i))
			continue;
		log_warning("a descriptor \"%s\" was handed over that is not known here", list[i]);
		close(SD_LISTEN_FDS_START + i);
	}
}

bool store_is_empty(const struct store *store)
{
	for (unsigned k = 0; k < STORE_NAMES; k++)
		if (store->fd[k] >= 0)
			return false;
	return store->ncm == 0;
}

void store_drop_old_cm(struct store *store)
{
	for (unsigned i = 0; i < store->ncm; i++)
		remove_stored(store->cm_name[i]);
	memcpy(store->cm_name[0], store->cm_name[store->ncm], STORE_NAME_BYTES);
	store->ncm = 0;
}

void store_remove(struct store *store, enum store_name name)
{
	remove_stored(names[name]);
	if (store->fd[name] >= 0)
		close(store->fd[name]);
	store->fd[name] = -1;
}

void store_clear(struct store *store)
{
	for (unsigned k = 0; k < STORE_NAMES; k++)
		store_remove(store, (enum store_name)k);
	for (unsigned i = 0; i < store->ncm; i++)
		close(store->cm[i]);
	store_drop_old_cm(store);
	if (store->has_own_cm)
		remove_stored(store->cm_name[0]);
	store->has_own_cm = false;
	drop_configuration(store);
	sd_notify_barrier(false, PATIENCE_US);
}

static void send_fd(const char *name, int fd)
{
	char text[STORE_NAME_BYTES + 40];

	/* FDPOLL=0: none of them has an end that the service manager could wait for (systemd 246) */
	snprintf(text, sizeof(text), "FDSTORE=1\nFDNAME=%s\nFDPOLL=0", name);
	sd_pid_notify_with_fds(0, false, text, &fd, 1);
}

void store_put(enum store_name name, int fd)
{
	send_fd(names[name], fd);
}

void store_put_cm(struct store *store, uint64_t generation, int fd)
{
	char *name = store->cm_name[store->ncm];

	snprintf(name, STORE_NAME_BYTES, CM_PREFIX "-%" PRIu64, generation);
	store->has_own_cm = true;
	send_fd(name, fd);
}

void store_put_configuration(struct store *store, int fd)
{
	uint64_t number = store->configuration_number + 1;
	char name[STORE_NAME_BYTES];

	name_configuration(name, number);
	send_fd(name, fd);
	drop_configuration(store);
	store->configuration = fd;
	store->configuration_number = number;
}

void store_put_region(const char *name, int fd)
{
	char stored[STORE_NAME_BYTES];

	snprintf(stored, sizeof(stored), REGION_PREFIX "%s", name);
	remove_stored(stored);
	send_fd(stored, fd);
}

void store_drop_region(const char *name)
{
	char stored[STORE_NAME_BYTES];

	snprintf(stored, sizeof(stored), REGION_PREFIX "%s", name);
	remove_stored(stored);
}
