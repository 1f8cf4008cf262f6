"""``sfumato collaborate`` as users type it."""

import hashlib
import io
import json
import os
import signal
import socket
import stat
import subprocess
import sys

import pytest

import sfumato
from sfumato.cli.main import run
from sfumato.cli.making import collaborate as collaborate_options
from sfumato.collaborate.config import load_party_config
from sfumato.collaborate.shared_schema import read_shared_schema
from sfumato.publishing.reaudit import audit_published
from sfumato.table.io.write import write_table
from unit.collaborate.groups import NAMES, Group, Nursery, small_table
from waiting import HANGS, until


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "data.csv").open("wb") as file:
        write_table(small_table(), file, "csv")
    return tmp_path


@pytest.fixture(scope="module")
def nursery():
    with Nursery() as started:
        yield started


@pytest.mark.slow
def test_parties_agree_on_a_schema_and_then_on_features(nursery, tmp_path):
    group = Group(tmp_path)
    group.schema_path.unlink()
    schemas = {name: tmp_path / f"{name}.schema.json" for name in NAMES}
    shared = ["--target", "ill", "--yes"]
    commands = {
        name: [
            *("collaborate", "schema", "--config", str(group.config(name)), "--data", str(group.data(name))),
            *(*shared, "-o", str(schemas[name]), "--transcript", str(tmp_path / f"{name}.schema.jsonl")),
        ]
        for name in NAMES
    }

    agreed = nursery.run(group, commands)

    assert [outcome.code for outcome in agreed.values()] == [0, 0, 0], agreed
    assert read_shared_schema(schemas["ann"]) == group.schema
    assert schemas["ann"].read_bytes() == schemas["bob"].read_bytes() == schemas["cid"].read_bytes()
    assert "round   1  hello" in agreed["ann"].said
    cells = [line.split(",") for line in group.data("ann").read_text().splitlines()]
    told = ", ".join(f"{name} ({len(set(values))})" for name, *values in zip(*cells, strict=True))
    assert agreed["ann"].said.index(told) < agreed["ann"].said.index("waiting for")
    digest = hashlib.sha256(schemas["ann"].read_bytes()).hexdigest()
    assert f"SHA-256 of {schemas['ann']}: {digest}" in agreed["ann"].said
    assert "semi-honest protocol: who holds a value stays hidden" in agreed["ann"].said
    assert "not protected against: a party that claims values that it does not hold" in agreed["ann"].said

    group.schema_path = schemas["ann"]
    found = nursery.run(group, {name: group.command(name, "--json") for name in NAMES})

    assert [outcome.code for outcome in found.values()] == [0, 0, 0], found
    for name in NAMES:
        original = sfumato.read_table(group.data(name))
        assert audit_published(group.output(name), f"{group.output(name)}.manifest.json", original=original).passed
        text = found[name].said
        result = json.loads(text[text.index("\n{") : text.index("\n}") + 2])
        assert result["table"] == str(group.output(name))
        assert result["removed"] == ["rare", "few", "site"]
        assert "wrote " in text
        assert "NOT k-anonymity" in text
        assert f"SHA-256 of {schemas['ann']}: {digest}" in text
        assert text.index("semi-honest protocol: your counts stay hidden") < text.index("waiting for")
        assert "not protected against: a party that sends false numbers: nobody notices" in text
        assert "all 2 others together: they can work out your counts" in text


@pytest.mark.slow
def test_columns_outside_the_schema_are_released_only_if_so_said(nursery, tmp_path):
    group = Group(tmp_path)
    for name in NAMES:
        lines = group.data(name).read_text().splitlines()
        more = ["name,note", *(f"n{i},x" for i in range(1, len(lines)))]
        group.data(name).write_text("".join(f"{one},{two}\n" for one, two in zip(lines, more, strict=True)))

    alone = nursery.run(group, {"ann": group.command("ann")})
    roles = ("--identifiers", "name", "--other", "note")
    found = nursery.run(group, {name: group.command(name, *roles) for name in NAMES})

    assert alone["ann"].code == 3
    assert "column 'name': is not in the shared schema and has no role" in alone["ann"].said
    assert [outcome.code for outcome in found.values()] == [0, 0, 0], found
    assert group.output("ann").read_text().splitlines()[0] == "coin,close,grade,ill,note"


class TestSchema:
    def command(self, group, name, *more):
        given = ["--config", str(group.config(name)), "--data", str(group.data(name)), "--target", "ill"]
        return ["collaborate", "schema", *given, "-o", str(group.folder / f"{name}.schema.json"), *more]

    def outsiders(self, group, columns):
        """Give every party's table further columns, of other values in every row."""
        for name in NAMES:
            lines = group.data(name).read_text().splitlines()
            more = [",".join(columns), *(",".join(f"{column}{i}" for column in columns) for i in range(1, len(lines)))]
            group.data(name).write_text("".join(f"{one},{two}\n" for one, two in zip(lines, more, strict=True)))

    def test_nobody_is_connected_before_somebody_has_agreed(self, folder, capsys, monkeypatch):
        def connect(*_, **__):
            pytest.fail("connected")

        monkeypatch.setattr("sfumato.collaborate.schema_session.joined", connect)
        group = Group(folder)

        assert run(self.command(group, "ann")) == 2

        said = capsys.readouterr().err
        assert "all parties will see the values of these columns (number of values here): rare (" in said
        assert "add --yes. No connection was made." in said
        assert not (folder / "ann.schema.json").exists()

    @pytest.mark.parametrize(("answer", "code", "connects"), [("n\n", 2, False), ("\n", 2, False), ("y\n", 6, True)])
    def test_at_a_terminal_it_asks(self, folder, capsys, monkeypatch, answer, code, connects):
        class Terminal(io.StringIO):
            def isatty(self):
                return True

        monkeypatch.setattr("sys.stdin", Terminal(answer))
        group = Group(folder, start_timeout=0.2)

        assert run(self.command(group, "ann")) == code

        said = capsys.readouterr().err
        assert "May all parties see this?" in said
        assert ("waiting for" in said) == connects

    def test_columns_of_two_numbers_get_no_advice_about_bins(self, folder, capsys):
        group = Group(folder)
        lines = group.data("ann").read_text().splitlines()
        more = ["flag,dose", *(f"{i % 2},{i % 5}" for i in range(len(lines) - 1))]
        group.data("ann").write_text("".join(f"{one},{two}\n" for one, two in zip(lines, more, strict=True)))

        assert run(self.command(group, "ann")) == 2

        said = capsys.readouterr().err
        assert "the numbers of 'dose' count as categories; use --bins to cut them into intervals" in said
        assert "'flag'" not in said

    @pytest.mark.slow
    def test_roles_given_to_the_schema_need_not_be_given_again(self, nursery, tmp_path):
        group = Group(tmp_path)
        self.outsiders(group, ["name", "note"])
        roles = ("--identifiers", "name", "--other", "note", "--yes")

        agreed = nursery.run(group, {name: self.command(group, name, *roles) for name in NAMES})
        group.schema_path = tmp_path / "ann.schema.json"
        found = nursery.run(group, {name: group.command(name) for name in NAMES})

        assert [outcome.code for outcome in agreed.values()] == [0, 0, 0], agreed
        assert "roles that become part of the schema: name (identifier), note (other)" in agreed["ann"].said
        assert len({(tmp_path / f"{name}.schema.json").read_bytes() for name in NAMES}) == 1
        assert [outcome.code for outcome in found.values()] == [0, 0, 0], found
        assert group.output("ann").read_text().splitlines()[0] == "coin,close,grade,ill,note"

    def test_where_parties_give_different_roles_each_gives_its_own_again(self, nursery, tmp_path):
        group = Group(tmp_path)
        self.outsiders(group, ["name", "note"])
        roles = dict.fromkeys(NAMES, ("--identifiers", "name,note")) | {
            "cid": ("--identifiers", "name", "--other", "note")
        }

        agreed = nursery.run(group, {name: self.command(group, name, *roles[name], "--yes") for name in NAMES})

        assert [outcome.code for outcome in agreed.values()] == [0, 0, 0], agreed
        assert len({(tmp_path / f"{name}.schema.json").read_bytes() for name in NAMES}) == 1
        assert dict(read_shared_schema(tmp_path / "ann.schema.json").roles) == {"name": sfumato.Role.IDENTIFIER}

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("option", "parameter"),
        [(["--missing", "c1"], "missing"), (["--target", "coin"], "target"), (["--bins", "dose=1,2"], "cuts")],
    )
    def test_the_parameter_that_differs_is_named(self, nursery, tmp_path, option, parameter):
        group = Group(tmp_path)
        for name in NAMES:
            lines = group.data(name).read_text().splitlines()
            more = ["dose", *(str(i % 5) for i in range(len(lines) - 1))]
            group.data(name).write_text("".join(f"{one},{two}\n" for one, two in zip(lines, more, strict=True)))

        found = nursery.run(
            group, {name: self.command(group, name, "--yes", *(option if name == "cid" else ())) for name in NAMES}
        )

        for outcome in found.values():
            assert outcome.code == 6
            assert f"party 'cid', stage 'hello': has another value of the parameter '{parameter}'" in outcome.said


class TestKeys:
    def test_every_party_can_start_from_what_is_written(self, folder, capsys):
        assert (
            run(
                [
                    "collaborate",
                    "keys",
                    "--parties",
                    "a,b,c",
                    "--hosts",
                    "127.0.0.1,localhost:7000,[::1]:1",
                    "-o",
                    "k/ys",
                ]
            )
            == 0
        )

        names = ("authority", "a", "b", "c")
        wanted = [f"{name}.{end}" for name in names for end in ("crt", "key")] + [f"{name}.toml" for name in "abc"]
        assert sorted(os.listdir("k/ys")) == sorted(wanted)
        assert stat.S_IMODE(os.stat("k/ys").st_mode) == 0o700  # noqa: PTH116 # a mode is a mode
        for name in "abc":
            config = load_party_config(folder / "k" / "ys" / f"{name}.toml")
            assert config.me == name
            assert set(config.roster.fingerprints) == {"a", "b", "c"}
        assert {peer.name: (peer.host, peer.port) for peer in config.roster.peers} == {
            "a": ("127.0.0.1", 7443),
            "b": ("localhost", 7000),
        }
        assert "authority.key" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("arguments", "code", "message"),
        [
            (["--parties", "a,b"], 6, "at least 3 parties"),
            (["--parties", "a,b,b"], 2, "parties must be different names, 'b' is there twice"),
            (["--parties", "a,b,c", "--session", " "], 2, "session must be a name that all parties share"),
            (["--parties", "a,b,c/d"], 2, "the name of a party"),
            (["--parties", "a,b,authority"], 2, "authority"),
            (["--parties", "a,b,c", "--hosts", "x,y"], 2, "one for each of the 3 parties"),
            (["--parties", "a,b,c", "--hosts", "x:1,y:z,w:2"], 2, "HOST or HOST:PORT"),
            (["--parties", "a,b,c", "--hosts", "x:1,x:2,x:99999"], 2, "port must be from 1 to 65535"),
            (["--parties", "a,b,c", "--days", "0"], 2, "valid_days"),
        ],
    )
    def test_what_goes_wrong_is_said_and_nothing_is_written(self, folder, capsys, arguments, code, message):
        assert run(["collaborate", "keys", *arguments, "-o", "keys"]) == code

        assert message in capsys.readouterr().err
        assert not (folder / "keys").exists() or os.listdir("keys") == []

    def test_a_file_is_no_folder_to_write_to(self, folder, capsys):
        before = (folder / "data.csv").read_bytes()

        assert run(["collaborate", "keys", "--parties", "a,b,c", "-o", "data.csv", "--force"]) == 3

        assert "data.csv: is a file, not a folder" in capsys.readouterr().err
        assert (folder / "data.csv").read_bytes() == before

    def test_keys_that_exist_are_not_replaced_without_force(self, folder, capsys):
        command = ["collaborate", "keys", "--parties", "a,b,c", "-o", "keys"]
        assert run(command) == 0
        before = (folder / "keys" / "a.key").read_bytes()

        assert run(command) == 3
        assert (folder / "keys" / "a.key").read_bytes() == before
        assert run([*command, "--force"]) == 0
        assert (folder / "keys" / "a.key").read_bytes() != before


class TestSimulate:
    @pytest.mark.slow
    def test_tables_go_to_stderr_and_json_to_stdout(self, folder, capsys):
        assert run(["collaborate", "simulate", "data.csv", "--target", "ill", "--sizes", "40,30,20", "--json"]) == 0

        out, err = capsys.readouterr()
        found = json.loads(out)
        assert found["removed"] == ["rare", "few", "site"]
        assert found["n_rows"] == {"party-1": 40, "party-2": 30, "party-3": 20}
        assert [score["removed_as"] for score in found["table_1"]] == [1, None, None, 3, None, 2]
        assert set(found["table_2"]) == {"party-1", "party-2", "party-3"}
        assert f"site     {found['table_1'][3]['utility']:.4f}" in err
        for gains in [*found["table_2"].values(), found["whole_table_gains"]]:
            assert " ".join(f"{gain:.4f}" for gain in gains) in err
        assert "round   1  hello" in err
        assert "semi-honest protocol: your counts stay hidden from parties that follow the protocol" in err
        assert "not protected against: " in err
        assert sorted(os.listdir(folder)) == ["data.csv"]

    @pytest.mark.slow
    def test_releases_are_kept_in_a_folder(self, folder, capsys):
        (folder / "out").mkdir()

        assert run(["collaborate", "simulate", "data.csv", "--target", "ill", "--output-dir", "out"]) == 0

        assert len(os.listdir("out")) == 12
        assert "wrote 3 releases" in capsys.readouterr().err
        manifest, original = "out/party-1.csv.manifest.json", "out/party-1.original.parquet"
        assert run(["audit", "out/party-1.csv", "--manifest", manifest, "--original", original]) == 8
        capsys.readouterr()
        assert run(["collaborate", "simulate", "data.csv", "--target", "ill", "--output-dir", "out"]) == 3
        assert "--force" in capsys.readouterr().err

    @pytest.mark.parametrize("name", ["party-1.csv", "party-2.csv.manifest.json", "party-3.original.parquet"])
    def test_the_data_is_never_replaced(self, folder, capsys, name):
        (folder / name).write_bytes((folder / "data.csv").read_bytes())
        command = [
            "collaborate",
            "simulate",
            name,
            "--format",
            "csv",
            "--target",
            "ill",
            "--output-dir",
            ".",
            "--force",
        ]

        assert run(command) == 3

        assert ": it is the data" in capsys.readouterr().err
        assert (folder / name).read_bytes() == (folder / "data.csv").read_bytes()
        assert sorted(os.listdir(folder)) == sorted([name, "data.csv"])

    def test_a_table_of_fewer_rows_than_parties_is_refused(self, folder, capsys):
        (folder / "two.csv").write_text("a,ill\nx,yes\ny,no\n")

        assert run(["collaborate", "simulate", "two.csv", "--target", "ill"]) == 2
        assert "the table must be one of at least 3 rows" in capsys.readouterr().err

    def test_too_many_rows_for_the_mode_are_refused_before_anything_starts(self, folder, capsys):
        lines = ["a,b,ill", *(f"a{i % 2},b{i % 3},{i % 2}" for i in range(100_001))]
        (folder / "many.csv").write_text("\n".join(lines) + "\n")

        assert run(["collaborate", "simulate", "many.csv", "--target", "ill", "--mode", "selection-only"]) == 2
        assert "max_rows must be at most 100,000 with mode selection-only" in capsys.readouterr().err

    @pytest.mark.slow
    def test_the_mode_that_opens_the_selection_only_shows_no_scores(self, folder, capsys):
        options = ["--mode", "selection-only", "--seed", "4", "--json"]

        assert run(["collaborate", "simulate", "data.csv", "--target", "ill", *options]) == 0

        out, err = capsys.readouterr()
        assert json.loads(out)["removed"] == ["rare", "few", "site"]
        assert json.loads(out)["table_1"] == []
        assert "not revealed in this mode" in err
        assert "2 parties that pool all they see: they learn everything" in err
        assert "even after it saw the others': it can change the result unnoticed" in err

    @pytest.mark.slow
    def test_numbers_are_cut_or_count_as_categories(self, folder, capsys):
        lines = (folder / "data.csv").read_text().splitlines()
        more = ["age,ward", *(f"{20 + i},{i % 3}" for i in range(len(lines) - 1))]
        (folder / "data.csv").write_text("".join(f"{a},{b}\n" for a, b in zip(lines, more, strict=True)))
        command = ["collaborate", "simulate", "data.csv", "--target", "ill", "--json"]

        assert run(command) == 3
        assert "column 'age'" in capsys.readouterr().err
        assert run([*command, "--bins", "age=40,60"]) == 0
        out, err = capsys.readouterr()
        assert "the numbers of 'ward' count as categories" in err
        assert {score["name"] for score in json.loads(out)["table_1"]} >= {"age", "ward"}

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("arguments", "code", "message"),
        [
            (["--parties", "2"], 2, "parties must be from 3"),
            (["--seed", "-1"], 2, "seed must be 0 or above, got -1"),
            (["--weights", "1e308,1e308"], 2, "weights must be two numbers"),
            (["--mode", "selection-only", "--parties", "8"], 2, "the number of parties must be at most 7"),
            (["--mode", "selection-only", "--max-rows", "100001"], 2, "max_rows must be at most 100,000"),
            (["--mode", "selection-only", "--max-rows", "80"], 2, "got 80 for 90 rows"),
            (["--sizes", "40,40,11"], 2, "add up to at most the 90 rows"),
            (["--joint-k", "1"], 2, "joint_k must be a whole number of at least 2"),
            (["--joint-k", "5", "--epsilon", "1"], 2, "epsilon must be left out with a joint k"),
            (["--joint-k", "5", "--hierarchy", "a"], 2, "--hierarchy must be COLUMN=FILE"),
            (["--sizes", "1,x,3"], 2, "numbers separated by commas"),
            (["--weights", "1"], 2, "weights must be two numbers"),
            (["--weights", "1,x"], 2, "--weights must be numbers"),
            (["--min-privacy-gain", "0"], 2, "min_privacy_gain must be above 0"),
            (["--min-privacy-gain", "0.99"], 4, "all parties reach"),
            (["--bins", "site"], 2, "--bins must be COLUMN=1,2,3"),
            (["--bins", "nope=1"], 3, "column 'nope': has cut points but is not a feature"),
            (["--bins", "site=1"], 3, "not all its values are numbers"),
            (["--mode", "selection-only", "--epsilon", "1"], 2, "left out with mode selection-only"),
            (["--quasi-identifiers", "site"], 3, "has no role, although features are listed"),
            (["--other", "nope"], 3, "not found"),
        ],
    )
    def test_what_goes_wrong_is_said_in_one_line(self, folder, capsys, arguments, code, message):
        assert run(["collaborate", "simulate", "data.csv", "--target", "ill", *arguments]) == code

        assert message in capsys.readouterr().err.splitlines()[-1]
        assert os.listdir(folder) == ["data.csv"]

    def test_a_target_is_needed(self, folder, capsys):
        assert run(["collaborate", "simulate", "data.csv"]) == 3
        assert "role target" in capsys.readouterr().err


class TestParty:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("changes", "code", "message"),
        [
            ({"--config": "none.toml"}, 3, "there is no such party file"),
            ({"--schema": "none.json"}, 3, "cannot be read"),
            ({"--data": "none.csv"}, 3, "none.csv"),
            ({"-o": "none/r.csv"}, 3, "folder does not exist"),
            ({"-o": "-"}, 2, "a release is two files"),
            ({"--transcript": "none/t.jsonl"}, 3, "folder does not exist"),
            ({"--mode": "all"}, 2, "--mode"),
        ],
    )
    def test_what_is_wrong_at_home_is_said_before_anybody_is_called(self, folder, capsys, changes, code, message):
        group = Group(folder)
        command = group.command("ann", "--mode", "totals")
        for option, value in changes.items():
            command[command.index(option) + 1] = value

        assert run(command) == code
        assert message in capsys.readouterr().err
        assert group.releases() == set()

    def test_an_output_is_needed_unless_it_is_a_dry_run(self, folder, capsys):
        command = Group(folder).command("ann")
        place = command.index("-o")

        assert run(command[:place] + command[place + 2 :]) == 2
        assert "output must be given" in capsys.readouterr().err

    def test_a_schema_is_needed(self, folder, capsys):
        command = Group(folder).command("ann")
        place = command.index("--schema")

        assert run(command[:place] + command[place + 2 :]) == 2
        assert "schema must be given" in capsys.readouterr().err

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("option", "path", "what"),
        [
            ("--transcript", "ann.csv", "is the data"),
            ("--transcript", "ann.toml", "is the party's own file"),
            ("--transcript", "schema.json", "is the shared schema"),
            ("--transcript", "ann.key", "is the private key"),
            ("--transcript", "bob.crt", "is the certificate of 'bob'"),
            ("--transcript", "authority.crt", "is the authority's certificate"),
            ("--transcript", "ann-release.csv", "is the transcript"),
            ("--transcript", "../{name}/ann-release.csv.manifest.json", "is the transcript"),
            ("--transcript", "hard.csv", "is the data"),
            ("-o", "soft.csv", "is the input"),
            ("-o", "schema.csv", "is the shared schema"),
        ],
    )
    def test_what_is_read_is_never_replaced_not_even_by_force(self, folder, capsys, option, path, what):
        group = Group(folder)
        (folder / "hard.csv").hardlink_to(folder / "ann.csv")
        (folder / "soft.csv").symlink_to("ann.csv")
        (folder / "schema.csv").symlink_to("schema.json")
        before = {found.name: found.read_bytes() for found in folder.iterdir()}
        command = group.command("ann", "--force")
        command[command.index(option) + 1] = path.format(name=folder.name)

        assert run(command) == 3

        assert what in capsys.readouterr().err
        assert {found.name: found.read_bytes() for found in folder.iterdir()} == before

    @pytest.mark.parametrize(
        ("option", "path", "what"),
        [
            ("-o", "ann.csv", "is the data"),
            ("-o", "ann.key", "is the private key"),
            ("--transcript", "ann.csv", "is the data"),
            ("--transcript", "ann.toml", "is the party's own file"),
            ("--transcript", "agreed.json", "is the shared schema"),
        ],
    )
    def test_a_schema_replaces_nothing_that_is_read(self, folder, capsys, option, path, what):
        Group(folder)
        before = {found.name: found.read_bytes() for found in folder.iterdir()}
        command = ["collaborate", "schema", "--config", "ann.toml", "--data", "ann.csv", "--target", "ill", "--force"]
        command += ["-o", "agreed.json", "--transcript", "t.jsonl"]
        command[command.index(option) + 1] = path

        assert run(command) == 3

        assert what in capsys.readouterr().err
        assert {found.name: found.read_bytes() for found in folder.iterdir()} == before

    def test_a_private_key_that_others_can_read_is_refused_with_what_to_type(self, folder, capsys):
        group = Group(folder)
        (folder / "ann.key").chmod(0o640)

        assert run(group.command("ann")) == 3
        assert f"chmod 600 {folder / 'ann.key'}" in capsys.readouterr().err

    @pytest.mark.slow
    def test_the_partys_file_may_name_schema_and_release(self, nursery, tmp_path):
        group = Group(tmp_path)
        for name in NAMES:
            named = f'schema = "schema.json"\noutput = "{name}-release.csv"\n'
            group.config(name).write_text(named + group.config(name).read_text())
        typed = {name: ["--config", str(group.config(name)), "--data", str(group.data(name))] for name in NAMES}
        typed["bob"] += ["-o", str(tmp_path / "bob-release-elsewhere.csv")]

        found = nursery.run(group, {name: ["collaborate", "party", *given] for name, given in typed.items()})

        assert [outcome.code for outcome in found.values()] == [0, 0, 0], found
        released = {path.name for path in tmp_path.glob("*-release*.csv")}
        assert released == {"ann-release.csv", "bob-release-elsewhere.csv", "cid-release.csv"}

    @pytest.mark.slow
    @pytest.mark.parametrize("option", [["--drop-incomplete"], ["--missing", "c1"]])
    def test_parties_that_read_cells_differently_do_not_agree(self, nursery, tmp_path, option):
        group = Group(tmp_path)
        more = {"ann": [], "bob": [], "cid": option}
        if "--missing" in option:
            more = {"ann": ["--missing", "NA"], "bob": ["--missing", "NA"], "cid": ["--missing", "?"]}

        found = nursery.run(group, {name: group.command(name, *more[name]) for name in NAMES})

        assert [outcome.code for outcome in found.values()] == [6, 6, 6], found
        name = option[0].removeprefix("--").replace("-", "_")
        assert f"party 'cid', stage 'hello': has another value of the parameter '{name}'" in found["ann"].said
        assert group.releases() == set()

    def test_a_release_without_its_transcript_is_a_success_with_a_warning(self, nursery, tmp_path):
        group = Group(tmp_path)
        bad = {"ann": ["finds_a_file_at", "all are ready", str(group.transcript("ann"))]}

        found = nursery.run(group, {name: group.command(name) for name in NAMES}, bad)

        assert [outcome.code for outcome in found.values()] == [0, 0, 0], found
        assert "warning: there is no transcript" in found["ann"].said
        assert f"wrote {group.output('ann')}" in found["ann"].said
        assert group.transcript("ann").read_text() == "mine"

    def test_a_transcript_that_cannot_be_written_hides_no_failure(self, nursery, tmp_path):
        group = Group(tmp_path)
        bad = {"ann": ["finds_a_file_at", "hello", str(group.transcript("ann"))], "cid": ["dies_at", "seeds"]}

        found = nursery.run(group, {name: group.command(name) for name in NAMES}, bad)

        assert found["ann"].code == 6, found
        assert "warning: there is no transcript" in found["ann"].said
        assert "party 'cid', stage 'seeds'" in found["ann"].said.splitlines()[-1]

    def test_one_who_stops_in_the_selection_is_named_with_that_stage(self, nursery, tmp_path):
        group = Group(tmp_path)
        options = ["--mode", "selection-only", "--max-rows", "90"]
        bad = {"cid": ["is_interrupted_at", "selection"]}

        found = nursery.run(group, {name: group.command(name, *options) for name in NAMES}, bad)

        for name in ("ann", "bob"):
            assert found[name].code == 6, found
            assert "party 'cid', stage 'selection': stopped because of" in found[name].said.splitlines()[-1]

    @pytest.mark.slow
    def test_one_who_is_interrupted_while_waiting_has_a_transcript(self, tmp_path, hears_ctrl_c):
        group = Group(tmp_path)
        command = [sys.executable, "-c", "from sfumato.__main__ import main; main()", *group.command("ann")]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        while "waiting for" not in process.stderr.readline():
            pass
        until(lambda: is_listened_on(group.peers[0].port))

        process.send_signal(signal.SIGINT)

        process.communicate(timeout=HANGS)
        assert process.returncode == 130
        assert json.loads(group.transcript("ann").read_text().splitlines()[-1])["outcome"] == "stopped"


def is_listened_on(port):
    with socket.socket() as candidate:
        return candidate.connect_ex(("127.0.0.1", port)) == 0


def test_a_missing_extra_is_named_with_the_way_to_install_it(folder, capsys, monkeypatch):
    monkeypatch.setattr(collaborate_options, "find_spec", lambda name: None if name == "mpyc" else object())

    assert run(["collaborate", "simulate", "data.csv", "--target", "ill"]) == 2
    shown = capsys.readouterr().err
    assert "lacks mpyc" in shown
    assert "pip install 'sfumato[collaborate]'" in shown
    assert run(["collaborate", "simulate", "--help"]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", [(), ("keys",), ("schema",), ("party",), ("simulate",)])
def test_help_has_examples(capsys, name):
    assert run(["collaborate", *name, "--help"]) == 0

    assert "Examples:" in capsys.readouterr().out


@pytest.mark.slow
def test_help_and_the_way_to_an_agreement_import_little():
    heavy = {"sklearn", "matplotlib", "opendp", "mpyc", "rich", "joblib"}
    program = f"""
import sys
import sfumato.cli.making.collaborate
assert not {{"numpy", "cryptography"}} & set(sys.modules)
import sfumato.collaborate.session.party, sfumato.collaborate.shared_schema, sfumato.table.io.read
assert not {heavy!r} & set(sys.modules), {heavy!r} & set(sys.modules)
"""

    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.slow
def test_parties_publish_one_table_of_all_rows_and_one_with_another_k_is_named(nursery, tmp_path):
    group = Group(tmp_path)
    joint = ["--joint-k", "8", "--max-rows", "90", "--json"]

    found = nursery.run(group, {name: group.command(name, *joint) for name in NAMES})

    assert {outcome.code for outcome in found.values()} == {0}, found
    assert "every row shares its values on 6 quasi-identifying columns" in found["ann"].said
    assert len({group.output(name).read_bytes() for name in NAMES}) == 1
    for name in NAMES:
        manifest = f"{group.output(name)}.manifest.json"
        arguments = ["audit", str(group.output(name)), "--manifest", manifest, "--original", str(group.data(name))]
        assert run([*arguments, "--accept", "original,roles"]) == 0

    for name in NAMES:
        group.output(name).unlink()
    odd = {name: group.command(name, *joint, "--force") for name in NAMES}
    odd["bob"][odd["bob"].index("8")] = "9"
    found = nursery.run(group, odd)

    assert {outcome.code for outcome in found.values()} == {6}
    assert "bob" in found["ann"].said
    assert "joint_k" in found["ann"].said
    assert group.releases() == {"ann", "bob", "cid"}  # manifests alone, of the session before
