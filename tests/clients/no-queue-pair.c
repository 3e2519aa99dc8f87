/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * no-queue-pair HOST PORT - connects with libreddn on a machine whose RDMA device has no queue pair left.
 * Prints the library's error; exit status 2, as for the tools. Part of errors.sh.
 */
#include "libclient/reddn.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>

/* Replaces the function of librdmacm, which fails like this on a full device. */
int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	(void)id;
	(void)attr;
	errno = ENOMEM;
	return -1;
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
