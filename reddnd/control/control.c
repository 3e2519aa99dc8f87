/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/control/control.h"

#include "reddnd/control/commands.h"
#include "reddnd/util/closer.h"
#include "reddnd/util/log.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* ---- the share of the event loop's time that goes to peers who may only read. An answer takes as long as
 * there are sessions, and peers can ask without end: after one that took t they wait SHARE_OF - 1 times t
 * ----
 */

enum { SHARE_OF = 10 };

/* All zero: nothing was answered yet. */
struct share {
	uint64_t until; /* us: they wait */
};

/* Microseconds until the next answer; 0: now. */
static uint64_t share_wait(const struct share *s, uint64_t now)
{
	return now < s->until ? s->until - now : 0;
}

/* One took from @begin_us to @end_us. */
static void share_took(struct share *s, uint64_t begin, uint64_t end)
{
	uint64_t took = end > begin ? end - begin : 1;

	s->until = end + (SHARE_OF - 1) * took;
}

enum { TURN_ACCURACY_US = 1000, PAUSE_US = 1000000, CLOSING_US = 10000 };

struct peer {
	struct control *control;
	int fd;
	struct commands_peer who; /* and the descriptor of the next request */
	struct commands_follow follow;
	char *in, *out; /* the rest of an answer begins at out + sent */
	size_t got, size, sent;
	sd_event_source *io, *timer;
	bool waits; /* for its turn, with a line that has come */
	LIST_ENTRY(peer) link;
	TAILQ_ENTRY(peer) next;
};

struct control {
	struct commands commands;
	char path[sizeof((struct sockaddr_un *)0)->sun_path];
	sd_event *event;
	int fd;
	bool bound;
	sd_event_source *io, *feeder;
	sd_event_source *pause;    /* after it, peers are accepted again */
	bool refuses;              /* the last one could not be accepted */
	unsigned npeers, nreaders; /* all; those that may not change anything */
	LIST_HEAD(, peer) peers;
	struct share share; /* of those that may only read */
	TAILQ_HEAD(, peer) waiting;
	sd_event_source *turn; /* of the first of them */
};

/* ---- one peer ---- */

static void drop_handed(struct peer *p)
{
	closer_close(p->who.uid, steal_fd(&p->who.fd));
}

static void drop_given(struct peer *p)
{
	if (p->follow.gives)
		closer_close(p->who.uid, p->follow.fd);
	p->follow.gives = false;
}

static void peer_free(struct peer *p)
{
	p->control->npeers--;
	p->control->nreaders -= !p->who.may_change;
	LIST_REMOVE(p, link);
	if (p->waits)
		TAILQ_REMOVE(&p->control->waiting, p, next);
	sd_event_source_disable_unref(p->io);
	sd_event_source_disable_unref(p->timer);
	closer_hang_up(p->who.uid, p->fd);
	drop_handed(p);
	drop_given(p);
	free(p->in);
	free(p->out);
	free(p);
}

static int peer_late(sd_event_source *source, uint64_t usec, void *arg)
{
	(void)source;
	(void)usec;
	peer_free(arg);
	return 0;
}

/* From now on the peer has CONTROL_IDLE_US for its next request, or to read its answer: for all of it,
 * however small the pieces are. One that follows may be silent for days, while nothing happens; one that
 * waits for a reload cannot speak */
static int peer_begin(struct peer *p)
{
	int r = sd_event_source_set_time_relative(p->timer, CONTROL_IDLE_US);

	return r < 0 ? r
		     : sd_event_source_set_enabled(p->timer,
			       p->follow.events || p->follow.reload ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}

/* send(2), with the descriptor for the peer if there is one */
static ssize_t send_some(struct peer *p)
{
	ssize_t n = rights_send(p->fd, p->out + p->sent, p->size - p->sent, MSG_NOSIGNAL | MSG_DONTWAIT,
		p->follow.gives ? p->follow.fd : -1);

	if (n > 0)
		drop_given(p);
	return n;
}

/* -errno: give up the peer */
static int peer_send(struct peer *p)
{
	int r;

	while (p->sent < p->size) {
		ssize_t n = send_some(p);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return sd_event_source_set_io_events(p->io, EPOLLOUT);
		if (n < 0)
			return -errno;
		p->sent += (size_t)n;
	}
	free(p->out);
	p->out = NULL;
	p->size = p->sent = 0;
	r = peer_begin(p);
	return r < 0 ? r : sd_event_source_set_io_events(p->io, EPOLLIN);
}

static int peer_give(struct peer *p, struct json_object *answer)
{
	int n, r;

	if (!answer)
		return -ENOMEM;
	n = asprintf(&p->out, "%s\n", json_object_to_json_string_ext(answer, JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(answer);
	if (n < 0) {
		p->out = NULL;
		return -ENOMEM;
	}
	p->size = (size_t)n;
	r = peer_begin(p);
	return r < 0 ? r : peer_send(p);
}

/* The answer may come later; until then nothing more is read */
static int peer_answer(struct peer *p, const char *line, size_t len)
{
	struct json_object *answer = commands_answer(&p->control->commands, line, len, &p->who, &p->follow);
	int r;

	drop_handed(p);
	if (!p->follow.reload)
		return peer_give(p, answer);
	json_object_put(answer);
	r = peer_begin(p);
	return r < 0 ? r : sd_event_source_set_io_events(p->io, 0);
}

static const struct events *events(const struct control *c)
{
	return server_events(c->commands.server);
}

/* Sends new events as far as the peer takes them. The others stay in the ring, not here. */
static int peer_feed(struct peer *p)
{
	int r = 0;

	while (p->follow.events && !p->follow.reload && !p->out && r >= 0) {
		p->out = audit_line(events(p->control), &p->follow.next);
		if (!p->out)
			return 0;
		p->size = strlen(p->out);
		r = peer_send(p);
	}
	return r;
}

static int feed_all(sd_event_source *source, void *arg)
{
	struct control *c = arg;
	struct peer *p, *next;

	(void)source;
	for (p = LIST_FIRST(&c->peers); p; p = next) {
		next = LIST_NEXT(p, link);
		if (peer_feed(p) < 0)
			peer_free(p);
	}
	return 0;
}

/* An event comes in the middle of other work, perhaps a command of a peer: send it later */
static void feed_soon(void *arg)
{
	struct control *c = arg;

	sd_event_source_set_enabled(c->feeder, SD_EVENT_ONESHOT);
}

/* True: it is not its turn, and nothing more is read until it is. -errno of sd-event */
static int peer_waits(struct peer *p)
{
	struct control *c = p->control;
	uint64_t us = p->who.may_change ? 0 : share_wait(&c->share, clock_us());
	int r;

	if (!us || p->waits)
		return p->waits;
	p->waits = true;
	TAILQ_INSERT_TAIL(&c->waiting, p, next);
	r = peer_begin(p);
	if (r >= 0)
		r = sd_event_source_set_io_events(p->io, 0);
	if (r >= 0)
		r = sd_event_source_set_time_relative(c->turn, us);
	if (r >= 0)
		r = sd_event_source_set_enabled(c->turn, SD_EVENT_ONESHOT);
	return r < 0 ? r : 1;
}

/* Answers the lines that have come, as far as the peer takes the answers */
static int peer_work(struct peer *p)
{
	int r = 0;

	while (!p->out && !p->follow.reload && r >= 0) {
		char *end = memchr(p->in, '\n', p->got);
		uint64_t begin = clock_us();
		size_t len;

		if (!end && p->got == CONTROL_LINE_MAX)
			return -EMSGSIZE;
		if (!end)
			return 0;
		r = peer_waits(p);
		if (r)
			return r < 0 ? r : 0;
		len = (size_t)(end - p->in);
		r = peer_answer(p, p->in, len);
		if (!p->who.may_change)
			share_took(&p->control->share, begin, clock_us());
		p->got -= len + 1;
		memmove(p->in, end + 1, p->got);
	}
	return r;
}

/* The descriptor that came with a message; -1: none */
static int passed(struct msghdr *msg)
{
	int fd = -1;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/* MSG_PEEK first: recvmsg(2) closes the descriptors for which there is no room, and closing the last one of a
 * file may wait (closer.h). A peer that sends several at once is disconnected while they are in its queue. */
static int peer_receive(struct peer *p)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} rights;
	struct iovec bytes = {p->in + p->got, CONTROL_LINE_MAX - p->got};
	struct msghdr msg = {.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = &rights,
		.msg_controllen = CMSG_LEN(sizeof(int))}; /* CMSG_SPACE() has room for two */
	ssize_t n = recvmsg(p->fd, &msg, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int fd, r = 0;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	fd = passed(&msg);
	if (msg.msg_flags & MSG_CTRUNC)
		r = -E2BIG;
	else if (fd >= 0 && closer_is_full(p->who.uid, CLOSER_TAKEN))
		r = -EBUSY;
	else if (recv(p->fd, bytes.iov_base, (size_t)n, MSG_DONTWAIT) != n)
		r = -EIO;
	if (r < 0) {
		closer_close(p->who.uid, fd);
		return r;
	}
	if (fd >= 0) { /* the last one that came is for the next request */
		drop_handed(p);
		p->who.fd = fd;
	}
	p->got += (size_t)n;
	return 0;
}

/* What it has sent, and what there is for it */
static int peer_go_on(struct peer *p)
{
	int r = peer_work(p);

	return r < 0 ? r : peer_feed(p);
}

static int peer_ready(sd_event_source *source, int fd, uint32_t revents, void *arg)
{
	struct peer *p = arg;
	int r;

	(void)source;
	(void)fd;
	(void)revents;
	r = p->out ? peer_send(p) : peer_receive(p);
	if (r >= 0)
		r = peer_go_on(p);
	if (r < 0)
		peer_free(p);
	return 0;
}

/* The others wait again, in the same order, for as long as this answer takes them to */
static int on_turn(sd_event_source *source, uint64_t usec, void *arg)
{
	struct control *c = arg;
	struct peer *p = TAILQ_FIRST(&c->waiting);
	int r;

	(void)usec;
	if (!p)
		return 0;
	TAILQ_REMOVE(&c->waiting, p, next);
	p->waits = false;
	r = sd_event_source_set_io_events(p->io, EPOLLIN);
	if (r >= 0)
		r = peer_go_on(p);
	if (r < 0)
		peer_free(p);
	if (TAILQ_EMPTY(&c->waiting))
		return 0;
	r = sd_event_source_set_time_relative(source, share_wait(&c->share, clock_us()));
	return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static void answer_waiting(struct control *c, uint64_t first, uint64_t last, int error, const char *errors)
{
	struct peer *p, *next;

	for (p = LIST_FIRST(&c->peers); p; p = next) {
		next = LIST_NEXT(p, link);
		if (p->follow.reload < first || p->follow.reload > last)
			continue;
		p->follow.reload = 0;
		if (peer_give(p, commands_reloaded(&c->commands, error, errors)) < 0 || peer_go_on(p) < 0)
			peer_free(p);
	}
}

void control_reloaded(struct control *c, uint64_t number, int error, const char *errors)
{
	answer_waiting(c, 1, number, error, errors);
}

void control_taken(struct control *c, uint64_t number, int error, const char *errors)
{
	answer_waiting(c, number, number, error, errors);
}

static struct commands_peer who_is(int fd)
{
	struct ucred cred;
	socklen_t size = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
		return (struct commands_peer){.uid = (uid_t)-1, .fd = -1};
	return (struct commands_peer){
		.may_change = cred.uid == 0 || cred.uid == geteuid(), .uid = cred.uid, .fd = -1};
}

static int peer_new(struct control *c, int fd, const struct commands_peer *who)
{
	struct peer *p = calloc(1, sizeof(*p));
	int r;

	if (!p) {
		closer_hang_up(who->uid, fd);
		return -ENOMEM;
	}
	p->control = c;
	p->fd = fd;
	p->who = *who;
	c->npeers++;
	c->nreaders += !who->may_change;
	LIST_INSERT_HEAD(&c->peers, p, link);
	p->in = malloc(CONTROL_LINE_MAX);
	r = p->in ? sd_event_add_io(c->event, &p->io, fd, EPOLLIN, peer_ready, p) : -ENOMEM;
	if (r >= 0)
		r = sd_event_add_time_relative(
			c->event, &p->timer, CLOCK_MONOTONIC, CONTROL_IDLE_US, 0, peer_late, p);
	if (r < 0)
		peer_free(p);
	return r;
}

static int pause_over(sd_event_source *source, uint64_t usec, void *arg)
{
	struct control *c = arg;

	(void)source;
	(void)usec;
	return sd_event_source_set_enabled(c->io, SD_EVENT_ON);
}

/* Whoever waits for the socket keeps it readable: without a pause the loop would try again at once */
static int accept_later(struct control *c, uint64_t us)
{
	int r = sd_event_source_set_enabled(c->io, SD_EVENT_OFF);

	if (r >= 0)
		r = sd_event_source_set_time_relative(c->pause, us);
	return r < 0 ? r : sd_event_source_set_enabled(c->pause, SD_EVENT_ONESHOT);
}

/* There is no descriptor, say */
static int accept_failed(struct control *c, int error)
{
	if (!c->refuses)
		log_errno(error, "no peer can be accepted on %s; it is tried again every second", c->path);
	c->refuses = true;
	return accept_later(c, PAUSE_US);
}

/* True of accept(2): the peer has left, or another event comes */
static bool no_peer(int error)
{
	return error == EAGAIN || error == EINTR || error == ECONNABORTED;
}

static unsigned count_peers_of(const struct control *c, uid_t uid)
{
	const struct peer *p;
	unsigned n = 0;

	LIST_FOREACH (p, &c->peers, link)
		n += p->who.uid == uid;
	return n;
}

/* Of those that may only read, the peer that makes room for one of a user with @n: the oldest of the user
 * that has the most, and sooner one that follows, for whom no time is set. NULL: no user has more */
static struct peer *peer_that_leaves(const struct control *c, unsigned n)
{
	struct peer *p, *leaves = NULL;
	unsigned most = 0;

	LIST_FOREACH (p, &c->peers, link) {
		unsigned has = p->who.may_change ? 0 : count_peers_of(c, p->who.uid);
		unsigned rank = 2 * has + p->follow.events;

		/* Two that took turns at the last seat would keep each other out */
		if (has > n + !p->follow.events && rank >= most) {
			most = rank;
			leaves = p;
		}
	}
	return leaves;
}

static bool take_seat(struct control *c, const struct commands_peer *who)
{
	unsigned n = count_peers_of(c, who->uid);
	struct peer *leaves = NULL;

	if (who->may_change)
		return c->npeers < CONTROL_PEERS_MAX;
	if (n >= CONTROL_USER_MAX)
		return false;
	if (c->nreaders < CONTROL_READERS_MAX)
		return c->npeers < CONTROL_PEERS_MAX;
	leaves = peer_that_leaves(c, n);
	if (leaves)
		peer_free(leaves);
	return leaves;
}

static int peers_come(sd_event_source *source, int listener, uint32_t revents, void *arg)
{
	struct control *c = arg;
	struct commands_peer who;
	int fd, r;

	(void)source;
	(void)revents;
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return no_peer(errno) ? 0 : accept_failed(c, -errno);
	c->refuses = false;
	who = who_is(fd);
	/* Of this user there is more to be closed than is closed at once: others wait a hundredth of a second
	 * for their turn, and meanwhile the threads get ahead of what comes */
	if (closer_is_full(who.uid, CLOSER_PEER)) {
		closer_hang_up(who.uid, fd);
		return accept_later(c, CLOSING_US);
	}
	/* Else peer_receive() would not see data out of band (MSG_OOB), and drop them with their descriptors
	 */
	if (!take_seat(c, &who) || setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &(int){1}, sizeof(int)) < 0) {
		closer_hang_up(who.uid, fd);
		return 0;
	}
	r = peer_new(c, fd, &who);
	if (r < 0)
		log_errno(r, "a peer on %s cannot be served", c->path);
	return 0;
}

/* ---- the socket ---- */

int control_check(const char *path)
{
	CLEANUP(cleanup_free) char *copy = strdup(path);
	struct stat st;

	if (!copy)
		return -ENOMEM;
	if (lstat(path, &st) == 0) {
		if (S_ISSOCK(st.st_mode))
			return 0;
		log_error("control socket %s: something else is there, and no socket; remove it, or set "
			  "\"control\" to "
			  "another path",
			path);
		return -EEXIST;
	}
	return stat(dirname(copy), &st) < 0 ? log_errno(-errno, "control socket %s: its directory", path) : 0;
}

/* True if a process answers at @addr */
static bool alive(const struct sockaddr_un *addr)
{
	CLEANUP(cleanup_close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd >= 0 && (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 || errno == EAGAIN);
}

static int open_socket(struct control *c)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct stat st;
	int r;

	memcpy(addr.sun_path, c->path, sizeof(addr.sun_path));
	if (alive(&addr))
		return -EADDRINUSE;
	if (lstat(c->path, &st) == 0 && S_ISSOCK(st.st_mode))
		unlink(c->path);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->fd < 0 || bind(c->fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -errno;
	c->bound = true;
	if (chmod(c->path, 0660) < 0 || listen(c->fd, CONTROL_PEERS_MAX) < 0)
		return -errno;
	r = sd_event_add_io(c->event, &c->io, c->fd, EPOLLIN, peers_come, c);
	if (r >= 0)
		r = sd_event_add_defer(c->event, &c->feeder, feed_all, c);
	if (r >= 0)
		r = sd_event_source_set_enabled(c->feeder, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time_relative(
			c->event, &c->turn, CLOCK_MONOTONIC, 0, TURN_ACCURACY_US, on_turn, c);
	if (r >= 0)
		r = sd_event_source_set_enabled(c->turn, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time_relative(c->event, &c->pause, CLOCK_MONOTONIC, 0, 0, pause_over, c);
	return r < 0 ? r : sd_event_source_set_enabled(c->pause, SD_EVENT_OFF);
}

DEFINE_CLEANUP(struct control *, control_free)

int control_new(struct control **out, const char *path, const struct commands *commands, sd_event *event)
{
	CLEANUP(control_freep) struct control *c = NULL;
	int r = control_check(path);

	if (r < 0)
		return r;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->fd = -1;
	c->commands = *commands;
	c->event = sd_event_ref(event);
	LIST_INIT(&c->peers);
	TAILQ_INIT(&c->waiting);
	r = (size_t)snprintf(c->path, sizeof(c->path), "%s", path) < sizeof(c->path) ? open_socket(c)
										     : -ENAMETOOLONG;
	if (r < 0)
		return log_errno(r, "control socket %s", path);
	events_listen(server_events(c->commands.server), feed_soon, c);
	*out = steal_ptr(&c);
	return 0;
}

void control_free(struct control *c)
{
	struct peer *p;

	events_listen(server_events(c->commands.server), NULL, NULL);
	while ((p = LIST_FIRST(&c->peers)))
		peer_free(p);
	sd_event_source_disable_unref(c->io);
	sd_event_source_disable_unref(c->feeder);
	sd_event_source_disable_unref(c->turn);
	sd_event_source_disable_unref(c->pause);
	if (c->bound)
		unlink(c->path);
	closer_hang_up(geteuid(), c->fd); /* with those that were not accepted */
	sd_event_unref(c->event);
	free(c);
}
