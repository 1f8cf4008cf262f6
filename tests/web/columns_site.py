"""The step Columns alone, over a table that was opened."""

from __future__ import annotations

from sfumato.project.describe import describe_to_project
from sfumato.project.file import load_project
from sfumato.table.binary import BinaryTable
from sfumato.web.inputs import DATA, noted
from sfumato.web.tasks.facts import column_facts
from sfumato.web.views import columns
from web.asking import Site
from web.standing_in import store_job


class ColumnsSite(Site):
    """A page with this step alone; ``jobs`` is a kind of jobs in the place of its own, which run in processes."""

    def __init__(self, folder, data, jobs=None):
        self.project = data.parent / "sfumato.toml"
        seen = describe_to_project(data, self.project)
        facts = column_facts(seen.table, seen.guesses)
        found = {"n_rows": seen.table.n_rows, "is_binary": isinstance(seen.table, BinaryTable), "columns": facts}
        found |= {"inputs": noted(self.project, DATA), "data_name": data.name}
        store_job(folder / "jobs" / "opened", "opening.open_path", result=found)
        super().__init__(folder, columns, project=self.project, jobs=jobs and jobs(folder / "jobs"))
        self.page.state.update(jobs={"open": "opened"})

    def roles(self):
        return {column.name: str(column.role) for column in load_project(self.project).columns}
