/* SPDX-License-Identifier: BSD-2-Clause */
/* Dialogues with what is no memcached: one that answers without end, by the byte, with words of its own, or
 * never. */
#include "memcached/identity.h"
#include "memcached/talk.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

/* KNOWN_MS: a part of it is spent on a name server that is silent, the rest has to be enough on a busy
 * machine */
enum { LIMIT_MS = 100, KNOWN_MS = 4000, LONG_MS = 60000 };

static struct {
	char dir[32], path[48];
	int listener;
	pthread_t thread;
	const char *answer; /* to what comes first; then the rest of it again and again, if @again */
	bool again, by_byte, quits;
	char asked[256];
	struct talk talk;
	char why[200];
} t;

static bool say(int fd, const char *text)
{
	size_t step = t.by_byte ? 1 : strlen(text);

	for (size_t i = 0; text[i]; i += step) {
		if (send(fd, text + i, step, MSG_NOSIGNAL) < 0)
			return false;
		if (t.by_byte)
			usleep(5000);
	}
	return true;
}

static void *serve(void *arg)
{
	int fd = accept(t.listener, NULL, NULL);
	ssize_t n = recv(fd, t.asked, sizeof(t.asked) - 1, 0);

	t.asked[n > 0 ? n : 0] = '\0';
	if (t.answer && !t.quits)
		while (say(fd, t.answer) && t.again)
			;
	/* until it hangs up */
	while (!t.quits && recv(fd, t.asked, sizeof(t.asked), 0) > 0)
		;
	close(fd);
	return NULL;
}

static void begin(const char *answer, bool again, bool by_byte)
{
	t.answer = answer;
	t.again = again;
	t.by_byte = by_byte;
	assert_int_equal(pthread_create(&t.thread, NULL, serve, NULL), 0);
}

static void open_it(unsigned limit_ms)
{
	assert_int_equal(talk_open(&t.talk, t.path, limit_ms, t.why, sizeof(t.why)), 0);
}

static int setup(void **state)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};

	memset(&t, 0, sizeof(t));
	strcpy(t.dir, "/tmp/test-talk-XXXXXX");
	assert_non_null(mkdtemp(t.dir));
	snprintf(t.path, sizeof(t.path), "%s/socket", t.dir);
	strcpy(at.sun_path, t.path);
	t.listener = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(t.listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(t.listener, 1), 0);
	return 0;
}

static int teardown(void **state)
{
	talk_close(&t.talk);
	pthread_join(t.thread, NULL);
	close(t.listener);
	unlink(t.path);
	rmdir(t.dir);
	return 0;
}

/* As fast as it can: the bytes are limited; slowly: the time is, of the whole answer */
static void endless(void **state)
{
	struct talk_stat stat = {.name = "pid"};

	begin("STAT x 1\r\n", true, false);
	open_it(LONG_MS);
	assert_int_equal(talk_stats(&t.talk, "", &stat, 1), -EPROTO);
}

static void by_the_byte(void **state)
{
	struct talk_stat stat = {.name = "pid"};

	begin("STAT x 1\r\n", true, true);
	open_it(LIMIT_MS);
	assert_int_equal(talk_stats(&t.talk, "", &stat, 1), -ETIMEDOUT);
}

static void line_without_end(void **state)
{
	char line[16];

	begin("xxxxxxxxxxxxxxxx", true, false);
	open_it(LONG_MS);
	assert_int_equal(talk_ask(&t.talk, line, sizeof(line), "version"), -EPROTO);
}

static void silent(void **state)
{
	char line[16];

	begin(NULL, false, false);
	open_it(LIMIT_MS);
	assert_int_equal(talk_ask(&t.talk, line, sizeof(line), "version"), -ETIMEDOUT);
}

static void stopped(void **state)
{
	char line[16];

	begin(NULL, false, false);
	t.talk.stop = eventfd(1, EFD_CLOEXEC);
	open_it(LONG_MS);
	assert_int_equal(talk_ask(&t.talk, line, sizeof(line), "version"), -ECANCELED);
	close(t.talk.stop);
}

static void words(void **state)
{
	char line[64];

	begin("SERVER_ERROR \x1b]0;x\x07\xff \xc3\xa9\r\n", false, false);
	open_it(LONG_MS);
	assert_int_equal(talk_ask(&t.talk, line, sizeof(line), "version"), 0);
	assert_string_equal(line, "SERVER_ERROR ?]0;x?? \xc3\xa9");
}

static void ends(void **state)
{
	t.quits = true;
	begin(NULL, false, false);
	open_it(LONG_MS);
	assert_false(talk_has_ended(&t.talk));
	assert_int_equal(talk_send(&t.talk, "version"), 0);
	pthread_join(t.thread, NULL);
	assert_true(talk_has_ended(&t.talk));
	begin(NULL, false, false);
	talk_close(&t.talk);
	open_it(LONG_MS);
	talk_send(&t.talk, "version");
}

static void identities(void **state)
{
#define ITEM " reddn-identity-123456789abcdef0 0 45"
#define REST "000000000000000000000000000000123456789abcdef0\r\nEND\r\n"
	static const struct identity known = {0x123456789abcdef0, 7};
	static const struct {
		const char *answer;
		int r;
	} cases[] = {
		{"VALUE" ITEM " 7\r\n" REST, 1},
		/* a copy */
		{"VALUE" ITEM " 8\r\n" REST, 0},
		{"VALUE" ITEM "\r\n" REST, -EPROTO},
		{"END\r\n", 0},
		{"ERROR\r\n", -EPROTO},
	};
	struct identity stored = {0};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(cases[i].answer, false, false);
		open_it(LONG_MS);
		assert_int_equal(identity_ask(&t.talk, &known), cases[i].r);
		assert_string_equal(t.asked, "gets reddn-identity-123456789abcdef0\r\n");
		talk_close(&t.talk);
		pthread_join(t.thread, NULL);
	}
	/* there is one already, as of another daemon; and that is there when ours is added */
	begin("VALUE" ITEM " 9\r\n" REST, false, false);
	open_it(LONG_MS);
	assert_int_equal(identity_store(&t.talk, known.generation, &stored), 0);
	assert_true(stored.cas == 9 && stored.generation == known.generation);
	talk_close(&t.talk);
	pthread_join(t.thread, NULL);
	begin("END\r\nDELETED\r\nNOT_STORED\r\nVALUE" ITEM " 10\r\n" REST, false, false);
	open_it(LONG_MS);
	assert_int_equal(identity_store(&t.talk, known.generation, &stored), 0);
	assert_int_equal(stored.cas, 10);
}

/* ---- a name ----------------------------------------------------------------------------- */

enum { NAME_LISTENERS = 2 };

static struct {
	int listener[NAME_LISTENERS]; /* at 127.0.0.1 and 127.0.0.2 */
	char server[32];
	atomic_bool silent;            /* the resolver does not answer */
	_Atomic(const char *) address; /* of the name; NULL: it has none */
} name;

/* Replaces the one of libc. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **list)
{
	int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
		(__typeof__(real))dlsym(RTLD_NEXT, "getaddrinfo");
	const char *address;

	if (hints->ai_flags & AI_NUMERICHOST)
		return real(node, service, hints, list);
	while (atomic_load(&name.silent))
		usleep(1000);
	address = atomic_load(&name.address);
	return address ? real(address, service, hints, list) : EAI_AGAIN;
}

static int name_setup(void **state)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);

	memset(&t, 0, sizeof(t));
	for (uint32_t i = 0; i < NAME_LISTENERS; i++) {
		at.sin_addr.s_addr = htonl(INADDR_LOOPBACK + i);
		name.listener[i] = socket(AF_INET, SOCK_STREAM, 0);
		assert_int_equal(bind(name.listener[i], (struct sockaddr *)&at, sizeof(at)), 0);
		assert_int_equal(listen(name.listener[i], 8), 0);
		assert_int_equal(getsockname(name.listener[i], (struct sockaddr *)&at, &len), 0);
	}
	snprintf(name.server, sizeof(name.server), "cache:%u", ntohs(at.sin_port));
	name.silent = false;
	name.address = "127.0.0.1";
	return 0;
}

static int name_teardown(void **state)
{
	name.silent = false;
	talk_deinit(&t.talk);
	for (unsigned i = 0; i < NAME_LISTENERS; i++)
		close(name.listener[i]);
	return 0;
}

static int name_open(unsigned limit_ms)
{
	return talk_open(&t.talk, name.server, limit_ms, t.why, sizeof(t.why));
}

static void assert_leads_to(const char *address)
{
	struct sockaddr_in at;
	socklen_t len = sizeof(at);

	assert_int_equal(getpeername(t.talk.fd, (struct sockaddr *)&at, &len), 0);
	assert_string_equal(inet_ntoa(at.sin_addr), address);
}

static void name_is_unknown(void **state)
{
	name.address = NULL;
	assert_int_equal(name_open(LONG_MS), -ENOENT);
	name.silent = true;
	assert_int_equal(name_open(LIMIT_MS), -ETIMEDOUT);
	assert_non_null(strstr(t.why, "not looked up in time"));
	t.talk.stop = eventfd(1, EFD_CLOEXEC);
	assert_int_equal(name_open(LONG_MS), -ECANCELED);
	close(t.talk.stop);
	t.talk.stop = 0;
	/* the answer to the first question, and that to the next one */
	name.silent = false;
	assert_int_equal(name_open(LONG_MS), -ENOENT);
	name.address = "127.0.0.1";
	assert_int_equal(name_open(LONG_MS), 0);
	assert_leads_to("127.0.0.1");
	talk_close(&t.talk);
}

static void name_was_known(void **state)
{
	assert_int_equal(name_open(LONG_MS), 0);
	talk_close(&t.talk);
	name.address = NULL;
	assert_int_equal(name_open(LONG_MS), 0);
	assert_leads_to("127.0.0.1");
	assert_false(talk_has_ended(&t.talk));
	talk_close(&t.talk);
	name.silent = true;
	for (unsigned i = 0; i < 2; i++) {
		/* the second one waits for no answer */
		assert_int_equal(name_open(i ? LONG_MS : KNOWN_MS), 0);
		assert_leads_to("127.0.0.1");
		assert_false(talk_has_ended(&t.talk));
		talk_close(&t.talk);
	}
}

static void name_moves(void **state)
{
	assert_int_equal(name_open(LONG_MS), 0);
	talk_close(&t.talk);
	name.silent = true;
	assert_int_equal(name_open(KNOWN_MS), 0);
	assert_leads_to("127.0.0.1");
	name.address = "127.0.0.2";
	name.silent = false;
	while (!talk_has_ended(&t.talk))
		usleep(1000);
	talk_close(&t.talk);
	assert_int_equal(name_open(LONG_MS), 0);
	assert_leads_to("127.0.0.2");
	assert_false(talk_has_ended(&t.talk));
	talk_close(&t.talk);
	name.address = "127.0.0.1";
	assert_int_equal(name_open(LONG_MS), 0);
	assert_leads_to("127.0.0.1");
	talk_close(&t.talk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(endless, setup, teardown),
		cmocka_unit_test_setup_teardown(by_the_byte, setup, teardown),
		cmocka_unit_test_setup_teardown(line_without_end, setup, teardown),
		cmocka_unit_test_setup_teardown(silent, setup, teardown),
		cmocka_unit_test_setup_teardown(stopped, setup, teardown),
		cmocka_unit_test_setup_teardown(words, setup, teardown),
		cmocka_unit_test_setup_teardown(ends, setup, teardown),
		cmocka_unit_test_setup_teardown(identities, setup, teardown),
		cmocka_unit_test_setup_teardown(name_is_unknown, name_setup, name_teardown),
		cmocka_unit_test_setup_teardown(name_was_known, name_setup, name_teardown),
		cmocka_unit_test_setup_teardown(name_moves, name_setup, name_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
