"""A naive model of RedisBloom's filters and of the chunks that BF.SCANDUMP returns.

A filter is a chain of links. The first is sized for the keys and the rate of BF.RESERVE, with half that rate if the chain
may grow; each further link has twice the keys and half the rate. A key is hashed by MurmurHash64A, and again with the
first hash as the seed; its bits are a, a + b, a + 2 b, ... modulo 2^64 and then the bits of the link. A key is added to
the last link unless one of the links accepts it.
"""

import math
import struct

M64 = 2**64 - 1
SEED = 0xC6A4A7935BD1E995
# As RedisBloom has them: these decimals are not the nearest to ln 2 and its square.
LN_2, LN_2_SQUARED = 0.693147180559945, 0.480453013918201
NO_ROUNDING, FORCE_64, NO_SCALING = 1, 4, 8


def murmur64a(data, seed):
    """MurmurHash64A by Austin Appleby."""
    m = SEED
    h = (seed ^ len(data) * m) & M64
    whole = len(data) // 8 * 8
    for i in range(0, whole, 8):
        k = int.from_bytes(data[i:i + 8], "little") * m & M64
        k = (k ^ k >> 47) * m & M64
        h = (h ^ k) * m & M64
    if len(data) > whole:
        h = (h ^ int.from_bytes(data[whole:], "little")) * m & M64
    h = (h ^ h >> 47) * m & M64
    return h ^ h >> 47


class Link:
    def __init__(self, keys, rate):
        self.capacity, self.rate, self.used = keys, rate, 0
        self.bits_per_key = -math.log(rate) / LN_2_SQUARED
        self.hashes = math.ceil(LN_2 * self.bits_per_key)
        self.bits = math.ceil(int(keys * self.bits_per_key) / 64) * 64
        self.memory = bytearray(self.bits // 8)

    def positions(self, key):
        a = murmur64a(key, SEED)
        b = murmur64a(key, a)
        return [(a + i * b & M64) % self.bits for i in range(self.hashes)]

    def __contains__(self, key):
        return all(self.memory[i // 8] >> i % 8 & 1 for i in self.positions(key))

    def add(self, key):
        for i in self.positions(key):
            self.memory[i // 8] |= 1 << i % 8
        self.used += 1


class Chain:
    def __init__(self, keys, rate, grows):
        self.grows = grows
        self.links = [Link(keys, rate / 2 if grows else rate)]

    def __contains__(self, key):
        return any(key in link for link in self.links)

    def add(self, key):
        if key in self:
            return
        last = self.links[-1]
        if self.grows and last.used >= last.capacity:
            self.links.append(Link(last.capacity * 2, last.rate / 2))
        self.links[-1].add(key)

    def dump(self):
        """Returns records of the iterator and the chunk that follows it, the header first."""
        options = NO_ROUNDING | FORCE_64 | (0 if self.grows else NO_SCALING)
        used = sum(link.used for link in self.links)
        header = struct.pack("<QIII", used, len(self.links), options, 2)
        for link in self.links:
            sizes = len(link.memory), link.bits, link.used, link.rate, link.bits_per_key, link.hashes, link.capacity, 0
            header += struct.pack("<QQQddIQB", *sizes)
        dump, iterator = struct.pack("<qQ", 1, len(header)) + header, 1
        for link in self.links:
            iterator += len(link.memory)
            dump += struct.pack("<qQ", iterator, len(link.memory)) + link.memory
        return dump
