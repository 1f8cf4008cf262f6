"""Reading and checking certificates: what other parties would refuse is said here, before anybody connects."""

from __future__ import annotations

import ipaddress
import os
import re
import shlex
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import NameOID

from sfumato.errors import InputError, InvalidParameterError

_OTHERS = 0o077  # what a file's group and all others may do with it
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")  # a file name everywhere, and what a common name may hold


def check_name(name: str) -> None:
    """Refuse a party's name that cannot be a file name or the common name of a certificate."""
    if not _NAME.fullmatch(name):
        allowed = "1 to 64 letters, digits, dots, dashes and underscores, with a letter or digit first"
        raise InvalidParameterError("the name of a party", f"got {name!r}", allowed=allowed)


def read_certificate(path: Path) -> x509.Certificate:
    """Read the one certificate in a PEM file.

    Raises
    ------
    InputError
        If the file cannot be read, is not a certificate, or holds several.
    """
    try:
        found = x509.load_pem_x509_certificates(path.read_bytes())
    except OSError as exc:
        problem = f"the certificate cannot be read ({exc.strerror})"
        raise InputError(problem, path=path) from None
    except ValueError:
        problem = "is not a certificate"
        raise InputError(problem, path=path, hint="a PEM file with one certificate is needed") from None
    if len(found) != 1:
        problem = f"holds {len(found)} certificates"
        raise InputError(problem, path=path, hint="trust exactly one authority, and give each party one certificate")
    return found[0]


def fingerprint(certificate: x509.Certificate) -> str:
    """SHA-256 of a certificate, in hexadecimal digits."""
    return certificate.fingerprint(hashes.SHA256()).hex()


def check_authority(path: Path, *, now: datetime | None = None) -> x509.Certificate:
    """Read an authority's certificate and check that it is one, and valid today.

    Raises
    ------
    InputError
        If it is not.
    """
    certificate = read_certificate(path)
    try:
        may_sign = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, ValueError):
        may_sign = False
    if not may_sign:
        problem = "is not the certificate of an authority"
        raise InputError(problem, path=path, hint="name the authority's certificate, not a party's")
    _check_period(certificate, path, now)
    return certificate


def check_certificate(
    path: Path, *, authority: x509.Certificate, name: str, host: str | None = None, now: datetime | None = None
) -> x509.Certificate:
    """Read a party's certificate and check what other parties would refuse it for.

    Parameters
    ----------
    path : Path
        PEM file.
    authority : Certificate
        Authority that must have signed it.
    name : str
        Party that it must name.
    host : str or None
        Host name or address that it must cover; None leaves this out.
    now : datetime or None
        When it must be valid; now if None.

    Raises
    ------
    InputError
        If it is signed by another authority, names another party or host, or is not valid at that time.
    """
    certificate = read_certificate(path)
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        problem = f"the certificate of party '{name}' is signed by another authority"
        raise InputError(
            problem, path=path, hint="all parties' certificates must come from the one authority"
        ) from None
    _check_period(certificate, path, now)
    common_names = [str(found.value) for found in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if common_names != [name]:
        problem = f"the certificate does not name party '{name}'"
        raise InputError(problem, path=path, hint="the common name of a certificate must be the party's name")
    if host is not None and not _covers(certificate, host):
        problem = f"the certificate of party '{name}' does not cover its host '{host}'"
        raise InputError(problem, path=path, hint="use a host it covers, or have a new certificate made for this one")
    return certificate


def check_key(path: Path, certificate: x509.Certificate) -> PrivateKeyTypes:
    """Read a private key and check that nobody else can read it and that it belongs to a certificate.

    Raises
    ------
    InputError
        If it cannot be read, is open to other users, has a password, or belongs to another certificate.
    """
    try:
        is_open = os.name == "posix" and path.stat().st_mode & _OTHERS
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except OSError as exc:
        problem = f"the private key cannot be read ({exc.strerror})"
        raise InputError(problem, path=path) from None
    except (ValueError, TypeError):
        problem = "is not a private key without a password"
        raise InputError(problem, path=path, hint="a PEM file is needed; protect it by its permissions") from None
    if is_open:
        problem = "the private key is open to other users of this machine"
        raise InputError(problem, path=path, hint=f"chmod 600 {shlex.quote(str(path))}")
    if key.public_key() != certificate.public_key():
        problem = "the private key does not belong to the certificate"
        raise InputError(problem, path=path, hint="name the key that was made with this certificate")
    return key


def _check_period(certificate: x509.Certificate, path: Path, now: datetime | None) -> None:
    moment = now or datetime.now(UTC)
    if moment > certificate.not_valid_after_utc:
        problem = f"the certificate expired on {certificate.not_valid_after_utc:%Y-%m-%d}"
        raise InputError(problem, path=path, hint="have a new one made")
    if moment < certificate.not_valid_before_utc:
        problem = f"the certificate is not valid before {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC"
        raise InputError(problem, path=path, hint="check this machine's clock")


def _covers(certificate: x509.Certificate, host: str) -> bool:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return False
    try:
        return ipaddress.ip_address(host) in names.get_values_for_type(x509.IPAddress)
    except ValueError:
        wanted = host.lower().rstrip(".")
        covered = [pattern.lower().rstrip(".") for pattern in names.get_values_for_type(x509.DNSName)]
        return any(c == wanted or (c.startswith("*.") and wanted.partition(".")[2] == c[2:]) for c in covered)
