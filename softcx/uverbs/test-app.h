/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test-app.h - the calling application of the uverbs tests, and the driver: memory is our own, commands are
 * built by hand, and each question to the driver costs one NIC_AGAIN. Helpers return what the command
 * returned, 0 instead of the bytes consumed.
 */
#ifndef SOFTCX_UVERBS_TEST_APP_H
#define SOFTCX_UVERBS_TEST_APP_H

#include "tests/lib/cmocka.h"

#include "mlx5/prm.h"
#include "softcx/proto/call.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ARENA = 1 << 20, MAX_KNOWN = 64, MAX_ATTRS = 16 };

struct app {
	struct hw_dev *dev;
	struct uverbs_file *file;
	uint8_t *arena; /* page-aligned memory that may be pinned */
	size_t used;
	struct {
		uint64_t va, len;
	} known[MAX_KNOWN]; /* ranges that the driver has been asked for */
	unsigned num_known, again;
	uint64_t known_fds;
	uint64_t fuzz; /* state of the generator; not 0: commands are damaged before they are given */
	int async_fd;
	uint32_t uar_page;
	uint64_t *uar;
};
extern struct app app;

struct nic_call {
	const uint8_t *bytes;
	size_t len;
	bool ioctl;
};

#define CMD(number, req) app_cmd(number, &(req), sizeof(req), NULL, 0, 0, 0, NULL)

#define CMD_OUT(number, req, resp)                                                                           \
	app_cmd(number, &(req), sizeof(req), NULL, 0, sizeof(*(resp)), 0, (void **)&(resp))

struct ioc {
	struct { /* as struct ib_uverbs_ioctl_hdr, without its flexible array */
		uint16_t length, object_id, method_id, num_attrs;
		uint64_t reserved1;
		uint32_t driver_id, reserved2;
	} hdr;
	struct ib_uverbs_attr attrs[MAX_ATTRS];
};

struct cq {
	uint32_t handle, cqn;
	uint8_t *ring;
	uint32_t *db;
};

struct qp {
	uint32_t handle, qpn, dest; /* connected to itself unless a test changes that */
	uint8_t *buf;
	uint32_t *db;
	uint16_t pi;
};

enum { RQ_BYTES = 16 * 64 };

enum {
	TO_INIT = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	TO_RTR = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		 IBV_QP_MIN_RNR_TIMER,
	TO_RTS = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		 IBV_QP_MAX_QP_RD_ATOMIC,
};

struct devx_cq {
	uint64_t handle;
	uint32_t cqn;
};

enum { CQ_OFF = 0, QP_OFF = 4096, DB_OFF = 8192, UMEM = 12288 };

/** A context with queues in one umem. */
struct devx_queues {
	uint32_t pd, pdn, umem;
	uint64_t umem_handle;
	uint8_t *mem; /* UMEM bytes of it */
	struct devx_cq cq;
	uint64_t qp;
	uint32_t qpn;
};

/** A file on a fresh device; closing it must leave nothing on the device. */
int app_setup(void **state);
/** The same on a device with this profile, which outlives it. */
int app_setup_profile(const struct profile *profile);
int app_teardown(void **state);

/** Zeroed; fails the test when the arena is full. */
void *app_arena_alloc(size_t len, size_t align);
uint64_t app_va(const void *p);
void app_run(void); /* the device, until it is quiet */
uint64_t app_rnd(uint64_t *s);

/** A legacy command: core and driver structures one after the other, both ways; @resp: the answer, in the
 * arena. */
ssize_t app_cmd(uint32_t number, void *req, size_t req_len, const void *drv, size_t drv_len, size_t resp_len,
	size_t drv_resp_len, void **resp);

void app_ioc_start(struct ioc *c, uint16_t object, uint16_t method);
struct ib_uverbs_attr *app_ioc_add(struct ioc *c, uint16_t id, uint16_t len, uint64_t data);
struct ib_uverbs_attr *app_ioc_in(struct ioc *c, uint16_t id, const void *p, uint16_t len);
void *app_ioc_out(struct ioc *c, uint16_t id, uint16_t len);
int app_ioc_run(struct ioc *c);
int app_destroy_by_ioctl(uint16_t object, uint16_t method, uint16_t id, uint64_t handle);

ssize_t app_get_context(void);
void app_open_context(void); /* and a UAR page, mapped */
uint32_t app_new_pd(uint32_t *pdn);
ssize_t app_reg_mr(uint32_t pd, void *p, uint64_t len, uint64_t iova, uint32_t access,
	struct ib_uverbs_reg_mr_resp **resp);
ssize_t app_new_cq(struct cq *cq, uint32_t cqe, int channel);
void app_arm_cq(const struct cq *cq, uint32_t ci);
ssize_t app_new_qp(struct qp *qp, uint32_t pd, const struct cq *cq, uint8_t type);
ssize_t app_modify(const struct qp *qp, uint32_t mask, uint8_t state);
/** One signalled WQE of a single WQEBB into the 64-WQEBB ring at @sq: ctrl, then @seg. */
void app_post(uint8_t *sq, uint32_t *db, uint32_t qpn, uint16_t *pi, uint8_t op, uint8_t ds, const void *seg);
unsigned app_waiting(int fd); /* is there something to read */

/** With pages of 4 KiB, so that queues can be at any multiple of that. */
int app_umem_reg(const void *p, uint64_t len, uint32_t access, uint32_t *id, uint64_t *handle);
/** @pgsz_bitmap: 0: none, so pages are of any size. */
int app_umem_reg_pages(
	const void *p, uint64_t len, uint32_t access, uint64_t pgsz_bitmap, uint32_t *id, uint64_t *handle);
/** @method: create, modify or query; @handle is where a new one goes. */
int app_devx(
	uint16_t method, uint64_t *handle, const void *in, uint16_t in_len, uint16_t out_len, uint8_t **out);
int app_devx_cq_new(struct devx_cq *cq, uint32_t umem, uint64_t off, uint64_t db_off, uint8_t **out);
int app_devx_qp_new(uint64_t *handle, uint32_t *qpn, uint32_t pdn, uint32_t cqn, uint32_t umem, uint64_t off,
	uint64_t db_off, uint8_t **out);
/** The context, the umem and a CQ in it; with the second, a QP too. */
void app_open_devx_cq(struct devx_queues *q);
void app_open_devx_qp(struct devx_queues *q);
int app_devx_qp_to(uint64_t handle, uint32_t qpn, uint16_t opcode, uint8_t mtu, uint8_t **out);
/** The syndrome of a refused command. */
uint32_t app_syndrome(const uint8_t *out);
/** QUERY_HCA_CAP of capability page @type. */
int app_query_caps(uint16_t type, uint8_t **page);
int app_subscribe(int fd, uint64_t obj, uint16_t event, uint64_t cookie);
int app_event_channel(uint32_t flags);

#endif
