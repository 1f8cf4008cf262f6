"""What a party does before it calls anybody, and how much it lets in afterwards."""

import asyncio

import pytest

import sfumato
from sfumato.collaborate import selection_only
from sfumato.collaborate.config import load_party_config
from sfumato.collaborate.plan import Plan
from sfumato.collaborate.session import party
from sfumato.collaborate.session.joining import in_shared_roles
from sfumato.collaborate.session.party import take_part
from sfumato.collaborate.shared_schema import SharedSchema
from sfumato.collaborate.transport.messages import SIZE_LIMIT
from sfumato.collaborate.transport.tls import Incoming
from sfumato.errors import SchemaError
from sfumato.schema import Role
from unit.collaborate.groups import Group
from unit.collaborate.plain_sums import table_of


class CalledError(Exception):
    """Somebody is called."""


@pytest.fixture(scope="module")
def group(tmp_path_factory):
    return Group(tmp_path_factory.mktemp("group"))


@pytest.fixture
def calls(monkeypatch):
    """Note what a party does, in order, until it calls the others."""
    done = []

    def prepare(counts, **settings):
        done.append("prepare")

    def joined(config, **settings):
        done.append(settings["size_limit"])
        raise CalledError

    monkeypatch.setattr(selection_only, "prepare", prepare)
    monkeypatch.setattr(party, "joined", joined)
    return done


def start(group, plan, table=None, schema=None):
    own = in_shared_roles(sfumato.read_table(group.data("ann")), group.schema) if table is None else table
    take_part(load_party_config(group.config("ann")), own, schema or group.schema, plan)


def test_public_tables_are_computed_before_anybody_is_called(group, calls):
    with pytest.raises(CalledError):
        start(group, Plan(0.1, mode="selection-only", dry_run=True))

    assert calls == ["prepare", SIZE_LIMIT]


def test_no_message_may_be_much_longer_than_the_counts(group, calls):
    with pytest.raises(CalledError):
        start(group, Plan(0.1, dry_run=True))

    assert calls == [2**16 + 8 * group.schema.n_counts]


def test_a_feature_that_names_people_is_refused_whoever_wrote_the_schema(group, calls):
    cells = {"name": [f"n{i}" for i in range(40)], "sex": ["f", "m"] * 20, "y": ["0", "1"] * 20}
    table = table_of(cells, y=Role.TARGET)

    with pytest.raises(SchemaError, match="'name': has 40 values in 40 rows"):
        start(group, Plan(0.1, dry_run=True), table, SharedSchema.of_table(table))
    assert not calls


def test_a_packet_waits_until_it_fits_beside_what_is_unread():
    async def scene():
        incoming = Incoming("bob")
        await incoming.wait_for_room(600, 1000)
        second = asyncio.create_task(incoming.wait_for_room(600, 1000))
        for _ in range(3):
            await asyncio.sleep(0)
        has_waited = not second.done()
        incoming.mark_read(600)
        await asyncio.wait_for(second, 10)
        return has_waited

    assert asyncio.run(scene())
