/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/driver/maps.h"

#include "softcx/driver/sys.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

/** Reads a hexadecimal (or decimal) number and the one character behind it. */
static uint64_t number(const char **p, unsigned base)
{
	uint64_t value = 0;

	for (;; (*p)++) {
		unsigned digit;

		if (**p >= '0' && **p <= '9')
			digit = (unsigned)(**p - '0');
		else if (base == 16 && **p >= 'a' && **p <= 'f')
			digit = (unsigned)(**p - 'a') + 10;
		else
			break;
		value = value * base + digit;
	}
	if (**p)
		(*p)++;
	return value;
}

/** "7f0000000000-7f0000001000 rw-p 00000000 00:01 1234    /path" */
static void parse(const char *line, struct maps_entry *e)
{
	unsigned major, minor;

	e->start = number(&line, 16);
	e->end = number(&line, 16);
	e->prot = (line[0] == 'r' ? PROT_READ : 0) | (line[1] == 'w' ? PROT_WRITE : 0) |
		  (line[2] == 'x' ? PROT_EXEC : 0);
	e->shared = line[3] == 's';
	line += 5;
	e->offset = number(&line, 16);
	major = (unsigned)number(&line, 16);
	minor = (unsigned)number(&line, 16);
	e->dev = makedev(major, minor);
	e->ino = number(&line, 10);
	e->path = line + strspn(line, " ");
}

/* ---- one by one ------------------------------------------------------------------------- */

/* struct procmap_query of linux/fs.h, which Linux 6.1 does not have */
struct query {
	uint64_t size, flags, addr;
	uint64_t start, end, vma_flags, page_size, offset, ino;
	uint32_t major, minor;
	uint32_t name_size, build_id_size;
	uint64_t name, build_id;
};
#define QUERY _IOWR('f', 17, struct query)
enum { Q_READABLE = 1, Q_WRITABLE = 2, Q_EXECUTABLE = 4, Q_SHARED = 8, Q_OR_NEXT = 16 };

/* 1: @e is the mapping at @addr or the next one; 0: there is none; -errno, -ENOTTY before Linux 6.11 */
static int query(int fd, uint64_t addr, char name[PATH_MAX], struct maps_entry *e)
{
	struct query q = {.size = sizeof(q),
		.flags = Q_OR_NEXT,
		.addr = addr,
		.name_size = PATH_MAX,
		.name = (uintptr_t)name};

	name[0] = '\0';
	if (syscall(SYS_ioctl, fd, QUERY, &q) < 0)
		return errno == ENOENT ? 0 : -errno;
	*e = (struct maps_entry){.start = q.start,
		.end = q.end,
		.prot = (q.vma_flags & Q_READABLE ? PROT_READ : 0) |
			(q.vma_flags & Q_WRITABLE ? PROT_WRITE : 0) |
			(q.vma_flags & Q_EXECUTABLE ? PROT_EXEC : 0),
		.shared = q.vma_flags & Q_SHARED,
		.offset = q.offset,
		.dev = makedev(q.major, q.minor),
		.ino = q.ino,
		.path = name};
	return 1;
}

struct rest {
	uint64_t addr;
	int (*fn)(const struct maps_entry *entry, void *arg);
	void *arg;
};

static int if_in_rest(const struct maps_entry *e, void *arg)
{
	const struct rest *rest = arg;

	return e->end <= rest->addr ? 0 : rest->fn(e, rest->arg);
}

int maps_from(uint64_t addr, int (*fn)(const struct maps_entry *entry, void *arg), void *arg)
{
	int fd = sys_open("/proc/self/maps", O_RDONLY | O_CLOEXEC), found = 0, rc = 0;
	struct rest rest = {addr, fn, arg};
	char name[PATH_MAX];
	struct maps_entry e;

	if (fd < 0)
		return -errno;
	while (rc == 0 && (found = query(fd, addr, name, &e)) == 1) {
		addr = e.end;
		rc = fn(&e, arg);
	}
	sys_close(fd);
	if (found == -ENOTTY)
		return maps_each(if_in_rest, &rest);
	return found < 0 ? found : rc;
}

/* ---- all -------------------------------------------------------------------------------- */

int maps_each(int (*fn)(const struct maps_entry *entry, void *arg), void *arg)
{
	char buf[PATH_MAX + 512];
	size_t fill = 0;
	int rc = 0, fd;

	fd = sys_open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (rc == 0) {
		ssize_t n = sys_read(fd, buf + fill, sizeof(buf) - 1 - fill);
		char *line = buf, *eol;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			rc = n < 0 ? -errno : 0;
			break;
		}
		fill += (size_t)n;
		buf[fill] = '\0';
		while (rc == 0 && (eol = strchr(line, '\n'))) {
			struct maps_entry e;

			*eol = '\0';
			parse(line, &e);
			rc = fn(&e, arg);
			line = eol + 1;
		}
		fill -= (size_t)(line - buf);
		memmove(buf, line, fill);
	}
	sys_close(fd);
	return rc;
}
