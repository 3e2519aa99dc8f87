/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inputs KIND [--seed N] [--first N] [--count N | --time SECONDS] [SOCKET] - malformed input of one kind, made at random from good input:
 *
 *   config   configuration files, to the catalog
 *   connect  private data of a connection, to the parser of requests
 *   table    files, to what the daemon and the client library make of tables
 *   control  lines, to the control socket of a living daemon at SOCKET
 *
 * Input @n of seed @s is always the same: "--seed S --first N --count 1" repeats what has failed, and numbers are a corpus.
 * What is wrong must be refused in words, what is accepted must be whole. Meant to be built with sanitizers.
 */
#include "libclient/reddn-table.h"
#include "reddnd/catalog/catalog.h"
#include "reddnd/session/request.h"
#include "reddnd/session/table.h"
#include "softcx/fuzz/random.h"

#include <endian.h>
#include <errno.h>
#include <getopt.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { TEXT_MAX = 8192, WHY = 200 };

static const char *kind, *socket_path;
static uint64_t seed = 1, number;
static uint64_t rng;
static unsigned accepted, refused;

static void wrong(const char *what)
{
	fprintf(stderr, "%s: %s; repeat with: inputs %s --seed %llu --first %llu --count 1\n", kind, what,
		kind, (unsigned long long)seed, (unsigned long long)number);
	abort();
}

static void need(bool ok, const char *what)
{
	if (!ok)
		wrong(what);
}

static unsigned pick(unsigned n)
{
	return fuzz_pick(&rng, n);
}

/* ---- text ---------------------------------------------------------------------------------------------------- */

struct text {
	char bytes[TEXT_MAX];
	size_t len;
};

/* Puts @n bytes in the place of @cut bytes at @at, if there is room */
static void splice(struct text *t, size_t at, size_t cut, const char *with, size_t n)
{
	if (at > t->len || cut > t->len - at || t->len - cut + n > TEXT_MAX - 1)
		return;
	memmove(t->bytes + at + n, t->bytes + at + cut, t->len - at - cut);
	memcpy(t->bytes + at, with, n);
	t->len += n - cut;
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
	       c == '-';
}

/* A word, or what is between words, near a place chosen at random */
static size_t token(const struct text *t, size_t *from)
{
	size_t at = t->len ? pick((unsigned)t->len) : 0, end = at;

	if (!t->len)
		return *from = 0;
	while (at && is_word(t->bytes[at - 1]) == is_word(t->bytes[at]) && end - at < 24)
		at--;
	while (end < t->len && is_word(t->bytes[end]) == is_word(t->bytes[at]) && end - at < 48)
		end++;
	*from = at;
	return end - at;
}

static void damage(struct text *t, const char *const *words, unsigned nwords)
{
	size_t at, len = token(t, &at), other, n;
	char copy[64], value[32];

	switch (pick(8)) {
	case 0:
		splice(t, at, len, "", 0);
		break;
	case 1: /* twice */
		memcpy(copy, t->bytes + at, len);
		splice(t, at, 0, copy, len);
		break;
	case 2: /* another part of it */
		n = token(t, &other);
		memcpy(copy, t->bytes + other, n);
		splice(t, at, len, copy, n);
		break;
	case 3:
	case 4:
		other = pick(nwords);
		splice(t, at, pick(2) ? len : 0, words[other], strlen(words[other]));
		break;
	case 5:
		n = (size_t)snprintf(value, sizeof value, "%lld", (long long)fuzz_word(&rng));
		splice(t, at, len, value, n);
		break;
	case 6:
		if (t->len)
			t->bytes[pick((unsigned)t->len)] = (char)pick(256);
		break;
	case 7:
		if (pick(8) == 0)
			t->len = at;
		else /* the same thing very often */
			for (unsigned i = 1u << pick(9); i > 0; i--)
				splice(t, at, 0, words[0], strlen(words[0]));
		break;
	}
	t->bytes[t->len] = 0;
}

static struct text damaged(const char *good, const char *const *words, unsigned nwords)
{
	struct text t = {.len = strlen(good)};

	memcpy(t.bytes, good, t.len);
	for (unsigned i = pick(3) ? 1 : 1 + pick(4); i > 0; i--)
		damage(&t, words, nwords);
	return t;
}

/* ---- configuration ------------------------------------------------------------------------------------------- */

/* A string that does not end, or holds a syntax error behind it, is never freed by the lexer of libconfig */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libconfig_yylex\nleak:strbuf_append\n";
}

static char config_path[] = "/tmp/fuzz-config-XXXXXX";

static const char config_good[] =
	"programs = \"" PROGRAMS "\";\n"
	"listen = [ \"192.0.2.1:7471\", \"[::]:7471\" ];\n"
	"device = \"mlx5_0\";\ncontrol = \"/run/reddnd/control\";\narena = \"256M\";\n"
	"regions = ( { name = \"users\"; kind = \"table\"; path = \"/dev/shm/users\"; },\n"
	"  { name = \"notes\"; kind = \"raw\"; path = \"/dev/shm/notes\"; writable = true; } );\n"
	"offloads = ( { name = \"get\"; program = \"hash-get\"; region = \"users\"; params = { probes = 2; "
	"};\n"
	"    mode = \"unrolled\"; depth_max = 64; instances = 128; },\n"
	"  { name = \"tickets\"; program = \"counter\"; regions = { words = \"notes\"; }; mode = "
	"\"recycled\"; "
	"} );\n";

static void one_config(void)
{
	static const char *const words[] = {"(", "{", "[", ")", "}", "]", "=", ";", ",", "\"", "true", "-1",
		"0x7fffffffffffffff", "1e99", "0L", "99999999999999999999", "@include \"/dev/null\"\n",
		"@include \"absent\"\n", "/*", "//", "#", "\\x", "\"\\x00\"", "\"../../etc\"", "\"\"",
		"name = \"users\";", "instances", "depth_max", "params", "\"16E\"", "\"[::1\"", "\n",
		"\xff\xfe", "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\""};
	struct text t = damaged(config_good, words, sizeof words / sizeof *words);
	struct catalog *catalog = NULL;
	char *errors = NULL;
	FILE *f = fopen(config_path, "w");
	int r;

	need(f && fwrite(t.bytes, 1, t.len, f) == t.len && fclose(f) == 0, "the file cannot be written");
	r = catalog_load(config_path, &catalog, &errors);
	need(r == 0 || r == -EINVAL, "neither accepted nor refused");
	if (r == 0) {
		need(catalog && catalog->nlisten <= CATALOG_LISTEN_MAX, "half a catalog");
		for (unsigned i = 0; i < catalog->noffloads; i++)
			need(*catalog->offloads[i].name && catalog->offloads[i].text &&
					(!catalog->offloads[i].has_region ||
						catalog->offloads[i].region < catalog->nregions),
				"half an offload");
		catalog_free(catalog);
		free(errors);
		accepted++;
		return;
	}
	need(errors && *errors, "refused without words");
	need(strncmp(errors, config_path, strlen(config_path)) == 0 || strchr(errors, ':'), errors);
	for (const char *c = errors; *c; c++) /* to a terminal, or a log; programs have tabs */
		need((unsigned char)*c >= ' ' || *c == '\n' || *c == '\t', errors);
	free(errors);
	refused++;
}

/* ---- private data -------------------------------------------------------------------------------------------- */

static void one_connect(void)
{
	struct reddn_wire_req req = {
		.magic = htobe32(REDDN_WIRE_MAGIC),
		.version = REDDN_WIRE_VERSION,
		.depth = htobe16(8),
		.slot_addr = htobe64(0x7f0000001000),
		.slot_rkey = htobe32(0x1234),
		.slot_size = htobe32(4096),
		.offload = "users",
	};
	struct session_request r;
	struct reddn_wire_rej rej;
	size_t size = pick(8) ? sizeof req : pick(sizeof req + 1);
	uint8_t *data = malloc(size ? size : 1); /* of its own: a sanitizer sees its end */
	uint64_t word = htobe64(fuzz_word(&rng));

	need(data != NULL, "no memory");
	switch (pick(6)) {
	case 0:
		req.slot_addr = word;
		break;
	case 1:
		req.slot_size = (uint32_t)(word >> 32);
		req.depth = (uint16_t)(word >> 48);
		break;
	case 2:
		memset(req.offload + pick(24), (int)pick(256), 1);
		break;
	}
	memcpy(data, &req, size);
	for (unsigned i = pick(4); i > 0 && size; i--)
		data[pick((unsigned)size)] = pick(2) ? (uint8_t)pick(256) : pick(2) ? 0 : 255;
	if (session_request_parse(data, size, &r, &rej)) {
		need(size >= sizeof req, "too short a request is accepted");
		need(r.depth && r.slot_addr % 64 == 0 && r.slot_size % 64 == 0 && r.slot_size &&
				r.slot_addr + (uint64_t)r.depth * r.slot_size >= r.slot_addr,
			"impossible slots are accepted");
		need(*r.offload && strnlen(r.offload, sizeof r.offload) < sizeof r.offload, "no name");
		for (const char *c = r.offload; *c; c++)
			need(*c > ' ' && *c < 127, "a name that would spoil a log");
		session_request_check(&r, 64, 4096, &rej);
		accepted++;
	} else {
		need(be32toh(rej.magic) == REDDN_WIRE_MAGIC && rej.version == REDDN_WIRE_VERSION &&
				rej.reason && *rej.text && memchr(rej.text, 0, sizeof rej.text),
			"refused without words");
		refused++;
	}
	free(data);
}

/* ---- tables -------------------------------------------------------------------------------------------------- */

static int table_fd;
static uint8_t *table_good, *table_bad;
static size_t table_size;

static void make_table(void)
{
	const struct reddn_table_options options = {
		.buckets = 64, .heap_size = 8192, .max_key = 16, .max_value = 100, .seed = 3};
	struct reddn_table *t;
	struct reddn_table_stat st;

	table_fd = memfd_create("table", MFD_CLOEXEC);
	need(reddn_table_create_fd(&t, table_fd, &options, NULL, 0) == 0, "no table");
	for (int k = 0; k < 20; k++)
		need(reddn_table_put(t, &k, sizeof k, "0123456789012345678901234567890123456789",
			     10 + (size_t)k) == 0,
			"no entry");
	reddn_table_stat(t, &st);
	reddn_table_close(t);
	table_size = st.file_size;
	table_bad = mmap(NULL, table_size, PROT_READ | PROT_WRITE, MAP_SHARED, table_fd, 0);
	table_good = malloc(table_size);
	need(table_bad != MAP_FAILED && table_good, "no memory");
	memcpy(table_good, table_bad, table_size);
}

static void use_table(int flags)
{
	struct reddn_table_entry e;
	struct reddn_table *t;
	char why[WHY] = "";
	uint64_t at = 0;
	int r;

	if (reddn_table_open_fd(&t, table_fd, flags, why, sizeof why) < 0) {
		need(*why, "refused without words");
		refused++;
		return;
	}
	accepted++;
	while ((r = reddn_table_next(t, &at, &e)) != REDDN_TABLE_END)
		need(r < 0 || (e.key_len && e.key_len + e.val_len < table_size), "a record that cannot be");
	for (int k = 0; k < 24; k++) {
		const void *value;
		size_t len;

		reddn_table_get(t, &k, sizeof k, &value, &len);
		if (flags & REDDN_TABLE_WRITE) {
			reddn_table_put(t, &k, sizeof k, "new", 3);
			reddn_table_delete(t, &k, sizeof k);
		}
	}
	reddn_table_close(t);
}

static void one_table(void)
{
	struct table_geometry g;
	char why[WHY] = "";
	uint64_t size = pick(8) ? table_size : pick((unsigned)table_size + 1);
	int r;

	memcpy(table_bad, table_good, table_size);
	for (unsigned i = 1 + pick(3); i > 0; i--) {
		uint64_t word = fuzz_word(&rng);

		if (pick(4)) /* a field of the header; its records and buckets else */
			memcpy(table_bad + 8 * pick(24) + 4 * pick(2), &word, pick(2) ? 8 : 4);
		else
			table_bad[pick((unsigned)table_size)] = (uint8_t)word;
	}
	r = table_geometry(table_bad, size, &g, why, sizeof why);
	if (r == 0) {
		need(g.buckets_off >= REDDN_TABLE_PAGE && g.buckets_off <= size &&
				g.buckets * 16 <= size - g.buckets_off && g.heap_off <= size && g.heap_size &&
				g.heap_size <= size - g.heap_off &&
				g.heap_off >= g.buckets_off + g.buckets * 16,
			"a window outside of the file is accepted");
		need(g.offset_len >= 1 && g.offset_len <= 5 && table_slot_need(&g) < 1u << 25,
			"impossible sizes");
	} else {
		need(r == -EINVAL && *why, "refused without words");
	}
	use_table(0);
	use_table(REDDN_TABLE_WRITE);
	need(ftruncate(table_fd, (off_t)table_size) == 0, "no memory");
}

/* ---- control socket ------------------------------------------------------------------------------------------ */

static int reach(void)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	const struct timeval patience = {.tv_sec = 20};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	need(fd >= 0 && strlen(socket_path) < sizeof to.sun_path, "no socket");
	strcpy(to.sun_path, socket_path);
	need(connect(fd, (struct sockaddr *)&to, sizeof to) == 0, "the daemon does not answer");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	return fd;
}

/* An answer: an object that says whether it is one, and if not, why */
static void judge(const char *line)
{
	struct json_object *o = json_tokener_parse(line), *ok, *error;

	need(o && json_object_object_get_ex(o, "ok", &ok) && json_object_is_type(ok, json_type_boolean),
		"an answer that is none");
	if (json_object_get_boolean(ok)) {
		accepted++;
	} else {
		need(json_object_object_get_ex(o, "error", &error) && *json_object_get_string(error),
			"refused without words");
		refused++;
	}
	json_object_put(o);
}

static void one_control(void)
{
	static const char *const good[] = {"{ \"command\": \"status\" }", "{ \"command\": \"clients\" }",
		"{ \"command\": \"kick\", \"session\": 123456 }", "{\"command\":\"metrics\"}",
		"{ \"command\": \"offloads\" }", "{ \"command\": \"regions\" }"};
	static const char *const words[] = {"[", "{", "}", "]", ":", ",", "\"", "null", "true", "1e400", "-0",
		"\"\\ud800\"", "\"\\u0000\"", "\"command\":", "\"session\":", "18446744073709551616", "\xff",
		"\"command\": \"status\", ", "//", "/*", "NaN", "\\"};
	static char answer[1 << 20];
	struct text t = damaged(good[pick(6)], words, sizeof words / sizeof *words);
	unsigned lines = 1;
	int fd = reach();
	size_t got = 0;

	for (size_t i = 0; i < t.len; i++)
		lines += t.bytes[i] == '\n';
	t.bytes[t.len] = '\n';
	/* In two parts; and now and then without its end, or without waiting for the answer */
	if (send(fd, t.bytes, t.len / 2, MSG_NOSIGNAL) < 0 || pick(16) == 0 ||
		send(fd, t.bytes + t.len / 2, t.len - t.len / 2 + 1, MSG_NOSIGNAL) < 0 || pick(16) == 0) {
		close(fd);
		refused++;
		return;
	}
	for (char *line = answer, *end; lines > 0; lines--, line = end + 1) {
		while (!(end = memchr(line, '\n', got - (size_t)(line - answer)))) {
			ssize_t n = recv(fd, answer + got, sizeof answer - 1 - got, 0);

			need(n > 0, "a line without an answer");
			got += (size_t)n;
		}
		*end = 0;
		judge(line);
	}
	close(fd);
}

/* ---- all of them --------------------------------------------------------------------------------------------- */

static const struct kind {
	const char *name;
	void (*one)(void);
} kinds[] = {
	{"config", one_config},
	{"connect", one_connect},
	{"table", one_table},
	{"control", one_control},
};

int main(int argc, char **argv)
{
	static const struct option options[] = {{"seed", required_argument, NULL, 's'},
		{"first", required_argument, NULL, 'f'}, {"count", required_argument, NULL, 'c'},
		{"time", required_argument, NULL, 't'}, {NULL, 0, NULL, 0}};
	uint64_t first = 0, count = 1200;
	const struct kind *k = NULL;
	time_t end = 0;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (c) {
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'f':
			first = strtoull(optarg, NULL, 0);
			break;
		case 'c':
			count = strtoull(optarg, NULL, 0);
			break;
		case 't':
			end = time(NULL) + atoi(optarg);
			break;
		default:
			return 2;
		}
	kind = optind < argc ? argv[optind++] : "";
	socket_path = optind < argc ? argv[optind] : NULL;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strcmp(kind, kinds[i].name) == 0)
			k = &kinds[i];
	if (!k || (k->one == one_control && !socket_path)) {
		fputs("usage: inputs config|connect|table|control [--seed N] [--first N] [--count N | --time "
		      "SECONDS] "
		      "[SOCKET]\n",
			stderr);
		return 2;
	}
	if (k->one == one_config)
		close(mkstemp(config_path));
	if (k->one == one_table)
		make_table();
	for (number = first; end ? time(NULL) < end : number < first + count; number++) {
		rng = fuzz_start(seed, number, 0);
		k->one();
	}
	if (k->one == one_config)
		unlink(config_path);
	if (k->one == one_table) {
		munmap(table_bad, table_size);
		free(table_good);
		close(table_fd);
	}
	printf("%s: %llu inputs, %u accepted, %u refused\n", kind, (unsigned long long)(number - first),
		accepted, refused);
	return 0;
}
