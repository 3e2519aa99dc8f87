# SPDX-License-Identifier: BSD-2-Clause
"""A client of Redis whose reads are answered by the NIC of a reddnd server, from a table that follows it (reddn-follow(1)).

    from reddn.redis import Redis                        # in place of: from redis import Redis

    r = Redis("db1", reddn="storage1,storage2", offload="users")
    r.set("alice", "admin")                              # to Redis, as ever
    r.get("alice")                                       # b"admin": from Redis, or from a NIC that knows of the set

It is redis.Redis of redis-py, and RedisCluster is redis.RedisCluster. GET, MGET, EXISTS and STRLEN ask the NIC first, and Redis if its answer is no proof: it has no such
key, which may be of another type, or too long for the table; the answer is from before the last write of this client, or from before
the last answer that it had from Redis about that key, or older than `max_age`; there is none. All other commands, pipelines and
scripts go to Redis alone.

A get of a key of another type returns None where Redis has an error. While Redis cannot be reached, what the table has is
answered.
"""

import contextlib
import errno
import os
import threading
import time
import weakref
from typing import Any, Dict, Iterable, List, Optional, Tuple

import redis

from ._connection import Connection
from ._table import AsOf

_PAUSE = 1.0
"""Seconds in which the NIC is not asked after it could not answer"""

_REFUSED = 30.0
"""And after the server has refused the client"""

_NOTES = 16384
"""Of keys whose hashes are equal modulo this, one answer of Redis is remembered"""

_OWN = ("reddn", "offload", "prefixes", "max_age", "nic_timeout", "token_file")

_UNANSWERED = (errno.ESTALE, errno.EMSGSIZE, errno.EINVAL)
"""Of a key that it cannot have, or an answer that is too old: the next key may have one"""

_FNV, _FNV_PRIME, _ALL = 0xCBF29CE484222325, 0x100000001B3, 2**64 - 1

_GETS = frozenset("GET MGET EXISTS STRLEN".split())

_READS = frozenset(
    """GETRANGE SUBSTR TTL PTTL EXPIRETIME PEXPIRETIME TYPE DUMP BITCOUNT BITPOS GETBIT HGET HMGET HGETALL HEXISTS HKEYS HVALS HLEN HSCAN
    LRANGE LINDEX LLEN LPOS SMEMBERS SISMEMBER SMISMEMBER SCARD SSCAN SRANDMEMBER ZRANGE ZSCORE ZMSCORE ZCARD ZCOUNT ZRANK ZSCAN XRANGE
    XLEN""".split()
)
"""Commands that change no key, and are about the one that follows"""

_OF_NO_KEY = frozenset("PING ECHO TIME INFO PUBLISH".split())


def _name(command: Any) -> str:
    """redis-py takes bytes, too, and text of several words."""
    text = command.decode("latin-1") if isinstance(command, bytes) else str(command)
    return " ".join(text.split()[:1]).upper()


def _fnv(text: bytes) -> int:
    h = _FNV
    for byte in text:
        h = (h ^ byte) * _FNV_PRIME & _ALL
    return h


def _origin(source: int, prefixes: Iterable[bytes]) -> int:
    """What a table states that follows this Redis: protocol/redis-origin.h has the same function."""
    return (source + sum(map(_fnv, prefixes))) & _ALL


def _masters(nodes: str) -> List[Tuple[str, int, List[str]]]:
    """Those that have slots, of CLUSTER NODES: the id, the epoch, and ranges without what moves."""
    lines = [line.split() for line in nodes.splitlines()]
    masters = [(w[0], int(w[6]), [r for r in w[8:] if r[0] != "["]) for w in lines if len(w) > 8 and "master" in w[2].split(",")]
    return [master for master in masters if master[2]]


def _version(masters: List[Tuple[str, int, List[str]]]) -> int:
    """The sum of the epochs of all slots, which grows with each that another master gets."""
    ends = [(epoch, r.split("-")) for _, epoch, ranges in masters for r in ranges]
    return sum(epoch * (int(r[-1]) - int(r[0]) + 1) for epoch, r in ends)


_readers: "weakref.WeakSet[_Reader]" = weakref.WeakSet()


def _forked() -> None:
    """Connections are the parent's. A thread of it may have had the lock, and have noted a part of what it had to: as after a write, Redis has to answer."""
    for reader in _readers:
        reader._state, reader._idle = threading.Lock(), []
        reader._count_write()


os.register_at_fork(after_in_child=_forked)


class _Reader:
    """What answers of the NIC prove, for both clients: _plain() and _ask_source() ask Redis."""

    _of_cluster = False  # a table that follows others may be ahead of what this one knows

    def _begin(self, own: Dict[str, Any]) -> None:
        if isinstance(own["prefixes"], (str, bytes)):
            raise TypeError(f"prefixes is a tuple of prefixes, not {own['prefixes']!r}")
        self._own = own
        self._state = threading.Lock()
        self._idle: List[Connection] = []  # each is used by one thread at a time
        self._closed = False
        _readers.add(self)
        self._silent_until = 0.0
        self._written = self._known = 0  # commands that may have changed something; those of them that are before _since
        self._since = 0  # us of Redis' clock
        # keys that Redis was asked for, hashes of the answers (0: not known), the same of them, and when that was noted
        self._notes: Dict[int, Tuple[bytes, int, int, int]] = {}
        self._turn = 0  # how often something was noted
        self._origins: Tuple[int, ...] = ()  # which Redis it is, as its tables state it; none: it does not say
        self._elsewhere = False  # in another database, perhaps
        self._outdated = False  # who has which slots of a cluster
        self.nic_answers = self.source_answers = 0
        self.nic_error = ""

    def _begun(self, encoder: Any) -> None:
        self._encoder = encoder
        self._prefixes = tuple(encoder.encode(p) for p in self._own["prefixes"])

    def _plain(self, *words: Any, **options: Any) -> Any:
        raise NotImplementedError

    def _ask_source(self, keys: List[bytes], words: Tuple[Any, ...], options: Any, which: bool) -> Any:
        """As _plain(); and learns from when on a table has what this answer has, and with `which`, what Redis that is: without
        that, Redis has to answer again after a write."""
        raise NotImplementedError

    # ---- commands ---------------------------------------------------------------------------------

    def execute_command(self, *words: Any, **options: Any) -> Any:
        name = _name(words[0])
        if len(words) > 1 and name in _GETS:
            keys = [self._encoder.encode(key) for key in words[1:]]
            found = self._ask(name, keys, words)
            return self._ask_source(keys, words, options, True) if found is None else found[0]
        if len(words) > 1 and name in _READS:
            return self._ask_source([self._encoder.encode(words[1])], words, options, False)
        self._notice(name)
        try:
            return self._plain(*words, **options)
        finally:
            if name not in _OF_NO_KEY:
                self._count_write()

    def _close(self) -> None:
        with self._state:
            idle, self._idle, self._closed = self._idle, [], True
        for connection in idle:
            connection.close()

    # ---- Redis ------------------------------------------------------------------------------------

    def _notice(self, name: str) -> None:
        if name in ("SELECT", "RESET"):
            self._elsewhere = True

    def _count_write(self) -> None:
        with self._state:
            self._written += 1

    def _believe(self, origins: Tuple[int, ...]) -> bool:
        """True: another one than before. What was read from that proves nothing about this one: as after a write, Redis has to answer."""
        with self._state:
            if origins == self._origins:
                return False
            self._origins = origins
            self._written += 1
            self._silent_until = 0.0
            return True

    def _hash(self, words: Tuple[Any, ...], answer: Any) -> int:
        return hash((*map(self._encoder.encode, words), repr(answer)))

    def _note(self, keys: List[bytes], answer: int, written: int, us: int, begun: int, since: int = 0) -> None:
        """`begun`: _turn when Redis was asked. If another thread's answer was noted since, none knows which is the later one.
        `since`: when all was asked for the time that may have been written to, if it is later."""
        with self._state:
            if written > self._known:
                self._known, self._since = written, max(self._since, us, since)
            self._turn += 1
            for key in keys:
                _, _, before, turn = self._notes.get(hash(key) % _NOTES, (key, 0, 0, 0))
                self._notes[hash(key) % _NOTES] = key, answer if us > before and begun >= turn else 0, max(us, before), self._turn

    def _is_proof(self, keys: List[bytes], as_of: AsOf, answer: int) -> bool:
        """It is from later than the last answer of Redis about each key, or the same one. Else a key that is always asked for would
        never have a table that is new enough."""
        with self._state:
            notes = [(key, *self._notes.get(hash(key) % _NOTES, (key, answer, 0, 0))) for key in keys]
            return self._known == self._written and as_of.source > self._since and all(as_of.source > us or (noted, last) == (key, answer) for key, noted, last, us, _ in notes)

    # ---- the NIC ----------------------------------------------------------------------------------

    def _ask(self, name: str, keys: List[bytes], words: Tuple[Any, ...]) -> Optional[Tuple[Any]]:
        """What the command returns; None: the NIC cannot know."""
        if self._elsewhere or self._outdated or not self._origins or self._known != self._written or any(not key or (self._prefixes and not key.startswith(self._prefixes)) for key in keys):
            return None
        got = self._get(keys)
        if got is None:
            return None
        values, as_of = got
        # A key that is missing in the table may be one of another type: GET and MGET take that for missing, others do not
        if not as_of.follows or (None in values and (name in ("EXISTS", "STRLEN") or not as_of.complete)):
            return None
        decoded = [None if value is None else self._encoder.decode(value) for value in values]
        answer = {"EXISTS": len(values), "STRLEN": len(values[0] or b""), "MGET": decoded, "GET": decoded[0]}[name]
        if not self._is_proof(keys, as_of, self._hash(words, answer)):
            return None
        with self._state:
            self.nic_answers += 1
        return (answer,)

    def _get(self, keys: List[bytes]) -> Optional[Tuple[List[Optional[bytes]], AsOf]]:
        connection = self._take()
        if connection is None:
            return None
        try:
            values = connection.mget(keys)
            as_of, self.nic_error = connection.as_of, ""
        except OSError as e:
            if e.errno not in _UNANSWERED:
                self._fail(e)
            values, as_of = [], None
        except BaseException:
            connection.close()
            raise
        self._give_back(connection)
        if as_of is not None and as_of.origin not in self._origins:
            self._outdated = self._of_cluster
            self._fail(OSError(errno.ESTALE, "the table does not follow the Redis, the database and the prefixes of this handle"))
            return None
        return None if as_of is None else (values, as_of)

    def _give_back(self, connection: Connection) -> None:
        with self._state:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def _take(self) -> Optional[Connection]:
        with self._state:
            if time.monotonic() < self._silent_until:
                return None
            if self._idle:
                return self._idle.pop()
        try:
            own = self._own
            return Connection(own["reddn"], own["offload"], max_age=own["max_age"], timeout=own["nic_timeout"], token_file=own["token_file"], shards=own.get("shards"))
        except OSError as e:
            self._fail(e)
            return None

    def _fail(self, error: OSError) -> None:
        self._silent_until = time.monotonic() + (_REFUSED if error.errno in (errno.EACCES, errno.EPERM, errno.ENOENT) else _PAUSE)
        self.nic_error = str(error)


class Redis(_Reader, redis.Redis):
    """As redis.Redis, with a reddnd server. Any number of threads may use it, as the other one.

    `reddn`: the hosts of the server, as those of reddn.Connection, `offload`: its gets of the table. `prefixes`: exactly
    those of the follower, if it follows only some keys. `max_age`: seconds that an answer may be older than Redis' own. `nic_timeout`: seconds until
    Redis is asked; a NIC that has not answered is not asked again for a second, one whose server refuses the client for half a minute.
    `token_file`: as of reddn.Connection. After SELECT, Redis alone is asked.

    For a cluster there is RedisCluster: this class raises MovedError and AskError as redis.Redis does, and the table of a cluster is not believed.

    A table that follows another Redis, a replica of it included, another database or other prefixes is not believed: GET, MGET,
    EXISTS and STRLEN also ask which process that is, by INFO, when Redis answers them.

    `nic_answers` and `source_answers` count the reads that one and the other has answered. `nic_error`: why the NIC could not be asked
    the last time, "" if it could.
    """

    def __init__(
        self,
        *arguments: Any,
        reddn: str,
        offload: str,
        prefixes: Tuple[str, ...] = (),
        max_age: Optional[float] = None,
        nic_timeout: float = 0.1,
        token_file: Optional[str] = None,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._begin({"reddn": reddn, "offload": offload, "prefixes": prefixes, "max_age": max_age, "nic_timeout": nic_timeout, "token_file": token_file})
        self._begun(self.connection_pool.get_encoder())
        self._run_id = ""  # of the Redis that has answered

    @classmethod
    def from_url(cls, url: str, **options: Any) -> "Redis":
        own = {name: options.pop(name) for name in _OWN if name in options}
        return cls(connection_pool=redis.ConnectionPool.from_url(url, **options), **own)

    def client(self) -> "Redis":
        return type(self)(connection_pool=self.connection_pool, single_connection_client=True, **self._own)

    def pipeline(self, transaction: bool = True, shard_hint: Any = None) -> Any:
        return _Pipeline(self, self.connection_pool, self.response_callbacks, transaction, shard_hint)

    def close(self) -> None:
        self._close()
        super().close()

    def _plain(self, *words: Any, **options: Any) -> Any:
        return redis.Redis.execute_command(self, *words, **options)

    def _ask_source(self, keys: List[bytes], words: Tuple[Any, ...], options: Any, which: bool) -> Any:
        questions = (("TIME",), ("INFO", "server")) if which else (("TIME",),)
        with self._state:
            self.source_answers += 1
            written, begun = self._written, self._turn
        if self.connection is not None:  # a pipeline has another one
            answer, after = self._plain(*words, **options), [self._try(*question) for question in questions]
        else:
            all_of = redis.Redis.pipeline(self, transaction=False)
            all_of.execute_command(*words, **options)
            for question in questions:
                all_of.execute_command(*question)
            answer, *after = all_of.execute(raise_on_error=False)
        if which:
            written += self._know(after[1])
        if not isinstance(after[0], Exception):
            self._note(keys, self._hash(words, answer), written if which else 0, after[0][0] * 1000000 + after[0][1], begun)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _try(self, *words: Any) -> Any:
        try:
            return self._plain(*words)
        except redis.ResponseError as e:
            return e

    def _know(self, server: Any) -> bool:
        """Of INFO server. True: it is another process than before."""
        run_id = str(server.get("run_id", "")) if isinstance(server, dict) else ""
        if not run_id:
            self.nic_error = f"Redis does not say which one it is, by INFO server: {server}"
        if run_id == self._run_id:
            return False
        self._run_id, database = run_id, int(self.connection_pool.connection_kwargs.get("db") or 0)
        return self._believe((_origin(_fnv(b"%s/%d" % (run_id.encode(), database)), self._prefixes),) if run_id else ())


class RedisCluster(_Reader, redis.RedisCluster):
    """As redis.RedisCluster, with a reddnd server, and what Redis has of its own. The table follows the same cluster; with semicolons in `reddn`,
    each set of hosts has tables of some slots ("redis+cluster://...?slots=" of reddn-follow(1)).

    The user needs the right to CLUSTER NODES, which is asked for at first, after redirects, and when a table does not follow the same
    masters and slots; a cluster that does not answer that is asked again after a second, and `nic_error` has the reason. The first GET, MGET, EXISTS or STRLEN after a write asks each master for its time: so this client reads its own writes, though
    each master has its own clock. Keys of several slots are for the cluster. libreddn-redis(3) has what is by the clocks alone. A master
    that comes back without its data is noticed when the follower of the table has noticed.
    """

    _of_cluster = True

    def __init__(
        self,
        *arguments: Any,
        reddn: str,
        offload: str,
        prefixes: Tuple[str, ...] = (),
        max_age: Optional[float] = None,
        nic_timeout: float = 0.1,
        token_file: Optional[str] = None,
        **options: Any,
    ) -> None:
        own = {"reddn": reddn, "offload": offload, "prefixes": prefixes, "max_age": max_age, "nic_timeout": nic_timeout, "token_file": token_file}
        self._begin({**own, "shards": "redis" if ";" in reddn else None})
        self._outdated = True
        self._version = 0
        self._learn_at = 0.0  # not before: the cluster could not be asked
        super().__init__(*arguments, **options)
        self._begun(self.get_encoder())

    def __deepcopy__(self, memo: Any) -> "RedisCluster":
        """redis-py 4 copies the options of connections, one of which is a method of the client."""
        return self

    def pipeline(self, transaction: Any = None, shard_hint: Any = None) -> Any:
        pipeline = super().pipeline(transaction, shard_hint)
        execute = pipeline.execute

        def counted(*arguments: Any, **options: Any) -> Any:
            try:
                return execute(*arguments, **options)
            finally:
                self._count_write()

        pipeline.execute = counted
        return pipeline

    def close(self) -> None:
        self._close()
        super().close()

    def _should_reinitialized(self) -> bool:
        """redis-py has been redirected by MOVED."""
        self._outdated = True
        return bool(super()._should_reinitialized())

    def _plain(self, *words: Any, **options: Any) -> Any:
        return redis.RedisCluster.execute_command(self, *words, **options)

    def _ask(self, name: str, keys: List[bytes], words: Tuple[Any, ...]) -> Optional[Tuple[Any]]:
        return super()._ask(name, keys, words) if len({self.keyslot(key) for key in keys}) == 1 else None

    def _ask_source(self, keys: List[bytes], words: Tuple[Any, ...], options: Any, which: bool) -> Any:
        with self._state:
            self.source_answers += 1
            written, begun = self._written, self._turn
        answer: Any
        try:
            answer = self._plain(*words, **options)
        except redis.ResponseError as e:
            answer = e
        try:
            if time.monotonic() < self._learn_at:
                self._count_write()
            else:
                self._learn(keys, self._hash(words, answer), written, begun, which)
        except (redis.RedisError, redis.exceptions.RedisClusterException, ValueError) as e:
            self.nic_error, self._outdated, self._learn_at = str(e), True, time.monotonic() + _PAUSE
            self._count_write()
            if not isinstance(e, (redis.ResponseError, ValueError)):  # a master that has gone, perhaps
                with contextlib.suppress(redis.RedisError, redis.exceptions.RedisClusterException):
                    self.nodes_manager.initialize()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _learn(self, keys: List[bytes], answer: int, written: int, begun: int, which: bool) -> None:
        owner, since = self.get_node_from_key(keys[0]), 0
        if which and self._outdated:
            written += self._know(self._ask_node(owner, "CLUSTER", "NODES"))
        if which and written > self._known:
            since = max(map(self._time, self.get_primaries()))
        self._note(keys, answer, written if which else 0, self._time(owner), begun, since)

    def _ask_node(self, node: Any, *words: Any) -> Any:
        return self.get_redis_connection(node).execute_command(*words)

    def _time(self, node: Any) -> int:
        seconds, us = self._ask_node(node, "TIME")
        return int(seconds * 1000000 + us)

    def _know(self, nodes: Any) -> bool:
        """Of CLUSTER NODES. True: other masters, or other slots of them. What a node has that has not heard of that yet is not believed."""
        masters = _masters(nodes.decode() if isinstance(nodes, bytes) else nodes)
        self._outdated = False
        if _version(masters) < self._version:
            return False
        self._version = _version(masters)
        origin = _origin(sum(_fnv(" ".join([i, str(epoch), *ranges]).encode()) for i, epoch, ranges in masters), self._prefixes)
        # only with shards is an answer of one that has the slot
        return self._believe((origin, origin ^ _ALL) if self._own["shards"] else (origin,))


class _Pipeline(redis.client.Pipeline):
    def __init__(self, of: Redis, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._of = of

    def execute_command(self, *words: Any, **options: Any) -> Any:
        self._of._notice(_name(words[0]))
        return super().execute_command(*words, **options)

    def execute(self, raise_on_error: bool = True) -> Any:
        try:
            return super().execute(raise_on_error)
        finally:
            self._of._count_write()

    def immediate_execute_command(self, *words: Any, **options: Any) -> Any:
        try:
            return super().immediate_execute_command(*words, **options)
        finally:
            self._of._count_write()
