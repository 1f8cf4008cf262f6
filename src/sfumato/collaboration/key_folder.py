"""A folder from which every party of a small group can start: keys, certificates and one file for each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sfumato.atomic import check_writable, explained_writing, write_atomically
from sfumato.collaboration.certificates import check_name
from sfumato.collaboration.config import party_config_text
from sfumato.collaboration.keys import AUTHORITY_NAME, KeyFiles, make_keys
from sfumato.collaboration.roster import Peer
from sfumato.collaboration.session import checked_roster
from sfumato.errors import InvalidParameterError, OutputError

FIRST_PORT = 7443


def make_key_folder(
    folder: Path,
    names: Sequence[str],
    places: Sequence[str] | None = None,
    *,
    session: str = "first",
    valid_days: int = 90,
    force: bool = False,
) -> dict[str, KeyFiles]:
    """Make keys and a file ``<name>.toml`` for every party.

    Parameters
    ----------
    folder : Path
        Made if it is not there, readable by its owner only.
    places : sequence of str or None
        ``host`` or ``host:port`` of each party, in the order of ``names``; this machine if None.

    Raises
    ------
    CollaborationError
        If there are fewer than 3 parties.
    OutputError
        If the folder is a file, or a file exists and ``force`` is off, before any file is written.
    """
    given = ["127.0.0.1"] * len(names) if places is None else list(places)
    if len(given) != len(names):
        raise InvalidParameterError("hosts", f"got {len(given)}", allowed=f"one for each of the {len(names)} parties")
    _check_session_and_names(session, names)
    where = {
        name: _host_and_port(place, FIRST_PORT + i) for i, (name, place) in enumerate(zip(names, given, strict=True))
    }
    peers = [Peer(name, host, port, Path(f"{name}.crt")) for name, (host, port) in where.items()]
    if folder.exists() and not folder.is_dir():
        problem = "is a file, not a folder"
        raise OutputError(problem, path=folder, hint="name a folder; it is made if it is not there")
    with explained_writing(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in names:
        check_writable(folder / f"{name}.toml", force=force)
    hosts = {name: [host] for name, (host, _) in where.items()}
    files = make_keys(folder, names, hosts=hosts, valid_days=valid_days, force=force)
    for name in names:
        key, ca = Path(files[name].key.name), Path(files[AUTHORITY_NAME].certificate.name)
        text = party_config_text(name, session, peers, key=key, ca=ca)
        write_atomically(folder / f"{name}.toml", text.encode(), force=force)
    return files


def _check_session_and_names(session: str, names: Sequence[str]) -> None:
    if not session.strip():
        raise InvalidParameterError("session", "got none", allowed="a name that all parties share")
    for name in names:
        check_name(name)
        if names.count(name) > 1:
            raise InvalidParameterError("parties", f"'{name}' is there twice", allowed="different names")
    checked_roster(names[0], names)


def _host_and_port(place: str, default: int) -> tuple[str, int]:
    """Part ``host:port``; the host may be an IPv6 address in brackets.

    Examples
    --------
    >>> _host_and_port("a.example:7000", 1), _host_and_port("[::1]:7000", 1), _host_and_port("::1", 1)
    (('a.example', 7000), ('::1', 7000), ('::1', 1))
    """
    host, colon, port = place.rpartition(":")
    if place.startswith("[") and place.endswith("]"):
        return place[1:-1], default
    if not colon or (":" in host and not host.startswith("[")):
        return place, default
    if not port.isdecimal():
        raise InvalidParameterError("hosts", "got another port", allowed="HOST or HOST:PORT")
    return host.strip("[]"), int(port)
