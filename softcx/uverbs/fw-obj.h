/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fw-obj.h - helpers of the firmware commands, and the commands that have files of their own. Internal to
 * fw*.c.
 *
 * Checks return 0, or -EREMOTEIO with the reason in the out mailbox.
 */
#ifndef SOFTCX_UVERBS_FW_OBJ_H
#define SOFTCX_UVERBS_FW_OBJ_H

#include "softcx/uverbs/fw.h"
#include "softcx/uverbs/pd.h"

#include <errno.h>

unsigned uverbs_fw_opcode(const struct uverbs_mbox *m);
int uverbs_fw_lengths(const struct uverbs_mbox *m, size_t in, size_t out);
int uverbs_fw_device_refuses(const struct uverbs_mbox *m, int r); /* a command that looked right */

/* ---- fw-parts.c: what a new object consists of ----------------------------------- */

struct uverbs_pd *uverbs_fw_pd(struct uverbs_file *file, uint32_t pdn); /* NULL: not of this context */
/** A CQ of verbs or of DEVX, whose objects are the arguments of their CQs. NULL: not of this context. */
struct uverbs_obj *uverbs_fw_cq(struct uverbs_file *file, uint32_t cqn, struct hw_cq **cq);
/** A shared receive queue of verbs, or a receive memory pool: both have a number of one kind. */
struct uverbs_obj *uverbs_fw_srq(struct uverbs_file *file, uint32_t srqn, struct hw_srq **srq);
/** @len bytes at @off of umem @id, whose address is a multiple of @align; @write: the device writes there. */
int uverbs_fw_umem(struct uverbs_file *file, const struct uverbs_mbox *m, uint32_t id, uint64_t off,
	uint64_t len, unsigned align, bool write, struct uverbs_umem **umem);
/**
 * A queue or key may begin at @off. Linux chooses pages of any size for a umem whose pgsz_bitmap does not
 * limit them, and then "the user promises not to use umem_offset != 0" (hw/mlx5/devx.c,
 * devx_umem_reg_cmd_alloc); with a limit offsets are multiples of a 64th of a page. Doorbell records may be
 * anywhere: DPDK and UCX place them so.
 */
int uverbs_fw_umem_offset(const struct uverbs_mbox *m, const struct uverbs_umem *umem, uint64_t off);
/** Where @off of a umem is in the memory of the hardware that it has: .mem and this are what queues take. */
uint64_t uverbs_fw_mem_off(const struct uverbs_umem *umem, uint64_t off);

/* Where a mailbox places the buffer and the doorbell record of a queue. */
struct uverbs_fw_place {
	uint32_t umem, db_umem;
	uint64_t off, db_off;
	uint64_t bytes; /* 0: the queue has no buffer */
	bool write;     /* the device writes to the buffer; it only reads doorbell records */
};

struct uverbs_fw_ring {
	struct uverbs_umem *buf, *db; /* buf: NULL without a buffer */
	uint64_t off, db_off;
};

int uverbs_fw_ring(struct uverbs_file *file, const struct uverbs_mbox *m, const struct uverbs_fw_place *at,
	struct uverbs_fw_ring *ring);
void uverbs_fw_need_ring(struct uverbs_devx *devx, const struct uverbs_fw_ring *ring);
/** Word 0 or 1 of the doorbell record. */
uint32_t uverbs_fw_doorbell(const struct uverbs_devx *devx, unsigned word);
/** NULL: no memory. */
struct uverbs_devx *uverbs_fw_new(struct uverbs_file *file, uverbs_fw_event *handler);

/** Callbacks of the hardware; @arg: the object. */
void uverbs_fw_on_comp(void *arg);
void uverbs_fw_on_event(void *arg, int event);

/* ---- fw-cq.c --------------------------------------------------------------------- */

int uverbs_fw_create_cq(struct uverbs_file *file, const struct uverbs_mbox *m, uverbs_fw_event *handler,
	struct uverbs_devx **out);
int uverbs_fw_modify_cq(const struct uverbs_fw_target *t, const struct uverbs_mbox *m);
int uverbs_fw_query_cq(const struct uverbs_fw_target *t, const struct uverbs_mbox *m);

/* ---- fw-qp.c --------------------------------------------------------------------- */

int uverbs_fw_create_qp(struct uverbs_file *file, const struct uverbs_mbox *m, uverbs_fw_event *handler,
	struct uverbs_devx **out);
/** -EINVAL: not a command that modifies a QP. */
int uverbs_fw_modify_qp(
	struct uverbs_file *file, const struct uverbs_fw_target *t, const struct uverbs_mbox *m);
int uverbs_fw_query_qp(const struct uverbs_fw_target *t, const struct uverbs_mbox *m);

/* ---- fw-dct.c -------------------------------------------------------------------- */

int uverbs_fw_create_dct(struct uverbs_file *file, const struct uverbs_mbox *m, uverbs_fw_event *handler,
	struct uverbs_devx **out);

/* ---- fw-mkey.c ------------------------------------------------------------------- */

int uverbs_fw_create_mkey(struct uverbs_file *file, const struct uverbs_mbox *m, uverbs_fw_event *handler,
	struct uverbs_devx **out);
int uverbs_fw_query_mkey(const struct uverbs_devx *devx, const struct uverbs_mbox *m);

/* ---- fw-path.c ------------------------------------------------------------------- */

int uverbs_fw_read_port(const struct uverbs_mbox *m, const uint8_t *ads);
/** The address path of a connected queue pair, port included. */
int uverbs_fw_read_path(
	struct uverbs_file *file, const struct uverbs_mbox *m, const uint8_t *ads, struct hw_av *av);
void uverbs_fw_write_path(uint8_t *ads, const struct hw_av *av);

/* ---- fw-opcodes.c ---------------------------------------------------------------- */

/** Commands that Linux passes to firmware: those without an object, and those that make one. */
bool uverbs_fw_is_general(unsigned op);
bool uverbs_fw_creates(const struct uverbs_mbox *m);

/* ---- fw-rmp.c -------------------------------------------------------------------- */

int uverbs_fw_create_rmp(struct uverbs_file *file, const struct uverbs_mbox *m, uverbs_fw_event *handler,
	struct uverbs_devx **out);

/* ---- fw-sched.c ------------------------------------------------------------------ */

int uverbs_fw_create_general(struct uverbs_file *file, const struct uverbs_mbox *m, uverbs_fw_event *handler,
	struct uverbs_devx **out);
int uverbs_fw_modify_element(struct uverbs_devx *devx, const struct uverbs_mbox *m);
int uverbs_fw_query_element(const struct uverbs_devx *devx, const struct uverbs_mbox *m);
/** Applies the queue group that the extension of INIT2INIT or RTS2RTS has: the rate of the queue. */
int uverbs_fw_modify_queue_group(struct uverbs_file *file, struct hw_qp *qp, const struct uverbs_mbox *m);

#endif
