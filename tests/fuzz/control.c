/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines, to the control socket of a living daemon. */
#include "tests/fuzz/inputs.h"

#include <json-c/json.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* How many inputs are made so that one hangs up in the middle of the line, and one before the answer */
enum { HANG_UP = 16, ANSWER_MAX = 1 << 20, PATIENCE_S = 60 };

static enum { STAYS, HALF, DEAF } manners; /* of the input that was made last */

static void make(struct input *in)
{
	static const char *const good[] = {"{ \"command\": \"status\" }", "{ \"command\": \"clients\" }",
		"{ \"command\": \"kick\", \"session\": 123456 }", "{\"command\":\"metrics\"}",
		"{ \"command\": \"offloads\" }", "{ \"command\": \"regions\" }",
		"{ \"command\": \"tenants\" }",
		"{ \"command\": \"limit\", \"tenant\": \"everyone\", \"rate\": 5000, \"burst\": 50 }",
		"{ \"command\": \"limit\", \"tenant\": \"everyone\", \"bytes_rate\": 5000000 }"};
	static const char *const words[] = {"[", "{", "}", "]", ":", ",", "\"", "null", "true", "1e400", "-0",
		"\"\\ud800\"", "\"\\u0000\"", "\"command\":", "\"session\":", "18446744073709551616", "\xff",
		"\"command\": \"status\", ", "//", "/*", "NaN", "\\"};

	inputs_damage(
		in, good[inputs_pick(sizeof(good) / sizeof(*good))], words, sizeof(words) / sizeof(*words));
	manners = inputs_pick(HANG_UP) == 0 ? HALF : inputs_pick(HANG_UP) == 0 ? DEAF : STAYS;
}

static int reach(void)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	const struct timeval patience = {.tv_sec = PATIENCE_S};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	inputs_need(fd >= 0 && strlen(inputs_socket) < sizeof(to.sun_path), "no socket");
	strcpy(to.sun_path, inputs_socket);
	inputs_need(connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0, "the daemon does not answer");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return fd;
}

/* An answer: an object that says whether it is one, and if not, why */
static bool judge(const char *line)
{
	struct json_object *o = json_tokener_parse(line), *ok, *error;
	bool yes;

	inputs_need(
		o && json_object_object_get_ex(o, "ok", &ok) && json_object_is_type(ok, json_type_boolean),
		"an answer that is none");
	yes = json_object_get_boolean(ok);
	if (!yes) {
		inputs_need(json_object_object_get_ex(o, "error", &error) && *json_object_get_string(error),
			"refused without words");
		inputs_feature(json_object_get_string(error));
	}
	json_object_put(o);
	return yes;
}

static enum input_outcome use(const struct input *in)
{
	static char answer[ANSWER_MAX];
	size_t half = in->len / 2, got = 0;
	bool all = true, sent;
	unsigned lines = 1;
	int fd = reach();

	for (size_t i = 0; i < in->len; i++)
		lines += in->bytes[i] == '\n';
	sent = send(fd, in->bytes, half, MSG_NOSIGNAL) >= 0 && manners != HALF &&
	       send(fd, in->bytes + half, in->len - half, MSG_NOSIGNAL) >= 0 &&
	       send(fd, "\n", 1, MSG_NOSIGNAL) >= 0;
	for (char *line = answer, *last; sent && manners == STAYS && lines > 0; lines--, line = last + 1) {
		while (!(last = memchr(line, '\n', got - (size_t)(line - answer)))) {
			ssize_t n = recv(fd, answer + got, sizeof(answer) - 1 - got, 0);

			inputs_need(n > 0, "a line without an answer");
			got += (size_t)n;
		}
		*last = 0;
		all &= judge(line);
	}
	close(fd);
	return sent && manners == STAYS && all ? INPUT_ACCEPTED : INPUT_REFUSED;
}

const struct input_kind inputs_control = {.name = "control", .make = make, .use = use, .live = true};
