/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/tool/status.h"

#include "softcx/tool/nic.h"
#include "softcx/tool/objects.h"
#include "util/array.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int64_t get(struct json_object *o, const char *key)
{
	struct json_object *v;

	return json_object_object_get_ex(o, key, &v) ? json_object_get_int64(v) : 0;
}

static void print_status(struct json_object *o)
{
	static const char *const kinds[] = {"pds", "mkeys", "uars", "cqs", "qps", "srqs", "mems"};
	struct json_object *devs;

	printf("NIC      process %lld in %s, seed %lld%s%s%s%s%s\n", (long long)get(o, "pid"), tool_dir,
		(long long)get(o, "seed"), get(o, "lenient") ? ", lenient" : "",
		get(o, "index_check") ? "" : ", no index check", get(o, "qpn_check") ? "" : ", no QPN check",
		get(o, "sync_fence") ? "" : ", WAIT and SEND_EN without fence",
		get(o, "message_limit") ? "" : ", no limit of messages");
	printf("files    %lld open\n", (long long)get(o, "files"));
	if (!json_object_object_get_ex(o, "devices", &devs))
		return;
	for (size_t i = 0; i < json_object_array_length(devs); i++) {
		struct json_object *dev = json_object_array_get_idx(devs, i), *name;

		if (!json_object_object_get_ex(dev, "name", &name))
			continue;
		printf("%-8s", json_object_get_string(name));
		for (unsigned k = 0; k < COUNT(kinds); k++)
			printf("%s%lld %s", k ? ", " : " ", (long long)get(dev, kinds[k]), kinds[k]);
		printf("; since start %lld WQEs, %lld CQEs, %lld bytes\n", (long long)get(dev, "wqes"),
			(long long)get(dev, "cqes"), (long long)get(dev, "bytes"));
	}
}

int tool_status(bool objects, bool json)
{
	int fd = tool_nic_connect();
	struct json_object *o = fd < 0            ? NULL
				: objects || json ? tool_ask_json(fd, "objects")
						  : tool_nic_status(fd);
	struct json_object *files;

	if (!o)
		return tool_no_nic();
	if (json) {
		puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY));
	} else {
		print_status(o);
		if (json_object_object_get_ex(o, "open_files", &files))
			tool_print_files(stdout, files);
	}
	json_object_put(o);
	return 0;
}
