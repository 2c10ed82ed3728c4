"""A line of a given delay and rate between two network namespaces of this machine.

Kernels without netem have no delay for a network device. Here both ends are TUN devices, each in a
namespace of its own, and a process passes packets between them: each occupies the line for its
length, then travels for half of the round trip. TCP sees a real line: handshakes, windows that
grow, and a queue. Nothing outside the two namespaces can be reached. Needs root.
"""

import fcntl
import multiprocessing
import os
import select
import struct
import subprocess
import time
from collections import deque

CLIENT, SERVER = "packfs-client", "packfs-server"
# Addresses for documentation (RFC 5737), which belong to no machine.
ADDRESSES = {CLIENT: "192.0.2.1", SERVER: "192.0.2.2"}
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
PACKET_MAX = 65536
# Bytes that wait for the line, as in a router; packets beyond are lost.
QUEUE = 1 << 20


def run(*words):
    subprocess.run(words, check=True)


def inside(namespace, words):
    """Returns the command that runs another in a network namespace, with the mounts of this one."""
    return ["nsenter", f"--net=/run/netns/{namespace}", *words]


def open_tun(name):
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    return device


def pass_packets(ends, delay, rate):
    """Passes packets until the process is ended; `delay` in seconds one way, `rate` in bytes/s."""
    waiting = {end: deque() for end in ends}  # packets that came from this end, and when they leave
    is_free_at = dict.fromkeys(ends, 0.0)
    other = {ends[0]: ends[1], ends[1]: ends[0]}
    while True:
        now = time.monotonic()
        nearest = None
        for end, packets in waiting.items():
            while packets and packets[0][0] <= now:
                try:
                    os.write(other[end], packets.popleft()[1])
                except OSError:
                    pass  # the device is full, as a line that loses a packet
            if packets and (nearest is None or packets[0][0] < nearest):
                nearest = packets[0][0]
        wait = None if nearest is None else max(0.0, nearest - now)
        for end in select.select(ends, [], [], wait)[0]:
            now = time.monotonic()
            while True:
                try:
                    packet = os.read(end, PACKET_MAX)
                except BlockingIOError:
                    break
                start = max(now, is_free_at[end])
                if (start - now) * rate > QUEUE:
                    continue
                is_free_at[end] = start + len(packet) / rate
                waiting[end].append((is_free_at[end] + delay, packet))


class Link:
    """The line; a context manager. `round_trip` in seconds, `rate` in bit/s."""

    def __init__(self, round_trip, rate):
        self.round_trip, self.rate = round_trip, rate

    def __enter__(self):
        self.remove()
        ends = []
        for namespace, name in ((CLIENT, "packfs0"), (SERVER, "packfs1")):
            run("ip", "netns", "add", namespace)
            ends.append(open_tun(name))
            run("ip", "link", "set", name, "netns", namespace)
            address = f"{ADDRESSES[namespace]}/30"
            for words in (
                ("addr", "add", address, "dev", name),
                ("link", "set", name, "txqueuelen", "1000", "up"),
                ("link", "set", "lo", "up"),
            ):
                run("ip", "-n", namespace, *words)
        arguments = (ends, self.round_trip / 2, self.rate / 8)
        self.process = multiprocessing.Process(target=pass_packets, args=arguments, daemon=True)
        self.process.start()
        for end in ends:
            os.close(end)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.join()
        self.remove()

    @staticmethod
    def remove():
        for namespace in (CLIENT, SERVER):
            if os.path.exists(f"/run/netns/{namespace}"):
                run("ip", "netns", "delete", namespace)

    @staticmethod
    def received():
        """Returns the bytes that the client has received, with all headers."""
        words = inside(CLIENT, ["cat", "/proc/net/dev"])
        table = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        row = next(line for line in table.splitlines() if line.strip().startswith("packfs0:"))
        return int(row.split(":")[1].split()[0])
