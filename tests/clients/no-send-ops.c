/* SPDX-License-Identifier: BSD-2-Clause */
/* no-send-ops.c - preloaded into a client: its provider has ibv_post_send() only, as those of older NICs. */
#include <dlfcn.h>
#include <errno.h>
#include <rdma/rdma_cma.h>

int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	static int (*next)(struct rdma_cm_id *, struct ibv_qp_init_attr_ex *);

	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		errno = EOPNOTSUPP;
		return -1;
	}
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "rdma_create_qp_ex");
	return next(id, attr);
}
