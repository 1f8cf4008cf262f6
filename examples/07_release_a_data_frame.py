"""Release a pandas data frame: name what you know, look at what was guessed, and write it."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

import sfumato

frame = pd.DataFrame(
    {
        "age": [20 + 7 * i % 60 for i in range(400)],
        "sex": ["f", "m"] * 200,
        "ward": ["north", "south", "east", "west"] * 100,
        "readmitted": ["yes", "no", "no", "no", "no"] * 80,
    }
)
made = sfumato.release(frame, "mondrian", target="readmitted", roles={"ward": "quasi-identifier"}, k=5)

for guess in made.guesses:
    print(f"{guess.column.name}: {guess.reason}")
with TemporaryDirectory() as folder:
    published = sfumato.publish(made, Path(folder) / "release.csv", original=frame)
    print(f"{published.table_path.name}: {made.table.n_rows} rows, {made.manifest.promised()[0].describe()}")
