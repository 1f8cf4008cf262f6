"""Whether the bytes of a manifest were signed by whoever holds a key: Ed25519 (RFC 8032), detached.

The extra ``collaborate`` brings the package ``cryptography``, which is loaded only here and where manifests are signed.
"""

from __future__ import annotations

from pathlib import Path

from sfumato.audit.checks import Check
from sfumato.errors import InputError


def check_signature(manifest_path: str | Path, signature: str | Path, public_key: str | Path) -> Check:
    """Check the signature of a manifest's bytes, as they are on disk, under a public key in PEM.

    Raises
    ------
    InputError
        If a file cannot be read, or the key is no Ed25519 key.
    """
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(_content(public_key))
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        problem = "is not a public Ed25519 key in PEM"
        raise InputError(problem, path=public_key, hint="openssl pkey -in KEY -pubout makes one of a private key")
    try:
        key.verify(_content(signature), _content(manifest_path))
    except InvalidSignature:
        return Check("signature", False, "the signature is not that of this manifest by this key")
    return Check("signature", True, "the manifest was signed by the holder of this key, and not changed since")


def _content(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as exc:
        raise InputError(f"cannot be read ({exc.strerror})", path=path) from None
