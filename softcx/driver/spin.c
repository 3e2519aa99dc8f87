/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * spin.c - programs that spin on ibv_poll_cq() give way to the NIC.
 *
 * A real NIC works beside the CPUs. The emulated one needs a CPU, and so does the peer: two pollers that spin
 * through their time slices on a small machine make every message take milliseconds. So a poll that
 * has found nothing a few times in a row yields. ibv_poll_cq() is inline and calls through the context, which is
 * where it is replaced, as the context is opened.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <sched.h>

enum { EMPTY_POLLS = 16 }; /* costs less than the yield that follows */

typedef int poll_fn(struct ibv_cq *cq, int n, struct ibv_wc *wc);

static poll_fn *real_poll;
static __thread unsigned empty __attribute__((tls_model("initial-exec")));

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int got = real_poll(cq, n, wc);

	if (got) {
		empty = 0;
	} else if (++empty >= EMPTY_POLLS) {
		empty = 0;
		sched_yield();
	}
	return got;
}

#undef ibv_open_device /* a macro in newer headers */
__attribute__((visibility("default"))) struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *(*next)(struct ibv_device *) = (struct ibv_context * (*)(struct ibv_device *))
		dlvsym(RTLD_NEXT, "ibv_open_device", "IBVERBS_1.1");
	struct ibv_context *context = next ? next(device) : NULL;

	if (!context)
		return NULL;
	/* libmlx5 has one function for each version of CQEs, and all devices here have the same */
	if (!real_poll)
		real_poll = context->ops.poll_cq;
	if (context->ops.poll_cq == real_poll)
		context->ops.poll_cq = poll_cq;
	return context;
}
