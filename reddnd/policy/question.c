/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/policy/question.h"

#include "reddnd/policy/request.h"

#include <endian.h>
#include <string.h>

bool question_parse(const void *data, size_t size, struct question *question)
{
	struct reddn_wire_query q;

	if (size < sizeof(q))
		return false;
	memcpy(&q, data, sizeof(q));
	if (be32toh(q.magic) != REDDN_WIRE_MAGIC || q.version != REDDN_WIRE_VERSION ||
		(q.flags != REDDN_REQ_END_REASON && q.flags != REDDN_REQ_DESCRIBE))
		return false;
	*question = (struct question){
		.describe = q.flags == REDDN_REQ_DESCRIBE,
		.from = be32toh(q.from),
		.of = {.session = be64toh(q.session),
			.slot_addr = be64toh(q.slot_addr),
			.slot_rkey = be32toh(q.slot_rkey)},
	};
	return true;
}

void question_describe(const char *description, uint32_t from, struct reddn_wire_rej *rej)
{
	size_t len = strlen(description);

	request_refuse(rej, REDDN_REJ_DESCRIBED, (uint32_t)len, "%s", from < len ? description + from : "");
}
