/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * descriptors.h - how many descriptors this process may have: a NIC has none, and many of its objects here
 * have some.
 */
#ifndef SOFTCX_NIC_DESCRIPTORS_H
#define SOFTCX_NIC_DESCRIPTORS_H

/** Raises the limit as far as it goes. */
void descriptors_allow(void);
/**
 * Lets completion channels be named pipes in a folder below @dir, once others have a fifth of what is allowed
 * (uverbs_channels_name()). Pipes of a NIC that was killed go. 0 or a negative errno.
 */
int descriptors_save(const char *dir);
/** Removes the folder, after all files were closed. Fine without one. */
void descriptors_done(void);

#endif
