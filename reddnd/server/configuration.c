/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/configuration.h"

#include "reddnd/catalog/kept.h"
#include "reddnd/ledger/ledger.h"
#include "reddnd/server/renewal.h"
#include "reddnd/util/log.h"
#include "util/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

DEFINE_CLEANUP(struct catalog *, catalog_free)

void configuration_init(struct configuration *c)
{
	*c = (struct configuration){0};
	fd_store_take(&c->store);
}

void configuration_deinit(struct configuration *c)
{
	if (c->catalog)
		catalog_free(c->catalog);
	free(c->refused);
	c->catalog = NULL;
	c->refused = NULL;
}

/* *@why gets the first error, a line; NULL: no memory for it */
static int load_file(struct configuration *c, const char *path, char **why)
{
	size_t size;
	FILE *f = open_memstream(why, &size);
	int r;

	log_tee(f);
	r = renewal_load(path, &c->catalog);
	log_tee(NULL);
	if (f)
		fclose(f);
	if (*why)
		(*why)[strcspn(*why, "\n")] = '\0';
	return r;
}

/* NULL: there is none that can be used */
static struct catalog *last_in_force(const struct fd_store *store)
{
	CLEANUP(cleanup_free) char *errors = NULL;
	struct catalog *last = NULL;
	int r;

	if (store->configuration < 0 || fd_store_is_empty(store))
		return NULL;
	r = catalog_restore(store->configuration, &last, &errors);
	if (r == 0)
		return last;
	log_errno(r, "the configuration that was last in force cannot be used%s%s", errors ? ": " : "",
		errors ? errors : "");
	return NULL;
}

/* The daemon before this one failed with a configuration that has no mistake */
static bool is_distrusted(const struct configuration *c)
{
	const struct fd_store *s = &c->store;
	bool distrusted = false;

	for (unsigned i = 0; i < s->ndevices; i++)
		distrusted |= s->device[i].fd[FD_STORE_LEDGER] >= 0 &&
			      ledger_is_distrusted(s->device[i].fd[FD_STORE_LEDGER]);
	return distrusted && s->configuration >= 0 && !catalog_is_kept(c->catalog, s->configuration);
}

int configuration_load(struct configuration *c, const char *path)
{
	CLEANUP(catalog_freep) struct catalog *last = NULL;
	CLEANUP(cleanup_free) char *why = NULL;
	int r = load_file(c, path, &why);

	if (r == 0 && !is_distrusted(c))
		return 0;
	last = last_in_force(&c->store);
	if (!last)
		return r;
	if (r == 0) {
		free(why);
		why = strdup("it could not be served; the log of the daemon that tried has the reason");
	}
	if (!why)
		return -ENOMEM;
	log_error(
		"%s is not in force (%s): going on with the configuration that was last in force", path, why);
	if (c->catalog)
		catalog_free(c->catalog);
	c->catalog = steal_ptr(&last);
	c->refused = steal_ptr(&why);
	return 0;
}

bool configuration_is_kept(const struct fd_store *store, const struct catalog *catalog)
{
	return !fd_store_is_empty(store) && store->configuration >= 0 &&
	       catalog_is_kept(catalog, store->configuration);
}

void configuration_keep(struct fd_store *store, const struct catalog *catalog)
{
	int fd, r;

	if (store->configuration >= 0 && catalog_is_kept(catalog, store->configuration))
		return;
	r = catalog_keep(catalog, &fd);
	if (r < 0)
		log_errno(r, "the configuration cannot be kept for the next daemon");
	else
		fd_store_put_configuration(store, fd);
}
