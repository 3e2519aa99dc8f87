/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: lines for the control socket of a running daemon, at the path in $FUZZ_CONTROL. Some inputs
 * are sent by a peer that hangs up in the middle of a line or before the answer.
 */
#include "tests/fuzz/fuzz.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { HALF_EVERY = 16, DEAF_EVERY = 17, ANSWER_MAX = 1 << 20, TIMEOUT_S = 60 };

static int reach(void)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	const struct timeval timeout = {.tv_sec = TIMEOUT_S};
	const char *path = getenv("FUZZ_CONTROL");
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	fuzz_need(path && strlen(path) < sizeof(to.sun_path), "set FUZZ_CONTROL to the path of the socket");
	strcpy(to.sun_path, path);
	fuzz_need(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0,
		"the daemon does not accept connections");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	return fd;
}

/* An answer is an object with "ok"; a refusal also has "error". */
static void judge(const char *line)
{
	struct json_object *o = json_tokener_parse(line), *ok, *error;

	fuzz_need(o && json_object_object_get_ex(o, "ok", &ok) && json_object_is_type(ok, json_type_boolean),
		"a malformed answer");
	if (!json_object_get_boolean(ok)) {
		fuzz_need(json_object_object_get_ex(o, "error", &error), "refused without a message");
		fuzz_refused(json_object_get_string(error));
	}
	json_object_put(o);
}

static void read_answers(int fd, unsigned lines)
{
	static char answer[ANSWER_MAX];
	uint64_t before = fuzz_refusals;
	char *line = answer, *last;
	size_t got = 0;

	for (; lines > 0; lines--, line = last + 1) {
		while (!(last = memchr(line, '\n', got - (size_t)(line - answer)))) {
			ssize_t n = recv(fd, answer + got, sizeof(answer) - 1 - got, 0);

			fuzz_need(n > 0, "a line without an answer");
			got += (size_t)n;
		}
		*last = 0;
		judge(line);
	}
	if (fuzz_refusals > before) /* one input, however many lines */
		fuzz_refusals = before + 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static unsigned number;
	size_t half = size / 2;
	unsigned lines = 1;
	int fd = reach();

	number++;
	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	if (send(fd, data, half, MSG_NOSIGNAL) >= 0 && number % HALF_EVERY &&
		send(fd, data + half, size - half, MSG_NOSIGNAL) >= 0 &&
		send(fd, "\n", 1, MSG_NOSIGNAL) >= 0 && number % DEAF_EVERY)
		read_answers(fd, lines);
	close(fd);
	return 0;
}
