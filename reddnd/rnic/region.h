/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * region.h - data of chains: a file, mapped and registered in windows.
 *
 * Window number w has the IOVA (1 + w) << 40, so that an address in it is base plus offset, wherever a
 * process maps the file. A field of up to 5 bytes that a client fills in an address cannot lead out of the
 * window's terabyte, in which only the bytes of the window have the key.
 *
 * The keys are only in WQEs; clients never see them.
 */
#ifndef RNIC_REGION_H
#define RNIC_REGION_H

#include "reddnd/rnic/device.h"

#include <sys/types.h>

struct rnic_region;

/**
 * Maps the whole file @path, shared; @writable: for windows that the NIC changes. Reading or writing there
 * is not safe: the file belongs to its application, and memory behind its end, or a hole on a file system
 * that is full, is SIGBUS. -EINVAL when it is not a regular file, -ELOOP when a
 * symbolic link is in the path: who may write to the directory of another user must not choose what the NIC
 * reads. -ENODATA when it is empty.
 */
int rnic_region_open(struct rnic_region **region, const char *path, bool writable);
/** The same for the file of @fd, which stays the caller's. -EACCES: this process may not open that file so.
 */
int rnic_region_open_fd(struct rnic_region **region, int fd, bool writable);
/** Another one for the same open file, without memory: for questions about the file while the first may be
 * closed. -errno. */
int rnic_region_copy(struct rnic_region **copy, const struct rnic_region *region);
/** Another one for the same file, opened once more and mapped so that it can be written. -errno. */
int rnic_region_again(struct rnic_region **again, const struct rnic_region *region);
/** That of @fd, which it takes, also on errors. */
int rnic_region_take(struct rnic_region **region, int fd);
void rnic_region_close(struct rnic_region *region); /* after its windows */

/** Its byte @off, for a CPU that executes chains: under bus-guard.h, for the reason above. */
uint8_t *rnic_region_at(const struct rnic_region *region, uint64_t off);
/** Reads @size bytes at @off. -ENODATA: the file does not reach that far, or no longer. */
int rnic_region_read(const struct rnic_region *region, uint64_t off, void *bytes, size_t size);
/** The same of bytes that the page cache has, as it has those of windows: it never waits. -EAGAIN: it would
 * have to. -EOPNOTSUPP: the file system does not tell. */
int rnic_region_read_cached(const struct rnic_region *region, uint64_t off, void *bytes, size_t size);
/** False: the file has become shorter than it was when it was opened. */
bool rnic_region_is_whole(const struct rnic_region *region);
/** True: another open file description holds a lock for writing on this byte of the file. False also if that
 * is unknown. */
bool rnic_region_is_locked(const struct rnic_region *region, off_t byte);
/** Locks this byte of the file for writing, until rnic_unlock() or until no descriptor of this open file is
 * left, in any process. -EAGAIN: another open file description has it. */
int rnic_region_lock(const struct rnic_region *region, off_t byte);
/** Gives back what this, or another process, has locked by the open file of @fd. */
void rnic_unlock(int fd, off_t byte);
/** The descriptor of its open file, which stays the region's. */
int rnic_region_fd(const struct rnic_region *region);
uid_t rnic_region_owner(const struct rnic_region *region); /* when it was opened */
uint64_t rnic_region_size(const struct rnic_region *region);
/** Bytes of the file that have memory now, or swap: registering allocates the others of a file in memory. */
uint64_t rnic_region_allocated(const struct rnic_region *region);
bool rnic_region_is(const struct rnic_region *a, const struct rnic_region *b); /* both are one file */
/** -ENOENT: nothing is at @path; -ESTALE: something else than the file of the region. 0: that, or it is
 * unknown. */
int rnic_region_at_path(const struct rnic_region *region, const char *path);

/** A file, by whatever path, for as long as it lives. */
struct rnic_file_id {
	uint64_t dev, ino;
	uint64_t generation; /* of the inode, which has a number that was another's before; 0: not known */
};
struct rnic_file_id rnic_region_id(const struct rnic_region *region);

bool rnic_region_is_file(const struct rnic_region *region, int fd); /* it is that of @fd */
/** True: the file lies in memory (tmpfs, hugetlbfs), so that the NIC may change it. */
bool rnic_region_in_memory(const struct rnic_region *region);

struct rnic_window {
	uint64_t iova;
	uint32_t lkey, rkey;
	struct ibv_mr *mr; /* NULL: it was inherited */
	struct rnic_device *dev;
	struct ledger_slot *slot; /* or NULL */
};

enum { RNIC_WINDOW_BITS = 40 };

/** Access of the NIC to a window. */
enum rnic_access {
	RNIC_LOCAL_READ,    /* gathers from it */
	RNIC_REMOTE_READ,   /* and loopback READs of it */
	RNIC_REMOTE_CHANGE, /* and loopback WRITEs and atomics, and scatters to it */
	RNIC_LOCAL_WRITE,   /* scatters to it, as of RECVs */
	RNIC_REMOTE_ATOMIC, /* scatters to it, loopback READs of it, and atomics */
};

/**
 * Registers bytes [@off, @off + @size) of the file as window number @number, with a key for queues of @pd. No
 * two windows of one PD have the same number. IOVA and memory agree modulo the page size: the IOVA is a
 * multiple of 2^40 plus @off % page size. This pins the pages, which takes a second for some gigabytes; it
 * may be called on any thread.
 *
 * A window that the NIC changes needs a file that lies in memory: since Linux 6.5 the kernel pins no pages of
 * others for that (mm/gup.c, writable_file_mapping_allowed). Before 6.2 it pins pages only through a writable
 * mapping, whatever for; then this needs permission to write to the file. -EFAULT: one of these, or pages are
 * missing and cannot be made, or the file is shorter by now.
 *
 * If a daemon before this one left the same window of the same file, whose pages are those that it pinned,
 * this is that window, with its number and its keys, and nothing is pinned a second time.
 */
int rnic_region_window(const struct rnic_region *region, struct rnic_pd *pd, unsigned number, uint64_t off,
	uint64_t size, enum rnic_access access, struct rnic_window *window);
void rnic_window_close(struct rnic_window *window); /* fine on one that is all zero */

/** A claim on the inherited window in @slot is over; the last one destroys it. */
void rnic_window_release(struct rnic_device *dev, struct ledger_slot *slot);
/** True if what was pinned for the window @w of the ledger of @dev are the pages of the file of @region, and
 * nobody has cut or written that file since, as far as it could be watched (file-watch.h). */
bool rnic_window_is_of(
	const struct rnic_device *dev, const struct ledger_window *w, const struct rnic_region *region);

#endif
