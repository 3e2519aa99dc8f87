/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddnctl/control.h"

#include "tools/common/tool.h"
#include "util/rights.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sysexits.h>

int control_open(struct control *l, const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	CLEANUP(cleanup_close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int second;

	if ((size_t)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path) >= sizeof(addr.sun_path))
		return TOOL_FAIL(EX_USAGE, "%s: too long for a socket path", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		tool_complain("%s: %s%s", path, strerror(errno),
			errno == ENOENT || errno == ECONNREFUSED
				? "; is reddnd running with this control socket?"
			: errno == EACCES ? "; only root and the group of reddnd may open it"
					  : "");
		return EX_UNAVAILABLE;
	}
	second = dup(fd);
	l->from = second < 0 ? NULL : fdopen(second, "r");
	l->to = fdopen(fd, "w");
	if (l->to)
		steal_fd(&fd);
	return l->to && l->from ? 0 : EX_OSERR;
}

void control_close(struct control *l)
{
	if (l->to)
		fclose(l->to);
	if (l->from)
		fclose(l->from);
}

struct json_object *control_request(const char *command)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "command", json_object_new_string(command));
	return o;
}

struct json_object *control_next(struct control *l)
{
	CLEANUP(cleanup_free) char *line = NULL;
	struct json_object *o = NULL;
	size_t size = 0;

	while (!o && getline(&line, &size, l->from) > 0)
		o = json_tokener_parse(line);
	return o;
}

/* "FILE:LINE: words", which editors know */
static bool is_of_a_file(const char *error)
{
	size_t name = strcspn(error, ": \n");

	return error[name] == ':' && error[name + 1] >= '0' && error[name + 1] <= '9';
}

/* The result of the answer to a request that was sent, or was not */
static struct json_object *await(struct control *l, bool sent)
{
	CLEANUP(json_object_putp) struct json_object *answer = sent ? control_next(l) : NULL;
	struct json_object *v;

	if (!answer || !json_object_object_get_ex(answer, "ok", &v)) {
		tool_complain("the daemon closed the connection");
		return NULL;
	}
	if (json_object_get_boolean(v) && json_object_object_get_ex(answer, "result", &v))
		return json_object_get(v);
	if (json_object_object_get_ex(answer, "error", &v) && is_of_a_file(json_object_get_string(v)))
		fprintf(stderr, "%s\n", json_object_get_string(v));
	else if (v)
		tool_complain("%s", json_object_get_string(v));
	return NULL;
}

struct json_object *control_call(struct control *l, struct json_object *request)
{
	CLEANUP(json_object_putp) struct json_object *mine = request;

	fprintf(l->to, "%s\n", json_object_to_json_string_ext(mine, JSON_C_TO_STRING_PLAIN));
	return await(l, fflush(l->to) == 0);
}

struct json_object *control_call_with(struct control *l, struct json_object *request, int fd)
{
	CLEANUP(json_object_putp) struct json_object *mine = request;
	CLEANUP(cleanup_free) char *line = NULL;
	int len = asprintf(&line, "%s\n", json_object_to_json_string_ext(mine, JSON_C_TO_STRING_PLAIN));

	if (len < 0)
		line = NULL;
	return await(
		l, line && rights_send(fileno(l->to), line, (size_t)len, MSG_NOSIGNAL, fd) == (ssize_t)len);
}

uint64_t control_member(struct json_object *o, const char *name)
{
	struct json_object *v;

	return json_object_object_get_ex(o, name, &v) ? json_object_get_uint64(v) : 0;
}
