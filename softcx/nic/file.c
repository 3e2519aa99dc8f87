/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/nic/file.h"

#include "softcx/nic/ident.h"
#include "softcx/proto/proto.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void file_complain(const struct file *file, pid_t pid, const char *fmt, ...)
{
	char what[160], name[SOFTCX_MAX_LABEL];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	fprintf(stderr, "softcx-nic: %s, process %d: %s\n", ident_file(file->host, file->dev, name), (int)pid,
		what);
}

void file_wake(void *arg)
{
	struct file *file = arg;

	if (!file->byte_out && send(file->source.fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1)
		file->byte_out = true;
}

uint32_t file_drain(struct file *file)
{
	if (file->dev >= 0 || !file->byte_out || ucma_pending(file->ucma))
		return 0;
	file->byte_out = false;
	return SOFTCX_DRAIN;
}

static void read_program(struct file *file)
{
	char path[32];
	ssize_t n;
	int fd;

	file->program[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)file->user);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, file->program, sizeof(file->program) - 1);
	file->program[n > 0 ? n : 0] = '\0';
	file->program[strcspn(file->program, "\n")] = '\0';
	close(fd);
}

void file_used(struct file *file, pid_t pid)
{
	file->user = pid;
	file->files->users++;
	read_program(file);
}

struct file_view file_view(const struct file *file)
{
	struct file_view view = {.host = file->host,
		.dev = file->dev,
		.pid = file->user,
		.mark = file->mark,
		.uverbs = file->uverbs,
		.ucma = file->ucma};

	memcpy(view.program, file->program, sizeof(view.program));
	return view;
}
