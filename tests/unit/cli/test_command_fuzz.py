"""A seeded fuzz of the flags: thousands of command lines, never a traceback, never exit 1."""

import io
import random

import pytest

from sfumato.cli.main import run

FLAGS = {
    "init": ["-o", "--output", "--force"],
    "release": [
        "--project",
        "-o",
        "--output",
        "-m",
        "--mechanism",
        "-k",
        "--no-l",
        "--attacker-knows",
        "-p",
        "--param",
        "--binarize",
        "--force",
        "--dry-run",
        "--json",
        "--engine",
    ],
    "apply": ["--original", "--project", "--release", "--hierarchy", "--unknown", "-o", "--force"],
    "audit": ["--manifest", "--original", "--json", "--engine"],
    "attack": [
        "--manifest",
        "--reference",
        "--background",
        "--up-to",
        "--rows-correspond",
        "--sample-fraction",
        "--infer-target",
        "--seed",
        "--json",
    ],
    "collaborate": ["schema", "party", "--config", "--data", "--schema", "-o", "--min-privacy-gain", "--weights"],
    "compare": ["--guarantee", "--weights", "--classifiers", "--folds", "--timeout", "-m", "--seed"],
    "report": ["--manifest", "--original", "--project", "-o", "--external", "--quick", "--force"],
    "plot": ["-o", "--output", "--kind", "--force"],
    "demo": ["-k", "--nonsense"],
    "mechanisms": ["--json"],
    "hierarchy": ["show", "build", "check", "--column", "--data", "-m", "-o", "--cuts", "--width"],
    "serve": [
        "--project",
        "--port",
        "--host",
        "--token",
        "--tls-cert",
        "--tls-key",
        "--allow-host",
        "--upload-limit",
        "--no-browser",
    ],
}
SHARED = [
    "--target",
    "--quasi-identifiers",
    "--sensitive",
    "--identifiers",
    "--other",
    "--format",
    "--delimiter",
    "--encoding",
    "--no-header",
    "--sheet",
    "--skip-rows",
    "--missing",
    "--drop-incomplete",
]
VALUES = [
    "small.csv",
    "binary.csv",
    "mail.svm",
    "junk.bin",
    "empty.csv",
    "out.csv",
    "out.parquet",
    "out.xlsx",
    "out.svm",
    "out.nonsense",
    "sfumato.toml",
    "bad.toml",
    "m.json",
    ".",
    "nowhere/x.csv",
    "-",
    "",
    "y",
    "a",
    "b,c",
    "a,a",
    "y,y,,",
    "k=2",
    "k=x",
    "k=",
    "=2",
    "on_infeasible=skip",
    "criterion=distinguished_pairs",
    "binarize=3",
    "adult-19",
    "auto",
    "ones",
    "greedy-containment",
    "error-risk-tree",
    "mondrian",
    "global-recoding",
    "gain-recoding",
    "slicing",
    "anatomy",
    "generalization=uniform",
    "split=gain",
    "l=2",
    "2",
    "0",
    "-1",
    "1e9",
    "999999999999999999999",
    ";",
    ",",
    "\t",
    "ab",
    "utf-8",
    "utf-16",
    "klingon",
    "csv",
    "excel",
    "parquet",
    "libsvm",
    "arff",
    "tsv.gz",
    "é",
    "\x00",
    "?",
    "spark://127.0.0.1:1",
    "spark://:7077",
    "local[x]",
]

PIPED = [b"", b"a,y\n1,p\n0,q\n1,q\n", b"\x00\xff", b"+1 1:1\n-1 1:1\n"]


@pytest.fixture
def crowded_folder(tmp_path, monkeypatch):
    """Make a working folder with good and bad files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.csv").write_text(
        "a,b,c,y\n" + "".join(f"{i % 3},{i % 2},{i % 5},{'pq'[i % 2]}\n" for i in range(30))
    )
    (tmp_path / "binary.csv").write_text("a,b,c,y\n" + "".join(f"{i % 2},{i // 2 % 2},1,{i % 2}\n" for i in range(24)))
    (tmp_path / "mail.svm").write_text("+1 1:1 2:1\n-1 1:1\n+1 1:1 2:1\n-1 2:1\n")
    (tmp_path / "junk.bin").write_bytes(random.Random(1).randbytes(500))
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "sfumato.toml").write_text(
        '[data]\npath = "small.csv"\ndefault_role = "other"\n[columns]\ny = {role="target"}\n'
    )
    (tmp_path / "bad.toml").write_text('[data]\npath = 3\n[columns]\ny = "target"\n')
    (tmp_path / "m.json").write_text('{"sfumato_manifest": 3, "input": 3}')
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_command_lines_never_crash(crowded_folder, capsys, monkeypatch, seed):
    chooser = random.Random(seed)
    monkeypatch.setattr("sfumato.web.server.serve", lambda settings: None)  # all but the server itself
    for _ in range(600):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(chooser.choice(PIPED))))
        name = chooser.choice(["release", "audit", *FLAGS])
        arguments = [name]
        if (
            name in ("init", "release", "audit", "attack", "plot", "compare", "report", "hierarchy", "serve")
            and chooser.random() < 0.9
        ):
            arguments.append(chooser.choice(VALUES))
        if name == "release":
            arguments.append("--quick")  # no classifiers for what is not about them
        if name == "demo":
            arguments.append("--nonsense")
        if name == "compare":
            arguments.append("--dry-run")
        for _ in range(chooser.randrange(5)):
            arguments.append(chooser.choice(FLAGS[name] + SHARED))
            if chooser.random() < 0.85:
                arguments.append(chooser.choice(VALUES))

        code = run(arguments)

        shown = capsys.readouterr()
        assert code in (0, 2, 3, 4, 5, 7), (arguments, shown.err)
        assert "Traceback" not in shown.err + shown.out
        assert code == 0 or shown.err.strip(), arguments
