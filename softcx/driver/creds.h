/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * creds.h - the credentials of this process, by identity.
 *
 * Linux takes write() on a device file only with the very struct cred that opened it (include/rdma/ib.h,
 * ib_safe_file_access: f_cred == current_cred()), however equal others are. A fork and an exec make a new
 * one; the NIC knows these by the command channel (files.c). So do the calls that change ids, groups or
 * capabilities, even to what they were (kernel/sys.c, kernel/groups.c, kernel/capability.c,
 * security/commoncap.c: prepare_creds, then commit_creds), and landlock_restrict_self(2). They are counted
 * here.
 *
 * Not known: keyctl(2), setfsuid(2), system calls made without the C library. And each thread has credentials
 * of its own from the first of these calls on; here they are those of the process.
 */
#ifndef SOFTCX_DRIVER_CREDS_H
#define SOFTCX_DRIVER_CREDS_H

/** Changes each time that the process gets new credentials. For any thread. */
unsigned creds_now(void);
/** After a system call of the process by its number that succeeded. */
void creds_after_syscall(long number, const long args[6]);

#endif
