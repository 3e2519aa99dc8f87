/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/uverbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int uverbs_udata_in(const struct uverbs_udata *u, void *dst, size_t min, size_t len)
{
	size_t n = u->in_len < len ? u->in_len : len;

	if (u->in_len < min)
		return -EINVAL;
	if (n)
		memcpy(dst, u->in, n);
	memset((uint8_t *)dst + n, 0, len - n);
	return 0;
}

bool uverbs_udata_cleared(const struct uverbs_udata *u, size_t known)
{
	for (size_t i = known; i < u->in_len; i++)
		if (((const uint8_t *)u->in)[i])
			return false;
	return true;
}

int uverbs_udata_out(const struct uverbs_udata *u, struct nic_call *call, const void *src, size_t len)
{
	size_t n = u->out_len < len ? u->out_len : len;

	return n ? nic_call_store(call, u->out, src, n) : 0;
}

uint64_t uverbs_udata_at(const struct uverbs_udata *u, size_t off)
{
	return u->out + off;
}

static LIST_HEAD(, uverbs_file) files = LIST_HEAD_INITIALIZER(files);

int uverbs_open(struct hw_dev *dev, unsigned index, struct uverbs_file **out)
{
	struct uverbs_file *file = calloc(1, sizeof(*file));

	if (!file)
		return -ENOMEM;
	file->dev = dev;
	file->index = index;
	LIST_INIT(&file->live);
	LIST_INIT(&file->channels);
	file->watch = (struct hw_dev_watch){.on_event = uverbs_dev_event, .arg = file};
	hw_dev_watch(dev, &file->watch);
	LIST_INSERT_HEAD(&files, file, all);
	*out = file;
	return 0;
}

void *uverbs_obj_new(struct uverbs_file *file, enum uverbs_type type, size_t size)
{
	struct uverbs_obj *obj;
	uint32_t h = file->table_hint;

	while (h < file->table_len && file->table[h])
		h++;
	if (h == file->table_len) {
		uint32_t len = file->table_len ? 2 * file->table_len : 64;
		struct uverbs_obj **table = realloc(file->table, len * sizeof(*table));

		if (!table)
			return NULL;
		memset(table + file->table_len, 0, (len - file->table_len) * sizeof(*table));
		file->table = table;
		file->table_len = len;
	}
	obj = calloc(1, size);
	if (!obj)
		return NULL;
	obj->file = file;
	obj->type = type;
	obj->handle = h;
	file->table[h] = obj;
	file->table_hint = h + 1;
	return obj;
}

void uverbs_obj_need(struct uverbs_obj *obj, struct uverbs_obj *need)
{
	unsigned i = 0;

	if (!need)
		return;
	while (obj->needs[i])
		i++;
	obj->needs[i] = need;
}

void uverbs_obj_commit(struct uverbs_obj **obj, int (*destroy)(struct uverbs_obj *obj))
{
	(*obj)->destroy = destroy;
	(*obj)->live = true;
	LIST_INSERT_HEAD(&(*obj)->file->live, *obj, in_file);
	for (unsigned i = 0; i < UVERBS_MAX_NEEDS && (*obj)->needs[i]; i++)
		(*obj)->needs[i]->users++;
	*obj = NULL;
}

static void obj_free(struct uverbs_obj *obj)
{
	struct uverbs_file *file = obj->file;

	file->table[obj->handle] = NULL;
	if (obj->handle < file->table_hint)
		file->table_hint = obj->handle;
	free(obj);
}

void uverbs_obj_discard(struct uverbs_obj **obj)
{
	if (*obj)
		obj_free(*obj);
}

struct uverbs_obj *uverbs_obj_any(struct uverbs_file *file, uint64_t handle)
{
	struct uverbs_obj *obj = handle < file->table_len ? file->table[handle] : NULL;

	return obj && obj->live ? obj : NULL;
}

int uverbs_obj_find(struct uverbs_file *file, enum uverbs_type type, uint64_t handle, struct uverbs_obj **out)
{
	struct uverbs_obj *obj = uverbs_obj_any(file, handle);

	if (!obj)
		return -ENOENT;
	if (obj->type != type)
		return -EINVAL;
	*out = obj;
	return 0;
}

int uverbs_obj_destroy(struct uverbs_obj *obj)
{
	int r;

	if (obj->users)
		return -EBUSY;
	r = obj->destroy(obj);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < UVERBS_MAX_NEEDS && obj->needs[i]; i++)
		obj->needs[i]->users--;
	LIST_REMOVE(obj, in_file);
	obj_free(obj);
	return 0;
}

/*
 * Newest first, and again while anything yields, as the kernel does (core/rdma_core.c,
 * uverbs_destroy_ufile_hw): objects made by DEVX may need others unknown here.
 */
static void destroy_all(struct uverbs_file *file)
{
	bool progress = true;

	while (progress) {
		struct uverbs_obj *obj = LIST_FIRST(&file->live);

		progress = false;
		while (obj) {
			struct uverbs_obj *older = LIST_NEXT(obj, in_file);

			if (uverbs_obj_destroy(obj) == 0)
				progress = true;
			obj = older;
		}
	}
}

void uverbs_close(struct uverbs_file *file)
{
	destroy_all(file);
	if (file->time)
		hw_uar_free(file->dev, file->time);
	hw_dev_unwatch(&file->watch);
	LIST_REMOVE(file, all);
	hw_software_put(file->software);
	uverbs_channels_free(file);
	free(file->table);
	free(file);
}

int uverbs_mmap(struct uverbs_file *file, uint64_t offset, uint64_t len, int *fd, uint64_t *fd_offset)
{
	return uverbs_uar_mmap(file, offset, len, fd, fd_offset);
}

int uverbs_set_process(struct uverbs_file *file, pid_t pid, uint32_t think_ns, bool in_turn)
{
	struct hw_software *software;
	struct uverbs_file *other;

	LIST_FOREACH (other, &files, all)
		if (other->process == pid && other->software)
			break;
	software = other ? hw_software_get(other->software) : hw_software_new(think_ns * 1000ull, in_turn);
	hw_software_put(file->software);
	file->process = pid;
	file->software = software;
	return file->software ? 0 : -ENOMEM;
}
