/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/store.h"

#include "reddnd/util/log.h"
#include "util/cleanup.h"

#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

enum { PATIENCE_US = 5000000 };

static const char *const names[STORE_NAMES] = {
	[STORE_DEVICE] = "uverbs",
	[STORE_CM] = "rdma-cm",
	[STORE_ARENA] = "arena",
	[STORE_LEDGER] = "ledger",
};

static void free_names(char ***list)
{
	for (char **name = *list; name && *name; name++)
		free(*name);
	free(*list);
}

void store_take(struct store *store)
{
	CLEANUP(free_names) char **list = NULL;
	int n = sd_listen_fds_with_names(true, &list);

	for (unsigned k = 0; k < STORE_NAMES; k++)
		store->fd[k] = -1;
	for (int i = 0; i < n; i++) {
		unsigned k = 0;

		while (k < STORE_NAMES && strcmp(list[i], names[k]) != 0)
			k++;
		if (k < STORE_NAMES && store->fd[k] < 0) {
			store->fd[k] = SD_LISTEN_FDS_START + i;
			continue;
		}
		log_warning("a descriptor \"%s\" was handed over that is not known here", list[i]);
		close(SD_LISTEN_FDS_START + i);
	}
}

static void remove_stored(const char *name)
{
	char text[64];

	snprintf(text, sizeof(text), "FDSTOREREMOVE=1\nFDNAME=%s", name);
	sd_notify(false, text);
}

void store_clear(struct store *store)
{
	for (unsigned k = 0; k < STORE_NAMES; k++) {
		remove_stored(names[k]);
		if (store->fd[k] >= 0)
			close(store->fd[k]);
		store->fd[k] = -1;
	}
	sd_notify_barrier(false, PATIENCE_US);
}

void store_put(enum store_name name, int fd)
{
	char text[64];

	/* FDPOLL=0: none of them has an end that the service manager could wait for (systemd 246) */
	snprintf(text, sizeof(text), "FDSTORE=1\nFDNAME=%s\nFDPOLL=0", names[name]);
	sd_pid_notify_with_fds(0, false, text, &fd, 1);
}
