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

static struct files_version version_of(const struct stat *st)
{
	return (struct files_version){st->st_dev, st->st_ino, st->st_size, st->st_mtim};
}

static bool version_same(const struct files_version *a, const struct files_version *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

static bool list_same(const struct files_list *a, const struct files_list *b)
{
	if (a->n != b->n)
		return false;
	for (uint32_t i = 0; i < a->n; i++)
		if (strcmp(a->one[i].path, b->one[i].path) != 0 ||
			!version_same(&a->one[i].version, &b->one[i].version))
			return false;
	return true;
}

static void list_add(struct files_list *l, const char *path, const struct stat *st)
{
	l->one = tool_must(realloc(l->one, (l->n + 1) * sizeof(*l->one)));
	l->one[l->n++] = (struct files_one){tool_must(strdup(path)), version_of(st)};
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

/* One that goes away meanwhile is not there; inotify reports that. 0 or -errno */
static int list_folder(struct files_list *l, const char *folder)
{
	CLEANUP(closedirp) DIR *dir = opendir(folder);
	char path[PATH_MAX];
	struct dirent *e;
	struct stat st;

	if (!dir)
		return -errno;
	while ((e = readdir(dir))) {
		if (!is_of_folder(e->d_name))
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", folder, e->d_name) >= (int)sizeof(path))
			return -ENAMETOOLONG;
		if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
			list_add(l, path, &st);
	}
	qsort(l->one, l->n, sizeof(*l->one), by_path);
	return 0;
}

static int list_read(struct files_list *l, const char *path, bool is_folder)
{
	struct stat st;

	if (is_folder)
		return list_folder(l, path);
	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	list_add(l, path, &st);
	return 0;
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
	f->at = 0;
}

/* The table keeps what it has, and the list of files what is not to be read again as it is. */
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

/* The folder that it is, or is in */
static int files_watch(struct files *f)
{
	char folder[PATH_MAX];
	struct stat st;
	bool is_folder = stat(f->path, &st) == 0 && S_ISDIR(st.st_mode);

	if (f->watch >= 0 && f->is_folder == is_folder)
		return 0;
	if (f->watch >= 0)
		inotify_rm_watch(f->inotify, f->watch);
	f->is_folder = is_folder;
	snprintf(folder, sizeof(folder), "%s", f->path);
	f->watch = inotify_add_watch(f->inotify, is_folder ? folder : dirname(folder),
		IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF |
			IN_ONLYDIR);
	return f->watch < 0 ? -errno : 0;
}

/* They are read if another version is there than that which was read last, or @again. */
static void files_look(struct files *f, bool again)
{
	struct files_list list = {0};
	int r = files_watch(f);

	f->look_at = f->now + LOOK_MS;
	if (r == 0)
		r = list_read(&list, f->path, f->is_folder);
	if (r < 0) {
		list_deinit(&list);
		files_forget(f);
		files_fail(f, "%s", file_error(r));
		return;
	}
	if (!again && (f->list.one || f->state == FILES_FOLLOWING) && list_same(&f->list, &list)) {
		list_deinit(&list);
		return;
	}
	files_forget(f);
	f->list = list;
	files_set_state(f, FILES_CHECKING);
}

/* One that is written is not read because of others. What gets another name may be what a symbolic link leads
 * over. */
static bool event_publishes(const struct files *f, const struct inotify_event *e)
{
	if (!e->len || (e->mask & IN_MOVED_TO))
		return true;
	return f->is_folder ? is_of_folder(e->name) : strcmp(e->name, strrchr(f->path, '/') + 1) == 0;
}

/* True: something is published. A folder that is gone is looked for again. */
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
			if (e->wd != f->watch || !(e->mask & (IN_IGNORED | IN_MOVE_SELF)))
				continue;
			if (e->mask & IN_MOVE_SELF)
				inotify_rm_watch(f->inotify, f->watch);
			f->watch = -1;
		}
	}
	return publishes;
}

/* ---- reading ------------------------------------------------------------------------------- */

static int open_version(const struct files_one *one)
{
	int fd = file_open(one->path, O_RDONLY);
	struct files_version version;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0) {
		close(fd);
		return -EIO;
	}
	version = version_of(&st);
	if (!version_same(&version, &one->version)) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

static int files_open(struct files *f)
{
	const char *path = f->list.one[f->at].path;
	int fd = open_version(&f->list.one[f->at]);

	if (fd < 0)
		return fd;
	f->file = tool_must(fdopen(fd, "r"));
	records_init(&f->reader, f->file, is_json(path) ? RECORDS_JSON : RECORDS_TSV, RECORDS_MOST);
	return 0;
}

/* The next record of all files. RECORDS_END: that was all; or -errno: it is another state now */
static int files_next(struct files *f, struct record_text *rec)
{
	int r = 0;

	while (f->at < f->list.n) {
		if (!f->file)
			r = files_open(f);
		if (r == 0)
			r = records_next(&f->reader, rec);
		if (r == 0 && !rec->val) {
			snprintf(f->reader.why, sizeof(f->reader.why), "no value: a line is key TAB value");
			r = -EBADMSG;
		}
		if (r == 0 && prefixes_have(f->prefixes, rec->key, rec->key_len))
			return 0;
		if (r < 0)
			break;
		if (r == RECORDS_END) {
			files_close(f);
			f->at++;
		}
		r = 0;
	}
	if (r == 0)
		return RECORDS_END;
	if (r == -EBADMSG) {
		files_fail(
			f, "%s:%" PRIu64 ": %s", list_name(&f->list, f->at), f->reader.line, f->reader.why);
	} else if (r == -ESTALE || r == -ENOENT) {
		files_look(f, true);
	} else {
		files_fail(f, "%s: %s", list_name(&f->list, f->at), file_error(r));
		files_forget(f);
	}
	return r;
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
static bool files_read(struct files *f, void (*take)(struct files *, const struct record_text *))
{
	struct record_text rec;
	int r = 0;

	for (unsigned i = 0; i < TURN_RECORDS && r == 0; i++) {
		r = files_next(f, &rec);
		if (r == 0)
			take(f, &rec);
	}
	return r == RECORDS_END;
}

static void files_see(struct files *f, const struct record_text *rec)
{
	seen_add(&f->seen, rec->key, rec->key_len, (uint64_t)f->at << 32 | (uint32_t)f->reader.line);
}

static void files_check(struct files *f)
{
	if (!files_read(f, files_see))
		return;
	seen_sort(&f->seen);
	if (!files_are_unique(f))
		return;
	f->at = 0;
	f->no_room = false;
	files_set_state(f, FILES_LOADING);
}

static void files_put(struct files *f, const struct record_text *rec)
{
	const char *key = (const char *)rec->key, *val = (const char *)rec->val;

	f->no_room |= mirror_equal(f->mirror, key, rec->key_len, val, rec->val_len) == MIRROR_NO_ROOM;
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
	if (ns < f->mirror->as_of.host)
		mirror_reset_clock(f->mirror);
	mirror_publish(f->mirror, ns / 1000, ns, !mirror_count_absent(f->mirror));
	f->published = true;
	f->publish_at = f->now + PUBLISH_MS;
}

/* ---- the source ---------------------------------------------------------------------------- */

static void files_turn(void *of, const struct pollfd *fds)
{
	struct files *f = of;
	uint64_t ns = clock_read_ns(CLOCK_REALTIME);

	(void)fds;
	f->now = clock_ms();
	if (files_read_events(f))
		files_look(f, false);
	else if (f->now >= f->look_at && (f->state == FILES_APART || f->state == FILES_FOLLOWING))
		files_look(f, f->state == FILES_FOLLOWING);
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
