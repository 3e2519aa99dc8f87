/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slow-verbs.c - preloaded into a daemon or a client: calls of libibverbs that wait, as Linux does for an
 * address that nobody answers for and for a region of gigabytes, and one of librdmacm, as on a busy machine.
 * The test sets how long: folder $SLOW_VERBS has a file for each call,
 *
 *   address   ibv_create_ah() for addresses in 127.2.0.0/16, 127.3.0.0/16 and so on
 *   register  ibv_reg_mr_iova2() of memory at IOVAs of regions
 *   close     ibv_dereg_mr() of the same
 *   connect   rdma_connect()
 *   sent      the same, with $SLOW_SENT set, when the request has been sent
 *
 * with the word "pass" or "fail". Without the file the call waits for it, and makes a file with ".waits"
 * behind its name.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static FILE *open_in(const char *name, const char *suffix, const char *mode)
{
	const char *dir = getenv("SLOW_VERBS");
	char path[PATH_MAX];

	if (!dir)
		return NULL;
	snprintf(path, sizeof(path), "%s/%s%s", dir, name, suffix);
	return fopen(path, mode);
}

/* True: the call may go on */
static int may_pass(const char *name)
{
	char word[8] = "";
	FILE *f;

	while (!(f = open_in(name, "", "re"))) {
		FILE *waits = open_in(name, ".waits", "we");

		if (waits)
			fclose(waits);
		usleep(10000);
	}
	if (!fgets(word, sizeof(word), f))
		word[0] = '\0';
	fclose(f);
	return strncmp(word, "pass", 4) == 0;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ibv_ah *(*real)(struct ibv_pd *, struct ibv_ah_attr *) =
		(struct ibv_ah * (*)(struct ibv_pd *, struct ibv_ah_attr *))
			dlvsym(RTLD_NEXT, "ibv_create_ah", "IBVERBS_1.1");
	const uint8_t *gid = attr->grh.dgid.raw;

	if (gid[12] == 127 && gid[13] >= 2 && !may_pass("address")) {
		errno = ETIMEDOUT;
		return NULL;
	}
	return real(pd, attr);
}

enum { KEYS = 64 };

static struct ibv_mr *of_regions[KEYS];

static void note(struct ibv_mr *mr)
{
	for (unsigned i = 0; mr && i < KEYS; i++)
		if (__sync_bool_compare_and_swap(&of_regions[i], NULL, mr))
			return;
}

static int forget(struct ibv_mr *mr)
{
	for (unsigned i = 0; i < KEYS; i++)
		if (__sync_bool_compare_and_swap(&of_regions[i], mr, NULL))
			return 1;
	return 0;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	int (*real)(struct ibv_mr *) =
		(int (*)(struct ibv_mr *))dlvsym(RTLD_NEXT, "ibv_dereg_mr", "IBVERBS_1.1");

	if (forget(mr))
		may_pass("close");
	return real(mr);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *mem, size_t size, uint64_t iova, unsigned access)
{
	struct ibv_mr *(*real)(struct ibv_pd *, void *, size_t, uint64_t, unsigned) =
		(struct ibv_mr * (*)(struct ibv_pd *, void *, size_t, uint64_t, unsigned))
			dlsym(RTLD_NEXT, "ibv_reg_mr_iova2");
	struct ibv_mr *mr;

	if (iova >> 40 && !may_pass("register")) {
		errno = EFAULT;
		return NULL;
	}
	mr = real(pd, mem, size, iova, access);
	if (iova >> 40)
		note(mr);
	return mr;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	int (*real)(struct rdma_cm_id *, struct rdma_conn_param *) =
		(int (*)(struct rdma_cm_id *, struct rdma_conn_param *))dlsym(RTLD_NEXT, "rdma_connect");

	int r = may_pass("connect") ? real(id, param) : -1;

	if (r == 0 && getenv("SLOW_SENT"))
		may_pass("sent");
	return r;
}
