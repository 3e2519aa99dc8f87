/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/grh.h"

#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <string.h>

/* UDP header, BTH, DETH and ICRC around the data of a datagram */
#define ROCE_BYTES (8 + 12 + 8 + 4)
/* BTH, DETH and ICRC of one on InfiniBand */
#define IB_BYTES (12 + 8 + 4)
#define NEXT_IBA 0x1b

static int is_v4(const uint8_t gid[16])
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(gid, prefix, sizeof(prefix));
}

static uint16_t checksum(const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	uint32_t sum = 0;
	size_t i;

	for (i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

static void put_ipv6(uint8_t grh[HW_GRH_BYTES], const uint8_t sgid[16], const uint8_t dgid[16],
	uint8_t tclass, uint8_t hop_limit, size_t len, uint8_t next)
{
	struct ip6_hdr ip = {0};

	ip.ip6_flow = htonl(6u << 28 | (uint32_t)tclass << 20);
	ip.ip6_plen = htons((uint16_t)len);
	ip.ip6_nxt = next;
	ip.ip6_hlim = hop_limit;
	memcpy(&ip.ip6_src, sgid, 16);
	memcpy(&ip.ip6_dst, dgid, 16);
	memcpy(grh, &ip, sizeof(ip));
}

enum hw_packet_type hw_grh(uint8_t grh[HW_GRH_BYTES], const uint8_t sgid[16], const uint8_t dgid[16],
	uint8_t tclass, uint8_t hop_limit, size_t len)
{
	memset(grh, 0, HW_GRH_BYTES);
	if (is_v4(sgid) && is_v4(dgid)) {
		struct iphdr ip = {
			.version = 4, .ihl = 5, .tos = tclass, .ttl = hop_limit, .protocol = IPPROTO_UDP};

		ip.tot_len = htons((uint16_t)(sizeof(ip) + ROCE_BYTES + len));
		ip.frag_off = htons(IP_DF);
		memcpy(&ip.saddr, sgid + 12, 4);
		memcpy(&ip.daddr, dgid + 12, 4);
		ip.check = checksum(&ip, sizeof(ip));
		memcpy(grh + HW_GRH_BYTES - sizeof(ip), &ip, sizeof(ip));
		return HW_PACKET_IPV4;
	}
	put_ipv6(grh, sgid, dgid, tclass, hop_limit, ROCE_BYTES + len, IPPROTO_UDP);
	return HW_PACKET_IPV6;
}

void hw_ib_grh(uint8_t grh[HW_GRH_BYTES], const uint8_t sgid[16], const uint8_t dgid[16], uint8_t tclass,
	uint8_t hop_limit, size_t len)
{
	put_ipv6(grh, sgid, dgid, tclass, hop_limit, IB_BYTES + len, NEXT_IBA);
}
