/* SPDX-License-Identifier: BSD-2-Clause */
#include "mlx5/wqe.h"
#include "softcx/hw/hw.h"
#include "softcx/tool/trace-text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

/* Blocks and options of pcapng. Numbers are in this machine's byte order, which readers recognize by the
 * byte-order magic.
 */
enum {
	BLOCK_SECTION = 0x0a0d0d0a,
	BLOCK_INTERFACE = 1,
	BLOCK_PACKET = 6,
	BLOCK_JOURNAL = 9,
	BYTE_ORDER_MAGIC = 0x1a2b3c4d,
	LINKTYPE_ETHERNET = 1,
	OPT_COMMENT = 1,
	OPT_TSRESOL = 9,
	ROCE_PORT = 4791,
	ROCE_V1_TYPE = 0x8915, /* of Ethernet */
	ICRC = 4,
	SHOWN = 4096 + 256, /* longest frame that is shown whole: an MTU of data and its headers */
};

/* Operations of the BTH; the service is in the upper three bits. */
enum {
	BTH_SEND = 0x04,
	BTH_SEND_IMM = 0x05,
	BTH_WRITE = 0x0a,
	BTH_WRITE_IMM = 0x0b,
	BTH_READ = 0x0c,
	BTH_CAS = 0x13,
	BTH_FAA = 0x14,
	BTH_SEND_INVAL = 0x17,
};

struct bytes {
	uint8_t data[512];
	size_t len;
};

static void put(struct bytes *b, const void *from, size_t len)
{
	memcpy(b->data + b->len, from, len);
	b->len += len;
}

static void put16(struct bytes *b, uint16_t value)
{
	value = htobe16(value);
	put(b, &value, sizeof(value));
}

static void put32(struct bytes *b, uint32_t value)
{
	value = htobe32(value);
	put(b, &value, sizeof(value));
}

/* ---- frames ----------------------------------------------------------------------------- */

static int operation(uint8_t opcode)
{
	switch (opcode) {
	case WQE_OP_SEND:
		return BTH_SEND;
	case WQE_OP_SEND_IMM:
		return BTH_SEND_IMM;
	case WQE_OP_SEND_INVAL:
		return BTH_SEND_INVAL;
	case WQE_OP_WRITE:
		return BTH_WRITE;
	case WQE_OP_WRITE_IMM:
		return BTH_WRITE_IMM;
	case WQE_OP_READ:
		return BTH_READ;
	case WQE_OP_CAS:
		return BTH_CAS;
	case WQE_OP_FETCH_ADD:
		return BTH_FAA;
	default:
		return -1;
	}
}

static bool is_ipv4(const uint8_t gid[16])
{
	return memcmp(gid, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12) == 0;
}

static uint16_t ip_checksum(const uint8_t *header)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < 20; i += 2)
		sum += wqe_get16(header + i);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~(sum + (sum >> 16));
}

/* Lengths that exceed their field are those of a message that real hardware sends in several packets. */
static uint16_t length16(uint64_t len)
{
	return len > 0xffff ? 0xffff : (uint16_t)len;
}

/* @len: bytes after the UDP header, of RoCE v1 after the GRH. */
static void put_network(struct bytes *b, const struct softcx_trace *rec, const uint8_t dgid[16], uint64_t len)
{
	bool v4 = is_ipv4(rec->sgid) && is_ipv4(dgid);
	uint16_t sum;
	size_t ip;

	put(b, rec->dmac, sizeof(rec->dmac));
	put(b, rec->smac, sizeof(rec->smac));
	if (rec->roce_v1) { /* annex A16: a GRH, whose next header is IBA */
		put16(b, ROCE_V1_TYPE);
		put32(b, 0x60000000 | (uint32_t)rec->dscp << 22);
		put32(b, (uint32_t)length16(len) << 16 | 0x1b00 | rec->hop_limit);
		put(b, rec->sgid, 16);
		put(b, dgid, 16);
		return;
	}
	put16(b, v4 ? 0x0800 : 0x86dd);
	ip = b->len;
	if (v4) {
		put32(b, 0x45000000u | (uint32_t)rec->dscp << 18 | length16(len + 28));
		put32(b, 0x4000);                                      /* do not fragment */
		put32(b, (uint32_t)rec->hop_limit << 24 | 0x00110000); /* UDP, checksum below */
		put(b, rec->sgid + 12, 4);
		put(b, dgid + 12, 4);
		sum = htobe16(ip_checksum(b->data + ip));
		memcpy(b->data + ip + 10, &sum, sizeof(sum));
	} else {
		put32(b, 0x60000000 | (uint32_t)rec->dscp << 22);
		put32(b, (uint32_t)length16(len + 8) << 16 | 0x1100 | rec->hop_limit); /* UDP */
		put(b, rec->sgid, 16);
		put(b, dgid, 16);
	}
	put16(b, rec->udp_sport);
	put16(b, ROCE_PORT);
	put16(b, length16(len + 8));
	put16(b, 0); /* no checksum */
}

/* Headers after the BTH. */
static void put_extended(struct bytes *b, const struct softcx_trace *rec, uint64_t bytes)
{
	const uint8_t *wqe = rec->wqe;
	bool cas = rec->opcode == WQE_OP_CAS;

	switch (rec->opcode) {
	case WQE_OP_WRITE:
	case WQE_OP_WRITE_IMM:
	case WQE_OP_READ:
		put(b, wqe + WQE_RADDR, 12); /* address, key */
		put32(b, (uint32_t)bytes);
		break;
	case WQE_OP_CAS:
	case WQE_OP_FETCH_ADD:
		put(b, wqe + WQE_RADDR, 12);
		put(b, wqe + WQE_ATOMIC, 8);
		put(b, cas ? wqe + WQE_ATOMIC + 8 : (const uint8_t *)"\0\0\0\0\0\0\0", 8);
		break;
	default:
		break;
	}
	if (rec->type == HW_UD) {
		put(b, wqe + WQE_UD_QKEY, 4);
		put32(b, rec->qpn);
	}
	if (rec->opcode == WQE_OP_SEND_IMM || rec->opcode == WQE_OP_WRITE_IMM ||
		rec->opcode == WQE_OP_SEND_INVAL)
		put(b, wqe + WQE_IMM, 4);
}

/* Data that the WQE brings along, if all of it is in one piece and in the record. */
static void put_inline(struct bytes *b, const struct softcx_trace *rec, uint64_t bytes)
{
	unsigned at = rec->type == HW_UD ? WQE_UD_SGE_DS * WQE_DS
		      : rec->opcode == WQE_OP_WRITE || rec->opcode == WQE_OP_WRITE_IMM ? 2 * WQE_DS
										       : WQE_DS;

	if (bytes && bytes <= sizeof(rec->wqe) - at - 4 && wqe_get32(rec->wqe + at) == (WQE_INLINE | bytes))
		put(b, rec->wqe + at + 4, bytes);
}

/* False: nothing was sent. @full: length of the frame, of which @b has the first bytes. */
static bool frame(const struct softcx_trace *rec, struct bytes *b, uint64_t *full)
{
	static const uint8_t service[] = {[HW_RC] = 0x00, [HW_UC] = 0x20, [HW_UD] = 0x60};
	uint64_t bytes = trace_bytes(rec), payload = bytes, len;
	bool carries =
		rec->opcode != WQE_OP_READ && rec->opcode != WQE_OP_CAS && rec->opcode != WQE_OP_FETCH_ADD;
	bool ud = rec->type == HW_UD;
	uint32_t qpn = ud ? wqe_get32(rec->wqe + WQE_UD_DQPN) & 0xffffff : rec->dest_qpn;
	struct bytes more = {.len = 0};
	unsigned pad;
	int op = rec->opmod ? -1 : operation(rec->opcode); /* masked atomics have none, and CALC sends what is
							      not known */

	if (op < 0 || rec->lost || rec->kind != HW_TRACE_WQE || rec->syndrome || rec->type > HW_UD)
		return false;
	if (!carries)
		payload = 0;
	pad = (unsigned)(-payload & 3);
	put_extended(&more, rec, bytes);
	len = 12 + more.len + payload + pad + ICRC;
	b->len = 0;
	put_network(b, rec, ud ? rec->wqe + WQE_UD_RGID : rec->dgid, len);
	*full = b->len + len;
	put32(b, (uint32_t)(service[rec->type] | op) << 24 |
			 (uint32_t)(rec->wqe[WQE_FLAGS] & WQE_SOLICITED ? 0xc0 : 0x40) << 16 | pad << 20 |
			 0xffff);
	put32(b, qpn);
	put32(b, (rec->type == HW_RC ? 0x80000000u : 0) | rec->index);
	put(b, more.data, more.len);
	if (carries)
		put_inline(b, rec, payload);
	return true;
}

/* ---- blocks ----------------------------------------------------------------------------- */

static void word(FILE *out, uint32_t value)
{
	fwrite(&value, sizeof(value), 1, out);
}

static void padded(FILE *out, const void *data, size_t len)
{
	fwrite(data, 1, len, out);
	fwrite("\0\0\0", 1, -len & 3, out);
}

static void option(FILE *out, uint16_t code, const void *data, size_t len)
{
	word(out, (uint32_t)htole32((uint32_t)code | (uint32_t)len << 16));
	padded(out, data, len);
}

static size_t round4(size_t len)
{
	return (len + 3) & ~(size_t)3;
}

void trace_pcap_begin(FILE *out)
{
	word(out, BLOCK_SECTION);
	word(out, 28);
	word(out, BYTE_ORDER_MAGIC);
	word(out, 1); /* version 1.0 */
	word(out, UINT32_MAX);
	word(out, UINT32_MAX); /* section of unknown length */
	word(out, 28);
	word(out, BLOCK_INTERFACE);
	word(out, 32);
	word(out, LINKTYPE_ETHERNET);
	word(out, 0);                        /* no limit to the length */
	option(out, OPT_TSRESOL, "\x09", 1); /* nanoseconds */
	word(out, 0);
	word(out, 32);
}

/* The line of a record without its time and its end; NULL: no memory. The caller frees it. */
static char *words(const struct softcx_trace *rec, size_t *len)
{
	char *text = NULL;
	FILE *line = open_memstream(&text, len);

	if (!line)
		return NULL;
	trace_text(line, rec);
	fclose(line);
	if (text)
		text[--*len] = '\0';
	return text;
}

static void packet(FILE *out, const struct softcx_trace *rec, const struct bytes *b, uint64_t full,
	const char *text, size_t len)
{
	size_t captured = full > SHOWN ? b->len : (size_t)full;
	uint32_t total = (uint32_t)(32 + round4(captured) + 4 + round4(len) + 4);

	word(out, BLOCK_PACKET);
	word(out, total);
	word(out, 0); /* the interface */
	word(out, (uint32_t)(rec->ns >> 32));
	word(out, (uint32_t)rec->ns);
	word(out, (uint32_t)captured);
	word(out, full > UINT32_MAX ? UINT32_MAX : (uint32_t)full);
	fwrite(b->data, 1, b->len, out);
	for (size_t i = b->len; i < round4(captured); i++)
		fputc(0, out);
	option(out, OPT_COMMENT, text, len);
	word(out, 0);
	word(out, total);
}

/* A record that is not a packet, as an entry of a journal (systemd.io/JOURNAL_EXPORT_FORMATS), which has a
 * block of its own. */
static void entry(FILE *out, const struct softcx_trace *rec, const char *text)
{
	char fields[1024];
	/* the time in microseconds comes first; the words begin with it as well */
	int len = snprintf(fields, sizeof(fields),
		"__REALTIME_TIMESTAMP=%" PRIu64 "\nSYSLOG_IDENTIFIER=softcx\nPRIORITY=%d\nMESSAGE=%s\n",
		rec->ns / 1000, rec->syndrome ? 4 : 6, text);
	uint32_t total;

	if (len >= (int)sizeof(fields)) {
		len = sizeof(fields) - 1;
		fields[len - 1] = '\n';
	}
	total = (uint32_t)(12 + round4((size_t)len));
	word(out, BLOCK_JOURNAL);
	word(out, total);
	padded(out, fields, (size_t)len);
	word(out, total);
}

void trace_pcap(FILE *out, const struct softcx_trace *rec)
{
	bool is_event = !rec->lost && rec->kind != HW_TRACE_WQE;
	struct bytes b;
	uint64_t full;
	char *text;
	size_t len;

	if (!is_event && !frame(rec, &b, &full))
		return;
	text = words(rec, &len);
	if (!text)
		return;
	if (is_event)
		entry(out, rec, text);
	else
		packet(out, rec, &b, full, text, len);
	free(text);
}
