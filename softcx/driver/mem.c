/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/driver/internal.h"
#include "util/array.h"
#include "util/file-limit.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/single_threaded.h>
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

struct stacks_span {
	uint64_t start, end;
};

static pthread_mutex_t stacks_lock = PTHREAD_MUTEX_INITIALIZER;
static struct stacks_span spans[4096]; /* end 0: free */
static struct stacks_span initial_tcb;
static __thread struct stacks_span own __attribute__((tls_model("initial-exec")));

struct start {
	void *(*fn)(void *);
	void *arg;
};

static void stacks_forget(void *arg)
{
	struct stacks_span *stacks_span = arg;

	if (!stacks_span)
		return;
	pthread_mutex_lock(&stacks_lock);
	*stacks_span = (struct stacks_span){0};
	pthread_mutex_unlock(&stacks_lock);
}

static struct stacks_span *stacks_note(void)
{
	pthread_attr_t attr;
	struct stacks_span *stacks_span = NULL;
	void *addr;
	size_t size;

	if (pthread_getattr_np(pthread_self(), &attr) != 0)
		return NULL;
	if (pthread_attr_getstack(&attr, &addr, &size) == 0) {
		own = (struct stacks_span){(uintptr_t)addr, (uintptr_t)addr + size};
		pthread_mutex_lock(&stacks_lock);
		for (unsigned i = 0; i < COUNT(spans) && !stacks_span; i++)
			if (!spans[i].end)
				stacks_span = &spans[i];
		if (stacks_span)
			*stacks_span = own;
		pthread_mutex_unlock(&stacks_lock);
	}
	pthread_attr_destroy(&attr);
	return stacks_span;
}

static void *stacks_thread_main(void *arg)
{
	struct start start = *(struct start *)arg;
	void *result;

	free(arg);
	pthread_cleanup_push(stacks_forget, stacks_note());
	result = start.fn(start.arg);
	pthread_cleanup_pop(1);
	return result;
}

__attribute__((visibility("default"))) int pthread_create(pthread_t *restrict thread,
	const pthread_attr_t *restrict attr, void *(*fn)(void *), void *restrict arg)
{
	static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	struct start *start;
	int rc;

	if (!real)
		real = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(
			RTLD_NEXT, "pthread_create");
	start = malloc(sizeof(*start));
	if (!start)
		return EAGAIN;
	*start = (struct start){fn, arg};
	rc = real(thread, attr, stacks_thread_main, start);
	if (rc != 0)
		free(start);
	return rc;
}

static int add_tls(struct dl_phdr_info *info, size_t size, void *sum)
{
	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_TLS)
			*(uint64_t *)sum += info->dlpi_phdr[i].p_memsz + info->dlpi_phdr[i].p_align;
	return 0;
}

void stacks_init(void)
{
	/*
	 * The kernel writes to the control block (rseq) and so does this code (errno, in the thread-local
	 * variables below it): neither may become read-only, not for a moment. No more than these: the
	 * application's first mapping may begin right below.
	 */
	uint64_t tcb = (uintptr_t)pthread_self(), tls = 0;

	dl_iterate_phdr(add_tls, &tls);
	initial_tcb = (struct stacks_span){tcb - tls, tcb + 4096};
}

static bool touches(const struct stacks_span *stacks_span, uint64_t start, uint64_t end)
{
	return stacks_span->end && stacks_span->start < end && start < stacks_span->end;
}

/* True if [start, end) touches a stack or control block of a noted thread or of the caller. */
static bool stacks_touch(uint64_t start, uint64_t end)
{
	uint64_t here = (uintptr_t)__builtin_frame_address(0);
	/* Of a stack that is not noted; behind one that is there may be memory of any kind */
	struct stacks_span caller = {here - 65536, here + 65536};
	bool noted = touches(&own, here, here + 1);
	bool found = touches(&initial_tcb, start, end) || touches(&own, start, end) ||
		     (!noted && touches(&caller, start, end));

	pthread_mutex_lock(&stacks_lock);
	for (unsigned i = 0; i < COUNT(spans) && !found; i++)
		found = touches(&spans[i], start, end);
	pthread_mutex_unlock(&stacks_lock);
	return found;
}

void stacks_fork_child(void)
{
	pthread_mutex_init(&stacks_lock, NULL);
	for (unsigned i = 0; i < COUNT(spans); i++)
		if (spans[i].start != own.start)
			spans[i] = (struct stacks_span){0};
}

enum { MAX_PIECES = 66000 }; /* more than the kernel's default limit of mappings (65530) */

static size_t page_size = 4096;

/* ---- the pool: one memfd with all converted memory -------------------------------------- */

static struct {
	int fd; /* valid only when @ino is set */
	dev_t dev;
	ino_t ino;
	uint64_t size; /* offsets are handed out once, ascending */
} pool;

/** Makes sure there is a pool; the application may have closed the descriptor behind our back. */
static int pool_open(void)
{
	struct stat st;
	int fd;

	if (pool.ino && sys_fstat(pool.fd, &st) == 0 && st.st_ino == pool.ino && st.st_dev == pool.dev)
		return 0;
	fd = memfd_create("softcx", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	fd = sys_moved_high(fd);
	if (sys_fstat(fd, &st) < 0) {
		int rc = -errno;

		sys_close(fd);
		return rc;
	}
	pool.fd = fd;
	pool.dev = st.st_dev;
	pool.ino = st.st_ino;
	pool.size = 0;
	return 0;
}

/* ---- threads that write to a page while it moves ---------------------------------------- */

static struct {
	_Atomic uint64_t start, end; /* the range under way; 0, 0: none */
	_Atomic uint64_t generation; /* conversions so far */
	struct sigaction previous;
} moving;

static __thread uint64_t retried_generation __attribute__((tls_model("initial-exec")));
static __thread uint64_t retried_addr __attribute__((tls_model("initial-exec")));

static void chain(int sig, siginfo_t *info, void *context)
{
	const struct sigaction *next = &moving.previous;

	if (next->sa_flags & SA_SIGINFO) {
		next->sa_sigaction(sig, info, context);
	} else if (next->sa_handler == SIG_DFL || next->sa_handler == SIG_IGN) {
		/* the access is repeated and then kills the process as it should */
		signal(SIGSEGV, SIG_DFL);
		if (info->si_code <= 0)
			raise(SIGSEGV);
	} else {
		next->sa_handler(sig);
	}
}

static int writable_pool_at(const struct maps_entry *e, void *arg)
{
	uint64_t addr = *(const uint64_t *)arg;

	if (e->end <= addr)
		return 0;
	return e->start <= addr && e->shared && (e->prot & PROT_WRITE) && e->ino == pool.ino &&
			       e->dev == pool.dev
		       ? 1
		       : 2;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	uint64_t addr = (uintptr_t)info->si_addr;
	uint64_t generation = atomic_load(&moving.generation);
	int saved = errno;

	if (info->si_code == SEGV_ACCERR) {
		if (addr >= atomic_load(&moving.start) && addr < atomic_load(&moving.end)) {
			while (addr >= atomic_load(&moving.start) && addr < atomic_load(&moving.end))
				sched_yield();
			errno = saved;
			return;
		}
		/* It may have ended between the fault and this handler: one retry for each conversion. */
		if ((retried_generation != generation || retried_addr != addr) &&
			maps_from(addr, writable_pool_at, &addr) == 1) {
			retried_generation = generation;
			retried_addr = addr;
			errno = saved;
			return;
		}
	}
	errno = saved;
	chain(sig, info, context);
}

/** The handler stays once it is there: a late signal must not meet the default action. */
static void catch_faults(void)
{
	struct sigaction now, ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};

	if (sigaction(SIGSEGV, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
		now.sa_sigaction == on_fault)
		return;
	moving.previous = now;
	ours.sa_flags |= now.sa_flags & SA_ONSTACK;
	sigaction(SIGSEGV, &ours, NULL);
}

/* ---- conversion ------------------------------------------------------------------------- */

/** True if a page of private anonymous memory was ever touched. */
static bool page_populated(int pagemap, uint64_t va)
{
	uint64_t entry;

	if (pagemap < 0 || sys_pread(pagemap, &entry, sizeof(entry),
				   (off_t)(va / page_size * sizeof(entry))) != (ssize_t)sizeof(entry))
		return true;
	return entry >> 62; /* present or swapped: Documentation/admin-guide/mm/pagemap.rst */
}

static int copy_to_pool(uint64_t start, uint64_t end, uint64_t offset, bool anonymous)
{
	int pagemap = -1, rc = 0;
	uint64_t chunk;

	/* Worth asking only for ranges that may be mostly holes. */
	if (anonymous && end - start >= 64 * page_size)
		pagemap = sys_open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	for (uint64_t va = start; va < end && rc == 0; va += chunk) {
		chunk = pagemap < 0 ? end - va : page_size;
		if (!page_populated(pagemap, va))
			continue;
		for (uint64_t done = 0; done < chunk;) {
			ssize_t n = sys_pwrite(pool.fd, (void *)(uintptr_t)(va + done), chunk - done,
				(off_t)(offset + (va - start) + done));

			if (n < 0 && errno != EINTR) {
				rc = -errno;
				break;
			}
			done += n > 0 ? (uint64_t)n : 0;
		}
	}
	if (pagemap >= 0)
		sys_close(pagemap);
	return rc;
}

/** Moves the pages of [@start, @end), one mapping with protection @prot, into the pool at @offset. */
static int convert(uint64_t start, uint64_t end, int prot, bool anonymous, uint64_t offset)
{
	void *addr = (void *)(uintptr_t)start;
	bool alone = __libc_single_threaded;
	int rc;

	if (!alone && (prot & PROT_WRITE)) {
		catch_faults();
		atomic_store(&moving.start, start);
		atomic_store(&moving.end, end);
		if (mprotect(addr, end - start, prot & ~PROT_WRITE) < 0)
			rc = -errno;
		else
			rc = copy_to_pool(start, end, offset, anonymous);
	} else {
		rc = copy_to_pool(start, end, offset, anonymous);
	}
	if (rc == 0 && sys_mmap(addr, end - start, prot, MAP_SHARED | MAP_FIXED, pool.fd, (off_t)offset) ==
			       MAP_FAILED)
		rc = -errno;
	if (!alone && (prot & PROT_WRITE)) {
		if (rc < 0)
			mprotect(addr, end - start, prot);
		atomic_fetch_add(&moving.generation, 1);
		atomic_store(&moving.start, 0);
		atomic_store(&moving.end, 0);
	}
	return rc;
}

/* ---- descriptors of shared mappings ----------------------------------------------------- */

static bool fd_fits(int fd, const struct maps_entry *e, bool writable, bool by_path)
{
	int mode = fcntl(fd, F_GETFL);
	struct stat st;

	if (mode < 0 || (mode & O_PATH) || sys_fstat(fd, &st) < 0 || st.st_ino != e->ino)
		return false;
	/* overlayfs and btrfs show other device numbers in maps than in stat: then the name decides */
	if (st.st_dev != e->dev && !by_path)
		return false;
	return (mode & O_ACCMODE) == O_RDWR || ((mode & O_ACCMODE) == O_RDONLY && !writable);
}

/* What the NIC keeps must not keep a lock of the program alive (F_OFD_SETLK), as pinned pages do not: the
 * file of @fd opened once more, if somebody has a lock on it; else -1 */
static int reopen_locked(int fd, int flags)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char name[64];
	int again;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	again = sys_open(name, flags);
	if (again < 0 || (fcntl(again, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK))
		return again;
	sys_close(again);
	return -1;
}

/** A descriptor of the file behind shared mapping @e, or -1. @owned: the caller closes it. */
static int find_fd(const struct maps_entry *e, bool writable, bool *owned)
{
	char name[64], buf[4096] __attribute__((aligned(8)));
	int dir = sys_open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int flags = (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC, found = -1, fd;
	long n;

	*owned = false;
	while (dir >= 0 && found < 0 && (n = syscall(SYS_getdents64, dir, buf, sizeof(buf))) > 0) {
		for (long pos = 0; pos < n && found < 0;) {
			const struct dirent64 *d = (const struct dirent64 *)(buf + pos);

			fd = atoi(d->d_name);
			if (d->d_name[0] != '.' && fd != dir && fd_fits(fd, e, writable, false))
				found = fd;
			pos += d->d_reclen;
		}
	}
	if (dir >= 0)
		sys_close(dir);
	fd = found >= 0 ? reopen_locked(found, flags) : -1;
	*owned = found < 0 || fd >= 0;
	if (found >= 0)
		return fd >= 0 ? fd : found;
	if (e->path[0] == '/') {
		fd = sys_open(e->path, flags);
		if (fd >= 0 && fd_fits(fd, e, writable, true))
			return fd;
		if (fd >= 0)
			sys_close(fd);
	}
	/* needs CAP_CHECKPOINT_RESTORE */
	snprintf(name, sizeof(name), "/proc/self/map_files/%lx-%lx", (unsigned long)e->start,
		(unsigned long)e->end);
	return sys_open(name, flags);
}

/* ---- resolving -------------------------------------------------------------------------- */

enum piece_kind { PIECE_FD, PIECE_OWNED_FD, PIECE_CONVERT, PIECE_UNSHARED };

static struct {
	struct mem_piece pieces[MAX_PIECES];
	struct {
		uint8_t kind;
		int prot;
		bool anonymous;
		uint64_t start, end; /* PIECE_CONVERT: what has to move with it */
	} how[MAX_PIECES];
	unsigned n;
	uint64_t start, end, next;
	bool writable, direct;
} work;

/** Private memory in huge pages. Linux protects and replaces it in whole pages only. */
static bool huge(const struct maps_entry *e)
{
	return !e->shared && strncmp(e->path, "/anon_hugepage", 14) == 0;
}

static bool special(const struct maps_entry *e)
{
	/* [heap] and the names of PR_SET_VMA_ANON_NAME ([anon:...]) are ordinary memory */
	if (e->path[0] == '[')
		return strcmp(e->path, "[heap]") != 0 && strncmp(e->path, "[anon", 5) != 0;
	return strncmp(e->path, "/anon_hugepage", 14) == 0;
}

static int collect(const struct maps_entry *e, void *arg)
{
	uint64_t start, end;
	unsigned i = work.n;
	bool owned;

	(void)arg;
	if (e->end <= work.start)
		return 0;
	if (e->start >= work.end)
		return 1;
	start = e->start > work.start ? e->start : work.start;
	end = e->end < work.end ? e->end : work.end;
	if (start != work.next || !(e->prot & PROT_READ) || (work.writable && !(e->prot & PROT_WRITE)))
		return -EFAULT;
	if (i == MAX_PIECES)
		return -E2BIG;
	work.next = end;
	work.n++;
	work.pieces[i] = (struct mem_piece){.va = start, .len = end - start, .fd = -1};
	work.how[i].prot = e->prot;
	work.how[i].anonymous = e->ino == 0;
	work.how[i].start = start;
	work.how[i].end = end;
	if (huge(e) && work.direct) {
		work.how[i].kind = PIECE_CONVERT;
		work.how[i].anonymous = true;
		work.how[i].start = e->start;
		work.how[i].end = e->end;
	} else if (special(e)) {
		work.how[i].kind = PIECE_UNSHARED;
	} else if (!e->shared) {
		work.how[i].kind = stacks_touch(start, end) ? PIECE_UNSHARED : PIECE_CONVERT;
	} else if (pool.ino && e->ino == pool.ino && e->dev == pool.dev && pool_open() == 0 &&
		   e->ino == pool.ino) {
		work.how[i].kind = PIECE_FD;
		work.pieces[i].fd = pool.fd;
	} else {
		work.pieces[i].fd = find_fd(e, work.writable, &owned);
		work.how[i].kind = work.pieces[i].fd < 0 ? PIECE_UNSHARED : owned ? PIECE_OWNED_FD : PIECE_FD;
	}
	work.pieces[i].offset = e->offset + (start - e->start);
	return 0;
}

/* Bytes that come into the pool */
static uint64_t to_convert(void)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < work.n; i++)
		bytes += work.how[i].kind == PIECE_CONVERT ? work.how[i].end - work.how[i].start : 0;
	return bytes;
}

/* One half of a limit of file sizes is left to queues, which have to be shared. */
static bool is_beyond_limit(void)
{
	uint64_t bytes = to_convert();

	return bytes && pool.size + bytes > file_limit() / 2;
}

static int convert_all(void)
{
	uint64_t bytes = to_convert();
	int rc;

	if (bytes == 0)
		return 0;
	rc = pool_open();
	if (rc < 0)
		return rc;
	/*
	 * glibc trims the heaps of threads with MADV_DONTNEED and then counts on zeros (calloc), which shared
	 * pages do not give.
	 */
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
	if (pool.size + bytes > file_limit())
		return -EFBIG;
	if (ftruncate(pool.fd, (off_t)(pool.size + bytes)) < 0)
		return -errno;
	for (unsigned i = 0; i < work.n; i++) {
		struct mem_piece *p = &work.pieces[i];

		if (work.how[i].kind != PIECE_CONVERT)
			continue;
		rc = convert(work.how[i].start, work.how[i].end, work.how[i].prot, work.how[i].anonymous,
			pool.size);
		if (rc < 0)
			return rc;
		p->fd = pool.fd;
		p->offset = pool.size + (p->va - work.how[i].start);
		pool.size += work.how[i].end - work.how[i].start;
	}
	return 0;
}

int mem_resolve(uint64_t va, uint64_t len, bool writable, bool direct, struct mem_list *out)
{
	bool unshared = false;
	int rc;

	page_size = (size_t)sysconf(_SC_PAGESIZE);
	if (len == 0 || va + len < va || va + len > UINT64_MAX - page_size)
		return -EFAULT;
	work.n = 0;
	work.start = work.next = va & ~(page_size - 1);
	work.end = (va + len + page_size - 1) & ~(page_size - 1);
	work.writable = writable;
	work.direct = direct;
	out->pieces = work.pieces;
	rc = maps_from(work.start, collect, NULL);
	if (rc >= 0 && work.next != work.end)
		rc = -EFAULT;
	for (unsigned i = 0; i < work.n; i++)
		unshared |= work.how[i].kind == PIECE_UNSHARED;
	if (rc >= 0 && unshared && direct)
		rc = -EFAULT;
	unshared |= !direct && is_beyond_limit();
	if (rc >= 0 && !unshared)
		rc = convert_all();
	out->n = work.n;
	if (rc < 0 || unshared)
		mem_list_done(out);
	if (rc >= 0 && unshared) {
		work.pieces[0] = (struct mem_piece){.va = work.start, .len = work.end - work.start, .fd = -1};
		work.how[0].kind = PIECE_UNSHARED;
		out->n = work.n = 1;
	}
	return rc < 0 ? rc : 0;
}

void mem_list_done(struct mem_list *list)
{
	for (unsigned i = 0; i < list->n; i++)
		if (work.how[i].kind == PIECE_OWNED_FD)
			sys_close(work.pieces[i].fd);
	list->n = work.n = 0;
}

/* ---- pages the application gives back --------------------------------------------------- */

struct mem_span {
	uint64_t start, end;
};

static int punch(const struct maps_entry *e, void *arg)
{
	const struct mem_span *mem_span = arg;
	uint64_t start = e->start > mem_span->start ? e->start : mem_span->start;
	uint64_t end = e->end < mem_span->end ? e->end : mem_span->end;

	if (start < end && e->shared && e->ino == pool.ino && e->dev == pool.dev)
		fallocate(pool.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)(e->offset + (start - e->start)), (off_t)(end - start));
	return e->start >= mem_span->end;
}

void mem_discarded(void *addr, size_t len)
{
	struct mem_span mem_span = {(uintptr_t)addr, (uintptr_t)addr + len};
	int saved = errno;

	if (pool.ino)
		maps_from(mem_span.start, punch, &mem_span);
	errno = saved;
}

/* ---- fork ------------------------------------------------------------------------------- */

static int fork_pipe[2] = {-1, -1};

void mem_fork_prepare(void)
{
	fork_pipe[0] = fork_pipe[1] = -1;
	if (pool.ino && pipe2(fork_pipe, O_CLOEXEC) < 0)
		fork_pipe[0] = fork_pipe[1] = -1;
}

void mem_fork_parent(void)
{
	if (fork_pipe[0] < 0)
		return;
	sys_close(fork_pipe[1]);
	/* One byte, or end of file when the child died or there is none. */
	while (sys_read(fork_pipe[0], &(char){0}, 1) < 0 && errno == EINTR)
		;
	sys_close(fork_pipe[0]);
}

/** Replaces one mapping of the parent's pool by a private copy. */
static int privatise(const struct maps_entry *e, void *arg)
{
	size_t len = e->end - e->start;
	uint8_t *copy;

	(void)arg;
	if (!e->shared || e->ino != pool.ino || e->dev != pool.dev)
		return 0;
	copy = sys_mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED)
		return -ENOMEM;
	for (size_t done = 0; done < len;) {
		ssize_t n = sys_pread(pool.fd, copy + done, len - done, (off_t)(e->offset + done));

		if (n == 0 || (n < 0 && errno != EINTR))
			return -EIO;
		done += n > 0 ? (size_t)n : 0;
	}
	if (e->prot != (PROT_READ | PROT_WRITE))
		mprotect(copy, len, e->prot);
	return mremap(copy, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)(uintptr_t)e->start) ==
			       MAP_FAILED
		       ? -errno
		       : 0;
}

void mem_fork_child(void)
{
	if (!pool.ino)
		return;
	if (maps_each(privatise, NULL) < 0) {
		static const char why[] =
			"softcx: no memory for a private copy of registered memory in a forked child\n";

		if (syscall(SYS_write, 2, why, sizeof(why) - 1) < 0)
			_exit(127);
		_exit(127);
	}
	sys_close(pool.fd);
	memset(&pool, 0, sizeof(pool));
	if (fork_pipe[1] >= 0) {
		syscall(SYS_write, fork_pipe[1], "", 1);
		sys_close(fork_pipe[0]);
		sys_close(fork_pipe[1]);
	}
}
