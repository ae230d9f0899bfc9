"""CSV files as data sets: columns, splits, label order, and what is said of files that can't be used."""

import os
from pathlib import Path

import numpy as np
import pytest

from flame.config import Condition, ConfigError
from flame.learn.data import load, partition, prepare
from flame.learn.data.fednlp import read_corpus
from flame.learn.data.tables import agnews, corpus, from_csv, read_csv

SHARED = Path(os.environ.get("FLAME_SHARED_DATA", Path(__file__).parents[2].parent / "shared" / "data"))


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def ag_folder(folder: Path) -> Path:
    """A folder as AG News comes: twelve train and four test rows."""
    write(folder / "train.csv", "label,content", *[f'{i % 4 + 1},"item {i}, quoted"' for i in range(12)])
    write(folder / "test.csv", "label,content", *[f"{4 - i},test item {i}" for i in range(4)])
    return folder


def test_ag_news_keeps_its_test_rows_and_names_its_classes(tmp_path):
    got = agnews(ag_folder(tmp_path))
    assert got.vocab == ("Business", "SciTech", "Sports", "World")
    assert [got.vocab[label] for label in got.labels[:4]] == ["World", "Sports", "Business", "SciTech"]
    assert got.texts[0] == "item 0, quoted"
    assert (got.train.tolist(), got.test.tolist()) == (list(range(12)), [12, 13, 14, 15])
    assert [got.texts[i] for i in got.test] == [f"test item {i}" for i in range(4)]


def test_ag_news_is_prepared_from_its_folder_and_dealt_on_demand(tmp_path):
    prepare("agnews", tmp_path / "data", origin=ag_folder(tmp_path))
    assert partition("agnews", "uniform", 3, folder=tmp_path / "data") == "uniform_clients=3"
    got = load(
        Condition(task="text", data="agnews", trainers=3, batch_size=4, goal=2, concurrency=3, stop={"cycles": 1}), tmp_path / "data"
    )
    assert (got.bins, len(got.test)) == (1, 4)


def test_ag_news_without_a_folder_says_what_to_give(tmp_path):
    with pytest.raises(ConfigError, match=r"`agnews` isn't downloaded\nhint: give `--from DIR`, a folder with train.csv and test.csv"):
        prepare("agnews", tmp_path)
    with pytest.raises(ConfigError, match=r"train.csv` can't be read: No such file"):
        prepare("agnews", tmp_path, origin=tmp_path)


def test_ag_news_has_four_labels(tmp_path):
    write(ag_folder(tmp_path) / "test.csv", "label,content", "5,what")
    with pytest.raises(ConfigError, match=r"test.csv` has the label `5`\nhint: AG News has the labels 1 to 4"):
        agnews(tmp_path)


def test_a_csv_without_test_rows_gets_nine_to_one(tmp_path):
    path = write(tmp_path / "mine.csv", "id,topic,body", *[f"{i},{'ab'[i % 2]},text {i}" for i in range(20)])
    got = from_csv(path, "body", "topic")
    assert (len(got.train), len(got.test), got.vocab) == (18, 2, ("a", "b"))
    assert np.intersect1d(got.train, got.test).size == 0
    again = from_csv(path, "body", "topic")
    assert np.array_equal(got.train, again.train)
    given = from_csv(path, "body", "topic", test=path)
    assert (len(given.train), len(given.test)) == (20, 20)


def test_numbered_labels_are_in_the_order_of_their_values():
    got = corpus([("10", "x"), ("9", "y"), ("b", "z")], [("9", "w")])
    assert got.vocab == ("9", "10", "b")
    assert got.labels.tolist() == [1, 0, 2, 0]


def test_marks_quotes_and_line_breaks_in_cells(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_bytes('\ufefflabel,text\r\nx,"two\nlines, and a ""quote"""\r\ny,  \r\ny,é\r\n'.encode())
    assert read_csv(path, "text", "label") == [("x", 'two\nlines, and a "quote"'), ("y", "é")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"label,txt\na,b\n", r"has no column `text`\nhint: did you mean `txt`\? `--text-col` is one of label, txt"),
        (b"", "is empty"),
        (b"label,text\n,b\n", r"has a text without a label at line 2"),
        (b"label,text\n", "has no row with a text"),
        (b"label,text\na,\xff\n", "isn't a CSV file in UTF-8"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_remedy(tmp_path, content, message):
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        read_csv(path, "text", "label")


def test_other_rows_under_a_name_that_is_taken_are_refused(tmp_path):
    rows = [("a", "one"), ("b", "two")] * 5
    path = prepare("mine", tmp_path, source=lambda say: corpus(rows, rows))
    before = path.read_bytes()
    prepare("mine", tmp_path, source=lambda say: corpus(rows, rows))
    with pytest.raises(ConfigError, match=r"is there already, with other rows\nhint: choose another name"):
        prepare("mine", tmp_path, source=lambda say: corpus(rows, rows[:2]))
    assert path.read_bytes() == before
    with pytest.raises(ConfigError, match=r"`r8` is the name of a known data set"):
        prepare("r8", tmp_path, source=lambda say: corpus(rows, rows))


@pytest.mark.skipif(not (SHARED / "agnews" / "test.csv").exists(), reason="AG News isn't there: set FLAME_SHARED_DATA to the shared data")
def test_the_real_ag_news():
    got = agnews(SHARED / "agnews")
    assert (len(got.train), len(got.test)) == (8_000, 7_600)
    assert np.bincount(got.labels[got.train]).tolist() == [2_000] * 4
    assert np.bincount(got.labels[got.test]).tolist() == [1_900] * 4


def test_the_test_rows_of_a_stored_corpus_stay_its_test_rows(tmp_path):
    path = prepare("mine", tmp_path, source=lambda say: corpus([("a", "x"), ("b", "y")], [("b", "z")]))
    got = read_corpus(path)
    assert (got.texts, got.train.tolist(), got.test.tolist()) == (["x", "y", "z"], [0, 1], [2])
