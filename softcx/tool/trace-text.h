/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace-text.h - records of a trace in words.
 *
 * A line of text is
 *   TIME DEVICE QP NUMBER [INDEX] OPCODE operands, flags -> outcome
 * In JSON the same facts have members of their own. Addresses, keys and queue pair numbers are hexadecimal
 * (in JSON strings "0x..."); CQ numbers, lengths and indices are decimal. A WQE that was refused is described
 * as far as its bytes make sense. A record that stands for lost ones has their number.
 */
#ifndef SOFTCX_TOOL_TRACE_TEXT_H
#define SOFTCX_TOOL_TRACE_TEXT_H

#include "softcx/proto/proto.h"

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/** Writes one line, newline included. */
void trace_text(FILE *out, const struct softcx_trace *rec);
/** The caller puts it. */
struct json_object *trace_json(const struct softcx_trace *rec);

/** Length of the message: the sum of its data segments. */
uint64_t trace_bytes(const struct softcx_trace *rec);

/** The kinds in a list like "wqe,recv", or "all", as a set of 1 << enum hw_trace_kind; 0: a wrong list. */
uint32_t trace_event_kinds(const char *list);

/*
 * trace-pcap.c: records of a trace as packets in a pcapng file (draft-ietf-opsawg-pcapng), for Wireshark.
 *
 * A WQE that sent a message becomes one RoCE v2 frame: Ethernet, IP, UDP to port 4791, BTH and the headers of
 * its opcode (InfiniBand Architecture 1.4, chapter 9, and annex A17), with the words of trace-text.h as its
 * comment. A record does not have everything that a frame has: data are zeros unless they are inline in the
 * WQE, and so is the ICRC; a frame longer than an MTU is cut off after its headers but states its full
 * length, as if the message went in one packet; the PSN is the WQE index; there are no acknowledgements and
 * no responses.
 */

/*
 * RECVs, CQEs and WAITs are not packets: each is a systemd journal export block, which Wireshark lists among
 * the packets.
 */
/** Writes the head of the file. */
void trace_pcap_begin(FILE *out);
/** Writes the frame or entry of @rec; nothing when a send WQE has none: WAIT and its like, what failed,
 * masked atomics. */
void trace_pcap(FILE *out, const struct softcx_trace *rec);

#endif
