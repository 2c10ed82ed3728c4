"""Decodes a cloop 4.0 file with its header in front: decode_cloop4.py CLOOP DISK

A second reader for the tests, written from the layout of the format, the block format of LZ4 and Linux's lzo.rst, without any of
packfs's code: no other program that reads version 4.0 is to be had. Says which methods it met, and stops at whatever is odd.
"""
import struct
import subprocess
import sys
import zlib


def lz4(src):
    out, at = bytearray(), 0

    def extended(length):
        nonlocal at
        if length == 15:
            while True:
                more = src[at]
                at += 1
                length += more
                if more != 255:
                    break
        return length

    while True:
        token = src[at]
        at += 1
        literals = extended(token >> 4)
        out += src[at:at + literals]
        at += literals
        if at == len(src):
            return bytes(out)
        distance = struct.unpack_from("<H", src, at)[0]
        at += 2
        copy(out, distance, extended(token & 15) + 4)


def lzo1x(src):
    out, at, state = bytearray(), 0, 0

    def extended(length, bits):
        nonlocal at
        if length == 0:
            length = (1 << bits) - 1
            while src[at] == 0:
                at += 1
                length += 255
            length += src[at]
            at += 1
        return length

    def literals(count):
        nonlocal at
        out.extend(src[at:at + count])
        at += count

    if src[0] > 17:
        at = 1
        literals(src[0] - 17)
        state = min(src[0] - 17, 4)
    while True:
        code = src[at]
        at += 1
        if code < 16 and state == 0:
            literals(3 + extended(code, 4))
            state = 4
            continue
        if code < 16:
            high = src[at]
            at += 1
            length = 3 if state == 4 else 2
            distance = (high << 2) + (code >> 2) + (2049 if state == 4 else 1)
            trailing = code & 3
        elif code < 64:
            length = 2 + (extended(code & 31, 5) if code >= 32 else extended(code & 7, 3))
            word = struct.unpack_from("<H", src, at)[0]
            at += 2
            distance = (word >> 2) + 1 if code >= 32 else 16384 + ((code & 8) << 11) + (word >> 2)
            if code < 32 and distance == 16384:
                assert at == len(src), "bytes behind the end of an LZO stream"
                return bytes(out)
            trailing = word & 3
        else:
            length = 5 + (code >> 5 & 3) if code >= 128 else 3 + (code >> 5 & 1)
            distance = (src[at] << 3) + (code >> 2 & 7) + 1
            at += 1
            trailing = code & 3
        copy(out, distance, length)
        literals(trailing)
        state = trailing


def copy(out, distance, length):
    assert 0 < distance <= len(out), "a match that starts before the block"
    for _ in range(length):
        out.append(out[-distance])


def xz(src):
    assert src[:6] == b"\xfd7zXZ\0" and src[7] & 15 == 1, "no .xz stream with CRC-32"
    return subprocess.run(["xz", "-dc"], input=src, stdout=subprocess.PIPE, check=True).stdout


METHODS = [("zlib", zlib.decompress), ("stored", bytes), ("xz", xz), ("lz4", lz4), ("lzo", lzo1x)]


def main(source, target):
    with open(source, "rb") as file:
        cloop = file.read()
    assert cloop[:10] == b"#!/bin/sh\n" and cloop[10:15] == b"#V4.0", "no cloop 4.0"
    block_size, count = struct.unpack_from(">II", cloop, 128)
    assert block_size > 0 and block_size % 512 == 0
    words = struct.unpack_from(">%dQ" % (count + 1), cloop, 136)
    starts = [word & (1 << 60) - 1 for word in words]
    assert starts[0] == 136 + 8 * (count + 1), "the first block does not stand behind the index"
    assert starts[-1] == len(cloop), "the last block does not end where the file ends"
    met = set()
    with open(target, "wb") as disk:
        for number in range(count):
            name, decode = METHODS[words[number] >> 60]
            block = decode(cloop[starts[number]:starts[number + 1]])
            assert len(block) == block_size, "block %d decodes to %d bytes" % (number, len(block))
            disk.write(block)
            met.add(name)
    print(" ".join(sorted(met)))


main(*sys.argv[1:])
