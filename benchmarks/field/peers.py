"""Other packages on training rows, in their own environment: ``python -m benchmarks.field.peers NAME FOLDER``.

The folder has ``rows.csv`` (quasi-identifiers and, last, the target) and ``asked.json``; ``answer.json`` is written
into it. This module imports nothing but the standard library at the top: the peers' environment has no sfumato.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import types
from pathlib import Path
from typing import Any


def anonypyx(rows: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """Mondrian of anonypyx: the group of each row."""
    from anonypyx import Anonymiser
    from anonypyx.mondrian import Mondrian

    from benchmarks.mondrian import kept_parts

    parts = kept_parts(Mondrian)
    names = asked["columns"]
    frame = rows[names].astype({name: "category" for name in names if name not in asked["numeric"]})
    Anonymiser(frame, feature_columns=names, k=asked["k"]).anonymise()
    group = [-1] * len(rows)
    for number, part in enumerate(parts):
        for row in part:
            group[int(row)] = number
    return {"groups": group}


def anjana(rows: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """k-anonymity by full-domain generalization of anjana, at most 5 % of the rows suppressed: labels of kept rows."""
    import pandas as pd
    from anjana.anonymity import k_anonymity

    names = asked["columns"]
    hierarchies = {
        name: {level: pd.Series(labels).to_numpy() for level, labels in enumerate(zip(*table, strict=True))}
        for name, table in asked["hierarchies"].items()
    }
    texts = rows[names].astype(str)
    texts["row"] = [str(row) for row in range(len(rows))]
    released = k_anonymity(texts, [], names, asked["k"], 5, hierarchies)
    return {
        "rows": [int(row) for row in released["row"]],
        "labels": {name: [str(label) for label in released[name]] for name in names},
    }


def ai_privacy_toolkit(rows: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """Model-guided anonymization of ai-privacy-toolkit: the values that stand for each row.

    The model is a random forest, of which the anonymizer is given the predictions. Categories are given as columns of
    zeros and ones. The package imports PyTorch and ART, which its anonymizer does not use: empty modules take their
    place.
    """
    _without_unused_imports()
    import numpy as np
    import pandas as pd
    from apt.anonymization.anonymizer import Anonymize
    from apt.utils.datasets import ArrayDataset
    from sklearn.ensemble import RandomForestClassifier

    names, numeric, target = asked["columns"], asked["numeric"], rows.columns[-1]
    blocks, slices, width = {}, [], 0
    for name in names:
        block = rows[[name]].astype(float) if name in numeric else pd.get_dummies(rows[name].astype(str)).astype(float)
        blocks[name] = block
        if name not in numeric:
            slices.append([f"c{width + i}" for i in range(block.shape[1])])
        width += block.shape[1]
    matrix = pd.DataFrame(np.hstack([block.to_numpy() for block in blocks.values()]))
    matrix.columns = [f"c{i}" for i in range(width)]
    model = RandomForestClassifier(100, min_samples_leaf=5, random_state=0, n_jobs=1).fit(matrix, rows[target])
    anonymizer = Anonymize(asked["k"], list(matrix.columns), quasi_identifer_slices=slices, train_only_QI=True)
    dataset = ArrayDataset(matrix, model.predict(matrix), features_names=list(matrix.columns))
    released = np.asarray(anonymizer.anonymize(dataset), dtype=float)
    values, start = {}, 0
    for name, block in blocks.items():
        own = released[:, start : start + block.shape[1]]
        start += block.shape[1]
        values[name] = (
            [repr(float(v)) for v in own[:, 0]]
            if name in numeric
            else [str(block.columns[i]) for i in own.argmax(axis=1)]
        )
    return {"values": values}


def _without_unused_imports() -> None:
    def empty(name: str) -> Any:
        module = types.ModuleType(name)
        module.__path__ = []
        sys.modules[name] = module
        return module

    torch, parts, data = empty("torch"), empty("torch.utils"), empty("torch.utils.data")
    torch.Tensor, torch.utils, parts.data = type("Tensor", (), {}), parts, data
    data.Dataset = data.DataLoader = object
    found = importlib.util.find_spec("apt")
    package = empty("apt")
    package.__path__ = list(found.submodule_search_locations or ()) if found else []


PEERS = {"anonypyx": anonypyx, "anjana": anjana, "ai-privacy-toolkit": ai_privacy_toolkit}


def main() -> None:
    """Answer what a folder asks."""
    import pandas as pd

    name, folder = sys.argv[1], Path(sys.argv[2])
    asked = json.loads((folder / "asked.json").read_text(encoding="utf-8"))
    is_read = name != "anjana"  # which looks texts up in its hierarchies
    kinds = {column: float if is_read and column in asked["numeric"] else str for column in asked["columns"]}
    rows = pd.read_csv(folder / "rows.csv", dtype=kinds, keep_default_na=False)
    (folder / "answer.json").write_text(json.dumps(PEERS[name](rows, asked)), encoding="utf-8")


if __name__ == "__main__":
    main()
