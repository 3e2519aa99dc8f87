/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * yield.c - a poller that finds nothing lets others run. Two programs that spin on their CQs and the NIC
 * process on two cores otherwise wait for each other's time slices, milliseconds at each turn. ibv_poll_cq()
 * is an inline call through the context, so what ibv_open_device() returns is where it can be reached.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <stddef.h>

enum { EMPTY_POLLS = 16 }; /* in a row, before yielding: some microseconds */

typedef int poll_fn(struct ibv_cq *cq, int n, struct ibv_wc *wc);

static poll_fn *provider_poll; /* the same for all contexts of a provider */
static __thread unsigned empty __attribute__((tls_model("initial-exec")));

static int poll_or_yield(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int got = provider_poll(cq, n, wc);

	if (got != 0) {
		empty = 0;
	} else if (++empty >= EMPTY_POLLS) {
		empty = 0;
		sched_yield();
	}
	return got;
}

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

	if (ctx && ctx->ops.poll_cq && (!provider_poll || provider_poll == ctx->ops.poll_cq)) {
		provider_poll = ctx->ops.poll_cq;
		ctx->ops.poll_cq = poll_or_yield;
	}
	return ctx;
}
