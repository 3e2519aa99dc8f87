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

/** What executes offloads, of one of them or as the default; and what may be said. */
void entries_parse_engine(struct settings *l, const config_setting_t *s, uint8_t *engine);
extern const char entries_engines[];

#endif
