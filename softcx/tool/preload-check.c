/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/tool/tool.h"
#include "util/cleanup.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static bool runnable(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return false;
	if (S_ISDIR(st.st_mode)) {
		errno = EACCES;
		return false;
	}
	return access(path, X_OK) == 0;
}

int preload_check_find(const char *command, char *path, size_t size)
{
	const char *list = getenv("PATH");
	int saved = ENOENT;

	if (strchr(command, '/')) {
		snprintf(path, size, "%s", command);
		return runnable(path) ? 0 : -1;
	}
	for (const char *p = list ? list : "/usr/bin:/bin", *end; *command; p = end + 1) {
		end = strchrnul(p, ':');
		snprintf(path, size, "%.*s%s%s", (int)(end - p), p, end == p ? "" : "/", command);
		if (runnable(path))
			return 0;
		if (errno == EACCES)
			saved = EACCES;
		if (!*end)
			break;
	}
	errno = saved;
	return -1;
}

static bool check_script(const char *head, char *why, size_t size)
{
	char interpreter[PATH_MAX];

	if (sscanf(head + 2, " %4095s", interpreter) != 1)
		return true;
	if (strcmp(interpreter, "/usr/bin/env") == 0)
		return true;
	return preload_check_program(interpreter, why, size);
}

static bool check_elf(int fd, const Elf64_Ehdr *ehdr, char *why, size_t size)
{
	if (ehdr->e_ident[EI_CLASS] != ELFCLASS64) {
		snprintf(why, size, "is a 32-bit program: softcx's driver is a 64-bit library");
		return false;
	}
	for (unsigned i = 0; i < ehdr->e_phnum; i++) {
		Elf64_Phdr phdr;

		if (pread(fd, &phdr, sizeof(phdr), (off_t)(ehdr->e_phoff + i * ehdr->e_phentsize)) !=
			sizeof(phdr))
			break;
		if (phdr.p_type == PT_INTERP)
			return true;
	}
	snprintf(why, size,
		"is statically linked: nothing would load softcx's driver into it; link it dynamically");
	return false;
}

bool preload_check_program(const char *path, char *why, size_t size)
{
	CLEANUP(cleanup_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	union {
		char text[PATH_MAX + 2];
		Elf64_Ehdr elf;
	} head = {{0}};
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || pread(fd, &head, sizeof(head) - 1, 0) < 4)
		return true;
	if (memcmp(head.text, "#!", 2) == 0)
		return check_script(head.text, why, size);
	if (memcmp(head.text, ELFMAG, SELFMAG) != 0)
		return true;
	/* A root user gains nothing by setuid root: then the dynamic linker is not in secure mode. */
	if (((st.st_mode & S_ISUID) && st.st_uid != geteuid()) ||
		((st.st_mode & S_ISGID) && st.st_gid != getegid()) ||
		(geteuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0)) {
		snprintf(why, size,
			"is setuid, setgid or has file capabilities: the dynamic linker would ignore "
			"softcx's driver; "
			"run a copy without them");
		return false;
	}
	return check_elf(fd, &head.elf, why, size);
}
