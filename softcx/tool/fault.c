/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/tool/fault.h"

#include "softcx/tool/nic.h"

#include <stdio.h>
#include <string.h>

static void print_faults(struct json_object *all)
{
	for (size_t i = 0; i < json_object_array_length(all); i++) {
		struct json_object *o = json_object_array_get_idx(all, i);

		json_object_object_foreach(o, key, v)
			printf("%s%s %s", strcmp(key, "id") == 0 ? "" : ", ", key, json_object_get_string(v));
		putchar('\n');
	}
}

int tool_fault(char **words, bool json)
{
	static char answer[65536];
	char text[1000] = "fault";
	size_t len = strlen(text);
	struct json_object *all;
	int fd = tool_nic_connect();

	if (fd < 0)
		return tool_no_nic();
	for (; *words; words++) {
		if (strcmp(*words, "--json") == 0) {
			json = true;
			continue;
		}
		len += (size_t)snprintf(text + len, sizeof(text) - len, " %s", *words);
		if (len >= sizeof(text))
			tool_die("fault: too many words");
	}
	if (!tool_nic_ask(fd, text, answer, sizeof(answer)))
		tool_die("the NIC in %s does not answer", tool_dir);
	if (answer[0] != '+') {
		fprintf(stderr, "softcx: fault: %s\n", answer + 1);
		return 1;
	}
	all = answer[1] == '[' ? json_tokener_parse(answer + 1) : NULL;
	if (!all) {
		if (answer[1])
			puts(answer + 1);
	} else if (json) {
		puts(json_object_to_json_string_ext(all, JSON_C_TO_STRING_PRETTY));
	} else {
		print_faults(all);
	}
	json_object_put(all);
	return 0;
}
