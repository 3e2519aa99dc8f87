/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * programs.h - private to the catalog: which program an offload names, and with which params.
 */
#ifndef CATALOG_PROGRAMS_H
#define CATALOG_PROGRAMS_H

#include "reddnd/catalog/settings.h"

/** The setting "program" of @offload: reads the file. "/x/y.rdn" is that file; "y" is y.rdn in the first of
 * the directories "programs" that has it. */
void programs_parse(struct settings *l, const config_setting_t *s, void *offload);

/** The group "params" of @offload. */
void programs_parse_params(struct settings *l, const config_setting_t *s, void *offload);

#endif
