# SPDX-License-Identifier: BSD-2-Clause
"""Connections to offloads."""

import errno
import functools
import itertools
import os
import threading
import time
from enum import IntEnum
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, NoReturn, Optional, Set, Tuple, Union

from ._lib import ERR_BYTES, Handle, Key, fail, ffi, lib, to_bytes, to_keys, to_name, to_str, to_value
from ._steps import Ask, Steps, T, append_steps
from ._table import AsOf, to_as_of

Value = Union[int, Key]
Reply = Dict[str, Union[int, bytes]]
"""A reply: the fields of the program by name; numbers as int, others as bytes."""


class Argument(NamedTuple):
    """What an offload takes: `kind` is "number", "bytes" or "offset" (a number: bytes in a region of the server)."""

    name: str
    kind: str
    bytes: int


class Field(NamedTuple):
    """A part of its reply. `kind`: "be" or "le", a number of that byte order; "bytes"; "max", at most `bytes` of them."""

    name: str
    kind: str
    offset: int
    bytes: int


class Host(NamedTuple):
    """One of the hosts of a connection. `state`: "in use"; "standby", there is a session that is ready to take its place; "none"."""

    name: str
    port: int
    state: str
    sessions: int
    sent: int
    late: int


class Versioned(NamedTuple):
    """What a key of a store has. `value` is None if it is absent, and `version` 0, or that of a value that has expired and is still there."""

    value: Optional[bytes]
    version: int


class Conflict(Exception):
    """A put or a delete with `if_version` has done nothing: the key has `version`, or 0, it is absent."""

    def __init__(self, version: int) -> None:
        super().__init__(f"the key has version {version}" if version else "the key is absent")
        self.version = version


class End(IntEnum):
    """Why a server ended a session; later servers may know other reasons."""

    UNKNOWN = 0
    FAILED = 1
    PROTOCOL = 2
    UNREACHABLE = 3
    BUDGET = 4
    OPERATOR = 5
    SHUTDOWN = 6
    CLIENT = 7
    IDLE = 8


_ARGUMENT_KINDS = ("number", "bytes", "offset")
_FIELD_KINDS = ("be", "le", "bytes", "max")
_HOST_STATES = ("none", "in use", "standby")
_POLICIES = ("first", "spread")
_SHARDS = (None, "redis")
_TIMEOUT_MAX = 2147483
"""Seconds whose milliseconds are an int of C"""


_SLICE_MS = 100
"""A wait of C, which no signal ends: Python handles signals in between"""


def _apart(call: Callable[[], Any], abandoned: Callable[[int], Any], keep: Any) -> int:
    """A call of C that waits for the server, in a thread if signals have to be handled meanwhile: one that raises leaves it to end by
    itself, with what it points to, `keep`; `abandoned` gets its result then."""
    if threading.current_thread() is not threading.main_thread():
        return int(call())
    results: List[int] = []
    lock, left = threading.Lock(), False

    def run(_keep: Any) -> None:
        result = int(call())
        with lock:
            results.append(result)
            if left:
                abandoned(result)

    thread = threading.Thread(target=run, args=(keep,), daemon=True)
    try:
        thread.start()  # waits until it runs
        thread.join()
    except BaseException:
        with lock:
            left = True
            if results:
                abandoned(results[0])
        raise
    return results[0]


def take_word(result: Any) -> int:
    return int(lib.reddn_word(ffi.addressof(result)))


def take_value(result: Any) -> Optional[bytes]:
    return bytes(ffi.buffer(result.value, result.length)) if result.status == 0 else None


def take_exists(result: Any) -> bool:
    return bool(result.status == 0)


def take_versioned(result: Any) -> Versioned:
    return Versioned(take_value(result), int(result.version))


def take_change(result: Any) -> Tuple[int, int]:
    return int(result.status), int(result.version)


def judge_change(change: Tuple[int, int]) -> bool:
    """Of a put or delete that took place. False: the key was absent"""
    status, version = change
    if status == lib.REDDN_CONFLICT:
        raise Conflict(version)
    return status == 0


def to_put(handle: Any, key: Key, value: Key, if_version: Optional[int], ttl: Optional[float]) -> Callable[[int], int]:
    """A put, by its cookie. A buffer is read when that is called, or later, if it is registered."""
    k, v = to_bytes(key), to_value(value)
    if ttl is not None:
        if not 0 < ttl < 2**40 or if_version is not None:
            raise ValueError(f"ttl={ttl!r}: seconds, more than 0, and not with if_version")
        return functools.partial(lib.reddn_put_ttl_submit, handle, k, len(k), v, len(v), max(1, round(ttl * 1000)))
    if if_version is None:
        return functools.partial(lib.reddn_put_submit, handle, k, len(k), v, len(v))
    return functools.partial(lib.reddn_put_if_submit, handle, k, len(k), v, len(v), if_version)


def to_delete(handle: Any, key: Key, if_version: Optional[int]) -> Callable[[int], int]:
    k = to_bytes(key)
    if if_version is None:
        return functools.partial(lib.reddn_delete_submit, handle, k, len(k))
    return functools.partial(lib.reddn_delete_if_submit, handle, k, len(k), if_version)


class Connection(Handle):
    """A connection to one offload of a reddnd server.

    >>> with Connection("storage1", "users") as users:
    ...     users.get("alice")
    b'admin'

    One thread at a time uses a Connection, and no handler of a signal that comes while it does: RuntimeError. One that raises closes the
    Connection if it comes while the server is asked for the arguments of call() or for an end reason. Close it, or use it as a context manager. A child of fork() opens its own; close()
    of the parent's does nothing there.

    Errors are OSError with the errno that reddn.h documents, and the server's words if it had any: FileNotFoundError, the
    server has no such offload; PermissionError, the client or its token is not allowed; TimeoutError.

    It outlives its session: when that is lost, as when the server starts again or has another table, the library makes the
    next, and asks again. Of several hosts another one is asked at once. BlockingIOError (EINPROGRESS): a call was lost, and the server may have executed it; see `repeatable`.
    `end_reason()` returns why the last session was lost. With `reconnect=False` it is lost with its session, by
    ConnectionResetError and others.
    """

    def __init__(
        self,
        host: str,
        offload: str,
        *,
        port: int = 0,
        depth: int = 0,
        connections: int = 0,
        timeout: float = 5.0,
        token_file: Optional[str] = None,
        reconnect: bool = True,
        repeatable: bool = False,
        policy: str = "first",
        shards: Optional[str] = None,
        max_age: Optional[float] = None,
        into: bool = False,
    ) -> None:
        """Connects. `host`: name or address of an RDMA interface of the server, also as HOST:PORT. Or several that offer the same, with
        commas between them; `policy`: ask "first" the first one, or any ("spread"). `port` of hosts without one: 7471 if 0.
        With `shards` "redis", several such sets, with semicolons between them, each with the tables of some slots of a cluster of Redis.

        `depth`: largest number of outstanding requests (16), over `connections` queue pairs (1). `timeout`: seconds, more than 0, of the connect and of each call.
        `token_file`: with the key of the access tokens, if the server requires them.
        `max_age`: seconds, how old an answer of a table may be that follows a source: OSError (ESTALE) if no host has a newer one.
        `reconnect`: make another session when one is lost. `repeatable`: calls may be executed twice, so ask again those that are lost; not for cas() and faa().
        `into`: the offload is one of hash-into, and values go to registered memory: get_into().
        """
        if not 0 < timeout <= _TIMEOUT_MAX:
            raise ValueError(f"timeout={timeout!r}: seconds, more than 0 and at most {_TIMEOUT_MAX}")
        for name, number in (("port", port), ("depth", depth), ("connections", connections)):
            if not 0 <= number <= 65535:
                raise ValueError(f"{name}={number}: a number from 0 to 65535")
        if max_age is not None and not 0.001 <= max_age <= _TIMEOUT_MAX:
            raise ValueError(f"max_age={max_age!r}: seconds, at least 0.001 and at most {_TIMEOUT_MAX}")
        if policy not in _POLICIES:
            raise ValueError(f"policy={policy!r}: one of {', '.join(_POLICIES)}")
        if shards not in _SHARDS:
            raise ValueError(f"shards={shards!r}: None or 'redis'")
        keep = [to_name("host", host), to_name("offload", offload)]
        options = ffi.new("struct reddn_options *", {"host": keep[0], "offload": keep[1]})
        options.port, options.depth, options.connections = port, depth, connections
        options.flags = (
            (0 if reconnect else lib.REDDN_NO_RECONNECT) | (lib.REDDN_REPEATABLE if repeatable else 0) | (lib.REDDN_INTO if into else 0)
        )
        options.policy, options.shards = _POLICIES.index(policy), _SHARDS.index(shards)
        options.timeout_ms = max(1, round(timeout * 1000))
        options.max_age_ms = 0 if max_age is None else int(max_age * 1000)
        if token_file is not None:
            keep.append(to_name("token_file", os.fsencode(token_file)))
            options.token_file = keep[2]
        out, err = ffi.new("struct reddn **"), ffi.new("char[]", ERR_BYTES)
        self.close()
        self._in_use = threading.Lock()
        self._memory: List[Any] = []  # what is registered
        self._timeout, self._reconnect = timeout, reconnect
        result = _apart(lambda: lib.reddn_connect(out, options, err, ERR_BYTES), lambda r: r == 0 and lib.reddn_close(out[0]), keep)
        if result < 0:
            fail(result, to_str(err))
        self._open(out[0])
        self._info = ffi.new("struct reddn_info *")
        lib.reddn_get_info(out[0], self._info)
        self._arguments: List[Argument] = []
        self._fields: List[Field] = []
        self._described: Optional[int] = None  # the session whose program these are of, as reconnects counts them
        self._as_of: Optional[AsOf] = None
        self._results = ffi.new("struct reddn_result[]", self._info.depth)
        self._cookie = 0  # of the next request: results with a smaller one are of calls that an exception ended

    def _alone(self) -> Any:
        """For a with statement around a call, whose results another one would take: a signal comes before it, or is refused."""
        self._handle()
        if self._in_use.locked():
            raise RuntimeError("the connection is in use: another call of it has not returned, in this thread or another one")
        return self._in_use

    # ---- gets -------------------------------------------------------------------------------------

    def get(self, key: Key) -> Optional[bytes]:
        """The value of a key of a table; None: the key was absent at some moment of the call."""
        return self.mget((key,))[0]

    def get_versioned(self, key: Key) -> Versioned:
        """The same of a key of a store, and the version of its value, which put() and delete() may expect."""
        with self._alone():
            found: Versioned = self._many((key,), lambda: 1, self._submit_gets, take_versioned)[0]
        return found

    def mget(self, keys: Iterable[Key]) -> List[Optional[bytes]]:
        """The values of many keys, in their order; None for each that is absent. As many as the offload takes go with one request."""
        with self._alone():
            return self._mget(keys)

    def _mget(self, keys: Iterable[Key]) -> List[Optional[bytes]]:
        return self._many(keys, lambda: int(self._info.keys), self._submit_gets, take_value)

    def _many(self, keys: Iterable[Key], most: Callable[[], int], submit: Callable[[List[bytes], int], int], take: Callable[[Any], Any]) -> List[Any]:
        """What `take` makes of the result of each key. As many as a request has, `most`, are submitted, and their cookies count from one on."""
        values: List[Any] = []
        errors: List[int] = []
        self._as_of = None
        waiting, base = 0, self._first_cookie()
        left = iter(keys)
        while part := [to_bytes(key) for key in itertools.islice(left, max(1, most()))]:
            values += [None] * len(part)
            self._cookie += len(part)
            while not self._has_room(submit(part, self._cookie - len(part))):
                waiting -= self._take(base, values, errors, take)
            waiting += len(part)
        while waiting:
            waiting -= self._take(base, values, errors, take)
        if errors:
            self._lost(errors[0])
        return values

    def _first_cookie(self) -> int:
        """Gives back the results of a call that an exception ended, and takes steps to the next session if there is none."""
        lib.reddn_poll(self._handle(), self._results, len(self._results))
        lib.reddn_release(self._handle())
        lib.reddn_get_info(self._handle(), self._info)
        return self._cookie

    def _submit_gets(self, keys: List[bytes], cookie: int) -> int:
        if len(keys) == 1:
            return int(lib.reddn_get_submit(self._handle(), keys[0], len(keys[0]), cookie))
        several, keep = to_keys(keys)
        result = int(lib.reddn_mget_submit(self._handle(), several, len(keys), cookie))
        del keep
        return result

    def _submit_exists(self, keys: List[bytes], cookie: int) -> int:
        several, keep = to_keys(keys)
        result = int(lib.reddn_exists_submit(self._handle(), several, len(keys), cookie))
        del keep
        return result

    def _has_room(self, result: int) -> bool:
        """Of a request that was submitted. False: collect results first."""
        if result < 0 and result != -errno.EAGAIN:
            self._lost(result)
        return bool(result != -errno.EAGAIN)

    def _take(self, base: int, values: List[Any], errors: List[int], take: Callable[[Any], Any] = take_value) -> int:
        """Waits for results. Returns how many have cookies from base on."""
        taken = 0
        for result in self._results[0 : self._wait()]:
            taken += result.cookie >= base
            if result.cookie < base:
                continue
            if result.status < 0:
                errors.append(result.status)
                continue
            as_of = to_as_of(result.as_of)
            if self._as_of is not None:
                older = min(self._as_of, as_of, key=lambda one: one.host)
                one = as_of.origin == self._as_of.origin
                as_of = older._replace(source=min(self._as_of.source, as_of.source), complete=as_of.complete and self._as_of.complete, origin=as_of.origin if one else 0)
            self._as_of = as_of
            values[result.cookie - base] = take(result)
        lib.reddn_release(self._handle())
        return taken

    def _wait(self) -> int:
        """How many results are in _results, at least 1; release them."""
        until, n = time.monotonic() + self._timeout, 0
        while n == 0:
            left = until - time.monotonic()
            if left <= 0:
                words = self._words()
                if not self._reconnect:  # who knows when the answers come
                    super().close()
                fail(-errno.ETIMEDOUT, words)
            n = lib.reddn_wait(self._handle(), self._results, len(self._results), min(_SLICE_MS, int(left * 1000) + 1))
        if n < 0:
            self._lost(n)
        return int(n)

    # ---- registered memory, and gets into it ------------------------------------------------------

    def register(self, memory: Any) -> None:
        """Registers a writable buffer (bytearray, mmap, an array of numpy), up to 16 of a connection with `into`, for values that are got, or
        of one to a store, for values that are put: its pages are pinned, and it keeps its size, until unregister() or close()."""
        buffer = ffi.from_buffer(memory, require_writable=True)
        with self._alone():
            result = lib.reddn_register(self._handle(), buffer, len(buffer))
            if result < 0:
                fail(result)
            self._memory.append(buffer)

    def unregister(self, memory: Any) -> None:
        """Takes a buffer back that was registered; of one that was registered several times, one registration."""
        buffer = ffi.from_buffer(memory, require_writable=True)
        with self._alone():
            result = lib.reddn_unregister(self._handle(), buffer)
            if result < 0:
                fail(result)
            self._memory.remove(buffer)  # one that begins at the same address

    def get_into(self, key: Key, place: Any) -> Optional[int]:
        """Gets a value into `place`, such as a slice of a memoryview of registered memory: the NIC writes it there. Its length, or None: the key
        was absent. See mget_into()."""
        return self.mget_into((key,), (place,))[0]

    def mget_into(self, keys: Iterable[Key], places: Iterable[Any]) -> List[Optional[int]]:
        """Gets the values of many keys, each into its place. Places must not overlap, and belong to the library until this returns, with whatever
        result or exception: then nothing is written there any more. A place may have anything behind its value, or without one. OSError
        (EMSGSIZE): a value is longer than its place; (EFAULT): a place is not in registered memory.

        It is one call of C, which no signal ends before `timeout`."""
        names = [ffi.from_buffer(to_bytes(key)) for key in keys]
        buffers = [ffi.from_buffer(place, require_writable=True) for place in places]
        if len(names) != len(buffers):
            raise ValueError(f"{len(names)} keys, and {len(buffers)} places")
        into = ffi.new("struct reddn_into[]", len(names))
        for one, name, buffer in zip(into, names, buffers):
            one.key, one.key_len, one.at, one.room = name, len(name), buffer, len(buffer)
        with self._alone():
            result = lib.reddn_mget_into(self._handle(), into, len(names))
            if result < 0:
                self._lost(result)
            for one in into:
                if one.status < 0:
                    self._lost(one.status)
        return [one.len if one.status == 0 else None for one in into]

    # ---- which keys exist -------------------------------------------------------------------------

    def exists_many(self, keys: Iterable[Key]) -> List[bool]:
        """Which of the keys exist, in their order, of an offload that has parts for that. A key that is there is never reported as missing; of
        32,262 that are not, one may be reported as existing: get() knows."""
        with self._alone():
            return self._many(keys, self._exists_keys, self._submit_exists, take_exists)

    def _exists_keys(self) -> int:
        if not self._info.exists_keys:
            fail(-errno.EINVAL, "the offload has no part for questions which keys exist, or this client may not use one")
        return int(self._info.exists_keys)

    def first_missing(self, keys: Iterable[Key]) -> int:
        """The index of the first key that does not exist, or their number, as exists_many() knows it. Once there is one no more keys are
        asked for, or taken from an iterator. A key that is too long for the table does not exist."""
        answers: Set[bool] = set()

        def take(result: Any) -> bool:
            answers.add(take_exists(result))
            return take_exists(result)

        with self._alone():
            lib.reddn_get_info(self._handle(), self._info)
            wanted = itertools.takewhile(lambda key: False not in answers and len(key) <= self._info.max_key, map(to_bytes, keys))
            there = self._many(wanted, self._exists_keys, self._submit_exists, take)
        return there.index(False) if False in there else len(there)

    # ---- calls ------------------------------------------------------------------------------------

    @property
    def arguments(self) -> List[Argument]:
        """What the offload takes. The first use asks the server for names."""
        with self._alone():
            self._describe()
        return self._arguments

    @property
    def fields(self) -> List[Field]:
        """What is in its reply. The first use asks the server."""
        with self._alone():
            self._describe()
        return self._fields

    def call(self, **arguments: Value) -> Reply:
        """Calls the offload and waits: one keyword per argument, as the program names them.

        A name such as "probe[1].at" is passed as call(**{"probe[1].at": 5}). An argument of bytes takes bytes or str,
        and zeroes fill it up. Returns the fields of the reply by name; those that the program did not write are zero.

        >>> with Connection("storage1", "seats") as seats:
        ...     seats.call(at=16)
        {'sold': 40, 'seats': 100}
        """
        with self._alone():
            self._first_cookie()
            until = time.monotonic() + self._timeout
            # Only a session knows what it takes
            while not self._is_described() and self._reconnect and self._words() and time.monotonic() < until:
                time.sleep(0.005)
                self._first_cookie()
            reply: Reply = self._answer(functools.partial(self._submit_call, arguments), self._take_reply)
        return reply

    def _ask(self, submit: Callable[[int], int], take: Callable[[Any], Any]) -> Any:
        """Submits a request, by a function of its cookie, and waits. Returns what `take` makes of its result."""
        with self._alone():
            return self._answer(submit, take)

    def _run(self, steps: Steps[T]) -> T:
        answer: Any = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(step, Ask):
                answer = self._ask(functools.partial(step.submit, self._handle()), step.take)
                continue
            time.sleep(step)
            answer = None

    def _answer(self, submit: Callable[[int], int], take: Callable[[Any], Any]) -> Any:
        taken: List[Any] = []
        cookie = self._first_cookie()
        self._cookie += 1
        while (status := submit(cookie)) == -errno.EAGAIN:
            self._take(self._cookie, [], [])
        while status == 0 and not taken:
            for result in self._results[0 : self._wait()]:
                if result.cookie == cookie:
                    status = result.status
                    taken.append(take(result) if status >= 0 else None)
            lib.reddn_release(self._handle())
        if status < 0:
            self._lost(status)
        return taken[0]

    def _take_reply(self, result: Any) -> Reply:
        return self._decode(ffi.buffer(result.value, result.length))

    # ---- stores -----------------------------------------------------------------------------------

    def put(self, key: Key, value: Key, *, if_version: Optional[int] = None, ttl: Optional[float] = None) -> None:
        """Puts a key and its value in a store: the server's NIC replaces what the key had. With `if_version` only if that has this version,
        or with 0, if the key is absent: else Conflict. With `ttl` the value expires after so many seconds, by the clock of each host that
        looks; not together with `if_version`.

        A value in memory that is registered, such as a slice of a memoryview of it, is sent from there without a copy. It has to stay as it
        is until this returns, and after an exception that leaves unknown what became of the put, until close(): what was changed meanwhile
        is a value that get() does not take, OSError (EBADMSG), until the key is put again.

        Errors after which nothing has changed: OSError (ENOSPC), the store is full; (EMSGSIZE), key and value are too long for it;
        BlockingIOError (EAGAIN), other clients were first all the time, or the server made no entry for a new key. After
        BlockingIOError (EINPROGRESS) and TimeoutError it is not known whether the put took place: get the key. With a version that is not 0
        it is safe to ask again: Conflict then means that this put took place, or another one.
        """
        judge_change(self._ask(to_put(self._handle(), key, value, if_version, ttl), take_change))

    def delete(self, key: Key, *, if_version: Optional[int] = None) -> bool:
        """Deletes a key of a store. False: it was absent. With `if_version` only what has this version: else Conflict. Errors as of put()."""
        return judge_change(self._ask(to_delete(self._handle(), key, if_version), take_change))

    # ---- words ------------------------------------------------------------------------------------

    def cas(self, word: int, old: int, new: int) -> int:
        """Compares and swaps a word of an offload of compare-and-swap, counted in words: returns what it was. It is `new` now if
        that is `old`."""
        was: int = self._ask(functools.partial(lib.reddn_cas_submit, self._handle(), word, old, new), take_word)
        return was

    def faa(self, word: int, by: int) -> int:
        """Adds to a word of an offload of fetch-and-add, modulo 2^64: returns what it was. A negative number subtracts."""
        was: int = self._ask(functools.partial(lib.reddn_faa_submit, self._handle(), word, by % 2**64), take_word)
        return was

    # ---- logs -------------------------------------------------------------------------------------

    def append(self, value: Key) -> int:
        """Appends to a log of an offload of log-append: returns the number of the entry. OSError (EMSGSIZE): an entry has no room for it.
        After BlockingIOError (EINPROGRESS) and TimeoutError it was appended once, or not at all, or will be."""
        return self._run(append_steps(value, self._timeout))

    def _is_described(self) -> bool:
        lib.reddn_get_info(self._handle(), self._info)
        return bool(self._described == self._info.reconnects)

    def _describe(self) -> None:
        if self._is_described():
            return
        result = self._question(lambda handle: lib.reddn_describe(handle))
        if result < 0:
            fail(result)
        kind, size = ffi.new("enum reddn_arg_kind *"), ffi.new("uint32_t *")
        self._arguments, self._fields = [], []
        for i in range(self._info.nargs):
            lib.reddn_get_arg(self._handle(), i, kind, size)
            self._arguments.append(Argument(to_str(lib.reddn_arg_name(self._handle(), i)), _ARGUMENT_KINDS[int(kind[0])], size[0]))
        field = ffi.new("struct reddn_reply_field *")
        while lib.reddn_get_reply_field(self._handle(), len(self._fields), field) == 0:
            self._fields.append(Field(to_str(field.name), _FIELD_KINDS[int(field.kind)], field.offset, field.bytes))
        self._described = self._info.reconnects

    def _submit_call(self, given: Dict[str, Value], cookie: int) -> int:
        args, keep = self._encode(given)
        result = lib.reddn_call_submit(self._handle(), args, len(args), cookie)
        del keep
        return int(result)

    def _encode(self, given: Dict[str, Value]) -> Tuple[Any, List[Any]]:
        """The arguments as struct reddn_arg[], and what has to live as long"""
        self._describe()
        taken = self._arguments
        unknown = set(given) - {argument.name for argument in taken}
        missing = [argument.name for argument in taken if argument.name not in given]
        if unknown or missing:
            takes = ", ".join(f"{a.name} ({a.kind}, {a.bytes} bytes)" for a in taken) or "nothing"
            wrong = f"no argument {sorted(unknown)[0]!r}" if unknown else f"{missing[0]!r} is missing"
            raise TypeError(f"call(): {wrong}; the offload takes {takes}")
        args, keep = ffi.new("struct reddn_arg[]", len(taken)), []
        for i, argument in enumerate(taken):
            value = given[argument.name]
            if argument.kind != "bytes":
                if not isinstance(value, int) or value < 0 or value >> 8 * argument.bytes:
                    raise ValueError(f"{argument.name}={value!r}: a number of {argument.bytes} bytes, not negative")
                args[i].number = value
                continue
            if isinstance(value, int) or len(to_bytes(value)) > argument.bytes:
                raise ValueError(f"{argument.name}={value!r}: text or bytes, at most {argument.bytes}")
            keep.append(ffi.new("char[]", to_bytes(value).ljust(argument.bytes, b"\0")))
            args[i].bytes = keep[-1]
        return args, keep

    def _decode(self, reply: Any) -> Reply:
        fields: Reply = {}
        for field in self._fields:
            part = reply[field.offset : field.offset + field.bytes]
            if len(part) < field.bytes:  # of another session, whose program may be another one
                fail(-errno.EPROTO, f"the reply has no {field.name!r}")
            if field.kind == "bytes":
                fields[field.name] = part
            elif field.kind == "max":
                fields[field.name] = part.rstrip(b"\0")
            else:
                fields[field.name] = int.from_bytes(part, "big" if field.kind == "be" else "little")
        return fields

    # ---- the connection ---------------------------------------------------------------------------

    @property
    def timeout(self) -> float:
        """Seconds, of each call."""
        return self._timeout

    @property
    def depth(self) -> int:
        """Largest number of outstanding requests."""
        return int(self._info.depth)

    @property
    def session(self) -> int:
        """Number of the session in the server's log; after a loss, of the last one."""
        lib.reddn_get_info(self._handle(), self._info)
        return int(self._info.session)

    @property
    def reconnects(self) -> int:
        """How often another session took the place of the one in use."""
        lib.reddn_get_info(self._handle(), self._info)
        return int(self._info.reconnects)

    @property
    def as_of(self) -> Optional[AsOf]:
        """As of which moment the answers of the last get() or mget() are right at least: of the oldest of them. None: it had none."""
        return self._as_of

    @property
    def newest(self) -> AsOf:
        """How new the table was by the latest reply: the next answer of the same session is as new at least; as_of is that of an answer."""
        lib.reddn_get_info(self._handle(), self._info)
        return to_as_of(self._info.as_of)

    @property
    def hosts(self) -> List[Host]:
        """The hosts, in the order of the policy."""
        info = ffi.new("struct reddn_host_info *")
        found: List[Host] = []
        while lib.reddn_get_host(self._handle(), len(found), info) == 0:
            found.append(Host(to_str(info.name), info.port, _HOST_STATES[info.state], info.sessions, info.sent, info.late))
        return found

    @property
    def is_table(self) -> bool:
        """True: get() and mget() are possible, of a table or a store."""
        return bool(self._info.shape == lib.REDDN_TABLE)

    def end_reason(self) -> int:
        """Why the server ended the last session that was lost: an End, or a number that only later versions know."""
        with self._alone():
            result = self._question(lambda handle: lib.reddn_end_reason(handle))
        if result < 0:
            fail(result)
        return End(result) if result in End._value2member_map_ else result

    def close(self) -> None:
        """Closes it. More than once is fine."""
        if self._pointer is not None and self._is_own():
            self._alone()
        super().close()

    def _free(self, pointer: Any) -> None:
        """In a child of fork(), reddn_close() would end the session of the parent."""
        if self._is_own():
            lib.reddn_close(pointer)
        self._memory.clear()

    def _words(self) -> str:
        """Why there is no session; empty while there is one."""
        return to_str(lib.reddn_errmsg(self._handle()))

    def _end_words(self) -> str:
        """The same with what the server reports, which it is asked for."""
        self._question(lambda handle: lib.reddn_end_reason(handle))
        return self._words()

    def _question(self, ask: Callable[[Any], Any]) -> int:
        """A question to the server, which takes up to `timeout`. A handler of a signal that raises closes the connection: only the answer
        ends the call."""
        handle = self._handle()
        try:
            return _apart(lambda: ask(handle), lambda _: lib.reddn_close(handle), self._memory)
        except BaseException:
            self._pointer, self._memory = None, []
            raise

    def _lost(self, result: int) -> NoReturn:
        """Raises the error of a request, in words if a lost session is the reason."""
        fail(result, self._end_words() if self._words() or result == -errno.EINPROGRESS else "")
