"""A party's own file, ``party.toml``: who it is, where all parties are reached, and by which certificates.

It holds names, addresses and paths, never a secret: the private key is named by its path.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.collaborate.roster import Peer, Roster
from sfumato.collaborate.session.session import checked_roster
from sfumato.errors import InputError, InvalidParameterError
from sfumato.project.file import parse_toml, toml_text

ROUND_SECONDS = 60.0
START_SECONDS = 300.0

_MOST_SECONDS = 7 * 24 * 3600.0
_WORDS: dict[Any, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    dict: "a table",
    list: "a list of tables, each written as [[party]]",
}
_KEYS = {
    "me": str,
    "session": str,
    "ca": str,
    "certificate": str,
    "key": str,
    "schema": str,
    "output": str,
    "timeout": float,
    "start_timeout": float,
    "listen": dict,
    "party": list,
}
_LISTEN_KEYS = {"host": str, "port": int}
_PARTY_KEYS = {"name": str, "host": str, "port": int, "certificate": str}


@dataclass(frozen=True)
class PartyConfig:
    """A loaded file.

    Parameters
    ----------
    session : str
        Name of the session, which all parties must give alike.
    roster : Roster
        All parties; the port of this party is the one it listens on.
    listen_host : str
        Address to listen on.
    timeout : float
        Seconds that one round may take.
    start_timeout : float
        Seconds to wait for parties that are not up yet.
    path : Path or None
        The file itself.
    schema : Path or None
        Shared schema.
    output : Path or None
        Release to write.
    """

    session: str
    roster: Roster
    listen_host: str
    timeout: float = ROUND_SECONDS
    start_timeout: float = START_SECONDS
    path: Path | None = None
    schema: Path | None = None
    output: Path | None = None

    @property
    def me(self) -> str:
        """Name of this party."""
        return self.roster.me.name

    @property
    def files(self) -> dict[str, Path]:
        """All files that are read but the data, by what they are; none of them may be written to."""
        roster = self.roster
        given = {"party's own file": self.path, "shared schema": self.schema, "private key": roster.key}
        given |= {f"certificate of '{peer.name}'": peer.certificate for peer in (roster.me, *roster.peers)}
        given |= {"authority's certificate": roster.ca}
        return {what: path for what, path in given.items() if path is not None}


def load_party_config(path: str | Path) -> PartyConfig:
    """Read a party's file strictly; files that it names are looked up in its folder.

    Raises
    ------
    InputError
        If the file cannot be read, or an entry is missing, unknown or of the wrong type.
    CollaborationError
        If there are fewer than 3 parties.
    """
    path = Path(path)
    content = _parsed(path)
    _check_keys(path, "the file", content, _KEYS, needed=("me", "session", "ca", "key", "party"))
    listen = content.get("listen", {})
    _check_keys(path, "[listen]", listen, _LISTEN_KEYS)
    if not content["session"].strip():
        raise InputError("'session' is empty", path=path, hint="give the session a name that all parties share")
    peers = {peer.name: peer for peer in (_peer(path, entry) for entry in content["party"])}
    if len(peers) < len(content["party"]):
        raise InputError("two [[party]] have the same name", path=path)
    me = _own_entry(path, content, peers, listen)
    others = tuple(peer for name, peer in peers.items() if name != me.name)
    checked_roster(me.name, peers)
    try:
        roster = Roster(me, path.parent / content["key"], others, path.parent / content["ca"])
    except InvalidParameterError as exc:
        raise InputError(str(exc).removesuffix("."), path=path) from None
    return PartyConfig(
        session=content["session"],
        roster=roster,
        listen_host=listen.get("host", me.host),
        timeout=_seconds(path, content, "timeout", ROUND_SECONDS),
        start_timeout=_seconds(path, content, "start_timeout", START_SECONDS),
        path=path,
        schema=path.parent / content["schema"] if "schema" in content else None,
        output=path.parent / content["output"] if "output" in content else None,
    )


def party_config_text(
    me: str,
    session: str,
    peers: Iterable[Peer],
    *,
    key: Path,
    ca: Path,
    timeout: float = ROUND_SECONDS,
    start_timeout: float = START_SECONDS,
) -> str:
    """Write a party's file.

    Examples
    --------
    >>> peers = [Peer("a", "10.0.0.1", 7001, Path("a.crt"))]
    >>> print(party_config_text("a", "spring", peers, key=Path("a.key"), ca=Path("authority.crt")))
    # One party of a collaboration. The list of parties and the session are the same in every party's file.
    me = "a"
    session = "spring"
    ca = "authority.crt"
    key = "a.key"
    # schema = "schema.json"  # if the command does not name it
    # output = "release.csv"  # if the command does not name it
    timeout = 60  # seconds for one round
    start_timeout = 300  # seconds to wait for parties that are not up yet
    # [listen]  # where to listen, if not where the others find this party
    # host = "0.0.0.0"
    <BLANKLINE>
    [[party]]
    name = "a"
    host = "10.0.0.1"
    port = 7001
    certificate = "a.crt"
    <BLANKLINE>
    """
    lines = [
        "# One party of a collaboration. The list of parties and the session are the same in every party's file.",
        f"me = {toml_text(me)}",
        f"session = {toml_text(session)}",
        f"ca = {toml_text(ca.as_posix())}",
        f"key = {toml_text(key.as_posix())}",
        '# schema = "schema.json"  # if the command does not name it',
        '# output = "release.csv"  # if the command does not name it',
        f"timeout = {timeout:g}  # seconds for one round",
        f"start_timeout = {start_timeout:g}  # seconds to wait for parties that are not up yet",
        "# [listen]  # where to listen, if not where the others find this party",
        '# host = "0.0.0.0"',
    ]
    for peer in peers:
        lines += ["", "[[party]]", f"name = {toml_text(peer.name)}", f"host = {toml_text(peer.host)}"]
        lines += [f"port = {peer.port}", f"certificate = {toml_text(peer.certificate.as_posix())}"]
    return "\n".join(lines) + "\n"


def _parsed(path: Path) -> dict[str, Any]:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        hint = "make one for every party"
        raise InputError("there is no such party file", path=path, hint=hint, remedy=("party_files",)) from None
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "not a path"
        raise InputError(f"cannot be read ({reason})", path=path) from None
    return parse_toml(path, raw)


def _check_keys(
    path: Path, where: str, entry: Mapping[str, Any], known: Mapping[str, type], *, needed: Iterable[str] = ()
) -> None:
    for key, value in entry.items():
        if key not in known:
            nearest = difflib.get_close_matches(key, list(known), n=1)
            hint = f"did you mean '{nearest[0]}'?" if nearest else f"known: {', '.join(known)}"
            raise InputError(f"{where} has an unknown entry '{key}'", path=path, hint=hint)
        wanted = known[key]
        is_right = isinstance(value, (int, float) if wanted is float else wanted) and not isinstance(value, bool)
        if wanted is list:
            is_right = is_right and all(isinstance(item, dict) for item in value)
        if not is_right:
            raise InputError(f"'{key}' in {where} must be {_WORDS[wanted]}", path=path)
    for key in needed:
        if key not in entry:
            raise InputError(f"{where} lacks '{key}'", path=path)


def _peer(path: Path, entry: Mapping[str, Any]) -> Peer:
    where = f"[[party]] {entry['name']!r}" if isinstance(entry.get("name"), str) else "a [[party]]"
    _check_keys(path, where, entry, _PARTY_KEYS, needed=_PARTY_KEYS)
    try:
        return Peer(entry["name"], entry["host"], entry["port"], path.parent / entry["certificate"])
    except InvalidParameterError as exc:
        raise InputError(f"{where}: {str(exc).removesuffix('.')}", path=path) from None


def _own_entry(path: Path, content: Mapping[str, Any], peers: Mapping[str, Peer], listen: Mapping[str, Any]) -> Peer:
    if content["me"] not in peers:
        raise InputError("'me' is none of the parties", path=path, hint=f"it is one of {', '.join(peers)}")
    listed = peers[content["me"]]
    certificate = path.parent / content["certificate"] if "certificate" in content else listed.certificate
    try:
        return Peer(listed.name, listed.host, listen.get("port", listed.port), certificate)
    except InvalidParameterError as exc:
        raise InputError(f"[listen]: {str(exc).removesuffix('.')}", path=path) from None


def _seconds(path: Path, content: Mapping[str, Any], key: str, default: float) -> float:
    seconds = float(content.get(key, default))
    if not math.isfinite(seconds) or not 0 < seconds <= _MOST_SECONDS:
        raise InputError(f"'{key}' must be above 0 and at most {_MOST_SECONDS:,.0f} seconds", path=path)
    return seconds
