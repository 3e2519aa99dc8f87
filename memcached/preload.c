/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * preload.c - libreddn-memcached.so, preloaded into an unmodified memcached: its hash tables and slab pages
 * are in a cache file, the file $REDDN_CACHE_FILE. In front of the C library's allocation functions: calls
 * from memcached's own code that ask for what is a table or a page (measured of 1.6.18) get memory of the
 * cache file, or none; everything else goes on unchanged. In other programs, as the perl script that starts
 * memcached, it does nothing. And in front of bind(2) and listen(2): until memcached has its port, a NIC
 * finds what the memcached before had.
 */
#include "memcached/cache-file.h"
#include "memcached/cache-layout.h"
#include "memcached/cache.h"
#include "memcached/options.h"
#include "util/file.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* Defines next(), the definition of @name behind ours. dlsym() finds it without memory of its own (glibc 2.34
 * and later). Two threads may both look it up: the same result. */
#define NEXT(name)                                                                                           \
	static __typeof__(&name) next;                                                                       \
	if (!next)                                                                                           \
	next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static struct cache cache;
static bool serving; /* this is a memcached, and the cache file is open */
static uintptr_t code, code_end;

static _Noreturn void stop(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* memcached must not serve what no NIC would see */
static _Noreturn void stop(const char *format, ...)
{
	char why[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(why, sizeof(why), format, ap);
	va_end(ap);
	dprintf(STDERR_FILENO, "libreddn-memcached: memcached does not start: %s\n", why);
	_exit(EX_CONFIG);
}

/* ---- the program ------------------------------------------------------------------------ */

static bool is_memcached(void)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	const char *name;

	if (n < 0)
		return false;
	path[n] = 0;
	name = strrchr(path, '/');
	return name && strcmp(name, "/memcached") == 0;
}

/* The first object is the program (dl_iterate_phdr(3)) */
static int find_code(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	(void)data;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && (p->p_flags & PF_X)) {
			code = info->dlpi_addr + p->p_vaddr;
			code_end = code + p->p_memsz;
		}
	}
	return 1;
}

static bool is_code(const void *caller)
{
	return serving && (uintptr_t)caller >= code && (uintptr_t)caller < code_end;
}

static void make_layout(struct reddn_cache_header *layout, const struct options *o)
{
	if (o->unserved)
		stop("%s", o->unserved);
	switch (cache_layout_make(layout, o->memory, o->power)) {
	case 0:
		return;
	case -ERANGE:
		stop("-o hashpower=%u: from %d to %d can be served", o->power, CACHE_POWER_LEAST,
			CACHE_POWER_MOST);
	default:
		stop("-m %" PRIu64 ": from 1 to %u can be served", o->memory >> 20, 1u << 19);
	}
}

/* Before the file is made: it would stay, with all of its memory, if there is no room for it here */
static void reserve(const char *path, uint64_t size)
{
	void *want = (void *)REDDN_CACHE_BASE; // NOLINT: a fixed place
	void *at = mmap(want, size, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (at != want)
		stop("%s cannot be mapped, %" PRIu64 " bytes at %p: %s", path, size, want,
			at == MAP_FAILED ? strerror(errno) : "no room");
}

/* Where reserve() has made room */
static void map(int fd, const char *path, uint64_t size)
{
	void *want = (void *)REDDN_CACHE_BASE; // NOLINT: a fixed place

	if (mmap(want, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != want)
		stop("%s cannot be mapped at %p: %s", path, want, strerror(errno));
	if (cache_init(&cache, want) < 0)
		stop("out of memory");
}

static const char *object_of(const void *function)
{
	Dl_info info;

	return function && dladdr(function, &info) && info.dli_fname ? info.dli_fname : "another library";
}

/* What is in front of this library gets memcached's calls, as an allocator that is preloaded before it: no
 * item would be in the file */
static void check_order(void)
{
	static const char *const calls[] = {"calloc", "malloc", "posix_memalign", "free"};
	const char *ours = object_of((const void *)object_of);

	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		const char *first = object_of(dlsym(RTLD_DEFAULT, calls[i]));

		if (strcmp(first, ours) != 0)
			stop("%s, which has %s() too, is preloaded in front of libreddn-memcached.so; name "
			     "it behind this library in LD_PRELOAD",
				first, calls[i]);
	}
}

/* While memcached still has the rights it was started with. The descriptor stays open: it holds the lock. */
static __attribute__((constructor)) void init(int argc, char **argv)
{
	const char *path = getenv("REDDN_CACHE_FILE");
	struct reddn_cache_header layout;
	struct options o;
	char why[400];
	int fd;

	if (!is_memcached())
		return;
	if (options_read(&o, argc, argv) < 0)
		stop("out of memory");
	if (o.only_prints)
		return;
	file_fill_standard();
	if (!path || *path != '/')
		stop("REDDN_CACHE_FILE is not set to the absolute path of a file in memory, as in "
		     "REDDN_CACHE_FILE=/dev/shm/reddn/memcached.cache");
	check_order();
	make_layout(&layout, &o);
	reserve(path, layout.file_size);
	fd = cache_file_open(path, &layout, why, sizeof(why));
	if (fd < 0)
		stop("%s", fd == -ENOMEM ? "out of memory" : why);
	map(fd, path, layout.file_size);
	dl_iterate_phdr(find_code, NULL);
	serving = true;
}

/* ---- its port ------------------------------------------------------------------------------- */

/* What the memcached before had is kept until a port is ours: one that does not get it changes nothing.
 * Nobody can set an item before: memcached accepts connections and reads datagrams later. Whoever calls, as a
 * library that is in front of this one. Returns @r. */
static int opened(int r)
{
	if (serving && r == 0)
		cache_begin(&cache);
	return r;
}

EXPORT int bind(int fd, __CONST_SOCKADDR_ARG address, socklen_t len)
{
	NEXT(bind);

	return opened(next(fd, address, len));
}

/* Of a socket that was bound elsewhere */
EXPORT int listen(int fd, int backlog)
{
	NEXT(listen);

	return opened(next(fd, backlog));
}

/* ---- allocation ------------------------------------------------------------------------- */

static void *or_none(void *p)
{
	if (!p)
		errno = ENOMEM;
	return p;
}

EXPORT void *calloc(size_t count, size_t size)
{
	NEXT(calloc);
	void *p = NULL;

	if (size != sizeof(void *) || !is_code(__builtin_return_address(0)) ||
		cache_table(&cache, count, getpid() == gettid(), &p) == CACHE_ELSEWHERE)
		return next(count, size);
	return or_none(p);
}

EXPORT void *malloc(size_t size)
{
	NEXT(malloc);

	if (size != REDDN_CACHE_PAGE || !is_code(__builtin_return_address(0)))
		return next(size);
	return or_none(cache_pages(&cache, size, REDDN_CACHE_PAGE));
}

/* With -L: all pages at once */
EXPORT int posix_memalign(void **p, size_t align, size_t size)
{
	NEXT(posix_memalign);

	if (size < REDDN_CACHE_PAGE || !is_code(__builtin_return_address(0)))
		return next(p, align, size);
	*p = align <= 2 * REDDN_CACHE_PAGE ? cache_pages(&cache, size, 2 * REDDN_CACHE_PAGE) : NULL;
	return *p ? 0 : ENOMEM;
}

EXPORT void free(void *p)
{
	NEXT(free);

	if (serving && cache_has(&cache, p))
		cache_free(&cache, p);
	else
		next(p);
}
