/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory: copies of every alignment, words that are never torn, memory of another process, what is left over.
 */
#include "softcx/hw/mem.h"
#include "softcx/hw/test-rig.h"
#include "util/array.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct self { /* a queue connected to itself */
	struct rig rig;
	struct rig_cq cq;
	struct rig_qp q;
};

static void open_self(struct self *s, uint64_t seed)
{
	struct hw_config cfg = {.seed = seed};

	rig_open(&s->rig, &cfg);
	rig_cq_new(&s->rig, &s->cq, 6);
	rig_qp_new(&s->rig, &s->q, &s->cq, &s->cq);
	rig_connect(&s->q, &s->q);
}

static void close_self(struct self *s)
{
	rig_destroy(&s->q);
	assert_int_equal(hw_cq_destroy(s->rig.dev, s->cq.cq), 0);
	rig_close(&s->rig);
}

static void go(struct self *s)
{
	rig_ring(&s->q);
	rig_run(&s->rig);
}

static void copies(void **state)
{
	static const uint32_t lens[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 31, 32, 33, 39, 40, 64, 71, 100,
		511, 513, 4087, 4088, 4089, 4095, 4096, 4097, 20001};
	struct self s;
	uint8_t *src, *dst;

	open_self(&s, 3);
	src = rig_alloc(&s.rig, 32768);
	dst = rig_alloc(&s.rig, 32768);
	for (int i = 0; i < 32768; i++)
		src[i] = (uint8_t)(i * 7 + i / 256);
	for (size_t l = 0; l < COUNT(lens); l++)
		for (unsigned a = 0; a < 8; a++)
			for (unsigned b = 0; b < 8; b++)
				for (int read = 0; read < 2; read++) {
					uint32_t n = lens[l], first = n / 3 + 1 > n ? n : n / 3 + 1;
					uint8_t *w;

					memset(dst, 0, n + 64);
					if (read)
						w = wqe_rdma(
							&s.q, WQE_OP_READ, dst + 16 + b, n, src + a, SIG, 0);
					else
						w = wqe_rdma(
							&s.q, WQE_OP_WRITE, src + a, n, dst + 16 + b, SIG, 0);
					if (n > 1 && (a + b) % 3 == 0) { /* in two pieces */
						const uint8_t *local = read ? dst + 16 + b : src + a;

						w[7] = 4;
						put_seg(w + 32, local, first, s.rig.key);
						put_seg(w + 48, local + first, n - first, s.rig.key);
					}
					go(&s);
					rig_expect(&s.cq, CQE_OP_REQ);
					assert_memory_equal(dst + 16 + b, src + a, n);
					assert_int_equal(dst[15 + b] | dst[16 + b + n], 0);
				}
	close_self(&s);
}

static bool stop;

/* Stores words whose bytes are all equal, as fast as it can. */
static void *writer(void *arg)
{
	uint64_t *word = arg, v = 0;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		v = (v + 1) & 0xff;
		for (int i = 0; i < 4; i++)
			__atomic_store_n(&word[i], v * 0x0101010101010101, __ATOMIC_RELAXED);
	}
	return NULL;
}

static bool torn(const uint8_t *p, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (p[i] != p[0])
			return true;
	return false;
}

/* One READ scattered over pieces smaller than a word: every word of the source is read once. */
static void untorn(void **state)
{
	struct self s;
	pthread_t t;
	uint8_t *src, *dst, *w;

	open_self(&s, 3);
	src = rig_alloc(&s.rig, 64);
	dst = rig_alloc(&s.rig, 256);
	stop = false;
	assert_int_equal(pthread_create(&t, NULL, writer, src), 0);
	for (int i = 0; i < 50000; i++) {
		unsigned from = (unsigned)i % 3; /* and it need not begin with one */

		w = wqe_raw(&s.q, WQE_OP_READ, 0, 6, SIG, 0);
		put64(w + 16, (uintptr_t)src + from);
		put32(w + 24, s.rig.key);
		put_seg(w + 32, dst, 3, s.rig.key);
		put_seg(w + 48, dst + 3, 5 - from, s.rig.key);
		w = s.q.sq + ((s.q.pi - 1u) & (s.q.wqebbs - 1)) * 64;
		put_seg(w, dst + 64, 8, s.rig.key);
		put_seg(w + 16, dst + 128, 7, s.rig.key);
		go(&s);
		rig_expect(&s.cq, CQE_OP_REQ);
		assert_false(torn(dst, 8 - from));
		assert_false(torn(dst + 64, 8));
		assert_false(torn(dst + 128, 7));
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(t, NULL);
	close_self(&s);
}

static void no_release(struct hw_mem *mem)
{
}

/* Private memory of another process. */
static void other_process(void **state)
{
	struct self s;
	struct hw_mem mem = {.len = 4096, .writable = true, .refs = 1, .release = no_release};
	struct hw_mkey_attr attr = {.len = 4096, .access = 15, .mem = &mem};
	uint8_t *page, *w, *local;
	uint64_t *old;
	uint32_t key;
	int quit[2], ready[2];
	pid_t child;
	char c = 0;

	open_self(&s, 3);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(page != MAP_FAILED);
	assert_int_equal(pipe(quit) | pipe(ready), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		strcpy((char *)page, "of the child");
		*(uint64_t *)(page + 64) = 40;
		if (write(ready[1], &c, 1) != 1 || read(quit[0], &c, 1) != 1)
			_exit(2);
		_exit(strcmp((char *)page + 100, "from the device") == 0 && *(uint64_t *)(page + 64) == 42
				? 0
				: 1);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	mem.va = attr.iova = (uintptr_t)page;
	mem.pid = child;
	attr.pdn = s.rig.pdn;
	assert_int_equal(hw_mkey_create(s.rig.dev, &attr, &key), 0);
	local = rig_alloc(&s.rig, 64);
	old = rig_alloc(&s.rig, 64);
	w = wqe_rdma(&s.q, WQE_OP_READ, local, 13, page, SIG, 0);
	put32(w + 24, key);
	go(&s);
	rig_expect(&s.cq, CQE_OP_REQ);
	assert_string_equal((char *)local, "of the child");
	w = wqe_inline_write(&s.q, "from the device", 16, page + 100, SIG);
	put32(w + 24, key);
	w = wqe_atomic(&s.q, WQE_OP_FETCH_ADD, old, page + 64, 2, 0, SIG);
	put32(w + 24, key);
	go(&s);
	rig_expect(&s.cq, CQE_OP_REQ);
	rig_expect(&s.cq, CQE_OP_REQ);
	assert_int_equal(*old, 40);
	assert_int_equal(write(quit[1], &c, 1), 1);
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	/* its memory is gone */
	w = wqe_rdma(&s.q, WQE_OP_READ, local, 13, page, SIG, 0);
	put32(w + 24, key);
	go(&s);
	rig_expect_error(&s.cq, CQE_SYND_REMOTE_OP);
	assert_int_equal(hw_mkey_destroy(s.rig.dev, key), 0);
	munmap(page, 4096);
	close_self(&s);
}

static void key_attributes(void **state)
{
	struct self s;
	struct hw_mkey_attr attr = {.len = 64, .access = 1};
	uint32_t key, first;

	open_self(&s, 3);
	attr.pdn = s.rig.pdn;
	attr.mem = &s.rig.mem;
	attr.mem_off = s.rig.mem.len - 63;
	assert_int_equal(hw_mkey_create(s.rig.dev, &attr, &key), -22 /* EINVAL: beyond the memory */);
	attr.mem_off = 0;
	attr.access = HW_REMOTE_WRITE;
	assert_int_equal(hw_mkey_create(s.rig.dev, &attr, &key), -22);
	attr.access = HW_LOCAL_WRITE;
	s.rig.mem.writable = false;
	assert_int_equal(hw_mkey_create(s.rig.dev, &attr, &key), -13 /* EACCES */);
	s.rig.mem.writable = true;
	assert_int_equal(hw_mkey_create(s.rig.dev, &attr, &first), 0);
	assert_int_equal(hw_mkey_destroy(s.rig.dev, first), 0);
	for (int i = 0; i < 5000; i++) { /* not handed out again soon */
		assert_int_equal(hw_mkey_create(s.rig.dev, &attr, &key), 0);
		assert_true(key != first && key >> 8 != first >> 8);
		assert_int_equal(hw_mkey_destroy(s.rig.dev, key), 0);
	}
	close_self(&s);
}

/* The same key with other rights, for another PD. */
static void changed_key(void **state)
{
	struct hw_mkey_attr attr = {.len = 64};
	struct hw_counts before, after;
	uint32_t key, pd, old;
	struct hw_span span;
	struct self s;

	open_self(&s, 3);
	hw_counts(s.rig.dev, &before);
	attr.pdn = old = s.rig.pdn;
	attr.mem = &s.rig.mem;
	assert_int_equal(hw_mkey_create(s.rig.dev, &attr, &key), 0);
	assert_int_equal(hw_pd_alloc(s.rig.dev, &pd), 0);
	assert_false(hw_key_span(s.rig.dev, key, old, HW_LOCAL_WRITE, 0, 64, &span));
	attr.pdn = pd;
	attr.access = HW_REMOTE_WRITE;
	assert_int_equal(hw_mkey_change(s.rig.dev, key, &attr), -EINVAL); /* without the local right */
	assert_true(hw_key_span(s.rig.dev, key, old, 0, 0, 64, &span));
	attr.access |= HW_LOCAL_WRITE;
	assert_int_equal(hw_mkey_change(s.rig.dev, key + 1, &attr), -EINVAL);
	assert_int_equal(hw_mkey_change(s.rig.dev, key, &attr), 0);
	assert_true(hw_key_span(s.rig.dev, key, pd, HW_LOCAL_WRITE, 0, 64, &span));
	assert_false(hw_key_span(s.rig.dev, key, old, 0, 0, 64, &span));
	assert_int_equal(hw_pd_free(s.rig.dev, pd), -EBUSY);
	assert_int_equal(hw_mkey_destroy(s.rig.dev, key), 0);
	assert_int_equal(hw_pd_free(s.rig.dev, pd), 0);
	hw_counts(s.rig.dev, &after);
	assert_memory_equal(&before, &after, sizeof(before));
	close_self(&s);
}

/* A device takes everything with it that its users forgot. */
static void left_over(void **state)
{
	struct self s;

	open_self(&s, 3);
	wqe_wait(&s.q, hw_cqn(s.cq.cq), 5, 0);
	go(&s);
	hw_dev_free(s.rig.dev);
	assert_int_equal(s.rig.mem.refs, 1);
	munmap(s.rig.page, 4096);
	munmap(s.rig.mem.host, RIG_MEM_BYTES);
}

static void on_trace(void *arg, const struct hw_trace *t)
{
	unsigned *n = arg;

	if (t->kind != HW_TRACE_WQE)
		return;
	assert_int_equal(t->idx, *n);
	assert_int_equal(t->opcode, *n ? 0x3e : WQE_OP_NOP);
	assert_int_equal(t->syndrome, *n ? CQE_SYND_LOCAL_QP_OP : 0);
	assert_int_equal(t->wqe[3], t->opcode);
	assert_int_equal(t->type, HW_RC);
	++*n;
}

static void trace(void **state)
{
	struct self s;
	unsigned n = 0;

	open_self(&s, 3);
	hw_set_trace(s.rig.dev, on_trace, &n);
	wqe_nop(&s.q, 1, 0);
	wqe_raw(&s.q, 0x3e, 0, 1, 0, 0);
	go(&s);
	assert_int_equal(n, 2);
	close_self(&s);
}

struct story {
	char words[512];
	uint8_t synd;
};

static void on_event(void *arg, const struct hw_trace *t)
{
	static const char kind[] = "WRCBG";
	struct story *s = arg;
	size_t len = strlen(s->words);

	snprintf(s->words + len, sizeof(s->words) - len, "%c%u ", kind[t->kind],
		t->kind == HW_TRACE_WQE ? t->idx : t->number);
	s->synd |= t->syndrome;
	if (t->kind == HW_TRACE_CQE)
		assert_int_equal(t->wqe[63] >> 4 == CQE_OP_REQ ? t->opcode : WQE_OP_SEND, WQE_OP_SEND);
}

/* WQEs, the RECV that one takes, CQEs, a WAIT that blocks and goes on: in the order in which they happen. */
static void trace_events(void **state)
{
	struct hw_config cfg = {.lenient = true};
	struct rig_one o;
	struct story s = {{0}, 0};
	struct rig_qp w;
	struct rig_cq cq;

	rig_one_open(&o, cfg, (struct hw_cq_attr){0}, (struct rig_opt){0});
	rig_cq_new(&o.rig, &cq, 4);
	rig_qp_new(&o.rig, &w, &cq, &cq);
	rig_connect(&w, &w);
	hw_set_trace(o.rig.dev, on_event, &s);
	wqe_wait(&w, hw_cqn(o.scq.cq), 0, 0);
	rig_ring(&w);
	rig_run(&o.rig);
	assert_string_equal(s.words, "B0 ");
	rig_recv(&o.q, 1, rig_alloc(&o.rig, 8), 8);
	wqe_nop(&o.q, 1, 0);
	wqe_send(&o.q, WQE_OP_SEND, rig_alloc(&o.rig, 8), 5, SIG, 0);
	rig_one_go(&o);
	/* a NOP; 5 bytes into a RECV and its CQE; the SEND and its CQE, which lets the WAIT go */
	assert_string_equal(s.words, "B0 W0 R5 C0 W1 C0 G0 W0 ");
	assert_int_equal(s.synd, 0);
	rig_destroy(&w);
	assert_int_equal(hw_cq_destroy(o.rig.dev, cq.cq), 0);
	rig_one_close(&o);
}

/* A RECV may be fetched as soon as it is posted: patching its scatter list later is too late on some
 * schedules. */
static void stale_recv(void **state)
{
	unsigned stale = 0;

	for (uint64_t seed = 0; seed < 100; seed++) {
		struct self s;
		uint8_t *buf;

		open_self(&s, seed);
		buf = rig_alloc(&s.rig, 256);
		for (int i = 0; i < 2; i++)
			rig_recv(&s.q, 1, buf + 64, 8);
		buf[0] = 1;
		wqe_send(&s.q, WQE_OP_SEND, buf, 1, 0, 0);
		go(&s);
		put_seg(s.q.rq + 64, buf + 128, 8, s.rig.key);
		wqe_send(&s.q, WQE_OP_SEND, buf, 1, 0, 0);
		go(&s);
		stale += !buf[128];
		close_self(&s);
	}
	assert_in_range(stale, 1, 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies),
		cmocka_unit_test(untorn),
		cmocka_unit_test(other_process),
		cmocka_unit_test(key_attributes),
		cmocka_unit_test(changed_key),
		cmocka_unit_test(left_over),
		cmocka_unit_test(trace),
		cmocka_unit_test(trace_events),
		cmocka_unit_test(stale_recv),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
