"""From a party's file to an open session, and from its data to a table in the roles of the shared schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sfumato.collaborate.config import PartyConfig
from sfumato.collaborate.session.session import Session
from sfumato.collaborate.session.transcript import Transcript
from sfumato.collaborate.shared_schema import SharedSchema
from sfumato.collaborate.transport.messages import OVERHEAD_BYTES, SIZE_LIMIT, CertificateSignatures
from sfumato.collaborate.transport.tls import TlsChannel
from sfumato.errors import CollaborationError, InvalidParameterError, OutputError, SchemaError
from sfumato.manifest import AnyTable
from sfumato.schema import Role
from sfumato.table.coding import Table


@contextmanager
def joined(
    config: PartyConfig,
    *,
    transcript: Transcript | None = None,
    size_limit: int = SIZE_LIMIT,
) -> Iterator[Session]:
    """Connect with all parties and open the session; every failure inside ends it for all of them.

    A message of more than ``size_limit`` bytes is refused before it is read.

    Raises
    ------
    InputError
        If a certificate or the private key cannot be used.
    OutputError
        If the transcript cannot be written, before anybody is called.
    CollaborationError
        If a party cannot be reached or is not accepted.
    """
    record = transcript or Transcript()
    record.describe(party=config.me, roster=config.roster.names, session=config.session)
    channel = TlsChannel(
        config.roster,
        listen_host=config.listen_host,
        start_timeout=config.start_timeout,
        send_timeout=config.timeout,
        max_body_bytes=size_limit,
        on_connected=record.watch.connected,
    )
    channel.expect_at_most(OVERHEAD_BYTES)  # until the first round says what it expects: a greeting is short
    signatures = CertificateSignatures.of(config.roster)
    record.open()
    try:
        channel.open()
    except CollaborationError as exc:
        record.end(outcome="aborted", culprit=exc.party, stage=exc.stage)
        raise
    except BaseException:
        record.end(outcome="stopped", stage="start")
        raise
    try:
        with Session(
            config.me,
            config.roster.names,
            channel,
            timeout=config.timeout,
            transcript=record,
            signatures=signatures,
        ) as session:
            yield session
    finally:
        record.end(outcome="stopped")  # for one that was interrupted while it ended
        channel.close()


def check_outputs(outputs: Mapping[str, Path], inputs: Mapping[str, Path]) -> None:
    """Refuse a file to write that is one of those read, or another one to write: permission to replace is not meant so.

    Parameters
    ----------
    outputs, inputs : mapping of str to Path
        By what each is, in words that finish "is the …".

    Raises
    ------
    OutputError
        If two are the same file, by whatever names.
    """
    taken = dict(inputs)
    for what, path in outputs.items():
        for other, known in taken.items():
            if _same_file(path, known):
                problem = f"cannot be the {what}: it is the {other}"
                raise OutputError(problem, path=path, hint="choose another path; nothing was replaced")
        taken[what] = path


def _same_file(one: Path, two: Path) -> bool:
    try:
        return one.resolve() == two.resolve() or (one.exists() and two.exists() and one.samefile(two))
    except (OSError, RuntimeError, ValueError):  # paths that cannot be looked up are refused where they are used
        return False


def in_shared_roles(table: AnyTable, schema: SharedSchema, roles: Mapping[str, Role] | None = None) -> Table:
    """Give a party's columns the roles of the shared schema; columns that it does not name need one of ``roles``.

    For columns outside the features ``roles`` goes before the schema's own.

    Raises
    ------
    SchemaError
        If a column of the schema is missing, or one of the table has no role.
    """
    plain = plain_table(table)
    given = {name: role for name, role in schema.roles.items() if name in plain.schema.names()} | dict(roles or {})
    shared = {schema.target.name: Role.TARGET} | dict.fromkeys(schema.names, Role.QUASI_IDENTIFIER)
    for name, role in given.items():
        if shared.get(name, role) is not role or (name not in shared and role in shared.values()):
            raise InvalidParameterError(f"the role of '{name}'", f"got {role}", allowed="that of the shared schema")
    for name in plain.schema.names():
        if name not in shared and name not in given:
            problem = "is not in the shared schema and has no role"
            hint = "give it one: identifier and sensitive keep it back, other publishes it unchanged"
            raise SchemaError(problem, column=name, hint=hint, remedy=("roles",))
    return plain.with_schema(plain.schema.with_roles(given | shared))


def plain_table(table: AnyTable) -> Table:
    """Refuse a sparse 0/1 table, whose features have no values to agree on."""
    if not isinstance(table, Table):
        problem = "is a sparse 0/1 table; parties can only agree on columns of a plain table"
        raise SchemaError(problem)
    return table
