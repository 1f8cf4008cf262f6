"""Python as people use it: releases as frames, summaries, pictures; recoders as steps of pipelines."""

from __future__ import annotations

import pickle
import re
import warnings
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

import sfumato
from sfumato.cli.main import run
from sfumato.datasets.papers import toy_containment_table
from sfumato.errors import ColumnNotFoundError, InvalidParameterError, ManifestError, SchemaError
from sfumato.mechanisms.base import Release
from sfumato.schema import Role
from sfumato.table.coding import Table

N = 240
CANARY = "CANARY"


def people() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, N),
            "sex": rng.choice(list("fm"), N),
            "region": rng.choice(["north", "south", CANARY], N),
            "income": rng.normal(2_000, 300, N).round(1),
            "ill": rng.choice(["yes", "no"], N),
        },
        index=range(1_000, 1_000 + N),
    )


@pytest.fixture(scope="module")
def made() -> Release:
    return sfumato.release(people(), target="ill", roles={"income": "other"}, k=5)


class TestFrames:
    @pytest.mark.slow
    def test_pandas_gets_the_released_rows_in_their_canonical_order(self, made: Release) -> None:
        """With the types of what is released unchanged, and without the index of the original."""
        frame = made.to_pandas()

        assert list(frame.columns) == ["age", "sex", "region", "income", "ill"]
        assert frame["income"].dtype == "float64"
        assert frame.index.tolist() == list(range(N))
        assert frame.to_dict("list") == made.data.coded_part.to_arrow().to_pydict()
        assert pd.DataFrame(made).equals(frame)

    def test_pandas_from_arrow(self, made: Release) -> None:
        if not hasattr(pd.DataFrame, "from_arrow"):
            pytest.skip("this pandas has no DataFrame.from_arrow")

        assert pd.DataFrame.from_arrow(made).equals(made.to_pandas())

    def test_polars_arrow_and_duckdb_take_it_as_it_is(self, made: Release) -> None:
        """``pl.from_arrow`` of polars 2 gives a column of structs for every foreign stream; older ones a frame."""
        rows = made.to_pandas().to_dict("list")
        taken = pl.from_arrow(made)
        frame = taken.struct.unnest() if isinstance(taken, pl.Series) else taken

        assert made.to_polars().to_dict(as_series=False) == rows
        assert pl.DataFrame(made).equals(made.to_polars())
        assert frame.equals(made.to_polars())
        assert pa.table(made).to_pydict() == rows
        assert duckdb.sql("select count(*), count(distinct ill) from made").fetchall() == [(N, 2)]
        assert sfumato.read_table(made).n_rows == N

    @pytest.mark.slow
    def test_numbers_of_a_text_file_come_back_as_numbers(self, tmp_path: Any) -> None:
        people().to_csv(tmp_path / "people.csv", index=False)
        roles = dict.fromkeys(["income", "age"], "other")
        frame = sfumato.release(tmp_path / "people.csv", target="ill", roles=roles).to_pandas()

        assert (frame["income"].dtype, frame["age"].dtype) == ("float64", "int64")
        assert sorted(frame["income"]) == sorted(people()["income"])

    def test_a_sparse_release_is_a_frame_of_its_features(self) -> None:
        table = toy_containment_table()
        made = sfumato.release(table, sfumato.GreedyContainmentSelector(k=2))

        assert made.to_pandas().shape == (table.n_rows, len(made.manifest.output["columns"]))


class TestNamesThatAreNoTexts:
    @pytest.mark.slow
    def test_they_become_texts_and_are_given_either_way(self) -> None:
        frame = people().set_axis(range(5), axis=1)
        by_number = sfumato.release(frame, target=4, roles={3: "other"}, k=5)
        by_text = sfumato.release(frame, target="4", roles={"3": "other"}, k=5)

        assert list(by_number.to_pandas().columns) == ["0", "1", "2", "3", "4"]
        assert by_number.to_pandas().equals(by_text.to_pandas())
        assert by_number.manifest.output["columns"][4] == {"name": "4", "role": "target", "kind": "categorical"}

    def test_a_name_that_is_not_there_is_said(self) -> None:
        with pytest.raises(ColumnNotFoundError, match="'9'"):
            sfumato.release(people().set_axis(range(5), axis=1), target=9)

    def test_two_that_are_the_same_text_are_refused(self) -> None:
        with pytest.raises(sfumato.errors.InputError, match="columns 1 and 2 have the same name"):
            sfumato.release(people().set_axis([0, "0", 2, 3, 4], axis=1), target=4)

    @pytest.mark.parametrize("mechanism", [sfumato.Mondrian(k=5), sfumato.GlobalRecoder(k=5)])
    def test_recoders_take_them_and_give_texts(self, mechanism: Any) -> None:
        frame = people()[["age", "sex"]].set_axis([0, 1], axis=1)

        assert list(mechanism.fit_transform(frame).columns) == mechanism.get_feature_names_out() == ["0", "1"]


class TestTarget:
    @pytest.mark.parametrize("last", ["outcome", "q"])
    def test_none_is_guessed_but_asked_for(self, last: str) -> None:
        """Neither by its name nor because it is the last; the release then serves none, and says so."""
        frame = people().rename(columns={"ill": last})
        with pytest.warns(UserWarning, match=f"no target was given, .*; '{last}' looks like one and is released as"):
            made = sfumato.release(frame, roles={"income": "other"})

        assert "target" not in {column["role"] for column in made.manifest.output["columns"]}
        assert "not measured: the release has no target to predict" in repr(made)
        assert {g.column.name: g.column.role for g in made.guesses}[last] is Role.QUASI_IDENTIFIER

    def test_a_table_without_anything_like_one_is_released_in_silence(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            made = sfumato.release(people()[["sex", "region", "age"]])

        assert made.table.n_rows == N

    def test_a_name_that_is_sensitive_too_is_sensitive_then(self) -> None:
        frame = people()[["age", "sex", "region"]].assign(diagnosis=["a", "b", "c"] * 80)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = sfumato.release(frame, "mondrian", k=5)

        assert {g.column.name: g.column.role for g in made.guesses}["diagnosis"] is Role.SENSITIVE

    def test_a_mechanism_that_needs_one_refuses(self) -> None:
        frame = people()[["age", "sex", "region"]]
        with pytest.raises(SchemaError, match=r"no column has the role target\. Hint: name the target column$"):
            sfumato.release(frame, "greedy-containment")

    @pytest.mark.slow
    @pytest.mark.parametrize("n_more", [0, 45])
    def test_the_command_says_which_it_took(self, tmp_path: Any, capsys: Any, n_more: int) -> None:
        """However many columns there are."""
        more = {f"c{i}": np.arange(N) % (2 + i % 3) for i in range(n_more)}
        path = tmp_path / "t.csv"
        people().assign(**more).rename(columns={"ill": "outcome"}).to_csv(path, index=False)

        assert run(["release", str(path), "-m", "mondrian", "--dry-run"]) == 0

        err = capsys.readouterr().err
        assert "took 'outcome' as the target (2 values and the name 'outcome'); if it is not, name another" in err


class TestSummary:
    @pytest.mark.slow
    def test_it_is_what_the_command_prints(self, tmp_path: Any, capsys: Any) -> None:
        """Line by line, but for prediction, which the command measures by training classifiers."""
        people().to_csv(tmp_path / "people.csv", index=False)
        roles = ["--target", "ill", "--other", "income"]
        assert run(["release", str(tmp_path / "people.csv"), *roles, "--quick", "--dry-run"]) == 0
        printed = [line for line in capsys.readouterr().err.splitlines() if re.match(r"[A-Z][-\w ]+: ", line)]

        shown = repr(sfumato.release(tmp_path / "people.csv", target="ill", roles={"income": "other"})).splitlines()

        same = [line for line in printed if not line.startswith(("Prediction", "WARNING"))]
        assert len(same) == 4
        assert [line for line in shown if line in same] == same
        warned = [line.removeprefix("WARNING: ") for line in printed if line.startswith("WARNING")]
        assert all(any(text in line for line in shown if line.startswith("WARNING")) for text in warned)

    def test_the_notebook_shows_the_same_and_neither_a_cell(self, made: Release) -> None:
        html = made._repr_html_()

        for line in repr(made).splitlines():
            heading, _, sentence = line.partition(":")
            assert f">{heading}</th>" in html
            assert sentence.strip()[:30] in html.replace("&#x27;", "'")
        assert CANARY not in repr(made) + html
        assert CANARY in str(made.to_pandas()["region"].tolist())

    def test_a_proposal_and_a_pickled_release_have_one_too(self, made: Release) -> None:
        table = sfumato.read_table(people()[["sex", "region", "ill"]])
        assert isinstance(table, Table)
        proposal = sfumato.Mondrian(k=5).release(table.with_schema({"ill": "target"}))

        assert "Re-identified: not measured: the original was not given" in repr(proposal)
        assert repr(pickle.loads(pickle.dumps(made))) == repr(made)


class TestPlot:
    def test_the_default_release_shows_how_many_rows_are_alike(self, made: Release) -> None:
        axes = made.plot()

        heights = [bar.get_height() for bar in axes.patches]
        assert axes.get_title(loc="left").startswith("Rows by the size of their equivalence class")
        assert heights[:2] == [0, 0]  # classes of 1 and of 2 to 4 rows
        assert sum(heights) == pytest.approx(100)

    def test_evidence_of_the_manifest_goes_first(self) -> None:
        table = sfumato.read_table(people()[["age", "sex", "ill"]])
        assert isinstance(table, Table)
        levels = sfumato.release(table.with_schema({"ill": "target"}), "global-recoding", k=5).plot()

        assert "equivalence class" not in levels.get_title(loc="left")

    @pytest.mark.slow
    def test_rows_that_are_nobodys_have_no_classes_to_show(self) -> None:
        drawn = sfumato.release(people(), target="ill", roles={"income": "sensitive"}, cells="draws", max_copies=1.0)

        with pytest.raises(ManifestError, match="has no evidence that can be drawn"):
            drawn.plot()


def credit(n_rows: int = 2_000) -> tuple[pd.DataFrame, pd.Series]:
    """Make applicants like those of the German credit table, seven in ten of them good."""
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(
        {
            "duration": rng.integers(4, 60, n_rows),
            "amount": rng.integers(250, 18_000, n_rows),
            "age": rng.integers(19, 75, n_rows),
            "checking": rng.choice(["<0", "0-200", ">200", "no account"], n_rows),
            "housing": rng.choice(["own", "rent", "free"], n_rows),
        }
    )
    risk = 0.05 * (frame["duration"] - 32) + 1.6 * (frame["checking"] == "<0") - 1.4 * (frame["checking"] == ">200")
    is_bad = rng.random(n_rows) < 1 / (1 + np.exp(1.2 - risk))
    return frame, pd.Series(np.where(is_bad, "bad", "good"))


class TestPipelines:
    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore:lbfgs failed to converge")  # numbers as they are, not scaled
    @pytest.mark.parametrize("library", ["pandas", "polars", "array"])
    def test_mondrian_encoder_and_a_classifier_beat_the_majority_class(self, library: str) -> None:
        frame, target = credit()
        rows: Any = frame if library == "pandas" else pl.from_pandas(frame)
        rows = frame.to_numpy() if library == "array" else rows
        places = train_test_split(np.arange(len(target)), test_size=0.3, random_state=0)
        train, test = (rows.iloc[own] if library == "pandas" else rows[own] for own in places)

        pipeline = make_pipeline(sfumato.Mondrian(k=5), sfumato.GeneralizedEncoder(), LogisticRegression())
        pipeline.fit(train, target[places[0]])
        found = pipeline.predict(test)

        majority = target[places[1]].value_counts(normalize=True).max()
        assert np.mean(found == target[places[1]]) > majority + 0.02
        assert pipeline.predict_proba(test).shape == (len(test), 2)
        assert len(pipeline[:-1].get_feature_names_out()) == pipeline[-1].n_features_in_
        assert clone(pipeline).fit(train, target[places[0]]).predict(test).tolist() == found.tolist()

    def test_the_encoder_finds_kinds_by_the_cells(self) -> None:
        """Numbers, dates and known orders have ranges; all else is a category. Missing stays missing."""
        cells = pd.DataFrame(
            {
                "age": ["[20, 30]", "25", None, "*"],
                "seen": ["2024-01-02", "[2024-01-01, 2024-02-01]", "2024-02-01", "*"],
                "size": ["[low, medium]", "high", "medium", "low"],
                "job": ["{a|b}", "b", "a", "*"],
            }
        )
        encoder = sfumato.GeneralizedEncoder("midpoint").set_output(transform="pandas")
        found = encoder.fit_transform(cells, ["y", "n", "y", "n"])

        assert list(found.columns) == ["age", "seen", "size", "job = 0", "job = 1"]
        assert found["age"].tolist()[:2] == [25.0, 25.0]
        assert np.isnan(found["age"][2])
        assert found["job = 0"].tolist() == [0.5, 0.0, 1.0, 0.5]
        assert found["size"].tolist() == [0.5, 2.0, 1.0, 0.0]

    def test_cells_that_are_none_are_refused_without_their_text(self) -> None:
        with pytest.raises(sfumato.errors.InputError, match="'age'") as refused:
            sfumato.GeneralizedEncoder().fit(pd.DataFrame({"age": [f"[{CANARY}", "3"]}))
        assert CANARY not in str(refused.value)


class TestSetOutput:
    @pytest.mark.parametrize("recoder", [sfumato.Mondrian(k=5), sfumato.GlobalRecoder(k=5)])
    @pytest.mark.parametrize("given", ["pandas", "polars", "array", "arrow"])
    def test_recoders_give_the_library_that_was_asked_for(self, recoder: Any, given: str) -> None:
        frame = people()[["age", "sex"]]
        rows = {"polars": pl.from_pandas(frame), "array": frame.to_numpy(), "arrow": pa.table(frame)}.get(given, frame)
        own = clone(recoder)
        plain = own.fit(rows).transform(rows)
        pandas, polars = (own.set_output(transform=name).transform(rows) for name in ("pandas", "polars"))

        assert isinstance(pandas, pd.DataFrame)
        assert isinstance(polars, pl.DataFrame)
        assert pandas.to_dict("list") == polars.to_dict(as_series=False)
        assert pandas.index.tolist() == (frame.index.tolist() if given == "pandas" else list(range(N)))
        assert type(own.set_output(transform="default").transform(rows)) is type(plain)

    def test_a_pipeline_sets_it_and_a_clone_keeps_it(self) -> None:
        pipeline = make_pipeline(sfumato.Mondrian(k=5), sfumato.GeneralizedEncoder()).set_output(transform="pandas")
        frame = people()[["age", "sex"]]

        assert list(clone(pipeline).fit_transform(frame).index) == frame.index.tolist()
        assert isinstance(clone(pipeline)[0].fit_transform(pl.from_pandas(frame)), pd.DataFrame)

    def test_the_setting_of_scikit_learn_counts_and_tables_stay_tables(self) -> None:
        frame, recoder = people()[["age", "sex"]], sfumato.Mondrian(k=5)
        table = sfumato.read_table(frame)
        with config_context(transform_output="polars"):
            assert isinstance(recoder.fit_transform(frame), pl.DataFrame)
            assert isinstance(recoder.fit_transform(table), Table)

    def test_another_library_is_refused(self) -> None:
        with pytest.raises(InvalidParameterError, match="one of default, pandas, polars"):
            sfumato.Mondrian().set_output(transform="arrow")  # type: ignore[arg-type]

    def test_selectors_give_frames(self) -> None:
        rng = np.random.default_rng(0)
        zero_one = pd.DataFrame(rng.integers(0, 2, (60, 4)), columns=list("abcd"))
        selector = sfumato.GreedyContainmentSelector(k=2, on_infeasible="skip").set_output(transform="pandas")
        found = selector.fit_transform(zero_one, zero_one["a"])

        assert isinstance(found, pd.DataFrame)
        assert list(found.columns) == list(selector.get_feature_names_out())
