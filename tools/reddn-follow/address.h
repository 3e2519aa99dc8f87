/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * address.h - the address of a server's host, which is looked up while all else goes on.
 */
#ifndef TOOLS_REDDN_FOLLOW_ADDRESS_H
#define TOOLS_REDDN_FOLLOW_ADDRESS_H

#include "tools/reddn-follow/url.h"
#include "util/lookup.h"

struct address {
	struct lookup *lookup; /* NULL: none has begun */
	char text[64];         /* numeric */
};

/** 0: it is there. -EAGAIN: not yet; ask again when address_fd() can be read. -ENOENT: @why. A call after 0
 * or an error begins anew. */
int address_find(struct address *a, const struct url *url, const char **why);

/** -1: nothing is looked up. */
int address_fd(const struct address *a);

void address_deinit(struct address *a);

#endif
