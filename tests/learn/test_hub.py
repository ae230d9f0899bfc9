"""Hub data sets: the rows of their splits; the library itself, on a local file, where it is installed."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from flame.config import ConfigError
from flame.learn.data.hub import from_hub, from_splits


class Split(dict):
    """A split as the library gives it: columns by name, and features."""

    def __init__(self, names=None, **columns):
        super().__init__(columns)
        self.column_names, self.features = list(columns), dict.fromkeys(columns, SimpleNamespace(names=names))


TRAIN = {"text": ["a b", " ", "c", "d"], "label": [1, 0, 0, 1]}


def test_classes_have_the_names_of_the_data_set():
    got = from_splits("x", {"train": Split(["neg", "pos"], **TRAIN), "test": Split(["neg", "pos"], text=["e"], label=[0])}, "text", "label")
    assert (got.texts, got.vocab, got.labels.tolist()) == (["a b", "c", "d", "e"], ("neg", "pos"), [1, 0, 1, 0])
    assert (got.train.tolist(), got.test.tolist()) == ([0, 1, 2], [3])


def test_without_names_they_are_the_values_and_without_test_the_validation_is_taken():
    lines: list[str] = []
    got = from_splits("x", {"train": Split(**TRAIN), "validation": Split(text=["e"], label=[0])}, "text", "label", lines.append)
    assert (got.vocab, got.test.tolist()) == (("0", "1"), [3])
    assert lines == ["x: 3 rows of train, 1 rows of validation"]


def test_with_train_alone_a_tenth_is_set_apart():
    rows = {"text": [f"t{i}" for i in range(20)], "label": [0, 1] * 10}
    assert len(from_splits("x", {"train": Split(**rows)}, "text", "label").test) == 2


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ({"test": Split(**TRAIN)}, "`x` has no split `train`, only test"),
        (
            {"train": Split(txt=["a"], label=[0])},
            r"`x` \(split `train`\) has no column `text`\nhint: did you mean `txt`\? `--text-col` is one of",
        ),
        ({"train": Split(text=["a"], y=[0])}, r"has no column `label`\nhint: `--label-col` is one of text, y"),
    ],
)
def test_what_is_missing_is_named(splits, message):
    with pytest.raises(ConfigError, match=message):
        from_splits("x", splits, "text", "label")


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ConfigError, match=r"`datasets` library isn't installed\nhint: run `pip install 'flame-fl\[hub\]'`"):
        from_hub("x")


def test_what_the_library_says_is_passed_on(monkeypatch):
    def refuse(name):
        raise FileNotFoundError(f"no data set {name}")

    library = ModuleType("datasets")
    library.load_dataset = refuse
    monkeypatch.setitem(sys.modules, "datasets", library)
    with pytest.raises(ConfigError, match=r"`x` can't be loaded: no data set x\nhint: check the name"):
        from_hub("x")


def test_the_library_reads_a_local_file(tmp_path, monkeypatch):
    pytest.importorskip("datasets", reason="the extra `hub` isn't installed")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "train.csv").write_text("text,label\none,a\ntwo,b\n")
    (tmp_path / "set" / "test.csv").write_text("text,label\nthree,b\n")
    got = from_hub(str(tmp_path / "set"))
    assert (got.texts, got.vocab, got.test.tolist()) == (["one", "two", "three"], ("a", "b"), [2])
