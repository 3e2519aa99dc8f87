/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/nic/control.h"

#include "softcx/nic/server.h"
#include "softcx/nic/status.h"
#include "softcx/proto/fds.h"
#include "softcx/proto/proto.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

struct control {
	struct source source; /* first */
	struct controls *of;
	bool hold;
	struct tracer *tracer; /* or NULL */
	struct watch *watch;   /* or NULL */
	LIST_ENTRY(control) link;
};

static struct json_object *status(const struct controls *c)
{
	return status_of(c->cfg, c->files, !LIST_EMPTY(&c->tracers.list));
}

static void send_status(const struct controls *c, int fd)
{
	struct json_object *o = status(c);
	const char *text =
		json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);

	send(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
	json_object_put(o);
}

/** Text of any length: in a file whose descriptor goes with one byte. Puts @o. */
static void send_file(int fd, struct json_object *o)
{
	const char *text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN);
	int file = memfd_create("softcx-json", MFD_CLOEXEC);
	size_t len = strlen(text);
	union {
		struct cmsghdr hdr;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {(char[]){"+"}, 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	softcx_put_fds(&msg, &control.hdr, &file, 1);
	if (file >= 0 && pwrite(file, text, len, 0) == (ssize_t)len)
		sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		send(fd, "?", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (file >= 0)
		close(file);
	json_object_put(o);
}

static void send_objects(const struct controls *c, int fd)
{
	struct json_object *o = status(c);

	json_object_object_add(o, "open_files", objects_of_files(c->files));
	send_file(fd, o);
}

static int start_watch(struct control *c)
{
	struct ucred cred = {0};
	socklen_t len = sizeof(cred);

	if (getsockopt(c->source.fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	watch_free(c->watch);
	c->watch = NULL;
	return watch_new(&c->of->watches, cred.pid, &c->watch);
}

static bool control_input(struct source *source)
{
	struct control *c = (struct control *)source;
	char word[16 * (SOFTCX_TRACE_QPS + 2)] = "";
	ssize_t n = recv(source->fd, word, sizeof(word) - 1, MSG_DONTWAIT);

	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	if (strcmp(word, "status") == 0) {
		send_status(c->of, source->fd);
	} else if (strcmp(word, "stop") == 0) {
		c->of->stop = true;
	} else if (strcmp(word, "hold") == 0) {
		c->of->holds += !c->hold;
		c->hold = true;
		send(source->fd, "ok", 2, MSG_DONTWAIT | MSG_NOSIGNAL);
	} else if (strncmp(word, "fault ", 6) == 0) {
		faults_command(c->of->faults, word + 6, source->fd);
	} else if (strcmp(word, "objects") == 0) {
		send_objects(c->of, source->fd);
	} else if (strcmp(word, "watch") == 0 && start_watch(c) == 0) {
		send(source->fd, "ok", 2, MSG_DONTWAIT | MSG_NOSIGNAL);
	} else if (strcmp(word, "left") == 0 && c->watch) {
		send_file(source->fd, watch_report(c->watch, c->of->files));
	} else if (strncmp(word, "trace", 5) == 0 && !c->tracer) {
		return tracer_new(&c->of->tracers, source->fd, word + 5, &c->tracer) == 0;
	} else if (strcmp(word, "end") == 0 && c->tracer) {
		tracer_end(c->tracer);
	} else {
		send(source->fd, "?", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	return true;
}

static void control_destroy(struct source *source)
{
	struct control *c = (struct control *)source;

	c->of->holds -= c->hold;
	tracer_free(c->tracer);
	watch_free(c->watch);
	LIST_REMOVE(c, link);
	free(c);
}

void controls_init(struct controls *all, const struct server_config *cfg, struct event_loop *loop,
	struct files *files, struct faults *faults)
{
	*all = (struct controls){.cfg = cfg, .loop = loop, .files = files, .faults = faults};
	tracers_init(&all->tracers, files, cfg->hosts->ndevs);
	watches_init(&all->watches, files);
}

int controls_add(struct controls *all, int fd)
{
	struct control *c = calloc(1, sizeof(*c));
	int rc = c ? 0 : -ENOMEM;

	if (rc == 0) {
		*c = (struct control){
			.source = {.fd = fd, .rank = 1, .input = control_input, .destroy = control_destroy},
			.of = all};
		rc = event_loop_add(all->loop, &c->source);
	}
	if (rc < 0) {
		free(c);
		close(fd);
		return rc;
	}
	LIST_INSERT_HEAD(&all->list, c, link);
	return 0;
}

void controls_clear(struct controls *all)
{
	struct control *c;

	LIST_FOREACH (c, &all->list, link)
		event_loop_remove(all->loop, &c->source);
}
