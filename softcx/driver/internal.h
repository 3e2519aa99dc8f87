/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * internal.h - what the files of the driver have in common. Errors: negative errno.
 */
#ifndef SOFTCX_DRIVER_INTERNAL_H
#define SOFTCX_DRIVER_INTERNAL_H

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/*
 * System calls made directly: those that the driver interposes, and those on whole pages of the application,
 * which an address sanitizer in it would report. And the functions of the C library behind those of the
 * driver.
 */

/* The driver's own descriptors begin here, if there is room: applications may rely on getting the lowest free
 * ones */
enum { SYS_OUT_OF_THE_WAY = 512 };

static inline int sys_open(const char *path, int flags)
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0);
}

static inline int sys_close(int fd)
{
	return (int)syscall(SYS_close, fd);
}

/** @fd, or the descriptor that it is from now on, out of the application's way if there is room there. */
static inline int sys_moved_high(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, SYS_OUT_OF_THE_WAY);

	if (high < 0)
		return fd;
	sys_close(fd);
	return high;
}

static inline ssize_t sys_read(int fd, void *buf, size_t len)
{
	return syscall(SYS_read, fd, buf, len);
}

static inline ssize_t sys_pread(int fd, void *buf, size_t len, off_t offset)
{
	return syscall(SYS_pread64, fd, buf, len, offset);
}

static inline ssize_t sys_pwrite(int fd, const void *buf, size_t len, off_t offset)
{
	return syscall(SYS_pwrite64, fd, buf, len, offset);
}

static inline int sys_fstat(int fd, struct stat *st)
{
	return (int)syscall(SYS_newfstatat, fd, "", st, AT_EMPTY_PATH);
}

static inline int sys_stat(const char *path, struct stat *st)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, st, 0);
}

static inline void *sys_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
}

/** A number that no other socket has had; 0: it is none. */
static inline uint64_t sys_socket_cookie(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len) < 0 ? 0 : cookie;
}

#define EXPORT __attribute__((visibility("default")))

/* Defines next(), the definition of @name behind ours. Two threads may both look it up: the same result. */
#define NEXT(name)                                                                                           \
	static __typeof__(&name) next;                                                                       \
	if (!next)                                                                                           \
	next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/*
 * anon.c: anonymous memory that is shared with forked children: the driver gives it a file that it can pass
 * to the NIC. The kernel has a file behind such a mapping, too, but gives only privileged processes a
 * descriptor of it.
 *
 * The descriptor stays open for as long as the memory is mapped. Threads: any; nothing is locked or
 * allocated.
 */

/** A descriptor of @len bytes of zeros for a shared mapping, or -1: then the mapping stays anonymous. */
int anon_new(size_t len);
/** After mmap(2): it is mapped at @addr, or not, if that is MAP_FAILED. */
void anon_mapped(int fd, void *addr, size_t len);
/** After munmap(2). */
void anon_unmapped(void *addr, size_t len);

/*
 * creds.c: the credentials of this process, by identity.
 *
 * Linux takes write() on a device file only with the very struct cred that opened it (include/rdma/ib.h,
 * ib_safe_file_access: f_cred == current_cred()), however equal others are. A fork and an exec make a new
 * one; the NIC knows these by the command channel (files.c). So do the calls that change ids, groups or
 * capabilities, even to what they were (kernel/sys.c, kernel/groups.c, kernel/capability.c,
 * security/commoncap.c: prepare_creds, then commit_creds), and landlock_restrict_self(2). They are counted
 * here.
 *
 * Not known: keyctl(2), setfsuid(2), system calls made without the C library. And each thread has credentials
 * of its own from the first of these calls on; here they are those of the process.
 */

/** Changes each time that the process gets new credentials. For any thread. */
unsigned creds_now(void);
/** After a system call of the process by its number that succeeded. */
void creds_after_syscall(long number, const long args[6]);

/*
 * mem.c: makes ranges of this process's memory reachable for the NIC process.
 *
 * Shared file mappings (memfd, tmpfs, files) are handed over as they are. Private memory is converted in
 * place: its pages move into a memfd, the pool, that is mapped over the same addresses, so that the NIC
 * can map it as well and both see one memory for as long as either lives. While a page moves, other threads
 * can read it; one that writes to it faults, waits in a SIGSEGV handler until the page is back and writes
 * then. (System calls of other threads that write to such a page in these microseconds fail with EFAULT.)
 *
 * Never converted: thread stacks, thread control blocks and the kernel's special mappings; private huge pages
 * only where a queue lies in them, which makes them small ones; and what a limit of file sizes (ulimit -f)
 * has no room for, unless a queue lies in it. They are reached through process_vm_readv/writev instead.
 *
 * Nothing is remembered about converted ranges: what is shared is read from /proc/self/maps each time, so
 * memory that was unmapped, moved or reused is never mistaken.
 *
 * Threads: mem_resolve() by one at a time (device.c holds its lock). Errors: negative errno; -EFBIG: the
 * process may not make files as large (ulimit -f), and a queue needs one.
 */

struct mem_piece {
	uint64_t va, len; /* page aligned */
	uint64_t offset;
	int fd; /* -1: by process_vm only */
};

struct mem_list {
	const struct mem_piece *pieces; /* ascending, without gaps, covering the range */
	unsigned n;
};

/**
 * Resolves [@va, @va + @len), widened to whole pages. -EFAULT when some of it is not mapped, not readable
 * (or writable, if asked), or when @direct is asked and it cannot be shared. The result is valid until
 * mem_list_done().
 */
int mem_resolve(uint64_t va, uint64_t len, bool writable, bool direct, struct mem_list *out);
void mem_list_done(struct mem_list *list);

/* Around fork: the child's converted ranges become private copies before either side runs on. */
void mem_fork_prepare(void);
void mem_fork_parent(void);
void mem_fork_child(void);

/** After madvise(MADV_DONTNEED) of private memory the application may expect zeros, converted or not. */
void mem_discarded(void *addr, size_t len);

/*
 * Reads /proc/self/maps. Allocates nothing and takes no lock, so that it can be used in a
 * forked child and in a signal handler.
 */

struct maps_entry {
	uint64_t start, end;
	int prot; /* PROT_* */
	bool shared;
	uint64_t offset;
	dev_t dev;
	uint64_t ino;
	const char *path; /* "" for anonymous memory; valid during the callback only */
};

/**
 * Calls @fn for every mapping in ascending order until it returns non-zero, and returns that; 0 at the
 * end, -errno when the file cannot be read.
 */
int maps_each(int (*fn)(const struct maps_entry *entry, void *arg), void *arg);

/**
 * The same without the mappings that end at @addr or before. Linux 6.11 finds the first one without a look at
 * them, however many there are; earlier ones read all.
 */
int maps_from(uint64_t addr, int (*fn)(const struct maps_entry *entry, void *arg), void *arg);

/*
 * The addresses of this process's thread stacks. /proc does not have them, so pthread_create is
 * interposed: every thread notes its own stack before it runs and removes it at its end.
 *
 * Threads: any.
 */

/** Notes the control block of the initial thread; called once, by it. */
void stacks_init(void);
/** In a forked child: only the caller is left. */
void stacks_fork_child(void);

/*
 * guard.c: mappings of doorbell pages. Each has a userfaultfd by which the NIC notices stores (SOFTCX_GUARD
 * of proto.h), and keeps the device file open, as a mapping does on Linux (core/ib_core_uverbs.c,
 * rdma_user_mmap_io: the area has a reference to the file).
 *
 * If the process may not have a userfaultfd, nothing is guarded and the NIC polls the pages instead.
 *
 * Threads: one at a time (device.c holds its lock), except for guard_any().
 */

/** One mapping. */
struct guard {
	void *_Atomic addr; /* NULL: free */
	int keep;           /* a descriptor of the file; -1: there was none to spare */
	size_t len;
	uint64_t file;   /* as struct channel */
	uint64_t offset; /* of mmap(2) */
	uint64_t dev, ino;
};

/**
 * Notes that page @offset of device file @file, that of descriptor @map_fd, is mapped at @addr. Takes @keep,
 * a descriptor of the file or -1. Returns a userfaultfd for the mapping, which the caller sends and closes,
 * or a negative errno.
 */
int guard_new(uint64_t file, uint64_t offset, void *addr, size_t len, int map_fd, int keep);
/** True if a noted mapping is in this range. For any thread; it may be wrong about ranges in use by others.
 */
bool guard_any(const void *addr, size_t len);
/** The mappings in this range are gone. */
void guard_unmapped(const void *addr, size_t len);

/**
 * In a forked child: calls @fn for every noted mapping that it has inherited, with a new userfaultfd or -1,
 * and forgets the others. @fn does not own the descriptor.
 */
void guard_fork_child(void (*fn)(const struct guard *guard, int uffd));

/*
 * device.c: the driver's end of a device file: opening it, and shipping system calls to the NIC.
 * It understands no command.
 *
 * The driver asks the kernel each time which socket a descriptor is (by its cookie), and once for each socket
 * whether it is a device file (by the name of its peer). So it knows copies made by dup, fork, exec or
 * SCM_RIGHTS without interposing any of those. It finds the command channel of an open file by the cookie.
 *
 * Threads: any. One call at a time per process, in the order in which threads ask; waiting for an event is
 * done outside that lock.
 * Errors: negative errno.
 */

struct ib_uverbs_ioctl_hdr;

/** Name of the device when @path is a device file that a NIC could offer, else NULL. */
const char *dev_name(const char *path);
/** Opens device @name (see dev_name). A descriptor, or -ENOENT, -ENODEV (no NIC), -EACCES... */
int dev_open(const char *name, int flags);
/** stat(2) of device @name: 0 and its number, or -ENOENT. */
int dev_stat(const char *name, dev_t *rdev);

/** True if @fd is a device file; then with its number. Does not change errno. */
bool dev_is(int fd, dev_t *rdev);

/** The open file of device file @fd, by a number that no other one gets; 0: it is none. Does not change
 * errno.
 */
uint64_t dev_file(int fd);

/* For descriptors and their dev_file(). -EBADF: another thread has closed @fd since. */
ssize_t dev_write(int fd, uint64_t file, const void *buf, size_t len);
int dev_ioctl(int fd, uint64_t file, struct ib_uverbs_ioctl_hdr *hdr);
/** The descriptor (the caller closes it) and the offset to map for mmap(2) of the device. */
int dev_mmap(int fd, uint64_t file, uint64_t offset, uint64_t len, int *map_fd, uint64_t *map_offset);
/** After the mapping: @map_fd, which is page @offset of @fd, is mapped at @addr. */
void dev_mapped(int fd, uint64_t file, uint64_t offset, uint64_t len, void *addr, int map_fd);
/** Before munmap(2) of anything: afterwards another thread may have a new mapping there. */
void dev_unmap(const void *addr, size_t len);

/* Around fork: no call is under way while it happens; the child starts without channels. */
void dev_fork_prepare(void);
void dev_fork_parent(void);
void dev_fork_child(void);

/*
 * sysfs.c: shows the NIC's tree in place of those parts of /sys where the kernel has RDMA devices. The names
 * that programs see stay those of /sys.
 *
 * sysfs.c also interposes the functions of the C library that are about names only; preload.c has those that
 * know of device files too.
 */

enum { SYSFS_PATH_MAX = 512 };

/** @path, or the name in the NIC's tree that it stands for, in @buf. NULL stays NULL. */
const char *sysfs_path(const char *path, char buf[static SYSFS_PATH_MAX]);
/**
 * After @fd was opened as @path, or a name below it: puts a file that cannot be read in its place, if it is
 * an attribute of an empty GID, of which the NIC's tree has a file with an empty line. Returns @fd. Linux
 * core/sysfs.c, _show_port_gid_attr(): EINVAL, as reads of an epoll instance.
 */
int sysfs_opened(const char *path, int fd);

#endif
