"""Who failed, or which line: what a party concludes from its own and the others' accusations.

An accusation is signed by its author, who stays its author when others pass it on. A party that misses a message cannot
know whether the sender, its own line or the line between the two is at fault; several accusations together tell more.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sfumato.collaboration.messages import REASONS, UNBOUND, Accusation, UnreadableMessageError
from sfumato.collaboration.signatures import Signatures
from sfumato.errors import CollaborationError, on_one_line

SILENCE = frozenset({"silent", "gone", "unheard", "cut-off"})
"""Reasons that a broken line can have as well as a party."""

_MOST_BYTES = 20_000
_LINE_DOWN = "neither gets what the other sends; the line between them is probably down"


@dataclass(frozen=True)
class SignedAccusation:
    """An accusation, its author and its author's signature.

    Parameters
    ----------
    binding : bytes
        Of the author's session, zeros if its hello was not over.
    """

    accusation: Accusation
    author: str
    binding: bytes
    signature: bytes

    @classmethod
    def by(cls, author: str, accusation: Accusation, binding: bytes, signatures: Signatures) -> SignedAccusation:
        """Sign an accusation as this party."""
        return cls(accusation, author, binding, signatures.sign(_signed_content(accusation, author, binding)))

    def encode(self) -> bytes:
        """Write it as bytes."""
        said = self.accusation.encode().decode()
        return json.dumps([said, self.author, self.binding.hex(), self.signature.hex()]).encode()

    @classmethod
    def decode(
        cls, payload: bytes, *, sender: str, binding: bytes, roster: tuple[str, ...], signatures: Signatures
    ) -> SignedAccusation:
        """Read what a party sent: its own accusation, or another's that it passes on.

        Before the hello is over nothing ties an accusation to this session, and one of a former session could be passed
        on. It then counts as said by the sender.

        Raises
        ------
        UnreadableMessageError
            If it is of another form, of another session, or not signed by the author that it names.
        """
        try:
            if len(payload) > _MOST_BYTES:
                raise ValueError
            said, author, of_session, signature = json.loads(payload)
            found = cls(
                Accusation.decode(said.encode(), roster), author, bytes.fromhex(of_session), bytes.fromhex(signature)
            )
        except UnreadableMessageError:
            raise
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise UnreadableMessageError("garbage") from None
        if author not in roster or len(found.binding) != len(UNBOUND):
            raise UnreadableMessageError("garbage")
        content = _signed_content(found.accusation, author, found.binding)
        if not signatures.is_signed(author, content, found.signature):
            raise UnreadableMessageError("forgery")
        if UNBOUND in (binding, found.binding):
            return replace(found, author=sender)
        if found.binding != binding:
            raise UnreadableMessageError("other-session")
        return found


def _signed_content(accusation: Accusation, author: str, binding: bytes) -> bytes:
    return b"sfumato accusation\x00" + json.dumps([author, binding.hex(), accusation.encode().decode()]).encode()


@dataclass(frozen=True)
class Finding:
    """What went wrong, and who says so; with ``line``, between which two parties."""

    accusation: Accusation
    told_by: str | None
    line: tuple[str, str] | None = None

    def error(self, *, detail: str = "", may_be_published: bool = False) -> CollaborationError:
        """Exception that names the party, or both ends of a line, and the stage."""
        accusation = self.accusation
        problem = REASONS[accusation.reason] + (f" '{on_one_line(accusation.about)}'" if accusation.about else "")
        if self.line:
            problem = _LINE_DOWN
        elif self.told_by:
            problem += f" (says party '{on_one_line(self.told_by)}')"
        elif detail:
            problem += f" ({on_one_line(detail)})"
        return CollaborationError(
            problem,
            party=accusation.culprit,
            stage=accusation.stage,
            line=self.line,
            may_be_published=may_be_published,
        )


def judged(me: str, heard: Sequence[SignedAccusation]) -> Finding:
    """Conclude from accusations, at least one: what went wrong first, since a party that fails makes others late.

    Of two that miss each other's messages neither is named alone, but the line between them, unless others miss the
    same party. A party whom several others miss names its own line.

    Examples
    --------
    >>> a = SignedAccusation(Accusation("b", "counts", "silent", 4), "a", bytes(32), b"")
    >>> b = SignedAccusation(Accusation("a", "counts", "silent", 4), "b", bytes(32), b"")
    >>> judged("c", [a, b]).line, judged("c", [a]).line
    (('a', 'b'), None)
    """
    silences = [each for each in heard if each.accusation.reason in SILENCE]

    def accusers(culprit: str, round_number: int) -> set[str]:
        """Who misses a party in a round; in later ones all miss those who are held up."""
        return {
            each.author
            for each in silences
            if each.accusation.culprit == culprit and each.accusation.round == round_number
        }

    def rank(each: SignedAccusation) -> tuple[int, bool, bool, int]:
        said = each.accusation
        return said.round, each in silences, said.reason == "unheard", -len(accusers(said.culprit, said.round))

    first = min(heard, key=rank)
    said, author = first.accusation, first.author
    if first not in silences or said.culprit == author:
        return Finding(said, author if author not in (me, said.culprit) else None)
    missing_culprit = accusers(said.culprit, said.round)
    is_mutual = any((each.author, each.accusation.culprit) == (said.culprit, author) for each in silences)
    if is_mutual and missing_culprit == {author} and accusers(author, said.round) <= {said.culprit}:
        one, two = sorted((author, said.culprit))
        return Finding(said, author, (one, two))
    if said.culprit == me and len(missing_culprit) > 1:
        return Finding(replace(said, reason="not-heard"), None)
    return Finding(said, author if author != me else None)
