/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * remote-copy.h - memory that only its process can reach: it cannot be shared (driver/mem.h lists what
 * cannot), and process_vm_readv(2) is forbidden here. A thread of the driver copies on request (struct
 * softcx_copy). Each copy waits for that thread, for a second at most; then the memory counts as gone.
 */
#ifndef SOFTCX_NIC_REMOTE_COPY_H
#define SOFTCX_NIC_REMOTE_COPY_H

#include "softcx/hw/hw.h"

/** True if process_vm_readv(2) reaches the byte at @va of process @pid. */
bool remote_copy_needless(pid_t pid, uint64_t va);
/** A hw_mem with one reference. @sock stays the caller's. */
int remote_copy_new(struct hw_mem **mem, uint64_t va, uint64_t len, bool writable, pid_t pid, int sock);

#endif
