/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * no-send-ops.c - preloaded into a client: its provider has ibv_post_send() and ibv_poll_cq() only, as those
 * of older NICs. What it refuses is reached through the context of an id that has an address.
 */
#include <dlfcn.h>
#include <errno.h>
#include <rdma/rdma_cma.h>

static struct ibv_qp *(*create_qp)(struct ibv_context *, struct ibv_qp_init_attr_ex *);

static struct ibv_qp *refuse_send_ops(struct ibv_context *verbs, struct ibv_qp_init_attr_ex *attr)
{
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return create_qp(verbs, attr);
}

static struct ibv_cq_ex *refuse_cq(struct ibv_context *verbs, struct ibv_cq_init_attr_ex *attr)
{
	(void)verbs;
	(void)attr;
	errno = EOPNOTSUPP;
	return NULL;
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	static int (*next)(struct rdma_cm_id *, int);
	struct verbs_context *verbs = verbs_get_ctx(id->verbs);

	if (verbs->create_qp_ex != refuse_send_ops)
		create_qp = verbs->create_qp_ex;
	verbs->create_qp_ex = refuse_send_ops;
	verbs->create_cq_ex = refuse_cq;
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "rdma_resolve_route");
	return next(id, timeout_ms);
}
