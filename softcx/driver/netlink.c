/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/driver/internal.h"
#include "softcx/proto/proto.h"
#include "util/array.h"

#include <errno.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <rdma/rdma_netlink.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/*
 * Answers what programs ask of the kernel over NETLINK_RDMA: which devices there are, their
 * ports, and how many objects they have. rdma(8) and rdma-core ask that. The facts come from the NIC's sysfs
 * and its control socket.
 *
 * As in the kernel (drivers/infiniband/core/nldev.c), an attribute that is not known is left out, and a
 * command that is not known is EOPNOTSUPP.
 */

enum {
	ROOM = 16384 /* of an answer, and of the NIC's status */
};

/* ---- facts ------------------------------------------------------------------------------ */

/** The first line of a file in /sys/class, without its end; "" if it is not there. */
static const char *__attribute__((format(printf, 2, 3)))
attribute(char text[static 128], const char *format, ...)
{
	char path[256] = "/sys/class/";
	size_t n = strlen(path);
	va_list ap;
	FILE *f;

	va_start(ap, format);
	vsnprintf(path + n, sizeof(path) - n, format, ap);
	va_end(ap);
	*text = '\0';
	f = fopen(path, "re");
	if (!f)
		return text;
	if (!fgets(text, 128, f))
		*text = '\0';
	fclose(f);
	text[strcspn(text, "\n")] = '\0';
	return text;
}

static uint64_t number(const char *text)
{
	return strtoull(text, NULL, 0);
}

/** A GUID, or the first half of a GID: four groups of four hexadecimal digits. */
static uint64_t guid(const char *text)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < 4 && *text; i++, text += strcspn(text, ":"), text += *text == ':')
		v = v << 16 | strtoul(text, NULL, 16);
	return v;
}

/** What the NIC's status has of device @dev, or NULL. */
static const char *device_status(unsigned dev, char text[static ROOM])
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	char dir[SOFTCX_MAX_DIR + 1], wanted[SOFTCX_MAX_DIR + 64];
	ssize_t n = -1;

	if (softcx_dir(dir, sizeof(dir)) == 0 && fd >= 0) {
		snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/" SOFTCX_CONTROL, dir);
		snprintf(
			wanted, sizeof(wanted), "\"%s/" SOFTCX_SYSFS "/class/infiniband/mlx5_%u\"", dir, dev);
		if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == 0 &&
			send(fd, "status", strlen("status"), MSG_NOSIGNAL) > 0)
			n = recv(fd, text, ROOM - 1, 0);
	}
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0 ? strstr(text, wanted) : NULL;
}

/* ---- messages --------------------------------------------------------------------------- */

struct answer {
	const struct nlmsghdr *request;
	uint8_t bytes[ROOM];
	size_t len;
	struct nlmsghdr *message; /* at work */
};

static void *put(struct answer *a, size_t len)
{
	uint8_t *p = a->bytes + a->len;

	if (a->len + NLMSG_ALIGN(len) > sizeof(a->bytes))
		abort(); /* 16 devices need less */
	memset(p, 0, NLMSG_ALIGN(len));
	a->len += NLMSG_ALIGN(len);
	return p;
}

static void begin(struct answer *a, uint16_t type, uint16_t flags)
{
	a->message = put(a, NLMSG_HDRLEN);
	*a->message = (struct nlmsghdr){.nlmsg_type = type,
		.nlmsg_flags = flags,
		.nlmsg_seq = a->request->nlmsg_seq,
		.nlmsg_pid = (uint32_t)getpid()};
}

static void end(struct answer *a)
{
	a->message->nlmsg_len = (uint32_t)(a->bytes + a->len - (uint8_t *)a->message);
}

static void add(struct answer *a, uint16_t type, const void *value, size_t len)
{
	struct nlattr *attr = put(a, NLA_HDRLEN + len);

	attr->nla_type = type;
	attr->nla_len = (uint16_t)(NLA_HDRLEN + len);
	memcpy(attr + 1, value, len);
}

static void add_text(struct answer *a, uint16_t type, const char *text)
{
	add(a, type, text, strlen(text) + 1);
}

/* Of 1, 4 or 8 bytes, little-endian as the host */
static void add_number(struct answer *a, uint16_t type, size_t bytes, uint64_t value)
{
	add(a, type, &value, bytes);
}

static struct nlattr *nest(struct answer *a, uint16_t type)
{
	struct nlattr *attr = put(a, NLA_HDRLEN);

	attr->nla_type = type;
	return attr;
}

static void nest_end(struct answer *a, struct nlattr *attr)
{
	attr->nla_len = (uint16_t)(a->bytes + a->len - (uint8_t *)attr);
}

static const void *find(const struct nlmsghdr *request, uint16_t type, size_t least)
{
	const uint8_t *p = (const uint8_t *)request + NLMSG_HDRLEN,
		      *stop = (const uint8_t *)request + request->nlmsg_len;

	while (stop - p >= NLA_HDRLEN) {
		const struct nlattr *attr = (const struct nlattr *)p;

		if (attr->nla_len < NLA_HDRLEN || attr->nla_len > stop - p)
			return NULL;
		if (attr->nla_type == type && attr->nla_len >= NLA_HDRLEN + least)
			return attr + 1;
		p += NLA_ALIGN(attr->nla_len);
	}
	return NULL;
}

/* ---- commands --------------------------------------------------------------------------- */

static void say_name(struct answer *a, unsigned dev)
{
	char name[16];

	snprintf(name, sizeof(name), "mlx5_%u", dev);
	add_number(a, RDMA_NLDEV_ATTR_DEV_INDEX, 4, dev);
	add_text(a, RDMA_NLDEV_ATTR_DEV_NAME, name);
}

static int say_device(struct answer *a, unsigned dev)
{
	char text[128];

	say_name(a, dev);
	add_number(a, RDMA_NLDEV_ATTR_PORT_INDEX, 4, 1); /* so many */
	add_text(a, RDMA_NLDEV_ATTR_FW_VERSION, attribute(text, "infiniband/mlx5_%u/fw_ver", dev));
	add_number(
		a, RDMA_NLDEV_ATTR_NODE_GUID, 8, guid(attribute(text, "infiniband/mlx5_%u/node_guid", dev)));
	add_number(a, RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, 8,
		guid(attribute(text, "infiniband/mlx5_%u/sys_image_guid", dev)));
	add_number(a, RDMA_NLDEV_ATTR_DEV_NODE_TYPE, 1,
		number(attribute(text, "infiniband/mlx5_%u/node_type", dev)));
	add_text(a, RDMA_NLDEV_ATTR_DEV_PROTOCOL,
		strcmp(attribute(text, "infiniband/mlx5_%u/ports/1/link_layer", dev), "InfiniBand") ? "roce"
												    : "ib");
	return 0;
}

static int say_port(struct answer *a, unsigned dev)
{
	char text[128];
	const uint32_t *port = find(a->request, RDMA_NLDEV_ATTR_PORT_INDEX, 4);

	if (port && *port != 1)
		return -EINVAL;
	say_name(a, dev);
	add_number(a, RDMA_NLDEV_ATTR_PORT_INDEX, 4, 1);
#define PORT(name) attribute(text, "infiniband/mlx5_%u/ports/1/" name, dev)
	if (strcmp(PORT("link_layer"), "InfiniBand") == 0) {
		add_number(a, RDMA_NLDEV_ATTR_CAP_FLAGS, 8, number(PORT("cap_mask")));
		add_number(a, RDMA_NLDEV_ATTR_SUBNET_PREFIX, 8, guid(PORT("gids/0")));
		add_number(a, RDMA_NLDEV_ATTR_LID, 4, number(PORT("lid")));
		add_number(a, RDMA_NLDEV_ATTR_SM_LID, 4, number(PORT("sm_lid")));
		add_number(a, RDMA_NLDEV_ATTR_LMC, 1, number(PORT("lid_mask_count")));
	}
	add_number(a, RDMA_NLDEV_ATTR_PORT_STATE, 1, number(PORT("state")));
	add_number(a, RDMA_NLDEV_ATTR_PORT_PHYS_STATE, 1, number(PORT("phys_state")));
	if (*PORT("gid_attrs/ndevs/0")) {
		add_number(a, RDMA_NLDEV_ATTR_NDEV_INDEX, 4, if_nametoindex(text));
		add_text(a, RDMA_NLDEV_ATTR_NDEV_NAME, text);
	}
#undef PORT
	return 0;
}

static int say_resources(struct answer *a, unsigned dev)
{
	static const char *const kinds[][2] = {{"pd", "\"pds\":"}, {"cq", "\"cqs\":"}, {"qp", "\"qps\":"},
		{"mr", "\"mkeys\":"}, {"srq", "\"srqs\":"}};
	char text[ROOM];
	const char *status = device_status(dev, text);
	struct nlattr *table;

	if (!status)
		return -ENODEV;
	say_name(a, dev);
	table = nest(a, RDMA_NLDEV_ATTR_RES_SUMMARY);
	for (unsigned i = 0; i < COUNT(kinds); i++) {
		const char *count = strstr(status, kinds[i][1]);
		struct nlattr *entry = nest(a, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY);

		add_text(a, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME, kinds[i][0]);
		add_number(a, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR, 8,
			count ? number(count + strlen(kinds[i][1])) : 0);
		nest_end(a, entry);
	}
	nest_end(a, table);
	return 0;
}

typedef int say(struct answer *a, unsigned dev);

/** A message about device @dev; nothing is left of it after an error. */
static int say_one(struct answer *a, say *what, unsigned dev, uint16_t flags)
{
	size_t before = a->len;
	char text[128];
	int r;

	if (!*attribute(text, "infiniband/mlx5_%u/node_guid", dev))
		return -ENODEV;
	begin(a, a->request->nlmsg_type, flags);
	r = what(a, dev);
	if (r < 0)
		a->len = before;
	else
		end(a);
	return r;
}

static int do_command(struct answer *a)
{
	static say *const commands[] = {[RDMA_NLDEV_CMD_GET] = say_device,
		[RDMA_NLDEV_CMD_PORT_GET] = say_port,
		[RDMA_NLDEV_CMD_RES_GET] = say_resources};
	unsigned op = RDMA_NL_GET_OP(a->request->nlmsg_type);
	const uint32_t *dev = find(a->request, RDMA_NLDEV_ATTR_DEV_INDEX, 4);

	if (RDMA_NL_GET_CLIENT(a->request->nlmsg_type) != RDMA_NL_NLDEV || op >= COUNT(commands) ||
		!commands[op])
		return -EOPNOTSUPP;
	if (!(a->request->nlmsg_flags & NLM_F_DUMP))
		return dev ? say_one(a, commands[op], *dev, 0) : -EINVAL;
	for (unsigned i = dev ? *dev : 0; say_one(a, commands[op], i, NLM_F_MULTI) == 0 && !dev; i++)
		;
	begin(a, NLMSG_DONE, NLM_F_MULTI);
	memset(put(a, sizeof(int)), 0, sizeof(int));
	end(a);
	return 0;
}

/* Does what the messages in @len bytes ask, and sends the answers to @fd, a message each; those to a dump
 * are in one. 0, or -errno of sending. */
static int rdma_netlink_ask(int fd, const void *messages, size_t len)
{
	const struct nlmsghdr *request = messages;
	struct answer a;
	int r;

	for (; NLMSG_OK(request, len); request = NLMSG_NEXT(request, len)) {
		a.request = request;
		a.len = 0;
		r = do_command(&a);
		if (r < 0 || (request->nlmsg_flags & NLM_F_ACK && !(request->nlmsg_flags & NLM_F_DUMP))) {
			struct nlmsgerr *error;

			begin(&a, NLMSG_ERROR, 0);
			error = put(&a, sizeof(*error));
			*error = (struct nlmsgerr){.error = r, .msg = *request};
			end(&a);
		}
		if (send(fd, a.bytes, a.len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			return -errno;
	}
	return 0;
}

/*
 * Netlink-socket.c - sockets of NETLINK_RDMA: the functions of the C library that programs call with them.
 * Such a socket is a datagram socket that is connected to itself, so that answers wait in it
 * until they are read. It can be polled, closed and inherited as any other.
 */

enum {
	MAX_FDS = 1024,
	NAME_LEN = 6 /* of an address that Linux chooses: a zero and five digits */
};

/* The addresses of such sockets: a descriptor may have been closed, and be something else by now */
static struct {
	_Atomic bool used;
	char name[NAME_LEN];
} sockets[MAX_FDS];

static bool address_of(int fd, struct sockaddr_un *sun)
{
	NEXT(getsockname);
	socklen_t len = sizeof(*sun);

	return next(fd, (struct sockaddr *)sun, &len) == 0 && sun->sun_family == AF_UNIX &&
	       len == offsetof(struct sockaddr_un, sun_path) + NAME_LEN;
}

static bool is_ours(int fd)
{
	struct sockaddr_un sun;
	int saved = errno;
	bool is;

	if (fd < 0 || fd >= MAX_FDS || !atomic_load(&sockets[fd].used))
		return false;
	is = address_of(fd, &sun) && memcmp(sun.sun_path, sockets[fd].name, NAME_LEN) == 0;
	errno = saved;
	return is;
}

static int open_socket(int type)
{
	const socklen_t any = sizeof(sa_family_t);
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | (type & (SOCK_CLOEXEC | SOCK_NONBLOCK)), 0);

	if (fd < 0)
		return -errno;
	if (fd >= MAX_FDS || bind(fd, (struct sockaddr *)&sun, any) < 0 || !address_of(fd, &sun) ||
		connect(fd, (struct sockaddr *)&sun, offsetof(struct sockaddr_un, sun_path) + NAME_LEN) < 0) {
		close(fd);
		return -EMFILE;
	}
	memcpy(sockets[fd].name, sun.sun_path, NAME_LEN);
	atomic_store(&sockets[fd].used, true);
	return fd;
}

/* ---- the C library ---------------------------------------------------------------------- */

static int fail(int rc)
{
	errno = -rc;
	return -1;
}

EXPORT int socket(int domain, int type, int protocol)
{
	NEXT(socket);
	int fd;

	if (domain != AF_NETLINK || protocol != NETLINK_RDMA)
		return next(domain, type, protocol);
	fd = open_socket(type);
	return fd < 0 ? fail(fd) : fd;
}

EXPORT int bind(int fd, const struct sockaddr *address, socklen_t len)
{
	NEXT(bind);
	return is_ours(fd) ? 0 : next(fd, address, len);
}

/** Who sends and receives: the program by the number of its process, the kernel as 0. */
static void name_end(void *name, socklen_t *len, uint32_t pid)
{
	const struct sockaddr_nl end = {.nl_family = AF_NETLINK, .nl_pid = pid};

	if (name)
		memcpy(name, &end, *len < sizeof(end) ? *len : sizeof(end));
	*len = sizeof(end);
}

EXPORT int getsockname(int fd, struct sockaddr *address, socklen_t *len)
{
	NEXT(getsockname);
	if (!is_ours(fd))
		return next(fd, address, len);
	name_end(address, len, (uint32_t)getpid());
	return 0;
}

EXPORT int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	NEXT(setsockopt);
	return level == SOL_NETLINK && is_ours(fd) ? 0 : next(fd, level, name, value, len);
}

static ssize_t ask(int fd, const void *buf, size_t len)
{
	int rc = rdma_netlink_ask(fd, buf, len);

	return rc < 0 ? fail(rc) : (ssize_t)len;
}

EXPORT ssize_t sendto(
	int fd, const void *buf, size_t len, int flags, const struct sockaddr *to, socklen_t tolen)
{
	NEXT(sendto);
	return is_ours(fd) ? ask(fd, buf, len) : next(fd, buf, len, flags, to, tolen);
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	NEXT(sendmsg);
	return is_ours(fd) && msg->msg_iovlen == 1
		       ? ask(fd, msg->msg_iov[0].iov_base, msg->msg_iov[0].iov_len)
		       : next(fd, msg, flags);
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	NEXT(recvmsg);
	ssize_t n = next(fd, msg, flags);

	if (n >= 0 && is_ours(fd))
		name_end(msg->msg_name, &msg->msg_namelen, 0);
	return n;
}
