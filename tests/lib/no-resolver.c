/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * no-resolver.c - preloaded: while the file $NO_RESOLVER exists no name server answers, but to
 * libmemcached, which waits for one whenever it connects.
 */
#include <dlfcn.h>
#include <netdb.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **list)
{
	int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
		(__typeof__(real))dlsym(RTLD_NEXT, "getaddrinfo");
	const char *file = getenv("NO_RESOLVER");
	struct addrinfo numeric = *hints;
	int r;

	numeric.ai_flags |= AI_NUMERICHOST;
	r = real(node, service, &numeric, list);
	if (r == 0 || (hints->ai_flags & AI_NUMERICHOST))
		return r;
	/* which libmemcached does not set */
	if (!(hints->ai_flags & AI_NUMERICSERV))
		return real(node, service, hints, list);
	while (file && access(file, F_OK) == 0)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	return real(node, service, hints, list);
}
