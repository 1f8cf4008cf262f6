"""Fixtures that several test folders use."""

from __future__ import annotations

import os
import signal
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest

from postgresql_server import PASSWORD, USER, Server, running_server
from sizes import IS_FULL  # which also sets the number of examples of all properties

REPOSITORY = Path(__file__).parents[1]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only ``make soak`` runs: tests marked so, and most cases of a product that is sampled."""
    if IS_FULL:
        return
    products = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled"):
            products[item.nodeid.partition("[")[0]].append(item)
    taken = {item for product in products.values() for item in cases_with_every_value(product)}
    left_out = [item for item in items if item.get_closest_marker("soak")]
    left_out += [item for product in products.values() for item in product if item not in taken]
    config.hook.pytest_deselected(items=left_out)
    gone = set(left_out)
    items[:] = [item for item in items if item not in gone]


def cases_with_every_value(product: list[pytest.Item]) -> list[pytest.Item]:
    """Give a few cases of a product of parameters: each value at least once, each pair of them rarely."""
    values = {item: [(name, repr(value)) for name, value in item.callspec.params.items()] for item in product}
    missing = {value for case in values.values() for value in case}
    n_taken, taken = Counter(), []

    def worth(item: pytest.Item) -> tuple[int, int, int]:
        n_before = [sum(n_taken[some] for some in combinations(values[item], size)) for size in (2, 1)]
        return len(missing.intersection(values[item])), *(-n for n in n_before)

    while missing:
        case = max(product, key=worth)
        taken.append(case)
        n_taken.update([*combinations(values[case], 1), *combinations(values[case], 2)])
        missing.difference_update(values[case])
    return taken


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of the public data sets; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("SFUMATO_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"the public data sets are not here ({folder}); set SFUMATO_DATA to their folder")
    return folder


@pytest.fixture
def hears_ctrl_c() -> Iterator[None]:
    """Let the test, and the processes that it starts, hear Ctrl-C, which is ignored in the background and under nohup.

    What was set before is set again afterwards.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[Server]:
    """Real PostgreSQL server of this process, started by the first test that needs it."""
    with running_server() as server:
        yield server


@pytest.fixture
def postgresql(postgresql_server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """Server to which the environment holds the credentials, as users have them."""
    for name in list(os.environ):
        if name.startswith("PG"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PGUSER", USER)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    return postgresql_server
