/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace-pcap.h - records of a trace as packets in a pcapng file (draft-ietf-opsawg-pcapng), for Wireshark.
 *
 * A WQE that sent a message becomes one RoCE v2 frame: Ethernet, IP, UDP to port 4791, BTH and the headers of
 * its opcode (InfiniBand Architecture 1.4, chapter 9, and annex A17), with the words of trace-text.h as its
 * comment. A record does not have everything that a frame has: data are zeros unless they are inline in the
 * WQE, and so is the ICRC; a frame longer than an MTU is cut off after its headers but states its full
 * length, as if the message went in one packet; the PSN is the WQE index; there are no acknowledgements and
 * no responses.
 */
#ifndef SOFTCX_TOOL_TRACE_PCAP_H
#define SOFTCX_TOOL_TRACE_PCAP_H

#include "softcx/proto/proto.h"

#include <stdio.h>

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
