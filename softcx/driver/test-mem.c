/* SPDX-License-Identifier: BSD-2-Clause */
/* test-mem.c - conversion of private memory, with this process as its own NIC. */
#include "softcx/driver/internal.h"

#include <errno.h>
#include <linux/mman.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

enum { PAGE = 4096 };

static unsigned char *map_anon(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	return p;
}

/** Maps [p, p + len), which must be one piece, as the NIC would. */
static unsigned char *nic_view(void *p, size_t len)
{
	struct mem_list list;
	unsigned char *view;

	assert_int_equal(mem_resolve((uintptr_t)p, len, true, true, &list), 0);
	assert_int_equal(list.n, 1);
	assert_true(list.pieces[0].fd >= 0);
	view = mmap(NULL, list.pieces[0].len, PROT_READ | PROT_WRITE, MAP_SHARED, list.pieces[0].fd,
		(off_t)list.pieces[0].offset);
	assert_true(view != MAP_FAILED);
	view += (uintptr_t)p - list.pieces[0].va;
	mem_list_done(&list);
	return view;
}

static void test_both_see_one_memory(void **state)
{
	unsigned char *p = map_anon(8 * PAGE) + PAGE + 100, *view;

	memset(p, 7, 3 * PAGE);
	view = nic_view(p, 3 * PAGE);
	assert_memory_equal(view, p, 3 * PAGE);
	p[5000] = 1;
	assert_int_equal(view[5000], 1);
	view[6000] = 2;
	assert_int_equal(p[6000], 2);
	/* again: the same pages, not a second copy */
	view[7000] = 3;
	assert_int_equal(nic_view(p, 3 * PAGE)[7000], 3);
	assert_int_equal(p[7000], 3);
}

/* A limit of files does not end the program: the file is of softcx */
static void test_limit_of_files(void **state)
{
	unsigned char *p = map_anon(2 * PAGE);
	struct rlimit before, none;
	struct mem_list list;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	none = (struct rlimit){0, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	assert_int_equal(mem_resolve((uintptr_t)p, PAGE, true, true, &list), -EFBIG);
	assert_int_equal(anon_new(PAGE), -1);
	assert_int_equal(mem_resolve((uintptr_t)p, PAGE, true, false, &list), 0);
	assert_int_equal(list.n, 1);
	assert_int_equal(list.pieces[0].fd, -1);
	mem_list_done(&list);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	nic_view(p, PAGE);
}

/* What is left of a limit is that of queues: what may be elsewhere does not take it. */
static void test_limit_for_queues(void **state)
{
	unsigned char *queue = map_anon(PAGE), *data = map_anon(PAGE);
	struct rlimit before, some;
	struct mem_list list;
	uint64_t used;

	assert_int_equal(mem_resolve((uintptr_t)queue, PAGE, true, true, &list), 0);
	used = list.pieces[0].offset + PAGE;
	mem_list_done(&list);
	queue = map_anon(PAGE);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	some = (struct rlimit){used + PAGE, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &some), 0);
	assert_int_equal(mem_resolve((uintptr_t)data, PAGE, true, false, &list), 0);
	assert_int_equal(list.pieces[0].fd, -1);
	mem_list_done(&list);
	assert_int_equal(mem_resolve((uintptr_t)queue, PAGE, true, true, &list), 0);
	assert_int_not_equal(list.pieces[0].fd, -1);
	mem_list_done(&list);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	nic_view(data, PAGE);
}

static void test_only_pages_of_the_range(void **state)
{
	unsigned char *p = map_anon(4 * PAGE);
	struct mem_list list;

	nic_view(p + PAGE, 10);
	assert_int_equal(mem_resolve((uintptr_t)p, 4 * PAGE, true, true, &list), 0);
	assert_int_equal(list.n, 3);
	assert_int_equal(list.pieces[0].va, (uintptr_t)p);
	assert_int_equal(list.pieces[1].va, (uintptr_t)p + PAGE);
	assert_int_equal(list.pieces[2].va, (uintptr_t)p + 2 * PAGE);
	assert_int_equal(list.pieces[2].len, 2 * PAGE);
	mem_list_done(&list);
}

static void test_sparse_range(void **state)
{
	size_t len = 256 * PAGE;
	unsigned char *p = map_anon(len), *view;

	p[0] = 1;
	p[100 * PAGE + 1] = 2;
	p[len - 1] = 3;
	view = nic_view(p, len);
	assert_int_equal(view[0], 1);
	assert_int_equal(view[100 * PAGE + 1], 2);
	assert_int_equal(view[len - 1], 3);
	assert_int_equal(view[50 * PAGE], 0);
}

static int data_segment[3 * PAGE / sizeof(int)] = {42};

static void test_data_segment_and_heap(void **state)
{
	unsigned char *heap = malloc(100);

	((int *)nic_view(data_segment, sizeof(data_segment)))[1] = 43;
	assert_int_equal(data_segment[0], 42);
	assert_int_equal(data_segment[1], 43);
	memset(heap, 9, 100);
	nic_view(heap, 100)[50] = 8;
	assert_int_equal(heap[49], 9);
	assert_int_equal(heap[50], 8);
	free(heap);
}

static void test_reused_address(void **state)
{
	unsigned char *p = map_anon(2 * PAGE), *old = nic_view(p, 2 * PAGE);

	p[0] = 1;
	assert_int_equal(munmap(p, 2 * PAGE), 0);
	assert_ptr_equal(
		mmap(p, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), p);
	assert_int_equal(p[0], 0);
	p[0] = 2;
	assert_int_equal(nic_view(p, 2 * PAGE)[0], 2);
	assert_int_equal(old[0], 1);
}

static void test_shared_file(void **state)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	struct stat want, got;
	struct mem_list list;
	unsigned char *p;

	assert_int_equal(ftruncate(fd, 4 * PAGE), 0);
	p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, PAGE);
	assert_true(p != MAP_FAILED);
	assert_int_equal(mem_resolve((uintptr_t)p + PAGE, 10, true, true, &list), 0);
	assert_int_equal(list.n, 1);
	assert_int_equal(list.pieces[0].offset, 2 * PAGE);
	fstat(fd, &want);
	fstat(list.pieces[0].fd, &got);
	assert_int_equal(got.st_ino, want.st_ino);
	mem_list_done(&list);
	close(fd);
}

/** Asks for huge pages. False: this machine has none to give, and we may not make any. */
static bool more_huge_pages(int by)
{
	FILE *f = fopen("/proc/sys/vm/nr_hugepages", "r+");
	long n = 0;
	bool ok;

	if (!f)
		return false;
	ok = fscanf(f, "%ld", &n) == 1;
	rewind(f);
	ok = ok && fprintf(f, "%ld", n + by) > 0;
	return fclose(f) == 0 && ok;
}

/* A queue in private huge pages; other data there stays where it is until a queue comes. */
static void test_huge_pages(void **state)
{
	enum { HUGE = 2 << 20 };
	bool made = more_huge_pages(2);
	unsigned char *p = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | 21 << MAP_HUGE_SHIFT, -1, 0),
		      *view;
	struct mem_list list;

	if (p == MAP_FAILED) {
		if (made)
			more_huge_pages(-2);
		print_message("no huge pages are to be had here\n");
		skip();
	}
	memset(p, 7, HUGE + PAGE);
	assert_int_equal(mem_resolve((uintptr_t)p + PAGE, PAGE, true, false, &list), 0);
	assert_int_equal(list.pieces[0].fd, -1);
	mem_list_done(&list);
	view = nic_view(p + HUGE - PAGE, 2 * PAGE);
	assert_memory_equal(view, p + HUGE - PAGE, 2 * PAGE);
	p[HUGE] = 1;
	assert_int_equal(view[PAGE], 1);
	view[0] = 2;
	assert_int_equal(p[HUGE - PAGE], 2);
	assert_int_equal(p[0], 7);
	assert_int_equal(p[2 * HUGE - 1], 0);
	assert_int_equal(*nic_view(p, 1), 7);
	assert_int_equal(munmap(p, 2 * HUGE), 0);
	if (made)
		more_huge_pages(-2);
}

static void test_refusals(void **state)
{
	unsigned char *p = map_anon(3 * PAGE);
	struct mem_list list;

	mprotect(p + PAGE, PAGE, PROT_READ);
	assert_int_equal(mem_resolve((uintptr_t)p, 3 * PAGE, true, false, &list), -EFAULT);
	assert_int_equal(mem_resolve((uintptr_t)p, 3 * PAGE, false, false, &list), 0);
	mem_list_done(&list);
	munmap(p + PAGE, PAGE);
	assert_int_equal(mem_resolve((uintptr_t)p, 3 * PAGE, false, false, &list), -EFAULT);
	assert_int_equal(mem_resolve(UINT64_MAX - 10, 100, false, false, &list), -EFAULT);
	assert_int_equal(mem_resolve((uintptr_t)p, 0, false, false, &list), -EFAULT);
}

static void expect_unshared(void *p, size_t len)
{
	struct mem_list list;

	assert_int_equal(mem_resolve((uintptr_t)p, len, true, true, &list), -EFAULT);
	assert_int_equal(mem_resolve((uintptr_t)p, len, true, false, &list), 0);
	assert_int_equal(list.n, 1);
	assert_int_equal(list.pieces[0].fd, -1);
	mem_list_done(&list);
}

static void *give_stack_and_wait(void *arg)
{
	struct {
		pthread_barrier_t barrier;
		void *_Atomic buffer;
	} *shared = arg;
	char buffer[64];

	shared->buffer = buffer;
	pthread_barrier_wait(&shared->barrier);
	pthread_barrier_wait(&shared->barrier);
	return NULL;
}

static void test_stacks(void **state)
{
	struct {
		pthread_barrier_t barrier;
		void *_Atomic buffer;
	} shared;
	char here[64];
	pthread_t thread;

	expect_unshared(here, sizeof(here));
	expect_unshared((void *)pthread_self(), 8);
	pthread_barrier_init(&shared.barrier, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, give_stack_and_wait, &shared), 0);
	pthread_barrier_wait(&shared.barrier);
	expect_unshared(shared.buffer, 64);
	pthread_barrier_wait(&shared.barrier);
	pthread_join(thread, NULL);
}

static void *resolve_page(void *page)
{
	struct mem_list list;
	int rc = mem_resolve((uintptr_t)page, PAGE, true, true, &list);

	if (rc == 0)
		mem_list_done(&list);
	return (void *)(intptr_t)rc;
}

/* A heap may begin where the stack of its thread ends. */
static void test_behind_stack(void **state)
{
	const size_t size = 256 * 1024;
	unsigned char *p = map_anon(size + PAGE);
	pthread_attr_t attr;
	pthread_t thread;
	void *rc;

	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstack(&attr, p, size), 0);
	assert_int_equal(pthread_create(&thread, &attr, resolve_page, p + size), 0);
	pthread_join(thread, &rc);
	pthread_attr_destroy(&attr);
	assert_int_equal((intptr_t)rc, 0);
	munmap(p, size + PAGE);
}

/* ---- writers that do not stop ----------------------------------------------------------- */

enum { WRITERS = 4, PAGES = 64, ROUNDS = 8 };

static struct {
	volatile uint64_t *words; /* PAGES * WRITERS of them, each with one writer */
	atomic_bool stop;
	uint64_t written[WRITERS];
} race;

/** Counts up one word of each page in turn, without atomics: a lost store shows in the sum. */
static void *writer(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;
	uint64_t n = 0;

	while (!race.stop) {
		volatile uint64_t *word = &race.words[(n % PAGES) * (PAGE / 8) + me * 8];

		*word = *word + 1;
		n++;
	}
	race.written[me] = n;
	return NULL;
}

static void test_concurrent_writers_lose_nothing(void **state)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned char *p = map_anon(PAGES * PAGE);
		pthread_t threads[WRITERS];
		uint64_t *view[PAGES];

		race.words = (volatile uint64_t *)p;
		race.stop = false;
		for (uintptr_t i = 0; i < WRITERS; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, writer, (void *)i), 0);
		usleep(1000);
		/* in many steps, some of several pages */
		for (unsigned i = 0; i < PAGES; i += 1 + i % 3)
			nic_view(p + i * PAGE,
				(1 + i % 3) * PAGE < (PAGES - i) * PAGE ? (1 + i % 3) * PAGE : PAGE);
		usleep(1000);
		race.stop = true;
		for (unsigned i = 0; i < WRITERS; i++)
			pthread_join(threads[i], NULL);
		for (unsigned i = 0; i < PAGES; i++)
			view[i] = (uint64_t *)nic_view(p + i * PAGE, PAGE);
		for (unsigned w = 0; w < WRITERS; w++) {
			uint64_t sum = 0;

			for (unsigned i = 0; i < PAGES; i++)
				sum += view[i][w * 8];
			assert_int_equal(sum, race.written[w]);
		}
		for (unsigned i = 0; i < PAGES; i++)
			munmap(view[i], PAGE);
		munmap(p, PAGES * PAGE);
	}
}

static sigjmp_buf landing;

static void on_other_fault(int sig)
{
	siglongjmp(landing, 1);
}

static void test_other_faults_reach_the_application(void **state)
{
	struct sigaction act = {.sa_handler = on_other_fault};
	unsigned char *p = map_anon(PAGE);
	volatile bool landed = false;

	sigaction(SIGSEGV, &act, NULL);
	nic_view(p, PAGE); /* this process has threads, or had: installs ours in front */
	mprotect(p, PAGE, PROT_READ);
	if (sigsetjmp(landing, 1) == 0)
		*(volatile unsigned char *)p = 1;
	else
		landed = true;
	signal(SIGSEGV, SIG_DFL);
	assert_true(landed);
}

/* ---- fork ------------------------------------------------------------------------------- */

static void test_child_has_a_private_copy(void **state)
{
	unsigned char *p = map_anon(4 * PAGE), *view = nic_view(p, 4 * PAGE);
	int status, to_child[2];
	pid_t pid;

	p[0] = 1;
	mprotect(p + 2 * PAGE, PAGE, PROT_READ);
	mprotect(p + 3 * PAGE, PAGE, PROT_NONE);
	assert_int_equal(pipe(to_child), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct mem_list list;
		char go;

		if (read(to_child[0], &go, 1) != 1)
			_exit(1);
		if (p[0] != 1 || p[PAGE] != 0) /* as it was at the fork */
			_exit(2);
		p[0] = 3;
		/* the child can register its copy again */
		if (mem_resolve((uintptr_t)p, PAGE, true, true, &list) != 0 || list.pieces[0].fd < 0)
			_exit(3);
		_exit(0);
	}
	p[0] = 2;
	view[PAGE] = 2;
	assert_int_equal(write(to_child[1], "", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(p[0], 2);
	assert_int_equal(view[0], 2);
	close(to_child[0]);
	close(to_child[1]);
}

/* Keeps the first entry that it sees. */
static int keep(const struct maps_entry *e, void *arg)
{
	struct maps_entry *first = arg;

	*first = *e;
	first->path = *e->path ? strdup(e->path) : "";
	return 1;
}

static int compare(const struct maps_entry *e, void *arg)
{
	struct maps_entry found = {0};
	unsigned *n = arg;

	if (*e->path == '[') /* that of the stack grows */
		return 0;
	assert_int_equal(maps_from(e->start, keep, &found), 1);
	assert_int_equal(found.start, e->start);
	assert_int_equal(found.prot, e->prot);
	assert_int_equal(found.shared, e->shared);
	assert_int_equal(found.offset, e->offset);
	assert_int_equal(found.dev, e->dev);
	assert_int_equal(found.ino, e->ino);
	assert_string_equal(found.path, e->path);
	if (*found.path)
		free((char *)(uintptr_t)found.path);
	++*n;
	return 0;
}

/* One mapping is found as in the list of all. */
static void test_one_by_one(void **state)
{
	struct maps_entry found;
	unsigned n = 0;

	assert_int_equal(maps_each(compare, &n), 0);
	assert_true(n > 10);
	assert_int_equal(maps_from(UINT64_MAX, keep, &found), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_by_one),
		cmocka_unit_test(test_both_see_one_memory),
		cmocka_unit_test(test_limit_of_files),
		cmocka_unit_test(test_limit_for_queues),
		cmocka_unit_test(test_only_pages_of_the_range),
		cmocka_unit_test(test_sparse_range),
		cmocka_unit_test(test_data_segment_and_heap),
		cmocka_unit_test(test_reused_address),
		cmocka_unit_test(test_shared_file),
		cmocka_unit_test(test_huge_pages),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_behind_stack),
		cmocka_unit_test(test_concurrent_writers_lose_nothing),
		cmocka_unit_test(test_other_faults_reach_the_application),
		cmocka_unit_test(test_child_has_a_private_copy),
	};

	stacks_init();
	pthread_atfork(mem_fork_prepare, mem_fork_parent, mem_fork_child);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
