"""Reads rows from what data sets are kept in: Parquet, data sets of Hugging Face, and the files that `rows` reads.

A data set is a folder that `save_to_disk` made, or `hf:NAME` for one that the `datasets` library loads by name, from
the Hub or from a folder of files. Rows come one after the other, so a file may be larger than the memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from reward_server.errors import InvalidRequest
from reward_server.offline.rows import InputRow, read_rows

HUB = "hf:"
PARQUET = ".parquet"
_ROWS = 1024


def rows_of(source: str, split: str = "train") -> Iterator[InputRow]:
    """The rows of a source, numbered from 1.

    Raises:
        InvalidRequest: there is no such thing, or it cannot be read.
    """
    path = Path(source)
    if source.startswith(HUB):
        return _numbered(_data_set(source.removeprefix(HUB), split, saved=False))
    if not path.exists():
        raise InvalidRequest(f"there is no file or folder {source}")
    if path.suffix == PARQUET:
        return _numbered(_parquet([path]))
    if not path.is_dir():
        return read_rows(path)
    if (path / "dataset_info.json").exists() or (path / "dataset_dict.json").exists():
        return _numbered(_data_set(source, split, saved=True))
    parts = sorted(path.glob(f"*{PARQUET}"))
    if not parts:
        raise InvalidRequest(f"{source} holds neither Parquet files nor a saved data set")
    return _numbered(_parquet(parts))


def _parquet(paths: Iterable[Path]) -> Iterator[Any]:
    tables = needed("pyarrow.parquet")
    for path in paths:
        try:
            with tables.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=_ROWS):
                    yield from batch.to_pylist()
        except (OSError, needed("pyarrow").ArrowException) as error:
            raise InvalidRequest(f"{path} cannot be read as Parquet: {type(error).__name__}") from error


def _data_set(name: str, split: str, *, saved: bool) -> Iterator[Any]:
    library = needed("datasets")
    try:
        found = library.load_from_disk(name) if saved else library.load_dataset(name, split=split, streaming=True)
        yield from found[split] if isinstance(found, dict) else found
    except KeyError:
        raise InvalidRequest(f"{name} has no split {split}: give --split") from None
    except (OSError, ValueError, RuntimeError) as error:
        raise InvalidRequest(f"the data set {name} cannot be loaded: {type(error).__name__}") from error


def _numbered(found: Iterable[Any]) -> Iterator[InputRow]:
    for number, data in enumerate(found, 1):
        yield InputRow(number, _without_nulls(data))


def _without_nulls(value: Any) -> Any:
    """Columns that a row does not have are null in tables; in rows of other files they are not there."""
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def needed(module: str) -> ModuleType:
    """A library of the extra `tables`.

    Raises:
        InvalidRequest: it is not installed; the message says how it comes.
    """
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        raise InvalidRequest(f"{name} is not installed: pip install 'labs-reward-server[tables]'") from None
