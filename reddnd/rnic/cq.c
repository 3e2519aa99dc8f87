/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/cq.h"

#include "mlx5/barrier.h"
#include "mlx5/prm.h"
#include "reddnd/rnic/devx.h"
#include "reddnd/rnic/internal.h"
#include "reddnd/util/log.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

enum { UAR_CQ_DOORBELL = 0x20, DB_CONSUMER = 0, DB_ARM = 1 };
enum { ARM_SN_SHIFT = 28 };
#define ARM_ERRORS_ONLY (1u << 24)

enum { EVENT_COMP = 0 }; /* Linux include/linux/mlx5/device.h */

static int watch_cq(struct rnic_cq *cq, const struct rnic_cq_attr *attr)
{
	const uint16_t event = EVENT_COMP;
	int r = rnic_queue_subscribe(cq->dev, attr->events, cq->handle, &event, 1, attr->cookie);

	return r < 0 ? log_errno(r, "cannot subscribe to the events of a completion queue") : 0;
}

/* It is armed, or not, as the daemon before this one left it. The device compares the number of an arming
 * with that of the last event, so the next one differs from the last in the doorbell record. */
static int adopt_cq(struct rnic_cq *cq, const struct rnic_block *block, const struct rnic_cq_attr *attr)
{
	const struct ledger_object *o = rnic_find_object(block->slot, LEDGER_CQ, attr->cqes_off);

	*cq = (struct rnic_cq){0};
	if (!o || o->entries != 1u << attr->log_size || o->db_off != attr->db_off ||
		o->cookie != attr->cookie)
		return -EBADMSG;
	*cq = (struct rnic_cq){
		.dev = block->dev,
		.slot = block->slot,
		.handle = o->handle,
		.cqn = o->number,
		.log_size = attr->log_size,
		.cqes = block->mem + attr->cqes_off,
		.db = (uint32_t *)(block->mem + attr->db_off),
	};
	cq->consumer = be32toh(cq->db[DB_CONSUMER]) & 0xffffff;
	cq->arm_sn = (be32toh(cq->db[DB_ARM]) >> ARM_SN_SHIFT) + 1;
	return watch_cq(cq, attr);
}

int rnic_cq_init(struct rnic_cq *cq, const struct rnic_block *block, const struct rnic_cq_attr *attr)
{
	uint8_t in[PRM_SIZE_create_cq_in] = {0}, *cqc = in + PRM_create_cq_in_cq_context_byte;
	struct rnic_device *dev = block->dev;
	int r;

	if (block->adopted)
		return adopt_cq(cq, block, attr);
	*cq = (struct rnic_cq){
		.log_size = attr->log_size,
		.cqes = block->mem + attr->cqes_off,
		.db = (uint32_t *)(block->mem + attr->db_off),
	};
	for (size_t i = 0; i < 1u << cq->log_size; i++)
		cq->cqes[i * RNIC_CQE_BYTES + CQE_OP_OWN] = CQE_OP_INVALID << 4 | 1;
	cq->db[DB_CONSUMER] = cq->db[DB_ARM] = 0;
	prm_set(in, PRM_in_opcode, PRM_OP_CREATE_CQ);
	prm_set(in, PRM_create_cq_in_cq_umem_offset, attr->cqes_off);
	prm_set(in, PRM_create_cq_in_cq_umem_id, block->umem_id);
	prm_set(in, PRM_create_cq_in_cq_umem_valid, 1);
	prm_set(cqc, PRM_cqc_dbr_umem_valid, 1);
	prm_set(cqc, PRM_cqc_dbr_umem_id, block->umem_id);
	prm_set(cqc, PRM_cqc_dbr_addr, attr->db_off);
	prm_set(cqc, PRM_cqc_oi, attr->overrun_ignore);
	prm_set(cqc, PRM_cqc_log_cq_size, attr->log_size);
	prm_set(cqc, PRM_cqc_uar_page, dev->uar.page_id);
	prm_set(cqc, PRM_cqc_c_eqn_or_apu_element, dev->eqn);
	prm_set(cqc, PRM_cqc_cq_period, attr->moderate_us);
	prm_set(cqc, PRM_cqc_cq_max_count, attr->moderate_count);
	r = rnic_queue_create(dev, "completion queue", in, sizeof(in), &cq->handle, &cq->cqn);
	if (r < 0)
		return r;
	cq->dev = dev;
	cq->slot = block->slot;
	ledger_made(cq->slot, &(struct ledger_object){.type = LEDGER_CQ,
				      .handle = cq->handle,
				      .number = cq->cqn,
				      .entries = 1u << attr->log_size,
				      .offset = attr->cqes_off,
				      .db_off = attr->db_off,
				      .cookie = attr->cookie});
	r = watch_cq(cq, attr);
	if (r < 0)
		rnic_cq_deinit(cq);
	return r;
}

void rnic_cq_seek(struct rnic_cq *cq, uint64_t n)
{
	cq->consumer = (uint32_t)n;
}

void rnic_cq_deinit(struct rnic_cq *cq)
{
	int r = cq->dev ? rnic_devx_destroy(cq->dev->ctx->cmd_fd, RNIC_DEVX_OBJ, cq->handle) : 0;

	if (r < 0)
		log_error("cannot destroy completion queue %#x: %s", cq->cqn, strerror(-r));
	else if (cq->dev)
		ledger_gone(cq->slot, LEDGER_CQ, cq->handle);
	*cq = (struct rnic_cq){0};
}

/* 1 when the device has written @raw in any lap */
static int parse(const uint8_t *raw, struct rnic_cqe *cqe)
{
	uint8_t opcode = raw[CQE_OP_OWN] >> 4;

	if (opcode == CQE_OP_INVALID)
		return 0;
	*cqe = (struct rnic_cqe){.error = opcode == CQE_OP_REQ_ERR || opcode == CQE_OP_RESP_ERR};
	cqe->receive = opcode == CQE_OP_RESP_ERR ||
		       (opcode >= CQE_OP_RESP_WRITE_IMM && opcode <= CQE_OP_RESP_SEND_INVAL);
	cqe->qpn = wqe_get32(raw + CQE_QPN) & 0xffffff;
	cqe->index = wqe_get16(raw + CQE_INDEX);
	if (cqe->error) {
		cqe->syndrome = raw[CQE_SYNDROME];
		cqe->vendor = raw[CQE_VENDOR];
	} else {
		cqe->length = opcode == CQE_OP_RESP_WRITE_IMM ? 0 : wqe_get32(raw + CQE_LENGTH);
		cqe->timestamp = wqe_get64(raw + CQE_TIMESTAMP);
	}
	return 1;
}

static const uint8_t *entry(const struct rnic_cq *cq, uint32_t n)
{
	return cq->cqes + (size_t)(n & ((1u << cq->log_size) - 1)) * RNIC_CQE_BYTES;
}

/* Where there is none, nothing is loaded behind the owner bit: looks at many queues overlap */
static bool owned(const struct rnic_cq *cq, uint32_t n)
{
	uint8_t own = __atomic_load_n(entry(cq, n) + CQE_OP_OWN, __ATOMIC_RELAXED);

	if (own >> 4 == CQE_OP_INVALID || (own & 1) != (n >> cq->log_size & 1))
		return false;
	barrier_from_device();
	return true;
}

int rnic_cq_poll(struct rnic_cq *cq, struct rnic_cqe *cqe)
{
	if (!owned(cq, cq->consumer))
		return 0;
	parse(entry(cq, cq->consumer), cqe);
	cq->consumer++;
	return 1;
}

void rnic_cq_update(struct rnic_cq *cq)
{
	rnic_queue_store_record(&cq->db[DB_CONSUMER], cq->consumer & 0xffffff);
}

void rnic_cq_arm(struct rnic_cq *cq, bool errors_only)
{
	uint32_t word = (cq->arm_sn++ & 3) << ARM_SN_SHIFT | (errors_only ? ARM_ERRORS_ONLY : 0) |
			(cq->consumer & 0xffffff);

	rnic_queue_store_record(&cq->db[DB_ARM], word);
	rnic_queue_ring(cq->dev->uar_page + UAR_CQ_DOORBELL, htobe64((uint64_t)word << 32 | cq->cqn));
}

int rnic_cq_peek(const struct rnic_cq *cq, uint32_t n, struct rnic_cqe *cqe)
{
	return owned(cq, n) && parse(entry(cq, n), cqe);
}

int rnic_cq_find_error(const struct rnic_cq *cq, struct rnic_cqe *cqe)
{
	struct rnic_cqe c;
	int found = 0;

	for (uint32_t i = 0; i < 1u << cq->log_size; i++) {
		if (!parse(entry(cq, i), &c) || !c.error)
			continue;
		if (!found || c.syndrome != CQE_SYND_FLUSH)
			*cqe = c;
		found = 1;
	}
	return found;
}

const char *rnic_syndrome_text(uint8_t syndrome)
{
	switch (syndrome) {
	case CQE_SYND_LOCAL_LENGTH:
		return "local length error";
	case CQE_SYND_LOCAL_QP_OP:
		return "local queue pair operation error";
	case CQE_SYND_LOCAL_PROT:
		return "local protection error";
	case CQE_SYND_FLUSH:
		return "flushed";
	case CQE_SYND_MW_BIND:
		return "memory window bind error";
	case CQE_SYND_BAD_RESP:
		return "bad response";
	case CQE_SYND_LOCAL_ACCESS:
		return "local access error";
	case CQE_SYND_REMOTE_INVAL:
		return "remote invalid request";
	case CQE_SYND_REMOTE_ACCESS:
		return "remote access error";
	case CQE_SYND_REMOTE_OP:
		return "remote operation error";
	case CQE_SYND_RETRY:
		return "transport retries exceeded: the peer does not answer";
	case CQE_SYND_RNR_RETRY:
		return "receiver-not-ready retries exceeded: the peer has no receive posted";
	case CQE_SYND_REMOTE_ABORT:
		return "aborted by the peer";
	default:
		return "unknown error";
	}
}
