"""Whether all parties were told the same: hashes of what each received, compared by everyone."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping

from sfumato.collaboration.session import Session

_HASH_BYTES = 32


def check_all_told_the_same(session: Session, stage: str, bodies: Mapping[str, bytes]) -> None:
    """Compare, in one round, what every party received from every party; end the session if anything differs.

    Parameters
    ----------
    session : Session
        The session.
    stage : str
        Name of the round.
    bodies : mapping of str to bytes
        What each party broadcast, as it arrived here, this party's own included.

    Notes
    -----
    Without signatures a contradiction between a sender and one receiver can be the fault of either. The party that
    is part of every contradiction is named; of two such parties, this party trusts itself, and else takes the sender.
    """
    own = b"".join(hashlib.sha256(bodies[name]).digest() for name in session.roster)
    reports = {}
    for reporter, report in session.broadcast(stage, own, largest=len(own)).items():
        if len(report) != len(own):
            session.accuse(reporter, stage, "wrong-length")
        reports[reporter] = [report[start : start + _HASH_BYTES] for start in range(0, len(report), _HASH_BYTES)]
    contradictions = _contradictions(session.roster, reports)
    if contradictions:
        culprit, is_sender = _culprit(session.me, contradictions)
        session.accuse(culprit, stage, "equivocation" if is_sender else "false-report")


def check_all_have_the_same(session: Session, stage: str, content: bytes) -> None:
    """Compare a hash of what all parties must hold, such as the result, before anybody acts on it."""
    hashes = session.broadcast(stage, hashlib.sha256(content).digest(), largest=_HASH_BYTES)
    if odd := odd_one_out(hashes):
        session.accuse(odd, stage, "result")


def odd_one_out(held: Mapping[str, bytes]) -> str | None:
    """Party that holds something else than most; None if all hold the same.

    In a tie what the first party of the roster holds counts as what most hold, so all parties name the same one.

    Examples
    --------
    >>> odd_one_out({"a": b"x", "b": b"y", "c": b"x"})
    'b'
    """
    usual = Counter(held[name] for name in sorted(held)).most_common(1)[0][0]
    return next((name for name in sorted(held) if held[name] != usual), None)


def _contradictions(roster: tuple[str, ...], reports: Mapping[str, list[bytes]]) -> list[tuple[str, str]]:
    """Pairs (sender, reporter) where the reporter received something else from the sender than most did."""
    found = []
    for place, sender in enumerate(roster):
        told = {reporter: reports[reporter][place] for reporter in roster}
        usual = Counter(told.values()).most_common(1)[0][0]
        found += [(sender, reporter) for reporter in roster if told[reporter] != usual]
    return found


def _culprit(me: str, contradictions: list[tuple[str, str]]) -> tuple[str, bool]:
    sender, reporter = contradictions[0]
    sender_explains = all(sender in pair for pair in contradictions)
    reporter_explains = all(reporter in pair for pair in contradictions)
    if reporter_explains and reporter != me and (sender == me or not sender_explains):
        return reporter, False
    return sender, True
