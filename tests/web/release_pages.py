"""A project on disk, a release job that is over, and a small asker of the pages that show it."""

from __future__ import annotations

from pathlib import Path

from sfumato.datasets.admissions import admissions
from sfumato.project.file import load_project, toml_text
from sfumato.table.io.write import write_table
from sfumato.web.tasks import release as tasks
from sfumato.web.views import measured, release
from web.asking import Site
from web.standing_in import Told, store_job

NAMES = ["name", "age", "sex", "insurance", "smoker", "diabetes", "discharge_diagnosis", "readmitted"]
JOB = "0f" * 8


def write_project(
    folder: Path, mechanism: str, more: str = "", *, n_rows: int = 160, output: str = "release.csv"
) -> Path:
    """Write a table of made-up admissions and a project file that asks for a mechanism."""
    table = admissions(n_rows=n_rows).keep(NAMES)
    with (folder / "stays.csv").open("w+b") as file:
        write_table(table, file, "csv")
    columns = [f'{toml_text(c.name)} = {{ role = "{c.role}", kind = "{c.kind}" }}  # why' for c in table.schema]
    text = ["[data]", 'path = "stays.csv"', "[columns]", *columns]
    text += ["[release]", f'mechanism = "{mechanism}"', f"output = {toml_text(output)}", "[release.parameters]", more]
    path = folder / "sfumato.toml"
    path.write_text("\n".join(text) + "\n", encoding="utf-8")
    load_project(path)
    return path


def make(project: Path, folder: Path, *, quick: bool = True) -> dict:
    """Run the task as a job would, and leave its result as a job does."""
    folder.mkdir(parents=True)
    result = tasks.make(folder, Told(), project=str(project), quick=quick)
    store_job(folder, "release.make", result=result)
    return result


def is_same(one: bytes, other: bytes) -> bool:
    """Compare whole files; pytest would take minutes to show how they differ."""
    return one == other


class Pages(Site):
    """The pages of a release, over a server's folder."""

    def __init__(self, folder: Path, project: Path | None, *, is_private: bool = False, job: str | None = JOB) -> None:
        super().__init__(folder, measured, release, project=project)
        self.page.state.update(data_name="stays.csv", is_private=is_private)
        if job is not None:
            self.page.state.update(jobs={"release": job})
