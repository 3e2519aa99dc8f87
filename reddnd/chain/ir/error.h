/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * error.h - why a chain is refused: a code, the steps that are involved, and the numbers and names of the
 * message. Builder, proofs and schedulers fill it; chain_error_text() makes the words, for whoever shows
 * them.
 */
#ifndef CHAIN_IR_ERROR_H
#define CHAIN_IR_ERROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * X(code, words). In the words, {at} and {other} are steps (or an argument of the request), {name} and {what}
 * are names, {0}, {1} and {2} are numbers; {x} is
 * the first one in hexadecimal.
 */
#define CHAIN_ERRORS(X)                                                                                      \
	/* limits */                                                                                         \
	X(QUEUES, "{0} queues; there can be 1 to {1}")                                                       \
	X(STEPS, "{0} steps; at most {1} are possible")                                                      \
	X(WORDS, "{0} scratch words; at most {1} are possible")                                              \
	X(REGIONS, "{0} regions; at most {1} are possible")                                                  \
	X(ARGS, "the request fills {0} places; at most {1} are possible")                                    \
	X(REQUEST_BYTES, "a request of {0} bytes; at most {1} are possible")                                 \
	X(SCRATCH_BYTES, "{0} bytes of scratch memory; at most {1} are possible")                            \
	X(BARRIERS, "{0} steps need so many barriers that there are more than {1} steps in all")             \
	X(GROUPS, "{0} steps; with NOPs that fill groups of {1} WQEBBs there are more than {2} in all")      \
	/* queues */                                                                                         \
	X(NO_QUEUE, "{at}: there is no queue {0}; there are {1}")                                            \
	X(QUEUE_EMPTY, "queue \"{name}\" has no steps")                                                      \
	X(CODE_HEAD, "queue \"{name}\" has a head, and so has \"{what}\"; one queue may have one")           \
	X(HEAD_LOOP, "queue \"{name}\" of a chain that calls a loop has the head; only the reply may")       \
	X(HEAD_CHANGES, "{at} changes a region, while the head is in queue \"{name}\", which does not fail " \
			"with the client's queue pair")                                                      \
	X(HEAD_ENABLES, "{at}: two queues enable \"{name}\", and instances would do so out of order")        \
	X(HEAD_STEPS, "queue \"{name}\" has a head of {0} steps, but only {1} steps")                        \
	X(HEAD_START, "{at}: a head must begin with a WAIT for the request")                                 \
	X(NO_HEAD, "no queue has a head: nothing would start an instance")                                   \
	X(NEXT_HEAD, "queue \"{name}\": nothing enables the head of the next instance")                      \
	/* steps and the places they name */                                                                 \
	X(SAME_LABEL, "two steps are called \"{name}\"")                                                     \
	X(NO_VERB, "{at}: there is no verb {0}")                                                             \
	X(NO_STEP, "{at}: there is no step \"{name}\"")                                                      \
	X(NO_WORD, "{at}: there is no scratch word \"{name}\"")                                              \
	X(WORD_END, "{at}: {0} bytes at byte {1} of word \"{name}\" end beyond the scratch memory")          \
	X(NO_FIELD, "{at}: {other} has no field {name}")                                                     \
	X(NO_SEGMENT, "{at}: {other} has no data segment {0}")                                               \
	X(FIELD_END, "{at}: bytes {0} to {1} of {name} of {other}, which has {2}")                           \
	X(NO_REGION, "{at}: there is no region {0}; there are {1}")                                          \
	X(NO_PLACE, "{at}: a place is missing")                                                              \
	X(NO_DATA, "{at}: a {what} moves no data")                                                           \
	X(READ_NOTHING, "{at}: a READ of nothing")                                                           \
	X(NO_REMOTE, "{at}: a {what} has no remote place")                                                   \
	X(LOCAL_SLOT, "{at}: the reply slot is in the client's memory and cannot be a local place")          \
	X(SEGMENT_EMPTY, "{at}: data segment {0} has length 0, which a NIC takes for 2^31")                  \
	X(ATOMIC_BYTES, "{at}: the old value of an atomic takes one data segment of 8 bytes")                \
	X(CALC_OPERANDS, "{at}: operands of CALC take 16 bytes each, in scratch memory and aligned to 16, "  \
			 "which the data "                                                                   \
			 "segments have as a whole")                                                         \
	X(CALC_RESULT, "{at}: the result of CALC takes 16 bytes of scratch memory, aligned to 8, that are "  \
		       "no operand")                                                                         \
	X(ATOMIC_ALIGN, "{at}: the target of an atomic must be 8-byte aligned")                              \
	X(SEGMENTS_OVERLAP, "{at}: data segments {0} and {1} bring the same bytes")                          \
	X(READS_CLIENT, "{at}: a {what} in queue \"{name}\" would read the client's memory")                 \
	X(ONLY_SLOT, "{at}: queue \"{name}\" ends at the client, where only the reply slot is")              \
	X(SLOT_QUEUE, "{at}: only queue \"{name}\" reaches the reply slot")                                  \
	X(NO_RECEIVER, "{at}: a {what} needs a receiver, which only queue \"{name}\" has")                   \
	X(WRITES_HEAD, "{at}: writes into {other}, which is in a head and may be fetched at any time")       \
	X(WRITES_KEY, "{at}: writes into a memory key of {other}")                                           \
	/* WAIT and SEND_EN */                                                                               \
	X(WAIT_UNSIGNALLED, "{at}: waits for {other}, which is not signalled")                               \
	X(WAIT_REPLY, "{at}: waits for {other} of queue \"{name}\", whose CQEs belong to the daemon")        \
	X(ENABLES_NO_STEP, "{at}: queue \"{name}\" has no step \"{what}\"")                                  \
	X(ENABLES_NO_HEAD, "{at}: queue \"{name}\" has no head")                                             \
	X(ENABLES_HOW_FAR, "{at}: how far does it enable?")                                                  \
	X(ENABLED_BEFORE, "{at}: what it enables of queue \"{name}\" was enabled before")                    \
	X(NEVER_ENABLED, "{at}: nothing that runs enables it")                                               \
	X(WAITS_FOR_LATER, "{at}: waits for {other}, which cannot run before it")                            \
	/* the request */                                                                                    \
	X(ARG_EMPTY, "{at}: has no bytes")                                                                   \
	X(ARG_PLACE, "{at}: a request can fill only fields and scratch words")                               \
	X(ARGS_OVERLAP, "{other} and {at} fill the same bytes")                                              \
	X(ARG_ADDRESS,                                                                                       \
		"{at}: a request may choose only the low bytes of an address, at most 7, and only in "       \
		"a region")                                                                                  \
	X(ARG_FIELD, "{at}: a request must not choose the {name} of a step")                                 \
	/* payload and publish */                                                                            \
	X(PAYLOAD_BYTES, "a payload of {0} bytes behind {1} of arguments; a locator can name {2} in all")    \
	X(PAYLOAD_REGION, "the payload is in region {0}; there are {1}")                                     \
	X(PAYLOAD_WRITABLE,                                                                                  \
		"region \"{name}\" takes the payload, and must not be writable as well: what is "            \
		"published stays as it is")                                                                  \
	X(PAYLOAD_UNUSED, "the payload is never published")                                                  \
	X(NO_PAYLOAD, "{at}: there is no payload")                                                           \
	X(LENGTH_PLACE, "{at}: only a READ in a queue of code takes the length of the request")              \
	X(PUBLISH_LOOP, "{at} publishes, and the chain calls a loop")                                        \
	X(PUBLISH_TWICE,                                                                                     \
		"{at} publishes, and so does {other}; a request has one extent, and publishes once")         \
	X(PUBLISH_CAS,                                                                                       \
		"{at} publishes; only a CAS of a word of a region does, all of it compared and swapped, "    \
		"in a queue of code")                                                                        \
	X(PUBLISH_WAS, "{at} publishes, and the word that it finds must stay in scratch memory")             \
	/* verify/order.h */                                                                                 \
	X(ORDER_REVERSED, "{at} is over before {other}, which comes first and touches the same bytes")       \
	X(FETCHED_EARLY, "{at} writes into {other}, which may have been fetched by then")                    \
	X(FETCHED_BEFORE_REQUEST,                                                                            \
		"{at} takes bytes of the request, and may have been fetched before they are there")          \
	X(FETCHED_LATE, "{at} writes into {other}, which comes first and may not have been fetched by then") \
	X(BOTH_WRITE, "{at} and {other} are not ordered, but both write the same bytes")                     \
	X(READ_AND_WRITE, "{at} and {other} are not ordered, but one reads and the other writes the same "   \
			  "bytes")                                                                           \
	X(ENABLE_RACE, "{at} and {other} enable queue \"{name}\", and either may be first")                  \
	X(END_UNSIGNALLED, "{at} ends the reply and must be signalled")                                      \
	X(END_EARLY, "{at} may still be at work when {other} has completed")                                 \
	X(FAILURE_HIDDEN, "{at} may fail, and {other} answers as if it had not: the answer must be dormant " \
			  "and a last step of queue \"{name}\" give it its opcode")                          \
	X(FAILURE_HEEDLESS, "{at} may fail, and {other}, in another queue, would go on with what was there " \
			    "before; put both into queue \"{name}\"")                                        \
	X(FAILURE_ELSEWHERE, "{at} may fail, and {other}, which gets its opcode from queue \"{name}\", "     \
			     "would go on with what was there before; put {at} into that queue")             \
	X(FAILURE_UNGUARDED,                                                                                 \
		"{at} may fail, and {other}, in another queue, would go on with what was there "             \
		"before; queue \"{name}\" must give it its opcode, after {at}")                              \
	/* verify/bounds.h */                                                                                \
	X(FOREIGN_REQUEST,                                                                                   \
		"{at}: {other} puts bytes of a request into its {name}, where only values of the "           \
		"program may get")                                                                           \
	X(FOREIGN_REGION, "{at}: {other} puts bytes of a region into its {name}, where only values of the "  \
			  "program may get")                                                                 \
	X(OPCODE, "{at}: {other} can make its opcode {x}, which is neither that of a {what} nor a NOP's")    \
	X(OPMOD, "{at}: {other} can make its opmod {x}, where a {what} has {1}")                             \
	X(WQE_SIZE, "{at}: {other} can change the size of the WQE")                                          \
	X(CONTROL, "{at}: {other} writes into its control segment; only a device that checks neither index " \
		   "nor QPN of a WQE allows that")                                                           \
	X(READS_KEY, "{at}: reads a memory key, which must stay secret")                                     \
	X(READS_ADDRESS, "{at}: reads an address in the chain's own memory or in the client's reply slot, "  \
			 "which must stay secret; that of a place in a region can be read")                  \
	X(ADDRESS_SLOT, "{at}: {other} replaces an address in the client's reply slot; a key bounds only "   \
			"addresses in regions")                                                              \
	X(ADDRESS_OWN, "{at}: {other} replaces an address in the chain's own memory; a key bounds only "     \
		       "addresses in regions")                                                               \
	X(ADDRESS_SHARED, "{at}: {other} replaces an address in the memory that the loop shares")            \
	X(ANSWER_SHARED, "{at}: answers from the memory that the loop shares; the next request may change "  \
			 "it before it is sent")                                                             \
	X(REGION_END, "{at}: bytes {0} to {1} of region \"{name}\", which has {2}")                          \
	X(COPY_OVERLAPS,                                                                                     \
		"{at}: copies {0} bytes within region \"{name}\", from {1} to {2}, which overlap: a "        \
		"NIC writes the first of them while it reads the next; copy at most 256 at a time")          \
	X(NOT_WRITABLE, "{at}: writes to region \"{name}\", which is not declared writable")                 \
	X(NOT_STEERED, "{at}: a request can choose where in region \"{name}\" it writes, which is not "      \
		       "declared steered")                                                                   \
	X(LENGTH_BEYOND, "{at}: {other} replaces a length, so that it would reach bytes beyond those that "  \
			 "are named")                                                                        \
	X(LENGTH_REQUEST, "{at}: {other} lets a request choose how many bytes it moves")                     \
	X(LENGTH_INLINE, "{at}: {other} can set the highest bit of a length, by which a NIC takes the "      \
			 "segment for inline data; bring the lower bytes alone, such as a be24")             \
	X(LENGTH_MAX,                                                                                        \
		"{at}: {other} makes a length of up to {0}, as each byte may be that of another value; the " \
		"declared maximum is {1}")                                                                   \
	X(LENGTH_LEAST,                                                                                      \
		"{at}: {other} makes a length of {0} or more, as each byte may be that of another value; "   \
		"the least is {1}, and a NIC takes 0 for 2^31")                                              \
	X(LENGTH_UNVOUCHED,                                                                                  \
		"{at}: {other} replaces a length for which the region's writer cannot vouch, because "       \
		"a program stores there, or makes a part of the length; declare it as \"max {0}\", and the " \
		"NIC looks at it")                                                                           \
	X(LENGTH_PUBLISHED, "{at}: {other} replaces a length by that of what a program publishes there, 1 "  \
			    "to {0} bytes, "                                                                 \
			    "as a client sends it; declared are {1} to {2}")                                 \
	X(LENGTH_UNKNOWN, "{at}: its length is replaced; declare the most that it can be")                   \
	X(SLOT_END, "{at}: writes up to byte {0} of the reply slot, which has {1}")                          \
	X(REPLY_BYTES, "{at}: a reply cannot have {0} bytes")                                                \
	X(LOOP_UNCLEAR, "the bytes that the loop can leave cannot be determined")                            \
	/* verify/trace.h */                                                                                 \
	X(PUBLISH_SEEN, "{at} publishes, and what it compares is not a word that one READ of a region has "  \
			"brought, whole and unchanged")                                                      \
	X(PUBLISH_PLACE, "{at} publishes in place of a word that {other} has read elsewhere, or may have: "  \
			 "both need the same place, which comes once")                                       \
	X(PUBLISH_LOCATOR, "{at} publishes, and its locator is another one, or has another length than the " \
			   "request's")                                                                      \
	X(PUBLISH_SHARED,                                                                                    \
		"{at} publishes in region \"{name}\", in which something else is stored as well, by this "   \
		"program or another one: it may replace what no publish has put there")                      \
	X(PUBLISH_NOTHING, "{at} publishes a locator of no bytes, which a NIC takes for 2^31")               \
	X(PUBLISH_ARMED,                                                                                     \
		"{at} publishes, and the word that it finds does not begin with all bits set: what it "      \
		"was armed with could be taken for what it has found")                                       \
	X(PUBLISH_BLIND,                                                                                     \
		"{at} publishes where the chain has not found a bucket: the READ that brings the locator "   \
		"has to bring the mark as well, into a variable of its own, and a condition around {at} to " \
		"compare all of that with an argument that has the tag above it, 0xa5 << 48")                \
	X(PUBLISH_KEPT, "{at} writes to the word that {other} has found; what came of a publish must stay")  \
	X(EXTENT_LEAVES, "{at} uses the locator that {other} publishes; an extent leaves by that alone")     \
	/* schedule/derive.h, schedule/loop-order.h */                                                       \
	X(AFTER_REPLY, "{at} comes after {other} and touches the same bytes, but the reply is sent last, "   \
		       "and nothing can wait for it; use bytes that {at} does not change")                   \
	X(LOOP_IDLE, "the loop does nothing")                                                                \
	/* ring/endless.h */                                                                                 \
	X(LOOP_FIELD, "{at}: writes into the {name} of {other}")                                             \
	X(LOOP_ALWAYS, "{at}: would call or leave the loop in every iteration")                              \
	X(LOOP_CALL, "{at}: a loop is called at its beginning")                                              \
	X(LOOP_LEFT, "{at}: {other} may still be at work when the loop is left")                             \
	X(LOOP_WAIT, "{at}: waits for a step that is not before it, or not signalled")                       \
	X(LOOP_ENABLE, "{at}: a loop enables its own steps by name")                                         \
	X(LOOP_RENEWAL, "nothing is waited for before the next iteration is enabled")                        \
	/* ring/lap-check.h: by WQEBBs of the ring */                                                        \
	X(LAP_NO_WQE, "WQEBB {0}: no WQE")                                                                   \
	X(LAP_FOREIGN_WQE, "WQEBB {0}: a WQE of another place")                                              \
	X(LAP_ENABLE_FAR, "WQEBB {0}: enables through {1}, which is not within a lap")                       \
	X(LAP_ENABLE_BACK, "WQEBB {0}: enables less than was enabled before")                                \
	X(LAP_NEVER_ENABLED, "WQEBB {0}: nothing enables it in time")                                        \
	X(LAP_COUNT, "WQEBB {0}: sections are not counted as software expects")                              \
	X(LAP_WAIT, "WQEBB {0}: waits for CQE {1}, which nothing before it in the lap causes")               \
	X(LAP_FETCHED_EARLY, "WQEBB {0} writes into WQEBB {1}, which may have been fetched by then")         \
	X(LAP_UNORDERED, "WQEBB {0} and WQEBB {1} are not ordered, but one writes what the other uses")

enum chain_error_code {
	CHAIN_E_NONE,
#define X(code, words) CHAIN_E_##code,
	CHAIN_ERRORS(X)
#undef X
		CHAIN_ERROR_CODES
};

struct chain_desc;

/** A step of the description, or an argument of its request. */
struct chain_error_at {
	bool is_argument;
	uint16_t index;   /* in steps[] or args[] of the description that was checked */
	unsigned line;    /* of the source, 0: none */
	char label[33];   /* of the step, "" if it has none */
	const char *verb; /* its name */
};

struct chain_error {
	enum chain_error_code code;
	struct chain_error_at at, other;
	const char *name, *what; /* static, or of the description that the caller passed in */
	uint64_t number[3];
};

#define CHAIN_REFUSED 1

/** Fills *@e with CHAIN_E_@reason and the members that follow, and is CHAIN_REFUSED. */
#define CHAIN_REFUSE(e, reason, ...)                                                                         \
	({                                                                                                   \
		*(e) = (struct chain_error){.code = CHAIN_E_##reason, ##__VA_ARGS__};                        \
		CHAIN_REFUSED;                                                                               \
	})

enum { CHAIN_ERROR_TEXT = 400 };

/** Step @s of @d. */
struct chain_error_at chain_error_step(const struct chain_desc *d, unsigned s);

/** One line without a newline, "" for CHAIN_E_NONE; cut off where @size bytes are too few. Returns @text. */
const char *chain_error_text(const struct chain_error *e, char *text, size_t size);

/** The code as it is written in CHAIN_ERRORS, "NONE" without one. */
const char *chain_error_name(enum chain_error_code code);

#endif
