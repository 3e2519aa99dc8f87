/* SPDX-License-Identifier: BSD-2-Clause */
/* What a daemon writes can be read, at any step; what nobody can have written is refused, with a reason. */
#include "reddnd/ledger/check.h"
#include "reddnd/ledger/ledger.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { SLOTS = 8, ARENA = 1 << 20, BLOCK = 65536 };

/* ---- a daemon with a tenant and a session ---- */

struct daemon {
	struct ledger *ledger;
	struct ledger_slot *device, *tenant, *session;
};

static void make(struct ledger_slot *slot, enum ledger_type type, uint32_t handle)
{
	const struct ledger_object o = {
		.type = type, .handle = handle, .number = 0x100 + handle, .cookie = handle};

	ledger_made(slot, &o);
}

static void make_cq(struct ledger_slot *slot, uint32_t handle, uint64_t offset)
{
	const struct ledger_object o = {
		.type = LEDGER_CQ, .handle = handle, .offset = offset, .entries = 16, .db_off = 64};

	ledger_made(slot, &o);
}

static void make_qp(struct ledger_slot *slot, uint32_t handle, uint64_t offset)
{
	const struct ledger_object o = {.type = LEDGER_QP,
		.handle = handle,
		.offset = offset,
		.entries = 64,
		.rq_entries = 16,
		.rq_stride = 64,
		.db_off = 128};

	ledger_made(slot, &o);
}

static struct daemon begin(void)
{
	struct ledger_session *s;
	struct daemon d;

	assert_int_equal(ledger_new(&d.ledger, SLOTS, ARENA), 0);
	ledger_set_device(d.ledger, "mlx5_0");
	assert_int_equal(ledger_add_listener(d.ledger, 7), 0);
	d.device = ledger_take(d.ledger, LEDGER_DEVICE);
	make(d.device, LEDGER_PD, 0);
	make(d.device, LEDGER_UAR, 1);
	ledger_live(d.device);
	d.tenant = ledger_take(d.ledger, LEDGER_TENANT);
	ledger_set_name(d.tenant->tenant.name, "default");
	make(d.tenant, LEDGER_PD, 2);
	ledger_live(d.tenant);
	d.session = ledger_take(d.ledger, LEDGER_SESSION);
	ledger_set_block(d.session, BLOCK, BLOCK);
	make(d.session, LEDGER_UMEM, 3);
	make(d.session, LEDGER_MR, 4);
	make_cq(d.session, 5, 4096);
	make_qp(d.session, 6, 8192);
	s = &d.session->session;
	ledger_head(d.ledger)->last_session = 1;
	s->number = s->queues = 1;
	s->cm_id = 8;
	ledger_set_name(s->tenant, "default");
	ledger_set_name(s->offload, "users");
	s->depth = 16;
	s->slots = 32;
	s->slot_addr = 0x7f0000000000;
	s->slot_size = 4096;
	ledger_live(d.session);
	return d;
}

static struct ledger_view *load(const struct daemon *d)
{
	struct ledger_view *v = NULL;
	const char *why = "";

	if (ledger_load(ledger_fd(d->ledger), &v, &why) != 0)
		fail_msg("%s", why);
	return v;
}

static void expect_refused(const struct daemon *d, const char *words)
{
	struct ledger_view *v;
	const char *why = NULL;

	assert_int_equal(ledger_load(ledger_fd(d->ledger), &v, &why), -EBADMSG);
	assert_string_equal(why, words);
}

/* ---- tests ---- */

static void written_and_read(void **state)
{
	struct daemon d = begin();
	struct ledger_view *v = load(&d);
	const struct ledger_slot *slot;
	const struct ledger_object *o;

	(void)state;
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

static void session_of_the_cpu(void **state)
{
	struct daemon d = begin();
	struct ledger_view *v;

	(void)state;
	d.session->kind = LEDGER_CPU_SESSION;
	d.session->session.cpu = (struct ledger_cpu){.begun = 9,
		.finished = 8 << 16,
		.taken[1] = {.received = 9},
		.last = 1,
		.spoilt = 1,
		.sends = 1};
	v = load(&d);
	assert_int_equal(v->slots[2].session.cpu.begun, 9);
	ledger_view_free(v);
	ledger_free(d.ledger);
}

/* Whatever the daemon is about when it dies: what it had is there, and what it was making or ending is not
 * kept. */
static void at_any_step(void **state)
{
	struct daemon d = begin();
	struct ledger_slot *second = ledger_take(d.ledger, LEDGER_SESSION), *window;
	struct ledger_view *v;

	(void)state;
	ledger_view_free(load(&d));
	ledger_set_block(second, 4 * BLOCK, BLOCK);
	ledger_view_free(load(&d));
	make(second, LEDGER_UMEM, 10);
	make_cq(second, 11, 0);
	v = load(&d);
	assert_false(ledger_keeps(v, 10));
	assert_true(ledger_keeps(v, 3));
	ledger_view_free(v);

	ledger_ending(d.session);
	v = load(&d);
	assert_false(ledger_keeps(v, 6));
	ledger_view_free(v);
	ledger_gone(d.session, LEDGER_QP, 6);
	/* another thread may have an object with that handle at once */
	window = ledger_take(d.ledger, LEDGER_WINDOW);
	make(window, LEDGER_MR, 5);
	ledger_live(window);
	v = load(&d);
	assert_true(ledger_keeps(v, 5));
	ledger_view_free(v);
	ledger_gone(d.session, LEDGER_CQ, 5);
	ledger_gone(d.session, LEDGER_MR, 4);
	ledger_gone(d.session, LEDGER_UMEM, 3);
	ledger_set_block(d.session, 0, 0);
	ledger_view_free(load(&d));
	ledger_drop(d.ledger, d.session);
	v = load(&d);
	assert_int_equal(v->nkept, 4);
	ledger_view_free(v);
	ledger_free(d.ledger);
}

static void slots_are_used_again(void **state)
{
	struct ledger_slot *slot[SLOTS];
	struct ledger *l;

	(void)state;
	assert_int_equal(ledger_new(&l, SLOTS, ARENA), 0);
	for (unsigned i = 0; i < SLOTS; i++) {
		slot[i] = ledger_take(l, LEDGER_WINDOW);
		assert_non_null(slot[i]);
		make(slot[i], LEDGER_MR, i);
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

static struct ledger *reopen(const struct ledger_view *v, const struct daemon *d)
{
	struct ledger *l;

	assert_int_equal(ledger_open(&l, dup(ledger_fd(d->ledger)), v), 0);
	return l;
}

static bool is_of_file(const struct ledger_slot *slot, const void *arg)
{
	return slot->window.ino == *(const uint64_t *)arg;
}

/* A daemon that takes over, and dies of its first store, has changed nothing */
static void same_device(void **state)
{
	struct daemon d = begin();

	(void)state;
	assert_int_equal(mprotect(ledger_head(d.ledger), LEDGER_PAGE, PROT_READ), 0);
	ledger_set_device(d.ledger, "mlx5_0");
	assert_string_equal(ledger_head(d.ledger)->device, "mlx5_0");
	ledger_free(d.ledger);
}

/* Whether the configuration was why the last attempt failed: in the file, before anything is read from it */
static void distrusted(void **state)
{
	struct daemon d = begin();
	int fd = ledger_fd(d.ledger), other = memfd_create("none", 0);

	(void)state;
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
	struct daemon d = begin();
	struct ledger_slot *window = ledger_take(d.ledger, LEDGER_WINDOW), *s, *t;
	struct ledger_view *v;
	struct ledger *l;

	(void)state;
	make(window, LEDGER_MR, 20);
	window->window.ino = 77;
	ledger_live(window);
	d.session->session.windows[0] = ledger_number(d.ledger, window);
	s = ledger_take(d.ledger, LEDGER_SESSION); /* it was being made */
	make(s, LEDGER_UMEM, 30);
	v = load(&d);
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
	assert_null(ledger_claim_fitting(l, LEDGER_POOL_CQ, is_of_file, &(uint64_t){77}));
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
	struct daemon d = begin();
	struct ledger_view *v = load(&d);
	int fd = memfd_create("test", MFD_CLOEXEC);
	struct ledger *l;

	(void)state;
	assert_int_equal(ftruncate(fd, LEDGER_PAGE + SLOTS * sizeof(struct ledger_slot)), 0);
	assert_int_equal(ledger_open(&l, fd, v), -EBADMSG);
	v->head.slots--;
	assert_int_equal(ledger_open(&l, ledger_fd(d.ledger), v), -EBADMSG);
	close(fd);
	ledger_view_free(v);
	ledger_free(d.ledger);
}

static void listeners(void **state)
{
	struct daemon d = begin();

	(void)state;
	assert_int_equal(ledger_add_listener(d.ledger, 9), 0);
	ledger_remove_listener(d.ledger, 7);
	d.session->session.cm_id = 7; /* the kernel gives ids again at once */
	ledger_view_free(load(&d));
	assert_int_equal(ledger_add_listener(d.ledger, 10), 0);
	assert_int_equal(ledger_head(d.ledger)->nlisteners, 2);
	assert_int_equal(ledger_head(d.ledger)->listeners[0], 10);
	ledger_free(d.ledger);
}

/* A daemon has room for many more sessions than it has, and that costs nothing. */
static void requests(void **state)
{
	struct daemon d = begin();

	(void)state;
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
	ledger_view_free(load(&d));
	ledger_free(d.ledger);
}

static void unused_slots_take_no_memory(void **state)
{
	struct ledger_view *v;
	struct ledger *l;
	const char *why;
	struct stat st;

	(void)state;
	assert_int_equal(ledger_new(&l, 65536, ARENA), 0);
	ledger_set_device(l, "mlx5_0");
	ledger_take(l, LEDGER_TENANT);
	assert_int_equal(ledger_load(ledger_fd(l), &v, &why), 0);
	ledger_view_free(v);
	assert_int_equal(fstat(ledger_fd(l), &st), 0);
	assert_true(st.st_blocks * 512 <= 4 * LEDGER_PAGE);
	ledger_free(l);
}

/* ---- what nobody writes ---- */

static void wrong_magic(struct daemon *d)
{
	ledger_head(d->ledger)->magic++;
}

static void wrong_version(struct daemon *d)
{
	ledger_head(d->ledger)->version++;
}

static void used_beyond(struct daemon *d)
{
	ledger_head(d->ledger)->used = SLOTS + 1;
}

static void listeners_beyond(struct daemon *d)
{
	ledger_head(d->ledger)->nlisteners = LEDGER_LISTENERS + 1;
}

static void requests_beyond(struct daemon *d)
{
	ledger_head(d->ledger)->nrequests = LEDGER_REQUESTS + 1;
}

static void no_device(struct daemon *d)
{
	memset(ledger_head(d->ledger)->device, 'x', sizeof(ledger_head(d->ledger)->device));
}

static void state_unknown(struct daemon *d)
{
	d->session->state = 77;
}

static void kind_unknown(struct daemon *d)
{
	d->session->kind = 0;
}

static void block_beyond(struct daemon *d)
{
	d->session->block.offset = ARENA;
}

static void block_wraps(struct daemon *d)
{
	d->session->block.size = UINT64_MAX - LEDGER_PAGE + 1;
}

static void blocks_overlap(struct daemon *d)
{
	struct ledger_slot *other = ledger_take(d->ledger, LEDGER_MASTER);

	ledger_set_block(other, BLOCK + BLOCK - LEDGER_PAGE, BLOCK);
}

static void queue_beyond(struct daemon *d)
{
	d->session->object[2].offset = BLOCK - 64;
}

static void queue_wraps(struct daemon *d)
{
	d->session->object[3].offset = UINT64_MAX - 63;
}

static void queue_odd(struct daemon *d)
{
	d->session->object[2].entries = 17;
}

static void stride_huge(struct daemon *d)
{
	d->session->object[3].rq_stride = 1u << 31;
}

static void record_beyond(struct daemon *d)
{
	d->session->object[2].db_off = BLOCK;
}

static void foreign_type(struct daemon *d)
{
	make(d->session, LEDGER_PD, 99);
}

static void type_unknown(struct daemon *d)
{
	make(d->session, 99, 99);
}

static void same_handle(struct daemon *d)
{
	d->session->object[0].handle = 2;
}

static void same_id(struct daemon *d)
{
	d->session->session.cm_id = 7;
}

static void same_number(struct daemon *d)
{
	struct ledger_slot *other = ledger_take(d->ledger, LEDGER_SESSION);

	*other = *d->session;
	other->block.offset = 4 * BLOCK;
	other->session.cm_id = 100;
	for (unsigned i = 0; i < 4; i++)
		other->object[i].handle += 100;
}

static void same_queues(struct daemon *d)
{
	same_number(d);
	d->session->session.number = 2;
	ledger_head(d->ledger)->last_session = 2;
}

static void queues_ahead(struct daemon *d)
{
	d->session->session.queues = 2;
}

static void cqes_ahead(struct daemon *d)
{
	for (struct ledger_object *o = d->session->object; o < d->session->object + LEDGER_OBJECTS; o++)
		if (o->type == LEDGER_CQ)
			o->first = 1 << 24;
}

static void number_ahead(struct daemon *d)
{
	d->session->session.number = 2;
}

static void no_name(struct daemon *d)
{
	d->session->session.offload[0] = '\n';
}

static void slots_wrap(struct daemon *d)
{
	d->session->session.slot_addr = UINT64_MAX - 63;
}

static void progress_beyond(struct daemon *d)
{
	d->session->session.recycled = 1;
	d->session->session.recycler.progress = BLOCK;
}

static void progress_odd(struct daemon *d)
{
	d->session->session.recycled = 1;
	d->session->session.recycler.progress = 4;
}

/* What is in the room of a recycler is how far the CPU is */
static void recycled_by_cpu(struct daemon *d)
{
	d->session->kind = LEDGER_CPU_SESSION;
	d->session->session.recycled = 1;
	d->session->session.cpu.begun = 8;
}

static void cpu_half_spoilt(struct daemon *d)
{
	d->session->kind = LEDGER_CPU_SESSION;
	d->session->session.cpu.spoilt = 2;
}

static void cpu_half_sends(struct daemon *d)
{
	d->session->kind = LEDGER_CPU_SESSION;
	d->session->session.cpu.sends = 2;
}

static void cpu_third_last(struct daemon *d)
{
	d->session->kind = LEDGER_CPU_SESSION;
	d->session->session.cpu.last = 2;
}

static void no_window(struct daemon *d)
{
	d->session->session.windows[7] = 2;
}

static void window_beyond(struct daemon *d)
{
	d->session->session.windows[0] = UINT32_MAX;
}

static void no_pool(struct daemon *d)
{
	d->session->session.pool_cq = 1;
}

static void no_queues(struct daemon *d)
{
	ledger_gone(d->session, LEDGER_QP, 6);
}

/* Its sessions would be sought in another device */
static void device_gone(struct daemon *d)
{
	ledger_ending(d->device);
}

static void refusals(void **state)
{
	static const struct {
		void (*spoil)(struct daemon *d);
		const char *why;
	} cases[] = {
		{wrong_magic, "it is not one"},
		{wrong_version, "it is of another version"},
		{used_beyond, "its slots are of another size"},
		{listeners_beyond, "it has too many listeners"},
		{requests_beyond, "it has too many requests"},
		{no_device, "it names no device"},
		{state_unknown, "a slot is in no known state"},
		{kind_unknown, "a slot is of no known kind"},
		{block_beyond, "a block is not in the arena"},
		{block_wraps, "a block is not in the arena"},
		{blocks_overlap, "two slots have the same memory"},
		{queue_beyond, "a CQ is not in its block"},
		{queue_wraps, "a work queue is not in its block"},
		{queue_odd, "a queue has an impossible size"},
		{stride_huge, "a receive queue has an impossible size"},
		{record_beyond, "a doorbell record is not in its block"},
		{foreign_type, "an object is of a type that its slot cannot have"},
		{type_unknown, "an object is of a type that its slot cannot have"},
		{same_handle, "two objects have one handle"},
		{same_id, "two connections have one id"},
		{same_number, "two sessions have one number"},
		{same_queues, "two sessions have one number for their queues"},
		{number_ahead, "a session has an impossible number"},
		{queues_ahead, "a session has an impossible number"},
		{cqes_ahead, "a queue has an impossible size"},
		{no_name, "a session has no sound names"},
		{slots_wrap, "a session has impossible reply slots"},
		{progress_beyond, "the progress of a session is not in its block"},
		{progress_odd, "the progress of a session is not in its block"},
		{recycled_by_cpu, "a session of the CPU is not sound"},
		{cpu_half_spoilt, "a session of the CPU is not sound"},
		{cpu_half_sends, "a session of the CPU is not sound"},
		{cpu_third_last, "a session of the CPU is not sound"},
		{no_queues, "a slot lacks an object"},
		{device_gone, "there are objects of no device"},
		{no_window, "a session has a window that is none"},
		{window_beyond, "a session has a window that is none"},
		{no_pool, "a session has a CQ that is none"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct daemon d = begin();

		cases[i].spoil(&d);
		expect_refused(&d, cases[i].why);
		ledger_free(d.ledger);
	}
}

static void cut_off(void **state)
{
	struct daemon d = begin();
	size_t size = LEDGER_PAGE + 3 * sizeof(struct ledger_slot);
	uint8_t *bytes = malloc(size);
	struct ledger_view *v;
	const char *why;

	(void)state;
	assert_int_equal(pread(ledger_fd(d.ledger), bytes, size, 0), size);
	assert_int_equal(ledger_parse(bytes, size, &v, &why), 0);
	ledger_view_free(v);
	assert_int_equal(ledger_parse(bytes, size - 1, &v, &why), -EBADMSG);
	assert_string_equal(why, "it is too short");
	assert_int_equal(ledger_parse(bytes, LEDGER_PAGE - 1, &v, &why), -EBADMSG);
	assert_int_equal(ledger_parse(bytes, 0, &v, &why), -EBADMSG);
	free(bytes);
	ledger_free(d.ledger);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_and_read),
		cmocka_unit_test(session_of_the_cpu),
		cmocka_unit_test(at_any_step),
		cmocka_unit_test(slots_are_used_again),
		cmocka_unit_test(inherited),
		cmocka_unit_test(distrusted),
		cmocka_unit_test(same_device),
		cmocka_unit_test(not_a_file_of_ours),
		cmocka_unit_test(listeners),
		cmocka_unit_test(requests),
		cmocka_unit_test(unused_slots_take_no_memory),
		cmocka_unit_test(refusals),
		cmocka_unit_test(cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
