"""The FedNLP layout, as written here and as found in the wild; what a condition gets of it."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

from flame.config import Condition, ConfigError
from flame.learn.data import PREPARED, ensure_partition, find, load, partition, prepare
from flame.learn.data.columnar import columns
from flame.learn.data.dataset import partition_file
from flame.learn.data.fednlp import Corpus, Method, methods, read_corpus, read_partition, write_corpus, write_partition

TEXT = h5py.string_dtype("utf-8")


def corpus(train: int = 80, test: int = 20) -> Corpus:
    rng = np.random.default_rng(1)
    n = train + test
    texts = [f"text {i} with an accent é and some words" for i in range(n)]
    return Corpus(texts, rng.integers(0, 3, n), ("a", "b", "c"), np.arange(n), np.arange(train), np.arange(train, n))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with the set `news`."""
    (tmp_path / "news").mkdir()
    write_corpus(tmp_path / "news" / "news_data.h5", corpus())
    return tmp_path


def condition(**changes) -> Condition:
    plain = {"task": "text", "data": "news", "trainers": 4, "goal": 2, "concurrency": 4, "stop": {"cycles": 1}}
    return Condition.model_validate(plain | changes)


def wild(path: Path, attributes: dict, samples: dict[int, tuple[str, str]]) -> Path:
    """A data file written by somebody else."""
    with h5py.File(path, "w") as file:
        file["attributes"] = json.dumps(attributes)
        for i, (text, label) in samples.items():
            file.create_dataset(f"X/{i}", data=text, dtype=TEXT)
            file.create_dataset(f"Y/{i}", data=label, dtype=TEXT)
    return path


def test_a_corpus_reads_back_as_written(tmp_path):
    write_corpus(tmp_path / "x_data.h5", corpus())
    got = read_corpus(tmp_path / "x_data.h5")
    assert (got.texts, got.vocab) == (corpus().texts, corpus().vocab)
    for name in ("labels", "index", "train", "test"):
        assert np.array_equal(getattr(got, name), getattr(corpus(), name))


class TestInTheWild:
    """Data files by others."""

    SAMPLES = {10: ("ten", "x"), 30: ("thirty", "y"), 20: ("twenty", "x")}

    def test_numbers_need_not_run_from_zero(self, tmp_path):
        path = wild(tmp_path / "d.h5", {"index_list": [10, 30, 20], "train_index_list": [30, 10], "test_index_list": [20]}, self.SAMPLES)
        got = read_corpus(path)
        assert got.texts == ["ten", "thirty", "twenty"]
        assert (got.train.tolist(), got.test.tolist(), got.vocab) == ([1, 0], [2], ("x", "y"))

    def test_a_missing_test_list_is_what_train_leaves(self, tmp_path):
        got = read_corpus(wild(tmp_path / "d.h5", {"index_list": [10, 30, 20], "train_index_list": [30, 10]}, self.SAMPLES))
        assert got.test.tolist() == [2]

    def test_without_lists_nine_tenths_train(self, tmp_path):
        got = read_corpus(wild(tmp_path / "d.h5", {}, {i: (f"t{i}", "ab"[i % 2]) for i in range(40)}))
        assert (len(got.train), len(got.test)) == (36, 4)
        assert sorted([*got.train, *got.test]) == list(range(40))

    def test_labels_may_be_ids_and_the_vocabulary_is_the_files(self, tmp_path):
        attributes = {"label_vocab": {"World": 1, "Sports": 0}}
        path = wild(tmp_path / "d.h5", attributes, {0: ("a", "World"), 1: ("b", "0"), 2: ("c", "1.0")})
        got = read_corpus(path)
        assert got.vocab == ("Sports", "World")
        assert got.labels.tolist() == [1, 0, 1]

    def test_an_unknown_label_is_an_error(self, tmp_path):
        path = wild(tmp_path / "d.h5", {"label_vocab": {"a": 0}}, {0: ("a", "b")})
        with pytest.raises(ConfigError, match="label `b`, which its label_vocab lacks"):
            read_corpus(path)

    @pytest.mark.parametrize("name", ["niid_label_clients=4_alpha=1", "niid_label_clients=4_alpha=1.0", "niid_label_clients=4.0_alpha=1.0"])
    @pytest.mark.parametrize("with_alpha", [True, False])
    def test_alpha_is_a_number_however_it_is_spelt(self, folder, name, with_alpha):
        path = partition_file(find("news", folder))
        with h5py.File(path, "w") as file:
            file[f"{name}/n_clients"] = 4
            if with_alpha:
                file[f"{name}/alpha"] = 1
            for client in range(4):
                file[f"{name}/partition_data/{client}/train"] = list(range(client * 20, client * 20 + 20))
        got = load(condition(partition={"type": "niid_label", "alpha": 1.0}), folder)
        assert got.parts["t3"].tolist() == list(range(60, 80))
        assert got.bins == 2

    def test_clients_are_in_the_order_of_their_numbers(self, tmp_path):
        with h5py.File(tmp_path / "p.h5", "w") as file:
            for client in range(12):
                file[f"uniform/partition_data/{client}/train"] = [client]
        got = read_partition(tmp_path / "p.h5", "uniform", np.arange(12))
        assert [train.tolist() for train, _ in got] == [[client] for client in range(12)]
        assert all(len(test) == 0 for _, test in got)
        assert methods(tmp_path / "p.h5") == [Method("uniform", "uniform", 12, None)]

    def test_the_folders_of_fednlp_are_looked_into(self, tmp_path):
        (tmp_path / "data_files").mkdir()
        data = tmp_path / "data_files" / "news_data.h5"
        write_corpus(data, corpus())
        assert find("news", tmp_path) == data
        assert ensure_partition(data, "uniform", 4) == "uniform_clients=4"
        assert (tmp_path / "partition_files" / "news_partition.h5").exists()
        assert load(condition(), tmp_path).bins == 2


class TestPartitions:
    """Made on demand, stored by name, the same for everybody."""

    def test_they_are_made_once_and_found_again(self, folder):
        data = find("news", folder)
        name = ensure_partition(data, "niid_label", 4, 0.5)
        assert name == "niid_label_clients=4_alpha=0.5"
        before = partition_file(data).read_bytes()
        assert partition("news", "niid_label", 4, 0.5, folder) == name
        assert partition_file(data).read_bytes() == before

    def test_they_are_functions_of_the_data_alone(self, folder, tmp_path):
        data, other = find("news", folder), tmp_path / "other" / "news_data.h5"
        other.parent.mkdir()
        write_corpus(other, corpus())
        parts = []
        for path in (data, other):
            ensure_partition(path, "niid_label", 4, 1.0)
            parts.append(read_partition(partition_file(path), "niid_label_clients=4_alpha=1.0", np.arange(100)))
        for (train, test), (same_train, same_test) in zip(*parts, strict=True):
            assert np.array_equal(train, same_train)
            assert np.array_equal(test, same_test)
            assert set(train) <= set(range(80))
            assert set(test) <= set(range(80, 100))

    def test_several_live_in_one_file(self, folder):
        data = find("news", folder)
        for clients in (2, 4):
            ensure_partition(data, "uniform", clients)
        write_partition(partition_file(data), Method("mine", "mine", 1, None), [(np.arange(3), np.arange(2))], np.arange(100))
        assert [method.name for method in methods(partition_file(data))] == ["mine", "uniform_clients=2", "uniform_clients=4"]

    def test_a_missing_one_lists_those_present_and_the_command(self, folder):
        ensure_partition(find("news", folder), "uniform", 10)
        with pytest.raises(ConfigError) as caught:
            load(condition(partition={"type": "niid_label", "alpha": 0.1}), folder)
        assert "`niid_label_clients=4_alpha=0.1` of `news` is missing; present: `uniform_clients=10`" in str(caught.value)
        assert "flame data partition news --type niid_label --clients 4 --alpha 0.1" in str(caught.value)

    def test_one_that_names_unknown_samples_is_an_error(self, folder):
        path = partition_file(find("news", folder))
        with h5py.File(path, "w") as file:
            for client in range(4):
                file[f"uniform/partition_data/{client}/train"] = [5000]
        with pytest.raises(ConfigError, match="names sample 5000, which the data file lacks"):
            load(condition(), folder)

    def test_too_many_clients_is_an_error(self, folder):
        with pytest.raises(ConfigError, match="80 samples can't be dealt to 81 clients"):
            ensure_partition(find("news", folder), "uniform", 81)


class TestLoad:
    """What a learner reads."""

    def test_bins_rows_and_digest(self, folder):
        ensure_partition(find("news", folder), "uniform", 4)
        got = load(condition(eval={"rows": 5}), folder)
        assert got.bins == 20 // 8
        assert len(got.test) == 5
        assert got.bin("t1", 1, 8).tolist() == got.parts["t1"][8:16].tolist()
        assert load(condition(eval={"rows": 5}), folder).digest == got.digest
        assert load(condition(eval={"rows": 6}), folder).digest != got.digest
        assert load(condition(max_bins=1), folder).bins == 1
        with pytest.raises(IndexError, match="bin 2 of trainer `t1` doesn't exist; a lap has bins 0 to 1"):
            got.bin("t1", 2, 8)

    def test_the_evaluated_rows_do_not_depend_on_the_seed(self, folder):
        ensure_partition(find("news", folder), "uniform", 4)
        one, two = (load(condition(seed=seed, eval={"rows": 7}), folder) for seed in (1, 2))
        assert np.array_equal(one.test, two.test)
        assert set(one.test) <= set(range(80, 100))

    def test_more_rows_than_there_are_is_an_error(self, folder):
        ensure_partition(find("news", folder), "uniform", 4)
        with pytest.raises(ConfigError, match=r"`eval.rows` is 21, but `news_data.h5` has 20 test rows"):
            load(condition(eval={"rows": 21}), folder)

    def test_clients_smaller_than_a_bin_are_an_error(self, folder):
        ensure_partition(find("news", folder), "uniform", 4)
        with pytest.raises(ConfigError, match="has 20 samples, fewer than one bin of `batch_size` 21"):
            load(condition(batch_size=21), folder)

    def test_missing_data_says_what_is_there_and_what_to_type(self, folder, tmp_path):
        with pytest.raises(ConfigError, match=r"data set `r8` isn't in .*; it has `news`\nhint: run `flame data prepare r8`"):
            load(condition(data="r8"), folder)
        with pytest.raises(ConfigError, match=r"it has none\nhint: put `mine_data.h5` there in the FedNLP layout"):
            load(condition(data="mine"), tmp_path / "nowhere")
        with pytest.raises(ConfigError, match=r"hint: run `flame data prepare agnews --from DIR`"):
            load(condition(data="agnews"), tmp_path / "nowhere")

    def test_the_folder_comes_from_the_environment(self, folder, monkeypatch):
        ensure_partition(find("news", folder), "uniform", 4)
        monkeypatch.setenv("FLAME_DATA", str(folder))
        assert load(condition()).bins == 2

    def test_a_file_that_is_not_hdf5_is_a_clear_error(self, folder):
        (folder / "news" / "bad_data.h5").write_text("no")
        with pytest.raises(ConfigError, match=r"can't be read as HDF5.*\nhint: give a file in the FedNLP layout; if `flame"):
            read_corpus(folder / "news" / "bad_data.h5")

    @pytest.mark.parametrize("attributes", ["no json", "[1, 2]", '{"index_list": [0, 1]}', 7, None])
    def test_a_file_of_another_layout_is_a_clear_error(self, tmp_path, attributes):
        path = tmp_path / "mine.h5"
        with h5py.File(path, "w") as file:
            file["X/0"] = "text"
            if attributes is None:
                file.create_group("attributes")
            else:
                file["attributes"] = attributes
        with pytest.raises(ConfigError, match=r"isn't in the FedNLP layout: .*\nhint: give a file that is"):
            read_corpus(path)


class TestColumns:
    """The columnar copy."""

    def test_it_holds_the_same_and_is_made_once(self, folder):
        data = find("news", folder)
        held = columns(data)
        assert held.texts() == corpus().texts
        assert np.array_equal(held.labels, corpus().labels)
        stamp = (held.folder / "meta.json").stat().st_mtime_ns
        assert columns(data).digest == held.digest
        assert (held.folder / "meta.json").stat().st_mtime_ns == stamp

    def test_a_changed_file_gets_a_new_one(self, folder):
        data = find("news", folder)
        before = columns(data)
        changed = corpus()
        changed.labels[0] = (changed.labels[0] + 1) % 3
        write_corpus(data, changed)
        assert columns(data).digest != before.digest

    def test_token_ids_are_kept(self, folder):
        held, calls = columns(find("news", folder)), []

        def tokenize(texts):
            calls.append(len(texts))
            return np.zeros((2, len(texts), 4), np.int32)

        assert held.token_ids("m", 4, tokenize).shape == (2, 100, 4)
        assert held.token_ids("m", 4, tokenize).shape == (2, 100, 4)
        assert calls == [100]


def test_an_unknown_set_names_the_known_ones(tmp_path):
    with pytest.raises(ConfigError, match="unknown data set `r9` to prepare\nhint: did you mean `r8`"):
        prepare("r9", tmp_path)
    assert PREPARED == ("r8", "20news", "agnews")
