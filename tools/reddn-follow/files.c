/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddn-follow/files.h"

#include "tools/common/tool.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/text.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum {
	TURN_RECORDS = 4096,
	PUBLISH_MS = 50,
	LOOK_MS = 1000,  /* until a source that is apart is looked at again */
	FULL_MS = 10000, /* and one of which the table has no room for some keys */
};

DEFINE_CLEANUP(DIR *, closedir)

static void files_set_state(struct files *f, enum files_state state)
{
	assert(state <= FILES_CHECKING || state == f->state + 1);
	f->state = state;
}

/* ---- which files there are ---------------------------------------------------------------- */

static void list_deinit(struct files_list *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		free(l->one[i].path);
	free(l->one);
	*l = (struct files_list){0};
}

static bool same_inode(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* False: it was written between */
static bool same_content(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* The same files: what is in them only counts when it is published. */
static bool list_same(const struct files_list *a, const struct files_list *b)
{
	if (a->n != b->n)
		return false;
	for (uint32_t i = 0; i < a->n; i++)
		if (strcmp(a->one[i].path, b->one[i].path) != 0 || !same_inode(&a->one[i].st, &b->one[i].st))
			return false;
	return true;
}

static bool has_end(const char *name, const char *end)
{
	size_t len = strlen(name), end_len = strlen(end);

	return len > end_len && strcmp(name + len - end_len, end) == 0;
}

static bool is_json(const char *name)
{
	return has_end(name, ".json") || has_end(name, ".jsonl");
}

static bool is_of_folder(const char *name)
{
	return *name != '.' && (is_json(name) || has_end(name, ".tsv"));
}

/* Its name, for messages */
static const char *list_name(const struct files_list *l, uint32_t i)
{
	return strrchr(l->one[i].path, '/') + 1;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct files_one *)a)->path, ((const struct files_one *)b)->path);
}

/* A folder has no event of what is behind a link in it: the file is watched that it leads to at this moment.
 * That watch ends with that file; of one that the link has left, at worst an event is too much. 0, or
 * -ENOSPC: nobody would tell of a change. What else keeps it from being watched keeps it from being read. */
static int list_watch(struct files_list *l, const char *path, int inotify)
{
	struct stat st;

	if (lstat(path, &st) < 0 || !S_ISLNK(st.st_mode))
		return 0;
	l->has_links = true;
	return inotify_add_watch(inotify, path, IN_CLOSE_WRITE | IN_DELETE_SELF) < 0 && errno == ENOSPC
		       ? -ENOSPC
		       : 0;
}

/* 0 or -errno; -EINVAL: it is no regular file */
static int list_add(struct files_list *l, const char *path, int inotify)
{
	struct stat st;

	if (list_watch(l, path, inotify) < 0)
		return -ENOSPC;
	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	l->one = tool_must(realloc(l->one, (l->n + 1) * sizeof(*l->one)));
	l->one[l->n++] = (struct files_one){.path = tool_must(strdup(path)), .st = st};
	return 0;
}

/* One that goes away meanwhile is not there; inotify reports that. 0 or -errno */
static int list_folder(struct files_list *l, const char *folder, int inotify)
{
	CLEANUP(closedirp) DIR *dir = opendir(folder);
	char path[PATH_MAX];
	struct dirent *e;

	if (!dir)
		return -errno;
	while ((e = readdir(dir))) {
		if (!is_of_folder(e->d_name))
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", folder, e->d_name) >= (int)sizeof(path))
			return -ENAMETOOLONG;
		if (list_add(l, path, inotify) == -ENOSPC)
			return -ENOSPC;
	}
	if (l->n)
		qsort(l->one, l->n, sizeof(*l->one), by_path);
	return 0;
}

static int list_read(struct files_list *l, const struct files *f)
{
	return f->is_folder ? list_folder(l, f->path, f->inotify) : list_add(l, f->path, f->inotify);
}

/* ---- states -------------------------------------------------------------------------------- */

static void files_close(struct files *f)
{
	if (!f->file)
		return;
	records_deinit(&f->reader);
	fclose(f->file);
	f->file = NULL;
}

static void files_forget(struct files *f)
{
	files_close(f);
	list_deinit(&f->list);
	seen_deinit(&f->seen);
	free(f->sums);
	f->sums = NULL;
	f->checked = f->room = f->at = 0;
}

/* The table keeps what it has, and the list of files those that are not to be read again as they are. */
static void __attribute__((format(printf, 2, 3))) files_fail(struct files *f, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(f->why, sizeof(f->why), format, args);
	va_end(args);
	text_clean(f->why);
	files_close(f);
	files_set_state(f, FILES_APART);
	f->look_at = f->now + LOOK_MS;
}

/* The folder that it is, or is in. It is watched later than it is looked at: if another one has its name by
 * then, files_replaced() notices. */
static int files_watch(struct files *f)
{
	char path[PATH_MAX];
	struct stat st;
	int watch;

	f->is_folder = stat(f->path, &st) == 0 && S_ISDIR(st.st_mode);
	snprintf(path, sizeof(path), "%s", f->path);
	snprintf(f->folder, sizeof(f->folder), "%s", f->is_folder ? path : dirname(path));
	if (stat(f->folder, &f->watched) < 0)
		return -errno;
	watch = inotify_add_watch(f->inotify, f->folder,
		IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF |
			IN_ONLYDIR);
	if (watch < 0)
		return -errno;
	if (f->watch >= 0 && watch != f->watch)
		inotify_rm_watch(f->inotify, f->watch);
	f->watch = watch;
	return 0;
}

/* They are read if they are not those that were read last, or @again. */
static void files_look(struct files *f, bool again)
{
	struct files_list list = {0};
	int r = files_watch(f);

	f->look_at = f->now + LOOK_MS;
	if (r == 0)
		r = list_read(&list, f);
	if (r < 0) {
		list_deinit(&list);
		files_forget(f);
		/* of a watch (inotify_add_watch(2)); nothing is written here */
		files_fail(f, "%s",
			r == -ENOSPC ? "no inotify watch is left; fs.inotify.max_user_watches"
				     : file_error(r));
		return;
	}
	if (!again && f->list.one && list_same(&f->list, &list)) {
		list_deinit(&list);
		return;
	}
	files_forget(f);
	f->list = list;
	files_set_state(f, FILES_CHECKING);
}

/* Events tell of the folder that is watched, and of files that links in it lead to; not that a folder above,
 * or a link on the way, is another one now. */
static bool files_replaced(const struct files *f)
{
	struct files_list list = {0};
	struct stat st;
	bool same;

	if (stat(f->folder, &st) < 0 || !same_inode(&st, &f->watched))
		return true;
	if (!f->list.has_links)
		return false;
	same = list_read(&list, f) == 0 && list_same(&list, &f->list);
	list_deinit(&list);
	return !same;
}

static bool event_publishes(const struct files *f, const struct inotify_event *e)
{
	if (e->mask & IN_IGNORED)
		return false;
	if (!e->len)
		return true;
	return f->is_folder ? is_of_folder(e->name) : strcmp(e->name, strrchr(f->path, '/') + 1) == 0;
}

/* True: something is published. */
static bool files_read_events(struct files *f)
{
	char bytes[4096] __attribute__((aligned(8)));
	bool publishes = false;
	ssize_t n;

	while ((n = read(f->inotify, bytes, sizeof(bytes))) > 0) {
		const struct inotify_event *e;

		for (const char *p = bytes; p < bytes + n; p += sizeof(*e) + e->len) {
			e = (const struct inotify_event *)p;
			publishes |= event_publishes(f, e);
		}
	}
	return publishes;
}

/* ---- reading ------------------------------------------------------------------------------- */

static int files_open(struct files *f, struct files_one *one)
{
	int fd = file_open(one->path, O_RDONLY);

	if (fd < 0)
		return fd;
	f->file = tool_must(fdopen(fd, "r"));
	records_init(&f->reader, f->file, is_json(one->path) ? RECORDS_JSON : RECORDS_TSV, RECORDS_MOST);
	if (f->state == FILES_CHECKING && fstat(fd, &one->st) < 0)
		return -errno;
	return 0;
}

/* CHECKING reads as much as there was when it was opened; whoever appends does not stop it. LOADING reads
 * what was checked. */
static bool one_is_read(const struct files *f, const struct files_one *one)
{
	return f->state == FILES_CHECKING ? f->reader.bytes >= (uint64_t)one->st.st_size
					  : f->loaded == one->end;
}

/* A record, or RECORDS_END, or -errno */
static int one_next(struct files *f, struct files_one *one, struct record_text *rec)
{
	int r = f->file ? 0 : files_open(f, one);

	if (r < 0)
		return r;
	if (one_is_read(f, one))
		return RECORDS_END;
	r = records_next(&f->reader, rec);
	if (r == 0 && !rec->val) {
		snprintf(f->reader.why, sizeof(f->reader.why), "no value: a line is key TAB value");
		r = -EBADMSG;
	}
	if (f->state == FILES_CHECKING ? r == RECORDS_END && !one_is_read(f, one)
				       : r == RECORDS_END || r == -EBADMSG)
		return -ESTALE;
	return r;
}

/* The next record of all files, RECORDS_END, or -errno. */
static int files_next(struct files *f, struct record_text *rec)
{
	while (f->at < f->list.n) {
		struct files_one *one = &f->list.one[f->at];
		int r = one_next(f, one, rec);

		if (r < 0 || (r == 0 && prefixes_have(f->prefixes, rec->key, rec->key_len)))
			return r;
		if (r == RECORDS_END) {
			if (f->state == FILES_CHECKING)
				one->end = f->checked;
			files_close(f);
			f->at++;
		}
	}
	return RECORDS_END;
}

/* What has changed while it was read was published, or somebody is writing it: then its end is waited for. */
static void files_disturbed(struct files *f, int error)
{
	const char *name = list_name(&f->list, f->at);

	if (error == -EBADMSG) {
		files_fail(f, "%s:%" PRIu64 ": %s", name, f->reader.line, f->reader.why);
	} else if (error == -ENOENT || (error == -ESTALE && files_read_events(f))) {
		files_look(f, true);
	} else if (error == -ESTALE) {
		files_fail(f, "%s: somebody is writing it", name);
	} else {
		files_fail(f, "%s: %s", name, file_error(error));
		files_forget(f);
	}
}

/* False: one is there twice. Which of two comes first is chance. */
static bool files_are_unique(struct files *f)
{
	const struct seen_key *k = seen_twice(&f->seen);
	uint64_t a, b;

	if (!k)
		return true;
	a = k[0].where < k[1].where ? k[0].where : k[1].where;
	b = k[0].where < k[1].where ? k[1].where : k[0].where;
	files_fail(f, "%s:%u: the key is there twice, also in %s:%u", list_name(&f->list, b >> 32),
		(uint32_t)b, list_name(&f->list, a >> 32), (uint32_t)a);
	return false;
}

/* Some records more. True: that was all */
static bool files_read(struct files *f, int (*take)(struct files *, const struct record_text *))
{
	struct record_text rec;
	int r = 0;

	for (unsigned i = 0; i < TURN_RECORDS && r == 0; i++) {
		r = files_next(f, &rec);
		if (r == 0)
			r = take(f, &rec);
	}
	if (r < 0)
		files_disturbed(f, r);
	return r == RECORDS_END;
}

static uint64_t record_sum(const struct record_text *rec)
{
	return XXH3_64bits_withSeed(
		rec->val, rec->val_len, XXH3_64bits_withSeed(rec->key, rec->key_len, rec->key_len));
}

static int files_see(struct files *f, const struct record_text *rec)
{
	if (f->checked == f->room) {
		f->room = f->room ? 2 * f->room : 1024;
		f->sums = tool_must(reallocarray(f->sums, f->room, sizeof(*f->sums)));
	}
	f->sums[f->checked++] = record_sum(rec);
	seen_add(&f->seen, rec->key, rec->key_len, (uint64_t)f->at << 32 | (uint32_t)f->reader.line);
	return 0;
}

static void files_check(struct files *f)
{
	if (!files_read(f, files_see))
		return;
	seen_sort(&f->seen);
	if (!files_are_unique(f))
		return;
	f->at = 0;
	f->loaded = 0;
	f->no_room = false;
	files_set_state(f, FILES_LOADING);
}

/* -ESTALE: it is not what was checked */
static int files_put(struct files *f, const struct record_text *rec)
{
	const char *key = (const char *)rec->key, *val = (const char *)rec->val;

	if (record_sum(rec) != f->sums[f->loaded++])
		return -ESTALE;
	f->no_room |= mirror_equal(f->mirror, key, rec->key_len, val, rec->val_len) == MIRROR_NO_ROOM;
	return 0;
}

static void files_load(struct files *f)
{
	if (!files_read(f, files_put))
		return;
	files_set_state(f, FILES_REMOVING);
	mirror_walk(f->mirror, &f->walk);
}

static void files_remove(struct files *f)
{
	if (!mirror_keep(f->mirror, &f->walk, &f->seen, TURN_RECORDS))
		return;
	seen_deinit(&f->seen);
	f->loads++;
	f->published = false;
	f->look_at = f->no_room ? f->now + FULL_MS : UINT64_MAX;
	*f->why = '\0';
	files_set_state(f, FILES_FOLLOWING);
}

/* What was published until @ns has been read. */
static void files_publish(struct files *f, uint64_t ns)
{
	if (f->published && f->now < f->publish_at)
		return;
	if (files_replaced(f))
		return files_look(f, true);
	if (ns < f->mirror->as_of.host)
		mirror_reset_clock(f->mirror);
	mirror_publish(f->mirror, ns / 1000, ns, !mirror_count_absent(f->mirror));
	f->published = true;
	f->publish_at = f->now + PUBLISH_MS;
}

/* There may be room now. What is being written is not read for that. */
static void files_retry(struct files *f)
{
	bool written = false;
	struct stat st;

	for (uint32_t i = 0; i < f->list.n; i++) {
		struct files_one *one = &f->list.one[i];

		if (stat(one->path, &st) < 0 || !same_inode(&st, &one->st))
			continue;
		written |= !same_content(&st, &one->st);
		one->st = st;
	}
	f->look_at = f->now + FULL_MS;
	if (!written)
		files_look(f, true);
}

/* ---- the source ---------------------------------------------------------------------------- */

static void files_turn(void *of, const struct pollfd *fds)
{
	struct files *f = of;
	uint64_t ns = clock_read_ns(CLOCK_REALTIME);

	(void)fds;
	f->now = clock_ms();
	if (files_read_events(f))
		files_look(f, true);
	else if (f->state == FILES_APART && f->now >= f->look_at)
		files_look(f, false);
	else if (f->state == FILES_FOLLOWING && f->now >= f->look_at)
		files_retry(f);
	if (f->state == FILES_CHECKING)
		files_check(f);
	else if (f->state == FILES_LOADING)
		files_load(f);
	else if (f->state == FILES_REMOVING)
		files_remove(f);
	else if (f->state == FILES_FOLLOWING)
		files_publish(f, ns);
	f->grows = mirror_tend(f->mirror, f->now);
}

static int files_prepare(void *of, struct pollfd fds[SOURCE_FDS], nfds_t *n)
{
	struct files *f = of;
	uint64_t at = f->state == FILES_FOLLOWING && f->publish_at < f->look_at ? f->publish_at : f->look_at;
	uint64_t now = clock_ms();

	fds[0] = (struct pollfd){.fd = f->inotify, .events = POLLIN};
	*n = 1;
	if (f->grows || (f->state != FILES_APART && f->state != FILES_FOLLOWING) || at <= now)
		return 0;
	return at - now < LOOK_MS ? (int)(at - now) : LOOK_MS;
}

static void files_report(const void *of, struct source_report *report)
{
	static const char *const names[] = {"apart", "checking", "loading", "removing", "following"};
	const struct files *f = of;

	*report = (struct source_report){
		.stage = f->state == FILES_APART       ? SOURCE_APART
			 : f->state == FILES_FOLLOWING ? SOURCE_FOLLOWING
						       : SOURCE_LOADING,
		.state = names[f->state],
		.why = f->why,
		.loads = f->loads,
		.absent = mirror_count_absent(f->mirror),
		.complete = f->state == FILES_FOLLOWING && !mirror_count_absent(f->mirror),
		.settled = f->state == FILES_FOLLOWING && f->published,
	};
}

static void files_deinit(void *of)
{
	struct files *f = of;

	files_forget(f);
	close(f->inotify);
}

int files_init(struct files *f, const char *path, const struct prefixes *prefixes, struct mirror *m)
{
	*f = (struct files){.path = path, .prefixes = prefixes, .mirror = m, .watch = -1};
	f->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (f->inotify < 0)
		return -errno;
	mirror_set_source(m, source_number(path, prefixes), 0);
	return 0;
}

struct source files_as_source(struct files *f)
{
	return (struct source){.of = f,
		.name = f->path,
		.prepare = files_prepare,
		.turn = files_turn,
		.report = files_report,
		.deinit = files_deinit};
}
