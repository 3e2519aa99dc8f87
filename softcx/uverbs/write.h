/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * write.h - the commands of write(2), also reachable through the ioctl method INVOKE_WRITE.
 *
 * A command is found by its number. Its minimum length and the room for its answer are checked before the
 * handler runs. Handlers may return NIC_AGAIN.
 */
#ifndef SOFTCX_UVERBS_WRITE_H
#define SOFTCX_UVERBS_WRITE_H

#include "softcx/uverbs/uverbs.h"

#include <rdma/ib_user_verbs.h>

struct uverbs_cmd {
	struct uverbs_udata core, drv;
};

struct uverbs_method {
	uint16_t req, resp; /* bytes of the core structures, without driver data */
	bool responds;      /* legacy commands: the core structure starts with the address of the answer */
	int (*run)(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd);
};

/** @command: with IB_USER_VERBS_CMD_FLAG_EXTENDED for an extended one. -EINVAL, -EOPNOTSUPP. */
int uverbs_method_find(uint32_t command, const struct uverbs_method **method);
/** -EINVAL for anything but GET_CONTEXT before there is a context. */
int uverbs_method_run(const struct uverbs_method *method, struct uverbs_file *file, struct nic_call *call,
	const struct uverbs_cmd *cmd);

/** GET_CONTEXT without the core answer, which the two ABIs give differently. */
int uverbs_context_create(struct uverbs_file *file, struct nic_call *call, const struct uverbs_udata *drv);

#endif
