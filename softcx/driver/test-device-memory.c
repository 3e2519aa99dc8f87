/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test-device-memory.c - every kind of memory that a program may register, through the unmodified libraries.
 * Runs under "softcx run" (see test-on-softcx).
 */
#include "softcx/driver/test-nic.h"
#include "softcx/proto/proto.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

struct loop {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

/** An RC queue pair connected to itself. */
static void loop_open(struct loop *l)
{
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
	struct ibv_port_attr port;

	l->ctx = test_open_device();
	l->pd = ibv_alloc_pd(l->ctx);
	l->cq = ibv_create_cq(l->ctx, 8, NULL, NULL, 0);
	assert_non_null(l->cq);
	init.send_cq = init.recv_cq = l->cq;
	l->qp = ibv_create_qp(l->pd, &init);
	assert_non_null(l->qp);
	assert_int_equal(ibv_modify_qp(l->qp, &attr,
				 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = l->qp->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1, .port_num = 1}};
	assert_int_equal(ibv_query_port(l->ctx, 1, &port), 0);
	attr.ah_attr.dlid = port.lid; /* 0 on RoCE */
	assert_int_equal(ibv_query_gid(l->ctx, 1, 0, &attr.ah_attr.grh.dgid), 0);
	assert_int_equal(ibv_modify_qp(l->qp, &attr,
				 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					 IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
		0);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
	assert_int_equal(ibv_modify_qp(l->qp, &attr,
				 IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
		0);
}

static void loop_close(struct loop *l)
{
	assert_int_equal(ibv_destroy_qp(l->qp), 0);
	assert_int_equal(ibv_destroy_cq(l->cq), 0);
	assert_int_equal(ibv_dealloc_pd(l->pd), 0);
	assert_int_equal(ibv_close_device(l->ctx), 0);
}

/** RDMA WRITE of @len bytes from @from to @to. */
static void rdma_copy(struct loop *l, void *to, void *from, uint32_t len)
{
	struct ibv_mr *src = ibv_reg_mr(l->pd, from, len, 0);
	struct ibv_mr *dst = ibv_reg_mr(l->pd, to, len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_sge sge = {.addr = (uintptr_t)from, .length = len};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc;
	int n;

	assert_non_null(src);
	assert_non_null(dst);
	sge.lkey = src->lkey;
	wr.wr.rdma.remote_addr = (uintptr_t)to;
	wr.wr.rdma.rkey = dst->rkey;
	assert_int_equal(ibv_post_send(l->qp, &wr, &bad), 0);
	while ((n = ibv_poll_cq(l->cq, 1, &wc)) == 0)
		sched_yield();
	assert_int_equal(n, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(src), 0);
	assert_int_equal(ibv_dereg_mr(dst), 0);
}

/** Descriptors of the files that the driver gives to anonymous shared memory. */
static unsigned shared_files(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 2048; fd++) {
		char path[32], name[64] = "";

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n += readlink(path, name, sizeof(name) - 1) > 0 && strstr(name, "memfd:softcx-shared");
	}
	return n;
}

/** Anonymous shared memory is shared with children, and its file is closed with its last page. */
static void test_anonymous_shared_memory(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct loop l;
	uint8_t *p;
	int status;
	pid_t pid;

	assert_int_equal(shared_files(), 0);
	p = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(shared_files(), 1);
	assert_int_equal(p[0] | p[3 * page - 1], 0);
	pid = fork();
	if (pid == 0) {
		p[page] = 7;
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(p[page], 7);
	loop_open(&l);
	rdma_copy(&l, p + 2 * page, p + page, 1);
	assert_int_equal(p[2 * page], 7);
	loop_close(&l);
	assert_int_equal(munmap(p, page), 0);
	p = mremap(p + page, 2 * page, 2 * page, MREMAP_MAYMOVE);
	assert_int_equal(p[0], 7);
	assert_int_equal(munmap(p, 2 * page), 0);
	p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(p[0], 0);
	munmap(p, page);
	assert_int_equal(shared_files(), 0);
}

static char data_segment[10000] = "data segment";

static void test_every_kind_of_memory(void **state)
{
	static const char text[] = "a constant in a read-only file mapping";
	enum { HEAP = 100000 };
	char stack[10000] = "", *heap = calloc(1, HEAP);
	struct loop l;

	loop_open(&l);
	rdma_copy(&l, heap + 100, (void *)(uintptr_t)text, sizeof(text));
	assert_string_equal(heap + 100, text);
	rdma_copy(&l, stack + 3, data_segment, 5000);
	assert_memory_equal(stack + 3, data_segment, 5000);
	stack[77] = 'x';
	rdma_copy(&l, heap + 5000, stack, sizeof(stack));
	assert_memory_equal(heap + 5000, stack, sizeof(stack));
	rdma_copy(&l, data_segment, heap, sizeof(data_segment));
	assert_memory_equal(data_segment, heap, sizeof(data_segment));
	loop_close(&l);
	free(heap);
	assert_int_equal(test_nic_count("mems"), 0);
}

/** One range, more files than one message carries descriptors. */
static void test_range_of_many_files(void **state)
{
	enum { FILES = 2 * SOFTCX_MAX_FDS + 3, PAGE = 4096 };
	char *range = mmap(NULL, FILES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *copy = calloc(FILES, PAGE);
	struct loop l;

	for (unsigned i = 0; i < FILES; i++) {
		int fd = memfd_create("piece", MFD_CLOEXEC);

		assert_int_equal(ftruncate(fd, 3 * PAGE), 0);
		/* kept open: without its descriptor a deleted file can be found by root only */
		assert_ptr_equal(mmap(range + i * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
					 fd, 2 * PAGE),
			range + i * PAGE);
		memset(range + i * PAGE, (int)i + 1, PAGE);
	}
	loop_open(&l);
	rdma_copy(&l, copy, range, FILES * PAGE);
	assert_memory_equal(copy, range, FILES * PAGE);
	memset(copy, 77, FILES * PAGE);
	rdma_copy(&l, range, copy, FILES * PAGE);
	assert_memory_equal(copy, range, FILES * PAGE);
	loop_close(&l);
	munmap(range, FILES * PAGE);
	free(copy);
}

/** The NIC meets the end of a file that shrank and goes on. */
static void test_file_shrinks_under_the_nic(void **state)
{
	enum { LEN = 8 * 4096 };
	int fd = memfd_create("shrinks", MFD_CLOEXEC);
	struct ibv_sge sge = {.length = LEN};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_mr *src, *dst;
	char *shared, *to = calloc(1, LEN);
	struct ibv_wc wc;
	struct loop l;
	int n;

	assert_int_equal(ftruncate(fd, LEN), 0);
	shared = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	memset(shared, 1, LEN);
	loop_open(&l);
	src = ibv_reg_mr(l.pd, shared, LEN, 0);
	dst = ibv_reg_mr(l.pd, to, LEN, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	assert_non_null(src);
	assert_non_null(dst);
	assert_int_equal(ftruncate(fd, LEN / 2), 0);
	sge.addr = (uintptr_t)shared;
	sge.lkey = src->lkey;
	wr.wr.rdma.remote_addr = (uintptr_t)to;
	wr.wr.rdma.rkey = dst->rkey;
	assert_int_equal(ibv_post_send(l.qp, &wr, &bad), 0);
	while ((n = ibv_poll_cq(l.cq, 1, &wc)) == 0)
		sched_yield();
	assert_int_equal(n, 1);
	assert_int_equal(to[0], 1);
	assert_int_equal(to[LEN - 1], 0);
	assert_int_equal(ibv_dereg_mr(src), 0);
	assert_int_equal(ibv_dereg_mr(dst), 0);
	loop_close(&l);
	munmap(shared, LEN);
	close(fd);
	free(to);
}

/** Linux pins pages of a file on a disk for a device that reads, not for one that writes. */
static void test_pinning_a_file(void **state)
{
	enum { LEN = 4096 };
	char name[] = "/var/tmp/softcx-pinned-XXXXXX"; /* anyone may write there, and it is on a disk */
	int file = mkstemp(name), memory = memfd_create("pinned", MFD_CLOEXEC);
	struct statfs fs;

	assert_true(file >= 0 && memory >= 0 && unlink(name) == 0 && fstatfs(file, &fs) == 0);
	for (int i = 0; i < 4; i++) {
		bool write = i & 1, on_disk = i & 2 && fs.f_type != TMPFS_MAGIC;
		struct ibv_context *ctx = test_open_device();
		struct ibv_pd *pd = ibv_alloc_pd(ctx);
		struct ibv_mr *mr;
		void *p;

		assert_int_equal(ftruncate(i & 2 ? file : memory, LEN), 0);
		p = mmap(NULL, LEN, PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED, i & 2 ? file : memory,
			0);
		assert_ptr_not_equal(p, MAP_FAILED);
		mr = ibv_reg_mr(pd, p, LEN, write ? IBV_ACCESS_LOCAL_WRITE : IBV_ACCESS_REMOTE_READ);
		assert_int_equal(mr == NULL, write && on_disk);
		assert_int_equal(mr ? 0 : errno, write && on_disk ? EFAULT : 0);
		assert_int_equal(mr ? ibv_dereg_mr(mr) : 0, 0);
		assert_int_equal(munmap(p, LEN) | ibv_dealloc_pd(pd) | ibv_close_device(ctx), 0);
	}
	close(file);
	close(memory);
}

static void test_fork_with_registered_memory(void **state)
{
	size_t len = 64 * 4096;
	char *buffer = calloc(1, len), *other = calloc(1, len);
	struct loop l;
	struct ibv_mr *mr;
	int status;
	pid_t pid;

	loop_open(&l);
	mr = ibv_reg_mr(l.pd, buffer, len, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	pid = fork();
	if (pid == 0) {
		memset(buffer, 'c', len);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(buffer[0], 0);
	memset(other, 'p', len);
	rdma_copy(&l, buffer, other, (uint32_t)len);
	assert_memory_equal(buffer, other, len);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	loop_close(&l);
	free(buffer);
	free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_anonymous_shared_memory),
		cmocka_unit_test(test_every_kind_of_memory),
		cmocka_unit_test(test_range_of_many_files),
		cmocka_unit_test(test_file_shrinks_under_the_nic),
		cmocka_unit_test(test_pinning_a_file),
		cmocka_unit_test(test_fork_with_registered_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
