"""Collaborate on the page: a real simulation and a real session seen while they run, and faults told in words."""

import html
import json
import os
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.collaborate.config import load_party_config
from sfumato.collaborate.plan import Plan
from sfumato.collaborate.session.joining import in_shared_roles
from sfumato.collaborate.session.party import take_part
from sfumato.collaborate.simulate.simulation import simulate
from sfumato.table.io.read import read_table
from sfumato.table.io.write import write_table
from sfumato.web import sessions
from sfumato.web.views import collaborate
from unit.collaborate.groups import Group, small_table
from waiting import until
from web.asking import Site, shown

PATIENCE = 300.0  # bounds a hang


class CollaborateSite(Site):
    """A page with this step alone."""

    def start(self, form, **fields):
        answer = self.post(f"/collaborate/{form}", fields)
        assert (answer.status, answer.headers.get("location")) == (303, "/collaborate"), answer.shown
        return self.page.job("collaborate")

    def watch(self):
        """Poll as the page does until the job is over; gives every fragment."""
        fragments, end, job = [], time.monotonic() + PATIENCE, self.page.job("collaborate")
        while not fragments or "hx-trigger" in fragments[-1]:
            assert time.monotonic() < end
            job._has_ended.wait(0.1)
            fragments.append(self.get("/collaborate/status").text)
        return fragments


def table_of(text, caption):
    """Cells of the table whose caption begins so."""
    for found in re.findall(r"<table.*?</table>", text, flags=re.DOTALL):
        if shown(re.search(r"<caption>(.*?)</caption>", found, flags=re.DOTALL)[1]).startswith(caption):
            body = found.partition("<tbody>")[2]
            rows = re.findall(r"<tr.*?</tr>", body, flags=re.DOTALL)
            return [[shown(cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, flags=re.DOTALL)] for row in rows]
    return None


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server") / "private"
    folder.mkdir(mode=0o700)
    browser = CollaborateSite(folder, collaborate)
    yield browser
    browser.page.close()


@pytest.fixture
def browser(served):
    """Give a page on which nothing was done yet."""
    served.page.state.update(jobs={}, project=None, collaborate_forms={})
    yield served
    job = served.page.job("collaborate")
    if job is not None:
        served.page.jobs.cancel(job.id)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Make a project file of the small table, with a column that is no feature."""
    folder = tmp_path_factory.mktemp("project")
    table = small_table()
    with (folder / "small.csv").open("wb") as file:
        write_table(table, file, "csv")
    roles = {name: "target" if name == "ill" else "quasi-identifier" for name in table.schema.names()}
    columns = "\n".join(f'{name} = {{ role = "{role}", kind = "categorical" }}' for name, role in roles.items())
    (folder / "sfumato.toml").write_text(f'[data]\npath = "small.csv"\n\n[columns]\n{columns}\n')
    return folder / "sfumato.toml"


@pytest.fixture(scope="module")
def keyed_group(tmp_path_factory):
    return Group(tmp_path_factory.mktemp("group"), timeout=120.0, start_timeout=120.0)


@pytest.fixture
def group(keyed_group):
    for path in [*keyed_group.folder.glob("*-release*"), *keyed_group.folder.glob("*.jsonl")]:
        path.unlink()
    return keyed_group


@pytest.fixture(scope="module")
def simulated(served, project):
    """Simulate three parties once; gives the job, what was shown meanwhile, and the page that is loaded afterwards."""
    served.page.state.update(jobs={}, project=str(project), collaborate_forms={})
    job = served.start("simulate", parties="3", seed="5", min_privacy_gain="0.1", mode="totals")
    return job, served.watch(), served.get("/collaborate").text


class TestSimulation:
    def test_three_parties_are_shown_while_they_run_and_come_to_what_the_library_comes_to(self, simulated):
        job, fragments, _ = simulated

        expected = simulate(small_table(), Plan(0.1), seed=5)
        assert job.status == "done", job.error
        assert job.result()["removed"] == list(expected.removed)
        assert table_of(fragments[-1], "Parties") == [[f"party-{i}", "done"] for i in (1, 2, 3)]
        order = {name: str(place) for place, name in enumerate(expected.removed, start=1)}
        assert table_of(fragments[-1], "Scores") == [
            [score["name"]]
            + [f"{score[key]:.4f}" for key in ("utility", "privacy_pooled", "tradeoff")]
            + [order.get(score["name"], "")]
            for score in expected.scores
        ]
        columns = [*expected.gains.values(), expected.whole_table_gains]
        assert table_of(fragments[-1], "Privacy gain after each removal (Table II") == [
            [name, *(f"{gains[place]:.4f}" for gains in columns)] for place, name in enumerate(expected.removed)
        ]
        assert [row[2] for row in table_of(fragments[-1], "Releases")] == ["nothing was written"] * 3
        assert sorted(path.name for path in job.folder.iterdir()) == [
            "job.json",
            "parties.jsonl",
            "result.json",
            "rounds.jsonl",
            "transcript.jsonl",
        ]

    def test_rounds_and_messages_add_up_to_what_the_party_sent(self, simulated):
        job, (*_, text), _ = simulated

        own = job.result()["parties"]["party-1"]
        rounds, messages = table_of(text, "Rounds"), table_of(text, "Messages")
        assert [int(row[0]) for row in rounds] == list(range(len(rounds), 0, -1))
        for place, (key, direction) in enumerate([("bytes_sent", "sent"), ("bytes_received", "received")], start=2):
            assert sum(int(row[place].replace(",", "")) for row in rounds) == own[key]
            by_direction = [int(row[4].replace(",", "")) for row in messages if row[1] == direction]
            assert sum(by_direction) == own[key]
        assert {row[3] for row in messages} == {"party-2", "party-3"}
        assert {row[2] for row in messages} == {row[1] for row in rounds}

    def test_the_result_is_still_there_after_a_reload(self, simulated):
        _, fragments, text = simulated

        assert table_of(text, "Scores") == table_of(fragments[-1], "Scores") != []
        assert 'name="min_privacy_gain" value="0.1"' in text
        assert 'name="seed" value="5"' in text

    @pytest.mark.parametrize("begun", ["program", "session"])
    def test_a_cancelled_one_leaves_no_process_and_no_key(self, browser, project, begun):
        browser.page.state.update(project=str(project))
        job = browser.start("simulate", parties="7", seed="0", min_privacy_gain="0.1", mode="selection-only")
        rounds = job.folder / "rounds.jsonl"
        until(rounds.exists if begun == "session" else lambda: processes_of(job.folder))
        assert len(processes_of(job.folder)) == (1 if begun == "program" else 8)
        assert "hx-trigger" in browser.get("/collaborate/status").text

        status, headers, _ = browser.post("/collaborate/cancel")

        assert (status, headers["location"]) == (303, "/collaborate")
        assert job.status == "cancelled"
        assert [path.name for path in job.folder.iterdir()] == ["job.json"]
        until(lambda: not processes_of(job.folder))
        assert [path.name for path in job.folder.iterdir()] == ["job.json"]
        text = browser.get("/collaborate").text
        assert "Cancelled here." in shown(text)
        assert "hx-trigger" not in text

    def test_a_gain_out_of_reach_is_said_with_what_is_reachable(self, browser, project):
        browser.page.state.update(project=str(project))
        browser.start("simulate", parties="3", seed="0", min_privacy_gain="0.95")

        text = browser.watch()[-1]

        assert re.search(r"all parties reach 0\.\d+", shown(text))
        assert {row[1] for row in table_of(text, "Parties")} == {"ended early"}

    @pytest.mark.parametrize(
        ("fields", "words"),
        [
            ({"parties": "2"}, "parties must be from 3 to 60, got 2"),
            ({"cuts": "age"}, "cut points must be lines such as age=30,50,70"),
            ({"cuts": "=1,2"}, "cut points must be lines such as age=30,50,70"),
            ({"cuts": "site=1,x"}, "cut points must be lines such as age=30,50,70"),
            ({"cuts": "nowhere = 1, 2"}, "nowhere"),
            ({"mode": "guess"}, "mode must be one of totals, selection-only"),
            ({"min_privacy_gain": "2"}, "min_privacy_gain must be"),
        ],
    )
    def test_what_cannot_be_simulated_is_said(self, browser, project, fields, words):
        browser.page.state.update(project=str(project))
        browser.start("simulate", **{"parties": "3", "seed": "0", "min_privacy_gain": "0.1", **fields})

        assert words in shown(browser.watch()[-1])

    def test_numbers_are_cut_as_asked(self, browser, tmp_path):
        rows = [(i, i % 2, "yes" if i < 40 else "no") for i in range(90)]
        (tmp_path / "n.csv").write_text("age,b,ill\n" + "".join(f"{a},b{b},{c}\n" for a, b, c in rows))
        (tmp_path / "sfumato.toml").write_text(
            '[data]\npath = "n.csv"\n[columns]\nage = { role = "quasi-identifier", kind = "numeric" }\n'
            'b = { role = "quasi-identifier" }\nill = { role = "target" }\n'
        )
        browser.page.state.update(project=str(tmp_path / "sfumato.toml"))
        fields = {"parties": "3", "seed": "0", "min_privacy_gain": "0.05"}

        browser.start("simulate", **fields)
        assert "column 'age': is numeric with more than 20 values and has no cut points" in shown(browser.watch()[-1])
        assert browser.post("/collaborate/cuts", fields).status == 303
        proposed = re.search(r">age=([0-9.,]+)</textarea>", browser.get("/collaborate").text)[1].split(",")
        below = [sum(row[0] <= float(cut) for row in rows) for cut in proposed]
        assert below == pytest.approx([22.5, 45, 67.5], abs=3)
        job = browser.start("simulate", **fields, cuts="age=39.5,60\n")
        browser.watch()

        assert job.status == "done", job.error
        utility = {score["name"]: score["utility"] for score in job.result()["table_1"]}
        share = 40 / 90
        whole = -(share * np.log2(share) + (1 - share) * np.log2(1 - share))
        assert utility["age"] == pytest.approx(whole)  # the first cut tells the class apart


class TestSession:
    def run_others(self, group, threads, **options):
        def one(name):
            rows = in_shared_roles(read_table(group.data(name)), group.schema)
            plan = Plan(0.1, **options)
            return take_part(load_party_config(group.config(name)), rows, group.schema, plan, output=group.output(name))

        return [threads.submit(one, name) for name in ("bob", "cid")]

    def test_a_party_of_the_page_publishes_with_parties_elsewhere(self, browser, group):
        fields = {"config": group.config("ann"), "data": group.data("ann"), "schema": group.schema_path}
        files = {"output": group.output("ann"), "transcript": group.transcript("ann")}
        with ThreadPoolExecutor(2) as threads:
            others = self.run_others(group, threads)
            job = browser.start("take-part", **fields, **files, min_privacy_gain="0.1")
            fragments = browser.watch()
            bob, _ = (other.result(PATIENCE) for other in others)

        assert job.status == "done", job.error
        text, found = fragments[-1], job.result()
        assert group.releases() == {"ann", "bob", "cid"}
        assert found["removed"] == list(bob.selection.removed)
        assert table_of(text, "Releases") == [
            ["ann", f"{found['audited_gain']:.4f}", f"{group.output('ann')} {group.output('ann')}.manifest.json"]
        ]
        gains = [[name, f"{gain:.4f}"] for name, gain in zip(found["removed"], found["own_gains"], strict=True)]
        assert table_of(text, "Privacy gain after each removal. No other party") == gains
        assert table_of(text, "Parties") == [["ann", "done"], ["bob", "done"], ["cid", "done"]]
        assert job.log[-1]["text"] in ("connected with bob", "connected with cid")
        written = browser.get(f"/collaborate/transcript?path={quote(str(group.transcript('ann')))}").text
        assert table_of(written.partition('id="opened-title"')[2], "Messages") == table_of(text, "Messages")
        assert "How it ended complete" in shown(written)

    def test_a_dry_run_of_the_open_table_writes_nothing(self, browser, group, tmp_path):
        roles = dict.fromkeys(group.schema.names, "quasi-identifier") | {"ill": "target"}
        listed = "\n".join(f'{name} = {{ role = "{role}" }}' for name, role in roles.items())
        project = group.folder / "sfumato.toml"
        project.write_text(f'[data]\npath = "{group.data("ann").name}"\n[columns]\n{listed}\n')
        browser.page.state.update(project=str(project))
        fields = {"config": group.config("ann"), "rows": "open", "schema": group.schema_path, "dry_run": "yes"}

        with ThreadPoolExecutor(2) as threads:
            others = self.run_others(group, threads, dry_run=True)
            job = browser.start("take-part", **fields, min_privacy_gain="0.1")
            text = browser.watch()[-1]
            for other in others:
                other.result(PATIENCE)

        assert job.status == "done", job.error
        assert group.releases() == set()
        assert table_of(text, "Releases")[0][2] == "nothing was written"

    def test_a_typed_path_is_meant_from_the_folder_of_the_server_also_for_an_upload(self, browser, group, monkeypatch):
        monkeypatch.chdir(group.folder)
        upload = browser.page.folder / "data" / "0f"
        upload.mkdir(parents=True)
        (upload / "mine.csv").write_bytes(group.data("ann").read_bytes())
        roles = dict.fromkeys(group.schema.names, "quasi-identifier") | {"ill": "target"}
        listed = "\n".join(f'{name} = {{ role = "{role}" }}' for name, role in roles.items())
        (upload / "sfumato.toml").write_text(f'[data]\npath = "mine.csv"\n[columns]\n{listed}\n')
        browser.page.state.update(project=str(upload / "sfumato.toml"))
        config, schema = (str(path.relative_to(group.folder)) for path in (group.config("ann"), group.schema_path))
        fields = {"config": config, "rows": "open", "schema": schema, "min_privacy_gain": "0.1"}

        browser.start("take-part", **fields, output="nowhere/release.csv")

        words = shown(browser.watch()[-1])
        assert f"{group.folder / 'nowhere' / 'release.csv'}: its folder does not exist" in words

    def test_a_party_that_never_comes_is_named_with_the_stage(self, browser, tmp_path):
        group = Group(tmp_path, start_timeout=1.0)
        fields = {"config": group.config("ann"), "data": group.data("ann"), "schema": group.schema_path}

        job = browser.start("take-part", **fields, output=group.output("ann"), min_privacy_gain="0.1")
        fragments = browser.watch()

        waiting = [["ann", "this party"], ["bob", "waited for"], ["cid", "waited for"]]
        assert waiting in [table_of(text, "Parties") for text in fragments]
        assert job.status == "failed"
        assert job.error.exit_code == 6
        words = shown(fragments[-1])
        assert "Party bob failed at stage connect." in words
        assert "could not be reached within 1 s" in words
        assert "Nothing was released." in words
        assert table_of(fragments[-1], "Parties")[1] == ["bob", "failed at stage connect"]
        assert group.releases() == set()

    def test_only_one_session_runs_at_a_time(self, browser, group):
        fields = {"config": group.config("ann"), "data": group.data("ann"), "schema": group.schema_path}
        fields |= {"output": group.output("ann"), "min_privacy_gain": "0.1"}
        job = browser.start("take-part", **fields)

        status, _, text = browser.post("/collaborate/take-part", fields)

        assert status == 422
        assert "A session is running." in shown(text)
        assert browser.page.job("collaborate") is job

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"config": "/nowhere/party.toml"}, "/nowhere/party.toml: there is no such party file"),
            ({"data": "/nowhere/mine.csv"}, "/nowhere/mine.csv"),
            ({"schema": "/nowhere/schema.json"}, "/nowhere/schema.json"),
            ({"schema": ""}, "shared schema must be given"),
            ({"output": ""}, "file of the release must be given"),
            ({"kept_back": "ill"}, "the role of 'ill' must be that of the shared schema"),
            ({"config": "~no-such-user-here/party.toml"}, "names a user that this machine does not know"),
        ],
    )
    def test_a_wrong_entry_is_told_in_words_and_stays_in_its_field(self, browser, group, changes, words):
        fields = {"config": group.config("ann"), "data": group.data("ann"), "schema": group.schema_path}
        fields |= {"output": group.output("ann"), "min_privacy_gain": "0.1", **changes}
        browser.start("take-part", **fields)

        text = browser.watch()[-1]

        assert words in shown(text)
        page = browser.get("/collaborate").text
        for name in changes:
            assert f'name="{name}" value="{html.escape(str(changes[name]))}"' in page

    def test_columns_beyond_the_schema_are_kept_back_or_released_as_asked(self, browser, group, tmp_path):
        header, *lines = group.data("ann").read_text().splitlines()
        wider = [f"{header},note,code", *(f"{line},n{i},c{i % 2}" for i, line in enumerate(lines))]
        (tmp_path / "wide.csv").write_text("\n".join(wider) + "\n")
        fields = {"config": group.config("ann"), "data": tmp_path / "wide.csv", "schema": group.schema_path}
        fields |= {"output": group.output("ann"), "min_privacy_gain": "0.1"}

        browser.start("take-part", **fields, kept_back="note")
        assert "column 'code': is not in the shared schema and has no role" in shown(browser.watch()[-1])
        with ThreadPoolExecutor(2) as threads:
            others = self.run_others(group, threads)
            job = browser.start("take-part", **fields, kept_back=" note ", released="code")
            browser.watch()
            for other in others:
                other.result(PATIENCE)

        assert job.status == "done", job.error
        released = group.output("ann").read_text().splitlines()[0].split(",")
        assert "code" in released
        assert "note" not in released


class TestForms:
    @pytest.mark.parametrize(
        ("form", "changes", "field", "words"),
        [
            ("take-part", {"config": ""}, "config", "Name the file of this party"),
            ("take-part", {"data": ""}, "data", "Name the file with this party's rows."),
            ("take-part", {"min_privacy_gain": "much"}, "min_privacy_gain", "Give a number."),
            ("simulate", {"parties": "3.5"}, "parties", "Give a whole number."),
            ("simulate", {"seed": ""}, "seed", "Give a whole number."),
            ("simulate", {"min_privacy_gain": ""}, "min_privacy_gain", "Give a number."),
        ],
    )
    def test_a_problem_stands_beside_its_field_and_nothing_starts(self, browser, project, form, changes, field, words):
        if form == "simulate":
            browser.page.state.update(project=str(project))
        usual = {"config": "p.toml", "data": "d.csv", "parties": "3", "seed": "0", "min_privacy_gain": "0.1"}

        status, _, text = browser.post(f"/collaborate/{form}", {**usual, **changes})

        assert status == 422
        assert browser.page.job("collaborate") is None
        beside = re.search(rf'id="{form}-{field}".*?</div>', text, flags=re.DOTALL)[0]
        assert words in shown(beside)
        about = rf'aria-invalid="true" aria-describedby="problem-{form}-{field}( {form}-{field}-hint)?"'
        assert re.search(about, beside)

    def test_every_control_has_a_label(self, browser, project):
        browser.page.state.update(project=str(project))

        text = browser.get("/collaborate").text

        main = text.partition("<main")[2]
        ids = re.findall(r'<(?:input|select|textarea)[^>]*\sid="([^"]+)"', main)
        assert len(ids) > 12
        assert set(ids) <= set(re.findall(r'<label for="([^"]+)"', main))
        unnamed = re.findall(r"<(?:input|select|textarea)(?![^>]*\sid=)[^>]*>", main)
        assert len(unnamed) == main.count('<label class="check">')

    def test_cut_points_of_a_project_that_is_gone_are_not_proposed(self, browser):
        browser.page.state.update(project="/nowhere/sfumato.toml")

        status, _, text = browser.post("/collaborate/cuts", {"parties": "4"})

        assert status == 422
        assert "there is no such project file" in shown(text)
        assert 'name="parties" value="4"' in text

    def test_without_a_table_there_is_nothing_to_simulate(self, browser):
        assert "Open a table" in browser.get("/collaborate").shown

        for form in ("simulate", "cuts"):
            status, _, text = browser.post(f"/collaborate/{form}", {"parties": "3", "seed": "0"})

        assert status == 422
        assert "Open a table first." in shown(text)

    def test_a_missing_extra_is_said_with_how_to_install_it(self, browser, group, monkeypatch):
        monkeypatch.setattr(collaborate, "find_spec", lambda name: None if name == "mpyc" else object())

        status, _, text = browser.get("/collaborate")
        refused, _, answer = browser.post("/collaborate/take-part", {"config": "x", "data": "y"})

        assert status == 200
        assert "This installation lacks mpyc." in shown(text)
        assert "pip install 'sfumato[collaborate]'" in shown(text)
        assert '<button class="primary" disabled>' in text
        assert refused == 422
        assert "This installation lacks mpyc." in shown(answer)
        assert browser.page.job("collaborate") is None

    def test_a_session_that_is_being_started_in_another_tab_is_the_only_one(self, browser, project):
        browser.page.state.update(project=str(project))
        with browser.page.only_one("collaborate"):
            refused = browser.post("/collaborate/simulate", {"parties": "3", "seed": "0", "min_privacy_gain": "0.1"})

        assert refused.status == 422
        assert "A session is running." in refused.shown
        assert browser.page.job("collaborate") is None

    def test_cancelling_nothing_is_harmless(self, browser):
        assert browser.post("/collaborate/cancel").status == 303


FACTS = {"party": "ann", "roster": ["ann", "bob", "cid"], "session": "trial"}
ENTRY = {"seconds": 0.5, "direction": "sent", "stage": "hello", "peer": "bob", "n_bytes": 120, "digest": "00ff"}
OUTCOME = {"outcome": "complete", "bytes_sent": 120, "bytes_received": 0, "seconds": 0.7}


class TestTranscriptFile:
    def opened(self, browser, path):
        return browser.get(f"/collaborate/transcript?path={quote(str(path))}")

    def write(self, path, *lines):
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    @pytest.mark.parametrize("n_entries", [0, 1, 199, 200, 201, 500])
    def test_the_last_messages_are_shown_the_latest_first(self, browser, tmp_path, n_entries):
        entries = [{**ENTRY, "n_bytes": number} for number in range(n_entries)]
        path = self.write(tmp_path / "s.jsonl", FACTS, *entries, OUTCOME)

        status, _, text = self.opened(browser, path)

        assert status == 200
        rows = table_of(text, "Messages")
        assert [int(row[4]) for row in rows] == list(range(n_entries))[::-1][:200]
        assert ("The last 200 of 500." in shown(text)) == (n_entries == 500)

    def test_an_aborted_session_is_told_with_the_party_and_the_stage(self, browser, tmp_path):
        aborted = {**OUTCOME, "outcome": "aborted", "culprit": "cid", "stage": "hello", "reason": "silent"}

        text = self.opened(browser, self.write(tmp_path / "s.jsonl", FACTS, ENTRY, aborted)).text

        assert "aborted, because of party cid at stage hello (silent)" in shown(text)

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"canary\n",
            b"name,canary\n1,2\n",
            b"[1]\n[2]\n[3]\n",
            b'{"canary": 1}\n{"canary": 2}\n',
            json.dumps(FACTS).encode(),
            f"{json.dumps(FACTS)}\n{json.dumps(ENTRY)}\n".encode(),
            f"{json.dumps(FACTS)}\n{json.dumps({'canary': 'canary'})}\n{json.dumps(OUTCOME)}\n".encode(),
            f"{json.dumps(FACTS)}\n{json.dumps({**OUTCOME, 'seconds': float('inf')})}\n".encode(),
            f"{json.dumps(FACTS)}\n{json.dumps({**OUTCOME, 'bytes_sent': 10**400})}\n".encode(),
            b"\xff\xfecanary",
            b"[" * 100_000,
        ],
        ids=["empty", "text", "csv", "lists", "others", "no-end", "cut", "entry", "endless", "huge", "bytes", "deep"],
    )
    def test_another_file_is_refused_beside_the_field_without_its_content(self, browser, tmp_path, content):
        (tmp_path / "other.jsonl").write_bytes(content)

        status, _, text = self.opened(browser, tmp_path / "other.jsonl")

        assert status == 422
        beside = re.search(r'id="transcript-path".*?</div>', text, flags=re.DOTALL)[0]
        assert re.search("is not a transcript of a session|cannot be read", shown(beside))
        assert "canary" not in text

    def test_what_has_no_end_or_is_too_large_is_refused(self, browser, tmp_path):
        with (tmp_path / "large.jsonl").open("wb") as file:
            file.truncate(50_000_001)
        (tmp_path / "line.jsonl").write_text(json.dumps({**FACTS, "session": "x" * 100_000}) + "\n")
        self.write(tmp_path / "whole.jsonl", FACTS, OUTCOME)

        assert "cannot be read (it is not a file)" in self.opened(browser, "/dev/zero").shown
        assert (
            "is larger than the page reads (50,000,000 bytes)" in self.opened(browser, tmp_path / "large.jsonl").shown
        )
        assert "is not a transcript" in self.opened(browser, tmp_path / "line.jsonl").shown
        assert self.opened(browser, tmp_path / "whole.jsonl").status == 200

    @pytest.mark.parametrize("path", ["", "/nowhere/s.jsonl", "/", "a\0b", "~no-such-user-here/s.jsonl"])
    def test_a_path_that_leads_nowhere_is_said(self, browser, path):
        status, _, text = self.opened(browser, path)

        assert status == 422
        assert re.search("Name a file.|cannot be read|names a user that this machine does not know", shown(text))

    def test_a_name_in_it_is_text_and_not_a_tag(self, browser, tmp_path):
        path = self.write(tmp_path / "s.jsonl", FACTS, {**ENTRY, "peer": "<script>alert(1)</script>"}, OUTCOME)

        text = self.opened(browser, path).text

        assert "&lt;script&gt;alert(1)" in text


class TestTail:
    @given(numbers=st.lists(st.integers(0, 10**6), max_size=40), rest=st.sampled_from([b"", b'{"half": ']))
    def test_whole_lines_are_read_and_half_a_line_is_left_for_later(self, tmp_path_factory, numbers, rest):
        path = tmp_path_factory.mktemp("tail") / "lines.jsonl"
        path.write_bytes(b"".join(b'{"n": %d}\n' % number for number in numbers) + rest)

        assert [line["n"] for line in sessions._tail(path)] == numbers

    def test_of_a_long_file_the_last_lines_are_read(self, tmp_path):
        path = tmp_path / "long.jsonl"
        path.write_text("".join(json.dumps({"n": number, "text": "x" * 90}) + "\n" for number in range(5000)))

        found = [line["n"] for line in sessions._tail(path)]

        assert found == list(range(found[0], 5000))
        assert 200 < len(found) < 5000

    def test_a_file_that_is_not_there_has_no_lines(self, tmp_path):
        assert sessions._tail(tmp_path / "none.jsonl") == []


@given(
    own=st.lists(st.tuples(*[st.integers(0, 1000)] * 3), max_size=30),
    n_lost=st.integers(0, 30),
)
def test_each_round_has_its_own_bytes_and_the_first_known_one_of_many_is_left_out(own, n_lost):
    keys = ("bytes_sent", "bytes_received", "seconds")
    sums = np.cumsum(np.array(own, dtype=int).reshape(-1, 3), axis=0).tolist()
    rounds = [{"number": number, **dict(zip(keys, total, strict=True))} for number, total in enumerate(sums, start=1)][
        n_lost:
    ]

    found = sessions._by_round(rounds)

    known = own if n_lost == 0 else own[n_lost + 1 :]
    assert [tuple(line[key] for key in keys) for line in found] == known


def processes_of(folder):
    """Numbers of the living processes that were started with this folder's path."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                is_alive = " Z " not in (entry / "stat").read_text()
                if is_alive and str(folder).encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found
