/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/write.h"

#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>

int uverbs_method_find(uint32_t command, const struct uverbs_method **method)
{
	uint32_t i = command & IB_USER_VERBS_CMD_COMMAND_MASK;

	if (command & ~(uint32_t)(IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_CMD_COMMAND_MASK))
		return -EINVAL;
	if (command & IB_USER_VERBS_CMD_FLAG_EXTENDED) {
		if (i >= uverbs_write_ex_methods_len || !uverbs_write_ex_methods[i].run)
			return -EOPNOTSUPP;
		*method = &uverbs_write_ex_methods[i];
		return 0;
	}
	if (i >= uverbs_write_methods_len)
		return -EINVAL;
	if (!uverbs_write_methods[i].run)
		return -EOPNOTSUPP;
	*method = &uverbs_write_methods[i];
	return 0;
}

int uverbs_method_run(const struct uverbs_method *method, struct uverbs_file *file, struct nic_call *call,
	const struct uverbs_cmd *cmd)
{
	if (!file->has_context && method != &uverbs_write_methods[IB_USER_VERBS_CMD_GET_CONTEXT])
		return -EINVAL;
	return method->run(file, call, cmd);
}

/* The command's lengths count 4-byte words from the header on; driver data follows the core structure. */
static int parse_legacy(const struct ib_uverbs_cmd_hdr *hdr, const uint8_t *bytes, size_t len,
	const struct uverbs_method *m, struct uverbs_cmd *cmd)
{
	uint64_t response = 0;

	if (hdr->in_words * 4u != len || len < sizeof(*hdr) + m->req)
		return -EINVAL;
	if (hdr->out_words * 4u < m->resp)
		return -ENOSPC;
	cmd->core.in = bytes + sizeof(*hdr);
	cmd->core.in_len = m->req;
	cmd->drv.in = bytes + sizeof(*hdr) + m->req;
	cmd->drv.in_len = len - sizeof(*hdr) - m->req;
	if (m->responds) {
		memcpy(&response, cmd->core.in, sizeof(response));
		cmd->core.out = response;
		cmd->core.out_len = m->resp;
		cmd->drv.out = response + m->resp;
		cmd->drv.out_len = hdr->out_words * 4u - m->resp;
	}
	return 0;
}

/* Lengths count 8-byte words of the core and the driver part apart, without headers. */
static int parse_ex(const struct ib_uverbs_cmd_hdr *hdr, const uint8_t *bytes, size_t len,
	const struct uverbs_method *m, struct uverbs_cmd *cmd)
{
	struct ib_uverbs_ex_cmd_hdr ex;
	size_t head = sizeof(*hdr) + sizeof(ex);

	if (len < head)
		return -EINVAL;
	memcpy(&ex, bytes + sizeof(*hdr), sizeof(ex));
	if ((hdr->in_words + ex.provider_in_words) * 8u != len - head || ex.cmd_hdr_reserved)
		return -EINVAL;
	if (hdr->in_words * 8u < m->req)
		return -ENOSPC;
	if (!ex.response && (hdr->out_words || ex.provider_out_words))
		return -EINVAL;
	if (ex.response && !hdr->out_words && !ex.provider_out_words)
		return -EINVAL;
	if (ex.response && hdr->out_words * 8u < m->resp)
		return -ENOSPC;
	cmd->core.in = bytes + head;
	cmd->core.in_len = hdr->in_words * 8u;
	cmd->core.out = ex.response;
	cmd->core.out_len = hdr->out_words * 8u;
	cmd->drv.in = bytes + head + cmd->core.in_len;
	cmd->drv.in_len = ex.provider_in_words * 8u;
	cmd->drv.out = ex.response + cmd->core.out_len;
	cmd->drv.out_len = ex.provider_out_words * 8u;
	return 0;
}

ssize_t uverbs_write(struct uverbs_file *file, struct nic_call *call)
{
	const struct uverbs_method *method;
	struct ib_uverbs_cmd_hdr hdr;
	struct uverbs_cmd cmd = {0};
	const uint8_t *bytes;
	size_t len;
	int r;

	bytes = nic_call_bytes(call, &len);
	if (len < sizeof(hdr))
		return -EINVAL;
	memcpy(&hdr, bytes, sizeof(hdr));
	r = uverbs_method_find(hdr.command, &method);
	if (r < 0)
		return r;
	if (hdr.command & IB_USER_VERBS_CMD_FLAG_EXTENDED)
		r = parse_ex(&hdr, bytes, len, method, &cmd);
	else
		r = parse_legacy(&hdr, bytes, len, method, &cmd);
	if (r < 0)
		return r;
	r = uverbs_method_run(method, file, call, &cmd);
	return r == 0 ? (ssize_t)len : r;
}
