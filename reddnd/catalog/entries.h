/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * entries.h - private to the catalog: read one entry of the lists "regions", "offloads" and "tenants". The
 * catalog has room for it. Offloads refer to regions, and tenants to offloads, that have been read before.
 */
#ifndef CATALOG_ENTRIES_H
#define CATALOG_ENTRIES_H

#include "reddnd/catalog/settings.h"

void entries_parse_region(struct settings *l, const config_setting_t *group);
void entries_parse_offload(struct settings *l, const config_setting_t *group);
void entries_parse_tenant(struct settings *l, const config_setting_t *group);

/** The setting "engine" of offloads, and of the daemon for those that do not have it. */
#define ENTRIES_ENGINE(field)                                                                                \
	{                                                                                                    \
		"engine", "\"nic\", \"cpu\" or \"auto\"", SETTINGS_CHOICE, field, .words = {                 \
			[CATALOG_AUTO] = "auto",                                                             \
			[CATALOG_NIC] = "nic",                                                               \
			[CATALOG_CPU] = "cpu"                                                                \
		}                                                                                            \
	}

#endif
