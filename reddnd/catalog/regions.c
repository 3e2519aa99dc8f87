/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/settings.h"

#include <stdlib.h>
#include <string.h>

static void region_name(struct load *l, const config_setting_t *s, void *object)
{
	settings_name(l, s, ((struct catalog_region *)object)->name);
}

static void region_path(struct load *l, const config_setting_t *s, void *object)
{
	const char *path = config_setting_get_string(s);

	if (path[0] != '/')
		settings_wrong(l, s, "path \"%s\" is relative; give it from the root: \"/...\"", path);
	else
		((struct catalog_region *)object)->path = strdup(path);
}

static void region_kind(struct load *l, const config_setting_t *s, void *object)
{
	const char *kind = config_setting_get_string(s);

	if (strcmp(kind, "table") != 0 && strcmp(kind, "raw") != 0)
		settings_wrong(l, s, "unknown kind \"%s\"; it must be \"table\" or \"raw\"", kind);
	else
		((struct catalog_region *)object)->raw = strcmp(kind, "raw") == 0;
}

static void region_writable(struct load *l, const config_setting_t *s, void *object)
{
	(void)l;
	((struct catalog_region *)object)->writable = config_setting_get_bool(s);
}

static const struct rule region_rules[] = {
	{"name", T_STRING, "a name", true, region_name},
	{"path", T_STRING, "the path of a file", true, region_path},
	{"kind", T_STRING, "\"table\" or \"raw\"", true, region_kind},
	{"writable", T_BOOL, "true or false", false, region_writable},
};

void settings_parse_region(struct load *l, const config_setting_t *group)
{
	struct catalog *c = l->catalog;
	struct catalog_region *r = &c->regions[c->nregions];

	r->where = settings_where(l, group);
	settings_group(l, group, "in a region", region_rules, COUNT(region_rules), r);
	if (r->writable && !r->raw)
		settings_wrong(l, group,
			"a table is written by its writer alone; only regions of kind \"raw\" can be "
			"\"writable\"");
	for (unsigned i = 0; i < c->nregions; i++)
		if (*r->name && strcmp(c->regions[i].name, r->name) == 0)
			settings_wrong(l, group, "region \"%s\" is already declared at %s; names must differ",
				r->name, c->regions[i].where);
	c->nregions++;
}
