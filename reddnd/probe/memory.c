/* SPDX-License-Identifier: BSD-2-Clause */
/* Which files the NIC can read and change as regions. */
#include "reddnd/probe/bed.h"

#include "mlx5/wqe.h"
#include "reddnd/rnic/region.h"
#include "util/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

enum { BYTES = 64, PATH = 4096 };

struct file {
	const char *folder;
	bool change; /* the NIC writes to it, too */
};

struct memory {
	uint8_t read[BYTES], source[BYTES];
};

#define PATTERN 0x5c

/* Makes a file of one page of its file system without a name that others see for longer than this takes */
static int make_file(const char *folder, char path[PATH], uint64_t *size)
{
	CLEANUP(cleanup_close) int fd = -1;
	uint8_t bytes[BYTES];
	struct statvfs fs;

	memset(bytes, PATTERN, sizeof(bytes));
	if (snprintf(path, PATH, "%s/reddn-probe-XXXXXX", folder) >= PATH)
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*size = fstatvfs(fd, &fs) == 0 && fs.f_bsize > PATH ? fs.f_bsize : PATH;
	if (ftruncate(fd, (off_t)*size) < 0 || (pwrite(fd, bytes, sizeof(bytes), 0) < 0 && errno != EINVAL)) {
		unlink(path);
		return -errno;
	}
	return 0;
}

/* A READ of the window, and a WRITE to it behind the bytes that were read */
static int use_window(struct bed *bed, const struct rnic_window *window, const struct rnic_region *region,
	bool change, struct probe_result *result)
{
	struct memory *m = (struct memory *)bed->memory;
	uint8_t *w, expected[BYTES], seen[BYTES];
	int r;

	memset(m->source, ~PATTERN, BYTES);
	for (unsigned i = 0; i < 1u + change; i++) {
		w = bed_copy(bed, BED_WORK, i ? WQE_OP_WRITE : WQE_OP_READ, WQE_SIGNALLED, m,
			i ? m->source : m->read, BYTES);
		wqe_put64(w + WQE_RADDR, window->iova + (uint64_t)i * BYTES);
		wqe_put32(w + WQE_RKEY, window->rkey);
	}
	r = bed_start(bed);
	if (r == 0)
		r = bed_expect(bed, &bed->cq[BED_WORK], change, "it was not accessed", result);
	if (r <= 0)
		return r;
	r = rnic_region_read(region, 0, expected, BYTES);
	if (r == 0 && change)
		r = rnic_region_read(region, BYTES, seen, BYTES);
	if (r < 0)
		return r;
	if (memcmp(m->read, expected, BYTES) != 0)
		return probe_denies(result, "the NIC read other bytes than the file has");
	if (change && memcmp(seen, m->source, BYTES) != 0)
		return probe_denies(result, "the file has not the bytes that the NIC wrote");
	return 1;
}

static int use_region(struct bed *bed, struct probe_result *result)
{
	const struct file *file = bed->arg;
	struct rnic_window window = {0};
	struct rnic_region *region;
	char path[PATH];
	uint64_t size = 0;
	int r = make_file(file->folder, path, &size);

	if (r < 0)
		return probe_cannot(result, r, "no file can be made in %s: %s", file->folder, strerror(-r));
	r = rnic_region_open(&region, path, file->change);
	unlink(path);
	if (r < 0)
		return probe_cannot(result, r, "%s cannot be opened: %s", file->folder, strerror(-r));
	if (!file->change && rnic_region_in_memory(region))
		r = probe_cannot(result, -ENOENT, "%s lies in memory", file->folder);
	if (r == 0)
		r = rnic_region_window(region, bed->block.pd, 0, 0, size,
			file->change ? RNIC_REMOTE_CHANGE : RNIC_REMOTE_READ, &window);
	if (r < 0 && !*result->words)
		r = probe_denies(result, "a file in %s cannot be registered: %s", file->folder, strerror(-r));
	else if (r == 0)
		r = use_window(bed, &window, region, file->change, result);
	rnic_window_close(&window);
	rnic_region_close(region);
	return r > 0 ? probe_measured(result, "%s", file->folder) : r;
}

static int try_folder(const struct probe *probe, const char *folder, bool change, struct probe_result *result)
{
	CLEANUP(cleanup_free) char *real = realpath(folder, NULL);
	struct file file = {real, change};

	if (!real)
		return probe_cannot(result, -errno, "there is no %s", folder);
	return bed_use(probe, NULL, result, use_region, &file);
}

int check_memory_file(struct probe *probe, struct probe_result *result)
{
	return try_folder(probe, "/dev/shm", true, result);
}

int check_disk_file(struct probe *probe, struct probe_result *result)
{
	return try_folder(probe, "/var/tmp", false, result);
}

DEFINE_CLEANUP(FILE *, endmntent)

int check_huge_file(struct probe *probe, struct probe_result *result)
{
	CLEANUP(endmntentp) FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent *m;

	while (mounts && (m = getmntent(mounts)))
		if (strcmp(m->mnt_type, "hugetlbfs") == 0 && access(m->mnt_dir, W_OK) == 0)
			return try_folder(probe, m->mnt_dir, true, result);
	return probe_cannot(result, -ENOENT, "no hugetlbfs is mounted that this user may write to");
}
