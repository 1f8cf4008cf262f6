"""One encoding for all mechanisms: how a partition is written decides no score, and linear models can use all of it."""

import gzip

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from sfumato.evaluation.classifiers import CLASSIFIERS, Encoded
from sfumato.evaluation.encoding import GeneralizedEncoder, cells_of_release, values_as_cells
from sfumato.evaluation.scores import evaluate, held_out_fold
from sfumato.evaluation.treatment import treated
from sfumato.mechanisms.axes import cell_of_values
from sfumato.mechanisms.hierarchies.hierarchy import Hierarchy
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table
from sfumato.table.generalized import write_set

AGES = Column("age", kind=Kind.NUMERIC)
BANDS = ((18, 25), (26, 40), (41, 66), (67, 80))
FIELDS = {"nurse": "health", "doctor": "health", "cook": "food", "baker": "food", "clerk": "office", "typist": "office"}


def people(n_rows=400, seed=3):
    """Make a class that depends on bands of age, up and down, and on the field of work."""
    rng = np.random.default_rng(seed)
    age, job = 18 + np.arange(n_rows) % 63, rng.choice(list(FIELDS), n_rows)
    is_banded = np.isin(np.searchsorted([25, 40, 66], age), [0, 2])
    is_ill = rng.random(n_rows) < np.where(is_banded, 0.75, 0.2) + np.where(job == "clerk", 0.15, 0.0)
    cells = {"age": [str(a) for a in age], "job": job.tolist(), "ill": np.where(is_ill, "yes", "no").tolist()}
    columns = [AGES, Column("job"), Column("ill", Role.TARGET)]
    return Table.from_arrow(pa.table(cells), Schema.of(columns))


def band_of(age):
    return next(band for band in BANDS if band[0] <= int(age) <= band[1])


def hierarchies(label_of_band):
    ages = Hierarchy.from_rows([(str(a), label_of_band(band_of(a)), "*") for a in range(18, 81)])
    return {"age": ages, "job": Hierarchy.from_rows([(job, field, "*") for job, field in FIELDS.items()])}


def written(table, age_cell, job_cell):
    """Write the partition into bands and fields as generalized cells, in any form."""
    ages = [age_cell(band_of(age)) for age in table["age"].cells().to_pylist()]
    jobs = [job_cell(FIELDS[job]) for job in table["job"].cells().to_pylist()]
    return Table.from_arrow(pa.table({"age": ages, "job": jobs}), Schema.of([Column("age"), Column("job")]))


def as_range(band):
    return cell_of_values(AGES, [str(band[0]), str(band[1])])


def as_set(band):
    return write_set([str(age) for age in range(band[0], band[1] + 1)])


def field_set(field):
    return write_set([job for job in FIELDS if FIELDS[job] == field])


LABELS = {"words": "from {0} to {1}", "closed": "[{0}, {1}]", "half-open": "[{0}, {2}["}


@pytest.mark.slow
@pytest.mark.parametrize("labels", LABELS)
def test_one_partition_gets_the_same_numbers_and_scores_however_it_is_written(labels):
    table = people()
    recoder = GlobalRecoder(
        k=12, hierarchies=hierarchies(lambda band: LABELS[labels].format(*band, band[1] + 1)), max_suppressed_fraction=0
    )
    columns = {"age": AGES, "job": Column("job")}
    forms = [written(table, as_range, field_set), written(table, as_set, field_set)]
    found = treated(recoder, table, table)
    forms.append(found.train)
    assert found.columns == columns
    assert [found.train[name].n_distinct for name in columns] == [len(BANDS), 3]
    originals = values_as_cells(table.keep(list(columns)), list(columns))

    encoders = [GeneralizedEncoder().fit(form, columns) for form in forms]
    numbers = [encoder.transform(form) for encoder, form in zip(encoders, forms, strict=True)]
    of_originals = [encoder.transform(originals) for encoder in encoders]

    for other, of_values in zip(numbers[1:], of_originals[1:], strict=True):
        assert np.array_equal(numbers[0], other)
        assert np.array_equal(of_originals[0], of_values)
    target = table["ill"].codes
    kinds = Encoded(encoders[0].is_share_, encoders[0].is_piece_)
    trained_on = [
        encoder.training_rows(form.take(np.arange(300)), target[:300])
        for encoder, form in zip(encoders, forms, strict=True)
    ]
    for other in trained_on[1:]:
        assert all(np.array_equal(*pair) for pair in zip(trained_on[0], other, strict=True))
    for named in CLASSIFIERS.values():
        scores = [
            held_out_fold(named.build(0, kinds), rows, (x[300:], target[300:]), 2).area()
            for rows, x in zip(trained_on, numbers, strict=True)
        ]
        assert len(set(scores)) == 1


def test_the_manifest_alone_gives_the_cells_that_classifiers_are_trained_on():
    table = people()
    recoder = GlobalRecoder(k=5, hierarchies=hierarchies("from {0[0]} to {0[1]}".format), max_suppressed_fraction=0)
    release = recoder.release(table)

    cells, columns = cells_of_release(release.manifest.to_dict(), release.table)

    found = treated(recoder, table, table)
    for name in ("age", "job"):
        assert cells[name].cells().to_pylist() == found.train[name].cells().to_pylist()
        assert columns[name].kind == found.columns[name].kind


def test_a_linear_model_learns_from_ranges_what_it_learns_from_categories():
    """Bands whose classes go up and down: no line through midpoints tells them apart."""
    table = people(1500)
    form, target = written(table, as_range, field_set), table["ill"].codes
    columns = {"age": AGES, "job": Column("job")}

    def area(encoder):
        encoder.fit(form, columns)
        x = encoder.transform(form)
        model = CLASSIFIERS["logistic-regression"].build(0, Encoded(encoder.is_share_, encoder.is_piece_))
        return held_out_fold(model, (x[:1000], target[:1000]), (x[1000:], target[1000:]), 2).area()

    as_categories = {"age": Column("age"), "job": Column("job")}
    labels = Table.from_arrow(
        pa.table({name: [f"v{code}" for code in form[name].codes] for name in columns}), form.schema
    )
    one_hot = GeneralizedEncoder().fit(labels, as_categories)
    x = one_hot.transform(labels)
    model = CLASSIFIERS["logistic-regression"].build(0, Encoded(one_hot.is_share_, one_hot.is_piece_))
    categories = held_out_fold(model, (x[:1000], target[:1000]), (x[1000:], target[1000:]), 2).area()

    assert area(GeneralizedEncoder()) == pytest.approx(categories, abs=0.01)
    assert area(GeneralizedEncoder(ranges="midpoint")) < categories - 0.1


@pytest.mark.slow
def test_a_linear_model_of_house_positions_loses_nothing_to_their_form(shared_data):
    """Where houses lie tells how near the ocean is, but not along a line: .88 by midpoints, .99 by categories."""
    with gzip.open(shared_data / "k-anonml" / "cahousing.csv.gz") as file:
        read = csv.read_csv(file, parse_options=csv.ParseOptions(delimiter=";"))
    cells = read.select(["longitude", "latitude", "ocean_proximity"]).slice(0, 4000)
    numeric = [Column(name, kind=Kind.NUMERIC) for name in ("longitude", "latitude")]
    table = Table.from_arrow(cells, Schema.of([*numeric, Column("ocean_proximity", Role.TARGET)]))

    original, released = (
        evaluate(table, mechanism, classifiers=["logistic-regression"], n_folds=2)
        for mechanism in (None, Mondrian(k=5, split="gain"))
    )

    assert original.classifiers["logistic-regression"].auc.mean > 0.9
    assert released.classifiers["logistic-regression"].auc.mean > 0.9
