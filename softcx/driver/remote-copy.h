/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * remote-copy.h - a thread that copies to and from memory of this process as the NIC asks (struct
 * softcx_copy), where the NIC may not do that itself. It exists from the first time on that such memory is
 * registered.
 *
 * Threads: one at a time (device.c holds its lock).
 */
#ifndef SOFTCX_DRIVER_REMOTE_COPY_H
#define SOFTCX_DRIVER_REMOTE_COPY_H

/** The NIC's end of the socket that the thread listens on; it stays this module's. Or a negative errno. */
int remote_copy_socket(void);
void remote_copy_fork_child(void);

#endif
