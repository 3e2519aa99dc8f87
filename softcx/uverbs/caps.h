/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * caps.h - the identity and limits of the device, which has one port, as QUERY_DEVICE, QUERY_PORT and the
 * firmware's QUERY_HCA_CAP report them. What differs between devices is in their profiles; the rest is as
 * ibv_devinfo shows it on a ConnectX-5. What the emulation does not have (XRC, ODP, offloads of raw packets)
 * is not claimed.
 */
#ifndef SOFTCX_UVERBS_CAPS_H
#define SOFTCX_UVERBS_CAPS_H

#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hw_dev;

enum {
	UVERBS_LOG_MAX_QP_SZ = 15, /* WQEBBs or receive WQEs */
	UVERBS_LOG_MAX_CQ = 24,
	UVERBS_LOG_MAX_CQ_SZ = 22,
	UVERBS_MAX_CQE = (1 << UVERBS_LOG_MAX_CQ_SZ) - 1,
	UVERBS_LOG_MAX_MSG = 30, /* bytes of a message */
	UVERBS_LOG_MAX_SRQ = 23,
	UVERBS_MAX_SRQ_WR = 32767,
	UVERBS_MAX_SRQ_SGE = 31,
	UVERBS_COMP_VECTORS = 8,
	UVERBS_GID_TABLE = 255,
	UVERBS_IB_GID_TABLE = 8,       /* of an InfiniBand port */
	UVERBS_SM_LID = 1,             /* of the subnet manager, which nobody can ask anything */
	UVERBS_SUBNET_TIMEOUT = 18,    /* as opensm sets it */
	UVERBS_EQN = 8,                /* event queue of completion vector 0 */
	UVERBS_MIN_UDP_SPORT = 0xc000, /* of RoCE v2 packets: IBTA annex A17 */
	UVERBS_MAX_UDP_SPORT = 0xffff,
	/* ads.stat_rate values that the device has, by 1 << value: none, as cap stat_rate_support */
	UVERBS_STAT_RATES = 0,
};

/** True if queues of the device can have timestamps of this enum prm_ts_format. */
bool uverbs_caps_ts_format(const struct hw_dev *hw, unsigned format);
/** True if such timestamps are of the real-time clock. */
bool uverbs_caps_real_time(const struct hw_dev *hw, unsigned format);

void uverbs_caps_ucontext(const struct hw_dev *hw, struct mlx5_ib_alloc_ucontext_resp *resp, size_t room);
void uverbs_caps_device(const struct hw_dev *hw, unsigned dev, struct ib_uverbs_ex_query_device_resp *resp);
void uverbs_caps_device_drv(struct mlx5_ib_query_device_resp *resp, size_t room);
/** -EINVAL for a port that does not exist. */
int uverbs_caps_port(const struct hw_dev *dev, uint32_t port, struct ib_uverbs_query_port_resp_ex *resp);
/** False when the index is free or out of the table. */
bool uverbs_caps_gid(const struct hw_dev *dev, uint32_t index, struct ib_uverbs_gid_entry *entry);

/**
 * Fills the 4096 bytes of a capability page (op_mod of QUERY_HCA_CAP: type << 1 | current).
 * False for a type that this firmware does not know.
 */
bool uverbs_caps_hca(const struct hw_dev *hw, unsigned op_mod, uint8_t page[4096]);

#endif
