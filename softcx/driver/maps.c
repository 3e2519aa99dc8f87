/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/driver/maps.h"

#include "softcx/driver/sys.h"

#include <errno.h>
#include <string.h>
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
