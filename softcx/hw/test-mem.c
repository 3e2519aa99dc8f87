/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory: copies of every alignment, words that are never torn, memory of another process, what is left over.
 */
#include "softcx/hw/mem.h"
#include "softcx/hw/test-rig.h"
#include "util/array.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
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

/* ---- Keys over keys: lists, strided pieces, how they are filled, and what they refuse */

enum { SPACE = 4096, ANY = HW_LOCAL_WRITE | HW_REMOTE_READ | HW_REMOTE_WRITE | HW_REMOTE_ATOMIC };
enum { NEW_LEN = 1 << 0, NEW_KEY = 1 << 13, NEW_ACCESS = 0xf << 18, NEW_FREE = 1 << 29 }; /* mask of a UMR */

struct loop {
	struct rig_one o;
	uint8_t *src, *dst;
};

static void open_loop(struct loop *l, uint64_t seed)
{
	rig_one_open(&l->o, (struct hw_config){.seed = seed}, (struct hw_cq_attr){.log_size = 6},
		(struct rig_opt){0});
	l->src = rig_alloc(&l->o.rig, SPACE);
	l->dst = rig_alloc(&l->o.rig, SPACE);
	for (unsigned i = 0; i < SPACE; i++)
		l->src[i] = (uint8_t)(i * 7 + i / 256 + 1);
}

static uint32_t key_over(struct loop *l, const struct hw_piece *pieces, unsigned n, uint64_t iova)
{
	struct hw_indirect_attr attr = {
		.pdn = l->o.rig.pdn, .iova = iova, .access = ANY, .max = n, .n = n, .pieces = pieces};
	uint32_t key;

	for (unsigned i = 0; i < n; i++)
		attr.len += pieces[i].len;
	assert_int_equal(hw_indirect_create(l->o.rig.dev, &attr, &key), 0);
	return key;
}

/* One that UMR fills. */
static uint32_t empty_key(struct loop *l, unsigned max)
{
	const struct hw_indirect_attr attr = {.pdn = l->o.rig.pdn, .umr = true, .free = true, .max = max};
	uint32_t key;

	assert_int_equal(hw_indirect_create(l->o.rig.dev, &attr, &key), 0);
	return key;
}

static void drop(struct loop *l, uint32_t key)
{
	assert_int_equal(hw_mkey_destroy(l->o.rig.dev, key), 0);
}

/* A WRITE or READ of @len bytes between @local and @va of @rkey. */
static void access_by(struct loop *l, uint8_t op, void *local, uint32_t len, uint32_t rkey, uint64_t va)
{
	uint8_t *w = wqe_rdma(&l->o.q, op, local, len, NULL, SIG, 0);

	put64(w + 16, va);
	put32(w + 24, rkey);
	rig_one_go(&l->o);
}

static void connect_again(struct loop *l)
{
	rig_qp_to(&l->o.q, HW_RST);
	l->o.q.pi = l->o.q.rpi = 0;
	l->o.q.db[0] = l->o.q.db[1] = 0;
	rig_connect(&l->o.q, &l->o.q);
}

/* Every range of a key over four pieces, one of which is a key over two, as the target and the source. */
static void all_ranges(void **state)
{
	enum { LEN = 64, IOVA = 0x10001 };
	static const uint8_t none[SPACE];
	struct loop l;

	open_loop(&l, 1);
	const uint32_t k = l.o.rig.key;
	const uint64_t d = (uintptr_t)l.dst;
	const struct hw_piece inner[] = {{d + 1000, k, 5}, {d + 900, k, 20}};
	uint32_t nested = key_over(&l, inner, 2, 0);
	const struct hw_piece outer[] = {{d + 3, k, 16}, {2, nested, 22}, {d + 513, k, 1}, {d + 256, k, 25}};
	uint32_t key = key_over(&l, outer, 4, IOVA);
	uint8_t *place[LEN], *p = l.dst;
	unsigned n = 0;

	for (unsigned i = 0; i < 16; i++)
		place[n++] = p + 3 + i;
	for (unsigned i = 2; i < 5; i++)
		place[n++] = p + 1000 + i;
	for (unsigned i = 0; i < 19; i++)
		place[n++] = p + 900 + i;
	place[n++] = p + 513;
	for (unsigned i = 0; i < 25; i++)
		place[n++] = p + 256 + i;
	assert_int_equal(n, LEN);
	for (unsigned from = 0; from < LEN; from++) {
		for (unsigned len = 1; len <= LEN - from; len++) {
			uint8_t back[LEN] = {0};

			memset(l.dst, 0, SPACE);
			access_by(&l, WQE_OP_WRITE, l.src, len, key, IOVA + from);
			rig_expect(&l.o.scq, CQE_OP_REQ);
			for (unsigned i = 0; i < len; i++) {
				assert_int_equal(*place[from + i], l.src[i]);
				back[i] = l.src[i];
			}
			memset(l.src + 2048, 0, LEN);
			access_by(&l, WQE_OP_READ, l.src + 2048, len, key, IOVA + from);
			rig_expect(&l.o.scq, CQE_OP_REQ);
			assert_memory_equal(l.src + 2048, back, LEN);
			for (unsigned i = 0; i < len; i++)
				*place[from + i] = 0;
			assert_memory_equal(l.dst, none, SPACE); /* and nowhere else */
		}
	}
	access_by(&l, WQE_OP_WRITE, l.src, 2, key, IOVA + LEN - 1);
	rig_expect_error(&l.o.scq, CQE_SYND_REMOTE_ACCESS);
	drop(&l, key);
	drop(&l, nested);
	rig_one_close(&l.o);
}

/* As an lkey: what a SEND gathers and its RECV scatters; an atomic on one piece is one of the CPU's, too. */
static void local_and_atomic(void **state)
{
	struct loop l;

	open_loop(&l, 2);
	const uint32_t k = l.o.rig.key;
	const uint64_t s = (uintptr_t)l.src, d = (uintptr_t)l.dst;
	uint32_t from = key_over(&l, (struct hw_piece[]){{s + 100, k, 3}, {s + 50, k, 9}}, 2, 0);
	uint32_t to = key_over(&l, (struct hw_piece[]){{d + 8, k, 8}, {d, k, 8}}, 2, 0);
	uint64_t *word = (uint64_t *)(void *)(l.dst + 8);
	uint8_t *w, seg[16];

	put32(seg, 12);
	put32(seg + 4, to);
	put64(seg + 8, 0);
	rig_recv(&l.o.q, 1, l.dst, 12);
	memcpy(l.o.q.rq, seg, sizeof(seg));
	w = wqe_send(&l.o.q, WQE_OP_SEND, NULL, 12, SIG, 0);
	put32(w + 20, from);
	put64(w + 24, 0);
	rig_one_go(&l.o);
	rig_expect(&l.o.scq, CQE_OP_REQ);
	rig_expect(&l.o.rcq, CQE_OP_RESP_SEND);
	assert_memory_equal(l.dst + 8, l.src + 100, 3);
	assert_memory_equal(l.dst + 11, l.src + 50, 5);
	assert_memory_equal(l.dst, l.src + 55, 4);
	*word = 41;
	w = wqe_atomic(&l.o.q, WQE_OP_FETCH_ADD, l.src, NULL, 1, 0, SIG);
	put64(w + 16, 0);
	put32(w + 24, to);
	rig_one_go(&l.o);
	rig_expect(&l.o.scq, CQE_OP_REQ);
	assert_int_equal(*word, 42);
	drop(&l, from);
	drop(&l, to);
	rig_one_close(&l.o);
}

/* ---- UMR -------------------------------------------------------------------------------- */

/* A UMR WQE for @key without its pieces: @octowords of them follow at the address returned. */
static uint8_t *put_umr(
	struct loop *l, uint32_t key, unsigned octowords, uint64_t mask, uint64_t len, unsigned access)
{
	uint8_t *w = wqe_raw(&l->o.q, WQE_OP_UMR, 0, (uint8_t)(8 + octowords), SIG, htobe32(key));

	w[16] = 0x80;
	put32(w + 20, octowords << 16);
	put64(w + 24, mask);
	w[64 + 2] = (uint8_t)access;
	put32(w + 68, 0xffffff00 | (key & 0xff));
	put64(w + 64 + 24, len);
	return w;
}

static void put_piece(uint8_t *at, uint32_t len, uint32_t key, uint64_t va)
{
	put32(at, len);
	put32(at + 4, key);
	put64(at + 8, va);
}

enum { USUAL = NEW_LEN | NEW_KEY | NEW_ACCESS | NEW_FREE, WRITES = 1 << 3 | 1 << 5 };

static void by_list(void **state)
{
	struct loop l;
	uint8_t *w;

	open_loop(&l, 3);
	uint32_t key = empty_key(&l, 4);

	access_by(&l, WQE_OP_WRITE, l.src, 8, key, 0);
	rig_expect_error(&l.o.scq, CQE_SYND_REMOTE_ACCESS); /* it has no pieces yet */
	connect_again(&l);
	w = put_umr(&l, key, 4, USUAL, 16, WRITES);
	put_piece(w + 128, 8, l.o.rig.key, (uintptr_t)l.dst + 64);
	put_piece(w + 144, 8, l.o.rig.key, (uintptr_t)l.dst);
	rig_one_go(&l.o);
	rig_expect(&l.o.scq, CQE_OP_REQ);
	access_by(&l, WQE_OP_WRITE, l.src, 16, key, 0);
	rig_expect(&l.o.scq, CQE_OP_REQ);
	assert_memory_equal(l.dst + 64, l.src, 8);
	assert_memory_equal(l.dst, l.src + 8, 8);
	w = put_umr(&l, key, 0, NEW_FREE | NEW_KEY, 0, 0);
	w[64] = 1 << 6; /* free again, as IBV_WR_LOCAL_INV makes it */
	w[16] |= 1 << 4 | 1 << 3;
	rig_one_go(&l.o);
	rig_expect(&l.o.scq, CQE_OP_REQ);
	access_by(&l, WQE_OP_WRITE, l.src, 8, key, 0);
	rig_expect_error(&l.o.scq, CQE_SYND_REMOTE_ACCESS);
	drop(&l, key);
	rig_one_close(&l.o);
}

static void by_stride(void **state)
{
	enum { A = 5, B = 3, LAPS = 7, A_STEP = 11, B_STEP = 64 };
	struct loop l;
	uint8_t *w;

	open_loop(&l, 4);
	uint32_t key = empty_key(&l, 4);

	w = put_umr(&l, key, 4, USUAL, (A + B) * LAPS, WRITES) + 128;
	put32(w, A + B);
	put32(w + 4, 0x400);
	put32(w + 8, LAPS);
	put32(w + 12, 2);
	put_piece(w + 16, A_STEP << 16 | A, l.o.rig.key, (uintptr_t)l.dst + 1);
	put_piece(w + 32, B_STEP << 16 | B, l.o.rig.key, (uintptr_t)l.dst + 1000);
	rig_one_go(&l.o);
	rig_expect(&l.o.scq, CQE_OP_REQ);
	for (unsigned from = 0; from < (A + B) * LAPS; from++) {
		memset(l.dst, 0, SPACE);
		access_by(&l, WQE_OP_WRITE, l.src + from, (A + B) * LAPS - from, key, from);
		rig_expect(&l.o.scq, CQE_OP_REQ);
		for (unsigned i = from; i < (A + B) * LAPS; i++) {
			unsigned lap = i / (A + B), at = i % (A + B);

			assert_int_equal(
				at < A ? l.dst[1 + lap * A_STEP + at] : l.dst[1000 + lap * B_STEP + at - A],
				l.src[i]);
		}
	}
	access_by(&l, WQE_OP_WRITE, l.src, 1, key, (A + B) * LAPS);
	rig_expect_error(&l.o.scq, CQE_SYND_REMOTE_ACCESS);
	drop(&l, key);
	rig_one_close(&l.o);
}

/* UMRs that end the queue. */
static void refused_umr(void **state)
{
	enum {
		GOOD,
		NOT_INLINE,
		SIGNATURE,
		MASK,
		TOO_LONG,
		TOO_MANY,
		VARIANT,
		NOT_FREE,
		NOT_UMR,
		OTHER_PD,
		CASES
	};

	for (int bad = GOOD; bad < CASES; bad++) {
		uint32_t key, other_pd;
		struct loop l;
		uint8_t *w;

		open_loop(&l, 5);
		key = empty_key(&l, bad == TOO_MANY ? 3 : 4);
		if (bad == NOT_UMR) {
			drop(&l, key);
			key = key_over(&l, (struct hw_piece[]){{(uintptr_t)l.dst, l.o.rig.key, 8}}, 1, 0);
		}
		if (bad == OTHER_PD) {
			struct hw_indirect_attr attr = {.umr = true, .free = true, .max = 4};

			drop(&l, key);
			assert_int_equal(hw_pd_alloc(l.o.rig.dev, &other_pd), 0);
			attr.pdn = other_pd;
			assert_int_equal(hw_indirect_create(l.o.rig.dev, &attr, &key), 0);
		}
		if (bad == NOT_FREE) {
			put_umr(&l, key, 0, NEW_FREE, 0, 0);
			rig_one_go(&l.o);
			rig_expect(&l.o.scq, CQE_OP_REQ);
		}
		w = put_umr(&l, key, 4, USUAL | (bad == MASK ? 1 << 12 : 0), 8, WRITES);
		for (unsigned i = 0; i < 4; i++)
			put_piece(w + 128 + 16 * i, 2, l.o.rig.key, (uintptr_t)l.dst);
		if (bad == NOT_INLINE)
			w[16] = 0;
		if (bad == SIGNATURE)
			w[23] = 4;
		if (bad == TOO_LONG)
			w[21] = 5;
		if (bad == VARIANT)
			w[71] ^= 1;
		if (bad == NOT_FREE)
			w[16] |= 1 << 5;
		rig_one_go(&l.o);
		if (bad == GOOD)
			rig_expect(&l.o.scq, CQE_OP_REQ);
		else
			rig_expect_error(&l.o.scq, bad <= TOO_LONG ? CQE_SYND_LOCAL_QP_OP : CQE_SYND_MW_BIND);
		drop(&l, key);
		if (bad == OTHER_PD)
			assert_int_equal(hw_pd_free(l.o.rig.dev, other_pd), 0);
		rig_one_close(&l.o);
	}
}

/* ---- refusals --------------------------------------------------------------------------- */

static void refused_access(void **state)
{
	enum { GOOD, NO_KEY, PIECE_RIGHT, RIGHT, BEYOND, PIECE_BEYOND, PIECE_GONE, ITSELF, CASES };

	for (int bad = GOOD; bad < CASES; bad++) {
		struct hw_mkey_attr attr = {.len = SPACE, .access = bad == PIECE_RIGHT ? 0 : HW_LOCAL_WRITE};
		struct hw_indirect_attr top = {
			.access = bad == RIGHT ? HW_REMOTE_READ : ANY, .max = 2, .n = 2};
		struct hw_piece pieces[2];
		uint32_t part, key;
		struct loop l;
		uint8_t *w;

		open_loop(&l, 6);
		attr.pdn = top.pdn = l.o.rig.pdn;
		attr.mem = &l.o.rig.mem;
		attr.mem_off = rig_off(&l.o.rig, l.dst);
		assert_int_equal(hw_mkey_create(l.o.rig.dev, &attr, &part), 0);
		pieces[0] = (struct hw_piece){8, part, 8};
		pieces[1] =
			(struct hw_piece){bad == PIECE_BEYOND ? SPACE - 7 : 64, bad == NO_KEY ? 0 : part, 8};
		top.pieces = pieces;
		top.len = bad == BEYOND ? 15 : 16;
		top.umr = bad == ITSELF;
		assert_int_equal(hw_indirect_create(l.o.rig.dev, &top, &key), 0);
		if (bad == PIECE_GONE)
			drop(&l, part);
		if (bad == ITSELF) {
			w = put_umr(&l, key, 4, 0, 0, 0);
			put_piece(w + 128, 8, part, 0);
			put_piece(w + 144, 8, key, 0);
			rig_one_go(&l.o);
			rig_expect(&l.o.scq, CQE_OP_REQ);
		}
		access_by(&l, WQE_OP_WRITE, l.src, bad == ITSELF ? 9 : 16, key, 0);
		if (bad == GOOD || bad == ITSELF) { /* it leads to its first piece, */
			rig_expect(&l.o.scq, CQE_OP_REQ);
		} else {
			rig_expect_error(&l.o.scq, CQE_SYND_REMOTE_ACCESS);
		}
		if (bad == ITSELF) { /* or nowhere */
			put_piece(put_umr(&l, key, 4, 0, 0, 0) + 128, 16, key, 0);
			rig_one_go(&l.o);
			rig_expect(&l.o.scq, CQE_OP_REQ);
			access_by(&l, WQE_OP_WRITE, l.src, 1, key, 0);
			rig_expect_error(&l.o.scq, CQE_SYND_REMOTE_ACCESS);
		}
		drop(&l, key);
		if (bad != PIECE_GONE)
			drop(&l, part);
		rig_one_close(&l.o);
	}
}

/* HW_INDIRECTIONS keys lead to memory, one more does not. */
static void depth(void **state)
{
	uint32_t key[HW_INDIRECTIONS + 2];
	struct loop l;

	open_loop(&l, 7);
	key[0] = l.o.rig.key;
	for (unsigned i = 1; i < HW_INDIRECTIONS + 2; i++)
		key[i] = key_over(
			&l, (struct hw_piece[]){{i == 1 ? (uintptr_t)l.dst : 0, key[i - 1], 8}}, 1, 0);
	access_by(&l, WQE_OP_WRITE, l.src, 8, key[HW_INDIRECTIONS], 0);
	rig_expect(&l.o.scq, CQE_OP_REQ);
	assert_memory_equal(l.dst, l.src, 8);
	access_by(&l, WQE_OP_WRITE, l.src, 8, key[HW_INDIRECTIONS + 1], 0);
	rig_expect_error(&l.o.scq, CQE_SYND_REMOTE_ACCESS);
	for (unsigned i = 1; i < HW_INDIRECTIONS + 2; i++)
		drop(&l, key[i]);
	rig_one_close(&l.o);
}

static void refused_keys(void **state)
{
	static const struct hw_piece two[2];
	struct hw_indirect_attr attr = {.max = 1};
	struct hw_mkey_attr direct = {.len = 8};
	uint32_t key;
	struct loop l;

	open_loop(&l, 8);
	attr.pdn = direct.pdn = l.o.rig.pdn;
	attr.max = 0;
	assert_int_equal(hw_indirect_create(l.o.rig.dev, &attr, &key), -EINVAL);
	attr.max = HW_MAX_PIECES + 1;
	assert_int_equal(hw_indirect_create(l.o.rig.dev, &attr, &key), -EINVAL);
	attr = (struct hw_indirect_attr){.pdn = l.o.rig.pdn, .max = 1, .n = 2, .pieces = two};
	assert_int_equal(hw_indirect_create(l.o.rig.dev, &attr, &key), -EINVAL);
	attr.n = 1;
	attr.pdn = 12345;
	assert_int_equal(hw_indirect_create(l.o.rig.dev, &attr, &key), -EINVAL);
	attr.pdn = l.o.rig.pdn;
	assert_int_equal(hw_indirect_create(l.o.rig.dev, &attr, &key), 0);
	direct.mem = &l.o.rig.mem;
	assert_int_equal(hw_mkey_change(l.o.rig.dev, key, &direct), -EINVAL);
	drop(&l, key);
	rig_one_close(&l.o);
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
		cmocka_unit_test(all_ranges),
		cmocka_unit_test(local_and_atomic),
		cmocka_unit_test(by_list),
		cmocka_unit_test(by_stride),
		cmocka_unit_test(refused_umr),
		cmocka_unit_test(refused_access),
		cmocka_unit_test(depth),
		cmocka_unit_test(refused_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
