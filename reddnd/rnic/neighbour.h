/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * neighbour.h - what RoCE packets to an address need: the MAC address behind its GID, and a UDP source port.
 */
#ifndef RNIC_NEIGHBOUR_H
#define RNIC_NEIGHBOUR_H

#include "reddnd/rnic/internal.h"

/**
 * The kernel resolves a GID only for address handles, and waits for the answer of the network, up to a second
 * (Linux drivers/infiniband/core/addr.c: rdma_addr_find_l2_eth_by_grh). *@udp_sport: as it chose it, perhaps
 * below RNIC_UDP_SPORT_MIN. May be called on any thread. -EHOSTUNREACH and others, which have not been
 * logged.
 */
int rnic_neighbour_resolve(
	struct rnic_device *dev, struct ibv_ah_attr *address, uint8_t mac[6], uint16_t *udp_sport);

#endif
