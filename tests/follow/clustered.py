# SPDX-License-Identifier: BSD-2-Clause
"""clustered.py FOLDER HOST HOSTS COMMANDS: applications of a cluster whose reads NICs answer, by libreddn-redis (the program COMMANDS) and
reddn.redis.RedisCluster: out of a table of all slots at HOST, and out of those of a third each at HOSTS (clustered.sh). While slots move and a master fails over, each
reads what it has written, and afterwards the NIC answers again; of another cluster, and of the other slots, it answers nothing."""
import os
import random
import shutil
import signal
import sys

environment = dict(os.environ)
os.environ.pop("LD_PRELOAD")  # for this process only
import redis  # noqa: E402
import reddn.redis  # noqa: E402
from cluster import SHORT_MS, SLOTS, TIMEOUT_MS, Application, Cluster, Writer, fails, migrate, slot_of  # noqa: E402
from source import Commands, Error, Follower, check, ok, until, work  # noqa: E402
from clocks import clocks  # noqa: E402

FOLDER, HOST, HOSTS, COMMANDS = sys.argv[1:]
KEYS = 24
THIRDS = [(i * SLOTS // 3, (i + 1) * SLOTS // 3 - 1) for i in range(3)]


class RedisCluster(reddn.redis.RedisCluster):
    """As Commands"""

    lost = ""

    def __call__(self, *words):
        self.lost = ""
        try:
            return self.execute_command(*words)
        except redis.exceptions.ClusterDownError as e:  # without the word
            raise Error(f"CLUSTERDOWN {e}") from e
        except redis.ResponseError as e:
            raise Error(f"{e}") from e
        except (redis.ConnectionError, redis.exceptions.ClusterError, redis.exceptions.RedisClusterException) as e:
            self.lost = f"{e}"
            return None


class Client(Application):
    """Whatever it has written, it reads."""

    def __init__(self, name, path, hosts, offload, *prefixes):
        """Of the node at this socket, or in Python of the one at this port"""
        if isinstance(path, int):
            self.send = RedisCluster("127.0.0.1", path, reddn=hosts, offload=offload, prefixes=prefixes)
        else:
            self.send = Commands(COMMANDS, path, 0, hosts, offload, *prefixes, env=environment)
        self.name, self.have, self.steps, self.over, self.failure = name, {}, 0, False, None

    def patient(self, *words):
        """What has been lost with a connection is asked for again."""
        answers = []

        def answered():
            try:
                answers.append(self.send(*words))
                return not self.send.lost
            except Error as e:
                check(str(e).startswith("CLUSTERDOWN"), f"{words}: {e}")
                return False

        until(answered, lambda: f"{words}: {self.send.lost}")
        return answers[-1]

    def step(self, rng=random.Random(5)):  # noqa: B008
        key = b"%s{%d}" % (self.name, rng.randrange(KEYS))
        if rng.random() < 0.2:
            self.have[key] = b"%d" % self.steps
            self.patient("SET", key, self.have[key])
        for k in (key, b"%s{%d}" % (self.name, rng.randrange(KEYS))):
            value = self.patient("GET", k)
            check(value == self.have.get(k), f"{k} is {value}, not {self.have.get(k)}")
        self.steps += 1

    def settles(self):
        """The NIC answers for all keys, which are of all masters."""
        for key, value in self.have.items():
            def by_nic(key=key, value=value):
                before = self.send.nic_answers
                check(self.patient("GET", key) == value, f"{key} is not {value}")
                return self.send.nic_answers > before
            until(by_nic, lambda key=key: f"{self.name}: the cluster answers for {key} all the time")

    def is_answered_by_redis(self, keys):
        before = self.send.nic_answers
        for key in keys:
            for _ in range(3):
                value = self.patient("GET", key)
                check(value == keys[key], f"{self.name}: {key} is {value}, not {keys[key]}")
        check(self.send.nic_answers == before, f"{self.name}: {self.send.nic_answers - before} answers of the NIC")


def steps(clients, n=40):
    for _ in range(n):
        for client in clients:
            client.step()


def answers(clients):
    return sum(c.send.nic_answers for c in clients)


def goes_on(clients):
    steps(clients)
    for client in clients:
        client.settles()


def all_slots(cluster, clients):
    for client in clients:
        for i in range(KEYS):
            key = b"%s{%d}" % (client.name, i)
            client.have[key] = b"%d" % i
            check(client("SET", key, client.have[key]) is True, "SET")
        check({cluster.owner(slot_of(k)) for k in client.have} == set(cluster.masters), "keys of all masters")
    goes_on(clients)
    fails("CROSSSLOT ", clients[0].send, "MGET", b"whole{1}", b"whole{2}")
    python = clients[2].send
    check(python("MGET", b"python{1}", b"python{2}") is None and "same key slot" in python.lost, f"keys of several slots: {python.lost}")
    ok(f"keys of all masters: {answers(clients)} answers by the NIC")


def rights(cluster, have):
    """Of a user who must not ask who has which slots: redis-py does not ask for all that it knows again with each read."""
    def asked():
        return sum(int(n.client()("INFO", "commandstats").partition(b"cmdstat_cluster|slots:calls=")[2].split(b",")[0] or 0) for n in cluster.alive)

    for node in cluster.alive:
        node.client()("ACL", "SETUSER", "some", "on", ">p", "~*", "+@all", "-cluster|nodes")
    client = RedisCluster("127.0.0.1", cluster.nodes[1].port, reddn=HOST, offload="whole", username="some", password="p")
    before = asked()
    for key, value in have.items():
        check(client("GET", key) == value, f"{key} is not {value}")
    check(asked() == before and client.nic_answers == 0 and "cluster|nodes" in client.nic_error, f"{before}, {asked()}: {client.nic_answers}, {client.nic_error}")
    ok("a user without the right to CLUSTER NODES")


def resharding(cluster, clients):
    slots = [slot_of(b"{%d}" % i) for i in range(15)]
    for i, node in enumerate(cluster.masters):
        for slot in slots[i::3]:
            migrate(cluster, slot, node, lambda: steps(clients, 10))
            steps(clients, 10)
        cluster.settles()
        goes_on(clients)
    ok(f"while slots move, what was written is read: {answers(clients)} answers by the NIC")


def failover(cluster, clients):
    master = cluster.nodes[0]
    replica = cluster.add_replica(master)
    # what was set before is also at the replica when it has this
    writer = Writer(cluster)
    cluster.has_replica = [master, replica]
    for client in clients:
        key = next(k for k in client.have if cluster.owner(slot_of(k)) is master)
        client.have[key] = b"late"
        client.patient("SET", key, b"late")
    writer("SET", next(k for k in (b"last %d" % i for i in range(1000)) if cluster.owner(slot_of(k)) is master), b"value")
    cluster.set_timeout(SHORT_MS)  # not before: a machine that stands still for so long promotes the replica
    master.kill()
    until(lambda: replica in cluster.masters, "the replica is not promoted")
    cluster.set_timeout(TIMEOUT_MS)
    goes_on(clients)
    ok("a master is killed, and its replica promoted: the NIC answers again")


def another(cluster, followers, clients, link):
    """Tables that are not those of the application"""
    foreign = Cluster(masters=1)
    for key in clients[0].have:
        foreign.nodes[0].client()("SET", key, b"foreign")
    here = Client(b"here", link, HOST, "whole")
    here.have = clients[0].have
    here.settles()
    os.remove(link)
    os.symlink(foreign.nodes[0].path + "/socket", link)
    cluster.nodes[1].client()("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    check(here.send("PING") is None, "no connection is lost")
    here.is_answered_by_redis({k: b"foreign" for k in clients[0].have})
    for node in (cluster.nodes[1].path + "/socket", cluster.nodes[1].port):
        Client(b"prefix", node, HOST, "whole", "who").is_answered_by_redis(clients[0].have)
        # a table of some slots, which has no other keys, and states so only to who asks by slots
        Client(b"part", node, HOST, "third").is_answered_by_redis(clients[1].have)
    for client in clients:
        client.settles()
    ok("a table of another cluster at the same address, of other prefixes, or of some slots only is not believed")


def restart(cluster, followers, clients):
    """A master comes back without its keys, which the tables still have."""
    node = cluster.nodes[2]
    for f in followers:
        f.send(signal.SIGSTOP)
    node.kill()
    cluster.nodes[1].client()("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")  # else the NIC goes on to answer until that is noticed
    shutil.rmtree(node.path + "/appendonlydir")
    node.run()
    until(lambda: b"cluster_state:ok" in node.client()("CLUSTER", "INFO") and cluster.owner(slot_of(b"x")), "the master does not come back")
    for client in clients:
        check({k for k in client.have if cluster.owner(slot_of(k)) is node}, "it has no keys")
        for key in client.have:
            client.have[key] = None if cluster.owner(slot_of(key)) is node else client.have[key]
        check(client.send("PING") is None, "it is not lost")
        client.is_answered_by_redis({k: v for k, v in client.have.items() if v is None})
    for f in followers:
        f.send(signal.SIGCONT)
    goes_on(clients)
    ok("a master that has lost its keys")


def main():
    clocks(f"{FOLDER}/whole.table", lambda path: Commands(COMMANDS, path, 0, HOST, "whole", env=environment))
    cluster = Cluster()
    followers = [Follower(cluster.url(), table=f"{FOLDER}/whole.table")]
    followers += [Follower(f"{cluster.url()}/?slots={first}-{last}", table=f"{FOLDER}/{host}.table") for host, (first, last) in zip("abc", THIRDS)]
    link = f"{work}/link"
    os.symlink(cluster.nodes[1].path + "/socket", link)
    clients = [Client(b"whole", cluster.nodes[1].path + "/socket", HOST, "whole"), Client(b"thirds", cluster.nodes[2].path + "/socket", HOSTS, "third")]
    clients += [Client(b"python", cluster.nodes[1].port, HOST, "whole"), Client(b"pythons", cluster.nodes[2].port, HOSTS, "third")]
    all_slots(cluster, clients)
    rights(cluster, clients[2].have)
    resharding(cluster, clients)
    failover(cluster, clients)
    another(cluster, followers, clients, link)
    restart(cluster, followers, clients[:2])
    for f in followers:
        f.end()


main()
