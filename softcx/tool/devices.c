/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/tool/devices.h"

#include "softcx/devices/profile.h"
#include "softcx/tool/nic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct json_object *value_json(const struct profile *p, enum profile_fact fact)
{
	char text[64];

	if (profile_fact_is_truth(fact))
		return json_object_new_boolean(p->value[fact] != 0);
	if (profile_fact_is_number(fact))
		return json_object_new_uint64(p->value[fact]);
	profile_fact_text(p, fact, text, sizeof(text));
	return json_object_new_string(text);
}

static struct json_object *profile_json(const struct profile *p)
{
	struct json_object *o = json_object_new_object(), *facts = json_object_new_object();

	json_object_object_add(o, "name", json_object_new_string(p->name));
	json_object_object_add(o, "title", json_object_new_string(p->title));
	for (unsigned i = 0; i < PROFILE_FACTS; i++) {
		struct json_object *f = json_object_new_object();

		json_object_object_add(f, "value", value_json(p, (enum profile_fact)i));
		json_object_object_add(f, "source", json_object_new_string(p->source[i]));
		json_object_object_add(facts, profile_fact_name((enum profile_fact)i), f);
	}
	json_object_object_add(o, "facts", facts);
	return o;
}

int tool_devices(bool json)
{
	struct json_object *all = json_object_new_array();
	char *names[PROFILE_MAX], path[PATH_MAX], why[PROFILE_WHY];
	int n = profile_list(names), rc = 0;
	struct profile p;

	if (n < 0)
		tool_die("the profiles of devices: %s", strerror(-n));
	for (int i = 0; i < n; i++) {
		if (profile_find(names[i], path, sizeof(path)) < 0 || profile_read(path, &p, why) < 0) {
			fprintf(stderr, "softcx: %s\n", why);
			rc = 1;
		} else if (json) {
			json_object_array_add(all, profile_json(&p));
		} else {
			printf("%-20s %s\n", p.name, p.title);
		}
		free(names[i]);
	}
	if (json)
		puts(json_object_to_json_string_ext(all, JSON_C_TO_STRING_PRETTY));
	json_object_put(all);
	return rc;
}
