/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * no-queue-pair HOST PORT - connects with libreddn on a machine whose RDMA device has no queue pair left.
 * Prints the library's error; exit status 2, as for the tools. Part of errors.sh.
 */
#include "libclient/reddn.h"

#include <dlfcn.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>

static struct ibv_qp *fail_ex(struct ibv_context *verbs, struct ibv_qp_init_attr_ex *attr)
{
	(void)verbs;
	(void)attr;
	errno = ENOMEM;
	return NULL;
}

/* These replace functions of libibverbs and librdmacm, and fail or make it fail as a full device does. */
struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	(void)pd;
	(void)attr;
	errno = ENOMEM;
	return NULL;
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	static int (*next)(struct rdma_cm_id *, int);

	verbs_get_ctx(id->verbs)->create_qp_ex = fail_ex;
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "rdma_resolve_route");
	return next(id, timeout_ms);
}

int main(int argc, char **argv)
{
	struct reddn_options opt = {.offload = "x"};
	struct reddn *c;
	char err[256];
	int r;

	if (argc != 3)
		return 1;
	opt.host = argv[1];
	opt.port = (uint16_t)atoi(argv[2]);
	r = reddn_connect(&c, &opt, err, sizeof(err));
	printf("%d: %s\n", r, r < 0 ? err : "connected");
	if (r == 0)
		reddn_close(c);
	return r == -ENOMEM ? 2 : 1;
}
