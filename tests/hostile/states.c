/* SPDX-License-Identifier: BSD-2-Clause */
/* Every kind of misuse from every state of a connection: before it is there, in its middle, in use, and when it is over. */
#include "tests/hostile/known.h"
#include "tests/hostile/revive.h"

#include <stdio.h>
#include <string.h>

enum state { UNCONNECTED, HALF_OPEN, UNUSED, OUTSTANDING, ENDED, TEARDOWN, STATES };
enum attack {
	SEND_WHOLE = HOSTILE_ONE_SIDED,
	SEND_NOTHING,
	SEND_LONG,
	SEND_INVALIDATE,
	FLOOD,
	QP_ERROR,
	AGAIN,
	ATTACKS
};

static const char *const state_names[STATES] = {"before connecting", "half open", "unused",
	"with requests outstanding", "after the end", "while it ends"};

enum { LONG = 64, MANY = 64 };

struct subject {
	enum state state;
	struct raw_client c, other; /* @other: whose place an unconnected client takes */
	struct rdma_cm_id *half;
	uint32_t arg_len;
	uint8_t whole[RAW_REQUEST]; /* a good request */
};

static const struct known_table *table;

static void need(const struct subject *s, enum attack a, bool ok, const char *what)
{
	char words[200];

	if (ok)
		return;
	snprintf(words, sizeof words, "%s, attack %d: %s", state_names[s->state], a, what);
	raw_fail(words);
}

static void compose(struct subject *s, const struct raw_client *connected)
{
	s->c.rep = connected->rep;
	s->arg_len = raw_arg_len(connected);
	memset(raw_request(&s->c), 0, RAW_REQUEST);
	for (unsigned p = 0; p < s->c.rep.table.probes; p++)
		known_put_probe(&s->c, p, known_look(table, 16 * p).fp, 16 * p);
	memcpy(s->whole, raw_request(&s->c), RAW_REQUEST);
	memset(s->c.mem, HOSTILE_FILLER, HOSTILE_MEMORY);
	raw_post_recvs(&s->c, 2 * MANY);
}

/* The answer to the request for a connection has come, and is not answered; the queue pair is made ready all the same */
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
		s->half = hostile_half_open(&s->c, s->c.id->qp->qp_num, &s->c.req, sizeof s->c.req);
		raw_need(raw_event(&s->c, RAW_PATIENCE_MS) == RDMA_CM_EVENT_CONNECT_RESPONSE, "not accepted");
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
		raw_post_sends(&s->c, RAW_DEPTH, s->arg_len);
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

/* Where there may be none, nothing of the slots may change */
static bool may_answer(enum state state)
{
	return is_served(state) || state == TEARDOWN;
}

/* The slots hold what they held, or the answer to a whole request or to one of which nothing came; nothing else has changed */
static void check_memory(struct subject *s, enum attack a)
{
	static uint8_t whole[HOSTILE_MEMORY + RAW_REQUEST], empty[HOSTILE_MEMORY + RAW_REQUEST];

	need(s, a, memcmp(raw_request(&s->c), s->whole, RAW_REQUEST) == 0, "what was sent has changed");
	memset(whole, HOSTILE_FILLER, sizeof whole);
	memset(empty, HOSTILE_FILLER, sizeof empty);
	for (unsigned slot = 0; slot < RAW_DEPTH && (may_answer(s->state) || a == AGAIN); slot++) {
		memcpy(raw_request(&s->c), s->whole, RAW_REQUEST);
		raw_need(known_model(&s->c, table, slot, whole), "the table is damaged");
		memset(raw_request(&s->c), 0, RAW_REQUEST);
		if (!known_model(&s->c, table, slot, empty))
			memcpy(empty + slot * RAW_SLOT, whole + slot * RAW_SLOT, RAW_SLOT);
	}
	for (size_t i = 0; i < HOSTILE_MEMORY; i++)
		need(s, a,
			s->c.mem[i] == HOSTILE_FILLER || s->c.mem[i] == whole[i] || s->c.mem[i] == empty[i],
			"a slot holds what it must not");
}

/* Asked for once more with the same words, from elsewhere */
static void try_again(struct subject *s, enum attack a)
{
	static uint8_t before[HOSTILE_MEMORY];
	struct raw_client again;

	hostile_prepare(&again);
	if (raw_connect(&again, &s->c.req, sizeof s->c.req) == RDMA_CM_EVENT_ESTABLISHED) {
		memset(again.mem, HOSTILE_FILLER, HOSTILE_MEMORY);
		memcpy(before, again.mem, HOSTILE_MEMORY);
		memcpy(raw_request(&again), s->whole, RAW_REQUEST);
		raw_post_recvs(&again, 1);
		raw_post_sends(&again, 1, s->arg_len);
		raw_need(raw_replies(&again, 1, NULL) == 1, "the second connection is not answered");
		need(s, a, memcmp(before, again.mem, HOSTILE_MEMORY) == 0,
			"the reply goes to slots of nobody's");
	}
	raw_finish(&again);
}

static void try(enum state state, enum attack a, const struct hostile_key *key)
{
	static struct subject s;
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, wr;
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	enum ibv_wc_status status = IBV_WC_GENERAL_ERR;

	memset(&s, 0, sizeof s);
	s.state = state;
	enter(&s);
	switch (a) {
	case SEND_WHOLE:
		status = hostile_post(&s.c, &send, s.arg_len);
		need(&s, a, !is_served(state) || status == IBV_WC_SUCCESS, "a good request is not taken");
		break;
	case SEND_NOTHING:
		status = hostile_post(&s.c, &send, 0);
		break;
	case SEND_LONG:
		need(&s, a, hostile_post(&s.c, &send, s.arg_len + LONG) != IBV_WC_SUCCESS,
			"too long a request is taken");
		break;
	case SEND_INVALIDATE:
		wr = (struct ibv_send_wr){.opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = key->key};
		need(&s, a, hostile_post(&s.c, &wr, s.arg_len) != IBV_WC_SUCCESS, "a key is made invalid");
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
		wr = hostile_one_sided(a, key);
		need(&s, a, hostile_post(&s.c, &wr, 8) != IBV_WC_SUCCESS,
			"the server's memory can be reached");
		break;
	}
	need(&s, a, may_answer(state) || status != IBV_WC_SUCCESS, "a request is taken");
	check_memory(&s, a);
	leave(&s);
}

int hostile_states(int argc, char **argv)
{
	const struct known_table t = known_map(argv[0]);
	unsigned n = 0;

	table = &t;
	for (enum state state = 0; state < STATES; state++)
		for (enum attack a = 0; a < ATTACKS; a++, n++) {
			const struct hostile_key key = hostile_parse_key(argv[1 + n % (unsigned)(argc - 1)]);

			try(state, a, &key);
		}
	printf("%s: %d attacks from each of %d states\n", raw_case, ATTACKS, STATES);
	return 0;
}
