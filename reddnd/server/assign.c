/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/assign.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool assign_asks(const struct catalog *c)
{
	return c->all_devices || c->ndevices > 1;
}

static unsigned find(const struct assignment *a, const char *name)
{
	unsigned i = 0;

	while (i < a->n && strcmp(a->name[i], name) != 0)
		i++;
	return i;
}

static int assign_address(
	const struct catalog *c, unsigned i, const char *name, struct assignment *a, char why[ASSIGN_WHY])
{
	const struct catalog_listen *l = &c->listen[i];
	unsigned device = find(a, name);

	if (!*name)
		snprintf(why, ASSIGN_WHY,
			"\"listen\": %s port %u belongs to no device in particular; "
			"with several devices, give addresses of each",
			l->address, l->port);
	else if (device == a->n && !c->all_devices)
		snprintf(why, ASSIGN_WHY,
			"\"listen\": %s port %u belongs to %s, which is not in the list \"device\"; "
			"add it, or listen on an address of a device that is",
			l->address, l->port, name);
	else if (device == CATALOG_DEVICES_MAX)
		snprintf(why, ASSIGN_WHY, "the addresses of \"listen\" belong to more than %d devices",
			CATALOG_DEVICES_MAX);
	else
		a->of[i] = device;
	if (*why)
		return -EINVAL;
	if (device == a->n)
		snprintf(a->name[a->n++], CATALOG_DEVICE_BYTES, "%s", name);
	return 0;
}

bool assign_has_address(const struct catalog *c, const struct assignment *a, unsigned device)
{
	for (unsigned i = 0; i < c->nlisten; i++)
		if (a->of[i] == device)
			return true;
	return false;
}

static void begin(const struct catalog *c, struct assignment *a)
{
	*a = (struct assignment){.n = assign_asks(c) ? c->ndevices : 1};
	memcpy(a->name, c->devices, sizeof(a->name));
}

int assign_devices(const struct catalog *c, const char belongs[][CATALOG_DEVICE_BYTES], struct assignment *a,
	char why[ASSIGN_WHY])
{
	int r = 0;

	begin(c, a);
	*why = '\0';
	if (!assign_asks(c))
		return 0;
	for (unsigned i = 0; i < c->nlisten && r == 0; i++)
		r = assign_address(c, i, belongs[i], a, why);
	for (unsigned k = 0; k < a->n && r == 0; k++) {
		if (assign_has_address(c, a, k))
			continue;
		snprintf(why, ASSIGN_WHY,
			"no address of \"listen\" belongs to %s, which is in the list \"device\"; "
			"add one, or take it out",
			a->name[k]);
		r = -EINVAL;
	}
	return r;
}

void assign_again(const struct catalog *c, const char belongs[][CATALOG_DEVICE_BYTES], struct assignment *a)
{
	begin(c, a);
	for (unsigned i = 0; assign_asks(c) && i < c->nlisten; i++) {
		char why[ASSIGN_WHY] = "";

		if (assign_address(c, i, belongs[i], a, why) < 0)
			a->of[i] = ASSIGN_MISSING;
	}
}
