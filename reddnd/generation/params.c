/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/params.h"

#include <string.h>

static bool has_param(const struct program *p, const char *name)
{
	for (unsigned i = 0; i < p->nparams; i++)
		if (strcmp(p->params[i].name, name) == 0)
			return true;
	return false;
}

unsigned params_of_table(const struct program *p, const struct region *table, struct program_setting *params)
{
	const struct table_geometry *g = &table->table.geometry;
	const struct program_setting all[INFLUENCE_PARAMS] = {
		{"width", g->offset_len},
		{"record", table_slot_need(g) - REDDN_SLOT_RECORD},
		{"most", table->conf->store
				 ? reddn_store_payload(g->header, reddn_record_size(g->max_key, g->max_value))
				 : 0},
	};
	unsigned n = 0;

	for (unsigned i = 0; i < INFLUENCE_PARAMS; i++)
		if (all[i].value && has_param(p, all[i].name))
			params[n++] = all[i];
	return n;
}
