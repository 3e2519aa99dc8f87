/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * softcx-life - checks connections, memory and objects after processes died: to be run under `softcx run`.
 *
 * Each check starts an owner, whose memory a peer in this process reads and writes. The owner is killed. Its
 * objects live on as long as a process holds its device file: a forked child, a process that got the
 * descriptor by SCM_RIGHTS (as a service manager's store does), a program that imported it. Exits 0 if
 * everything was as with a kernel.
 */
#include "tests/lib/rc.h"
#include "util/array.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

enum { MEM = 4096, WORD = 64, PATIENCE_MS = 60000 };

/** The facts that an importer needs besides the descriptor. */
struct handles {
	uint32_t pd, mr, lkey, rkey;
	uint64_t addr;
};

struct owner {
	pid_t pid;
	int sock;
	struct rc_peer peer;
	struct handles handles;
};

static void say(int sock, const void *p, size_t len)
{
	if (send(sock, p, len, MSG_NOSIGNAL) != (ssize_t)len)
		rc_die("send");
}

static void hear(int sock, void *p, size_t len)
{
	if (recv(sock, p, len, MSG_WAITALL) != (ssize_t)len)
		rc_die("the other side is gone");
}

static void send_fd(int sock, int fd)
{
	union {
		struct cmsghdr hdr;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {.hdr = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct iovec iov = {(char[]){"f"}, 1};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};

	memcpy(CMSG_DATA(&control.hdr), &fd, sizeof(fd));
	if (sendmsg(sock, &msg, 0) != 1)
		rc_die("SCM_RIGHTS");
}

/** @text: room for @size bytes of what came along. */
static int receive_fd(int sock, char *text, size_t size)
{
	union {
		struct cmsghdr hdr;
		char space[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec iov = {text, size - 1};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	int fd;

	if (!c || c->cmsg_type != SCM_RIGHTS)
		rc_die("no descriptor came");
	text[n] = '\0';
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/** A child that ends with this process and has its end of a stream in *@sock. 0: in the child. */
static pid_t child(int *sock)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		rc_die("socketpair");
	pid = fork();
	if (pid < 0)
		rc_die("fork");
	close(pair[pid != 0]);
	*sock = pair[pid == 0];
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	if (waitpid(pid, NULL, 0) != pid)
		rc_die("waitpid");
}

/** Until the other side hangs up or this process is killed. */
__attribute__((noreturn)) static void linger(int sock)
{
	while (recv(sock, &(char){0}, 1, 0) > 0)
		;
	_exit(0);
}

/* ---- owner and peer --------------------------------------------------------------------- */

/** @sharing: of its memory. @then: what the owner does before it waits for its end, or NULL. */
static struct owner owner_new(int sharing, void (*then)(struct rc *rc))
{
	struct owner o;
	struct ibv_qp *qp;
	struct rc rc;

	o.pid = child(&o.sock);
	if (o.pid > 0) {
		hear(o.sock, &o.peer, sizeof(o.peer));
		hear(o.sock, &o.handles, sizeof(o.handles));
		return o;
	}
	rc_open(&rc, 0, MEM, sharing, 16);
	memcpy(rc.mem + WORD, "survives", 8);
	qp = rc_qp(&rc, 16);
	o.peer = rc_self(&rc, qp);
	o.handles =
		(struct handles){rc.pd->handle, rc.mr->handle, rc.mr->lkey, rc.mr->rkey, (uintptr_t)rc.mem};
	say(o.sock, &o.peer, sizeof(o.peer));
	say(o.sock, &o.handles, sizeof(o.handles));
	hear(o.sock, &o.peer, sizeof(o.peer));
	rc_connect(qp, &o.peer);
	if (then)
		then(&rc);
	say(o.sock, "r", 1);
	linger(o.sock);
}

/** Opens a device in this process, after the owner was forked. */
static struct ibv_qp *connect_to(struct rc *rc, struct owner *o)
{
	struct rc_peer self;
	struct ibv_qp *qp;
	char ready;

	rc_open(rc, 0, MEM, MAP_SHARED, 16);
	qp = rc_qp(rc, 16);
	self = rc_self(rc, qp);
	say(o->sock, &self, sizeof(self));
	hear(o->sock, &ready, 1);
	rc_connect(qp, &o->peer);
	return qp;
}

/** The owner's memory is read and written although the owner is dead. */
static void expect_alive(struct rc *rc, struct ibv_qp *qp, const struct owner *o, const char *what)
{
	memset(rc->mem, 0, 64);
	rc_post(rc, qp, IBV_WR_RDMA_READ, 0, &o->peer, WORD, 8);
	rc_expect(rc, IBV_WC_SUCCESS);
	if (memcmp(rc->mem, "survives", 8) != 0)
		rc_die("%s: the memory is not what it was", what);
	memcpy(rc->mem + 8, "new data", 8);
	rc_post(rc, qp, IBV_WR_RDMA_WRITE, 8, &o->peer, WORD + 8, 8);
	rc_expect(rc, IBV_WC_SUCCESS);
	rc_post(rc, qp, IBV_WR_RDMA_READ, 16, &o->peer, WORD + 8, 8);
	rc_expect(rc, IBV_WC_SUCCESS);
	if (memcmp(rc->mem + 16, "new data", 8) != 0)
		rc_die("%s: what was written is not there", what);
	printf("ok   %s\n", what);
}

/**
 * Nobody answers any more. The NIC may hear of the end a moment after this process does, and executes WQEs
 * meanwhile.
 */
static void expect_dead(struct rc *rc, struct ibv_qp *qp, const struct owner *o, const char *what)
{
	enum ibv_wc_status status;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	for (int i = 0; i < PATIENCE_MS; i++) {
		rc_post(rc, qp, IBV_WR_RDMA_READ, 0, &o->peer, WORD, 8);
		status = rc_await(rc);
		if (status != IBV_WC_SUCCESS)
			break;
		usleep(1000);
	}
	if (status != IBV_WC_RETRY_EXC_ERR)
		rc_die("%s: completion \"%s\"", what, ibv_wc_status_str(status));
	rc_post(rc, qp, IBV_WR_RDMA_READ, 0, &o->peer, WORD, 8);
	rc_expect(rc, IBV_WC_WR_FLUSH_ERR);
	if (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) != 0 || attr.qp_state != IBV_QPS_ERR)
		rc_die("%s: the queue pair is in state %d", what, attr.qp_state);
	printf("ok   %s\n", what);
}

/* ---- checks ----------------------------------------------------------------------------- */

static void dead_peer(struct rc *rc)
{
	struct owner o = owner_new(MAP_SHARED, NULL);
	struct ibv_qp *qp = connect_to(rc, &o);

	expect_alive(rc, qp, &o, "a connection to another process");
	end(o.pid);
	expect_dead(rc, qp, &o, "a dead peer: retries exceeded, the rest is flushed");
	ibv_destroy_qp(qp);
	close(o.sock);
}

static int owner_sock;

static void fork_owner(struct rc *rc)
{
	pid_t pid = fork();

	(void)rc;
	if (pid < 0)
		rc_die("fork");
	if (pid == 0)
		linger(owner_sock);
}

static void forked_child(struct rc *rc)
{
	int pair[2];
	struct owner o;
	struct ibv_qp *qp;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		rc_die("socketpair");
	owner_sock = pair[1];
	o = owner_new(MAP_PRIVATE, fork_owner);
	qp = connect_to(rc, &o);
	end(o.pid);
	expect_alive(rc, qp, &o, "a forked child keeps it");
	shutdown(pair[0], SHUT_RDWR);
	expect_dead(rc, qp, &o, "until it ends");
	ibv_destroy_qp(qp);
	close(pair[0]);
	close(pair[1]);
	close(o.sock);
}

/** The protocol of sd_notify(3) to a manager that stores the descriptor. */
static void store_fd(struct rc *rc)
{
	if (sd_pid_notify_with_fds(0, false, "FDSTORE=1\nFDNAME=uverbs", &rc->ctx->cmd_fd, 1) <= 0)
		rc_die("sd_pid_notify_with_fds");
}

static void descriptor_store(struct rc *rc)
{
	char name[64], text[256];
	struct ibv_qp *qp;
	int store = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), fd;
	size_t n = (size_t)snprintf(name, sizeof(name), "@softcx-life-%d", (int)getpid());
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	struct owner o;

	memcpy(sun.sun_path + 1, name + 1, n - 1);
	if (bind(store, (struct sockaddr *)&sun, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0)
		rc_die("bind");
	setenv("NOTIFY_SOCKET", name, 1);
	o = owner_new(MAP_PRIVATE, store_fd);
	unsetenv("NOTIFY_SOCKET");
	qp = connect_to(rc, &o);
	fd = receive_fd(store, text, sizeof(text));
	end(o.pid);
	expect_alive(rc, qp, &o, "a manager's descriptor store keeps it");
	close(fd);
	expect_dead(rc, qp, &o, "until the manager closes it");
	ibv_destroy_qp(qp);
	close(store);
	close(o.sock);
}

/* ---- import ----------------------------------------------------------------------------- */

static int give_sock;

static void give(struct rc *rc)
{
	send_fd(give_sock, rc->ctx->cmd_fd);
}

/** Another program goes on with the objects of the owner: has new queues, in the old PD, on the old memory.
 */
static void import_and_use(int sock)
{
	struct handles h;
	struct rc_peer to;
	struct rc rc = {0};
	struct ibv_qp *qp;
	char text[2];
	int fd = receive_fd(sock, text, sizeof(text));

	hear(sock, &h, sizeof(h));
	rc.ctx = ibv_import_device(fd);
	if (!rc.ctx)
		rc_die("ibv_import_device");
	rc.pd = ibv_import_pd(rc.ctx, h.pd);
	rc.mr = rc.pd ? ibv_import_mr(rc.pd, h.mr) : NULL;
	if (!rc.mr)
		rc_die("ibv_import_pd, ibv_import_mr");
	if (rc.mr->lkey != h.lkey || rc.mr->rkey != h.rkey || rc.mr->length != MEM)
		rc_die("the imported MR has keys %x %x, length %zu", rc.mr->lkey, rc.mr->rkey, rc.mr->length);
	errno = 0;
	if (ibv_import_pd(rc.ctx, h.pd + 1000))
		rc_die("a PD that does not exist was imported");
	rc.cq = ibv_create_cq(rc.ctx, 16, NULL, NULL, 0);
	if (!rc.cq)
		rc_die("ibv_create_cq");
	rc_query_port(&rc);
	rc.mem = (uint8_t *)(uintptr_t)h.addr; /* where it is to the NIC; nothing is mapped here */
	qp = rc_qp(&rc, 16);
	to = rc_self(&rc, qp);
	say(sock, &to, sizeof(to));
	hear(sock, &to, sizeof(to));
	rc_connect(qp, &to);
	rc_post(&rc, qp, IBV_WR_RDMA_WRITE, WORD, &to, 128, 8);
	rc_expect(&rc, IBV_WC_SUCCESS);
	if (ibv_destroy_qp(qp) != 0 || ibv_destroy_cq(rc.cq) != 0)
		rc_die("destroying what was made here");
	ibv_unimport_mr(rc.mr);
	ibv_unimport_pd(rc.pd);
	/* the first queue pair lives: the file is still open */
	say(sock, "d", 1);
	hear(sock, text, 1);
	if (ibv_close_device(rc.ctx) != 0)
		rc_die("ibv_close_device");
	_exit(0);
}

static void imported(struct rc *rc)
{
	struct ibv_qp *qp, *second;
	int pair[2], sock, fd, status;
	struct rc_peer to, self;
	struct owner o;
	pid_t importer;
	char text[2];

	importer = child(&sock);
	if (importer == 0)
		import_and_use(sock);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		rc_die("socketpair");
	give_sock = pair[0];
	o = owner_new(MAP_SHARED, give);
	qp = connect_to(rc, &o);
	fd = receive_fd(pair[1], text, sizeof(text));
	end(o.pid);
	expect_alive(rc, qp, &o, "who got it by SCM_RIGHTS keeps it");
	send_fd(sock, fd);
	close(fd);
	say(sock, &o.handles, sizeof(o.handles));
	hear(sock, &to, sizeof(to));
	second = rc_qp(rc, 16);
	self = rc_self(rc, second);
	rc_connect(second, &to);
	memset(rc->mem + 128, 0, 8);
	say(sock, &self, sizeof(self));
	hear(sock, &(char){0}, 1);
	if (memcmp(rc->mem + 128, "survives", 8) != 0)
		rc_die("the importer's WRITE brought something else");
	printf("ok   a program imports device, PD and MR of a dead one and uses them\n");
	expect_alive(rc, qp, &o, "the importer keeps it");
	say(sock, "x", 1);
	if (waitpid(importer, &status, 0) != importer || status != 0)
		rc_die("the importer's status is %d", status);
	expect_dead(rc, qp, &o, "until it closes the device");
	ibv_destroy_qp(second);
	ibv_destroy_qp(qp);
	close(sock);
	close(pair[0]);
	close(pair[1]);
	close(o.sock);
}

int main(void)
{
	static void (*const checks[])(struct rc *) = {dead_peer, forked_child, descriptor_store, imported};
	int status;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (unsigned i = 0; i < COUNT(checks); i++) {
		struct rc rc;
		/* a process each: owners are forked before the peer has a device */
		pid_t pid = fork();

		if (pid == 0) {
			checks[i](&rc);
			_exit(0);
		}
		if (waitpid(pid, &status, 0) != pid || status != 0)
			return 1;
	}
	return 0;
}
