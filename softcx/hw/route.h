/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * route.h - the network between ports: which device the packets of an address vector reach. Internal to
 * softcx/hw.
 *
 * It is one Ethernet segment. A frame is taken by the port that has its MAC address, and a RoCE v2 packet by
 * the port that has its GID; both have to be the same port. Source: IBTA annex A17; Linux
 * drivers/infiniband/core/addr.c, which looks up the MAC address of a GID as that of any IP address.
 *
 * Ports of InfiniBand are one subnet: switches look at the LID alone, and the port that gets a packet with a
 * GRH checks that the GID is its own (IB 9.6.1.2.3).
 */
#ifndef SOFTCX_HW_ROUTE_H
#define SOFTCX_HW_ROUTE_H

#include "softcx/hw/dev.h"

/** The device that packets of @from with this address reach. NULL: none, for the reason in @why, which may be
 * NULL. */
struct hw_dev *hw_route(struct hw_dev *from, const struct hw_av *av, enum hw_lost *why);

#endif
