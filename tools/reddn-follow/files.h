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
 * differs, a record only if it is the one that was checked: if another is there, somebody is writing that
 * file, and the state is APART as well. REMOVING takes what they do not have out of the table. What is
 * published meanwhile leads back to CHECKING. A turn takes some thousand records. Memory is 32 bytes a key
 * while they are read.
 *
 * How new the table is, is known without a barrier: inotify reports a file before rename(2) and close(2)
 * return. As long as it has nothing to report, and the paths lead to the files that were read, the table is
 * as of this moment.
 */
#ifndef TOOLS_REDDN_FOLLOW_FILES_H
#define TOOLS_REDDN_FOLLOW_FILES_H

#include "tools/common/records.h"
#include "tools/reddn-follow/mirror.h"
#include "tools/reddn-follow/source.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

enum files_state { FILES_APART, FILES_CHECKING, FILES_LOADING, FILES_REMOVING, FILES_FOLLOWING };

struct files_list {
	struct files_one {
		char *path;
		struct stat st; /* when it was listed; from CHECKING on, when it was opened for that */
		size_t end;     /* how many were checked with it */
	} * one;                /* by path */
	uint32_t n;
	bool has_links;
};

struct files {
	const char *path;
	const struct prefixes *prefixes;
	struct mirror *mirror;
	struct mirror_walk walk;
	enum files_state state;
	int inotify, watch; /* watch: of the folder; -1: there was none yet */
	bool is_folder;     /* when it was watched */
	char folder[PATH_MAX];
	struct stat watched; /* the folder */

	struct files_list list;
	uint32_t at; /* the one that is being read, */
	FILE *file;  /* or NULL: to be opened */
	struct records_reader reader;
	struct seen seen;     /* where: the file of the list, and the line below */
	uint64_t *sums;       /* of each record that was checked, */
	size_t checked, room; /* so many */
	size_t loaded;

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
