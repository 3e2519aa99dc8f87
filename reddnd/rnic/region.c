/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/region.h"

#include "reddnd/rnic/file-watch.h"
#include "reddnd/rnic/internal.h"
#include "reddnd/rnic/sweep.h"
#include "util/cleanup.h"
#include "util/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <xxhash.h>

struct rnic_region {
	int fd;
	uint8_t *mem;
	uint64_t size;
	dev_t dev;
	ino_t ino;
	uint64_t generation;
	uid_t owner;
};

/* Of a file system without handles, as hugetlbfs before Linux 6.7: 0 */
static uint64_t generation_of(int fd)
{
	union {
		struct file_handle handle;
		char space[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} h = {.handle.handle_bytes = MAX_HANDLE_SZ};
	int mount;

	if (name_to_handle_at(fd, "", &h.handle, &mount, AT_EMPTY_PATH) < 0)
		return 0;
	return XXH3_64bits(h.handle.f_handle, h.handle.handle_bytes);
}

/* Takes @opened, the descriptor or a negative errno. */
static int map(struct rnic_region **out, int opened, bool writable)
{
	CLEANUP(cleanup_free) struct rnic_region *region = calloc(1, sizeof(*region));
	CLEANUP(cleanup_close) int fd = opened;
	struct stat st;

	if (!region)
		return -ENOMEM;
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size <= 0)
		return -ENODATA;
	region->size = (uint64_t)st.st_size;
	region->dev = st.st_dev;
	region->ino = st.st_ino;
	region->generation = generation_of(fd);
	region->owner = st.st_uid;
	region->mem = mmap(NULL, region->size, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
	if (region->mem == MAP_FAILED)
		return -errno;
	region->fd = steal_fd(&fd);
	*out = steal_ptr(&region);
	return 0;
}

int rnic_region_open(struct rnic_region **out, const char *path, bool writable)
{
	return map(out, file_open_no_links(path, writable ? O_RDWR : O_RDONLY), writable);
}

int rnic_region_open_fd(struct rnic_region **out, int fd, bool writable)
{
	return map(out, file_reopen(fd, writable ? O_RDWR : O_RDONLY), writable);
}

int rnic_region_copy(struct rnic_region **out, const struct rnic_region *region)
{
	CLEANUP(cleanup_free) struct rnic_region *copy = calloc(1, sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	*copy = *region;
	copy->mem = NULL;
	copy->fd = fcntl(region->fd, F_DUPFD_CLOEXEC, 0);
	if (copy->fd < 0)
		return -errno;
	*out = steal_ptr(&copy);
	return 0;
}

int rnic_region_take(struct rnic_region **out, int fd)
{
	return map(out, fd, true);
}

int rnic_region_again(struct rnic_region **out, const struct rnic_region *region)
{
	return map(out, file_reopen(region->fd, O_RDWR), true);
}

void rnic_region_close(struct rnic_region *region)
{
	if (region->mem)
		munmap(region->mem, region->size);
	close(region->fd);
	free(region);
}

uint8_t *rnic_region_at(const struct rnic_region *region, uint64_t off)
{
	return region->mem + off;
}

int rnic_region_read(const struct rnic_region *region, uint64_t off, void *bytes, size_t size)
{
	long n = file_read_at(region->fd, off, bytes, size);

	if (n < 0)
		return (int)n;
	return (size_t)n == size ? 0 : -ENODATA;
}

int rnic_region_read_cached(const struct rnic_region *region, uint64_t off, void *bytes, size_t size)
{
	const struct iovec to = {.iov_base = bytes, .iov_len = size};
	ssize_t n = preadv2(region->fd, &to, 1, (off_t)off, RWF_NOWAIT);

	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -ENODATA;
}

bool rnic_region_is_whole(const struct rnic_region *region)
{
	struct stat st;

	return fstat(region->fd, &st) == 0 && st.st_size >= 0 && (uint64_t)st.st_size >= region->size;
}

bool rnic_region_is_locked(const struct rnic_region *region, off_t byte)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

	return fcntl(region->fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

int rnic_region_lock(const struct rnic_region *region, off_t byte)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

	if (fcntl(region->fd, F_OFD_SETLK, &lock) == 0)
		return 0;
	return errno == EACCES ? -EAGAIN : -errno;
}

void rnic_unlock(int fd, off_t byte)
{
	struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

	fcntl(fd, F_OFD_SETLK, &lock);
}

int rnic_region_fd(const struct rnic_region *region)
{
	return region->fd;
}

uid_t rnic_region_owner(const struct rnic_region *region)
{
	return region->owner;
}

uint64_t rnic_region_size(const struct rnic_region *region)
{
	return region->size;
}

/* Not SEEK_HOLE: that calls a hole what was allocated and never written (mm/filemap.c,
 * folio_seek_hole_data()) */
uint64_t rnic_region_allocated(const struct rnic_region *region)
{
	struct stat st;

	return fstat(region->fd, &st) == 0 && st.st_blocks >= 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

bool rnic_region_is(const struct rnic_region *a, const struct rnic_region *b)
{
	return a->dev == b->dev && a->ino == b->ino;
}

struct rnic_file_id rnic_region_id(const struct rnic_region *region)
{
	return (struct rnic_file_id){region->dev, region->ino, region->generation};
}

bool rnic_region_is_file(const struct rnic_region *region, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == region->dev && st.st_ino == region->ino;
}

int rnic_region_at_path(const struct rnic_region *region, const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR ? -ENOENT : 0;
	return st.st_dev == region->dev && st.st_ino == region->ino ? 0 : -ESTALE;
}

bool rnic_region_in_memory(const struct rnic_region *region)
{
	struct statfs fs;

	return fstatfs(region->fd, &fs) == 0 &&
	       (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC);
}

/* Registers through a writable mapping that lasts no longer, for Linux before 6.2 */
static struct ibv_mr *register_writable(const struct rnic_region *region, struct rnic_pd *pd, uint64_t off,
	uint64_t size, uint64_t iova, unsigned flags)
{
	CLEANUP(cleanup_close) int fd = file_reopen(region->fd, O_RDWR);
	struct ibv_mr *mr;
	uint8_t *mem;
	int e;

	mem = fd < 0 ? MAP_FAILED : mmap(NULL, region->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED) {
		errno = EFAULT;
		return NULL;
	}
	mr = ibv_reg_mr_iova(pd->pd, mem + off, size, iova, flags);
	e = errno;
	munmap(mem, region->size);
	errno = e;
	return mr;
}

struct wanted {
	const struct ledger_window *window;
	int watches;
};

/* Its pages are still those of the file */
static bool is_wanted(const struct ledger_slot *slot, const void *arg)
{
	const struct wanted *w = arg;
	const struct ledger_window *a = &slot->window, *b = w->window;

	return a->dev == b->dev && a->ino == b->ino && a->offset == b->offset && a->bytes == b->bytes &&
	       a->pd == b->pd && a->access == b->access && file_watch_holds(w->watches, a->watch);
}

/* What queues of @pd know the inherited window in @slot by: its IOVA and keys */
static int adopt(struct rnic_pd *pd, const struct ledger_slot *slot, struct rnic_window *window)
{
	struct ibv_mr *mr = NULL;

	for (unsigned i = 0; i < LEDGER_OBJECTS && !mr; i++)
		if (slot->object[i].type == LEDGER_MR)
			mr = ibv_import_mr(pd->pd, slot->object[i].handle);
	if (mr && mr->length != slot->window.bytes) {
		ibv_unimport_mr(mr);
		return -EBADMSG;
	}
	if (!mr)
		return -EBADMSG;
	*window = (struct rnic_window){.iova = slot->window.iova, .lkey = mr->lkey, .rkey = mr->rkey};
	ibv_unimport_mr(mr);
	return 0;
}

/* False: there is none like @w */
static bool inherit(struct rnic_pd *pd, const struct ledger_window *w, struct rnic_window *window)
{
	struct ledger *ledger = pd->dev->ledger;
	const struct wanted wanted = {.window = w, .watches = pd->dev->watches};
	struct ledger_slot *slot =
		ledger ? ledger_claim_fitting(ledger, LEDGER_WINDOW, is_wanted, &wanted) : NULL;

	if (!slot)
		return false;
	if (adopt(pd, slot, window) < 0) {
		rnic_window_release(pd->dev, slot);
		return false;
	}
	window->dev = pd->dev;
	window->slot = slot;
	return true;
}

int rnic_region_window(const struct rnic_region *region, struct rnic_pd *pd, unsigned number, uint64_t off,
	uint64_t size, enum rnic_access access, struct rnic_window *window)
{
	static const int flags[] = {
		[RNIC_LOCAL_READ] = 0,
		[RNIC_REMOTE_READ] = IBV_ACCESS_REMOTE_READ,
		[RNIC_REMOTE_CHANGE] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				       IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
		[RNIC_LOCAL_WRITE] = IBV_ACCESS_LOCAL_WRITE,
		[RNIC_REMOTE_ATOMIC] =
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t iova = ((uint64_t)number + 1) << RNIC_WINDOW_BITS | off % page;
	struct ledger_window w = {.iova = iova,
		.dev = region->dev,
		.ino = region->ino,
		.offset = off,
		.bytes = size,
		.pd = pd->slot ? ledger_number(pd->dev->ledger, pd->slot) : 0,
		.access = access};
	struct ledger_slot *slot;
	int r;

	assert(off < region->size && size <= region->size - off);
	if (inherit(pd, &w, window))
		return 0;
	w.watch = file_watch_add(pd->dev->watches, region->fd); /* before pages are pinned */
	*window = (struct rnic_window){.iova = iova};
	r = rnic_device_take_slot(pd->dev, LEDGER_WINDOW, &slot);
	if (r < 0)
		return r;
	window->mr = ibv_reg_mr_iova(pd->pd, region->mem + off, size, iova, (unsigned)flags[access]);
	if (!window->mr && errno == EFAULT && access <= RNIC_REMOTE_READ)
		window->mr = register_writable(region, pd, off, size, iova, (unsigned)flags[access]);
	if (!window->mr) {
		r = -errno;
		rnic_device_drop_slot(pd->dev, slot);
		return r;
	}
	window->dev = pd->dev;
	window->slot = slot;
	ledger_made(
		slot, &(struct ledger_object){
			      .type = LEDGER_MR, .handle = window->mr->handle, .number = window->mr->lkey});
	if (slot) {
		slot->window = w;
		ledger_live(slot);
	}
	window->lkey = window->mr->lkey;
	window->rkey = window->mr->rkey;
	return 0;
}

void rnic_window_release(struct rnic_device *dev, struct ledger_slot *slot)
{
	if (ledger_release(dev->ledger, slot))
		rnic_sweep_slot(dev, NULL, slot);
}

bool rnic_window_is_of(
	const struct rnic_device *dev, const struct ledger_window *w, const struct rnic_region *region)
{
	return w->dev == region->dev && w->ino == region->ino &&
	       (!w->watch || file_watch_holds(dev->watches, w->watch));
}

void rnic_window_close(struct rnic_window *window)
{
	uint32_t handle = window->mr ? window->mr->handle : 0;

	if (window->slot && !window->mr)
		rnic_window_release(window->dev, window->slot);
	else if (window->slot)
		ledger_ending(window->slot);
	if (window->mr && ibv_dereg_mr(window->mr) == 0)
		ledger_gone(window->slot, LEDGER_MR, handle);
	if (window->mr)
		rnic_device_drop_slot(window->dev, window->slot);
	*window = (struct rnic_window){0};
}
