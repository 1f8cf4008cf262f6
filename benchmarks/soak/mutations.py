"""Damage to files: bytes changed, cut, doubled and spliced, JSON values replaced, members of archives damaged."""

from __future__ import annotations

import copy
import gzip
import io
import json
import random
import zipfile
import zlib
from collections.abc import Callable, Sequence
from typing import Any

Damage = Callable[[random.Random, bytes], bytes]

TOKENS = (
    *(b"", b"\x00", b'"', b"'", b'""', b"\n", b"\r", b"\r\n", b"\x1e", b",", b";", b"\t", b"|", b" ", b"%", b"@", b"#"),
    *(
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\xfe\xff",
        b"\xff",
        b"\xed\xa0\x80",
        b"\xe2\x80\xa8",
        b"\xc2\x85",
        b"\xf0\x9f\x98\x80",
    ),
    *(
        b"0",
        b"-1",
        b"1e999",
        b"-1e-999",
        b"nan",
        b"NaN",
        b"inf",
        b"-Infinity",
        b"9" * 25,
        b"9" * 5000,
        b"0x1F",
        b"1_000",
    ),
    *(
        b"18446744073709551616",
        b"-9223372036854775809",
        b"1.7976931348623159e308",
        b"2147483648",
        b"1,5",
        b"0001-01-01",
    ),
    *(
        b"true",
        b"null",
        b"[]",
        b"{}",
        b"[[",
        b"}}",
        b":",
        b"=",
        b"?",
        b"NA",
        b"*",
        b"[0, 5)",
        b"{a, b}",
        b"= 1",
        b"../x",
    ),
    *(b"a" * 70_000, b"[" * 3000, b'{"a":' * 3000, b"\\", b"\\u0000", b"\\ud800", b"<!ENTITY x SYSTEM 'f'>", b"&x;"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**63, 2**64, 10**30, -(2**63), 0.5, 1e308, float("nan"), float("inf"), -0.0),
    *("", " ", "\x00", "\ud800", "é", "a" * 5000, "1", "nan", "k", "../../x", "*", "[1, 2)", "{a, b}", "a,b", "-"),
    *([], {}, [None], [[]], [{}], ["a", "a"], [1, "a", None], {"": {}}, {"name": 3}, {"a": {"b": [1]}}, [0] * 1000),
)


def damaged(random_: random.Random, content: bytes, others: Sequence[bytes] = ()) -> bytes:
    """Damage bytes in one to four ways, or make up some, or splice them with others."""
    choice = random_.random()
    if choice < 0.03:
        return random_.randbytes(random_.choice((0, 1, 2, 10, 300, 5000)))
    if choice < 0.06 and others:
        return random_.choice(others)
    if choice < 0.12 and others:
        other = random_.choice(others)
        return content[: _place(random_, content)] + other[_place(random_, other) :]
    for _ in range(random_.choice((1, 1, 1, 2, 4))):
        content = random_.choice(_BYTES)(random_, content)
    return content


def _place(random_: random.Random, content: bytes) -> int:
    return random_.randrange(len(content) + 1)


def _span(random_: random.Random, content: bytes) -> tuple[int, int]:
    start = _place(random_, content)
    return start, min(len(content), start + random_.choice((1, 1, 2, 8, 60, 500)))


def _flip(random_: random.Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(random_.choice((1, 1, 3, 20)) if content else 0):
        changed[random_.randrange(len(changed))] ^= 1 << random_.randrange(8)
    return bytes(changed)


def _flip_near_the_end(random_: random.Random, content: bytes) -> bytes:
    """Change one byte of the last 600, where Parquet and archives keep their directory."""
    changed = bytearray(content)
    if changed:
        changed[-random_.randrange(1, min(600, len(changed)) + 1)] = random_.randrange(256)
    return bytes(changed)


def _insert(random_: random.Random, content: bytes) -> bytes:
    start = _place(random_, content)
    return content[:start] + random_.choice(TOKENS) + content[start:]


def _replace(random_: random.Random, content: bytes) -> bytes:
    start, end = _span(random_, content)
    return content[:start] + random_.choice(TOKENS) + content[end:]


def _cut(random_: random.Random, content: bytes) -> bytes:
    start, end = _span(random_, content)
    return content[:start] + content[end:]


def _truncate(random_: random.Random, content: bytes) -> bytes:
    return content[: _place(random_, content)]


def _double(random_: random.Random, content: bytes) -> bytes:
    start, end = _span(random_, content)
    return content[:end] + content[start:end] * random_.choice((1, 1, 2, 50)) + content[end:]


def _replace_word(random_: random.Random, content: bytes) -> bytes:
    """Replace one word or number as it stands, so that the shape around it stays."""
    words = content.replace(b",", b" ").replace(b'"', b" ").split()
    return content.replace(random_.choice(words), random_.choice(TOKENS), 1) if words else content


def _swap_lines(random_: random.Random, content: bytes) -> bytes:
    lines = content.split(b"\n")
    one, other = random_.randrange(len(lines)), random_.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


_BYTES: tuple[Damage, ...] = (
    *(_flip, _flip_near_the_end, _insert, _replace, _cut, _truncate, _double, _replace_word, _swap_lines),
)


def damaged_json(random_: random.Random, content: bytes, others: Sequence[bytes] = ()) -> bytes:
    """Replace, drop or add values in a JSON text; now and then damage its bytes instead."""
    if random_.random() < 0.3:
        return damaged(random_, content, others)
    data = json.loads(content)
    for _ in range(random_.choice((1, 1, 2, 5))):
        data = _changed_value(random_, data)
    return json.dumps(data).encode(errors="surrogatepass")


def _changed_value(random_: random.Random, data: Any) -> Any:
    holders = list(_holders(data))
    if not holders:
        return _value(random_)
    holder = random_.choice(holders)
    key = random_.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    what = random_.random()
    if what < 0.6:
        holder[key] = _value(random_)
    elif what < 0.75:
        del holder[key]
    elif what < 0.9:
        holder[key] = [holder[key]]
    elif isinstance(holder, dict):
        holder[random_.choice(("", "k", "x" * 300, *holder))] = _value(random_)
    else:
        holder.extend(holder[:50])
    return data


def _value(random_: random.Random) -> Any:
    return copy.deepcopy(random_.choice(VALUES))


def _holders(data: Any) -> Any:
    """Give all lists and objects in a JSON value that are not empty."""
    inside = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    if inside:
        yield data
    for value in inside:
        yield from _holders(value)


def damaged_lines_of_json(random_: random.Random, content: bytes, others: Sequence[bytes] = ()) -> bytes:
    """Damage one line of a file of JSON lines."""
    lines = content.splitlines()
    place = random_.randrange(len(lines))
    lines[place] = damaged_json(random_, lines[place], others)
    return b"\n".join(lines) + b"\n"


def damaged_gzip(random_: random.Random, content: bytes, others: Sequence[bytes] = ()) -> bytes:
    """Damage what is compressed, or the compressed bytes."""
    if random_.random() < 0.4:
        return damaged(random_, content, others)
    return gzip.compress(damaged(random_, gzip.decompress(content), others), mtime=0)


def damaged_archive(random_: random.Random, content: bytes, others: Sequence[bytes] = ()) -> bytes:
    """Damage one member of a workbook and close it properly, or damage the archive's own bytes."""
    if random_.random() < 0.3:
        return damaged(random_, content, others)
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(written, "w") as changed:
        names = archive.namelist()
        victim = random_.choice(names)
        for name in names:
            member = archive.read(name)
            if name == victim:
                if random_.random() < 0.1:
                    continue
                member = damaged(random_, member)
            changed.writestr(name, member, compress_type=zipfile.ZIP_DEFLATED, compresslevel=zlib.Z_BEST_SPEED)
    return written.getvalue()
