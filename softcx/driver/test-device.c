/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test-device.c - device files as applications use them, through the unmodified libraries. Runs under
 * "softcx run" (see test-on-softcx).
 */
#include "softcx/driver/test-listen.h"
#include "softcx/driver/test-nic.h"
#include "softcx/proto/proto.h"
#include "util/array.h"

#include <arpa/inet.h>
#include <dirent.h>
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
#include <signal.h>
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

#include "tests/lib/cmocka.h"

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
	int nic = test_nic_connect("control", SOCK_SEQPACKET), fd;
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
	struct ibv_context *ctx = test_open_device();
	struct mlx5dv_devx_uar *uar = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
	const uint64_t *clock;
	uint8_t *p;

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
static void test_success_leaves_errno(void **state)
{
	struct ibv_context *ctx = test_open_device();

	for (int i = 0; i < 20; i++) {
		struct ibv_pd *pd;

		errno = ENXIO;
		pd = ibv_alloc_pd(ctx);
		assert_non_null(pd);
		assert_int_equal(ibv_dealloc_pd(pd), 0);
		assert_int_equal(errno, ENXIO);
	}
	ibv_close_device(ctx);
}

static void test_life_is_that_of_the_open_file(void **state)
{
	static struct ibv_pd *volatile pd; /* the library's part of it is never freed */
	struct ibv_context *ctx = test_open_device();
	int copy, go[2], status;
	pid_t pid;

	pd = ibv_alloc_pd(ctx);
	assert_non_null(pd);
	assert_int_equal(test_nic_count("pds"), 1);
	copy = dup(ctx->cmd_fd);
	assert_int_equal(pipe(go), 0);
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		_exit(read(go[0], &(char){0}, 1) == 0 ? 0 : 1);
	}
	close(go[0]);
	close(ctx->cmd_fd);
	assert_int_equal(test_nic_count("pds"), 1);
	close(copy);
	assert_int_equal(test_nic_count("pds"), 1);
	close(go[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(test_nic_count("pds"), 1); /* the library has mapped doorbell pages */
	ctx->cmd_fd = open("/dev/null", O_RDWR);
	ibv_close_device(ctx);
	assert_int_equal(test_nic_count("pds"), 0);
	assert_int_equal(test_nic_count("files"), 0);
}

/** A mapping keeps the file open after its last descriptor, in every process that has inherited it. */
static void test_mapping_keeps_the_file(void **state)
{
	int fd = open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC), go[2], status;
	void *clock = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 5 << 8 << 12); /* MLX5_IB_MMAP_CORE_CLOCK */
	pid_t pid;

	assert_ptr_not_equal(clock, MAP_FAILED);
	assert_int_equal(test_nic_count("files"), 1);
	close(fd);
	assert_int_equal(test_nic_count("files"), 1);
	assert_int_equal(munmap(clock, 4096), 0);
	assert_int_equal(test_nic_count("files"), 0);

	fd = open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC);
	clock = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 5 << 8 << 12);
	assert_ptr_not_equal(clock, MAP_FAILED);
	close(fd);
	assert_int_equal(pipe(go), 0);
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		if (read(go[0], &(char){0}, 1) != 1 || test_nic_count("files") != 1 ||
			munmap(clock, 4096) != 0)
			_exit(1);
		_exit(test_nic_count("files") == 0 ? 0 : 2);
	}
	close(go[0]);
	assert_int_equal(munmap(clock, 4096), 0);
	assert_int_equal(test_nic_count("files"), 1);
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
	struct ibv_context *ctx = test_open_device();
	int status;
	pid_t pid = fork();

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
	struct ibv_context *ctx = test_open_device();
	struct ibv_pd *pd;
	int status;
	pid_t pid = fork();

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

/** A descriptor that was a device file a moment ago. */
static void test_replaced_descriptor(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	int pair[2], device = dup(channel->fd);
	struct rdma_cm_id *id;
	char text[8];

	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(dup2(pair[0], channel->fd), channel->fd);
	assert_int_equal(write(channel->fd, "eight...", 8), 8);
	assert_int_equal(read(pair[1], text, sizeof(text)), 8);
	assert_memory_equal(text, "eight...", 8);
	assert_int_equal(dup2(device, channel->fd), channel->fd);
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
	close(device);
	close(pair[0]);
	close(pair[1]);
}

static int nic_descriptors(void)
{
	char path[32];
	DIR *dir;
	int n = 0;

	snprintf(path, sizeof(path), "/proc/%ld/fd", test_nic_count("pid"));
	dir = opendir(path);
	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static int makes_id(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id;

	return rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0 ? rdma_destroy_id(id) : -errno;
}

/** Files that a process does not use for a while have no command channel, and get another one. */
static void test_many_files(void **state)
{
	enum { FILES = 200 };
	struct rdma_event_channel *channels[FILES];
	int before = nic_descriptors(), status;
	pid_t pid;

	for (unsigned i = 0; i < FILES; i++) {
		channels[i] = rdma_create_event_channel();
		assert_non_null(channels[i]);
	}
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < FILES; i++)
			assert_int_equal(makes_id(channels[i]), 0);
	assert_in_range(nic_descriptors() - before, FILES, FILES + FILES / 2);

	/* neither a child nor one with other credentials opened them */
	pid = fork();
	if (pid == 0)
		_exit(makes_id(channels[0]) == -EACCES && makes_id(channels[FILES - 1]) == -EACCES ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(makes_id(channels[0]), 0);
	assert_int_equal(setuid(getuid()), 0);
	assert_int_equal(makes_id(channels[0]), -EACCES);
	assert_int_equal(makes_id(channels[FILES / 2]), -EACCES);
	for (unsigned i = 0; i < FILES; i++)
		rdma_destroy_event_channel(channels[i]);
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

/*
 * Stores to @word while all pages sleep. The NIC may wake pages by itself before the store: a child's page
 * when the message of the child comes, and one whose store was delayed so long that it fell asleep again. So
 * the number that woke is read before pages are seen asleep, and may grow by more than one.
 */
static bool ring_wakes(_Atomic uint64_t *word)
{
	long all = test_nic_count("uars"), woken;
	int tries = 2000;

	while (woken = test_nic_count("uars_woken"), test_nic_count("uars_asleep") != all) {
		if (--tries == 0)
			return false;
		usleep(5000);
	}
	*word = 1;
	return test_nic_count("uars_woken") > woken;
}

/** A ring at a page that sleeps is noticed, whichever process rings. */
static void test_doorbell_pages_sleep(void **state)
{
	struct ibv_context *ctx = test_open_device();
	struct mlx5dv_devx_uar *uar = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_BF);
	int uffd, status;
	pid_t pid;

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
	/* as if the process had died: nobody destroys the id, and no library knows of it */
	for (unsigned i = 0; i < 100; i++)
		close(listen_by_hand(7999));
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
	} control;
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	int pair[2];

	*file = test_nic_connect("uverbs0", SOCK_STREAM);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int));
	softcx_put_fds(&msg, &control.hdr, &pair[1], 1);
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
	long files = test_nic_count("files"); /* librdmacm keeps its device open */
	unsigned seed = 1;
	int file, ch;

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
	file = test_nic_connect("rdma_cm", SOCK_STREAM);
	assert_int_equal(send(file, "hello there, how are you?", 24, 0), 24);
	assert_true(recv(file, &hdr, sizeof(hdr), 0) <= 0);
	close(file);
	assert_int_equal(ibv_close_device(test_open_device()), 0);
	assert_int_equal(test_nic_count("files"), files);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_character_device),
		cmocka_unit_test(test_mapped_by_number),
		cmocka_unit_test(test_bad_pointers_are_answered),
		cmocka_unit_test(test_success_leaves_errno),
		cmocka_unit_test(test_life_is_that_of_the_open_file),
		cmocka_unit_test(test_mapping_keeps_the_file),
		cmocka_unit_test(test_child_may_not_write),
		cmocka_unit_test(test_new_credentials_may_not_write),
		cmocka_unit_test(test_replaced_descriptor),
		cmocka_unit_test(test_many_files),
		cmocka_unit_test(test_status_names_the_caller),
		cmocka_unit_test(test_exec),
		cmocka_unit_test(test_doorbell_pages_sleep),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_closed_by_another_thread),
		cmocka_unit_test(test_port_is_free_after_close),
		cmocka_unit_test(test_malformed_messages),
	};

	if (argc == 3)
		return inherited(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
