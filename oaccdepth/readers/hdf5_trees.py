"""Checks trees of names and lists of chunks in an HDF5 file, before the library follows them.

The library trusts them. It crashes if a tree leads back to itself, if it holds more names than it
announces, or if a list is too short; it never finishes if branches meet again and again. References
in parentheses are to the HDF5 File Format Specification, version 3.0.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

SIGNATURE = b"\x89HDF\r\n\x1a\n"
MOST_NODES = 100_000  # in a tree, or waiting to be visited; a node has many names
MOST_MESSAGES = 65_535  # in an object header; its first version cannot count more
MOST_LEVELS = 16  # above a leaf; the library cannot count the names below more
LINK_INFO, LAYOUT, CONTINUATION, SYMBOL_TABLE = 0x02, 0x08, 0x10, 0x11  # types of messages
BY_NAME, BY_AGE = 5, 6  # types of trees
RECORD_BYTES = {BY_NAME: 11, BY_AGE: 15}
CHUNKED, LISTED = 2, 3  # a layout, and how it finds its chunks


@dataclass(frozen=True)
class _Bytes:
    """An HDF5 file, byte by byte."""

    file: BinaryIO
    base: int  # where its addresses begin
    address_bytes: int = 8
    length_bytes: int = 8

    def take(self, at: int, size: int) -> bytes:
        self.file.seek(self.base + at)
        taken = self.file.read(size)
        if len(taken) < size:
            raise ValueError("an address beyond the end")
        return taken

    def number(self, at: int, size: int) -> int:
        return int.from_bytes(self.take(at, size), "little")

    def address(self, at: int) -> int:
        return self.number(at, self.address_bytes)

    def length(self, at: int) -> int:
        return self.number(at, self.length_bytes)

    def is_nowhere(self, address: int) -> bool:
        return address == (1 << 8 * self.address_bytes) - 1


def check_names(file: BinaryIO, header: int) -> None:
    """Raise ValueError if the names of the group with this object header are not in a tree."""
    data = _open(file)
    for kind, at in _messages(data, header):
        if kind == SYMBOL_TABLE:
            _walk_old(data, data.address(at))
        elif kind == LINK_INFO:
            counts = {_walk_new(data, tree, kind) for kind, tree in _indexes(data, at)}
            if len(counts) > 1:
                raise ValueError("two trees of the same names that differ")


def check_chunks(file: BinaryIO, header: int, count: int | None) -> None:
    """Raise ValueError if the dataset with this object header lists another number of chunks.

    Only the new layout (IV.A.2.i, version 4) has a list (VII.C); others have trees.
    """
    data = _open(file)
    for kind, at in _messages(data, header):
        if kind == LAYOUT and data.number(at, 1) >= 4 and data.number(at + 1, 1) == CHUNKED:
            index = at + 5 + data.number(at + 3, 1) * data.number(at + 4, 1)
            if data.number(index, 1) != LISTED:
                continue
            chunks = data.address(index + 2)
            if not data.is_nowhere(chunks) and data.length(chunks + 8) != count:
                raise ValueError("another number of chunks than the array has")


def _open(file: BinaryIO) -> _Bytes:
    """Find the superblock (II.A), which may follow bytes of the user."""
    size = file.seek(0, io.SEEK_END)
    for base in (0, *(512 << power for power in range(54))):
        if base + 16 > size:
            break
        data = _Bytes(file, base)
        if data.take(0, 8) == SIGNATURE:
            return _Bytes(file, base, *data.take(13 if data.number(8, 1) < 2 else 9, 2))
    raise ValueError("no superblock")


def _messages(data: _Bytes, header: int) -> Iterator[tuple[int, int]]:
    """Yield type and address of the messages in an object header (IV.A.1), also in later blocks."""
    is_new = data.take(header, 4) == b"OHDR"
    type_bytes, prefix, blocks = _first_block(data, header, is_new)
    counted = itertools.count()
    for start, length in blocks:
        at = start
        while at + prefix <= start + length:
            if next(counted) > MOST_MESSAGES:
                raise ValueError("too many messages")
            kind, size = data.number(at, type_bytes), data.number(at + type_bytes, 2)
            at += prefix
            yield kind, at
            if kind == CONTINUATION:
                more, its_length = data.address(at), data.length(at + data.address_bytes)
                blocks.append((more + 4, its_length - 8) if is_new else (more, its_length))
            at += size


def _first_block(data: _Bytes, header: int, is_new: bool) -> tuple[int, int, list[tuple[int, int]]]:
    """Return the bytes of a message's type and of what precedes it; start and length of a block."""
    if not is_new:
        return 2, 8, [(header + 16, data.number(header + 8, 4))]
    flags = data.number(header + 5, 1)
    times, thresholds, size = flags & 0x20, flags & 0x10, 1 << (flags & 3)
    at = header + 6 + (16 if times else 0) + (4 if thresholds else 0)
    return 1, 6 if flags & 4 else 4, [(at + size, data.number(at, size))]


def _walk_old(data: _Bytes, root: int) -> None:
    """Visit a tree of version 1 (III.A.1): "TREE", 0, level, number of children, two siblings.

    Then come keys and children alternately. The children at level 0 hold the names.
    """

    def children(node: _Node) -> Iterator[_Node]:
        if node.level < 0:
            return
        if data.take(node.address, 6) != b"TREE\0" + bytes([node.level]):
            raise ValueError("not a node of this level")
        step = data.length_bytes + data.address_bytes
        first = node.address + 8 + 2 * data.address_bytes + data.length_bytes
        for number in range(data.number(node.address + 6, 2)):
            yield _Node(data.address(first + number * step), node.level - 1)

    _visit(_Node(root, data.number(root + 5, 1)), children)


def _indexes(data: _Bytes, at: int) -> list[tuple[int, int]]:
    """Return types and addresses of the trees that a link info message names (IV.A.2.c)."""
    flags = data.number(at + 1, 1)
    first = at + 2 + (8 if flags & 1 else 0) + data.address_bytes
    trees = [(BY_NAME, data.address(first))]
    if flags & 2:
        trees.append((BY_AGE, data.address(first + data.address_bytes)))
    return [(kind, tree) for kind, tree in trees if not data.is_nowhere(tree)]


def _walk_new(data: _Bytes, header: int, kind: int) -> int:
    """Visit a tree of version 2 (III.A.2); return the number of its names."""
    record_bytes, depth = data.number(header + 10, 2), data.number(header + 12, 2)
    if data.number(header + 5, 1) != kind or record_bytes != RECORD_BYTES[kind]:
        raise ValueError("a tree of something else")
    levels = _levels(data, data.number(header + 6, 4), record_bytes, depth)
    after_root = header + 16 + data.address_bytes

    def children(node: _Node) -> Iterator[_Node]:
        most, pointer_bytes = levels[node.level]
        if node.count > most:
            raise ValueError("more names than a node can hold")
        if node.level == 0:
            return
        first = node.address + 6 + node.count * record_bytes
        for number in range(node.count + 1):
            at = first + number * pointer_bytes
            count = data.number(at + data.address_bytes, _bytes_for(levels[0][0]))
            yield _Node(data.address(at), node.level - 1, count)

    root = data.address(header + 16)
    if data.is_nowhere(root):
        return 0
    found = _visit(_Node(root, depth, data.number(after_root, 2)), children)
    if found != data.length(after_root + 2):
        raise ValueError("another number of names than announced")
    return found


def _levels(data: _Bytes, node_bytes: int, record_bytes: int, depth: int) -> list[tuple[int, int]]:
    """Return for each level, from the leaves up: names in a node, bytes of a pointer to a child."""
    if depth > MOST_LEVELS:
        raise ValueError("too many levels")
    below = leaf = (node_bytes - 10) // record_bytes  # names in a child with all below it
    levels = [(leaf, 0)]
    for level in range(1, depth + 1):
        pointer_bytes = data.address_bytes + _bytes_for(leaf)
        pointer_bytes += _bytes_for(below) if level > 1 else 0
        most = (node_bytes - 10 - pointer_bytes) // (record_bytes + pointer_bytes)
        levels.append((most, pointer_bytes))
        below = (most + 1) * below + most
    return levels


def _bytes_for(number: int) -> int:
    return (max(number, 1).bit_length() - 1) // 8 + 1


@dataclass(frozen=True)
class _Node:
    address: int
    level: int  # 0 is a leaf
    count: int = 0  # of names in this node itself, if the tree says so


def _visit(root: _Node, children: Callable[[_Node], Iterator[_Node]]) -> int:
    """Visit every node, each of them once; return the number of names."""
    seen: set[int] = set()
    found = 0
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.address in seen or len(seen) + len(waiting) > MOST_NODES:
            raise ValueError("branches that meet, or too many of them")
        seen.add(node.address)
        found += node.count
        waiting += children(node)
    return found
