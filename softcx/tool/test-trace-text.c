/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of a trace in words: one line for every shape of WQE, in text and in JSON. */
#include "mlx5/cqe.h"
#include "mlx5/wqe.h"
#include "softcx/hw/hw.h"
#include "softcx/tool/trace-text.h"

/* cmocka.h wants these before it */

#include "tests/lib/cmocka.h"
#include <stdlib.h>
#include <string.h>

static void put32(struct softcx_trace *rec, unsigned at, uint32_t value)
{
	value = htobe32(value);
	memcpy(rec->wqe + at, &value, sizeof(value));
}

static void put64(struct softcx_trace *rec, unsigned at, uint64_t value)
{
	value = htobe64(value);
	memcpy(rec->wqe + at, &value, sizeof(value));
}

static struct softcx_trace make(uint8_t opcode, uint8_t ds, uint8_t fm_ce_se)
{
	struct softcx_trace rec = {
		.ns = 1000000007, .device = "mlx5_0", .qpn = 0x12, .index = 5, .opcode = opcode, .ds = ds};

	rec.wqe[WQE_FLAGS] = fm_ce_se;
	return rec;
}

static void put_data(struct softcx_trace *rec, unsigned at, uint32_t len, uint32_t lkey, uint64_t addr)
{
	put32(rec, at, len);
	put32(rec, at + 4, lkey);
	put64(rec, at + 8, addr);
}

static void put_remote(struct softcx_trace *rec, uint64_t addr, uint32_t rkey)
{
	put64(rec, WQE_RADDR, addr);
	put32(rec, WQE_RKEY, rkey);
}

/* The line after its time, and that the JSON is well formed and contains @members. */
static void prints(const struct softcx_trace *rec, const char *line, const char *members)
{
	struct json_object *o = trace_json(rec), *again;
	const char *json = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN);
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	trace_text(out, rec);
	fclose(out);
	/* of the time all but the hour, which depends on the time zone */
	assert_true(size > 19);
	assert_memory_equal(text + 5, ":01.000000007 ", 14);
	assert_string_equal(text + 19, line);
	free(text);
	again = json_tokener_parse(json);
	assert_non_null(again);
	if (!strstr(json, members))
		fail_msg("%s lacks %s", json, members);
	json_object_put(again);
	json_object_put(o);
}

static void nop(void **state)
{
	struct softcx_trace rec = make(WQE_OP_NOP, 1, 0);

	rec.pid = 77;
	prints(&rec, "mlx5_0 QP 0x000012 [5] NOP -> done, no CQE\n",
		"\"device\":\"mlx5_0\",\"pid\":77,\"qpn\":\"0x12\",\"index\":5,\"opcode\":0,\"name\":"
		"\"NOP\"");
	rec = make(WQE_OP_LOCAL_INVAL, 1, WQE_FM_STRONG << WQE_FM_SHIFT | WQE_CE_ALWAYS << WQE_CE_SHIFT);
	strcpy(rec.device, "mlx5_1");
	put32(&rec, WQE_IMM, 0x1234);
	prints(&rec,
		"mlx5_1 QP 0x000012 [5] LOCAL_INVAL, invalidates key 0x1234, strong fence -> done, CQE\n",
		"\"invalidates\":\"0x1234\",\"fence\":\"strong fence\",\"solicited\":false,\"cqe\":true");
}

static void sends(void **state)
{
	struct softcx_trace rec = make(WQE_OP_SEND_IMM, 3, WQE_SOLICITED);

	put32(&rec, WQE_IMM, 0xabc);
	put_data(&rec, 16, 100, 0x55, 0x7f00001000);
	put_data(&rec, 32, 28, 0x56, 0x7f00002000);
	prints(&rec,
		"mlx5_0 QP 0x000012 [5] SEND_IMM 128 bytes from 0x7f00001000 lkey 0x55 (100) + 0x7f00002000 "
		"lkey 0x56 (28), immediate 0xabc, solicited -> done, no CQE\n",
		"\"length\":128,\"local\":[{\"length\":100,\"address\":\"0x7f00001000\",\"lkey\":\"0x55\"},"
		"{\"length\":28,\"address\":\"0x7f00002000\",\"lkey\":\"0x56\"}],\"immediate\":\"0xabc\"");
	rec = make(WQE_OP_SEND, 2, 0);
	put32(&rec, 16, WQE_INLINE | 12);
	prints(&rec, "mlx5_0 QP 0x000012 [5] SEND 12 bytes from inline -> done, no CQE\n",
		"\"local\":[{\"length\":12,\"inline\":true}]");
	/* the bytes claim more than the WQE has */
	put32(&rec, 16, WQE_INLINE | 13);
	rec.syndrome = CQE_SYND_LOCAL_QP_OP;
	prints(&rec,
		"mlx5_0 QP 0x000012 [5] SEND 13 bytes from inline -> local QP operation error (syndrome "
		"0x02)\n",
		"\"cqe\":true,\"syndrome\":2,\"outcome\":\"local QP operation error\"");
}

static void datagrams(void **state)
{
	struct softcx_trace rec = make(WQE_OP_SEND, 5, 0);

	rec.type = HW_UD;
	put32(&rec, WQE_UD_QKEY, 0x11111111);
	put32(&rec, WQE_UD_DQPN, 0x80000034); /* the high byte is the extended-AV flag */
	memcpy(rec.wqe + WQE_UD_RGID, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\2", 16);
	put_data(&rec, 64, 8, 9, 0x1000);
	prints(&rec,
		"mlx5_0 QP 0x000012 [5] SEND 8 bytes from 0x1000 lkey 0x9 to QP 0x000034 at ::ffff:127.0.0.2 "
		"qkey 0x11111111 -> done, no CQE\n",
		"\"dest_qpn\":\"0x34\",\"dest_gid\":\"::ffff:127.0.0.2\",\"qkey\":\"0x11111111\"");
}

/* An initiator names its target between the control segment and what an RC WQE has. */
static void initiators(void **state)
{
	struct softcx_trace rec = make(WQE_OP_WRITE, 6, 0);

	rec.type = HW_DCI;
	put32(&rec, WQE_UD_DQPN, 0x80000034);
	put32(&rec, 68, 0xfff0);
	put32(&rec, 72, 0x777);
	put_data(&rec, 80, 64, 0x55, 0x4000);
	prints(&rec,
		"mlx5_0 QP 0x000012 [5] WRITE 64 bytes from 0x4000 lkey 0x55 to 0xfff0 rkey 0x777, DC target "
		"0x000034 -> done, no CQE\n",
		"\"dc_target\":\"0x34\"");
}

static void one_sided(void **state)
{
	struct softcx_trace rec = make(WQE_OP_WRITE_IMM, 3, 0);

	put_remote(&rec, 0xfff0, 0x777);
	put_data(&rec, 32, 64, 0x55, 0x4000);
	prints(&rec,
		"mlx5_0 QP 0x000012 [5] WRITE_IMM 64 bytes from 0x4000 lkey 0x55 to 0xfff0 rkey 0x777, "
		"immediate 0x0 -> done, no CQE\n",
		"\"remote_address\":\"0xfff0\",\"rkey\":\"0x777\",\"length\":64");
	rec.wqe[WQE_FLAGS] = WQE_FM_SMALL << WQE_FM_SHIFT;
	rec.opcode = WQE_OP_READ;
	rec.syndrome = CQE_SYND_RETRY;
	rec.number = HW_LOST_MAC;
	prints(&rec,
		"mlx5_0 QP 0x000012 [5] READ 64 bytes from 0xfff0 rkey 0x777 to 0x4000 lkey 0x55, small "
		"fence -> transport retries exhausted (syndrome 0x15): the port with this GID has another "
		"MAC address\n",
		"\"reason\":\"the port with this GID has another MAC address\"");
	rec.number = HW_LOST_ELSEWHERE;
	prints(&rec,
		"mlx5_0 QP 0x000012 [5] READ 64 bytes from 0xfff0 rkey 0x777 to 0x4000 lkey 0x55, small "
		"fence -> transport retries exhausted (syndrome 0x15)\n",
		"\"outcome\":\"transport retries exhausted\"}");
	rec.syndrome = CQE_SYND_REMOTE_ACCESS;
	prints(&rec,
		"mlx5_0 QP 0x000012 [5] READ 64 bytes from 0xfff0 rkey 0x777 to 0x4000 lkey 0x55, small "
		"fence -> remote access error (syndrome 0x13)\n",
		"\"name\":\"READ\"");
	/* no data at all */
	rec = make(WQE_OP_WRITE, 2, 0);
	put_remote(&rec, 0xfff0, 0x777);
	prints(&rec, "mlx5_0 QP 0x000012 [5] WRITE 0 bytes to 0xfff0 rkey 0x777 -> done, no CQE\n",
		"\"local\":[]");
}

static void atomics(void **state)
{
	struct softcx_trace rec = make(WQE_OP_CAS, 4, 0);

	put_remote(&rec, 0x2000, 0x77);
	put64(&rec, 32, 0xbbbb);
	put64(&rec, 40, 0xaaaa);
	put_data(&rec, 48, 8, 5, 0x3000);
	prints(&rec,
		"mlx5_0 QP 0x000012 [5] CAS 8 bytes at 0x2000 rkey 0x77: compare 0xaaaa swap 0xbbbb, old "
		"value to 0x3000 lkey 0x5 -> done, no CQE\n",
		"\"size\":8,\"compare\":\"0xaaaa\",\"swap\":\"0xbbbb\"");
	rec.opcode = WQE_OP_FETCH_ADD;
	prints(&rec,
		"mlx5_0 QP 0x000012 [5] FAA 8 bytes at 0x2000 rkey 0x77: add 0xbbbb, old value to 0x3000 "
		"lkey 0x5 -> done, no CQE\n",
		"\"add\":\"0xbbbb\"");
	rec = make(WQE_OP_MASKED_CAS, 5, 0);
	rec.opmod = 9;
	put_remote(&rec, 0x2000, 0x77);
	for (unsigned i = 0; i < 4; i++)
		put64(&rec, 32 + 8 * i, i + 1);
	put_data(&rec, 64, 8, 5, 0x3000);
	prints(&rec,
		"mlx5_0 QP 0x000012 [5] MASKED_CAS 8 bytes at 0x2000 rkey 0x77: compare 0x2 swap 0x1 masks "
		"0x4 0x3, old value to 0x3000 lkey 0x5 -> done, no CQE\n",
		"\"compare_mask\":\"0x4\",\"swap_mask\":\"0x3\"");
	rec = make(WQE_OP_MASKED_FETCH_ADD, 4, 0);
	rec.opmod = 8;
	put_remote(&rec, 0x2000, 0x77);
	put32(&rec, 32, 1);
	put32(&rec, 36, 0x80000000);
	put_data(&rec, 48, 4, 5, 0x3000);
	prints(&rec,
		"mlx5_0 QP 0x000012 [5] MASKED_FAA 4 bytes at 0x2000 rkey 0x77: add 0x1 field boundaries "
		"0x80000000, old value to 0x3000 lkey 0x5 -> done, no CQE\n",
		"\"size\":4,\"add\":\"0x1\",\"boundaries\":\"0x80000000\"");
}

/* The operands are shown, and what becomes of them. */
static void calculations(void **state)
{
	struct softcx_trace rec = make(WQE_OP_WRITE, 4, 0);

	rec.opmod = WQE_CALC_MAXLOC;
	put_remote(&rec, 0x2000, 0x77);
	put_data(&rec, 32, 16, 5, 0x3000);
	put_data(&rec, 48, 16, 5, 0x4000);
	prints(&rec,
		"mlx5_0 QP 0x000012 [5] WRITE 32 bytes from 0x3000 lkey 0x5 (16) + 0x4000 lkey 0x5 (16) to "
		"0x2000 rkey 0x77, CALC MAX -> done, no CQE\n",
		"\"calc\":\"MAX\"");
}

static void cross_channel(void **state)
{
	struct softcx_trace rec = make(WQE_OP_WAIT, 2, 0);

	put32(&rec, WQE_SYNC_INDEX, 70000);
	put32(&rec, WQE_SYNC_OBJECT, 31);
	prints(&rec, "mlx5_0 QP 0x000012 [5] WAIT for CQ 31 to reach 70000 -> done, no CQE\n",
		"\"cqn\":31,\"until\":70000");
	rec.opcode = WQE_OP_SEND_EN;
	prints(&rec, "mlx5_0 QP 0x000012 [5] SEND_EN QP 0x00001f up to 4464 -> done, no CQE\n",
		"\"target_qpn\":\"0x1f\",\"until\":4464");
	rec.opcode = WQE_OP_RECV_EN;
	prints(&rec, "mlx5_0 QP 0x000012 [5] RECV_EN QP 0x00001f up to 4464 -> done, no CQE\n",
		"\"name\":\"RECV_EN\"");
}

/* WQEs with mistakes, and WQEs that do not fit into a record. */
static void oddities(void **state)
{
	struct softcx_trace rec = make(0x3e, 1, 0);

	rec.syndrome = CQE_SYND_LOCAL_QP_OP;
	prints(&rec, "mlx5_0 QP 0x000012 [5] opcode 0x3e -> local QP operation error (syndrome 0x02)\n",
		"\"opcode\":62,\"solicited\"");
	rec.opcode = WQE_OP_CAS;
	prints(&rec, "mlx5_0 QP 0x000012 [5] CAS -> local QP operation error (syndrome 0x02)\n",
		"\"name\":\"CAS\",\"solicited\"");
	rec.ds = 0;
	rec.opcode = WQE_OP_SEND;
	prints(&rec, "mlx5_0 QP 0x000012 [5] SEND -> local QP operation error (syndrome 0x02)\n",
		"\"name\":\"SEND\",\"solicited\"");
	rec = make(WQE_OP_SEND, 63, 0);
	put32(&rec, 16, WQE_INLINE | 900);
	prints(&rec, "mlx5_0 QP 0x000012 [5] SEND 900 bytes from inline + more -> done, no CQE\n",
		"\"cut\":true");
	for (unsigned at = 16; at < sizeof(rec.wqe); at += 16)
		put_data(&rec, at, 1, 2, 3);
	prints(&rec,
		"mlx5_0 QP 0x000012 [5] SEND 15 bytes from 0x3 lkey 0x2 (1) + 0x3 lkey 0x2 (1) + 0x3 lkey "
		"0x2 (1) + 0x3 lkey 0x2 (1) + 0x3 lkey 0x2 (1) + 0x3 lkey 0x2 (1) + 0x3 lkey 0x2 (1) + 0x3 "
		"lkey 0x2 (1) + 0x3 lkey 0x2 (1) + 0x3 lkey 0x2 (1) + 0x3 lkey 0x2 (1) + 0x3 lkey 0x2 (1) + "
		"0x3 lkey 0x2 (1) + 0x3 lkey 0x2 (1) + 0x3 lkey 0x2 (1) + more -> done, no CQE\n",
		"\"cut\":true");
	rec.lost = 3;
	prints(&rec, "3 records are missing here: the reader was too slow\n",
		"{\"time_ns\":1000000007,\"lost\":3}");
}

/* Records that are not send WQEs. */
static void events(void **state)
{
	struct softcx_trace rec = {
		.ns = 1000000007, .qpn = 0x12, .index = 5, .cqn = 1024, .number = 11, .device = "mlx5_0"};

	rec.kind = HW_TRACE_RECV;
	rec.ds = 4;
	put_data(&rec, 0, 3, 0x55, 0x1000);
	put_data(&rec, 16, 0, 0x55, 0); /* empty: passed over */
	put_data(&rec, 32, 100, 0x56, 0x2000);
	put_data(&rec, 48, 0, WQE_LKEY_NONE, 0);
	prints(&rec,
		"mlx5_0 QP 0x000012 RECV [5] takes 11 bytes to 0x1000 lkey 0x55 (3) + 0x2000 lkey 0x56 (8) "
		"-> done\n",
		"\"kind\":\"recv\",\"device\":\"mlx5_0\",\"qpn\":\"0x12\",\"index\":5,\"length\":11,\"cqn\":"
		"1024,\"local\":[{\"length\":3,\"address\":\"0x1000\",\"lkey\":\"0x55\"},{\"length\":8,");
	rec.number = 200;
	rec.syndrome = CQE_SYND_LOCAL_LENGTH;
	prints(&rec,
		"mlx5_0 QP 0x000012 RECV [5] takes 200 bytes to 0x1000 lkey 0x55 (3) + 0x2000 lkey 0x56 "
		"(100) -> local length error (syndrome 0x01)\n",
		"\"syndrome\":1,\"outcome\":\"local length error\"");

	rec = (struct softcx_trace){.ns = 1000000007,
		.qpn = 0x12,
		.index = 5,
		.cqn = 1024,
		.number = 7,
		.ds = 4,
		.device = "mlx5_0"};
	rec.kind = HW_TRACE_CQE;
	rec.opcode = WQE_OP_CAS;
	prints(&rec, "mlx5_0 CQ 1024 CQE 7 of QP 0x000012 [5]: CAS\n",
		"\"cqn\":1024,\"number\":7,\"cqe_opcode\":0,\"name\":\"CAS\",\"solicited\":false");
	rec.wqe[63] = CQE_OP_RESP_SEND_IMM << 4 | CQE_SOLICITED | CQE_INLINE_32;
	put32(&rec, 36, 0xabc);
	put32(&rec, 44, 4);
	prints(&rec,
		"mlx5_0 CQ 1024 CQE 7 of QP 0x000012 [5]: SEND_IMM received, 4 bytes, immediate 0xabc, "
		"solicited, the data are in the CQE\n",
		"\"length\":4,\"immediate\":\"0xabc\",\"solicited\":true,\"data_in_cqe\":true");
	rec.wqe[63] = CQE_OP_RESIZE << 4;
	prints(&rec, "mlx5_0 CQ 1024 CQE 7: goes on in another ring\n", "\"name\":\"resized\"");
	rec.wqe[63] = CQE_OP_RESP_ERR << 4;
	rec.wqe[54] = 0x33;
	rec.syndrome = CQE_SYND_LOCAL_PROT;
	prints(&rec,
		"mlx5_0 CQ 1024 CQE 7 of QP 0x000012 [5]: RECV -> local protection error (syndrome 0x04, "
		"vendor 0x33)\n",
		"\"vendor_syndrome\":51,\"outcome\":\"local protection error\"");

	rec = (struct softcx_trace){.ns = 1000000007,
		.qpn = 0x12,
		.index = 5,
		.cqn = 1024,
		.number = 7,
		.ds = 2,
		.device = "mlx5_0"};
	rec.kind = HW_TRACE_BLOCKED;
	prints(&rec, "mlx5_0 QP 0x000012 [5] WAIT for CQ 1024 to reach 7: blocked\n",
		"\"kind\":\"wait\",\"device\":\"mlx5_0\",\"qpn\":\"0x12\",\"index\":5,\"cqn\":1024,\"until\":"
		"7,"
		"\"state\":\"blocked\"");
	rec.kind = HW_TRACE_RELEASED;
	prints(&rec, "mlx5_0 QP 0x000012 [5] WAIT for CQ 1024 to reach 7: released\n",
		"\"state\":\"released\"");

	assert_int_equal(trace_event_kinds("wqe"), 1 << HW_TRACE_WQE);
	assert_int_equal(trace_event_kinds("wait,recv"),
		1 << HW_TRACE_BLOCKED | 1 << HW_TRACE_RELEASED | 1 << HW_TRACE_RECV);
	assert_int_equal(trace_event_kinds("all"), 0x1f);
	assert_int_equal(trace_event_kinds(""), 0);
	assert_int_equal(trace_event_kinds("wqe,"), 0);
	assert_int_equal(trace_event_kinds("wqes"), 0);
}

/* Whatever the bytes are: no read outside the record, and JSON that can be read. */
static void garbage(void **state)
{
	struct softcx_trace *rec = malloc(sizeof(*rec));
	FILE *out = fopen("/dev/null", "w");

	assert_non_null(rec);
	assert_non_null(out);
	srand(1);
	for (int i = 0; i < 20000; i++) {
		struct json_object *o, *again;

		for (size_t k = 0; k < sizeof(*rec); k++)
			((uint8_t *)rec)[k] = (uint8_t)(rand() >> 8);
		rec->lost = 0;
		rec->opcode &= 0x1f;
		rec->ds &= 63;
		rec->type %= 3;
		rec->kind %= 6;
		trace_text(out, rec);
		trace_pcap(out, rec);
		rec->syndrome = 0;
		trace_pcap(out, rec);
		o = trace_json(rec);
		again = json_tokener_parse(json_object_to_json_string(o));
		assert_non_null(again);
		json_object_put(again);
		json_object_put(o);
	}
	fclose(out);
	free(rec);
}

/* A WRITE of inline data in a file, byte by byte from the interface's block on; what sends nothing has no
 * frame. */
static void capture(void **state)
{
	static const uint8_t begin[] = {0x0a, 0x0d, 0x0d, 0x0a};
	static const uint8_t frame[] = {
		2, 0, 127, 0, 0, 2, 2, 0, 127, 0, 0, 1, 8, 0,                      /* Ethernet */
		0x45, 0x68, 0, 68, 0, 0, 0x40, 0, 9, 17, 0x73, 0x3e, 127, 0, 0, 1, /* IPv4, DSCP 26, */
		127, 0, 0, 2,                        /* its length: 20 + 8 + 12 + 16 + 8 + 4 */
		0xc1, 0x23, 0x12, 0xb7, 0, 48, 0, 0, /* UDP, port 4791 */
		0x0a, 0x70, 0xff, 0xff, 0, 0, 0, 0x34, 0x80, 0, 0,
		5, /* BTH: RC RDMA WRITE Only, 3 bytes of padding */
		0, 0, 0, 0, 0, 0, 0xff, 0xf0, 0, 0, 7, 0x77, 0, 0, 0, 5, /* RETH */
		'h', 'e', 'l', 'l', 'o', 0, 0, 0,                        /* data and padding */
		0, 0, 0, 0,                                              /* ICRC */
	};
	struct softcx_trace rec = make(WQE_OP_WRITE, 3, 0);
	uint32_t word[7];
	char *file;
	size_t size, before;
	FILE *out = open_memstream(&file, &size);

	assert_non_null(out);
	memcpy(rec.sgid, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\1", 16);
	memcpy(rec.dgid, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\2", 16);
	memcpy(rec.smac, "\2\0\x7f\0\0\1", 6);
	memcpy(rec.dmac, "\2\0\x7f\0\0\2", 6);
	rec.dscp = 26;
	rec.hop_limit = 9;
	rec.udp_sport = 0xc123;
	rec.dest_qpn = 0x34;
	put_remote(&rec, 0xfff0, 0x777);
	put32(&rec, 32, WQE_INLINE | 5);
	memcpy(rec.wqe + 36, "hello", 5);
	trace_pcap_begin(out);
	fflush(out);
	before = size;
	assert_int_equal(before, 28 + 32);
	assert_memory_equal(file, begin, sizeof(begin));
	trace_pcap(out, &rec);
	fflush(out);
	assert_true(size > before + sizeof(word) + sizeof(frame) + 12);
	memcpy(word, file + before, sizeof(word));
	assert_int_equal(word[0], 6);
	assert_int_equal(word[1], size - before);
	assert_int_equal((uint64_t)word[3] << 32 | word[4], rec.ns);
	assert_int_equal(word[5], sizeof(frame));
	assert_int_equal(word[6], sizeof(frame));
	assert_memory_equal(file + before + sizeof(word), frame, sizeof(frame));
	assert_memory_equal(file + size - 4, &word[1], 4);
	/* longer than an MTU: headers only */
	before = size;
	put_data(&rec, 32, 1 << 20, 1, 2);
	trace_pcap(out, &rec);
	fflush(out);
	memcpy(word, file + before, sizeof(word));
	assert_int_equal(word[1], size - before);
	assert_int_equal(word[5], 14 + 20 + 8 + 12 + 16);
	assert_int_equal(word[6], 14 + 20 + 8 + 12 + 16 + (1 << 20) + 4);
	before = size;
	rec.opcode = WQE_OP_WAIT;
	trace_pcap(out, &rec);
	rec.opcode = WQE_OP_WRITE;
	rec.syndrome = CQE_SYND_RETRY;
	trace_pcap(out, &rec);
	rec.lost = 1;
	trace_pcap(out, &rec);
	fclose(out);
	assert_int_equal(size, before);
	free(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nop),
		cmocka_unit_test(sends),
		cmocka_unit_test(datagrams),
		cmocka_unit_test(initiators),
		cmocka_unit_test(one_sided),
		cmocka_unit_test(atomics),
		cmocka_unit_test(calculations),
		cmocka_unit_test(cross_channel),
		cmocka_unit_test(oddities),
		cmocka_unit_test(capture),
		cmocka_unit_test(events),
		cmocka_unit_test(garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
