/* SPDX-License-Identifier: BSD-2-Clause */
/* What a daemon writes can be read, at any step. */
#include "reddnd/ledger/test-daemon.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

static void written_and_read(void **state)
{
	struct test_daemon d = test_daemon_begin();
	struct ledger_view *v = test_daemon_load(&d);
	const struct ledger_slot *slot;
	const struct ledger_object *o;

	assert_int_equal(v->head.used, 3);
	assert_int_equal(v->nkept, 7);
	for (uint32_t h = 0; h < 7; h++)
		assert_true(ledger_keeps(v, h));
	assert_false(ledger_keeps(v, 7));
	o = ledger_find(v, LEDGER_QP, 6, &slot);
	assert_non_null(o);
	assert_int_equal(o->entries, 64);
	assert_string_equal(slot->session.offload, "users");
	assert_null(ledger_find(v, LEDGER_CQ, 6, &slot));
	ledger_view_free(v);
	ledger_free(d.ledger);
}

static struct ledger *reopen(const struct ledger_view *v, const struct test_daemon *d)
{
	struct ledger *l;

	assert_int_equal(ledger_open(&l, dup(ledger_fd(d->ledger)), v), 0);
	return l;
}

/* A session that ends has what is destroyed for it, and then nothing but whom to tell */
static void session_that_ends(void **state)
{
	struct test_daemon d = test_daemon_begin();
	struct ledger_view *v;
	struct ledger_slot *s;
	struct ledger *l;

	d.session->session.recycled = 0;
	v = test_daemon_load(&d);
	assert_false(ledger_goes_on(&v->slots[2]));
	assert_false(ledger_keeps(v, 6));
	assert_true(ledger_keeps(v, 2));
	l = reopen(v, &d);
	s = ledger_unclaimed(l, LEDGER_SESSION, NULL);
	assert_int_equal(s->session.cm_id, 8);
	assert_int_equal(s->block.size, 0);
	for (unsigned i = 0; i < LEDGER_OBJECTS; i++)
		assert_int_equal(s->object[i].type, LEDGER_NONE);
	ledger_view_free(v);
	v = test_daemon_load(&d); /* if the next one dies as well */
	assert_int_equal(v->slots[2].state, LEDGER_LIVE);
	ledger_view_free(v);
	ledger_drop(l, s);
	assert_int_equal(s->state, LEDGER_FREE);
	ledger_free(l);
	ledger_free(d.ledger);
}

/* Whatever the daemon is about when it dies: what it had is there, and what it was making or ending is not
 * kept. */
static void at_any_step(void **state)
{
	struct test_daemon d = test_daemon_begin();
	struct ledger_slot *second = ledger_take(d.ledger, LEDGER_SESSION), *window;
	struct ledger_view *v;

	ledger_view_free(test_daemon_load(&d));
	ledger_set_block(second, 4 * TEST_BLOCK, TEST_BLOCK);
	ledger_view_free(test_daemon_load(&d));
	test_make(second, LEDGER_UMEM, 10);
	test_make_cq(second, 11, 0);
	v = test_daemon_load(&d);
	assert_false(ledger_keeps(v, 10));
	assert_true(ledger_keeps(v, 3));
	ledger_view_free(v);

	ledger_ending(d.session);
	v = test_daemon_load(&d);
	assert_false(ledger_keeps(v, 6));
	ledger_view_free(v);
	ledger_gone(d.session, LEDGER_QP, 6);
	/* another thread may have an object with that handle at once */
	window = ledger_take(d.ledger, LEDGER_WINDOW);
	test_make(window, LEDGER_MR, 5);
	ledger_live(window);
	v = test_daemon_load(&d);
	assert_true(ledger_keeps(v, 5));
	ledger_view_free(v);
	ledger_gone(d.session, LEDGER_CQ, 5);
	ledger_gone(d.session, LEDGER_MR, 4);
	ledger_gone(d.session, LEDGER_UMEM, 3);
	ledger_set_block(d.session, 0, 0);
	ledger_view_free(test_daemon_load(&d));
	ledger_drop(d.ledger, d.session);
	v = test_daemon_load(&d);
	assert_int_equal(v->nkept, 4);
	ledger_view_free(v);
	ledger_free(d.ledger);
}

static void slots_are_used_again(void **state)
{
	struct ledger_slot *slot[TEST_SLOTS];
	struct ledger *l;

	assert_int_equal(ledger_new(&l, TEST_SLOTS, TEST_ARENA), 0);
	for (unsigned i = 0; i < TEST_SLOTS; i++) {
		slot[i] = ledger_take(l, LEDGER_WINDOW);
		assert_non_null(slot[i]);
		test_make(slot[i], LEDGER_MR, i);
	}
	assert_null(ledger_take(l, LEDGER_WINDOW));
	ledger_drop(l, slot[4]); /* the device does not let go of what it has */
	assert_int_equal(slot[4]->state, LEDGER_ENDING);
	assert_null(ledger_take(l, LEDGER_WINDOW));
	ledger_gone(slot[3], LEDGER_MR, 3);
	ledger_drop(l, slot[3]);
	assert_ptr_equal(ledger_take(l, LEDGER_SESSION), slot[3]);
	assert_int_equal(slot[3]->object[0].type, LEDGER_NONE);
	assert_int_equal(slot[3]->state, LEDGER_BUILDING);
	ledger_free(l);
}

static bool is_of_file(const struct ledger_slot *slot, const void *arg)
{
	return slot->window.ino == *(const uint64_t *)arg;
}

/* A daemon that takes over, and dies of its first store, has changed nothing */
static void same_device(void **state)
{
	struct test_daemon d = test_daemon_begin();

	assert_int_equal(mprotect(ledger_head(d.ledger), LEDGER_PAGE, PROT_READ), 0);
	ledger_set_device(d.ledger, "mlx5_0");
	assert_string_equal(ledger_head(d.ledger)->device, "mlx5_0");
	ledger_free(d.ledger);
}

/* Whether the configuration was why the last attempt failed: in the file, before anything is read from it */
static void distrusted(void **state)
{
	struct test_daemon d = test_daemon_begin();
	int fd = ledger_fd(d.ledger), other = memfd_create("none", 0);

	assert_false(ledger_is_distrusted(fd));
	assert_int_equal(ledger_set_distrusted(fd, true), 0);
	assert_true(ledger_is_distrusted(fd));
	assert_int_equal(ledger_set_distrusted(fd, false), 0);
	assert_false(ledger_is_distrusted(fd));
	assert_false(ledger_is_distrusted(other));
	close(other);
	ledger_free(d.ledger);
}

/* The next daemon goes on with what is LIVE; slots of all else are free, and used again. */
static void inherited(void **state)
{
	struct test_daemon d = test_daemon_begin();
	struct ledger_slot *window = ledger_take(d.ledger, LEDGER_WINDOW), *s, *t;
	struct ledger_view *v;
	struct ledger *l;

	test_make(window, LEDGER_MR, 20);
	window->window.ino = 77;
	ledger_live(window);
	d.session->session.windows[0] = ledger_number(d.ledger, window);
	s = ledger_take(d.ledger, LEDGER_SESSION); /* it was being made */
	test_make(s, LEDGER_UMEM, 30);
	v = test_daemon_load(&d);
	l = reopen(v, &d);
	assert_int_equal(ledger_head(l)->generation, 2);
	s = ledger_unclaimed(l, LEDGER_SESSION, NULL);
	assert_int_equal(s->session.number, 1);
	assert_null(ledger_unclaimed(l, LEDGER_SESSION, s));
	window = ledger_slot_of(l, s->session.windows[0]);
	assert_ptr_equal(window, ledger_unclaimed(l, LEDGER_WINDOW, NULL));
	ledger_claim(l, s);
	assert_null(ledger_unclaimed(l, LEDGER_SESSION, NULL));
	ledger_claim(l, window);
	assert_ptr_equal(ledger_claim_fitting(l, LEDGER_WINDOW, is_of_file, &(uint64_t){77}), window);
	assert_null(ledger_claim_fitting(l, LEDGER_WINDOW, is_of_file, &(uint64_t){78}));
	assert_null(ledger_claim_fitting(l, LEDGER_TENANT, is_of_file, &(uint64_t){77}));
	assert_false(ledger_release(l, window));
	assert_true(ledger_release(l, window));
	assert_null(ledger_claim_fitting(l, LEDGER_WINDOW, is_of_file, &(uint64_t){77}));
	t = ledger_take(l, LEDGER_SESSION);
	assert_int_equal(ledger_number(l, t), 5); /* that of the one that was being made */
	assert_int_equal(t->object[0].type, LEDGER_NONE);
	ledger_drop(l, t);
	/* a new one in an inherited slot is not inherited */
	ledger_ending(s);
	for (unsigned i = 0; i < LEDGER_OBJECTS; i++)
		ledger_gone(s, s->object[i].type, s->object[i].handle);
	ledger_set_block(s, 0, 0);
	ledger_drop(l, s);
	assert_ptr_equal(ledger_take(l, LEDGER_SESSION), s);
	assert_null(ledger_unclaimed(l, LEDGER_SESSION, NULL));
	ledger_free(l);
	ledger_view_free(v);
	ledger_free(d.ledger);
}

/* A file of another size, or one that could be cut, is none that a daemon made. */
static void not_a_file_of_ours(void **state)
{
	struct test_daemon d = test_daemon_begin();
	struct ledger_view *v = test_daemon_load(&d);
	int fd = memfd_create("test", MFD_CLOEXEC);
	struct ledger *l;

	assert_int_equal(ftruncate(fd, LEDGER_PAGE + TEST_SLOTS * sizeof(struct ledger_slot)), 0);
	assert_int_equal(ledger_open(&l, fd, v), -EBADMSG);
	v->head.slots--;
	assert_int_equal(ledger_open(&l, ledger_fd(d.ledger), v), -EBADMSG);
	close(fd);
	ledger_view_free(v);
	ledger_free(d.ledger);
}

static void listeners(void **state)
{
	struct test_daemon d = test_daemon_begin();

	assert_int_equal(ledger_add_listener(d.ledger, 9), 0);
	ledger_remove_listener(d.ledger, 7);
	d.session->session.cm_id = 7; /* the kernel gives ids again at once */
	ledger_view_free(test_daemon_load(&d));
	assert_int_equal(ledger_add_listener(d.ledger, 10), 0);
	assert_int_equal(ledger_head(d.ledger)->nlisteners, 2);
	assert_int_equal(ledger_head(d.ledger)->listeners[0], 10);
	ledger_free(d.ledger);
}

/* A daemon has room for many more sessions than it has, and that costs nothing. */
static void requests(void **state)
{
	struct test_daemon d = test_daemon_begin();

	assert_false(ledger_has_request(d.ledger, 0));
	for (uint32_t id = 0; id < LEDGER_REQUESTS; id++)
		ledger_add_request(d.ledger, id);
	assert_true(ledger_has_request(d.ledger, LEDGER_REQUESTS - 1));
	ledger_add_request(
		d.ledger, LEDGER_REQUESTS); /* no room: nobody is worse off than without the ledger */
	assert_false(ledger_has_request(d.ledger, LEDGER_REQUESTS));
	ledger_remove_request(d.ledger, 5);
	assert_false(ledger_has_request(d.ledger, 5));
	ledger_remove_request(d.ledger, 5);
	ledger_add_request(d.ledger, LEDGER_REQUESTS);
	assert_true(ledger_has_request(d.ledger, LEDGER_REQUESTS));
	ledger_view_free(test_daemon_load(&d));
	ledger_free(d.ledger);
}

static void unused_slots_take_no_memory(void **state)
{
	struct ledger_view *v;
	struct ledger *l;
	const char *why;
	struct stat st;

	assert_int_equal(ledger_new(&l, 65536, TEST_ARENA), 0);
	ledger_set_device(l, "mlx5_0");
	ledger_take(l, LEDGER_TENANT);
	assert_int_equal(ledger_load(ledger_fd(l), &v, &why), 0);
	ledger_view_free(v);
	assert_int_equal(fstat(ledger_fd(l), &st), 0);
	assert_true(st.st_blocks * 512 <= 4 * LEDGER_PAGE);
	ledger_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_and_read),
		cmocka_unit_test(session_that_ends),
		cmocka_unit_test(at_any_step),
		cmocka_unit_test(slots_are_used_again),
		cmocka_unit_test(inherited),
		cmocka_unit_test(distrusted),
		cmocka_unit_test(same_device),
		cmocka_unit_test(not_a_file_of_ours),
		cmocka_unit_test(listeners),
		cmocka_unit_test(requests),
		cmocka_unit_test(unused_slots_take_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
