/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * leaky.c - a program that leaves objects behind, for the test of the leak check.
 * leaky clean: destroys all. leaky verbs: not its PD and MR. leaky cm: not a listening id. leaky fail: like
 * verbs, and fails. leaky child: a child leaves a PD.
 */
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char buffer[4096];

static int verbs(int clean)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	struct ibv_mr *mr = pd ? ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE) : NULL;

	if (!mr) {
		perror("leaky");
		return 1;
	}
	if (clean) {
		ibv_dereg_mr(mr);
		ibv_dealloc_pd(pd);
		ibv_close_device(context);
	}
	ibv_free_device_list(list);
	return 0;
}

static int cm(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rdma_cm_id *id;

	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) ||
		rdma_bind_addr(id, (struct sockaddr *)&sin) || rdma_listen(id, 1)) {
		perror("leaky");
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "clean";
	int status = 1;

	if (strcmp(what, "cm") == 0)
		return cm();
	if (strcmp(what, "fail") == 0)
		return verbs(0) ? 1 : 9;
	if (strcmp(what, "child") == 0) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(verbs(0));
		waitpid(pid, &status, 0);
		return WEXITSTATUS(status);
	}
	return verbs(strcmp(what, "clean") == 0);
}
