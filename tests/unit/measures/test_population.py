"""People who are unique in a population, estimated from a sample: each formula worked out once more, in plain sums."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reproductions.public_data import data_folder
from sfumato.cli.main import run
from sfumato.counting.classes import class_size_counts
from sfumato.errors import InvalidParameterError
from sfumato.measures.population import (
    SampledClasses,
    pitman,
    pitman_log_likelihood,
    pitman_parameters,
    population_uniques,
    shlosser,
    slide_negative_binomial,
    snb_generating,
    zayatz,
)
from sfumato.table.io.read import read_table

SIZES = {1: 40, 2: 10, 5: 8}
SAMPLE = SampledClasses.of(SIZES, 1000)


def test_zayatz_by_binomial_coefficients():
    drawn_once = {j: j * math.comb(1000 - j, 99) / math.comb(1000, 100) for j in SIZES}
    likely = 40 * drawn_once[1] / sum(n * drawn_once[j] for j, n in SIZES.items())

    assert zayatz(SAMPLE) == pytest.approx(40 * likely / 0.1, abs=1e-6)


def test_the_likelihood_of_pitman_is_its_sum():
    theta, alpha = 3.7, 0.4
    expected = sum(math.log(theta + i * alpha) for i in range(1, 58)) - sum(math.log(theta + i) for i in range(1, 100))
    expected += sum(n * sum(math.log(i - alpha) for i in range(1, j)) for j, n in SIZES.items())

    assert pitman_log_likelihood(SAMPLE, theta, alpha) == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
def test_pitmans_parameters_are_the_most_likely_ones():
    theta, alpha = pitman_parameters(SAMPLE)
    best = pitman_log_likelihood(SAMPLE, theta, alpha)
    tried = [
        pitman_log_likelihood(SAMPLE, own_theta, own_alpha)
        for own_theta in np.geomspace(0.01, 1000, 200)
        for own_alpha in np.linspace(0.005, 0.995, 199)
    ]

    assert best >= max(tried)
    for step in (1e-5, -1e-5):
        assert best >= pitman_log_likelihood(SAMPLE, theta * (1 + step), alpha)
        assert best >= pitman_log_likelihood(SAMPLE, theta, alpha * (1 + step))


def test_pitmans_uniques_are_the_product_of_the_sampling_scheme():
    """The n-th person joins nobody with probability (θ + uα) / (θ + n - 1): expectations step by step."""
    theta, alpha = pitman_parameters(SAMPLE)
    ratio = 1000.0
    for i in range(1, 1000):
        ratio *= (theta + alpha + i - 1) / (theta + i)

    assert pitman(SAMPLE) == pytest.approx(ratio, rel=1e-6)


def test_shlosser_by_its_sums():
    never = sum(0.9**j * n for j, n in SIZES.items())
    once = sum(j * 0.1 * 0.9 ** (j - 1) * n for j, n in SIZES.items())

    assert shlosser(SAMPLE) == pytest.approx(58 + 40 * never / once, abs=1e-6)


def test_the_generating_function_is_the_sum_over_sizes():
    alpha, beta, s = 0.7, 0.3, 0.6
    shares = [
        math.gamma(alpha + j) / math.gamma(alpha) / math.factorial(j) * beta**alpha * (1 - beta) ** j
        for j in range(150)
    ]
    value, slope = snb_generating(s, alpha, beta)

    assert value == pytest.approx(sum(p * s ** (j + 1) for j, p in enumerate(shares)), abs=1e-9)
    assert slope == pytest.approx(sum(p * (j + 1) * s**j for j, p in enumerate(shares)), abs=1e-9)


def test_the_slide_negative_binomial_meets_what_the_sample_has():
    """Some α and β give the classes and the unique rows that there are, and K β^α unique people: by a grid."""
    n_classes, found = shlosser(SAMPLE), slide_negative_binomial(SAMPLE)
    beta_of = {}
    for alpha in np.geomspace(1e-3, 30, 4000):
        beta = (found / n_classes) ** (1 / alpha)
        value, slope = snb_generating(0.9, alpha, beta)
        beta_of[abs(n_classes * (1 - value) - 58) + abs(n_classes * 0.1 * slope - 40)] = alpha

    assert min(beta_of) < 0.05


@given(st.dictionaries(st.integers(1, 30), st.integers(1, 50), min_size=1, max_size=6), st.integers(1, 50))
def test_shares_are_shares_and_a_whole_population_is_itself(sizes, times):
    n_rows = sum(size * count for size, count in sizes.items())
    found = population_uniques(sizes, n_rows * times)
    whole = population_uniques(sizes, n_rows)

    assert all(share is None or -1e-9 <= share <= 1 + 1e-9 for name, share in found.items() if name != "population")
    assert whole["zayatz"] == pytest.approx(sizes.get(1, 0) / n_rows)


@pytest.mark.parametrize("fraction", [0.1, 0.3])
def test_estimates_of_a_known_population_are_near(fraction):
    """A population in which class sizes fall off as a power: the truth is known, and Pitman's model is near it."""
    random = np.random.default_rng(3)
    people = np.minimum(random.zipf(1.6, 20_000), 10**6)
    drawn = random.choice(people, int(fraction * len(people)), replace=False)
    sizes, counts = np.unique(np.unique(drawn, return_counts=True)[1], return_counts=True)
    truth = np.count_nonzero(np.unique(people, return_counts=True)[1] == 1) / len(people)

    found = population_uniques(dict(zip(sizes.tolist(), counts.tolist(), strict=True)), len(people))

    assert found["pitman"] == pytest.approx(truth, rel=0.25)


@pytest.mark.parametrize("population", [99, 0, True, 1000.0])
def test_a_population_that_cannot_be_is_refused(population):
    with pytest.raises(InvalidParameterError, match="at least as many as the 100 rows"):
        SampledClasses.of(SIZES, population)


def test_the_average_risk_of_raw_adult_is_that_of_arx():
    """Nine attributes, 30,162 rows; ARX 3.9 prints .6465751607983555."""
    path = data_folder() / "adult-arx" / "adult.csv"
    if not path.is_file():
        pytest.skip(f"NOT TESTED: {path} is not here")
    table = read_table(path)
    sizes = class_size_counts(table, table.schema.names())

    assert sum(sizes.values()) / table.n_rows == 0.6465751607983555


def test_the_profile_of_a_sample_speaks_of_its_population(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("age,sex\n" + "".join(f"{i % 7},{'fm'[i % 2]}\n" for i in range(40)) + "99,f\n")
    command = ["audit", str(tmp_path / "a.csv"), "--quasi-identifiers", "age,sex"]

    assert run([*command, "--population", "410", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["unique_in_the_population"]
    assert found["sampling_fraction"] == pytest.approx(0.1)
    assert 0 < found["zayatz"] < 1
    assert run([*command, "--population", "10"]) == 2
    assert run([*command, "--population", "410", "--memory", "1GB"]) == 2
    assert "unique_in_the_population" not in capsys.readouterr().out
