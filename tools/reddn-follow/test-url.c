/* SPDX-License-Identifier: BSD-2-Clause */
#include "protocol/redis-slots.h"
#include "tools/reddn-follow/url.h"
#include "util/array.h"

#include <errno.h>
#include <string.h>

#include "tests/lib/cmocka.h"

static void test_right(void **state)
{
	static const struct {
		const char *text, *name, *user, *password;
	} urls[] = {
		{"redis://h", "redis://h:6379/0", "", ""},
		{"redis://h/", "redis://h:6379/0", "", ""},
		{"redis://:s%40%2f@h:1/7", "redis://h:1/7", "", "s@/"},
		{"redis://u:@[::1]:2", "redis://[::1]:2/0", "u", ""},
		{"redis://u:p:q@h", "redis://h:6379/0", "u", "p:q"},
		{"redis://u:p/q@r@h", "redis://h:6379/0", "u", "p/q@r"},
		{"unix://u:p/q@/s", "unix:///s?db=0", "u", "p/q"},
		{"unix:///run/redis.sock", "unix:///run/redis.sock?db=0", "", ""},
		{"unix://u:p@/run/a@b?db=3", "unix:///run/a@b?db=3", "u", "p"},
	};
	struct url url;
	char err[256];

	for (size_t i = 0; i < COUNT(urls); i++) {
		assert_int_equal(url_parse(&url, urls[i].text, err, sizeof(err)), 0);
		assert_string_equal(url_name(&url), urls[i].name);
		assert_string_equal(url.user, urls[i].user);
		assert_string_equal(url.password, urls[i].password);
	}
}

static void test_cluster(void **state)
{
	static const char *const wrong[] = {"redis+cluster://", "redis+cluster://a,", "redis+cluster://a,b/1",
		"redis+cluster://a:0", "redis+cluster://u@a",
		"redis+cluster://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "redis+cluster://a?",
		"redis+cluster://a?slots=", "redis+cluster://a?slots=1", "redis+cluster://a?slots=1-",
		"redis+cluster://a?slots=-1", "redis+cluster://a?slots=2-1",
		"redis+cluster://a?slots=0-16384", "redis+cluster://a?slots=0-1,b",
		"redis+cluster://?slots=0-1"};
	struct url seeds[URL_SEEDS];
	char err[256];
	unsigned n;
	uint64_t slots;

	assert_int_equal(
		url_parse_cluster(seeds, &n, &slots, "redis+cluster://u:p%2c,q@a,[::1]:7", err, sizeof(err)),
		0);
	assert_int_equal(n, 2);
	assert_int_equal(slots, REDIS_SLOTS_ALL);
	assert_string_equal(url_name(&seeds[0]), "redis://a:6379/0");
	assert_string_equal(url_name(&seeds[1]), "redis://[::1]:7/0");
	assert_string_equal(seeds[1].password, "p,,q");
	for (size_t i = 0; i < COUNT(wrong); i++)
		assert_int_equal(url_parse_cluster(seeds, &n, &slots, wrong[i], err, sizeof(err)), -EINVAL);
	assert_int_equal(url_parse_cluster(seeds, &n, &slots, "redis+cluster://u:?,@a,b/?slots=0-5460", err,
				 sizeof(err)),
		0);
	assert_int_equal(n, 2);
	assert_string_equal(url_name(&seeds[1]), "redis://b:6379/0");
	assert_int_equal(slots, redis_slots(0, 5461));
	assert_int_equal(
		url_parse_cluster(seeds, &n, &slots, "redis+cluster://a?slots=16383-16383", err, sizeof(err)),
		0);
	assert_int_equal(slots, redis_slots(16383, 1));
}

static void test_sentinel(void **state)
{
	static const char *const wrong[] = {"redis+sentinel://a,b", "redis+sentinel://a/",
		"redis+sentinel://a//1", "redis+sentinel:///users", "redis+sentinel://a,/users",
		"redis+sentinel://u@a/users", "redis+sentinel://a/users/x"};
	struct sentinel_url url;
	char err[256];

	assert_int_equal(
		url_parse_sentinel(&url, "redis+sentinel://u:p/q@a,[::1]:7/users/3", err, sizeof(err)), 0);
	assert_int_equal(url.n, 2);
	assert_string_equal(url_name(&url.sentinel[0]), "redis://a:26379/0");
	assert_string_equal(url_name(&url.sentinel[1]), "redis://[::1]:7/0");
	assert_string_equal(url.name, "users");
	assert_string_equal(url.master.user, "u");
	assert_string_equal(url.master.password, "p/q");
	assert_int_equal(url.master.db, 3);
	for (size_t i = 0; i < COUNT(wrong); i++)
		assert_int_equal(url_parse_sentinel(&url, wrong[i], err, sizeof(err)), -EINVAL);
}

static void test_postgres(void **state)
{
	static const char *const wrong[] = {"postgresql://h/db", "postgresql://h/db?table=t&key=k",
		"postgresql://h/db?table=t&key=k&value=%0",
		"postgresql://u:topsecret@h/db?table=t&key=k&value=v&hots=x"};
	struct postgres_url url;
	char err[256];

	assert_int_equal(
		postgres_url_parse(&url,
			"postgresql://u:topsecret@h:1/db?sslmode=require&table=a%20b&key=k&value=v&host=/run",
			err, sizeof(err)),
		0);
	assert_string_equal(url.conninfo, "postgresql://u:topsecret@h:1/db?sslmode=require&host=/run");
	assert_string_equal(url.name, "postgresql://h:1/db?table=a b");
	assert_string_equal(url.table, "a b");
	assert_string_equal(url.publication, "reddn");
	for (size_t i = 0; i < COUNT(wrong); i++) {
		assert_int_equal(postgres_url_parse(&url, wrong[i], err, sizeof(err)), -EINVAL);
		assert_null(strstr(err, "topsecret"));
	}
}

static void test_wrong(void **state)
{
	static const char *const urls[][2] = {
		{"", "a source is"},
		{"rediss://h", "a source is"},
		{"redis://", "is not HOST"},
		{"redis://h:65536", "is not HOST"},
		{"redis://h/-1", "no number of a database"},
		{"redis://h/0/", "no number of a database"},
		{"redis://u@h", "USER:PASSWORD"},
		{"redis://u:%00@h", "USER:PASSWORD"},
		{"redis://u:%4@h", "USER:PASSWORD"},
		{"unix://run/redis.sock", "absolute path"},
		{"unix:///s?db=", "no number of a database"},
		{"unix:///s?x", "only ?db=N"},
	};
	char err[256], path[300] = "unix:///", user[300] = "redis://";
	struct url url;

	for (size_t i = 0; i < COUNT(urls); i++) {
		assert_int_equal(url_parse(&url, urls[i][0], err, sizeof(err)), -EINVAL);
		assert_non_null(strstr(err, urls[i][1]));
	}
	memset(path + 8, 'p', 107);
	assert_int_equal(url_parse(&url, path, err, sizeof(err)), -EINVAL);
	path[8 + 106] = '\0';
	assert_int_equal(url_parse(&url, path, err, sizeof(err)), 0);
	memset(user + 8, 'u', 128);
	strcpy(user + 8 + 128, ":p@h");
	assert_int_equal(url_parse(&url, user, err, sizeof(err)), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_right),
		cmocka_unit_test(test_cluster),
		cmocka_unit_test(test_sentinel),
		cmocka_unit_test(test_postgres),
		cmocka_unit_test(test_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
