"""A detached signature of a manifest: Ed25519 (RFC 8032) over its bytes, in a file of 64 bytes beside it."""

from __future__ import annotations

from pathlib import Path

from sfumato.atomic import write_atomically
from sfumato.errors import InputError
from sfumato.publishing.reaudit import read_manifest


def sign_manifest(
    manifest_path: str | Path, key: str | Path, output: str | Path | None = None, *, force: bool = False
) -> Path:
    """Sign a manifest with a private Ed25519 key in PEM, without a passphrase; returns where the signature is.

    Since the manifest holds the SHA-256 of the released file, this signs both.

    Raises
    ------
    ManifestError
        If it is no manifest.
    InputError
        If the key cannot be used.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    path = Path(manifest_path)
    read_manifest(path)
    try:
        private = load_pem_private_key(Path(key).read_bytes(), password=None)
    except OSError as exc:
        raise InputError(f"cannot be read ({exc.strerror})", path=key) from None
    except (ValueError, TypeError, UnsupportedAlgorithm):  # the second: it has a passphrase
        private = None
    if not isinstance(private, Ed25519PrivateKey):
        problem = "is not a private Ed25519 key in PEM without a passphrase"
        raise InputError(problem, path=key, hint="openssl genpkey -algorithm ed25519 makes one")
    target = Path(output) if output is not None else path.with_name(path.name + ".sig")
    write_atomically(target, private.sign(path.read_bytes()), force=force)
    return target
