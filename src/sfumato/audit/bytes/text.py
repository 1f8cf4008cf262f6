"""Released text is parsed and written again, block by block: the bytes must be the same.

Only texts that the canonical writer writes come out of that as they went in, so it does not matter how forgiving the
parser is: blanks around cells, other line ends, needless quotes, blank lines, comments and second spellings of
"missing" are lost on the way, and the bytes differ. ``docs/canonical-form.md`` specifies the form.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.audit.bytes.compared import CHUNK_BYTES, Compared, NotAccountedError, require
from sfumato.errors import InputError, InvalidParameterError
from sfumato.schema import Column, Schema
from sfumato.table.io.bytes import open_stored
from sfumato.table.io.csv import DelimitedBlocks, layout_of
from sfumato.table.io.json_lines import json_text
from sfumato.table.io.libsvm import label_text
from sfumato.table.io.text import Text, check_text
from sfumato.table.io.write import BlockWriter

BLOCK_BYTES = 4 << 20

_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"  # deflate, no name, no time, best compression, no system
_CHECKSUM_AND_SIZE = 8
_EXACT = 2**53

Tokens = Mapping[str, tuple[str, ...]]
"""For each column, in the order of the file, the texts that mean "missing"."""


def problem_of_text(path: Path, format: str, tokens: Tokens, features: Sequence[str]) -> tuple[str, str]:
    """Say in what way the content of a file is not the canonical text of its cells, and the SHA-256 of this content.

    The problem is empty if there is none. ``features`` are the 0/1 columns of a libsvm file, whose names are not in it.
    """
    content_format, is_packed = format.removesuffix(".gz"), format.endswith(".gz")
    problem = ""
    try:
        with cast("BinaryIO", gzip.open(path)) if is_packed else path.open("rb") as content:
            sink = Compared(content)
            try:
                with open_stored(path, most_held=0, in_blocks=True) as stored:
                    text = check_text(stored, "utf-8", is_declared=True)
                    if content_format == "libsvm":
                        _write_libsvm(text, features, sink)
                    elif content_format == "jsonl":
                        _write_json_lines(text, tokens, sink)
                    else:
                        _write_delimited(text, content_format, tokens, sink)
            except NotAccountedError as error:
                problem = str(error)
            except InputError:
                problem = "it cannot be parsed as the stated columns"
            sha256 = sink.finish()
    except (gzip.BadGzipFile, EOFError, zlib.error):
        return "it is a damaged gzip file, or none", ""
    if not problem and not sink.is_same:
        problem = f"line {sink.n_lines + 1:,} is not what the canonical writer makes of its cells"
    return problem, sha256


def _write_delimited(text: Text, format: str, tokens: Tokens, sink: Compared) -> None:
    layout = layout_of(text, delimiter="\t" if format == "tsv" else ",", header=True)
    require(layout.names == list(tokens), "the header is not the canonical line of the stated column names")
    schema = Schema.of(Column(name, missing=own) for name, own in tokens.items())
    with BlockWriter(
        cast("BinaryIO", sink), format, schema, dict.fromkeys(tokens, pa.array([], pa.string()))
    ) as writer:
        for block in DelimitedBlocks(text, layout, BLOCK_BYTES)(range(len(tokens))):
            writer.write({name: _known(cells, tokens[name]) for name, cells in zip(tokens, block, strict=True)})


def _known(cells: pa.DictionaryArray, tokens: Sequence[str]) -> pa.DictionaryArray:
    """Cells without blanks around them, of which those that mean "missing" are null."""
    texts = pc.utf8_trim_whitespace(cells.dictionary)
    is_missing = pc.is_in(texts, value_set=pa.array(tokens, pa.string()))
    return pa.DictionaryArray.from_arrays(cells.indices, pc.if_else(is_missing, None, texts))


def _write_json_lines(text: Text, tokens: Tokens, sink: Compared) -> None:
    names = list(tokens)
    keys = [json.dumps(name, ensure_ascii=False) + ":" for name in names]
    seen: dict[str, set[object]] = {name: set() for name in names}
    for number, line in enumerate(text.open(), start=1):
        try:
            pairs = json.loads(line, object_pairs_hook=list)
        except (ValueError, RecursionError):
            raise NotAccountedError(f"line {number:,} is not JSON") from None
        is_object = isinstance(pairs, list) and all(isinstance(pair, tuple) for pair in pairs)
        odd_keys = f"line {number:,} is not an object of the stated columns in their order"
        require(is_object and [key for key, _ in pairs] == names, odd_keys)
        written: list[bytes] = []
        for name, key, (_, cell) in zip(names, keys, pairs, strict=True):
            value = as_read(cell, tokens[name])
            kind = _WHOLE if isinstance(value, int | float) and abs(value) <= _EXACT and value % 1 == 0 else type(value)
            kind = bool if isinstance(value, bool) else kind
            if value is not None and kind not in seen[name]:
                seen[name].add(kind)
                mixed = f"line {number:,} mixes texts, numbers and truth values in a column"
                require(any(seen[name] <= kinds for kinds in _KINDS_OF_A_COLUMN), mixed)
            try:
                written.append((key + json_text(value, name)).encode())
            except (InvalidParameterError, UnicodeEncodeError):
                raise NotAccountedError(f"line {number:,} holds an endless number or half a character") from None
        sink.write(b"{" + b",".join(written) + b"}\n")


_WHOLE = "whole"
# Up to 2**53 a whole number is written in one way, beyond in another if the column is one of doubles.
_KINDS_OF_A_COLUMN: Sequence[set[object]] = ({str}, {bool}, {_WHOLE, int}, {_WHOLE, float})


def as_read(cell: object, tokens: Sequence[str]) -> object:
    """Give a cell as it would be read: without blanks around a text, none where it means "missing"."""
    if not isinstance(cell, str):
        return cell
    text = cell.strip()
    return None if not text or text in tokens else text


def _write_libsvm(text: Text, features: Sequence[str], sink: Compared) -> None:
    numbered = [re.fullmatch(r"f(0|[1-9]\d{0,8})", name) for name in features]
    own = [int(match[1]) for match in numbered if match]
    expected = set(own if len(own) == len(features) else range(1, len(features) + 1))
    with_ones: set[int] = set()
    silent: set[int] = set()
    for number, line in enumerate(text.open(), start=1):
        try:
            label, *pairs = line.decode().split()
            spelled = label_text(float(label))
            cells = {int(index): float(value) for index, value in (pair.split(":") for pair in pairs)}
        except ValueError:
            raise NotAccountedError(f"line {number:,} is not a label and INDEX:VALUE pairs") from None
        require(math.isfinite(float(label)), f"line {number:,} has a label that is no number")
        ones = {index for index, value in cells.items() if value}
        with_ones |= ones
        # Only the first line names features without any one, for readers that have to know of them.
        silent = cells.keys() - ones if number == 1 else silent
        shown = sorted(ones | silent if number == 1 else ones)
        sink.write((spelled + "".join(f" {i}:{int(i in ones)}" for i in shown) + "\n").encode())
    is_exact = with_ones <= expected and silent == expected - with_ones
    require(is_exact, "its indices are not those of the stated features")


def gzip_framing(path: Path) -> tuple[str, bool, str]:
    """Judge what is around the content of a gzip file of canonical text.

    Returns
    -------
    problem : str
        What is not as in every release; empty if nothing is.
    is_same : bool
        Whether the zlib at hand makes the very bytes of the file.
    sha256 : str
    """
    with path.open("rb") as file, path.open("rb") as stored:
        sink = Compared(stored)
        if file.read(len(_GZIP_HEADER)) != _GZIP_HEADER:
            return "the gzip header holds more than it must, or there is none", False, sink.finish()
        inflating = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            with gzip.GzipFile(filename="", mode="wb", fileobj=sink, mtime=0) as zipped:
                while not inflating.eof and (piece := inflating.unconsumed_tail or file.read(CHUNK_BYTES)):
                    zipped.write(inflating.decompress(piece, CHUNK_BYTES))
        except zlib.error:
            return "it is a damaged gzip file", False, sink.finish()
        n_after = len(inflating.unused_data) + path.stat().st_size - file.tell()
        sha256 = sink.finish()
    is_one = inflating.eof and n_after == _CHECKSUM_AND_SIZE
    return "" if is_one else "bytes follow the first gzip member, or it has no end", sink.is_same, sha256
