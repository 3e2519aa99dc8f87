/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * grh.h - the 40 bytes before the data of a received datagram.
 *
 * On RoCE v2 they hold the IP header of the packet: IPv6 fills them, IPv4 the last 20, where
 * ibv_init_ah_from_wc() of libibverbs looks for it. mlx5 leaves the bytes before an IPv4 header undefined;
 * here they are 0.
 */
#ifndef SOFTCX_HW_GRH_H
#define SOFTCX_HW_GRH_H

#include <stddef.h>
#include <stdint.h>

enum { HW_GRH_BYTES = 40 };

/** Bits 27:24 of flags_rqpn in the CQE of a datagram: over UDP, with which IP header. */
enum hw_packet_type { HW_PACKET_IPV6 = 8 | 1, HW_PACKET_IPV4 = 8 | 2 };

/** The header of a packet of @len data bytes; both GIDs IPv4-mapped: IPv4. */
enum hw_packet_type hw_grh(uint8_t grh[HW_GRH_BYTES], const uint8_t sgid[16], const uint8_t dgid[16],
	uint8_t tclass, uint8_t hop_limit, size_t len);

/** The same on InfiniBand, and of RoCE v1 (annex A16): a GRH, which looks like an IPv6 header whose next
 * header is IBA (IB 8.3). */
void hw_ib_grh(uint8_t grh[HW_GRH_BYTES], const uint8_t sgid[16], const uint8_t dgid[16], uint8_t tclass,
	uint8_t hop_limit, size_t len);

#endif
