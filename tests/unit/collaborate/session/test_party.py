"""A party's whole way: what all agree on, what each publishes, and what stops it before it connects."""

import json
import math
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

import sfumato
from sfumato.collaborate import mpyc_channel, plan
from sfumato.collaborate import selection_only as selection_tables
from sfumato.collaborate.config import load_party_config
from sfumato.collaborate.plan import Plan
from sfumato.collaborate.session.joining import in_shared_roles
from sfumato.collaborate.session.party import take_part
from sfumato.collaborate.session.transcript import Transcript
from sfumato.collaborate.shared_schema import SharedSchema
from sfumato.errors import InvalidParameterError, OutputError, PrivacyNotAchievableError, SchemaError
from sfumato.manifest import in_three_digits
from sfumato.publishing.manifest_file import manifest_path_for
from sfumato.publishing.reaudit import audit_published
from unit.collaborate.groups import NAMES, Group, small_table
from unit.collaborate.sessions import HeardRounds

THETA = 0.1


@pytest.fixture(scope="module")
def keyed_group(tmp_path_factory):
    return Group(tmp_path_factory.mktemp("group"))


@pytest.fixture
def group(keyed_group):
    for path in [*keyed_group.folder.glob("*-release*"), *keyed_group.folder.glob("*.jsonl")]:
        path.unlink()
    return keyed_group


def part(group, name):
    return in_shared_roles(sfumato.read_table(group.data(name)), group.schema)


def together(group, plans, *, replaces_transcripts=True, hear=None, **options):
    """Run all parties in threads; gives each one's result, or the exception it ended with."""

    def one(name):
        watch = HeardRounds(hear) if hear else None
        record = Transcript(group.transcript(name), force=replaces_transcripts, watch=watch)
        try:
            return take_part(
                load_party_config(group.config(name)),
                part(group, name),
                group.schema,
                plans[name],
                output=group.output(name),
                transcript=record,
                **options,
            )
        except Exception as exc:
            return exc

    with ThreadPoolExecutor(len(group.names)) as threads:
        return dict(zip(group.names, threads.map(one, group.names), strict=True))


def all_with(plan):
    return dict.fromkeys(NAMES, plan)


def bits(cells):
    shares = [count / len(cells) for count in Counter(cells).values()]
    return -sum(share * math.log2(share) for share in shares)


def naive_choice(group, thresholds):
    """Find the removal order on the pooled rows, and gains of each party, straight from the definitions."""
    rows = group.table.to_arrow().to_pydict()
    features = [name for name in rows if name != "ill"]
    n_values = {name: len(set(rows[name])) for name in features}

    def tradeoff(name):
        pairs = list(zip(rows[name], rows["ill"], strict=True))
        mutual = bits(rows[name]) + bits(rows["ill"]) - bits(pairs)
        return (mutual + bits(rows[name]) / math.log2(n_values[name])) / 2

    order = sorted(features, key=tradeoff)[: len(features) // 2]
    most = sum(math.log2(n) for n in n_values.values())
    parts = {name: part(group, name).to_arrow().to_pydict() for name in group.names}
    gains = {
        name: [sum(bits(cells[f]) for f in order[:n]) / most for n in range(1, len(order) + 1)]
        for name, cells in parts.items()
    }
    enough = [n for n in range(len(order)) if all(gains[name][n] >= thresholds[name] for name in group.names)]
    n_removed = enough[0] + 1 if enough else None
    return order[:n_removed], {name: found[:n_removed] for name, found in gains.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "plan",
    [Plan(THETA), Plan(THETA, sharing="shares"), Plan(THETA, mode="selection-only", max_rows=90)],
    ids=["seeds", "shares", "selection-only"],
)
def test_all_remove_what_the_definitions_say_and_publish_the_rest(group, plan):
    removed, gains = naive_choice(group, dict.fromkeys(NAMES, THETA))

    found = together(group, all_with(plan))

    for name, result in found.items():
        assert list(result.selection.removed) == removed
        assert result.selection.own_gains == pytest.approx(gains[name], abs=1e-12)
        assert bool(result.selection.scores) == (plan.mode == "totals")
        original = part(group, name)
        kept = [column for column in original.schema.names() if column not in removed]
        assert group.output(name).read_text().splitlines()[0].split(",") == kept
        released = sfumato.read_table(group.output(name)).to_arrow().to_pylist()
        assert sorted(released, key=repr) == sorted(original.keep(kept).to_arrow().to_pylist(), key=repr)
        manifest = f"{group.output(name)}.manifest.json"
        assert audit_published(group.output(name), manifest, original=original, check_roles=True).passed


@pytest.mark.slow
def test_every_party_has_a_threshold_of_its_own_that_no_other_manifest_shows(group):
    thresholds = {"ann": 0.05, "bob": 0.07, "cid": 0.2}
    removed, gains = naive_choice(group, thresholds)

    found = together(group, {name: Plan(threshold) for name, threshold in thresholds.items()})

    assert {result.selection.removed for result in found.values()} == {tuple(removed)}
    assert all(found[name].selection.own_gains == pytest.approx(gains[name], abs=1e-12) for name in NAMES)
    manifest = json.loads(found["ann"].published.manifest_path.read_text())
    assert manifest["mechanism"]["parameters"]["min_privacy_gain"] == 0.05
    assert "0.07" not in found["ann"].published.manifest_path.read_text()


@pytest.mark.slow
def test_a_manifest_names_the_session_the_certificates_and_what_was_agreed(group):
    found = together(group, all_with(Plan(THETA, weights=(1.0, 3.0))))

    manifests = [result.release.manifest for result in found.values()]
    sessions = [manifest.mechanism["parameters"]["session"] for manifest in manifests]
    assert sessions[0] == sessions[1] == sessions[2]
    assert re.fullmatch(r"trial/[0-9a-f]{16}", sessions[0]["id"])
    assert sessions[0]["parties"] == load_party_config(group.config("ann")).roster.fingerprints
    assert manifests[0].mechanism["name"] == "collaboration"
    assert manifests[0].mechanism["parameters"]["agreed"]["weights"] == [1.0, 3.0]
    assert manifests[0].guarantees[0]["audited"] == in_three_digits(found["ann"].selection.own_gains[-1])


@pytest.mark.slow
def test_averaged_scores_are_the_means_of_the_parties_own(group):
    found = together(group, all_with(Plan(THETA, privacy="average")))

    parts = [part(group, name).to_arrow().to_pydict() for name in NAMES]
    for score in found["bob"].selection.scores:
        n_values = group.schema.n_values[score.name]
        own = [bits(cells[score.name]) / math.log2(n_values) for cells in parts]
        assert score.privacy_average == pytest.approx(sum(own) / 3, abs=1e-8)


@pytest.mark.slow
def test_totals_are_shown_only_on_demand_and_without_small_counts(group):
    silent = together(group, all_with(Plan(THETA, dry_run=True)))
    shown = together(group, all_with(Plan(THETA, min_count=8, dry_run=True)))

    assert silent["ann"].to_dict()["totals"] == {}
    totals = shown["ann"].to_dict()["totals"]
    assert list(totals) == list(group.schema.names)
    counts = [count for block in totals.values() for line in block for count in line]
    assert any(isinstance(count, str) for count in counts)
    assert not {count for count in counts if isinstance(count, int)} & set(range(1, 8))


@pytest.mark.slow
def test_noise_changes_the_totals_and_every_party_sees_the_same_ones(group):
    plan = Plan(0.01, epsilon=0.5, min_count=3, dry_run=True)

    found = together(group, all_with(plan))

    blocks = group.schema.matrices(group.schema.counts(group.table))
    exact = [count for block in blocks for line in block.tolist() for count in line]
    totals = [result.to_dict()["totals"] for result in found.values()]
    assert totals[0] == totals[1] == totals[2]
    noisy = [count for block in totals[0].values() for line in block for count in line]
    assert any(isinstance(one, int) and one != two for one, two in zip(noisy, exact, strict=True))


@pytest.mark.slow
def test_a_dry_run_writes_nothing_but_is_audited(group):
    found = together(group, all_with(Plan(THETA, dry_run=True)))

    assert group.releases() == set()
    for result in found.values():
        assert result.published is None
        assert result.to_dict()["table"] is None
        assert result.to_dict()["audited_gain"] >= THETA


@pytest.mark.slow
def test_thresholds_out_of_reach_end_the_session_for_all_and_say_what_is_reachable(group):
    _, gains = naive_choice(group, dict.fromkeys(NAMES, 2.0))
    reachable = math.floor(min(found[-1] for found in gains.values()) * 1000) / 1000

    found = together(group, {"ann": Plan(THETA), "bob": Plan(0.99), "cid": Plan(THETA)})

    for error in found.values():
        assert isinstance(error, PrivacyNotAchievableError)
        assert error.best_level == pytest.approx(reachable)
    assert group.releases() == set()
    assert '"not achievable"' in group.transcript("ann").read_text()


@pytest.mark.slow
def test_a_transcript_has_sizes_and_stages_of_all_messages_and_no_contents(group):
    found = together(group, all_with(Plan(THETA)))

    lines = [json.loads(line) for line in group.transcript("ann").read_text().splitlines()]
    entries = lines[1:-1]
    assert {tuple(entry) for entry in entries} == {("seconds", "direction", "stage", "peer", "n_bytes", "digest")}
    sent = sum(entry["n_bytes"] for entry in entries if entry["direction"] == "sent")
    assert sent == lines[-1]["bytes_sent"] == found["ann"].bytes_sent
    assert {entry["digest"] for entry in entries if entry["stage"] == "seeds"} == {None}
    assert set(lines[0]) == {"party", "roster", "session", "binding", "mode"}


@pytest.mark.slow
def test_a_transcript_that_cannot_be_written_is_a_warning_beside_the_release(group):
    def write_meanwhile(done):
        group.transcript("ann").write_text("mine")

    found = together(group, all_with(Plan(THETA)), hear=write_meanwhile, replaces_transcripts=False)

    assert group.releases() == set(NAMES)
    assert "ann.jsonl" in found["ann"].warnings[0]
    assert found["ann"].to_dict()["warnings"] == list(found["ann"].warnings)
    assert found["bob"].warnings == ()
    assert group.transcript("ann").read_text() == "mine"


@pytest.mark.slow
def test_rounds_of_the_selection_are_told_and_counted(group):
    rounds = []

    together(group, all_with(Plan(THETA, mode="selection-only", max_rows=90)), hear=rounds.append)

    stages = {done.stage: done.number for done in rounds}
    assert stages["selection"] == stages["hello/echo"] + 1 == stages["ready to publish"] - 1


class TestBeforeItConnects:
    """What is wrong at home is said at once: nobody listens on the other ports here."""

    def alone(self, group, table=None, schema=None, **options):
        own = part(group, "ann") if table is None else table
        config = load_party_config(group.config("ann"))
        return take_part(config, own, schema or group.schema, Plan(THETA), **options)

    def test_a_release_that_exists_is_not_replaced_without_force(self, group):
        group.output("ann").write_text("mine\n")

        with pytest.raises(OutputError, match="exists already"):
            self.alone(group, output=group.output("ann"))

        assert group.output("ann").read_text() == "mine\n"

    def test_an_output_is_needed(self, group):
        with pytest.raises(InvalidParameterError, match="output must be given"):
            self.alone(group)

    def test_the_data_is_never_written_to(self, group):
        with pytest.raises(OutputError, match="is the input"):
            self.alone(group, output=group.data("ann"), force=True)

    def test_no_file_that_is_read_is_written_to(self, group):
        config = load_party_config(group.config("ann"))
        before = {path: path.read_bytes() for path in (group.data("ann"), *config.files.values())}
        assert len(before) == 7

        for path in (*before, group.output("ann"), manifest_path_for(group.output("ann"))):
            with pytest.raises(OutputError, match=r"cannot be the .*: it is the"):
                self.alone(group, output=group.output("ann"), transcript=Transcript(path, force=True), force=True)

        assert {path: path.read_bytes() for path in before} == before

    def test_a_transcript_that_cannot_be_written_is_found(self, group):
        folder = group.folder / "for a moment"
        folder.mkdir()
        record = Transcript(folder / "ann.jsonl")
        folder.rmdir()

        with pytest.raises(OutputError, match="its folder does not exist"):
            self.alone(group, output=group.output("ann"), transcript=record)

    def test_a_group_too_large_for_the_mode_is_refused(self, group):
        config = load_party_config(group.config("ann"))
        chosen = Plan(THETA, mode="selection-only", max_rows=29)

        with pytest.raises(InvalidParameterError, match="got 29 for 30 rows"):
            take_part(config, part(group, "ann"), group.schema, chosen, output=group.output("ann"))

    def test_a_value_outside_the_schema_is_refused_without_showing_it(self, group):
        features = {column.name: column.values for column in group.schema.features}
        features["site"] = features["site"][:-1]
        narrow = SharedSchema.of_values(features, {"ill": ["no", "yes"]})

        with pytest.raises(SchemaError, match="1 value that the shared schema does not list") as caught:
            self.alone(group, schema=narrow, output=group.output("ann"))

        assert "s2" not in str(caught.value)

    def test_a_table_in_other_roles_is_refused(self, group):
        table = part(group, "ann")
        other = table.with_schema(table.schema.with_roles({"coin": sfumato.Role.OTHER}))

        with pytest.raises(SchemaError, match="coin"):
            self.alone(group, table=other, output=group.output("ann"))


class TestRoles:
    def test_a_column_outside_the_schema_needs_a_role(self):
        table = small_table()
        schema = SharedSchema.of_table(table.keep([n for n in table.schema.names() if n != "coin"]))

        with pytest.raises(SchemaError, match="'coin': is not in the shared schema and has no role"):
            in_shared_roles(table, schema)
        roles = in_shared_roles(table, schema, {"coin": sfumato.Role.SENSITIVE}).schema
        assert roles["coin"].role is sfumato.Role.SENSITIVE
        assert roles["ill"].role is sfumato.Role.TARGET
        assert roles["site"].role is sfumato.Role.QUASI_IDENTIFIER

    @pytest.mark.parametrize(("name", "role"), [("site", sfumato.Role.OTHER), ("coin", sfumato.Role.QUASI_IDENTIFIER)])
    def test_a_role_against_the_schema_is_refused(self, name, role):
        table = small_table()
        schema = SharedSchema.of_table(table.keep([n for n in table.schema.names() if n != "coin"]))

        with pytest.raises(InvalidParameterError, match=f"the role of '{name}'"):
            in_shared_roles(table, schema, {name: role})

    def test_a_column_of_the_schema_must_be_there(self):
        table = small_table()

        with pytest.raises(SchemaError, match="'coin': not found"):
            in_shared_roles(table.keep([n for n in table.schema.names() if n != "coin"]), SharedSchema.of_table(table))


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"min_privacy_gain": 0}, "min_privacy_gain"),
        ({"mode": "all"}, "mode"),
        ({"sharing": "none"}, "sharing"),
        ({"min_count": 2}, "min_count"),
        ({"max_rows": 0}, "max_rows"),
        ({"mode": "selection-only", "max_rows": 100_001}, "max_rows"),
        ({"weights": (1e308, 1e308)}, "weights"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"weights": (0.0, 0.0)}, "weights"),
        ({"privacy": "best"}, "privacy"),
        ({"mode": "selection-only", "epsilon": 1.0}, "epsilon"),
        ({"mode": "selection-only", "min_count": 5}, "min_count"),
        ({"mode": "selection-only", "sharing": "shares"}, "sharing"),
        ({"mode": "selection-only", "privacy": "average"}, "privacy"),
    ],
)
def test_a_plan_that_cannot_be_kept_is_refused(changes, name):
    with pytest.raises(InvalidParameterError) as caught:
        Plan(**{"min_privacy_gain": 0.1} | changes)

    assert caught.value.name == name


def test_selection_only_takes_as_many_as_it_computes_with():
    assert (plan.MOST_PARTIES, plan.MOST_ROWS) == (mpyc_channel.MOST_PARTIES, selection_tables.MOST_ROWS)
    chosen = Plan(0.1, mode="selection-only", max_rows=100_000)
    chosen.check_group(7, 100_000)

    with pytest.raises(InvalidParameterError, match="at most 7"):
        chosen.check_group(8, 1)
    with pytest.raises(InvalidParameterError, match="max_rows"):
        Plan(0.1, mode="selection-only", max_rows=10).check_group(3, 11)
    Plan(0.1).check_group(8, 1_000_000)


def test_a_plan_survives_as_plain_data():
    chosen = Plan(0.3, sharing="shares", weights=(1.0, 2.0), epsilon=0.5, min_count=4, dry_run=True)

    assert Plan.from_dict(json.loads(json.dumps(chosen.to_dict()))) == chosen
