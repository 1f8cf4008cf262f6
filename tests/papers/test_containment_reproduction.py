"""The containment reproduction scores as it says, and the reasons for figures that it does not reach are shown."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import LatentDirichletAllocation

from reproductions.containment import dp, measuring, run, standin
from reproductions.containment.data import DataSet, adult, adult_again, email
from reproductions.containment.methods import PAPER_METHODS, coin_flipping, flipping
from reproductions.containment.scoring import Prepared, keyword_spread, score, topic_auc_of
from reproductions.containment.settings import HINGE, SQUARED, areas


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    matrix = sp.csc_matrix((rng.random((60, 24)) < 0.4).astype(np.int8))
    return DataSet("Entity, made up", matrix, np.arange(60, dtype=np.int32) % 2)


@pytest.mark.parametrize("name", ["Entity, made up", "Adult, made up"])
def test_every_fold_selects_from_its_own_training_rows(name, data, monkeypatch):
    asked = []

    def method(matrix, classes, k):
        """Keep the columns that are frequent in the given rows, which differ from fold to fold."""
        asked.append(matrix.shape[0])
        columns = np.sort(np.argsort(-np.asarray(matrix.sum(axis=0)).ravel(), kind="stable")[:8])
        return Prepared(matrix[:, columns].tocsr(), classes, columns)

    monkeypatch.setitem(measuring.METHODS, "frequent", method)
    monkeypatch.setattr(measuring, "LEVELS", (5,))
    found = measuring.run_method(DataSet(name, data.matrix, data.classes), "frequent").scores[0]

    assert sorted(asked) == [48] * 5 + [60]
    assert found.honest != found.as_in_paper


def test_the_two_columns_of_the_entity_table_are_two_figures():
    lines = (run.FOLDER / "RESULTS.md").read_text().split("## Entity")[1].split("\n## ")[0].splitlines()
    cells = [[cell.strip() for cell in line.split("|")] for line in lines if line.startswith("| ")][2:]

    assert len(cells) >= len(PAPER_METHODS)
    assert all(row[3] != row[4] for row in cells)


class TwoTopics:
    """Topics of three keywords: the first belongs to one topic, the second to the other, the third to both."""

    components_ = np.array([[8.0, 0.0, 1.0], [0.0, 2.0, 1.0]])


def test_a_row_spreads_as_its_keywords_do():
    """Equation 5 on p(topic | keyword), the mean over a row's keywords; how often a keyword occurs has no part."""
    rows = sp.csr_matrix([[1, 0, 0], [1, 1, 0], [1, 0, 1], [0, 0, 1], [0, 0, 0]])

    three_quarters = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    assert np.allclose(keyword_spread(TwoTopics(), rows), [0, np.log(2), three_quarters, np.log(2), 0])


def test_a_long_row_of_one_topic_is_as_concentrated_as_a_short_one():
    matrix = sp.csr_matrix(np.repeat(np.eye(2, dtype=np.int8), 6, axis=1)[[0] * 8 + [1] * 8])
    short = matrix[:1].copy().tolil()
    short[0, 1:] = 0
    model = LatentDirichletAllocation(2, random_state=0).fit(matrix)
    spread = keyword_spread(model, sp.vstack([matrix[:1], short.tocsr()]).tocsr())

    assert spread[0] == pytest.approx(spread[1], abs=0.05)


def test_a_randomized_method_is_scored_by_its_flipped_rows_in_several_runs(data):
    """The paper's way: ten tables, each cross-validated as it is; beside it, real test rows."""

    def turned_round(matrix, classes, k, right):
        """Make the first column, which alone is kept, the class itself or its opposite."""
        cells = classes if right else 1 - classes
        return Prepared(sp.csr_matrix(cells[:, None]), classes, np.arange(1), 0.5)

    runs = [lambda m, c, k, right=right: turned_round(m, c, k, right) for right in (True, False)]
    found = score(data, runs, 5)

    assert found.as_in_paper == pytest.approx(1)
    assert found.deviation == pytest.approx(0)
    assert found.flipped_fraction == 0.5
    assert found.honest < 0.8


def test_ten_seeds_flip_ten_tables():
    runs = measuring.RUNS["RF"]
    matrix = sp.csc_matrix((np.random.default_rng(1).random((20, 9)) < 0.4).astype(np.uint8))
    tables = {run(matrix, np.arange(20) % 2, 5).matrix.toarray().tobytes() for run in runs}

    assert len(runs) == 10
    assert len(tables) > 5


@pytest.mark.parametrize("flip", [flipping, coin_flipping])
def test_flipped_tables_are_k_anonymous(flip):
    matrix = sp.csc_matrix((np.random.default_rng(2).random((30, 9)) < 0.4).astype(np.uint8))
    prepared = flip(matrix, np.arange(30) % 2, 4)
    _, counts = np.unique(prepared.matrix.toarray(), axis=0, return_counts=True)

    assert counts.min() >= 4
    assert prepared.flipped_fraction == np.mean(prepared.matrix.toarray() != matrix.toarray())


def test_noise_is_shown_as_its_epsilon_needs_it_and_as_printed(monkeypatch):
    monkeypatch.setattr(dp, "EPSILONS", (1.0,))
    monkeypatch.setattr(dp, "REPEATS", 2)
    rng = np.random.default_rng(4)
    classes = np.arange(80, dtype=np.int32) % 2
    data = DataSet("made up", sp.csc_matrix((rng.random((80, 4)) < 0.5).astype(np.uint8)), classes)
    keeps = {kind: dp.run(data, kind).promised for kind in dp.KINDS}

    assert keeps == {
        "Laplace-DP": 1,
        "Laplace-DP, as printed": 2,
        "Exponential-DP": 1,
        "Exponential-DP, as printed": 1.5,
    }


def test_the_nearest_rule_is_that_with_the_least_distance_to_the_printed_counts():
    printed = {name: run.PRINTED["Entity stand-in"][name]["kept"] for name in standin.COMPARED}
    fewer = {name: [n // 2 for n in counts] for name, counts in printed.items()}

    assert standin.distance(printed) == 0
    assert standin.nearest({standin.EARLIER: fewer, standin.CHOSEN: printed}) == standin.CHOSEN


@pytest.mark.soak
@pytest.mark.usefixtures("shared_data")
def test_entity_figures_depend_on_the_names_and_words_of_the_stand_in():
    """The chosen stand-in keeps nearly as many features as the paper, the earlier one of the same density hardly any.

    All features of the two give areas that differ more than the tolerance, with the same classifier.
    """
    chosen, earlier = standin.entity(), standin.entity(standin.EARLIER)

    assert abs(chosen.density - 0.097) < 0.005 > abs(earlier.density - 0.097)
    assert standin.distance(standin.kept_counts(chosen)) < 1.4
    assert standin.distance(standin.kept_counts(earlier)) > 10
    everything = [topic_auc_of(PAPER_METHODS["Full-Feature-Set"](d.matrix, d.classes, 5)) for d in (chosen, earlier)]
    assert everything[1] == pytest.approx(0.754, abs=0.002)
    assert everything[0] < everything[1] - 0.05


@pytest.mark.soak
@pytest.mark.usefixtures("shared_data")
def test_two_recipes_of_the_printed_density_keep_different_numbers_of_features():
    """The paper does not say where it cuts education and hours, nor what work class and occupation mean."""
    kept = {}
    for data in (adult(), adult_again()):
        assert round(100 * data.density, 1) == 27.9
        kept[data.name] = {
            name: [len(PAPER_METHODS[name](data.matrix, data.classes, k).columns) for k in (5, 8, 11)]
            for name in ("HamDist", "DistCnt", "k-anonymity DistCnt")
        }

    assert kept["Adult"] == {"HamDist": [9, 9, 7], "DistCnt": [6, 6, 5], "k-anonymity DistCnt": [4, 4, 4]}
    second = {"HamDist": [9, 9, 8], "DistCnt": [8, 8, 8], "k-anonymity DistCnt": [6, 6, 6]}
    assert kept["Adult, second recipe"] == second


@pytest.mark.soak
@pytest.mark.usefixtures("shared_data")
def test_printed_areas_of_adult_lie_between_those_of_labels_and_of_margins():
    data = adult_again()
    for name, printed in run.printed_for(data.name).items():
        found = areas(PAPER_METHODS[name](data.matrix, data.classes, 5))

        assert found.labels < printed["auc"][0] < found.margins


@pytest.mark.soak
@pytest.mark.usefixtures("shared_data")
@pytest.mark.parametrize("name", ["HamDist", "CM Greedy", "k-anonymity HamDist"])
@pytest.mark.parametrize(("loss", "penalty"), [(SQUARED, 1.0), (SQUARED, 0.01), (HINGE, 1.0)])
def test_printed_areas_of_email_lie_between_those_of_labels_and_of_margins(name, loss, penalty):
    data = email()
    found = areas(PAPER_METHODS[name](data.matrix, data.classes, 5), loss, penalty)

    assert found.labels < run.PRINTED["Email"][name]["auc"][0] < found.margins


@pytest.mark.soak
@pytest.mark.usefixtures("shared_data")
@pytest.mark.parametrize("name", ["k-anonymity DistCnt", "Full-Feature-Set"])
def test_predicted_labels_with_a_small_c_give_the_lowest_printed_areas_of_email(name):
    """Below those of predicted labels with C = .01; the paper tunes C and does not say over which values."""
    data, printed = email(), run.PRINTED["Email"][name]["auc"]
    released = PAPER_METHODS[name](data.matrix, data.classes, 5)

    small = areas(released, SQUARED, 1e-4)
    assert printed == pytest.approx([small.labels] * 3, abs=0.01)
    assert small.margins > printed[0] + 0.04
    assert areas(released, SQUARED, 0.01).labels > printed[0] + 0.02


@pytest.mark.soak
@pytest.mark.usefixtures("shared_data")
@pytest.mark.parametrize(("k", "printed"), [(5, 0.87), (11, 0.87)])
def test_predicted_labels_on_flipped_rows_give_the_printed_areas_of_email(k, printed):
    """Of real test rows the area is above .98, of flipped ones about .94, of predicted labels within .02."""
    data = email()
    found = areas(flipping(data.matrix, data.classes, k))

    assert found.labels == pytest.approx(printed, abs=0.02)
    assert found.margins > printed + 0.05


@pytest.mark.soak
@pytest.mark.usefixtures("shared_data")
@pytest.mark.parametrize(("k", "printed"), [(5, 1.30), (8, 1.73)])
def test_thrown_bits_give_the_printed_share_of_flipped_cells(k, printed):
    """The paper says that values are flipped at random, not how: ours take those of a member, which flips fewer."""
    data = email()

    thrown = coin_flipping(data.matrix, data.classes, k).flipped_fraction
    drawn = flipping(data.matrix, data.classes, k).flipped_fraction
    assert 100 * thrown == pytest.approx(printed, abs=0.2)
    assert 100 * drawn < printed - 0.3


@pytest.mark.soak
@pytest.mark.usefixtures("shared_data")
def test_large_itemsets_of_email_come_from_several_groups_of_messages():
    """At k = 5 and by a greedy search, so at least these; a message of one group is in no other."""
    rows, k, found = email().matrix.toarray().astype(bool), 5, []
    numbers = rows.astype(np.float32)
    shared = (numbers @ numbers.T).astype(int)
    np.fill_diagonal(shared, 0)
    left = np.ones(len(rows), dtype=bool)
    for _ in range(4):
        seeds = [i for i in np.flatnonzero(left) if np.sort(shared[i][left])[1 - k] >= 250]
        common = max((common_words(rows, shared, i, left, k) for i in seeds), key=np.sum)
        found.append(int(common.sum()))
        left &= (rows & common).sum(axis=1) < common.sum() / 2

    assert [least <= size for size, least in zip(found, (690, 370, 361, 248), strict=True)] == [True] * 4


def common_words(rows, shared, seed, left, k):
    """Words that a message and k - 1 others hold, each the one that keeps most of them."""
    taken, common = [seed], rows[seed].copy()
    near = np.flatnonzero(left & (shared[seed] >= 240))
    while len(taken) < k:
        kept = (rows[near] & common).sum(axis=1)
        kept[np.isin(near, taken)] = -1
        taken.append(near[int(np.argmax(kept))])
        common &= rows[taken[-1]]
    return common
