# SPDX-License-Identifier: BSD-2-Clause
"""owner.py SOCKET REGION make FILE | take: an application that owns the data of a region in a memfd.

make: hands a memfd with the bytes of FILE over. take: gets the file back that another one handed over. Then prints the path of its
descriptor, and waits to be killed.
"""
import json
import os
import signal
import socket
import sys


def ask(control, fds, **request):
    """The answer, and the descriptors that came with it."""
    socket.send_fds(control, [json.dumps(request).encode() + b"\n"], fds)
    line, given = b"", []
    while not line.endswith(b"\n"):
        data, more, _, _ = socket.recv_fds(control, 65536, 4)
        if not data:
            sys.exit("the daemon closed the connection")
        line += data
        given += more
    answer = json.loads(line)
    if not answer["ok"]:
        sys.exit(answer["error"])
    return given


def main():
    path, region, what = sys.argv[1:4]
    control = socket.socket(socket.AF_UNIX)
    control.connect(path)
    if what == "make":
        fd = os.memfd_create(region)
        with open(sys.argv[4], "rb") as data:
            os.write(fd, data.read())
        ask(control, [fd], command="hand_over", region=region)
    else:
        (fd,) = ask(control, [], command="give_back", region=region)
    print(f"/proc/{os.getpid()}/fd/{fd}", flush=True)
    signal.pause()


main()
