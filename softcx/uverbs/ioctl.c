/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/ioctl.h"

#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <stddef.h>
#include <string.h>

/* ---- access to attributes --------------------------------------------------------------- */

const struct ib_uverbs_attr *uverbs_attr(const struct uverbs_bundle *b, uint16_t id)
{
	for (unsigned i = 0; i < b->num; i++)
		if (b->attrs[i].attr_id == id)
			return &b->attrs[i];
	return NULL;
}

uint64_t uverbs_attr_value(const struct uverbs_bundle *b, uint16_t id)
{
	const struct ib_uverbs_attr *a = uverbs_attr(b, id);

	if (!a)
		return 0;
	return a->len == 4 ? (uint32_t)a->data : a->data;
}

const void *uverbs_attr_bytes(const struct uverbs_bundle *b, uint16_t id, size_t *len)
{
	const struct ib_uverbs_attr *a = uverbs_attr(b, id);

	*len = a ? a->len : 0;
	if (*len == 0)
		return NULL;
	if (*len <= sizeof(a->data))
		return &a->data;
	return nic_call_attr(b->call, (unsigned)(a - b->attrs));
}

/* Address in the application of byte @off of the attribute itself. */
static uint64_t attr_va(const struct uverbs_bundle *b, const struct ib_uverbs_attr *a, size_t off)
{
	return nic_call_va(b->call) + offsetof(struct ib_uverbs_ioctl_hdr, attrs) +
	       (uint64_t)(a - b->attrs) * sizeof(*a) + off;
}

int uverbs_attr_out(const struct uverbs_bundle *b, uint16_t id, const void *src, size_t len)
{
	const struct ib_uverbs_attr *a = uverbs_attr(b, id);
	uint16_t flags;
	int r;

	if (!a)
		return 0;
	r = nic_call_store(b->call, a->data, src, len < a->len ? len : a->len);
	if (r < 0)
		return r;
	flags = a->flags | UVERBS_ATTR_F_VALID_OUTPUT;
	return nic_call_store(
		b->call, attr_va(b, a, offsetof(struct ib_uverbs_attr, flags)), &flags, sizeof(flags));
}

int uverbs_attr_new_handle(const struct uverbs_bundle *b, uint16_t id, uint32_t handle)
{
	const struct ib_uverbs_attr *a = uverbs_attr(b, id);
	uint64_t data = handle;

	return nic_call_store(
		b->call, attr_va(b, a, offsetof(struct ib_uverbs_attr, data)), &data, sizeof(data));
}

int uverbs_attr_new_fd(const struct uverbs_bundle *b, uint16_t id, int fd)
{
	const struct ib_uverbs_attr *a = uverbs_attr(b, id);
	uint64_t va = attr_va(b, a, offsetof(struct ib_uverbs_attr, data));
	uint32_t high = 0;
	int r = nic_call_store(b->call, va + 4, &high, sizeof(high)); /* data is 64 bits wide */

	return r < 0 ? r : nic_call_fd(b->call, va, fd);
}

int uverbs_attr_obj(
	const struct uverbs_bundle *b, uint16_t id, enum uverbs_type type, struct uverbs_obj **obj)
{
	return uverbs_obj_find(b->file, type, uverbs_attr_value(b, id), obj);
}

struct uverbs_udata uverbs_attr_udata(const struct uverbs_bundle *b, uint16_t in, uint16_t out)
{
	const struct ib_uverbs_attr *o = uverbs_attr(b, out);
	struct uverbs_udata u = {0};

	u.in = uverbs_attr_bytes(b, in, &u.in_len);
	if (o) {
		u.out = o->data;
		u.out_len = o->len;
	}
	return u;
}

/* ---- dispatch --------------------------------------------------------------------------- */

static const struct uverbs_ioctl_method *find_in(
	const struct uverbs_ioctl_method *m, unsigned len, uint16_t object, uint16_t method)
{
	for (unsigned i = 0; i < len; i++)
		if (m[i].object == object && m[i].method == method)
			return &m[i];
	return NULL;
}

static const struct uverbs_ioctl_method *find_method(uint16_t object, uint16_t method)
{
	const struct uverbs_ioctl_method *m =
		find_in(uverbs_core_methods, uverbs_core_methods_len, object, method);

	if (!m)
		m = find_in(uverbs_create_methods, uverbs_create_methods_len, object, method);
	if (!m)
		m = find_in(uverbs_mlx5_methods, uverbs_mlx5_methods_len, object, method);
	return m;
}

static const struct uverbs_attr_spec *find_spec(const struct uverbs_ioctl_method *m, uint16_t id)
{
	for (unsigned i = 0; m->attrs[i].id != 0xffff; i++)
		if (m->attrs[i].id == id)
			return &m->attrs[i];
	return NULL;
}

static int check_attr(
	const struct uverbs_bundle *b, const struct ib_uverbs_attr *a, const struct uverbs_attr_spec *s)
{
	if (a->attr_data.reserved)
		return -EINVAL;
	switch (s->kind) {
	case UVERBS_A_IN:
		if (a->len < s->min)
			return -EINVAL;
		return a->len > sizeof(a->data) && !nic_call_attr(b->call, (unsigned)(a - b->attrs)) ? -EFAULT
												     : 0;
	case UVERBS_A_OUT:
		return a->len < s->min ? -EINVAL : 0;
	case UVERBS_A_VALUE:
		return a->len == 4 || a->len == 8 ? 0 : -EINVAL;
	default:
		return a->len ? -EINVAL : 0;
	}
}

static int check_attrs(const struct uverbs_ioctl_method *m, const struct uverbs_bundle *b)
{
	for (unsigned i = 0; i < b->num; i++) {
		const struct ib_uverbs_attr *a = &b->attrs[i];
		const struct uverbs_attr_spec *s = find_spec(m, a->attr_id);
		int r;

		if (!s && (a->flags & UVERBS_ATTR_F_MANDATORY))
			return -EPROTONOSUPPORT;
		if (!s)
			continue;
		if (uverbs_attr(b, a->attr_id) != a) /* given twice */
			return -EINVAL;
		r = check_attr(b, a, s);
		if (r < 0)
			return r;
	}
	for (unsigned i = 0; m->attrs[i].id != 0xffff; i++)
		if (m->attrs[i].mandatory && !uverbs_attr(b, m->attrs[i].id))
			return -EINVAL;
	return 0;
}

int uverbs_ioctl(struct uverbs_file *file, struct nic_call *call)
{
	const struct ib_uverbs_ioctl_hdr *hdr;
	const struct uverbs_ioctl_method *m;
	struct uverbs_bundle b;
	size_t len;
	int r;

	hdr = nic_call_bytes(call, &len);
	if (len < sizeof(*hdr) || hdr->length != len ||
		hdr->length != sizeof(*hdr) + hdr->num_attrs * sizeof(hdr->attrs[0]))
		return -EINVAL;
	if (hdr->reserved1 || hdr->reserved2)
		return -EPROTONOSUPPORT;
	if (hdr->driver_id != RDMA_DRIVER_MLX5)
		return -EINVAL;
	m = find_method(hdr->object_id, hdr->method_id);
	if (!m)
		return -EPROTONOSUPPORT;
	b = (struct uverbs_bundle){.file = file, .call = call, .attrs = hdr->attrs, .num = hdr->num_attrs};
	r = check_attrs(m, &b);
	if (r < 0)
		return r;
	if (!file->has_context && !m->before_context)
		return -EINVAL;
	return m->run(&b);
}
