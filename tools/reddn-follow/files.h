/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * files.h - a file, or the files of a folder, as a source of a table: text of records.h, JSON in files whose
 * names end with .json or .jsonl, else TSV. Of a folder, those whose names end with one of these or .tsv.
 *
 * What is there is published when a file gets its name, loses it, or is closed by who has written it
 * (inotify). Then all files are read, also one that is being written at that moment:
 *
 *     APART ──▶ CHECKING ──▶ LOADING ──▶ REMOVING ──▶ FOLLOWING
 *
 * CHECKING reads them and changes nothing: with a mistake, or a key that is there twice, the table keeps what
 * it has, and the state is APART until something is published. LOADING reads them once more and puts what
 * differs. REMOVING takes what they do not have out of the table. What is published meanwhile leads back to
 * CHECKING. A turn takes some thousand records. Memory is 24 bytes a key while they are read.
 *
 * How new the table is, is known without a barrier: inotify reports a file before rename(2) and close(2)
 * return. As long as it has nothing to report, the table is as of this moment.
 */
#ifndef TOOLS_REDDN_FOLLOW_FILES_H
#define TOOLS_REDDN_FOLLOW_FILES_H

#include "tools/common/records.h"
#include "tools/reddn-follow/mirror.h"
#include "tools/reddn-follow/seen.h"
#include "tools/reddn-follow/source.h"

#include <limits.h>
#include <stdio.h>
#include <time.h>

enum files_state { FILES_APART, FILES_CHECKING, FILES_LOADING, FILES_REMOVING, FILES_FOLLOWING };

/** A version of a file: another one differs. */
struct files_version {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec changed;
};

struct files_list {
	struct files_one {
		char *path;
		struct files_version version;
	} * one; /* by path */
	uint32_t n;
};

struct files {
	const char *path;
	const struct prefixes *prefixes;
	struct mirror *mirror;
	struct mirror_walk walk;
	enum files_state state;
	int inotify, watch; /* watch: of the folder; -1: it is not there */
	bool is_folder;     /* when it was watched */

	struct files_list list;
	uint32_t at; /* the one that is being read, */
	FILE *file;  /* or NULL: to be opened */
	struct records_reader reader;
	struct seen seen; /* where: the file of the list, and the line below */

	uint64_t now, look_at, publish_at; /* ms */
	bool published;                    /* since they were loaded */
	bool grows;                        /* the table */
	bool no_room;                      /* for some key, by the last load */
	uint64_t loads;
	char why[SOURCE_WHY];
};

/** @path: of a file or a folder, which need not exist yet. Everything stays the caller's. 0, or -errno: there
 * is no inotify. */
int files_init(struct files *f, const char *path, const struct prefixes *prefixes, struct mirror *m);
struct source files_as_source(struct files *f);

#endif
