/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/nic/fault.h"

#include "mlx5/cqe.h"
#include "mlx5/wqe.h"
#include "softcx/hw/fault.h"
#include "softcx/nic/ident.h"
#include "softcx/nic/sysfs.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* -ENOSPC: too many. */
static int kills_add(struct kills *kills, const struct kill_fault *fault)
{
	if (kills->n == KILL_MAX)
		return -ENOSPC;
	kills->fault[kills->n++] = *fault;
	return 0;
}

/* Forgets one, or all with @id 0. Returns the number of those forgotten. */
static unsigned kills_clear(struct kills *kills, uint32_t id)
{
	unsigned kept = 0, n = kills->n;

	for (unsigned i = 0; i < n; i++)
		if (id && kills->fault[i].id != id)
			kills->fault[kept++] = kills->fault[i];
	kills->n = kept;
	return n - kept;
}

static bool strikes(struct kill_fault *f, const char *program)
{
	if (f->program[0] && strcmp(f->program, program) != 0)
		return false;
	f->seen++;
	if (f->seen < f->at || (f->count && f->struck == f->count))
		return false;
	f->struck++;
	return true;
}

bool kills_meet(struct kills *kills, enum kill_moment moment, const char *program)
{
	bool strike = false;

	for (unsigned i = 0; i < kills->n; i++)
		if (kills->fault[i].moment == moment && strikes(&kills->fault[i], program))
			strike = true;
	return strike;
}

struct name {
	const char *name;
	unsigned value;
};

enum { FIRST_KILL = HW_FAULT_DEVICE_FATAL + 1 }; /* enum kill_moment begins here */

static const struct name kinds[] = {
	{"drop", HW_FAULT_DROP},
	{"delay", HW_FAULT_DELAY},
	{"split", HW_FAULT_SPLIT},
	{"rnr", HW_FAULT_RNR},
	{"error", HW_FAULT_ERROR},
	{"qp-error", HW_FAULT_QP_ERROR},
	{"port-down", HW_FAULT_PORT_DOWN},
	{"port-up", HW_FAULT_PORT_UP},
	{"mkey-revoke", HW_FAULT_MKEY_REVOKE},
	{"device-fatal", HW_FAULT_DEVICE_FATAL},
	{"kill-before", FIRST_KILL + KILL_BEFORE},
	{"kill-after", FIRST_KILL + KILL_AFTER},
	{0},
};

static const struct name opcodes[] = {
	{"nop", WQE_OP_NOP},
	{"send", WQE_OP_SEND},
	{"send-imm", WQE_OP_SEND_IMM},
	{"send-inval", WQE_OP_SEND_INVAL},
	{"write", WQE_OP_WRITE},
	{"write-imm", WQE_OP_WRITE_IMM},
	{"read", WQE_OP_READ},
	{"cas", WQE_OP_CAS},
	{"fetch-add", WQE_OP_FETCH_ADD},
	{"masked-cas", WQE_OP_MASKED_CAS},
	{"masked-fetch-add", WQE_OP_MASKED_FETCH_ADD},
	{"send-enable", WQE_OP_SEND_EN},
	{"recv-enable", WQE_OP_RECV_EN},
	{"local-inval", WQE_OP_LOCAL_INVAL},
	{0},
};

static const struct name syndromes[] = {
	{"local-length", CQE_SYND_LOCAL_LENGTH},
	{"local-qp-operation", CQE_SYND_LOCAL_QP_OP},
	{"local-protection", CQE_SYND_LOCAL_PROT},
	{"local-access", CQE_SYND_LOCAL_ACCESS},
	{"remote-invalid-request", CQE_SYND_REMOTE_INVAL},
	{"remote-access", CQE_SYND_REMOTE_ACCESS},
	{"remote-operation", CQE_SYND_REMOTE_OP},
	{"retry-exceeded", CQE_SYND_RETRY},
	{"rnr-retry-exceeded", CQE_SYND_RNR_RETRY},
	{0},
};

/* The fault as parsed so far, or the mistake. */
struct command {
	struct hw_fault fault;
	struct kill_fault kill; /* in place of it */
	unsigned kind, dev;
	bool has_count;
	char wrong[256];
};

__attribute__((format(printf, 2, 3))) static bool wrong(struct command *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->wrong, sizeof(c->wrong), fmt, ap);
	va_end(ap);
	return false;
}

static const char *name_of(const struct name *n, unsigned value)
{
	while (n->name && n->value != value)
		n++;
	return n->name;
}

static bool find_name(
	struct command *c, const char *what, const struct name *names, const char *text, unsigned *out)
{
	int len;

	for (const struct name *n = names; n->name; n++)
		if (strcmp(n->name, text) == 0) {
			*out = n->value;
			return true;
		}
	len = snprintf(c->wrong, sizeof(c->wrong), "%s %.32s: not one of", what, text);
	for (const struct name *n = names; n->name && len < (int)sizeof(c->wrong); n++)
		len += snprintf(c->wrong + len, sizeof(c->wrong) - (size_t)len, " %s", n->name);
	return false;
}

static bool number(
	struct command *c, const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 0);
	if (errno || end == text || *end || *text == '-' || *out < min || *out > max)
		return wrong(c, "%s %.32s: not a number from %llu to %llu", what, text,
			(unsigned long long)min, (unsigned long long)max);
	return true;
}

static bool probability(struct command *c, const char *text)
{
	char *end;

	c->fault.probability = strtod(text, &end);
	if (end == text || *end || !(c->fault.probability > 0 && c->fault.probability <= 1))
		return wrong(c, "--probability %.32s: not a number above 0 and up to 1", text);
	return true;
}

static bool device(struct command *c, const struct faults *faults, const char *text)
{
	char label[SOFTCX_MAX_LABEL];
	int len;

	if (ident_find_dev(text, &c->dev) == 0)
		return true;
	len = snprintf(c->wrong, sizeof(c->wrong), "--device %.48s: not one of", text);
	for (unsigned i = 0; i < faults->ndevs && len < (int)sizeof(c->wrong); i++)
		len += snprintf(c->wrong + len, sizeof(c->wrong) - (size_t)len, " %s", ident_dev(i, label));
	return false;
}

static bool kill_option(struct command *c, const char *name, const char *value)
{
	size_t len = strlen(value);

	if (strcmp(name, "--at") == 0)
		return number(c, name, value, 1, UINT64_MAX, &c->kill.at);
	if (strcmp(name, "--count") == 0)
		return number(c, name, value, 0, UINT64_MAX, &c->kill.count);
	if (strcmp(name, "--program") != 0)
		return wrong(c, "%.32s: not an option of %s", name, name_of(kinds, c->kind));
	if (len >= sizeof(c->kill.program))
		return wrong(c, "--program %.32s: more than %zu bytes", value, sizeof(c->kill.program) - 1);
	memcpy(c->kill.program, value, len + 1);
	return true;
}

static bool option(struct command *c, const struct faults *faults, const char *name, const char *value)
{
	struct hw_fault *f = &c->fault;
	unsigned opcode;
	uint64_t n;

	if (c->kind >= FIRST_KILL)
		return kill_option(c, name, value);
	if (strcmp(name, "--device") == 0)
		return device(c, faults, value);
	if (strcmp(name, "--probability") == 0)
		return probability(c, value);
	if (strcmp(name, "--at") == 0)
		return number(c, name, value, 1, UINT64_MAX, &f->at);
	if (strcmp(name, "--qp") == 0) {
		if (!number(c, name, value, 1, 0xffffff, &n))
			return false;
		f->qpn = (uint32_t)n;
		return true;
	}
	if (strcmp(name, "--count") == 0) {
		c->has_count = true;
		return number(c, name, value, 0, UINT64_MAX, &f->count);
	}
	if (strcmp(name, "--opcode") == 0) {
		if (!find_name(c, name, opcodes, value, &opcode))
			return false;
		f->opcode = (int)opcode;
		return true;
	}
	return wrong(c, "%.32s: no such option", name);
}

static bool takes_time(const struct hw_fault *f)
{
	return f->kind == HW_FAULT_DELAY || f->kind == HW_FAULT_SPLIT;
}

/* The word after the kind, of the kinds that have one. */
static bool operand(struct command *c, char **save)
{
	struct hw_fault *f = &c->fault;
	const char *word;
	unsigned syndrome;
	uint64_t n;

	if (!takes_time(f) && f->kind != HW_FAULT_ERROR && f->kind != HW_FAULT_MKEY_REVOKE)
		return true;
	word = strtok_r(NULL, " ", save);
	if (!word)
		return wrong(c, "%s of what? See softcx(1)", name_of(kinds, f->kind));
	switch (f->kind) {
	case HW_FAULT_DELAY:
	case HW_FAULT_SPLIT:
		if (!number(c, name_of(kinds, f->kind), word, 1, 60000000, &n))
			return false;
		f->delay_ns = n * 1000;
		return true;
	case HW_FAULT_ERROR:
		if (!find_name(c, "error", syndromes, word, &syndrome))
			return false;
		f->syndrome = (uint8_t)syndrome;
		return true;
	default:
		if (!number(c, "mkey-revoke", word, 1, UINT32_MAX, &n))
			return false;
		f->key = (uint32_t)n;
		return true;
	}
}

static bool parse(struct command *c, const struct faults *faults, char **save)
{
	const char *word = strtok_r(NULL, " ", save), *value;
	struct hw_fault *f = &c->fault;

	if (!word)
		return wrong(c, "add what? See softcx(1)");
	if (!find_name(c, "fault", kinds, word, &c->kind))
		return false;
	if (c->kind >= FIRST_KILL)
		c->kill = (struct kill_fault){
			.moment = (enum kill_moment)(c->kind - FIRST_KILL), .at = 1, .count = 1};
	else
		f->kind = (enum hw_fault_kind)c->kind;
	f->opcode = -1;
	if (c->kind < FIRST_KILL && !operand(c, save))
		return false;
	while ((word = strtok_r(NULL, " ", save))) {
		value = strtok_r(NULL, " ", save);
		if (!value)
			return wrong(c, "%.32s: a value is missing", word);
		if (!option(c, faults, word, value))
			return false;
	}
	if (f->at && f->probability > 0)
		return wrong(c, "--at and --probability exclude each other");
	if (!f->at && f->probability == 0 && (c->kind <= HW_FAULT_ERROR || f->opcode >= 0))
		f->at = 1;
	if (!c->has_count)
		f->count = f->at ? 1 : 0;
	return true;
}

__attribute__((format(printf, 2, 3))) static void answer(int fd, const char *fmt, ...)
{
	char text[320];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	send(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static int keep(struct faults *faults, struct command *c, uint32_t id)
{
	if (c->kind >= FIRST_KILL) {
		c->kill.id = id;
		return kills_add(&faults->kills, &c->kill);
	}
	c->fault.id = id;
	return hw_fault_add(faults->devs[c->dev], &c->fault);
}

static void add(struct faults *faults, char **save, int fd)
{
	char label[SOFTCX_MAX_LABEL];
	struct command c = {0};
	int rc;

	if (parse(&c, faults, save)) {
		rc = keep(faults, &c, faults->last_id + 1);
		if (rc == 0) {
			faults->last_id++;
			answer(fd, "+fault %u", faults->last_id);
			return;
		}
		if (rc == -ENOENT)
			wrong(&c, "%s has no such %s", ident_dev(c.dev, label),
				c.fault.qpn ? "queue pair" : "memory key");
		else if (rc == -ENOSPC)
			wrong(&c, "there are %d such faults already: softcx fault clear",
				c.kind >= FIRST_KILL ? KILL_MAX : HW_FAULT_MAX);
		else if (rc == -EINVAL)
			wrong(&c, "%s does not go with these options; see softcx(1)", name_of(kinds, c.kind));
		else
			wrong(&c, "%s", strerror(-rc));
	}
	answer(fd, "-%s", c.wrong);
}

static struct json_object *describe_kill(const struct kill_fault *f)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "id", json_object_new_int64(f->id));
	json_object_object_add(
		o, "kind", json_object_new_string(name_of(kinds, FIRST_KILL + (unsigned)f->moment)));
	if (f->program[0])
		json_object_object_add(o, "program", json_object_new_string(f->program));
	json_object_object_add(o, "at", json_object_new_uint64(f->at));
	json_object_object_add(o, "count", json_object_new_uint64(f->count));
	json_object_object_add(o, "seen", json_object_new_uint64(f->seen));
	json_object_object_add(o, "struck", json_object_new_uint64(f->struck));
	return o;
}

static struct json_object *describe(unsigned dev, const struct hw_fault *f)
{
	struct json_object *o = json_object_new_object();
	char label[SOFTCX_MAX_LABEL];

	json_object_object_add(o, "id", json_object_new_int64(f->id));
	json_object_object_add(o, "device", json_object_new_string(ident_dev(dev, label)));
	json_object_object_add(o, "kind", json_object_new_string(name_of(kinds, f->kind)));
	if (takes_time(f))
		json_object_object_add(o, "microseconds", json_object_new_uint64(f->delay_ns / 1000));
	if (f->kind == HW_FAULT_ERROR)
		json_object_object_add(
			o, "syndrome", json_object_new_string(name_of(syndromes, f->syndrome)));
	if (f->kind == HW_FAULT_MKEY_REVOKE)
		json_object_object_add(o, "key", json_object_new_int64(f->key));
	if (f->qpn)
		json_object_object_add(o, "qp", json_object_new_int64(f->qpn));
	if (f->opcode >= 0)
		json_object_object_add(
			o, "opcode", json_object_new_string(name_of(opcodes, (unsigned)f->opcode)));
	if (f->at)
		json_object_object_add(o, "at", json_object_new_uint64(f->at));
	else
		json_object_object_add(o, "probability", json_object_new_double(f->probability));
	json_object_object_add(o, "count", json_object_new_uint64(f->count));
	json_object_object_add(o, "seen", json_object_new_uint64(f->seen));
	json_object_object_add(o, "struck", json_object_new_uint64(f->struck));
	return o;
}

static void list(const struct faults *faults, int fd)
{
	struct json_object *all = json_object_new_array();
	const struct hw_fault *f;
	const char *text;
	char plus[] = "+";
	struct iovec iov[2];
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};

	for (unsigned i = 0; i < faults->ndevs; i++)
		for (f = hw_fault_next(faults->devs[i], NULL); f; f = hw_fault_next(faults->devs[i], f))
			json_object_array_add(all, describe(i, f));
	for (unsigned i = 0; i < faults->kills.n; i++)
		json_object_array_add(all, describe_kill(&faults->kills.fault[i]));
	text = json_object_to_json_string_ext(all, JSON_C_TO_STRING_PLAIN);
	iov[0] = (struct iovec){plus, 1};
	iov[1] = (struct iovec){(char *)(uintptr_t)text, strlen(text)};
	sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	json_object_put(all);
}

static void clear(struct faults *faults, char **save, int fd)
{
	const char *word = strtok_r(NULL, " ", save);
	struct command c = {0};
	uint64_t id = 0;
	unsigned n = 0;

	if (word && !number(&c, "clear", word, 1, UINT32_MAX, &id)) {
		answer(fd, "-%s", c.wrong);
		return;
	}
	for (unsigned i = 0; i < faults->ndevs; i++)
		n += hw_fault_clear(faults->devs[i], (uint32_t)id);
	n += kills_clear(&faults->kills, (uint32_t)id);
	if (id && !n)
		answer(fd, "-there is no fault %llu", (unsigned long long)id);
	else
		answer(fd, "+");
}

void faults_command(struct faults *faults, char *text, int fd)
{
	char *save, *verb = strtok_r(text, " ", &save);

	if (verb && strcmp(verb, "add") == 0)
		add(faults, &save, fd);
	else if (verb && strcmp(verb, "list") == 0)
		list(faults, fd);
	else if (verb && strcmp(verb, "clear") == 0)
		clear(faults, &save, fd);
	else
		answer(fd, "-not one of add list clear");
}

static void port_event(void *arg, int event)
{
	const struct fault_port *p = arg;

	if (event == HW_EV_PORT_UP || event == HW_EV_PORT_DOWN)
		sysfs_port((unsigned)(p - p->faults->port), event == HW_EV_PORT_UP);
}

void faults_init(struct faults *faults, struct hw_dev *const *devs, unsigned ndevs)
{
	*faults = (struct faults){.devs = devs, .ndevs = ndevs};
	for (unsigned i = 0; i < ndevs; i++) {
		struct fault_port *p = &faults->port[i];

		*p = (struct fault_port){faults, {.on_event = port_event, .arg = p}};
		hw_dev_watch(devs[i], &p->watch);
	}
}

void faults_deinit(struct faults *faults)
{
	for (unsigned i = 0; i < faults->ndevs; i++)
		hw_dev_unwatch(&faults->port[i].watch);
	faults->ndevs = 0;
}
