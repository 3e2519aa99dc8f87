/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/driver/internal.h"
#include "util/array.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static struct guard guards[1024];
static atomic_uint used; /* those behind are free */

/* ---- userfaultfd ------------------------------------------------------------------------ */

/* Stores come from user mode; without more than that any process may have one (vm.unprivileged_userfaultfd).
 */
static int open_uffd(void)
{
	return (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
}

static int try_uffd(void *arg)
{
	int fd = open_uffd();

	(void)arg;
	_exit(fd < 0);
}

/**
 * Some system call filters kill a process that makes a call they do not know. So a child tries the call. It
 * has no exit signal: the application does not notice it.
 */
static bool filter_allows(void)
{
	static char stack[16384] __attribute__((aligned(16)));
	int status = -1;
	pid_t pid;

	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != SECCOMP_MODE_FILTER)
		return true;
	pid = clone(try_uffd, stack + sizeof(stack), CLONE_VM | CLONE_VFORK, NULL);
	while (pid > 0 && waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
		;
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int uffd_new(void *addr, size_t len)
{
	static enum { UNKNOWN, YES, NO } allowed;
	struct uffdio_register reg = {.range = {(uintptr_t)addr, len}, .mode = UFFDIO_REGISTER_MODE_MISSING};
	struct uffdio_api api = {.api = UFFD_API};
	int fd, rc = 0;

	if (allowed == UNKNOWN)
		allowed = filter_allows() ? YES : NO;
	fd = allowed == YES ? open_uffd() : -1;
	if (fd < 0)
		return allowed == YES ? -errno : -EPERM;
	if (ioctl(fd, UFFDIO_API, &api) < 0 || ioctl(fd, UFFDIO_REGISTER, &reg) < 0)
		rc = -errno;
	if (rc < 0)
		sys_close(fd);
	return rc < 0 ? rc : fd;
}

/* ---- mappings --------------------------------------------------------------------------- */

static void forget(struct guard *g)
{
	/* applications close descriptors they never opened */
	if (g->keep >= 0 && sys_socket_cookie(g->keep) == g->file)
		sys_close(g->keep);
	g->keep = -1;
	g->addr = NULL;
}

int guard_new(uint64_t file, uint64_t offset, void *addr, size_t len, int map_fd, int keep)
{
	struct guard *slot = NULL;
	struct stat st;

	for (unsigned i = 0; i < COUNT(guards); i++) {
		if (guards[i].addr == addr) { /* replaced by this one */
			slot = &guards[i];
			break;
		}
		if (!guards[i].addr && !slot)
			slot = &guards[i];
	}
	/* Whom a fork would leave unguarded must not be guarded before it */
	if (!slot || sys_fstat(map_fd, &st) < 0) {
		if (keep >= 0)
			sys_close(keep);
		return slot ? -errno : -ENOSPC;
	}
	if (slot->addr)
		forget(slot);
	slot->keep = keep;
	slot->len = len;
	slot->file = file;
	slot->offset = offset;
	slot->dev = st.st_dev;
	slot->ino = st.st_ino;
	slot->addr = addr;
	if (slot - guards >= used)
		used = (unsigned)(slot - guards) + 1;
	return uffd_new(addr, len);
}

static bool within(const struct guard *g, const void *addr, size_t len)
{
	uintptr_t at = (uintptr_t)g->addr, from = (uintptr_t)addr;

	return at && at >= from && at - from < len;
}

bool guard_any(const void *addr, size_t len)
{
	unsigned n = used;

	for (unsigned i = 0; i < n; i++)
		if (within(&guards[i], addr, len))
			return true;
	return false;
}

void guard_unmapped(const void *addr, size_t len)
{
	for (unsigned i = 0; i < used; i++)
		if (within(&guards[i], addr, len))
			forget(&guards[i]);
}

static int still_there(const struct maps_entry *e, void *arg)
{
	const struct guard *g = arg;

	return e->start <= (uintptr_t)g->addr && e->end >= (uintptr_t)g->addr + g->len && e->shared &&
	       e->dev == g->dev && e->ino == g->ino;
}

void guard_fork_child(void (*fn)(const struct guard *guard, int uffd))
{
	for (unsigned i = 0; i < used; i++) {
		struct guard *g = &guards[i];
		int fd;

		if (!g->addr)
			continue;
		if (maps_each(still_there, g) <= 0) {
			forget(g);
			continue;
		}
		fd = uffd_new(g->addr, g->len);
		fn(g, fd);
		if (fd >= 0)
			sys_close(fd);
	}
}
