"""Signatures by the keys of the parties' certificates, so that an accusation keeps its author when it is passed on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes

from sfumato.collaboration.certificates import check_key, read_certificate
from sfumato.collaboration.roster import Roster
from sfumato.errors import InputError

_PSS = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=padding.PSS.DIGEST_LENGTH)


class Signatures(Protocol):
    """Signs as this party, and tells whether another party has signed something."""

    def sign(self, content: bytes) -> bytes:
        """Signature of this party."""
        ...

    def is_signed(self, party: str, content: bytes, signature: bytes) -> bool:
        """Whether a party has signed the content."""
        ...


class NoSignatures:
    """For parties in one process, none of which lies about who said something."""

    def sign(self, content: bytes) -> bytes:
        """Nothing."""
        return b""

    def is_signed(self, party: str, content: bytes, signature: bytes) -> bool:
        """Believe everything."""
        return True


class CertificateSignatures:
    """Signatures by the keys that the parties also use for their connections.

    Parameters
    ----------
    key : private key
        This party's own.
    public_keys : mapping of str to public key
        Every party's, by its name.
    """

    def __init__(self, key: PrivateKeyTypes, public_keys: Mapping[str, PublicKeyTypes]) -> None:
        self._key = key
        self._public_keys = public_keys

    @classmethod
    def of(cls, roster: Roster) -> Self:
        """Read the keys of a roster, whose files were checked.

        Raises
        ------
        InputError
            If this party's key is of a kind that cannot sign.
        """
        certificates = {peer.name: read_certificate(peer.certificate) for peer in (roster.me, *roster.peers)}
        key = check_key(roster.key, certificates[roster.me.name])
        if not isinstance(
            key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey
        ):
            raise InputError(
                "the private key is of a kind that cannot sign", path=roster.key, hint="have new ones made"
            )
        return cls(key, {name: certificate.public_key() for name, certificate in certificates.items()})

    def sign(self, content: bytes) -> bytes:
        """Signature of this party."""
        match self._key:
            case ec.EllipticCurvePrivateKey():
                return self._key.sign(content, ec.ECDSA(hashes.SHA256()))
            case rsa.RSAPrivateKey():
                return self._key.sign(content, _PSS, hashes.SHA256())
            case ed25519.Ed25519PrivateKey() | ed448.Ed448PrivateKey():
                return self._key.sign(content)
        raise AssertionError

    def is_signed(self, party: str, content: bytes, signature: bytes) -> bool:
        """Whether a party has signed the content."""
        try:
            match self._public_keys.get(party):
                case ec.EllipticCurvePublicKey() as key:
                    key.verify(signature, content, ec.ECDSA(hashes.SHA256()))
                case rsa.RSAPublicKey() as key:
                    key.verify(signature, content, _PSS, hashes.SHA256())
                case ed25519.Ed25519PublicKey() | ed448.Ed448PublicKey() as key:
                    key.verify(signature, content)
                case _:
                    return False
        except InvalidSignature:
            return False
        return True
