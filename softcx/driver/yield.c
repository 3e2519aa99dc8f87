/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * yield.c - a poller that finds nothing lets others run. Two programs that spin on their CQs and the NIC
 * process on two cores otherwise wait for each other's time slices, milliseconds at each turn. ibv_poll_cq()
 * is an inline call through the context, so what ibv_open_device() returns is where it can be reached; so is
 * ibv_start_poll() through the CQ, and that CQ through the context.
 */
#include "util/array.h"

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EMPTY_POLLS = 16 }; /* in a row, before yielding: some microseconds */

typedef int poll_fn(struct ibv_cq *cq, int n, struct ibv_wc *wc);

static poll_fn *provider_poll; /* the same for all contexts of a provider */
static __thread unsigned empty __attribute__((tls_model("initial-exec")));

static void count_empty(bool found_nothing)
{
	if (!found_nothing) {
		empty = 0;
	} else if (++empty >= EMPTY_POLLS) {
		empty = 0;
		sched_yield();
	}
}

static int poll_or_yield(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int got = provider_poll(cq, n, wc);

	count_empty(got == 0);
	return got;
}

/* ---- extended CQs ----------------------------------------------------------------------- */

typedef int start_fn(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr);
typedef struct ibv_cq_ex *create_fn(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr);

static create_fn *provider_create;
/* Each CQ has the variant that its attributes ask for. A CQ that finds no place here stays as it is. */
static struct {
	_Atomic(struct ibv_cq_ex *) cq;
	start_fn *start;
} extended[1024];

static unsigned place_of(const struct ibv_cq_ex *cq)
{
	return (unsigned)((uintptr_t)cq >> 6) % (COUNT(extended));
}

static int start_or_yield(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	int rc = extended[place_of(cq)].start(cq, attr);

	count_empty(rc == ENOENT);
	return rc;
}

static struct ibv_cq_ex *create_extended(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq_ex *cq = provider_create(ctx, attr), *none = NULL;
	unsigned i = place_of(cq);

	/* A CQ at the address of one that was destroyed takes its place */
	if (cq && cq->start_poll &&
		(atomic_compare_exchange_strong(&extended[i].cq, &none, cq) || none == cq)) {
		extended[i].start = cq->start_poll;
		cq->start_poll = start_or_yield;
	}
	return cq;
}

/* ---- the context ------------------------------------------------------------------------ */

static struct ibv_context *(*find_open(void))(struct ibv_device *)
{
	void *fn = dlsym(RTLD_NEXT, "ibv_open_device");

	if (!fn) {
		/* loaded by dlopen(), out of sight of RTLD_NEXT */
		void *lib = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);

		fn = lib ? dlsym(lib, "ibv_open_device") : NULL;
	}
	return (struct ibv_context * (*)(struct ibv_device *)) fn;
}

#undef ibv_open_device
__attribute__((visibility("default"))) struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *(*next)(struct ibv_device *) = find_open();
	struct ibv_context *ctx = next ? next(device) : NULL;
	struct verbs_context *vctx;

	if (ctx && ctx->ops.poll_cq && (!provider_poll || provider_poll == ctx->ops.poll_cq)) {
		provider_poll = ctx->ops.poll_cq;
		ctx->ops.poll_cq = poll_or_yield;
	}
	vctx = ctx ? verbs_get_ctx_op(ctx, create_cq_ex) : NULL;
	if (vctx && (!provider_create || provider_create == vctx->create_cq_ex)) {
		provider_create = vctx->create_cq_ex;
		vctx->create_cq_ex = create_extended;
	}
	return ctx;
}
