/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * influence.h - private to the catalog: which bytes of regions clients influence, by any offload.
 */
#ifndef CATALOG_INFLUENCE_H
#define CATALOG_INFLUENCE_H

#include "reddnd/catalog/settings.h"

/**
 * What one program stores for a client, another one may read, now or after a reload. Sets `theirs` of each
 * offload, and compiles the programs again with it until that changes nothing any more; sets `stored` of the
 * catalog. @list: the offloads (NULL: none), as they were parsed without a mistake; a program that is refused
 * now is reported at its entry. @before: as catalog_load(). 0 or -ENOMEM.
 */
int influence_settle(struct settings *l, const config_setting_t *list, const struct catalog *before);

#endif
