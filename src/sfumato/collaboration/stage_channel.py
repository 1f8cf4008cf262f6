"""Channel inside a session, for a protocol that brings its own rounds: same binding, numbers and transcript."""

from __future__ import annotations

from sfumato.collaboration.session import Session


class StageChannel:
    """Channel whose messages all belong to one stage of a session; implements ``Channel``.

    Use it in place of the session's own channel, of which the session may have read ahead. Each peer's messages may
    be received by a thread of their own. Besides the errors of a channel, ``receive`` raises ``CollaborationError``
    when a party ends the session or breaks the protocol.

    Parameters
    ----------
    session : Session
        Session after the hello.
    stage : str
        Name of the stage, for errors and the transcript.
    """

    def __init__(self, session: Session, stage: str) -> None:
        self._session = session
        self._stage = stage

    def send(self, to: str, body: bytes) -> None:
        """Hand over a message to a party."""
        self._session.send(to, self._stage, body)

    def receive(self, sender: str, timeout: float) -> bytes:
        """Return the next message of a party."""
        return self._session.next_within(sender, self._stage, timeout)
