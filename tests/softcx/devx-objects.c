/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * devx-objects.c - keys and scheduling elements through the ordinary libmlx5: to be run under `softcx run`.
 *
 * A queue connected to itself writes through a key that DEVX made over a umem; with the argument "rates", at
 * a rate that mlx5dv_sched_leaf sets. Exits 0 when everything went as promised, else 1 after a line about the
 * failure.
 */
#include "mlx5/prm.h"
#include "tests/lib/rc.h"
#include "util/clock.h"

#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK(cond)                                                                                          \
	do {                                                                                                 \
		if (!(cond)) {                                                                               \
			fprintf(stderr, "devx-objects:%d: %s: %s\n", __LINE__, #cond, strerror(errno));      \
			exit(1);                                                                             \
		}                                                                                            \
	} while (0)

enum { BYTES = 16384, KEY_BYTES = BYTES / 2, IOVA = 0x100000, VARIANT = 0x5a };
enum { MBPS = 160, MESSAGES = 32, SLACK_NS = 1000000 };
/* Fields that only the test of CREATE_MKEY uses: DPDK, mlx5_prm.h */
#define MKEY_UMEM_ID 0x320, 32
#define MKEY_UMEM_OFFSET 0x340, 64

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t *mem;

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};

	CHECK(list && list[0]);
	ctx = mlx5dv_open_device(list[0], &attr);
	CHECK(ctx);
	ibv_free_device_list(list);
	CHECK((pd = ibv_alloc_pd(ctx)));
	CHECK((cq = ibv_create_cq(ctx, 64, NULL, NULL, 0)));
	CHECK((mem = aligned_alloc(4096, BYTES)));
	memset(mem, 0, BYTES);
	CHECK((mr = ibv_reg_mr(pd, mem, BYTES, IBV_ACCESS_LOCAL_WRITE)));
}

static void connect_queue(void)
{
	struct rc rc = {.ctx = ctx, .pd = pd, .cq = cq, .mr = mr};
	struct rc_peer self;

	rc_query_port(&rc);
	qp = rc_qp(&rc, 64);
	self = rc_self(&rc, qp);
	rc_connect(qp, &self);
}

static void post_write(uint32_t rkey, uint64_t remote, uint32_t len)
{
	struct ibv_sge sge = {.addr = (uintptr_t)mem, .length = len, .lkey = mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.rdma = {.remote_addr = remote, .rkey = rkey}};

	CHECK(ibv_post_send(qp, &wr, &bad) == 0);
}

static enum ibv_wc_status completion(void)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		poll(NULL, 0, 0);
	CHECK(n == 1);
	return wc.status;
}

/* ---- keys ------------------------------------------------------------------------------- */

static struct mlx5dv_devx_obj *create_mkey(uint32_t umem, uint32_t octowords, uint8_t *out, size_t out_len)
{
	uint8_t in[PRM_SIZE_create_mkey_in] = {0}, *mkc = in + PRM_create_mkey_in_memory_key_mkey_entry_byte;
	struct mlx5dv_obj dv;
	struct mlx5dv_pd dvpd;

	dv.pd.in = pd;
	dv.pd.out = &dvpd;
	CHECK(mlx5dv_init_obj(&dv, MLX5DV_OBJ_PD) == 0);
	prm_set(in, PRM_in_opcode, PRM_OP_CREATE_MKEY);
	prm_set(in, PRM_create_mkey_in_mkey_umem_valid, 1);
	prm_set(in, MKEY_UMEM_ID, umem);
	prm_set(in, MKEY_UMEM_OFFSET, 4096);
	prm_set(in, PRM_create_mkey_in_translations_octword_actual_size, octowords);
	prm_set(mkc, PRM_mkc_access_mode_1_0, 1); /* pages */
	prm_set(mkc, PRM_mkc_lr, 1);
	prm_set(mkc, PRM_mkc_lw, 1);
	prm_set(mkc, PRM_mkc_rw, 1);
	prm_set(mkc, PRM_mkc_qpn, 0xffffff);
	prm_set(mkc, PRM_mkc_mkey_7_0, VARIANT);
	prm_set(mkc, PRM_mkc_pd, dvpd.pdn);
	prm_set(mkc, PRM_mkc_start_addr, IOVA);
	prm_set(mkc, PRM_mkc_len, KEY_BYTES);
	prm_set(mkc, PRM_mkc_log_page_size, 12);
	memset(out, 0, out_len);
	return mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, out_len);
}

/* Half of the memory from its second page on, under an address and a variant of our choice. Returns the key.
 */
static uint32_t key_over_umem(struct mlx5dv_devx_umem **umem, struct mlx5dv_devx_obj **obj)
{
	uint8_t out[16];
	struct mlx5dv_devx_umem_in pages = {.addr = mem,
		.size = BYTES,
		.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
		.pgsz_bitmap = 4096};
	CHECK((*umem = mlx5dv_devx_umem_reg_ex(ctx, &pages)));
	CHECK(!create_mkey((*umem)->umem_id, 0, out, sizeof(out))); /* no room for the pages */
	CHECK(prm_get(out, PRM_out_status) != 0);
	CHECK(!create_mkey((*umem)->umem_id + 100, 1, out, sizeof(out)));
	CHECK((*obj = create_mkey((*umem)->umem_id, 1, out, sizeof(out))));
	return (uint32_t)prm_get(out, PRM_create_mkey_out_mkey_index) << 8 | VARIANT;
}

static void use_key(uint32_t key)
{
	strcpy((char *)mem, "through a key of DEVX");
	post_write(key, IOVA + KEY_BYTES - 64, 64);
	CHECK(completion() == IBV_WC_SUCCESS);
	CHECK(strcmp((char *)mem + 4096 + KEY_BYTES - 64, "through a key of DEVX") == 0);
}

/* ---- rates ------------------------------------------------------------------------------ */

static uint64_t send_all(uint32_t key)
{
	uint64_t began = clock_ns();

	for (int i = 0; i < MESSAGES; i++)
		post_write(key, IOVA, KEY_BYTES);
	for (int i = 0; i < MESSAGES; i++)
		CHECK(completion() == IBV_WC_SUCCESS);
	return clock_ns() - began;
}

static void limit(uint32_t key)
{
	const uint64_t ns = MESSAGES * KEY_BYTES * 8000ull / MBPS;
	struct mlx5dv_sched_attr attr = {0},
				 share = {.flags = MLX5DV_SCHED_ELEM_ATTR_FLAGS_BW_SHARE, .bw_share = 1};
	struct mlx5dv_sched_node *root, *node;
	struct mlx5dv_sched_leaf *leaf;

	CHECK((root = mlx5dv_sched_node_create(ctx, &attr)));
	attr.parent = root;
	CHECK((node = mlx5dv_sched_node_create(ctx, &attr)));
	share.parent = attr.parent = node;
	CHECK(!mlx5dv_sched_leaf_create(ctx, &share) && errno == EOPNOTSUPP);
	attr.flags = MLX5DV_SCHED_ELEM_ATTR_FLAGS_MAX_AVG_BW;
	attr.max_avg_bw = MBPS;
	CHECK((leaf = mlx5dv_sched_leaf_create(ctx, &attr)));
	CHECK(mlx5dv_modify_qp_sched_elem(qp, leaf, leaf) != 0); /* answers are not limited here */
	CHECK(mlx5dv_modify_qp_sched_elem(qp, leaf, NULL) == 0);
	CHECK(mlx5dv_sched_leaf_destroy(leaf) != 0); /* there is a queue in it */
	CHECK(mlx5dv_sched_node_destroy(node) != 0);
	CHECK(send_all(key) + SLACK_NS >= ns);
	attr.max_avg_bw = 0; /* none */
	CHECK(mlx5dv_sched_leaf_modify(leaf, &attr) == 0);
	send_all(key);
	CHECK(mlx5dv_modify_qp_sched_elem(qp, NULL, NULL) == 0);
	CHECK(mlx5dv_sched_leaf_destroy(leaf) == 0);
	CHECK(mlx5dv_sched_node_destroy(node) == 0);
	CHECK(mlx5dv_sched_node_destroy(root) == 0);
}

int main(int argc, char **argv)
{
	struct mlx5dv_devx_umem *umem;
	struct mlx5dv_devx_obj *obj;
	uint32_t key;

	open_device();
	connect_queue();
	key = key_over_umem(&umem, &obj);
	if (argc > 1 && strcmp(argv[1], "rates") == 0)
		limit(key);
	else
		use_key(key);
	CHECK(mlx5dv_devx_umem_dereg(umem) != 0); /* the key needs it */
	CHECK(mlx5dv_devx_obj_destroy(obj) == 0);
	CHECK(mlx5dv_devx_umem_dereg(umem) == 0);
	post_write(key, IOVA, 8);
	CHECK(completion() == IBV_WC_REM_ACCESS_ERR);
	CHECK(ibv_destroy_qp(qp) == 0);
	CHECK(ibv_destroy_cq(cq) == 0);
	CHECK(ibv_dereg_mr(mr) == 0);
	CHECK(ibv_dealloc_pd(pd) == 0);
	CHECK(ibv_close_device(ctx) == 0);
	free(mem);
	return 0;
}
