/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/entries.h"

#define REGION(member) SETTINGS_FIELD(struct catalog_region, member)

static const struct settings_rule region_rules[] = {
	{"name", SETTINGS_A_NAME, SETTINGS_NAME, REGION(name), .required = true},
	{"path", "an absolute path: \"/...\"", SETTINGS_PATH, REGION(path), .required = true},
	{"kind", "\"table\" or \"raw\"", SETTINGS_CHOICE, REGION(raw), .required = true,
		.words = {"table", "raw"}},
	{"writable", "true or false", SETTINGS_FLAG, REGION(writable)},
};

void entries_parse_region(struct settings *l, const config_setting_t *group)
{
	struct catalog *c = l->catalog;
	struct catalog_region *r = &c->regions[c->nregions];
	unsigned other;

	r->where = settings_where(l, group);
	settings_group(l, group, "in a region", region_rules, COUNT(region_rules), r);
	if (r->writable && !r->raw)
		settings_wrong(l, group,
			"a table is written by its writer alone; only regions of kind \"raw\" can be "
			"\"writable\"");
	other = settings_index(c->regions, c->nregions, sizeof(*r), r->name);
	if (*r->name && other < c->nregions)
		settings_wrong(l, group, "region \"%s\" is already declared at %s; names must differ",
			r->name, c->regions[other].where);
	c->nregions++;
}
