/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma-netlink.h - answers what programs ask of the kernel over NETLINK_RDMA: which devices there are, their
 * ports, and how many objects they have. rdma(8) and rdma-core ask that. The facts come from the NIC's sysfs
 * and its control socket.
 *
 * As in the kernel (drivers/infiniband/core/nldev.c), an attribute that is not known is left out, and a
 * command that is not known is EOPNOTSUPP.
 */
#ifndef SOFTCX_DRIVER_RDMA_NETLINK_H
#define SOFTCX_DRIVER_RDMA_NETLINK_H

#include <stddef.h>

/** Does what the messages in @len bytes ask, and sends the answers to @fd, a message each; those to a dump
 * are in one. 0, or -errno of sending. */
int rdma_netlink_ask(int fd, const void *messages, size_t len);

#endif
