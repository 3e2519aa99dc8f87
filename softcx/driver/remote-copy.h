/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * remote-copy.h - a thread that copies to and from memory of this process on request of the NIC (struct
 * softcx_copy), where the NIC may not do that itself. The first registration of such memory starts it.
 *
 * Threads: one at a time (device.c holds its lock).
 */
#ifndef SOFTCX_DRIVER_REMOTE_COPY_H
#define SOFTCX_DRIVER_REMOTE_COPY_H

/** The NIC's end of the socket that the thread serves, which this module keeps; or a negative errno. */
int remote_copy_socket(void);
void remote_copy_fork_child(void);

#endif
