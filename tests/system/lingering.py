# SPDX-License-Identifier: BSD-2-Clause
"""lingering: sockets that close(2) waits for until this process is over, and messages that have the last descriptors of some."""
import array
import os
import socket
import struct

kept = []


def lingering():
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)  # far less than is sent
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    s = socket.socket()
    s.connect(listener.getsockname())
    kept.append(listener.accept())
    s.setblocking(False)
    s.send(bytes(65536))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 1000))
    return s


def connect(path):
    control = socket.socket(socket.AF_UNIX)
    control.connect(path)
    kept.append(control)
    return control


def send(control, line, n, flags=0):
    """Sends line with n of them."""
    given = [lingering() for _ in range(n)]
    control.sendmsg([line], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [s.fileno() for s in given]))], flags)
    for s in given:
        os.close(s.detach())
