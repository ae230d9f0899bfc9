"""`flame data prepare`: what it is asked for, and every combination that makes no sense."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from typer.testing import CliRunner

from flame.config import Condition
from flame.launch.cli import app
from flame.learn.data import load


def ask(*args: str, code: int = 0) -> str:
    got = CliRunner().invoke(app, ["data", "prepare", *args])
    assert got.exit_code == code, got.output
    return got.output


def test_a_csv_of_ones_own(tmp_path):
    (tmp_path / "mine.csv").write_text("topic,body\n" + "".join(f"{'ab'[i % 2]},text {i}\n" for i in range(200)))
    said = ask("mine", "--csv", str(tmp_path / "mine.csv"), "--text-col", "body", "--label-col", "topic", "--into", str(tmp_path))
    assert str(tmp_path / "mine" / "mine_data.h5") in said
    assert "180 train and 20 test rows, 2 classes" in said
    assert "left out: partition `uniform_clients=100` can't be made" in said


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "which data set?"),
        (["r9"], "unknown data set `r9` to prepare"),
        (["agnews"], "`agnews` isn't downloaded"),
        (["x", "--name", "y"], "two data sets are given, `x` and `y`"),
        (["x", "--csv", "f.csv"], "`--csv` needs `--text-col` and `--label-col`"),
        (["x", "--csv", "f.csv", "--text-col", "a"], "`--csv` needs `--label-col`"),
        (["r8", "--text-col", "a"], "`--text-col` says nothing here"),
        (["x", "--csv", "no.csv", "--text-col", "a", "--label-col", "b"], "`no.csv` can't be read"),
    ],
)
def test_what_makes_no_sense_is_refused(args, message, tmp_path):
    said = ask(*args, "--into", str(tmp_path), code=2)
    assert message in said
    assert "hint: " in said


def wild(folder) -> Path:
    """FedNLP files as found: labels by id, no test list, `alpha=1`, counts as floats, partitions in a folder of their own."""
    for name in ("data_files", "partition_files"):
        (folder / name).mkdir(parents=True)
    with h5py.File(folder / "data_files" / "ag_data.h5", "w") as file:
        file["attributes"] = json.dumps({"label_vocab": {"World": 0, "Sports": 1}, "train_index_list": list(range(30))})
        for i in range(40):
            file[f"X/{i}"], file[f"Y/{i}"] = f"text {i}", str(i % 2)
    with h5py.File(folder / "partition_files" / "ag_partition.h5", "w") as file:
        for client in range(2):
            file[f"niid_label_clients=2.0_alpha=1/partition_data/{client}/train"] = np.arange(client * 15, client * 15 + 15)
            file[f"niid_label_clients=2.0_alpha=1/partition_data/{client}/test"] = np.arange(30 + client * 5, 35 + client * 5)
    return folder / "data_files" / "ag_data.h5"


def test_fednlp_files_as_found_in_the_wild_come_with_their_partitions(tmp_path):
    said = ask("fed", "--h5", str(wild(tmp_path / "wild")), "--into", str(tmp_path))
    assert "partition niid_label_clients=2.0_alpha=1, taken over" in said
    condition = Condition(
        task="text", data="fed", trainers=2, goal=2, concurrency=2, partition={"type": "niid_label"}, batch_size=5, stop={"cycles": 1}
    )
    got = load(condition, tmp_path)
    assert (got.columns.vocab, got.bins, len(got.test)) == (("World", "Sports"), 3, 10)
    assert got.parts["t1"].tolist() == list(range(15, 30))


def test_partitions_may_lie_elsewhere_and_must_be_some(tmp_path):
    data = wild(tmp_path / "wild")
    elsewhere = (tmp_path / "wild" / "partition_files" / "ag_partition.h5").rename(tmp_path / "parts.h5")
    assert "taken over" not in ask("one", "--h5", str(data), "--into", str(tmp_path))
    assert "taken over" in ask("two", "--h5", str(data), "--partition-h5", str(elsewhere), "--into", str(tmp_path))
    assert "holds no partition" in ask("one", "--h5", str(data), "--partition-h5", str(tmp_path / "no.h5"), "--into", str(tmp_path), code=2)


def test_origins_do_not_mix(tmp_path):
    assert "`--from-hub` and `--h5` don't go together" in ask("x", "--h5", "a.h5", "--from-hub", "b", code=2)
    assert "`--partition-h5` says nothing here" in ask("x", "--from-hub", "b", "--partition-h5", "a.h5", code=2)
    assert "meta.json` can't be used" in ask("x", "--shards", str(tmp_path), "--into", str(tmp_path), code=2)
