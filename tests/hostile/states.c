/* SPDX-License-Identifier: BSD-2-Clause */
/* Each kind of misuse in each state of a connection: before it exists, half open, in use, and after its end.
 */
#include "tests/hostile/known.h"
#include "tests/hostile/revive.h"
#include "util/array.h"

#include <stdio.h>
#include <string.h>

enum state { UNCONNECTED, HALF_OPEN, UNUSED, OUTSTANDING, ENDED, TEARDOWN, STATES };
enum attack {
	SEND_WHOLE = HOSTILE_ONE_SIDED,
	SEND_EDGE,
	SEND_NOTHING,
	SEND_ONE_SHORT,
	SEND_ONE_LONG,
	SEND_LONG,
	SEND_INVALIDATE,
	FLOOD,
	QP_ERROR,
	AGAIN,
	ATTACKS
};

static const char *const state_names[STATES] = {"before connecting", "half open", "unused",
	"with requests outstanding", "after the end", "while it ends"};

enum { LONG = 64, MANY = 64, KEYS = 256, SECOND = RAW_REQUEST / 2 };

/* Offsets, counted from the window's end if @end; each is tried with each kind of fingerprint */
static const struct {
	bool end;
	int64_t at;
} edges[] = {{false, 0}, {true, -16}, {true, -15}, {true, -14}, {true, -1}, {true, 0}, {false, -1}};
enum fingerprint { ZERO, ONES, FOUND, FINGERPRINTS };
enum { EDGES = COUNT(edges) * FINGERPRINTS };

struct subject {
	enum state state;
	struct raw_client c, other; /* @other: the connection that an unconnected client imitates */
	struct rdma_cm_id *half;
	uint32_t arg_len;
	uint8_t whole[RAW_REQUEST]; /* a good request */
	uint8_t sent[RAW_REQUEST];  /* the request of the attack */
};

static const struct known_table *table;
static struct hostile_key keys[KEYS];
static unsigned key_count;

static void need(const struct subject *s, enum attack a, bool ok, const char *what)
{
	char words[200];

	if (ok)
		return;
	snprintf(words, sizeof(words), "%s, attack %d: %s", state_names[s->state], a, what);
	raw_fail(words);
}

static void compose(struct subject *s, const struct raw_client *connected)
{
	s->c.rep = connected->rep;
	s->arg_len = raw_arg_len(connected);
	memset(raw_request(&s->c), 0, RAW_REQUEST);
	for (unsigned p = 0; p < s->c.rep.table.probes; p++)
		known_put_probe(&s->c, p, known_look(table, 16 * p).fp, 16 * p);
	memcpy(raw_request(&s->c) + SECOND, raw_request(&s->c), s->arg_len);
	memcpy(s->whole, raw_request(&s->c), RAW_REQUEST);
	memcpy(s->sent, s->whole, RAW_REQUEST);
	memset(s->c.mem, HOSTILE_FILLER, HOSTILE_MEMORY);
	raw_post_recvs(&s->c, 2 * MANY);
}

/* The server has accepted and gets no confirmation; the queue pair is made ready all the same */
static void complete_half(struct subject *s)
{
	static const enum ibv_qp_state to[] = {IBV_QPS_RTR, IBV_QPS_RTS};

	for (unsigned i = 0; i < 2; i++) {
		struct ibv_qp_attr attr = {.qp_state = to[i]};
		int mask;

		raw_need(rdma_init_qp_attr(s->half, &attr, &mask) == 0 &&
				 ibv_modify_qp(s->c.id->qp, &attr, mask) == 0,
			"the queue pair of a connection that is half open");
	}
}

/* Sends from separate memory, because the attack overwrites its own before these have left */
static void post_outstanding(struct subject *s)
{
	struct ibv_sge sge = {(uintptr_t)raw_request(&s->c) + SECOND, s->arg_len, s->c.mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1}, *bad;

	for (unsigned i = 0; i < RAW_DEPTH; i++)
		raw_need(ibv_post_send(s->c.id->qp, &wr, &bad) == 0, "post");
}

static void enter(struct subject *s)
{
	struct ibv_qp_attr path;

	hostile_prepare(&s->c);
	switch (s->state) {
	case UNCONNECTED:
		hostile_prepare(&s->other);
		raw_start(&s->other);
		path = revive_path(&s->other);
		revive(&s->c, &path, path.dest_qp_num);
		compose(s, &s->other);
		break;
	case HALF_OPEN:
		s->half = hostile_half_open(&s->c, s->c.id->qp->qp_num, &s->c.req, sizeof(s->c.req));
		raw_expect(&s->c, raw_event(&s->c, RAW_PATIENCE_MS), RDMA_CM_EVENT_CONNECT_RESPONSE);
		complete_half(s);
		compose(s, &s->c);
		break;
	case UNUSED:
		raw_start(&s->c);
		compose(s, &s->c);
		break;
	case OUTSTANDING:
		raw_start(&s->c);
		compose(s, &s->c);
		post_outstanding(s);
		break;
	case ENDED:
		raw_start(&s->c);
		path = revive_path(&s->c);
		raw_post_sends(&s->c, 1, raw_arg_len(&s->c) + LONG);
		raw_expect_disconnect(&s->c);
		revive(&s->c, &path, path.dest_qp_num);
		compose(s, &s->c);
		break;
	default: /* TEARDOWN */
		raw_start(&s->c);
		path = revive_path(&s->c);
		rdma_disconnect(s->c.id);
		revive(&s->c, &path, path.dest_qp_num);
		compose(s, &s->c);
		break;
	}
}

static void leave(struct subject *s)
{
	if (s->half)
		rdma_destroy_id(s->half);
	if (s->other.id)
		raw_finish(&s->other);
	raw_finish(&s->c);
}

static bool is_served(enum state state)
{
	return state == HALF_OPEN || state == UNUSED || state == OUTSTANDING;
}

/* In a state without answers no slot may change */
static bool may_answer(enum state state)
{
	return is_served(state) || state == TEARDOWN;
}

/* A slot holds an answer, or a part of one that was interrupted */
static bool model(struct subject *s, const uint8_t *request, unsigned slot, uint8_t *want)
{
	bool answered;

	memcpy(raw_request(&s->c), request, RAW_REQUEST);
	answered = known_model(&s->c, table, slot, want);
	memcpy(raw_request(&s->c), s->sent, RAW_REQUEST);
	return answered;
}

/* The slots are unchanged, or hold the answer to a whole request, to the request of the attack, or to an
 * empty request */
static void check_memory(struct subject *s, enum attack a)
{
	static const uint8_t zeros[RAW_REQUEST];
	static uint8_t whole[HOSTILE_MEMORY + RAW_REQUEST], sent[HOSTILE_MEMORY + RAW_REQUEST],
		empty[HOSTILE_MEMORY + RAW_REQUEST];

	need(s, a, memcmp(raw_request(&s->c), s->sent, RAW_REQUEST) == 0, "the sent bytes have changed");
	memset(whole, HOSTILE_FILLER, sizeof(whole));
	memset(sent, HOSTILE_FILLER, sizeof(sent));
	memset(empty, HOSTILE_FILLER, sizeof(empty));
	for (unsigned slot = 0; slot < RAW_DEPTH && (may_answer(s->state) || a == AGAIN); slot++) {
		raw_need(model(s, s->whole, slot, whole), "the table is damaged");
		model(s, s->sent, slot, sent);
		if (!model(s, zeros, slot, empty))
			memcpy(empty + slot * RAW_SLOT, whole + slot * RAW_SLOT, RAW_SLOT);
	}
	for (size_t i = 0; i < HOSTILE_MEMORY; i++)
		need(s, a,
			s->c.mem[i] == HOSTILE_FILLER || s->c.mem[i] == whole[i] || s->c.mem[i] == sent[i] ||
				s->c.mem[i] == empty[i],
			"wrong bytes in a slot");
}

/* Sends @len bytes of a request. A server that knows the client answers it or ends the session */
static void ask(struct subject *s, enum attack a, uint32_t len)
{
	static uint8_t want[HOSTILE_MEMORY + RAW_REQUEST];
	unsigned due = s->state == OUTSTANDING ? RAW_DEPTH + 1 : 1;
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	bool answered;

	memset(s->sent + len, 0, s->arg_len - len);
	memcpy(raw_request(&s->c), s->sent, RAW_REQUEST);
	/* A half-open connection keeps it until it is complete */
	if (!is_served(s->state) || s->state == HALF_OPEN) {
		bool taken = hostile_post(&s->c, &wr, len) == IBV_WC_SUCCESS;

		need(s, a, taken || !is_served(s->state), "a request is not accepted");
		need(s, a, !taken || may_answer(s->state), "a request is accepted");
		return;
	}
	memset(want, HOSTILE_FILLER, sizeof(want));
	for (unsigned slot = 0; slot < RAW_DEPTH && s->state == OUTSTANDING; slot++)
		model(s, s->whole, slot, want);
	answered = model(s, s->sent, 0, want);
	raw_post_sends(&s->c, 1, len);
	if (answered) {
		need(s, a, raw_replies(&s->c, due, NULL) == due,
			"a request that is in bounds is not answered");
		need(s, a, memcmp(want, s->c.mem, HOSTILE_MEMORY) == 0, "a wrong answer");
	} else {
		raw_expect_disconnect(&s->c);
		need(s, a, s->state == OUTSTANDING || !hostile_answered(&s->c),
			"a request that is out of bounds is answered");
	}
}

static void put_edge(struct subject *s, unsigned which)
{
	static const uint8_t fps[FOUND][KNOWN_FP] = {[ONES] = {255, 255, 255, 255, 255, 255}};
	unsigned edge = which / FINGERPRINTS, fp = which % FINGERPRINTS;
	uint64_t at = (edges[edge].end ? table->window : 0) + (uint64_t)edges[edge].at;
	/* the bytes beyond the window are unknown */
	const struct known_bucket found = known_look(table, at < table->window - 15 ? at : 0);

	known_put_probe(&s->c, 1, fps[ONES], 0);
	known_put_probe(&s->c, 0, fp == FOUND ? found.fp : fps[fp], at);
	memcpy(s->sent, raw_request(&s->c), RAW_REQUEST);
}

/* A second connection with the same private data */
static void try_again(struct subject *s, enum attack a)
{
	static uint8_t before[HOSTILE_MEMORY];
	struct raw_client again;

	hostile_prepare(&again);
	if (raw_connect(&again, &s->c.req, sizeof(s->c.req)) == RDMA_CM_EVENT_ESTABLISHED) {
		memset(again.mem, HOSTILE_FILLER, HOSTILE_MEMORY);
		memcpy(before, again.mem, HOSTILE_MEMORY);
		memcpy(raw_request(&again), s->whole, RAW_REQUEST);
		raw_post_recvs(&again, 1);
		raw_post_sends(&again, 1, s->arg_len);
		raw_need(raw_replies(&again, 1, NULL) == 1, "the second connection is not answered");
		need(s, a, memcmp(before, again.mem, HOSTILE_MEMORY) == 0, "the reply goes to other slots");
	}
	raw_finish(&again);
}

static void try(enum state state, enum attack a, unsigned which)
{
	static struct subject s;
	const struct hostile_key *key = &keys[which];
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};

	memset(&s, 0, sizeof(s));
	s.state = state;
	enter(&s);
	switch (a) {
	case SEND_WHOLE:
		ask(&s, a, s.arg_len);
		break;
	case SEND_EDGE:
		put_edge(&s, which);
		ask(&s, a, s.arg_len);
		break;
	case SEND_NOTHING:
		ask(&s, a, 0);
		break;
	case SEND_ONE_SHORT:
		ask(&s, a, s.arg_len - 1);
		break;
	case SEND_ONE_LONG:
	case SEND_LONG:
		need(&s, a,
			hostile_post(&s.c, &wr, s.arg_len + (a == SEND_LONG ? LONG : 1)) != IBV_WC_SUCCESS,
			"too long a request is accepted");
		break;
	case SEND_INVALIDATE:
		wr = (struct ibv_send_wr){.opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = key->key};
		need(&s, a, hostile_post(&s.c, &wr, s.arg_len) != IBV_WC_SUCCESS, "a key was invalidated");
		break;
	case FLOOD:
		raw_post_sends(&s.c, MANY, s.arg_len);
		break;
	case QP_ERROR:
		raw_need(ibv_modify_qp(s.c.id->qp, &error, IBV_QP_STATE) == 0, "to ERR");
		break;
	case AGAIN:
		try_again(&s, a);
		break;
	default:
		wr = hostile_one_sided(s.c.id->verbs, a, key);
		need(&s, a, hostile_post(&s.c, &wr, 8) != IBV_WC_SUCCESS,
			"the server's memory can be reached");
		break;
	}
	check_memory(&s, a);
	leave(&s);
}

/* Number of variants of an attack */
static unsigned ways(enum attack a)
{
	if (a < SEND_WHOLE || a == SEND_INVALIDATE)
		return key_count;
	return a == SEND_EDGE ? EDGES : 1;
}

int hostile_states(int argc, char **argv)
{
	const struct known_table t = known_map(argv[0]);
	unsigned n = 0;

	raw_need(argc - 1 < KEYS, "too many keys");
	for (int i = 1; i < argc; i++)
		keys[key_count++] = hostile_parse_key(argv[i]);
	/* a guess: the next key number */
	keys[key_count] = keys[0];
	keys[key_count++].key += 0x100;
	table = &t;
	for (enum state state = 0; state < STATES; state++)
		for (enum attack a = 0; a < ATTACKS; a++)
			for (unsigned i = 0; i < ways(a); i++, n++)
				try(state, a, i);
	printf("%s: %d attacks from each of %d states, %u in all with %u keys and %d edges\n", raw_case,
		ATTACKS, STATES, n, key_count, EDGES);
	return 0;
}
