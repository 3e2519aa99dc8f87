/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * call.h - one system call of an application on one of its device files, as the NIC process sees it.
 *
 * The preloaded driver understands no command. It ships the bytes of a write() or the header and
 * attributes of an ioctl() here; a handler (uverbs or ucma) answers with bytes to store in the
 * application, file descriptors to install there, and a return value. Application memory that is to
 * be pinned is asked for with nic_call_mem(); the first time the driver has to be asked, so the
 * handler is run again from its start: it must ask for all memory before it changes anything.
 */
#ifndef SOFTCX_PROTO_CALL_H
#define SOFTCX_PROTO_CALL_H

#include "softcx/hw/hw.h"

#include <rdma/rdma_user_ioctl_cmds.h> /* struct ib_uverbs_ioctl_hdr, ib_uverbs_attr */
#include <sys/socket.h>
#include <sys/stat.h>

struct nic_call; /* lives for the duration of the handler */

pid_t nic_call_pid(const struct nic_call *call);

/** The bytes of a write(), or, for an ioctl, the whole struct ib_uverbs_ioctl_hdr with its attributes. */
const void *nic_call_bytes(const struct nic_call *call, size_t *len);

/** Where in the application those bytes are: handles of new objects are stored into the attributes. */
uint64_t nic_call_va(const struct nic_call *call);

/**
 * The data that attribute number @i (position in the array) of an ioctl points at, copied from the
 * application's memory. NULL when the attribute carries its value inline (len <= 8) or is empty. Output
 * attributes of more than 8 bytes are shipped as well: ignore their bytes.
 */
const void *nic_call_attr(const struct nic_call *call, unsigned i);

/**
 * Puts @len bytes at address @va of the application once the handler has returned anything but
 * NIC_AGAIN: also when it fails, as a DEVX command that firmware refused answers with -EREMOTEIO
 * and a status in its out mailbox. Stores and descriptors are put in the order given.
 */
int nic_call_store(struct nic_call *call, uint64_t va, const void *bytes, size_t len);

/**
 * Installs @fd (ownership passes) in the application, if the call succeeds, and stores its number
 * there as an s32 at @va.
 */
int nic_call_fd(struct nic_call *call, uint64_t va, int fd);

/**
 * Pins [va, va+len) of the application. 0 and a new reference in @mem, -EFAULT when there is no such
 * memory, or NIC_AGAIN: return that at once, the handler will be called again with the memory at hand.
 * @direct: queues and doorbell records; fails with -EFAULT rather than fall back to process_vm access.
 */
#define NIC_AGAIN 1
int nic_call_mem(
	struct nic_call *call, uint64_t va, uint64_t len, bool writable, bool direct, struct hw_mem **mem);

/**
 * fstat(2) of descriptor @fd in the application. Commands name completion channels and event files by
 * descriptor; st_dev and st_ino identify what nic_call_fd() passed. 0, -EBADF, or NIC_AGAIN as with
 * nic_call_mem().
 */
int nic_call_fstat(struct nic_call *call, int fd, struct stat *st);

/** A copy of descriptor @fd of the application, which is the caller's. 0, -EBADF, or NIC_AGAIN. */
int nic_call_take_fd(struct nic_call *call, int fd, int *copy);

struct ucma_file;
/** The rdma_cm file behind descriptor @fd of the application (MIGRATE_ID). 0, -EBADF, -EINVAL or NIC_AGAIN.
 */
int nic_call_ucma_file(struct nic_call *call, int fd, struct ucma_file **file);

/*
 * Device files. The server makes one object per open file and frees it when the last descriptor of it
 * anywhere has been closed. Handlers return bytes consumed (write) or 0 (ioctl), a negative errno, or
 * NIC_AGAIN. The process must ignore SIGPIPE: events are written to pipes that the application may close.
 */
struct uverbs_file;
/** @index numbers the device, as for nic_dev_gids(). */
int uverbs_open(struct hw_dev *dev, unsigned index, struct uverbs_file **file);
void uverbs_close(struct uverbs_file *file); /* destroys every object made through it */
ssize_t uverbs_write(struct uverbs_file *file, struct nic_call *call);
int uverbs_ioctl(struct uverbs_file *file, struct nic_call *call);
/** For mmap(2) of the file: a descriptor (not owned by the caller) and the offset in it to map. */
int uverbs_mmap(struct uverbs_file *file, uint64_t offset, uint64_t len, int *fd, uint64_t *fd_offset);

/**
 * For a modelled clock: the process that uses the file, the time that it takes for each message, and whether
 * it does one thing after the other. Applies to CQs made from now on. 0 or -ENOMEM.
 */
int uverbs_set_process(struct uverbs_file *file, pid_t pid, uint32_t think_ns, bool in_turn);

/** Does what is due for all files; returns nanoseconds until something is, or UINT64_MAX. */
uint64_t uverbs_timers(uint64_t now);

struct ucma_net; /* the "network" of connection managers: listeners, ids, addresses */
int ucma_net_new(struct ucma_net **net, struct hw_dev *const *devs, unsigned ndevs);
void ucma_net_free(struct ucma_net *net);
/** Runs due connection timers; returns nanoseconds until the next one, or UINT64_MAX. */
uint64_t ucma_net_timers(struct ucma_net *net);
/**
 * @wake is called when an event is queued on the file: the server makes the application's descriptor
 * readable for as long as ucma_pending() is not 0. GET_EVENT consumes one event and returns -EAGAIN when
 * there is none (the driver then blocks, unless O_NONBLOCK is set); no other command returns -EAGAIN.
 * @host: whose file it is; its ids have that host's addresses and ports.
 */
int ucma_open(
	struct ucma_net *net, unsigned host, void (*wake)(void *arg), void *arg, struct ucma_file **file);
void ucma_close(struct ucma_file *file); /* disconnects and destroys its ids */
ssize_t ucma_write(struct ucma_file *file, struct nic_call *call);
unsigned ucma_pending(const struct ucma_file *file); /* events queued now */

struct ucma_counts {          /* all 0 again when every user has gone */
	unsigned ids;         /* connection ids, those of the next two included */
	unsigned listeners;   /* that listen */
	unsigned connections; /* that are connected, each side counted */
};
void ucma_counts(const struct ucma_net *net, struct ucma_counts *out);

/** Nanoseconds, CLOCK_MONOTONIC: the clock of connection timers. */
uint64_t nic_now(void);

/*
 * Devices of all hosts are numbered in one row; @dev is such a number.
 * GIDs are in the order of the kernel (core/cache.c, core/roce_gid_mgmt.c): those of the MAC address, of IPv4
 * addresses, of IPv6 ones; each for RoCE v1 and then for v2.
 */
void nic_dev_gids(unsigned dev, struct hw_gid gids[HW_GIDS], unsigned *ngids);
/** The network interface of the GID table: lo, which has this index in every network namespace (Linux,
 * drivers/net/loopback.c). */
enum { NIC_DEV_IFINDEX = 1 };
/** GUID of device @dev, as sysfs and QUERY_DEVICE report it (network byte order). */
uint64_t nic_dev_guid(unsigned dev);
/** The host that device @dev belongs to, counted from 0, and the device's number there (mlx5_@number). */
unsigned nic_dev_host(unsigned dev, unsigned *number);

#endif
