"""Certificates of the parties: one authority for a group, one certificate and private key for every party.

For tests and small groups. A group with an authority of its own brings its files; the checks of
:mod:`sfumato.collaborate.transport.certificates` apply to both.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sfumato.atomic import check_writable, explained_writing, write_atomically
from sfumato.collaborate.config import party_config_text
from sfumato.collaborate.roster import Peer
from sfumato.collaborate.session.session import checked_roster
from sfumato.collaborate.transport.certificates import check_name
from sfumato.errors import InvalidParameterError, OutputError

AUTHORITY_NAME = "authority"
LOOPBACK = ("localhost", "127.0.0.1", "::1")

_CLOCKS_DIFFER_BY = timedelta(minutes=5)
_LONGEST_DAYS = 3650


@dataclass(frozen=True)
class KeyFiles:
    """Where a certificate and its private key are."""

    certificate: Path
    key: Path


def make_keys(
    folder: Path,
    names: Iterable[str],
    *,
    hosts: Mapping[str, Iterable[str]] | None = None,
    valid_days: int = 90,
    force: bool = False,
) -> dict[str, KeyFiles]:
    """Make an authority and a certificate for every party: elliptic curve P-256, signed with SHA-256.

    Private keys are readable by their owner only. The authority's key can make further parties, so whoever keeps it
    must be trusted by all; each party needs the authority's certificate, all parties' certificates and its own key.

    Parameters
    ----------
    folder : Path
        An existing folder. The files are ``<name>.crt`` and ``<name>.key``, the authority's name is ``authority``.
    names : iterable of str
        Parties; a name becomes the common name of its certificate.
    hosts : mapping of str to iterable of str or None
        Host names and addresses under which a party is reached, besides this machine's loopback.
    valid_days : int
        How long everything is valid.
    force : bool
        Replace files that exist.

    Returns
    -------
    dict of str to KeyFiles
        The authority's files first, then the parties'.

    Raises
    ------
    OutputError
        If a file exists and ``force`` is off, before any file is written.
    """
    parties = list(names)
    if AUTHORITY_NAME in parties or len(set(parties)) < len(parties):
        problem = f"got '{AUTHORITY_NAME}' or a name twice"
        raise InvalidParameterError("names", problem, allowed=f"different names, none of them '{AUTHORITY_NAME}'")
    files = {name: _free_files(folder, name, force=force) for name in [AUTHORITY_NAME, *parties]}
    alternatives = {name: _host_names((hosts or {}).get(name, ())) for name in parties}
    if not 1 <= valid_days <= _LONGEST_DAYS:
        raise InvalidParameterError("valid_days", f"got {valid_days}", allowed=f"from 1 to {_LONGEST_DAYS}")
    now = datetime.now(UTC)
    period = now - _CLOCKS_DIFFER_BY, now + timedelta(days=valid_days)
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _certificate("sfumato authority", authority_key, period)
    _write(files[AUTHORITY_NAME], authority, authority_key, force=force)
    for name in parties:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _certificate(
            name, key, period, issuer=authority, issuer_key=authority_key, hosts=alternatives[name]
        )
        _write(files[name], certificate, key, force=force)
    return files


def _free_files(folder: Path, name: str, *, force: bool) -> KeyFiles:
    check_name(name)
    files = KeyFiles(folder / f"{name}.crt", folder / f"{name}.key")
    check_writable(files.certificate, force=force)
    check_writable(files.key, force=force)
    return files


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    period: tuple[datetime, datetime],
    *,
    issuer: x509.Certificate | None = None,
    issuer_key: ec.EllipticCurvePrivateKey | None = None,
    hosts: Iterable[x509.GeneralName] = (),
) -> x509.Certificate:
    """Make the certificate of a party, or of the authority itself: that one has no issuer."""
    subject, is_authority = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), issuer is None
    signing_key = issuer_key or key
    usage = x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(period[0])
        .not_valid_after(period[1])
        .add_extension(x509.BasicConstraints(is_authority, 0 if is_authority else None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()), critical=False)
    )
    if not is_authority:  # every party both listens and connects
        both_ends = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage(both_ends), critical=False)
    return builder.sign(signing_key, hashes.SHA256())


def _host_names(hosts: Iterable[str]) -> list[x509.GeneralName]:
    """Write hosts, and this machine's own names, as a certificate holds them."""
    found: list[x509.GeneralName] = []
    for host in dict.fromkeys([*hosts, *LOOPBACK]):
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            try:
                found.append(x509.DNSName(host))
            except ValueError:
                allowed = "host names in plain letters, or addresses"
                raise InvalidParameterError("hosts", "but one is not", allowed=allowed) from None
    return found


def _write(files: KeyFiles, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey, *, force: bool) -> None:
    unencrypted = serialization.NoEncryption()
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, unencrypted)
    public = certificate.public_bytes(serialization.Encoding.PEM)
    for path, content, mode in [(files.key, secret, 0o600), (files.certificate, public, 0o644)]:
        write_atomically(path, content, force=force, mode=mode)


# A folder from which every party of a small group can start: keys, certificates and one file for each.


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
    if not session.strip():
        raise InvalidParameterError("session", "got none", allowed="a name that all parties share")
    for name in names:
        check_name(name)
        if names.count(name) > 1:
            raise InvalidParameterError("parties", f"'{name}' is there twice", allowed="different names")
    checked_roster(names[0], names)
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
        raise InvalidParameterError("hosts", f"got {place!r}", allowed="HOST or HOST:PORT")
    return host.strip("[]"), int(port)
