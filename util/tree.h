/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tree.h - folders with all that is in them.
 */
#ifndef UTIL_TREE_H
#define UTIL_TREE_H

#include <errno.h>
#include <ftw.h>
#include <stdio.h>

static inline int tree_remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

/** Removes @path, and stops at what cannot be removed. Links are not followed. 0, also if nothing is there;
 * -errno. */
static inline int tree_remove(const char *path)
{
	return nftw(path, tree_remove_entry, 16, FTW_DEPTH | FTW_PHYS) < 0 && errno != ENOENT ? -errno : 0;
}

#endif
