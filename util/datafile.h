/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * datafile.h - data files that come with the programs, in the syntax of libconfig: where they are, and
 * reading them. Links libconfig.
 */
#ifndef UTIL_DATAFILE_H
#define UTIL_DATAFILE_H

#include <libconfig.h>
#include <stddef.h>

/**
 * The folder of the files: the first of @in_tree (relative to the program's own folder, up to a NULL) that
 * exists, which is the one of a build tree; else @installed. 0 or -ENAMETOOLONG.
 */
int datafile_dir(const char *const *in_tree, const char *installed, char *path, size_t size);

/** The path of file @name: itself if there is a / in it or it ends in .conf, else NAME.conf in that folder. 0
 * or -ENAMETOOLONG. */
int datafile_find(
	const char *name, const char *const *in_tree, const char *installed, char *path, size_t size);

/**
 * Reads a file. 0: the caller destroys @cfg. -EINVAL (-ENOENT, ...): the mistake is in @why, and its line in
 * @line, which is 0 if the file cannot be read.
 */
int datafile_read(config_t *cfg, const char *path, unsigned *line, char *why, size_t size);

#endif
