/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/mc/facts.h"

#include "protocol/cache-hash.h"

void mc_facts_take(struct mc_facts *f, const struct mc_lines *lines, bool proved, uint64_t now_ms)
{
	bool next = !f->known || f->lines.live.generation != lines->live.generation;
	int64_t ahead_ms = (int64_t)(lines->served.clock * 1000) - (int64_t)now_ms;

	f->known = proved && lines->served.hash < CACHE_HASHES;
	if (!f->known)
		return;
	/* reddnd's clock is whole seconds, and late; so it is ahead by as much as it ever was */
	if (next || ahead_ms > f->ahead_ms)
		f->ahead_ms = ahead_ms;
	if (next)
		f->newest = 0;
	f->lines = *lines;
}

void mc_facts_saw(struct mc_facts *f, uint64_t cas)
{
	if (cas > f->newest)
		f->newest = cas;
}

uint64_t mc_facts_clock(const struct mc_facts *f, uint64_t now_ms)
{
	return (uint64_t)((int64_t)now_ms + f->ahead_ms) / 1000;
}

uint64_t mc_facts_age(const struct mc_facts *f, uint64_t now_ms)
{
	int64_t age_ms = (int64_t)now_ms + f->ahead_ms - (int64_t)(f->lines.served.asked * 1000);

	return f->lines.served.died || age_ms < 0 ? 0 : (uint64_t)age_ms;
}

bool mc_facts_place(
	const struct mc_facts *f, unsigned i, const char *key, size_t key_len, struct mc_place *place)
{
	const struct reddn_cache_live *live = &f->lines.live;
	uint64_t tables = f->known ? live->tables : 0;
	unsigned place_power, power;

	for (; i && tables; i--)
		tables &= tables - 1;
	if (!tables)
		return false;
	place_power = (unsigned)__builtin_ctzll(tables);
	power = place_power ? place_power : (unsigned)live->power_min;
	if (power > 28)
		return false; /* offsets have four bytes */
	*place = (struct mc_place){
		.generation = live->generation,
		.table = 1ull << place_power,
		.at = (uint32_t)reddn_cache_table(0, place_power) +
		      8 * (cache_hash((enum cache_hash)f->lines.served.hash, key, key_len) &
				  ((1u << power) - 1)),
	};
	return true;
}

bool mc_place_holds(const struct mc_place *place, const struct mc_lines *lines)
{
	return place->generation == lines->live.generation && (place->table & lines->live.tables);
}
