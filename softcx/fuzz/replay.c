/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/fuzz/random.h"
#include "softcx/fuzz/shared.h"
#include "softcx/fuzz/wire.h"
#include "util/array.h"

#include <fcntl.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MAX_FILES = 64, STEPS_MAX = 400 };

struct replay {
	const struct replay_setup *setup;
	const struct conv *conv;
	struct wire_file files[MAX_FILES];
	struct wire_arena arena;
	struct replay_counts *counts;
	uint64_t rng; /* of the step */
	uint8_t packet[SOFTCX_MAX_MSG + 64];
	size_t len;
};

static uint32_t pick(struct replay *r, uint32_t n)
{
	return fuzz_pick(&r->rng, n);
}

static struct softcx_request *request(struct replay *r)
{
	return (struct softcx_request *)(void *)r->packet;
}

static uint8_t *body(struct replay *r)
{
	return r->packet + sizeof(struct softcx_request);
}

static size_t body_len(const struct replay *r)
{
	return r->len > sizeof(struct softcx_request) ? r->len - sizeof(struct softcx_request) : 0;
}

/* ---- damage ----------------------------------------------------------------------------- */

/** Words are aligned in every command: most damage is a word that is another one. */
static void damage_words(struct replay *r, uint8_t *p, size_t len)
{
	for (unsigned n = 1 + pick(r, 3); n && len >= 4; n--) {
		uint64_t v = fuzz_word(&r->rng);
		unsigned size = len >= 8 && pick(r, 3) == 0 ? 8
				: pick(r, 6) == 0           ? 1
				: pick(r, 4) == 0           ? 2
							    : 4;
		size_t at = pick(r, (uint32_t)(len / size)) * size;

		memcpy(p + at, &v, size);
	}
}

static void damage_bits(struct replay *r, uint8_t *p, size_t len)
{
	for (unsigned n = 1 + pick(r, 4); n && len; n--)
		p[pick(r, (uint32_t)len)] ^= (uint8_t)(1u << pick(r, 8));
}

/** A write(): another command, or another number of words than there are. */
static void damage_command(struct replay *r)
{
	struct ib_uverbs_cmd_hdr hdr;

	if (body_len(r) < sizeof(hdr))
		return;
	memcpy(&hdr, body(r), sizeof(hdr));
	switch (pick(r, 4)) {
	case 0:
		hdr.command = pick(r, 64) | (hdr.command & IB_USER_VERBS_CMD_FLAG_EXTENDED);
		break;
	case 1:
		hdr.command ^= IB_USER_VERBS_CMD_FLAG_EXTENDED;
		break;
	case 2:
		hdr.in_words = (uint16_t)fuzz_word(&r->rng);
		break;
	default:
		hdr.out_words = (uint16_t)fuzz_word(&r->rng);
	}
	memcpy(body(r), &hdr, sizeof(hdr));
}

/** An ioctl(): another method, or an attribute that is another, absent, twice there, or of another length. */
static void damage_attributes(struct replay *r)
{
	struct ib_uverbs_ioctl_hdr *hdr = (void *)body(r);
	struct ib_uverbs_attr *attr;

	if (body_len(r) < sizeof(*hdr) || hdr->num_attrs == 0 ||
		body_len(r) < sizeof(*hdr) + hdr->num_attrs * sizeof(*attr))
		return;
	attr = &hdr->attrs[pick(r, hdr->num_attrs)];
	switch (pick(r, 8)) {
	case 0:
		hdr->object_id = (uint16_t)(pick(r, 2) ? pick(r, 20) : 0x1000 + pick(r, 16));
		break;
	case 1:
		hdr->method_id = (uint16_t)(pick(r, 2) ? pick(r, 10) : 0x1000 + pick(r, 10));
		break;
	case 2:
		attr->attr_id = (uint16_t)(pick(r, 2) ? pick(r, 20) : 0x1000 + pick(r, 10));
		break;
	case 3:
		if (attr->len <= 8)
			attr->len = (uint16_t)pick(r, 9);
		else
			attr->len = (uint16_t)fuzz_word(&r->rng);
		break;
	case 4:
		attr->flags = (uint16_t)fuzz_word(&r->rng);
		break;
	case 5:
		attr->data = fuzz_word(&r->rng);
		break;
	case 6:
		*attr = hdr->attrs[pick(r, hdr->num_attrs)];
		break;
	default:
		hdr->num_attrs = (uint16_t)fuzz_word(&r->rng);
	}
}

static void cut(struct replay *r)
{
	size_t old = body_len(r);
	size_t len = pick(r, (uint32_t)old + 1);

	if (pick(r, 2))
		len &= ~(size_t)3;
	r->len = sizeof(struct softcx_request) + len;
	if (pick(r, 2))
		request(r)->len = len;
}

static void lengthen(struct replay *r)
{
	size_t more = 4u * (1 + pick(r, 200));

	if (r->len + more > SOFTCX_MAX_MSG)
		return;
	for (size_t i = 0; i < more; i++)
		r->packet[r->len + i] = (uint8_t)fuzz_random(&r->rng);
	r->len += more;
	request(r)->len = body_len(r);
}

static void damage(struct replay *r)
{
	bool ioctl = request(r)->op == SOFTCX_IOCTL;

	switch (pick(r, 10)) {
	case 0:
		damage_bits(r, r->packet, r->len);
		break;
	case 1:
		damage_words(r, r->packet, sizeof(struct softcx_request));
		break;
	case 2:
		cut(r);
		break;
	case 3:
		lengthen(r);
		break;
	case 4:
		damage_bits(r, body(r), body_len(r));
		break;
	case 5:
	case 6:
		if (ioctl)
			damage_attributes(r);
		else
			damage_command(r);
		break;
	default:
		/* behind the header, whose damage is soon found */
		if (body_len(r) > 8)
			damage_words(r, body(r) + 8, body_len(r) - 8);
	}
}

/* ---- other misuse ----------------------------------------------------------------------- */

static void bad_greeting(struct replay *r, struct wire_file *file)
{
	struct softcx_hello hello = {
		.version = SOFTCX_VERSION, .opener = pick(r, 2), .ino = fuzz_word(&r->rng)};
	int fds[253], pair[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);
	static const unsigned counts[] = {0, 1, 1, 2, 64, 65, 72, 100, 253};
	unsigned n = counts[pick(r, COUNT(counts))];
	int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};

	if (socketpair(AF_UNIX, types[pick(r, 3)] | SOCK_CLOEXEC, 0, pair) < 0)
		return;
	for (unsigned i = 0; i < n; i++)
		fds[i] = pick(r, 2) ? pair[0] : pick(r, 2) ? file->sock : pick(r, 2) ? null : r->arena.fd;
	if (pick(r, 4) == 0)
		damage_words(r, (uint8_t *)&hello, sizeof(hello));
	wire_hello(file, &hello, pick(r, 4) ? sizeof(hello) : 1 + pick(r, sizeof(hello)), fds, n);
	if (pick(r, 2) && write(pair[1], r->packet, pick(r, 200)) < 0)
		pair[1] = pair[1]; /* whether it arrives does not matter */
	close(pair[0]);
	close(pair[1]);
	close(null);
}

static void noise(struct replay *r, struct wire_file *file)
{
	size_t len = pick(r, 4) ? pick(r, 300) : pick(r, SOFTCX_MAX_MSG + 64);
	unsigned nfds = pick(r, 3) ? 0 : pick(r, 254);
	int fds[253];

	for (unsigned i = 0; i < nfds; i++)
		fds[i] = r->arena.fd;
	for (size_t i = 0; i < len; i++)
		r->packet[i] = (uint8_t)fuzz_random(&r->rng);
	if (len >= 4 && pick(r, 2))
		request(r)->op = pick(r, 7);
	wire_send(file, r->packet, len, fds, nfds);
}

/** Words for the tool's socket. Faults are only for a queue that never exists: they would strike everybody.
 */
static void control(struct replay *r)
{
	static const char *const words[] = {"status", "hold", "objects", "watch", "left", "trace",
		"trace pid=1", "end", "trace qp=1 qp=2", "trace qp=x", "fault list", "fault clear 99999",
		"fault", "fault add", "fault add drop --qp 16777215 --at 3",
		"fault add error nonsense --qp 16777215", "fault add rnr --qp 16777215 --probability 2",
		"fault add delay -1 --qp 16777215", "fault clear x", "", "stop it",
		"fault add mkey-revoke 99999999999 --at 1 --qp 16777215"};
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	char answer[64];

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/" SOFTCX_CONTROL, r->setup->dir);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == 0) {
		for (unsigned n = 1 + pick(r, 4); n; n--) {
			const char *word = words[pick(r, COUNT(words))];
			char text[4000];
			size_t len = strlen(word);

			memcpy(text, word, len + 1);
			if (pick(r, 4) == 0 && strncmp(word, "fault add", 9) != 0)
				for (len += 1 + pick(r, 3000); strlen(text) < len;)
					strcat(text, pick(r, 2) ? " " : "z9=");
			send(fd, text, len < sizeof(text) ? len : sizeof(text), MSG_NOSIGNAL | MSG_DONTWAIT);
			if (pick(r, 2))
				recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
		}
	}
	if (fd >= 0)
		close(fd);
}

/** Offers descriptors of every kind to watch a doorbell page by. */
static void guard(struct replay *r, struct wire_file *file)
{
	const struct softcx_request req = {.op = SOFTCX_GUARD,
		.va = pick(r, 2) ? (uint64_t)pick(r, 8) * 4096 : fuzz_word(&r->rng),
		.flags = pick(r, 4)};
	const int fds[] = {r->arena.fd, file->sock, file->chan};

	wire_send(file, &req, sizeof(req), &fds[pick(r, 3)], pick(r, 2));
}

/** Queue memory, doorbell records and the doorbell page at once: what real programs never do. */
static void scribble(struct replay *r, const struct wire_file *file)
{
	static const unsigned bells[] = {0x800, 0x900, 0x20, 0x28, 0};

	for (unsigned n = 1 + pick(r, 40); n; n--) {
		size_t at = pick(r, WIRE_ARENA / 8) * 8;
		uint64_t v = fuzz_word(&r->rng);

		memcpy(r->arena.base + at, &v, sizeof(v));
	}
	if (file->uar) {
		uint64_t v = fuzz_word(&r->rng);

		memcpy(file->uar + bells[pick(r, 5)], &v, sizeof(v));
	}
}

/* ---- steps ------------------------------------------------------------------------------ */

static void take(struct replay *r, const struct conv_step *step)
{
	memcpy(r->packet, step->bytes, step->len);
	r->len = step->len;
}

static void give(struct replay *r, struct wire_file *file, enum wire_answer how)
{
	int64_t rc;

	r->counts->calls++;
	if (!wire_send(file, r->packet, r->len, NULL, 0))
		return;
	if (wire_finish(file, &r->arena, how, &rc)) {
		r->counts->done++;
		r->counts->good += rc >= 0;
	}
}

static const struct conv_step *foreign_step(struct replay *r)
{
	const struct conv *c = &r->setup->convs[pick(r, r->setup->nconvs)];

	return &c->steps[pick(r, (uint32_t)c->nsteps)];
}

static void reopen(struct replay *r, struct wire_file *file, const char *device)
{
	wire_close(file);
	/* a NIC that is gone is the caller's to notice */
	if (wire_open(file, r->setup->dir, device) < 0)
		file->chan = -1;
}

static void request_step(struct replay *r, const struct conv_step *step, struct wire_file *file)
{
	take(r, step);
	switch (pick(r, 40)) {
	case 0:
		return; /* left out */
	case 1:
		give(r, file, WIRE_RIGHT);
		break; /* twice */
	case 2: {
		const struct conv_step *other = foreign_step(r);

		if (other->kind == CONV_REQUEST)
			take(r, other);
		break;
	}
	case 3:
		bad_greeting(r, file);
		take(r, step);
		break;
	case 4:
		noise(r, file);
		take(r, step);
		break;
	case 5:
		reopen(r, file, pick(r, 4) ? file->device : pick(r, 2) ? "rdma_cm" : "uverbs0");
		break;
	case 6: /* hangs up with a call under way */
		wire_send(file, r->packet, r->len, NULL, 0);
		reopen(r, file, file->device);
		return;
	case 7: /* two calls at once */
		wire_send(file, r->packet, r->len, NULL, 0);
		break;
	case 8:
		control(r);
		break;
	case 9:
	case 10:
	case 11:
		scribble(r, file);
		break;
	case 14:
		guard(r, file);
		break;
	case 12:
	case 13:
		give(r, file, (enum wire_answer)pick(r, WIRE_ANSWERS));
		return;
	default:
		break;
	}
	if (pick(r, 8) == 0)
		damage(r);
	give(r, file, WIRE_RIGHT);
}

unsigned replay_case(const struct replay_setup *setup, uint64_t number, const bool *skip, unsigned nskip,
	struct replay_counts *counts)
{
	static struct replay r;
	uint64_t rng = fuzz_start(setup->seed, number, UINT64_MAX);
	unsigned nsteps;

	r.setup = setup;
	r.counts = counts;
	r.conv = &setup->convs[fuzz_pick(&rng, setup->nconvs)];
	nsteps = (unsigned)r.conv->nsteps;
	if (nsteps > STEPS_MAX)
		nsteps = STEPS_MAX;
	for (unsigned i = 0; i < MAX_FILES; i++)
		r.files[i] = (struct wire_file){.sock = -1, .chan = -1};
	if (wire_arena_init(&r.arena) < 0)
		abort();
	for (unsigned i = 0; i < nsteps; i++) {
		const struct conv_step *step = &r.conv->steps[i];
		struct wire_file *file = &r.files[step->file];

		if (skip && i < nskip && skip[i])
			continue;
		r.rng = fuzz_start(setup->seed, number, i);
		if (step->kind == CONV_OPEN)
			reopen(&r, file, step->device);
		else
			request_step(&r, step, file);
		/* the NIC hung up: open the file again, or all later steps would be lost */
		if (file->chan < 0 && file->sock >= 0)
			reopen(&r, file, file->device);
	}
	for (unsigned i = 0; i < MAX_FILES; i++)
		wire_close(&r.files[i]);
	wire_arena_deinit(&r.arena);
	return nsteps;
}
