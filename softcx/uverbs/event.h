/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event.h - channels that carry events to the application: completion channels, the
 * asynchronous event file, DEVX event channels.
 *
 * A channel is a pipe. The application owns the read end as an ordinary descriptor, so poll(2),
 * O_NONBLOCK and SCM_RIGHTS work; only the write end, non-blocking, is kept here. A command that
 * names a channel does so by a descriptor number of the calling process: it is recognised by the
 * pipe's inode. Events written to a channel that is full or closed are lost (Linux keeps any number).
 *
 * A process may have fewer descriptors than a NIC may have completion channels. Those above a limit are named
 * pipes, opened for each event. Unlike others, such a channel is not at its end when the NIC ends: its
 * descriptor in the application can write, too.
 */
#ifndef SOFTCX_UVERBS_EVENT_H
#define SOFTCX_UVERBS_EVENT_H

#include "softcx/uverbs/uverbs.h"

enum uverbs_channel_kind {
	UVERBS_CH_COMP,      /* records of struct ib_uverbs_comp_event_desc */
	UVERBS_CH_ASYNC,     /* records of struct ib_uverbs_async_event_desc */
	UVERBS_CH_DEVX,      /* cookie and the EQE, one event per read */
	UVERBS_CH_DEVX_OMIT, /* cookie only; one unread event per cookie */
	UVERBS_CH_DEVX_CMD,  /* wr_id and the out mailbox of an asynchronous command */
};

/** From now on completion channels are named pipes in folder @dir while @most channels are open. */
void uverbs_channels_name(const char *dir, unsigned most);

/** @read_fd is for the application. The caller holds no reference: the file keeps the channel. */
int uverbs_channel_new(
	struct uverbs_file *file, enum uverbs_channel_kind kind, int *read_fd, struct uverbs_channel **ch);
/** The channel that the caller's @fd reads from; -EBADF: it is not a channel of this file and @kind;
 * NIC_AGAIN. */
int uverbs_channel_find(struct uverbs_file *file, struct nic_call *call, int64_t fd,
	enum uverbs_channel_kind kind, struct uverbs_channel **ch);
void uverbs_channels_free(struct uverbs_file *file); /* on close of the file */
/** Channels that the application can still read. */
unsigned uverbs_channels_count(const struct uverbs_file *file, enum uverbs_channel_kind kind);
enum uverbs_channel_kind uverbs_channel_kind(const struct uverbs_channel *ch);
/** True once no process has the read end any more: the application closed it, or ended. */
bool uverbs_channel_closed(const struct uverbs_channel *ch);

/** An object that will post to the channel keeps it. NULL is fine. */
struct uverbs_channel *uverbs_channel_get(struct uverbs_channel *ch);
void uverbs_channel_put(struct uverbs_channel *ch);

/** True when the event was queued. */
bool uverbs_channel_post(struct uverbs_channel *ch, const void *event, size_t len);
/** Takes back the unread events whose first 8 bytes are @key; returns how many. NULL channel: 0. */
unsigned uverbs_channel_purge(struct uverbs_channel *ch, uint64_t key);

/**
 * A copy, which the caller closes, of the application's eventfd @fd. -EBADF: it is no descriptor, -EINVAL: it
 * is not an eventfd; NIC_AGAIN.
 */
int uverbs_eventfd_take(struct nic_call *call, int64_t fd, int *copy);
/** Adds one, as eventfd_signal() of the kernel: without waiting for a reader. */
void uverbs_eventfd_signal(int fd);

/** Asynchronous event of an object (@event: enum hw_event) for the verbs library; counted in @posted. */
void uverbs_async_post(struct uverbs_channel *ch, uint64_t user_handle, int event, uint32_t *posted);

/** An event of the whole device, to every asynchronous event file; @arg is the uverbs_file. */
void uverbs_dev_event(void *arg, int event);

#endif
