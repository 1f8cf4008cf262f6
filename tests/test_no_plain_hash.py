"""Nothing that is published lets anybody confirm a guess of the input: the attack, and everything it could use."""

import base64
import hashlib
import itertools
import json
import os
import re
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato
from sfumato.cli.main import run
from sfumato.mechanisms.buckets.anatomy import Anatomy, anatomize
from sfumato.mechanisms.registry import registered_mechanisms
from sfumato.project.file import load_project
from sfumato.project.keys import KEY_NAME, ProjectKey
from sfumato.publishing.from_project import publish_project, release_project
from sfumato.publishing.publish import publish
from sfumato.schema import Column, Role, Schema
from sfumato.table.coding import Table

N_PEOPLE = 24
ILLNESSES = ["asthma", "flu", "gout", "lupus", "mumps", "polio"]
HEAD = "name,age,town,illness\n"


def csv_of(illnesses):
    """Give the original as its holder has it; an attacker knows all but who has which illness."""
    lines = [f"person {i},{20 + 2 * i},{'ab'[i % 2]},{illness}" for i, illness in enumerate(illnesses)]
    return (HEAD + "\n".join(lines) + "\n").encode()


@pytest.fixture
def illnesses():
    return [str(one) for one in np.random.default_rng(3).permutation(ILLNESSES * (N_PEOPLE // len(ILLNESSES)))]


@pytest.fixture
def hospital(tmp_path, monkeypatch, illnesses):
    """Project of a table of 24 people."""
    monkeypatch.chdir(tmp_path)
    Path("stays.csv").write_bytes(csv_of(illnesses))
    roles = ["--identifiers", "name", "--quasi-identifiers", "age,town", "--sensitive", "illness"]
    assert run(["init", "stays.csv", *roles]) == 0
    return tmp_path


def released_groups(path="release.csv"):
    """Rows and values of every group, as anybody reads them."""
    table = sfumato.read_table(path)
    cells = zip(*(table[name].cells().to_pylist() for name in ("group", "illness")), strict=True)
    rows, values = defaultdict(list), defaultdict(list)
    for row, (group, value) in enumerate(cells):
        rows[group].append(row)
        values[group].append(value)
    return [(rows[group], values[group]) for group in rows]


def guesses(groups):
    """All ways in which the values of the groups can belong to their rows."""
    for chosen in itertools.product(*(itertools.permutations(values) for _, values in groups)):
        guess = [""] * N_PEOPLE
        for (rows, _), values in zip(groups, chosen, strict=True):
            for row, value in zip(rows, values, strict=True):
                guess[row] = value
        yield guess


def oracles(guess):
    """Give what anybody can compute of a guess without a secret."""
    content = csv_of(guess)
    plain = hashlib.sha256(content).hexdigest()
    yield plain
    yield hashlib.sha256(plain.encode()).hexdigest()
    yield hashlib.sha256(bytes.fromhex(plain)).hexdigest()
    yield hashlib.sha256("\n".join(guess).encode()).hexdigest()


def published_bytes():
    return Path("release.csv").read_bytes() + Path("release.csv.manifest.json").read_bytes()


def hexadecimal_in(content):
    return set(re.findall(rb"[0-9a-f]{32,64}", content))


class TestAttack:
    """24 people, 12 groups of two: 4,096 ways in which the values can belong to them."""

    def test_a_plain_hash_resolves_everybody(self, hospital, illnesses):
        """Before version 3 a manifest held this hash: the attack works."""
        assert run(["release", "-m", "anatomy", "-p", "l=2", "-o", "release.csv"]) == 0
        known = hashlib.sha256(Path("stays.csv").read_bytes()).hexdigest()

        found = [guess for guess in guesses(released_groups()) if known in oracles(guess)]
        assert found == [illnesses]

    def test_nothing_published_confirms_a_guess(self, hospital):
        assert run(["release", "-m", "anatomy", "-p", "l=2", "-o", "release.csv"]) == 0
        groups = released_groups()
        hexadecimal = hexadecimal_in(published_bytes())
        assert len(hexadecimal) == 4  # number and value of the commitment, hash of the released file, digest

        assert sum(1 for _ in guesses(groups)) == 2 ** (N_PEOPLE // 2)
        hits = [1 for guess in guesses(groups) for one in oracles(guess) if one.encode() in hexadecimal]
        assert hits == []

    def test_an_attacker_who_can_try_keys_needs_the_right_one(self, hospital, illnesses):
        """The commitment is to the original: with the release's key, which is secret, the guess is confirmed."""
        assert run(["release", "-m", "anatomy", "-p", "l=2", "-o", "release.csv"]) == 0
        stated = json.loads(Path("release.csv.manifest.json").read_text())["input"]["commitment"]
        plain = hashlib.sha256(csv_of(illnesses)).hexdigest()

        assert ProjectKey.load(".").subkey(stated["release"]).commitment(plain) == stated
        for other in (bytes(32), bytes.fromhex(stated["release"]) * 2, bytes.fromhex(stated["value"])):
            assert ProjectKey(other).subkey(stated["release"]).commitment(plain) != stated

    def test_the_grouping_is_repeated_by_no_small_seed(self, hospital, illnesses):
        ProjectKey(bytes(range(32))).keep(".")  # 24 people have so few groupings that another key may hit one by chance
        assert run(["release", "-m", "anatomy", "-p", "l=2", "-o", "release.csv"]) == 0
        codes = np.unique(illnesses, return_inverse=True)[1].astype(np.int32)
        released = {frozenset(rows) for rows, _ in released_groups()}

        for seed in range(2_000):
            groups = anatomize(codes, 2, np.random.default_rng(seed))
            assert {frozenset(np.flatnonzero(groups == g).tolist()) for g in set(groups.tolist())} != released


class Scripted:
    """Random numbers that take one path of all; ``weight`` is its probability."""

    def __init__(self, order, picks):
        self.order, self.picks, self.n_options = np.array(order), list(picks), []

    def permutation(self, n):
        assert n == len(self.order)
        return self.order

    def choice(self, options):
        self.n_options.append(len(options))
        return options[self.picks.pop(0) if self.picks else 0]


def outcomes(sensitive, l):  # noqa: E741
    """Probability of every grouping of these values, times the number of orders: all paths are walked."""
    found = Counter()
    for order in itertools.permutations(range(len(sensitive))):
        paths = [()]
        while paths:
            path = paths.pop()
            rng = Scripted(order, path)
            groups = anatomize(np.array(sensitive, dtype=np.int32), l, rng)
            if len(rng.n_options) > len(path):  # a choice was made that the path did not say
                paths += [(*path, pick) for pick in range(rng.n_options[len(path)])]
                continue
            parts = [np.flatnonzero(groups == g) for g in range(groups.max() + 1)]
            seen = frozenset((tuple(part), tuple(sorted(sensitive[i] for i in part))) for part in parts)
            found[seen] += 1 / float(np.prod(rng.n_options)) if rng.n_options else 1.0
    return found


@pytest.mark.parametrize(("values", "l"), [((0, 0, 1, 1), 2), ((0, 0, 1, 1, 2), 2), ((0, 0, 1, 2, 3), 2)])
def test_every_assignment_that_fits_a_release_is_equally_likely(values, l):  # noqa: E741
    """Exact, over all random choices: the grouping tells an attacker no more than the values of each group."""
    likelihood = {table: outcomes(table, l) for table in set(itertools.permutations(values))}
    seen = set().union(*likelihood.values())
    assert len(seen) > 1
    for release in seen:
        fitting = [
            table
            for table in likelihood
            if all(tuple(sorted(table[i] for i in rows)) == held for rows, held in release)
        ]
        chances = [likelihood[table][release] for table in fitting]
        assert len(fitting) > 1
        assert min(chances) > 0
        assert np.allclose(chances, chances[0])


def content_hash_of_before(table):
    """Hash that seeded the grouping of anatomy before version 3."""
    digest = hashlib.sha256()
    for name, column in table.columns.items():
        digest.update(repr((name, column.values.to_pylist())).encode("utf-8", "surrogatepass"))
        digest.update(column.codes.tobytes())
    return digest.hexdigest()


@pytest.fixture(scope="module")
def flags(tmp_path_factory):
    """Project of a table that every mechanism can release."""
    folder = tmp_path_factory.mktemp("flags")
    rng = np.random.default_rng(8)
    bits = (0.5 * rng.random((160, 5)) + 0.5 * rng.random((160, 1)) < np.linspace(0.3, 0.7, 5)).astype(int)
    lines = ["id,a,b,c,d,e,illness,y"]
    lines += [",".join([f"p{i}", *map(str, row), "uvw"[i % 3], "ny"[row[2]]]) for i, row in enumerate(bits)]
    (folder / "flags.csv").write_text("\n".join(lines) + "\n")
    roles = ["--identifiers", "id", "--sensitive", "illness", "--target", "y"]
    assert run(["init", str(folder / "flags.csv"), *roles, "-o", str(folder / "sfumato.toml")]) == 0
    return folder


@pytest.mark.parametrize("name", list(registered_mechanisms()))
def test_no_mechanism_publishes_a_plain_hash_of_anything_private(flags, tmp_path, name):
    """Table, manifest and the report for others: neither as digits nor as bytes."""
    few = {"n_features": "3"} if "n_features" in {p.name for p in registered_mechanisms()[name].parameters} else {}
    given = [part for key, value in few.items() for part in ("-p", f"{key}={value}")]
    released, report = tmp_path / "release.csv", tmp_path / "report.html"
    project = ["--project", str(flags / "sfumato.toml")]
    assert run(["release", *project, "-m", name, *given, "-o", str(released), "--quick"]) == 0
    assert run(["report", str(released), *project, "--external", "--quick", "-o", str(report)]) == 0

    table = load_project(flags / "sfumato.toml").read()
    key = (flags / KEY_NAME).read_text().strip() if (flags / KEY_NAME).exists() else "0" * 64
    private = [
        hashlib.sha256((flags / "flags.csv").read_bytes()).hexdigest(),
        hashlib.sha256((flags / "sfumato.toml").read_bytes()).hexdigest(),
        content_hash_of_before(table),
        key,
        hashlib.sha256(bytes.fromhex(key)).hexdigest(),
    ]
    manifest = released.with_name("release.csv.manifest.json")
    commitment = (json.loads(manifest.read_text())["input"] or {}).get("commitment")
    if commitment is not None:
        private.append(ProjectKey.load(flags).subkey(commitment["release"]).secret.hex())
    assert sorted(path.name for path in tmp_path.iterdir()) == [released.name, manifest.name, report.name]
    for path in tmp_path.iterdir():
        content = path.read_bytes()
        for digits in private:
            raw = bytes.fromhex(digits)
            for spelled in (digits.encode(), digits.upper().encode(), raw, base64.b64encode(raw)):
                assert spelled not in content, path.name


@pytest.mark.parametrize("mechanism", ["anatomy", "random-flipping"])
def test_no_seed_of_hidden_choices_is_published(flags, tmp_path, mechanism):
    seed = 918_273_645
    released = tmp_path / "release.csv"
    given = ["--project", str(flags / "sfumato.toml"), "-m", mechanism, "-p", f"random_state={seed}"]
    assert run(["release", *given, "-o", str(released)]) == 0

    manifest = json.loads(released.with_name("release.csv.manifest.json").read_text())
    assert manifest["mechanism"]["seed"] is None
    assert manifest["mechanism"]["parameters"]["random_state"] is None
    assert str(seed) not in json.dumps(manifest)


def both_files(target):
    return target.read_bytes(), target.with_name(target.name + ".manifest.json").read_bytes()


class TestSameBytes:
    def test_the_same_input_settings_and_key_give_the_same_release(self, hospital):
        for folder in ("one", "two"):
            Path(folder).mkdir()
            assert run(["release", "-m", "anatomy", "-p", "l=2", "-o", f"{folder}/release.csv"]) == 0

        assert both_files(Path("one/release.csv")) == both_files(Path("two/release.csv"))

    def test_what_changes_no_release_changes_no_number(self, hospital):
        """A comment in the project file, and where hierarchies and data are."""
        Path("one").mkdir()
        assert run(["release", "-m", "anatomy", "-p", "l=2", "-o", "one/release.csv"]) == 0
        with Path("sfumato.toml").open("a") as file:
            file.write("# reviewed\n")
        Path("two").mkdir()
        assert run(["release", "-m", "anatomy", "-p", "l=2", "-o", "two/release.csv"]) == 0

        assert both_files(Path("one/release.csv")) == both_files(Path("two/release.csv"))

    def test_another_key_gives_another_grouping_and_commitment(self, hospital):
        assert run(["release", "-m", "anatomy", "-p", "l=2", "-o", "one.csv"]) == 0
        Path(KEY_NAME).unlink()
        assert run(["release", "-m", "anatomy", "-p", "l=2", "-o", "two.csv"]) == 0

        assert Path("one.csv").read_bytes() != Path("two.csv").read_bytes()
        one, two = (json.loads(Path(f"{n}.csv.manifest.json").read_text())["input"] for n in ("one", "two"))
        assert one["commitment"]["value"] != two["commitment"]["value"]

    @pytest.mark.parametrize(
        "other",
        [
            ["-m", "anatomy", "-p", "l=3"],
            ["-m", "mondrian", "-k", "3"],
            ["-m", "anatomy", "-p", "l=2", "--project", "b.toml"],
        ],
    )
    def test_equal_inputs_give_other_commitments_in_other_releases(self, hospital, other):
        text = Path("sfumato.toml").read_text()
        Path("b.toml").write_text(text.replace('"town" = { role = "quasi-identifier"', '"town" = { role = "other"'))
        assert run(["release", "-m", "anatomy", "-p", "l=2", "-o", "one.csv"]) == 0
        assert run(["release", *other, "-o", "two.csv"]) == 0

        one, two = (json.loads(Path(f"{n}.csv.manifest.json").read_text())["input"] for n in ("one", "two"))
        assert one["commitment"]["release"] != two["commitment"]["release"]
        assert one["commitment"]["value"] != two["commitment"]["value"]


class TestWithoutAProject:
    def test_there_is_no_commitment_and_groups_are_drawn_anew(self, illnesses, tmp_path):
        names = ["age", "illness"]
        cells = pa.table({"age": [str(i % 6) for i in range(N_PEOPLE)], "illness": illnesses})
        table = Table.from_arrow(cells, Schema.of([Column(names[0]), Column(names[1], Role.SENSITIVE)]))
        one, two = (sfumato.release(table, Anatomy(l=2)) for _ in range(2))

        assert one.manifest.input["commitment"] is None
        assert one.audit_key is None
        assert one.table["group"].codes.tolist() != two.table["group"].codes.tolist()

    def test_a_dry_run_of_a_project_writes_nothing(self, hospital):
        before = sorted(os.listdir())
        assert run(["release", "-m", "anatomy", "-p", "l=2", "--dry-run"]) == 0

        assert sorted(os.listdir()) == before


class TestAudit:
    @pytest.fixture
    def released(self, hospital):
        assert run(["release", "-m", "anatomy", "-p", "l=2", "-o", "release.csv"]) == 0
        assert run(["audit-key", "release.csv.manifest.json", "-o", "release.key"]) == 0
        return ["audit", "release.csv", "--manifest", "release.csv.manifest.json"]

    ROLES = ("--identifiers", "name", "--quasi-identifiers", "age,town", "--sensitive", "illness")

    def checks(self, capsys, arguments):
        capsys.readouterr()
        code = run([*arguments, "--json"])
        report = json.loads(capsys.readouterr().out)
        return code, {check["name"]: check["passed"] for check in report["checks"]}, report

    def test_the_project_confirms_the_commitment(self, released, capsys):
        code, checks, _ = self.checks(capsys, [*released, "--project", "sfumato.toml"])

        assert (code, checks["commitment"]) == (0, True)

    def test_the_original_and_the_key_of_the_release_confirm_it(self, released, capsys):
        given = ["--original", "stays.csv", *self.ROLES, "--key", "release.key"]
        code, checks, _ = self.checks(capsys, [*released, *given])

        assert (code, checks["commitment"]) == (0, True)

    @pytest.mark.parametrize("memory", [[], ["--memory", "600MB"]])
    def test_out_of_core_it_is_the_same(self, hospital, capsys, memory):
        assert run(["release", "-m", "global-recoding", "-k", "2", *memory, "-o", "release.csv"]) == 0
        audit = ["audit", "release.csv", "--manifest", "release.csv.manifest.json", "--project", "sfumato.toml"]
        code, checks, _ = self.checks(capsys, [*audit, "--memory", "600MB"])

        assert code in (0, 8)
        assert checks["commitment"]

    @pytest.mark.parametrize(
        ("given", "remedy"), [(["--original", "stays.csv"], "--key"), ([], "--original and --key")]
    )
    def test_without_the_key_it_is_an_exception(self, released, capsys, given, remedy):
        code, checks, report = self.checks(capsys, [*released, *given])

        assert code == 8
        assert "commitment" not in checks
        assert "commitment" in [one["name"] for one in report["unchecked"]]
        assert remedy in report["last_line"]

    def test_a_file_of_the_same_rows_in_other_bytes_is_not_the_original(self, released, capsys):
        Path("other.csv").write_bytes(Path("stays.csv").read_bytes().replace(b"\n", b"\r\n"))
        given = ["--original", "other.csv", *self.ROLES, "--key", "release.key"]
        code, checks, _ = self.checks(capsys, [*released, *given])

        assert (code, [name for name, passed in checks.items() if not passed]) == (5, ["commitment"])

    def test_the_key_of_another_project_is_refused(self, released, capsys):
        Path(KEY_NAME).unlink()
        ProjectKey.load_or_create(".")
        code, checks, report = self.checks(capsys, [*released, "--project", "sfumato.toml"])

        assert (code, [name for name, passed in checks.items() if not passed]) == (5, ["commitment"])
        assert "a file or key is another one" in report["last_line"]

    def test_the_key_of_another_release_is_refused_by_name(self, released, capsys):
        assert run(["release", "-m", "anatomy", "-p", "l=3", "-o", "second.csv"]) == 0
        audit = ["audit", "second.csv", "--manifest", "second.csv.manifest.json", "--key", "release.key"]
        capsys.readouterr()

        assert run(audit) == 3
        assert "release.key: is the key of another release" in capsys.readouterr().err

    def test_a_lost_key_is_an_exception_and_cannot_be_handed_on(self, released, capsys):
        Path(KEY_NAME).unlink()
        code, _, report = self.checks(capsys, [*released, "--project", "sfumato.toml"])

        assert code == 8
        assert [one["name"] for one in report["unchecked"]] == ["commitment"]
        assert run(["audit-key", "release.csv.manifest.json", "-o", "again.key"]) == 3
        assert "the project has no key: it was lost" in capsys.readouterr().err

    @pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
    def test_a_key_that_others_may_read_stops_release_and_audit(self, released, capsys):
        Path(KEY_NAME).chmod(0o644)
        for command in (
            ["release", "-m", "mondrian", "-k", "3", "-o", "m.csv"],
            [*released, "--project", "sfumato.toml"],
        ):
            capsys.readouterr()
            assert run(command) == 3
            said = capsys.readouterr().err
            assert f"{KEY_NAME}: others on this machine may read or change it" in said
            assert "chmod 600" in said
        assert not Path("m.csv").exists()

    def test_the_key_of_the_project_is_no_key_of_an_auditor(self, released, capsys):
        assert run([*released, "--original", "stays.csv", "--key", KEY_NAME]) == 3
        assert "is the key of a project" in capsys.readouterr().err

    def test_a_forged_commitment_is_seen_by_the_key_only(self, released, capsys):
        """The digest is repaired: without the key nothing is claimed to have been checked."""
        from tests.manifest_texts import text_of

        path = Path("release.csv.manifest.json")
        data = json.loads(path.read_text())
        data["input"]["commitment"]["value"] = "ab" * 32
        data["digest"] = sfumato.manifest.manifest_digest(data)
        path.write_text(text_of(data))
        code, _, _ = self.checks(capsys, [*released, "--original", "stays.csv", *self.ROLES])
        assert code == 8
        code, checks, _ = self.checks(capsys, [*released, "--project", "sfumato.toml"])
        assert (code, checks["commitment"]) == (5, False)


def test_python_gives_the_same_bytes_as_the_command(hospital):
    Path("one").mkdir()
    text = Path("sfumato.toml").read_text()
    text = text[: text.index("[release]")] + '[release]\nmechanism = "anatomy"\nparameters = { l = 3 }\n'
    Path("sfumato.toml").write_text(text)
    assert run(["release", "-o", "one/release.csv"]) == 0
    for folder in ("two", "three"):
        Path(folder).mkdir()
    publish_project("sfumato.toml", "two/release.csv")
    release, original = release_project(load_project("sfumato.toml"))
    published = publish(release, "three/release.csv", original=original)

    assert both_files(Path("one/release.csv")) == both_files(Path("two/release.csv"))
    assert both_files(Path("one/release.csv")) == both_files(Path("three/release.csv"))
    assert published.audit.verdict == "confirmed"
