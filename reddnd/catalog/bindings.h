/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bindings.h - private to the catalog: which memory each region of an offload's program is.
 */
#ifndef CATALOG_BINDINGS_H
#define CATALOG_BINDINGS_H

#include "reddnd/catalog/settings.h"

/** The setting "region" of @offload: where all regions without a binding of their own are. */
void bindings_parse_region(struct settings *l, const config_setting_t *s, void *offload);

/** The group "regions" of @offload. */
void bindings_parse(struct settings *l, const config_setting_t *s, void *offload);

/**
 * Reports at @group each region of @p that is bound to nothing suitable, each binding that @p has no region
 * for, regions that are the same memory although @p writes to one of them: the order of a chain relies on
 * their being different; and the first region of a program of shape table that is not the part of its name of
 * one table.
 */
void bindings_check(struct settings *l, const config_setting_t *group, const struct catalog_offload *o,
	const struct program *p);

#endif
