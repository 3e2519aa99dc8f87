/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * addr.h - addresses of the connection manager: the device and the GID that an IP address belongs to.
 *
 * The emulated network has one segment, and every port on it is in this NIC process. So an address is
 * reachable if a device has it as a GID, or if it is an address of this machine (127.0.0.0/8 included), all
 * of which belong to device 0. ::1 is a GID of the first device of each host, and means the caller's, as the
 * wildcards do. AF_IB
 * addresses are known only as wildcards, as on Linux for a RoCE port (drivers/infiniband/core/cma.c:
 * cma_resolve_ib_dev wants a port with rdma_cap_af_ib). Ports are in host byte order here.
 */
#ifndef SOFTCX_UCMA_ADDR_H
#define SOFTCX_UCMA_ADDR_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#ifndef AF_IB
#define AF_IB 27
#endif

struct ucma_sockaddr_ib { /* include/rdma/ib.h of Linux: struct sockaddr_ib */
	uint16_t family;
	__be16 pkey;
	__be32 flowinfo;
	uint8_t addr[16];
	__be64 sid;
	__be64 sid_mask;
	uint64_t scope_id;
};

struct ucma_where { /* an address as the hardware knows it */
	unsigned dev, host;
	uint8_t gid_index;
	uint8_t gid[16];
};

/** Bytes of the address proper; 0 when its family is not one of AF_INET, AF_INET6, AF_IB. */
size_t ucma_addr_size(const struct sockaddr_storage *addr);
/** Copies @len bytes from outside; False: they are not an address of a known family and that length. */
bool ucma_addr_set(struct sockaddr_storage *addr, const void *bytes, size_t len);
bool ucma_addr_any(const struct sockaddr_storage *addr);
bool ucma_addr_multicast(const struct sockaddr_storage *addr);
/** An IPv6 link-local address without the interface that it is meant on. */
bool ucma_addr_lacks_scope(const struct sockaddr_storage *addr);
/** Same family and same IP (or GID); ports are not compared. */
bool ucma_addr_same_ip(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
/** AF_IB: the low 16 bits of the service id. */
uint16_t ucma_addr_port(const struct sockaddr_storage *addr);
void ucma_addr_set_port(struct sockaddr_storage *addr, uint16_t port);
/** Replaces the IP of @addr by that of @from and keeps the port. */
void ucma_addr_set_ip(struct sockaddr_storage *addr, const struct sockaddr_storage *from);
/** First device of a host. */
unsigned ucma_addr_first_dev(unsigned ndevs, unsigned host);
/** The address of @dev in a family, without port: IPv6 has only the link-local one. */
void ucma_addr_of_dev(
	unsigned dev, sa_family_t family, struct sockaddr_storage *addr, struct ucma_where *where);

/** The GID that an IP address would have (RoCE: IPv4-mapped, or the IPv6 address itself). */
void ucma_addr_gid(const struct sockaddr_storage *addr, uint8_t gid[16]);
/** Where @host finds @addr. 0, or -ENODEV when it is not on any of the @ndevs devices. */
int ucma_addr_find(
	unsigned ndevs, unsigned host, const struct sockaddr_storage *addr, struct ucma_where *where);

#endif
