/* SPDX-License-Identifier: BSD-2-Clause */
/* Lookups by a resolver that answers when the test lets it. */
#include "util/lookup.h"

#include <dlfcn.h>
#include <endian.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>

#include "tests/lib/cmocka.h"

enum { PATIENCE_MS = 60000 };

static sem_t answers, answered;
static sigset_t mask;

/* Replaces the one of libc. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **list)
{
	int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
		(__typeof__(real))dlsym(RTLD_NEXT, "getaddrinfo");
	int r;

	if (hints->ai_flags & AI_NUMERICHOST)
		return real(node, service, hints, list);
	sem_wait(&answers);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	r = strcmp(node, "known") == 0 ? real("::1", service, hints, list) : EAI_NONAME;
	sem_post(&answered);
	return r;
}

static int setup(void **state)
{
	sem_init(&answers, 0, 0);
	sem_init(&answered, 0, 0);
	return 0;
}

static bool ends(const struct lookup *l)
{
	struct pollfd p = {.fd = lookup_fd(l), .events = POLLIN};

	return poll(&p, 1, PATIENCE_MS) == 1 && lookup_has_ended(l);
}

static void assert_port(const struct addrinfo *list, int family, uint16_t port)
{
	struct sockaddr_in a;

	assert_int_equal(list->ai_family, family);
	memcpy(&a, list->ai_addr, sizeof(a));
	assert_int_equal(be16toh(a.sin_port), port); /* at the same place for both families */
}

static void address(void **state)
{
	struct addrinfo *list;
	struct lookup *l;

	assert_int_equal(lookup_begin(&l, "127.0.0.1", 11211), 0);
	assert_true(lookup_has_ended(l));
	assert_true(ends(l));
	assert_int_equal(lookup_end(l, &list), 0);
	assert_port(list, AF_INET, 11211);
	freeaddrinfo(list);
}

static void name(void **state)
{
	struct addrinfo *list;
	struct lookup *l;

	assert_int_equal(lookup_begin(&l, "known", 7471), 0);
	assert_false(lookup_has_ended(l));
	sem_post(&answers);
	assert_true(ends(l));
	assert_int_equal(lookup_end(l, &list), 0);
	assert_port(list, AF_INET6, 7471);
	freeaddrinfo(list);
	/* signals are for the threads of the program */
	assert_true(sigismember(&mask, SIGTERM));
	assert_int_equal(lookup_begin(&l, "unknown", 7471), 0);
	sem_post(&answers);
	assert_true(ends(l));
	assert_int_equal(lookup_end(l, &list), EAI_NONAME);
}

static void abandoned(void **state)
{
	struct lookup *l;

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(lookup_begin(&l, i ? "known" : "unknown", 7471), 0);
		assert_false(lookup_has_ended(l));
		lookup_abandon(l);
	}
	lookup_abandon(NULL);
	sem_post(&answers);
	sem_post(&answers);
	sem_wait(&answered);
	sem_wait(&answered);
	/* one that has ended, too */
	assert_int_equal(lookup_begin(&l, "known", 7471), 0);
	sem_post(&answers);
	assert_true(ends(l));
	lookup_abandon(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(address, setup),
		cmocka_unit_test_setup(name, setup),
		cmocka_unit_test_setup(abandoned, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
