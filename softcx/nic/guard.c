/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/nic/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { PAGE = 4096 };

struct guard {
	struct source source; /* first */
	struct hw_uar_guard guard;
	struct event_loop *loop;
	struct hw_uar *uar; /* NULL: gone */
};

static void guard_end(void *arg)
{
	struct guard *g = arg;

	g->uar = NULL;
	event_loop_remove(g->loop, &g->source);
}

/** The store is repeated when the page is back. False: this is no userfaultfd any more. */
static bool guard_input(struct source *source)
{
	struct guard *g = (struct guard *)source;
	struct uffd_msg msg[8];
	ssize_t n = read(source->fd, msg, sizeof(msg));

	if (n < 0 && errno == EAGAIN)
		return true;
	if (n < (ssize_t)sizeof(msg[0])) {
		hw_uar_unguard(g->uar, &g->guard);
		return false;
	}
	hw_uar_wake(g->uar);
	for (size_t i = 0; i < (size_t)n / sizeof(msg[0]); i++) {
		struct uffdio_range page = {
			.start = msg[i].arg.pagefault.address & ~(uint64_t)(PAGE - 1), .len = PAGE};

		if (msg[i].event == UFFD_EVENT_PAGEFAULT)
			ioctl(source->fd, UFFDIO_WAKE, &page);
	}
	return true;
}

static void guard_destroy(struct source *source)
{
	free(source);
}

/** Descriptors come from applications: anything else could make this process wait. */
static bool is_userfaultfd(int fd)
{
	char path[32], name[32];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof(name) - 1);
	name[n > 0 ? n : 0] = '\0';
	return strcmp(name, "anon_inode:[userfaultfd]") == 0;
}

int guard_add(struct event_loop *loop, struct hw_uar *uar, int uffd)
{
	struct guard *g;
	int rc;

	if (!is_userfaultfd(uffd))
		return -EINVAL;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	*g = (struct guard){
		.source = {.fd = uffd, .rank = 1, .input = guard_input, .destroy = guard_destroy},
		.guard = {.gone = guard_end, .arg = g},
		.loop = loop,
		.uar = uar,
	};
	rc = fcntl(uffd, F_SETFL, O_RDWR | O_NONBLOCK) < 0 ? -errno : event_loop_add(loop, &g->source);
	if (rc < 0) {
		free(g);
		return rc;
	}
	hw_uar_guard(uar, &g->guard);
	return 0;
}
