/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/handshake.h"

#include "libclient/public.h"
#include "libclient/put.h"
#include "protocol/table-format.h"
#include "util/array.h"
#include "util/text.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

bool reddn_read_rej(struct reddn_wire_rej *rej, const struct rdma_conn_param *p)
{
	if (!p->private_data || p->private_data_len < sizeof(*rej))
		return false;
	memcpy(rej, p->private_data, sizeof(*rej));
	rej->text[sizeof(rej->text) - 1] = '\0';
	text_clean(rej->text);
	return be32toh(rej->magic) == REDDN_WIRE_MAGIC;
}

int reddn_rej_error(const struct reddn_wire_rej *rej)
{
	static const int errors[] = {[REDDN_REJ_VERSION] = -EPROTONOSUPPORT,
		[REDDN_REJ_MALFORMED] = -EPROTO,
		[REDDN_REJ_OFFLOAD] = -ENOENT,
		[REDDN_REJ_DEPTH] = -ERANGE,
		[REDDN_REJ_SLOT] = -EMSGSIZE,
		[REDDN_REJ_RESOURCES] = -EBUSY,
		[REDDN_REJ_INTERNAL] = -EREMOTEIO,
		[REDDN_REJ_SHUTDOWN] = -ESHUTDOWN,
		[REDDN_REJ_ACCESS] = -EACCES,
		[REDDN_REJ_QUOTA] = -EDQUOT,
		[REDDN_REJ_BANNED] = -EACCES,
		[REDDN_REJ_UNKNOWN] = -ECONNRESET};

	return rej->reason < COUNT(errors) && errors[rej->reason] ? errors[rej->reason] : -EPROTO;
}

#define VIOLATED(...) reddn_fail(-EPROTO, err, errlen, "protocol violated: " __VA_ARGS__)

static int check_sizes(
	const struct reddn_session *s, const struct reddn_wire_rep *rep, char *err, size_t errlen)
{
	const struct reddn_info *info = &s->info;

	if (be16toh(rep->depth) != s->depth)
		return VIOLATED("depth %u granted, %u asked", be16toh(rep->depth), s->depth);
	if (info->request_len > REDDN_REQUEST_MAX)
		return VIOLATED(
			"requests of %u bytes, up to %u are possible", info->request_len, REDDN_REQUEST_MAX);
	if (info->reply_max > info->slot_size)
		return VIOLATED("replies of %u bytes into slots of %u", info->reply_max, info->slot_size);
	return 0;
}

/* What is answered of a bucket, by the length of what is asked */
static uint8_t exists_part(const struct reddn_session *s, const struct reddn_wire_table *t)
{
	if (s->info.request_len > 2u * t->keys * t->offset_len)
		return REDDN_PART_EXACT;
	return (uint8_t)reddn_wire_part(t->header);
}

/* The table or store of an offload whose requests ask @probes buckets for each of @keys keys, with @room
 * bytes for a record. */
static int read_geometry(struct reddn_session *s, const struct reddn_wire_table *t, unsigned probes,
	unsigned keys, uint32_t room, char *err, size_t errlen)
{
	const uint32_t more = s->info.shape == REDDN_PUT_IF       ? REDDN_STORE_VERSION
			      : s->info.shape == REDDN_TABLE_INTO ? REDDN_INTO_NUMBER_BYTES
								  : 0;
	const char *wrong;

	s->geo = (struct reddn_geometry){.seed = be64toh(t->hash_seed),
		.buckets = be64toh(t->buckets),
		.max_key = be32toh(t->max_key),
		.max_value = be32toh(t->max_value),
		.offset_len = t->offset_len,
		.keys = (uint8_t)keys,
		.header = t->header,
		.part = s->info.shape == REDDN_EXISTS ? exists_part(s, t) : 0,
		.room = room};
	s->info.keys = keys;
	s->info.hash_seed = s->geo.seed;
	s->info.buckets = s->geo.buckets;
	s->info.max_key = s->geo.max_key;
	s->info.max_value = s->geo.max_value;
	wrong = reddn_geometry_error(&s->geo, probes, s->info.request_len - more);
	if (!wrong && t->probes != 2)
		wrong = "a key is in one of two buckets";
	return wrong ? VIOLATED("%s", wrong) : 0;
}

/* Bytes for what a request is about: a key, what is put, up to @most, or a raw request */
static size_t key_room(const struct reddn_session *s, uint64_t most)
{
	if (most < s->info.request_len)
		most = s->info.request_len;
	return most > REDDN_KEY_ROOM ? (most + 7) & ~(uint64_t)7 : REDDN_KEY_ROOM;
}

/* Later servers may have parts of other kinds */
static void read_parts(struct reddn_session *s, const struct reddn_wire_table *t)
{
	for (unsigned i = 0; i < REDDN_WIRE_PARTS; i++) {
		const unsigned keys = reddn_wire_part_keys(t->part[i]);

		s->part[i] =
			keys <= (t->part[i] & REDDN_WIRE_PART_EXISTS ? REDDN_WIRE_KEYS : REDDN_WIRE_RECORDS)
				? t->part[i]
				: 0;
	}
}

static int read_table(
	struct reddn_session *s, const struct reddn_wire_table *t, unsigned keys, char *err, size_t errlen)
{
	uint32_t slot = keys > 1 ? s->info.reply_max : s->info.slot_size;
	int r;

	if (!keys || keys > REDDN_WIRE_RECORDS)
		return VIOLATED("requests for %u keys", keys);
	if (s->info.slot_size < REDDN_SLOT_RECORD + t->header + sizeof(struct reddn_record))
		return VIOLATED("slots of %u bytes", s->info.slot_size);
	if (keys > 1 && s->info.reply_max < REDDN_SLOT_RECORD + keys * t->header)
		return VIOLATED("replies of %u bytes", s->info.reply_max);
	s->info.shape = REDDN_TABLE;
	r = read_geometry(s, t, 2, keys, (slot - REDDN_SLOT_RECORD) / keys - t->header, err, errlen);
	s->key_room = key_room(s, s->geo.max_key);
	return r;
}

static int read_exists(struct reddn_session *s, const struct reddn_wire_table *t, char *err, size_t errlen)
{
	int r;

	if (!t->keys || t->keys > REDDN_WIRE_KEYS)
		return VIOLATED("requests for %u keys", t->keys);
	if (s->info.reply_max < REDDN_SLOT_RECORD + 2u * t->keys * exists_part(s, t))
		return VIOLATED("replies of %u bytes", s->info.reply_max);
	s->info.shape = REDDN_EXISTS;
	r = read_geometry(s, t, 2, t->keys, 0, err, errlen);
	s->key_room = key_room(s, s->geo.max_key);
	return r;
}

/* The value goes elsewhere */
static int read_into(struct reddn_session *s, const struct reddn_wire_table *t, char *err, size_t errlen)
{
	uint32_t max_key = be32toh(t->max_key), max_value = be32toh(t->max_value);
	uint64_t record = reddn_store_payload(t->header, reddn_record_size(max_key, max_value));
	int r;

	if (record > REDDN_RECORD_LIMIT)
		return VIOLATED("records of %" PRIu64 " bytes", record);
	s->info.shape = REDDN_TABLE_INTO;
	r = read_geometry(s, t, 2, 1, (uint32_t)record, err, errlen);
	s->geo.into = true;
	s->key_room = key_room(s, s->geo.max_key);
	if (r == 0 && s->info.slot_size < reddn_into_at(&s->geo) + reddn_record_size(max_key, 0))
		return VIOLATED("slots of %u bytes", s->info.slot_size);
	return r;
}

/* A record has as many bytes as a request may have behind its arguments, and behind the zeroes where there is
 * no version. */
static int read_put(
	struct reddn_session *s, const struct reddn_wire_table *t, bool conditional, char *err, size_t errlen)
{
	const uint32_t none = conditional ? 0 : REDDN_STORE_VERSION;
	uint32_t room = be32toh(t->payload_max) - none;
	int r;

	if (room > REDDN_RECORD_LIMIT || t->header != s->info.request_len + none)
		return VIOLATED("records of %u bytes behind %u of the server's", room, t->header);
	if (s->info.reply_max <
		(conditional ? sizeof(struct reddn_wire_put_if) : sizeof(struct reddn_wire_put)))
		return VIOLATED("replies of %u bytes", s->info.reply_max);
	s->info.shape = conditional ? REDDN_PUT_IF : REDDN_PUT;
	s->info.record_max = room;
	r = read_geometry(s, t, 1, 1, room, err, errlen);
	s->key_room = reddn_put_room(&s->geo);
	return r;
}

static int copy_rep(struct reddn_wire_rep *rep, const struct rdma_conn_param *p, char *err, size_t errlen)
{
	if (!p->private_data || p->private_data_len < sizeof(*rep))
		return reddn_fail(-EPROTO, err, errlen,
			"the server is no reddnd: it accepted with %u bytes, not %zu", p->private_data_len,
			sizeof(*rep));
	memcpy(rep, p->private_data, sizeof(*rep));
	if (be32toh(rep->magic) != REDDN_WIRE_MAGIC)
		return reddn_fail(-EPROTO, err, errlen, "the server is no reddnd: wrong magic 0x%08x",
			be32toh(rep->magic));
	if (rep->version != REDDN_WIRE_VERSION)
		return reddn_fail(-EPROTONOSUPPORT, err, errlen,
			"the server speaks version %u of the protocol, this library %d: %s must be updated",
			rep->version, REDDN_WIRE_VERSION,
			rep->version < REDDN_WIRE_VERSION ? "the server" : "libreddn");
	return 0;
}

static bool sends(const struct reddn_session *s, const struct reddn_wire_rep *rep)
{
	return s->into || (rep->flags & REDDN_REP_SENDS);
}

int reddn_compare_rep(
	const struct reddn_session *s, const struct rdma_conn_param *p, char *err, size_t errlen)
{
	struct reddn_wire_rep rep = {0}; /* gcc does not see that each error is negative */
	int r = copy_rep(&rep, p, err, errlen);

	if (r < 0)
		return r;
	if (be64toh(rep.session) != s->info.session || be16toh(rep.depth) != s->depth ||
		be32toh(rep.request_len) != s->info.request_len ||
		be32toh(rep.reply_max) != s->info.reply_max || s->sends != sends(s, &rep))
		return VIOLATED("a further connection is not like the first one");
	return 0;
}

int reddn_read_rep(struct reddn_session *s, const struct rdma_conn_param *p, char *err, size_t errlen)
{
	struct reddn_wire_rep rep;
	const char *wrong;
	int r = copy_rep(&rep, p, err, errlen);

	if (r < 0)
		return r;
	s->info.request_len = be32toh(rep.request_len);
	s->info.reply_max = be32toh(rep.reply_max);
	s->info.session = be64toh(rep.session);
	s->sends = sends(s, &rep);
	s->repeatable = rep.flags & REDDN_REP_READS;
	s->secret = be64toh(rep.secret);
	s->program = be64toh(rep.program);
	r = check_sizes(s, &rep, err, errlen);
	if (r < 0)
		return r;
	wrong = reddn_format_read(&s->format, &rep, s->info.request_len);
	if (wrong)
		return VIOLATED("%s", wrong);
	s->info.nargs = s->format.nargs * s->format.keys;
	memset(s->part, 0, sizeof(s->part));
	if (rep.shape == REDDN_SHAPE_TABLE)
		read_parts(s, &rep.table);
	if (s->into != (rep.shape == REDDN_SHAPE_INTO))
		return reddn_fail(-EOPNOTSUPP, err, errlen,
			s->into ? "REDDN_INTO needs an offload of hash-into.rdn, and this is another one"
				: "the offload gets into memory of the caller: it needs REDDN_INTO");
	if (rep.shape == REDDN_SHAPE_INTO)
		return read_into(s, &rep.table, err, errlen);
	if (rep.shape == REDDN_SHAPE_TABLE || rep.shape == REDDN_SHAPE_MGET)
		return read_table(
			s, &rep.table, rep.shape == REDDN_SHAPE_MGET ? rep.table.keys : 1, err, errlen);
	if (rep.shape == REDDN_SHAPE_EXISTS)
		return read_exists(s, &rep.table, err, errlen);
	if (rep.shape == REDDN_SHAPE_PUT || rep.shape == REDDN_SHAPE_PUT_IF)
		return read_put(s, &rep.table, rep.shape == REDDN_SHAPE_PUT_IF, err, errlen);
	if (rep.shape != REDDN_SHAPE_OPAQUE)
		return reddn_fail(-EPROTONOSUPPORT, err, errlen,
			"this library does not know offloads of kind %u", rep.shape);
	s->info.shape = REDDN_OPAQUE;
	s->key_room = key_room(s, 0);
	return 0;
}
