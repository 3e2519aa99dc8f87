/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * identity.h - which device this is, for people and bug reports.
 */
#ifndef RNIC_IDENTITY_H
#define RNIC_IDENTITY_H

#include "reddnd/rnic/device.h"

struct rnic_identity {
	uint32_t vendor, part;
	const char *model;  /* "ConnectX-5", by the part; "unknown" */
	char firmware[64];  /* "16.35.4030" */
	char board[64];     /* PSID; "" if the kernel does not report it */
	const char *state;  /* of the port: "active", and others of ibv_port_state_str() */
	unsigned mtu;       /* bytes */
	unsigned long gids; /* of the port */
	char address[46];   /* IP address of a GID of RoCE v2, not a link-local one; "" */
	uint64_t clock_khz; /* of free-running timestamps; 0: unknown */
};

/** 0 or a negative errno. */
int rnic_identity_read(const struct rnic_device *dev, struct rnic_identity *id);

#endif
