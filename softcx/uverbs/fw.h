/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fw.h - the emulated firmware's command interface: mailboxes of big-endian bit fields
 * (mlx5/prm.h) in, actions on the hardware, mailboxes out.
 *
 * Executors return 0, or -EREMOTEIO with status and syndrome in the out mailbox. In mailboxes may
 * hold any bytes; fields beyond their end read as 0 after the length that a command needs was checked.
 */
#ifndef SOFTCX_UVERBS_FW_H
#define SOFTCX_UVERBS_FW_H

#include "softcx/uverbs/prm.h"
#include "softcx/uverbs/uverbs.h"

#include <errno.h>

enum uverbs_fw_status { /* Linux drivers/net/ethernet/mellanox/mlx5/core/cmd.c */
	FW_OK = 0x00,
	FW_BAD_OP = 0x02,
	FW_BAD_PARAM = 0x03,
	FW_BAD_RESOURCE = 0x05,
	FW_BUSY = 0x06,
	FW_LIMIT = 0x08,
	FW_BAD_STATE = 0x10, /* of a QP */
	FW_NO_RESOURCES = 0x0f,
	FW_BAD_IN_LEN = 0x50,
	FW_BAD_OUT_LEN = 0x51,
};

/** Why a command was refused. The numbers are our own: those of real firmware are not public. */
enum uverbs_fw_syndrome {
	FW_SYN_OPCODE = 0x5c0001,     /* this firmware has no such command */
	FW_SYN_LENGTH = 0x5c0002,     /* mailbox too short */
	FW_SYN_CAP_TYPE = 0x5c0003,   /* no such capability page */
	FW_SYN_UMEM = 0x5c0010,       /* no umem of that id in this context */
	FW_SYN_UMEM_RANGE = 0x5c0011, /* queue or doorbell record does not lie in the umem */
	FW_SYN_UMEM_ALIGN = 0x5c0012, /* queue not on a page, doorbell record not on 8 bytes */
	FW_SYN_UMEM_RO = 0x5c0013,    /* the device must write there and may not */
	FW_SYN_UAR = 0x5c0014,        /* UAR page of another context */
	FW_SYN_EQN = 0x5c0015,        /* no such event queue */
	FW_SYN_PD = 0x5c0016,         /* no such PD in this context */
	FW_SYN_CQN = 0x5c0017,        /* no such CQ in this context */
	FW_SYN_SRQN = 0x5c0018,       /* no such SRQ in this context */
	FW_SYN_SIZE = 0x5c0019,       /* log size out of range */
	FW_SYN_TYPE = 0x5c001a,       /* service or queue type that this device lacks */
	FW_SYN_STATE = 0x5c0020,      /* the QP is not in the state that the command starts from */
	FW_SYN_MTU = 0x5c0021,        /* not an MTU */
	FW_SYN_GID = 0x5c0022,        /* source address index beyond the table */
	FW_SYN_RD_ATOMIC = 0x5c0023,  /* more outstanding READs than the device has room for */
	FW_SYN_MAX_MSG = 0x5c0027,    /* longer messages than the device can send */
	FW_SYN_PORT = 0x5c0024,       /* no such port */
	FW_SYN_FIELD = 0x5c0025,      /* asks to modify what cannot be modified */
	FW_SYN_LOOPBACK = 0x5c0028,   /* the port has no forced loopback */
	FW_SYN_ELEMENT = 0x5c0026,    /* no such scheduling element here, or of the wrong type */
	FW_SYN_DEVICE = 0x5c0030,     /* the device itself refused */
	FW_SYN_PATH = 0x5c0031,       /* the path sets what is reserved on this link layer */
	FW_SYN_STAT_RATE = 0x5c0032,  /* a static rate that the device does not have */
	FW_SYN_SPORT = 0x5c0033,      /* a UDP source port out of the range of RoCE v2 */
	FW_SYN_OFFSET = 0x5c0035,     /* an offset in a umem whose pages are larger than that */
	FW_SYN_TS_FORMAT = 0x5c0034,  /* timestamps of a kind that the device does not have */
};

struct uverbs_umem {
	struct uverbs_obj obj;
	struct hw_mem *mem;
	uint64_t va, len;
	uint64_t max_page; /* the largest page that firmware may have been given; 0: any */
};

/** Umem ids are handles + 1: 0 is never one. */
static inline uint32_t uverbs_umem_id(const struct uverbs_umem *umem)
{
	return umem->obj.handle + 1;
}

struct uverbs_sub;
struct uverbs_devx;

/** Called when an object's event fires; @event: EQE type, 0 for a completion. */
typedef void uverbs_fw_event(struct uverbs_devx *devx, int event);

/** An object made by a firmware command: a CQ, a QP, a receive memory pool, a memory key or a scheduling
 * element. */
struct uverbs_devx {
	struct uverbs_obj obj;
	struct hw_cq *cq; /* one of these five */
	struct hw_qp *qp;
	struct hw_srq *srq;
	struct hw_rate *rate;
	uint32_t mkey;
	struct uverbs_umem *db; /* doorbell record: umem and offset */
	uint64_t db_off;
	union {
		uint8_t cqc[PRM_SIZE_cqc];
		uint8_t qpc[PRM_SIZE_qpc];
		uint8_t mkc[PRM_SIZE_mkc];
		uint8_t element[PRM_SIZE_sched_element];
	}; /* as created and modified; counters and state come from the device */
	uverbs_fw_event *on_event;
	LIST_HEAD(, uverbs_sub) subs; /* of devx.c */
};

/** Queue behind a handle: a DEVX object or one of the verbs ABI. */
struct uverbs_fw_target {
	struct uverbs_devx *devx; /* NULL for a verbs object */
	struct hw_cq *cq;
	struct hw_qp *qp;
};

struct uverbs_mbox {
	const uint8_t *in;
	size_t in_len;
	uint8_t *out; /* zeroed by the caller */
	size_t out_len;
};

int uverbs_fw_create(struct uverbs_file *file, const struct uverbs_mbox *m, uverbs_fw_event *on_event,
	struct uverbs_devx **devx);
int uverbs_fw_modify(struct uverbs_file *file, const struct uverbs_fw_target *t, const struct uverbs_mbox *m);
int uverbs_fw_query(struct uverbs_file *file, const struct uverbs_fw_target *t, const struct uverbs_mbox *m);
int uverbs_fw_general(struct uverbs_file *file, const struct uverbs_mbox *m);
/** -EREMOTEIO, with the reason in the mailbox. */
int uverbs_fw_refuse(const struct uverbs_mbox *m, enum uverbs_fw_status status, enum uverbs_fw_syndrome why);

/* ---- for fw-qp.c; checks return as executors do ---------------------------------- */

unsigned uverbs_fw_opcode(const struct uverbs_mbox *m);
int uverbs_fw_lengths(const struct uverbs_mbox *m, size_t in, size_t out);
int uverbs_fw_device_refuses(const struct uverbs_mbox *m, int r); /* a command that looked right */

struct uverbs_pd *uverbs_fw_pd(struct uverbs_file *file, uint32_t pdn); /* NULL: not of this context */
/** A CQ of verbs or of DEVX, whose objects are the arguments of their CQs. NULL: not of this context. */
struct uverbs_obj *uverbs_fw_cq(struct uverbs_file *file, uint32_t cqn, struct hw_cq **cq);
/** A shared receive queue of verbs, or a receive memory pool: both have a number of one kind. */
struct uverbs_obj *uverbs_fw_srq(struct uverbs_file *file, uint32_t srqn, struct hw_srq **srq);
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
/** A callback of the hardware; @arg: the object. */
void uverbs_fw_on_event(void *arg, int event);
/** Applies the queue group that the extension of INIT2INIT or RTS2RTS has: the rate of the queue. */
int uverbs_fw_modify_queue_group(struct uverbs_file *file, struct hw_qp *qp, const struct uverbs_mbox *m);

/* ---- fw-qp.c: QPs, targets and receive memory pools ------------------------------ */

int uverbs_fw_create_qp(struct uverbs_file *file, const struct uverbs_mbox *m, uverbs_fw_event *handler,
	struct uverbs_devx **out);
/** -EINVAL: not a command that modifies a QP. */
int uverbs_fw_modify_qp(
	struct uverbs_file *file, const struct uverbs_fw_target *t, const struct uverbs_mbox *m);
int uverbs_fw_query_qp(const struct uverbs_fw_target *t, const struct uverbs_mbox *m);

int uverbs_fw_create_dct(struct uverbs_file *file, const struct uverbs_mbox *m, uverbs_fw_event *handler,
	struct uverbs_devx **out);
int uverbs_fw_create_rmp(struct uverbs_file *file, const struct uverbs_mbox *m, uverbs_fw_event *handler,
	struct uverbs_devx **out);

#endif
