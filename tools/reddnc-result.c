/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddnc.h"

#include "mlx5/wqe.h"
#include "reddnd/chain/ring/decode.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

enum { SECOND_US = 1000000 };

static struct json_object *loop_json(const struct reddnc_result *r)
{
	const struct program *p = r->program;
	const uint64_t n = session_loop_iterations(r->loop), wqes = program_loop_wqes(p, n);
	const double seconds = (double)r->took_us / SECOND_US;
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "iterations", json_object_new_uint64(n));
	json_object_object_add(o, "wqes", json_object_new_uint64(wqes));
	json_object_object_add(o, "iterations_per_lap", json_object_new_int((int)p->loop_info.iterations));
	json_object_object_add(o, "wqes_per_lap", json_object_new_int((int)p->loop_info.lap.wqes));
	json_object_object_add(o, "ring_wqebbs", json_object_new_int((int)p->loop_ring));
	json_object_object_add(o, "seconds", json_object_new_double(seconds));
	return o;
}

static void print_loop(const struct reddnc_result *r, FILE *out)
{
	const struct program *p = r->program;
	const uint64_t n = session_loop_iterations(r->loop);
	const double seconds = (double)r->took_us / SECOND_US;

	/* They are counted half a lap at a time */
	fprintf(out, "loop\n  from %" PRIu64 " to %" PRIu64 " iterations, %.3f s", n,
		n + p->loop_info.iterations / 2, seconds);
	if (n)
		fprintf(out, ", %.0f iterations and %.0f WQEs per second", (double)n / seconds,
			(double)program_loop_wqes(p, n) / seconds);
	fputc('\n', out);
}

static struct json_object *hex_json(const uint8_t *bytes, uint32_t len)
{
	char *text = calloc(2ul * len + 1, 1), hex[3] = "";
	struct json_object *o;

	for (uint32_t i = 0; text && i < len; i++) {
		snprintf(hex, sizeof(hex), "%02x", bytes[i]);
		memcpy(text + 2ul * i, hex, 2);
	}
	o = json_object_new_string(text ? text : "");
	free(text);
	return o;
}

void reddnc_result_json(const struct reddnc_result *r, FILE *out)
{
	struct json_object *o = json_object_new_object(), *steps = json_object_new_array();
	char line[600];

	json_object_object_add(o, "answered", json_object_new_boolean(r->answered));
	json_object_object_add(o, "reply", hex_json(r->reply, r->program->reply_max));
	json_object_object_add(o, "sent", hex_json(r->sent, r->sent_len));
	for (unsigned q = 0; q < r->image->nqueues; q++)
		for (uint32_t w = 0; w < r->image->queue[q].wqebbs;) {
			struct json_object *step = json_object_new_object();

			json_object_object_add(
				step, "queue", json_object_new_string(r->program->desc->queues[q].name));
			json_object_object_add(step, "step",
				json_object_new_string(
					chain_step_at(r->image, r->slots, q, (uint16_t)w, NULL)));
			w += chain_decode(r->ring[q] + (size_t)w * CHAIN_WQEBB,
				(size_t)(r->image->queue[q].wqebbs - w) * CHAIN_WQEBB, line, sizeof(line));
			json_object_object_add(step, "wqe", json_object_new_string(line));
			json_object_array_add(steps, step);
		}
	json_object_object_add(o, "work_requests", steps);
	if (r->loop)
		json_object_object_add(o, "loop", loop_json(r));
	fprintf(out, "%s\n", json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY));
	json_object_put(o);
}

static void hex_lines(const uint8_t *bytes, size_t len, FILE *out)
{
	for (size_t i = 0; i < len; i++)
		fprintf(out, "%s%02x%s", i % 16 == 0 ? "    " : " ", bytes[i],
			i % 16 == 15 || i + 1 == len ? "\n" : "");
}

void reddnc_result_text(const struct reddnc_result *r, FILE *out)
{
	char line[600], before[600];

	if (r->answered) {
		fprintf(out, "reply\n");
		hex_lines(r->reply, r->program->reply_max, out);
	}
	if (r->sent_len) {
		fprintf(out, "sent\n");
		hex_lines(r->sent, r->sent_len, out);
	}
	for (unsigned q = 0; q < r->image->nqueues; q++) {
		const struct chain_queue *queue = &r->image->queue[q];

		fprintf(out, "queue %s\n", r->program->desc->queues[q].name);
		for (uint32_t w = 0, n; w < queue->wqebbs; w += n) {
			size_t avail = (size_t)(queue->wqebbs - w) * CHAIN_WQEBB;
			const uint8_t *now = r->ring[q] + (size_t)w * CHAIN_WQEBB,
				      *armed = r->ring[q] + (size_t)(w + queue->wqebbs) * CHAIN_WQEBB;

			n = chain_decode(now, avail, line, sizeof(line));
			chain_decode(armed, avail, before, sizeof(before));
			fprintf(out, "  %-12s %s\n", chain_step_at(r->image, r->slots, q, (uint16_t)w, NULL),
				line);
			if (now[WQE_OPCODE] != armed[WQE_OPCODE])
				fprintf(out, "  %-12s was %s\n", "", before);
		}
	}
	if (r->loop)
		print_loop(r, out);
	fprintf(out, "scratch\n");
	hex_lines(r->scratch, r->image->scratch_size, out);
}
