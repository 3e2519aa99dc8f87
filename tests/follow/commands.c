/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * commands SOCKET DATABASE HOST PORT OFFLOAD [PREFIX...] - runs commands of Redis by libreddn-redis. A line
 * of standard input has the words of one, in hexadecimal; an empty one, "-": something else has changed keys.
 * Prints for each a line: how many the NIC has answered, and Redis, and the reply: its type as the protocol
 * has it, and then its number, its length, or its bytes in hexadecimal; without one, "!" and the error. Nodes
 * of a cluster are connected to when Redis redirects a command. With semicolons, HOST has shards.
 */
#include "libclient/reddn-redis.h"
#include "tests/lib/arg.h"

#include <err.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 64, LINE = 65536 };

static void print_bytes(char type, const char *bytes, size_t len)
{
	printf(" %c", type);
	for (size_t i = 0; i < len; i++)
		printf("%02x", (unsigned char)bytes[i]);
}

static void print(const redisReply *reply)
{
	switch (reply->type) {
	case REDIS_REPLY_ARRAY:
		printf(" *%zu", reply->elements);
		for (size_t i = 0; i < reply->elements; i++)
			print(reply->element[i]);
		break;
	case REDIS_REPLY_INTEGER:
		printf(" :%lld", reply->integer);
		break;
	case REDIS_REPLY_STRING:
		print_bytes('$', reply->str, reply->len);
		break;
	case REDIS_REPLY_STATUS:
		print_bytes('+', reply->str, reply->len);
		break;
	case REDIS_REPLY_ERROR:
		print_bytes('-', reply->str, reply->len);
		break;
	default:
		printf(" _");
	}
}

/* In place */
static size_t from_hex(char *text)
{
	size_t n = 0;

	for (; text[2 * n] && text[2 * n] != '-'; n++) {
		const char digits[] = {text[2 * n], text[2 * n + 1], '\0'};

		text[n] = (char)strtoul(digits, NULL, 16);
	}
	return n;
}

/* Of the context, once it is connected */
static void choose(redisContext *source, const char *database)
{
	freeReplyObject(redisCommand(source, "SELECT %s", database));
	if (source->err)
		errx(1, "%s", source->errstr);
}

static redisContext *connect_node(void *of, const char *host, int port)
{
	(void)of;
	return redisConnect(host, port);
}

int main(int argc, char **argv)
{
	struct reddn_options nic = {0};
	struct reddn_redis_options options = {.nic = &nic, .connect = connect_node};
	struct reddn_redis_info info;
	struct reddn_redis *r;
	redisContext *source;
	static char line[LINE];

	if (argc < 6)
		errx(2, "usage: commands SOCKET DATABASE HOST PORT OFFLOAD [PREFIX...]");
	signal(SIGPIPE, SIG_IGN);
	source = redisConnectUnix(argv[1]);
	nic.host = argv[3];
	nic.port = (uint16_t)arg_number(argv[4], UINT16_MAX);
	nic.offload = argv[5];
	nic.shards = strchr(nic.host, ';') ? REDDN_SHARDS_REDIS : 0;
	options.prefixes = (const char *const *)&argv[6];
	options.nprefixes = (size_t)argc - 6;
	if (!source || source->err || reddn_redis_new(&r, source, &options))
		errx(2, "no connection");
	choose(source, argv[2]);
	while (fgets(line, sizeof(line), stdin)) {
		const char *word[WORDS];
		size_t length[WORDS];
		redisReply *reply = NULL;
		char error[sizeof(source->errstr)] = "";
		int n = 0;

		for (char *w = strtok(line, " \n"); w && n < WORDS; w = strtok(NULL, " \n"), n++) {
			word[n] = w;
			length[n] = from_hex(w);
		}
		if (n == 1 && length[0] == 0) {
			reddn_redis_wrote(r);
		} else if (!(reply = reddn_redis_command_argv(r, n, word, length))) {
			strcpy(error, source->errstr);
			if (redisReconnect(source) != REDIS_OK)
				errx(1, "%s", source->errstr);
			choose(source, argv[2]);
		}
		reddn_redis_get_info(r, &info);
		printf("%" PRIu64 " %" PRIu64, info.nic_answers, info.source_answers);
		if (reply)
			print(reply);
		else
			print_bytes('!', error, strlen(error));
		printf("\n");
		fflush(stdout);
		freeReplyObject(reply);
	}
	reddn_redis_free(r);
	redisFree(source);
	return 0;
}
