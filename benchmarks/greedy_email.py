"""Greedy containment selection on the e-mail data: 1,099 messages × 24,604 words, k = 5."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.contest import DATA, Benchmark, Contender

K = 5


def load_mail(folder: Path) -> Any:
    """Read the matrix and the classes."""
    from reproductions.public_data import load_pu1

    mail = load_pu1()
    return mail.matrix, mail.target().codes


def select_with_sfumato(mail: Any) -> Any:
    """Check by the rows that contain the new word, and look again only at words whose gain may still be best."""
    from sfumato import GreedyContainmentSelector

    skipping = GreedyContainmentSelector(K, on_infeasible="skip").fit(*mail)
    stopping = GreedyContainmentSelector(K, criterion="distinguished_pairs").fit(*mail)
    return [skipping.selected_columns_.tolist(), stopping.selected_columns_.tolist()]


def select_plainly(mail: Any) -> Any:
    """Recount everything at every step, as the algorithms are printed, with NumPy and SciPy."""
    matrix, classes = mail
    rows = matrix.astype("float32").tocsr()
    return [hamming_skip(rows, classes), distinguished_stop(rows, classes)]


def is_contained(rows: Any, chosen: list[int]) -> bool:
    """Whether every projected row is included in at least K rows: all pairs of rows are compared."""
    projected = rows[:, chosen].toarray()
    shared = projected @ projected.T
    return bool(((shared == projected.sum(axis=1)[:, None]).sum(axis=1) >= K).all())


def hamming_skip(rows: Any, classes: Any) -> list[int]:
    """Greedy HamDist that skips words which break containment."""
    import numpy as np

    first, second = rows[classes == 0], rows[classes == 1]
    p, q = np.asarray(first.sum(axis=0)).ravel(), np.asarray(second.sum(axis=0)).ravel()
    worth = p * (second.shape[0] - q) + (first.shape[0] - p) * q
    chosen: list[int] = []
    for feature in np.argsort(-worth, kind="stable").tolist():
        if 0 < p[feature] + q[feature] < K:
            continue
        if is_contained(rows, [*chosen, feature]):
            chosen.append(feature)
    return sorted(chosen)


def distinguished_stop(rows: Any, classes: Any) -> list[int]:
    """Greedy DistCnt: at each step the gain of every word is computed anew, then containment."""
    import numpy as np
    import scipy.sparse as sp

    chosen: list[int] = []
    while True:
        _, group = np.unique(rows[:, chosen].toarray(), axis=0, return_inverse=True)
        n_groups = int(group.max()) + 1
        ones = []
        for label in (0, 1):
            members = np.flatnonzero(classes == label)
            shape = (n_groups, rows.shape[0])
            ones.append(sp.csr_matrix((np.ones(len(members)), (group[members], members)), shape=shape) @ rows)
        sizes = [np.bincount(group[classes == label], minlength=n_groups)[:, None] for label in (0, 1)]
        gain = ones[0].multiply(sizes[1]).sum(axis=0) + ones[1].multiply(sizes[0]).sum(axis=0)
        gain = np.asarray(gain - 2 * ones[0].multiply(ones[1]).sum(axis=0)).ravel()
        best = int(np.argmax(gain))
        if gain[best] == 0 or not is_contained(rows, [*chosen, best]):
            return sorted(chosen)
        chosen.append(best)


BENCHMARK = Benchmark(
    title="Greedy containment selection on the e-mail data (HamDist with skip, DistCnt with stop; k = 5)",
    goal="the same words as the plain loop, at least 20 × faster",
    contenders=(
        Contender("sfumato", select_with_sfumato, load_mail, packages=("sfumato", "numpy", "scipy")),
        Contender("plain NumPy and SciPy loop", select_plainly, load_mail, packages=("numpy", "scipy"), repeats=1),
    ),
    needs=(DATA / "pu1" / "pu1_bare_body.svm.gz",),
)
