#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""reddn-follow and the master of a Redis Sentinel: what is followed while the master changes, by hand and because it dies, and while no
sentinel answers."""
import os
import subprocess

import reddn
from source import FOLLOW, LIMIT, Follower, Redis, check, memory, ok, refuses, start, until, work


class Sentinel(Redis):
    """Alone: it decides by itself."""

    def __init__(self, master):
        self.master = master
        super().__init__(tcp=True)

    def run(self, *options, wait=True):
        path = self.path + "/sentinel.conf"
        with open(path, "w", encoding="ascii") as f:
            f.write(f"port {self.port}\nbind 127.0.0.1\nunixsocket {self.path}/socket\ndir {self.path}\nsentinel monitor users 127.0.0.1 {self.master.port} 1\n"
                    "sentinel down-after-milliseconds users 500\nsentinel failover-timeout users 2000\n")
        self.process = start("redis-server", path, "--sentinel", stdout=subprocess.DEVNULL)
        until(self.answers, "the sentinel does not answer")
        self.client()("SENTINEL", "DEBUG", "info-period", 500)  # else it hears of replicas every ten seconds

    def port_of_master(self):
        return int(self.client()("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "users")[1])

    def learns(self, replica):
        until(lambda: b"master_link_status:up" in replica.client()("INFO", "replication"), "the replica has no master")
        until(lambda: [r for r in self.client()("SENTINEL", "REPLICAS", "users") if r[r.index(b"flags") + 1] == b"slave"], "the sentinel does not know the replica")


def url(*sentinels, name="users", user=""):
    return f"redis+sentinel://{user}{','.join(f'127.0.0.1:{s.port}' for s in sentinels)}/{name}"


def role(redis):
    return redis.client()("ROLE")[0]


def failover(sentinel, one, other, follower):
    """The old master would do, too, as a replica."""
    sentinel.learns(other)
    until(lambda: sentinel.client().many([("SENTINEL", "FAILOVER", "users")])[0] == b"OK", "it refuses")
    until(lambda: sentinel.port_of_master() == other.port and role(other) == b"master", "the replica is no master")
    until(lambda: b"__redis__:invalidate" in other.client()("PUBSUB", "CHANNELS"), "it is not followed")
    other.client()("SET", "by hand", "1")
    one.client()("REPLICAOF", "127.0.0.1", other.port)  # the sentinel does so, too, ten seconds later
    follower.equals(other)
    ok("a failover by hand")


def death(sentinel, one, other, follower):
    sentinel.learns(other)
    one.kill()
    until(lambda: sentinel.port_of_master() == other.port and role(other) == b"master", "the replica is no master")
    other.client().many([("SET", "by death", "1"), ("DEL", "k1")])
    follower.equals(other)
    ok("the master dies")


def silence(sentinel, gone, master, follower):
    """Without sentinels what is followed stays."""
    sentinel.kill()
    master.client()("SET", "silence", "1")
    follower.equals(master)
    refuses(["--once", url(sentinel, gone), f"{memory}/none"], 2, f"127.0.0.1:{gone.port}: Connection refused")
    sentinel.master = master
    sentinel.run()
    refuses(["--once", url(sentinel, name="others"), f"{memory}/none"], 2, "it knows no master of that name")
    refuses(["--once", url(master), f"{memory}/none"], 2, "unknown command")
    ok("no sentinel, no such master, and no Sentinel")


def names(sentinel, master):
    """Of a name server that does not answer nothing is noticed but that its names lead nowhere."""
    silent = work + "/no-resolver"
    env = {"LD_PRELOAD": os.environ["NO_RESOLVER_LIB"], "NO_RESOLVER": silent}

    def threads(follower):
        return len(os.listdir(f"/proc/{follower.process.pid}/task"))

    with Follower(url(sentinel).replace("127.0.0.1", "localhost"), env=env) as follower:
        follower.equals(master)
        before = threads(follower)
        with open(silent, "xb"):
            pass
        sentinel.kill()
        until(lambda: threads(follower) > before, "nothing is looked up")
        master.client()("SET", "names", "1")
        follower.equals(master)
        with Follower(f"redis://localhost:{master.port}", env=env, wait=False) as other:
            until(lambda: threads(other) > 1, "nothing is looked up")
        os.unlink(silent)
        sentinel.run()
        until(lambda: b"get-master-addr-by-name" in sentinel.client()("CLIENT", "LIST"), "the sentinel is not asked again")
    with Follower(f"redis://localhost:{master.port}", env=env) as follower:
        follower.equals(master)
    refuses(["--once", "redis://" + "n" * 64, f"{memory}/none"], 2, "ame")
    ok("a name server that does not answer")


def rights(sentinel, master):
    line = subprocess.run([FOLLOW, "--acl", "redis+sentinel://h/users"], capture_output=True, text=True, check=True).stdout.replace(">PASSWORD", ">p@ss")
    subprocess.run(["redis-cli", "-s", master.path + "/socket"], input=line, capture_output=True, text=True, check=True)
    done = subprocess.run([FOLLOW, "--once", url(sentinel, user="follower:p%40ss@"), f"{memory}/rights"], timeout=LIMIT, check=False)
    with reddn.Table(f"{memory}/rights") as t:
        check(done.returncode == 0 and dict(t.records()) == master.strings(), f"--once: {done}")
    refuses(["--once", url(sentinel, user="follower:wrong@"), f"{memory}/none"], 2, "WRONGPASS")
    ok("user and password are for the master")


def command_line():
    for args in ("redis+sentinel://h", "redis+sentinel://h/", "redis+sentinel://h//1", "redis+sentinel://h/" + "n" * 128):
        refuses([args, "t"], os.EX_USAGE, "name of a master")
    refuses(["redis+sentinel://a,/users", "t"], os.EX_USAGE, "is not HOST")
    refuses(["redis+sentinel://a/users/x", "t"], os.EX_USAGE, "no number of a database")
    ok("the command line")


def main():
    command_line()
    one = Redis(tcp=True)
    one.client().many([("SET", f"k{i}", i) for i in range(1000)])
    other = Redis("--replicaof", "127.0.0.1", str(one.port), "--repl-diskless-sync-delay", "0", tcp=True)
    sentinel, gone, wrong = Sentinel(one), Redis(tcp=True), Sentinel(other)
    gone.kill()
    refuses(["--once", url(wrong), f"{memory}/none"], 2, "it is a replica")
    wrong.kill()
    with Follower(url(gone, sentinel)) as follower:
        follower.equals(one)
        failover(sentinel, one, other, follower)
        death(sentinel, other, one, follower)
        silence(sentinel, gone, one, follower)
        names(sentinel, one)
        rights(sentinel, one)


main()
