/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test-device.c - device files as applications use them, through the unmodified libraries. Runs under
 * "softcx run" (see test-on-softcx).
 */
#include "softcx/driver/test-listen.h"
#include "softcx/proto/proto.h"
#include "util/array.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <linux/magic.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_user_ioctl.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;

	assert_non_null(list);
	assert_non_null(list[0]);
	ctx = ibv_open_device(list[0]);
	assert_non_null(ctx);
	ibv_free_device_list(list);
	return ctx;
}

static int nic_connect(const char *name, int type)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/" SOFTCX_SOCKET_PREFIX "%s", getenv("SOFTCX_DIR"),
		name);
	assert_int_equal(connect(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	return fd;
}

/** A number of the NIC's status. */
static long count(const char *key)
{
	char text[8192], quoted[32], *found;
	int fd = nic_connect("control", SOCK_SEQPACKET);
	ssize_t n;

	assert_int_equal(send(fd, "status", 6, 0), 6);
	n = recv(fd, text, sizeof(text) - 1, 0);
	assert_true(n > 0);
	text[n] = '\0';
	close(fd);
	snprintf(quoted, sizeof(quoted), "\"%s\":", key);
	found = strstr(text, quoted);
	assert_non_null(found);
	return strtol(found + strlen(quoted), NULL, 10);
}

/** True if the NIC reports a file of that device that process @pid uses. */
static bool used_by(const char *device, pid_t pid)
{
	union {
		struct cmsghdr hdr;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {&(char){0}, 1};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	char text[65536], wanted[64];
	int nic = nic_connect("control", SOCK_SEQPACKET), fd;
	ssize_t n;

	assert_int_equal(send(nic, "objects", 7, 0), 7);
	assert_int_equal(recvmsg(nic, &msg, 0), 1);
	memcpy(&fd, CMSG_DATA(&control.hdr), sizeof(fd));
	n = pread(fd, text, sizeof(text) - 1, 0);
	assert_true(n > 0);
	text[n] = '\0';
	close(fd);
	close(nic);
	snprintf(wanted, sizeof(wanted), "\"file\":\"%s\",\"pid\":%d,", device, (int)pid);
	return strstr(text, wanted) != NULL;
}

static void test_character_device(void **state)
{
	struct stat by_name, by_fd;
	int fd = open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(stat("/dev/infiniband/uverbs0", &by_name), 0);
	assert_int_equal(fstat(fd, &by_fd), 0);
	assert_true(S_ISCHR(by_name.st_mode));
	assert_true(S_ISCHR(by_fd.st_mode));
	assert_int_equal(by_name.st_rdev, by_fd.st_rdev);
	close(fd);
	assert_int_equal(open("/dev/infiniband/uverbs77", O_RDWR), -1);
	assert_int_equal(errno, ENOENT);
}

/** UCX and Open MPI overwrite the code of mmap() and then call the kernel by number. */
static void test_mapped_by_number(void **state)
{
	struct ibv_context *ctx = open_device();
	struct mlx5dv_devx_uar *uar = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
	const uint64_t *clock;
	uint8_t *p;

	(void)state;
	assert_non_null(uar);
	p = (uint8_t *)syscall(SYS_mmap, NULL, 4096, PROT_WRITE, MAP_SHARED, ctx->cmd_fd, uar->mmap_off);
	assert_ptr_not_equal(p, MAP_FAILED);
	p[0] = 1;
	assert_int_equal(syscall(SYS_munmap, p, 4096), 0);
	/* MLX5_IB_MMAP_CORE_CLOCK */
	clock = (const uint64_t *)syscall(
		SYS_mmap, NULL, 4096, PROT_READ, MAP_SHARED, ctx->cmd_fd, 5 << 8 << 12);
	assert_ptr_not_equal(clock, MAP_FAILED);
	assert_int_not_equal(*clock, 0);
	assert_int_equal(syscall(SYS_munmap, clock, 4096), 0);
	assert_int_equal(syscall(SYS_mmap, NULL, 4096, PROT_READ, MAP_SHARED, ctx->cmd_fd, 77 << 12), -1);
	assert_int_equal(errno, EINVAL);
	mlx5dv_devx_free_uar(uar);
	ibv_close_device(ctx);
}

static void test_bad_pointers_are_answered(void **state)
{
	void *nowhere = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC);
	struct ib_uverbs_ioctl_hdr *cmd = calloc(1, sizeof(*cmd) + sizeof(cmd->attrs[0]));

	(void)state;
	cmd->length = sizeof(*cmd) + sizeof(cmd->attrs[0]);
	cmd->num_attrs = 1;
	cmd->attrs[0] = (struct ib_uverbs_attr){.len = 100, .data = (uintptr_t)nowhere};
	munmap(nowhere, 4096);
	assert_int_equal(write(fd, nowhere, 32), -1);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(ioctl(fd, RDMA_VERBS_IOCTL, cmd), -1);
	assert_int_equal(errno, EFAULT);
	cmd->num_attrs = 2;
	assert_int_equal(ioctl(fd, RDMA_VERBS_IOCTL, cmd), -1);
	assert_int_equal(errno, EINVAL);
	free(cmd);
	close(fd);
}

/** Objects live until the last copy of the descriptor is closed, whichever process has it. */
static void test_life_is_that_of_the_open_file(void **state)
{
	static struct ibv_pd *volatile pd; /* the library's part of it is never freed */
	struct ibv_context *ctx = open_device();
	int copy, go[2], status;
	pid_t pid;

	(void)state;
	pd = ibv_alloc_pd(ctx);
	assert_non_null(pd);
	assert_int_equal(count("pds"), 1);
	copy = dup(ctx->cmd_fd);
	assert_int_equal(pipe(go), 0);
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		_exit(read(go[0], &(char){0}, 1) == 0 ? 0 : 1);
	}
	close(go[0]);
	close(ctx->cmd_fd);
	assert_int_equal(count("pds"), 1);
	close(copy);
	assert_int_equal(count("pds"), 1);
	close(go[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(count("pds"), 1); /* the library has mapped doorbell pages */
	ctx->cmd_fd = open("/dev/null", O_RDWR);
	ibv_close_device(ctx);
	assert_int_equal(count("pds"), 0);
	assert_int_equal(count("files"), 0);
}

/** A mapping keeps the file open after its last descriptor, in every process that has inherited it. */
static void test_mapping_keeps_the_file(void **state)
{
	int fd = open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC), go[2], status;
	void *clock = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 5 << 8 << 12); /* MLX5_IB_MMAP_CORE_CLOCK */
	pid_t pid;

	(void)state;
	assert_ptr_not_equal(clock, MAP_FAILED);
	assert_int_equal(count("files"), 1);
	close(fd);
	assert_int_equal(count("files"), 1);
	assert_int_equal(munmap(clock, 4096), 0);
	assert_int_equal(count("files"), 0);

	fd = open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC);
	clock = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 5 << 8 << 12);
	assert_ptr_not_equal(clock, MAP_FAILED);
	close(fd);
	assert_int_equal(pipe(go), 0);
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		if (read(go[0], &(char){0}, 1) != 1 || count("files") != 1 || munmap(clock, 4096) != 0)
			_exit(1);
		_exit(count("files") == 0 ? 0 : 2);
	}
	close(go[0]);
	assert_int_equal(munmap(clock, 4096), 0);
	assert_int_equal(count("files"), 1);
	assert_int_equal(write(go[1], "", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(go[1]);
}

/** As in the kernel: write() is for the opener only, ioctl() for every process that has the descriptor.
 * rdma_cm has only write(); libibverbs invokes its commands by ioctl() where the kernel can.
 */
static void test_child_may_not_write(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct ibv_context *ctx = open_device();
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		struct rdma_cm_id *id;

		if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0 || errno != EACCES)
			_exit(1);
		_exit(ibv_alloc_pd(ctx) ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(ibv_close_device(ctx), 0);
	rdma_destroy_event_channel(channel);
}

/** Reports are about who uses a file now. */
static void test_status_names_the_caller(void **state)
{
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd;
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(used_by("uverbs0", getppid()) && ibv_alloc_pd(ctx) && used_by("uverbs0", getpid()) ? 0
													 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(used_by("uverbs0", pid));
	pd = ibv_alloc_pd(ctx);
	assert_true(used_by("uverbs0", getpid()));
	assert_int_equal(ibv_dealloc_pd(pd) | ibv_close_device(ctx), 0);
}

/** Nor after a change of ids or capabilities, although they are what they were: only a file opened since. */
static void test_new_credentials_may_not_write(void **state)
{
	struct rdma_event_channel *before = rdma_create_event_channel(), *after;
	struct rdma_cm_id *id;

	(void)state;
	assert_int_equal(rdma_create_id(before, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	assert_int_equal(prctl(PR_GET_KEEPCAPS), 0);
	assert_int_equal(rdma_create_id(before, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	assert_int_equal(setuid(getuid()), 0);
	assert_int_equal(rdma_create_id(before, &id, NULL, RDMA_PS_TCP), -1);
	assert_int_equal(errno, EACCES);
	after = rdma_create_event_channel();
	assert_int_equal(rdma_create_id(after, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	assert_int_equal(prctl(PR_SET_KEEPCAPS, 0), 0);
	assert_int_equal(rdma_create_id(after, &id, NULL, RDMA_PS_TCP), -1);
	assert_int_equal(errno, EACCES);
	rdma_destroy_event_channel(before);
	rdma_destroy_event_channel(after);
}

/** The program that inherits a device by exec: it is one there too. */
static int inherited(const char *fd_text)
{
	struct ib_uverbs_ioctl_hdr hdr = {.length = sizeof(hdr), .object_id = 0xeeee};
	int fd = atoi(fd_text);
	struct stat st;

	if (fstat(fd, &st) != 0 || !S_ISCHR(st.st_mode))
		return 1;
	if (ioctl(fd, RDMA_VERBS_IOCTL, &hdr) == 0 || errno == ENOTTY)
		return 2;
	return write(fd, "\0\0\0\0\0\0\0", 8) == -1 && errno == EACCES ? 0 : 3;
}

static void test_exec(void **state)
{
	int fd = open("/dev/infiniband/uverbs0", O_RDWR), status;
	char text[16];
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		snprintf(text, sizeof(text), "%d", fd);
		execl("/proc/self/exe", "test-softcx-device", "inherited", text, NULL);
		_exit(9);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(fd);
}

/* ---- doorbell pages ---------------------------------------------------------------------- */

static bool ring_wakes(_Atomic uint64_t *word)
{
	long woken;

	for (int i = 0; i < 2000 && count("uars_asleep") != count("uars"); i++)
		usleep(5000);
	if (count("uars_asleep") != count("uars"))
		return false;
	woken = count("uars_woken");
	*word = 1;
	return count("uars_woken") == woken + 1;
}

/** A ring at a page that sleeps is noticed, whichever process rings. */
static void test_doorbell_pages_sleep(void **state)
{
	struct ibv_context *ctx = open_device();
	struct mlx5dv_devx_uar *uar = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_BF);
	int uffd, status;
	pid_t pid;

	(void)state;
	assert_non_null(uar);
	if (prctl(PR_GET_SECCOMP) != 0) /* it may be death to ask */
		skip();
	uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	if (uffd < 0)
		skip();
	close(uffd);
	assert_true(ring_wakes(uar->reg_addr));
	pid = fork();
	if (pid == 0)
		_exit(ring_wakes(uar->reg_addr) ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(ring_wakes(uar->reg_addr));
	mlx5dv_devx_free_uar(uar);
	assert_int_equal(ibv_close_device(ctx), 0);
}

/* ---- events ----------------------------------------------------------------------------- */

static struct sockaddr_in *loopback(struct sockaddr_in *sin, unsigned port)
{
	*sin = (struct sockaddr_in){.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr = {htonl(INADDR_LOOPBACK)}};
	return sin;
}

static void resolve(struct rdma_event_channel *channel, struct rdma_cm_id **id)
{
	struct sockaddr_in sin;

	assert_int_equal(rdma_create_id(channel, id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(*id, NULL, (struct sockaddr *)loopback(&sin, 7471), 1000), 0);
}

static bool readable(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	return poll(&pfd, 1, 0) == 1;
}

static void *take_event(void *channel)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(channel, &event) != 0)
		return NULL;
	rdma_ack_cm_event(event);
	return channel;
}

static void test_events(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *ids[3];
	struct rdma_cm_event *event;
	struct pollfd pfd = {.fd = channel->fd, .events = POLLIN};
	pthread_t threads[2];
	void *result;

	(void)state;
	assert_false(readable(channel->fd));
	fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
	assert_int_equal(rdma_get_cm_event(channel, &event), -1);
	assert_int_equal(errno, EAGAIN);

	resolve(channel, &ids[0]);
	assert_int_equal(poll(&pfd, 1, 10000), 1);
	assert_non_null(take_event(channel));
	assert_false(readable(channel->fd));
	assert_null(take_event(channel));

	/* an event that goes with its id leaves nothing to read */
	resolve(channel, &ids[1]);
	assert_int_equal(poll(&pfd, 1, 10000), 1);
	assert_int_equal(rdma_destroy_id(ids[1]), 0);
	assert_false(readable(channel->fd));

	/* blocked readers get one event each */
	fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) & ~O_NONBLOCK);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_event, channel), 0);
	resolve(channel, &ids[1]);
	resolve(channel, &ids[2]);
	for (unsigned i = 0; i < 2; i++) {
		pthread_join(threads[i], &result);
		assert_non_null(result);
	}
	assert_false(readable(channel->fd));
	for (unsigned i = 0; i < 3; i++)
		rdma_destroy_id(ids[i]);
	rdma_destroy_event_channel(channel);
}

/** Asks until it cannot any more. The error. */
static void *ask_for_events(void *channel)
{
	struct rdma_cm_event *event;

	do {
		assert_int_equal(rdma_get_cm_event(channel, &event), -1);
	} while (errno == EAGAIN);
	return (void *)(intptr_t)errno;
}

/** Wherever in a call of another thread the descriptor is closed, that one hears that it is no descriptor. */
static void test_closed_by_another_thread(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		struct rdma_event_channel *channel = rdma_create_event_channel();
		pthread_t thread;
		void *error;

		fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
		assert_int_equal(pthread_create(&thread, NULL, ask_for_events, channel), 0);
		usleep(i * 5);
		close(channel->fd);
		pthread_join(thread, &error);
		assert_int_equal((intptr_t)error, EBADF);
		channel->fd = open("/dev/null", O_RDWR);
		rdma_destroy_event_channel(channel);
	}
}

/** After close() the resources are free at once. */
static void test_port_is_free_after_close(void **state)
{
	(void)state;
	/* as if the process had died: nobody destroys the id, and no library knows of it */
	for (unsigned i = 0; i < 100; i++)
		close(listen_by_hand(7999));
}

/* ---- memory ----------------------------------------------------------------------------- */

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

	l->ctx = open_device();
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

	(void)state;
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

	(void)state;
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
	assert_int_equal(count("mems"), 0);
}

/** One range, more files than one message carries descriptors. */
static void test_range_of_many_files(void **state)
{
	enum { FILES = 2 * SOFTCX_MAX_FDS + 3, PAGE = 4096 };
	char *range = mmap(NULL, FILES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *copy = calloc(FILES, PAGE);
	struct loop l;

	(void)state;
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

	(void)state;
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

	(void)state;
	assert_true(file >= 0 && memory >= 0 && unlink(name) == 0 && fstatfs(file, &fs) == 0);
	for (int i = 0; i < 4; i++) {
		bool write = i & 1, on_disk = i & 2 && fs.f_type != TMPFS_MAGIC;
		struct ibv_context *ctx = open_device();
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

	(void)state;
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

/* ---- the NIC is not to be brought down --------------------------------------------------- */

/** A command channel made by hand. */
static int raw_channel(int *file)
{
	struct softcx_hello hello = {.version = SOFTCX_VERSION, .opener = 1};
	struct iovec iov = {&hello, sizeof(hello)};
	union {
		struct cmsghdr hdr;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	int pair[2];

	*file = nic_connect("uverbs0", SOCK_STREAM);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int));
	control.hdr = (struct cmsghdr){
		.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
	memcpy(CMSG_DATA(&control.hdr), &pair[1], sizeof(int));
	assert_int_equal(sendmsg(*file, &msg, 0), sizeof(hello));
	close(pair[1]);
	return pair[0];
}

static void test_malformed_messages(void **state)
{
	struct softcx_request requests[] = {
		{.op = 0},
		{.op = 99},
		{.op = SOFTCX_WRITE, .len = 1000},
		{.op = SOFTCX_IOCTL, .len = 24},
		{.op = SOFTCX_MEM, .count = 0xffffffff},
		{.op = SOFTCX_STAT},
		{.op = SOFTCX_MMAP, .va = UINT64_MAX, .len = UINT64_MAX},
	};
	struct ib_uverbs_ioctl_hdr hdr = {.length = 24, .num_attrs = 0xffff};
	long files = count("files"); /* librdmacm keeps its device open */
	unsigned seed = 1;
	int file, ch;

	(void)state;
	for (unsigned i = 0; i < COUNT(requests); i++) {
		struct iovec iov[2] = {{&requests[i], sizeof(requests[i])}, {&hdr, sizeof(hdr)}};

		for (unsigned parts = 1; parts <= 2; parts++) {
			ch = raw_channel(&file);
			assert_true(writev(ch, iov, (int)parts) > 0);
			recv(ch, &hdr, sizeof(hdr), 0); /* an answer or the end */
			close(ch);
			close(file);
		}
	}
	for (unsigned i = 0; i < 500; i++) {
		uint8_t noise[256];

		for (unsigned k = 0; k < sizeof(noise); k++)
			noise[k] = (uint8_t)rand_r(&seed);
		noise[0] = (uint8_t)(i % 6);
		memset(noise + 1, 0, 3);
		ch = raw_channel(&file);
		assert_true(write(ch, noise, (unsigned)rand_r(&seed) % sizeof(noise) + 1) > 0);
		close(ch);
		close(file);
	}
	file = nic_connect("rdma_cm", SOCK_STREAM);
	assert_int_equal(send(file, "hello there, how are you?", 24, 0), 24);
	assert_true(recv(file, &hdr, sizeof(hdr), 0) <= 0);
	close(file);
	assert_int_equal(ibv_close_device(open_device()), 0);
	assert_int_equal(count("files"), files);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_character_device),
		cmocka_unit_test(test_mapped_by_number),
		cmocka_unit_test(test_bad_pointers_are_answered),
		cmocka_unit_test(test_life_is_that_of_the_open_file),
		cmocka_unit_test(test_mapping_keeps_the_file),
		cmocka_unit_test(test_child_may_not_write),
		cmocka_unit_test(test_new_credentials_may_not_write),
		cmocka_unit_test(test_status_names_the_caller),
		cmocka_unit_test(test_exec),
		cmocka_unit_test(test_doorbell_pages_sleep),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_closed_by_another_thread),
		cmocka_unit_test(test_port_is_free_after_close),
		cmocka_unit_test(test_every_kind_of_memory),
		cmocka_unit_test(test_anonymous_shared_memory),
		cmocka_unit_test(test_range_of_many_files),
		cmocka_unit_test(test_file_shrinks_under_the_nic),
		cmocka_unit_test(test_pinning_a_file),
		cmocka_unit_test(test_fork_with_registered_memory),
		cmocka_unit_test(test_malformed_messages),
	};

	if (argc == 3)
		return inherited(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
