"""Any sentence-transformers model, from a folder or a hub name, as a text encoder.

Texts are encoded one at a time, because with an arbitrary model nothing promises that a vector does not depend on its
neighbours' padding: slower, but exact. They are encoded on the GPU where there is one; the version says so, since a GPU
rounds otherwise. A folder is read as it is; only a hub name that is not cached yet makes the library download, and only
where the hub answers: asked blindly, the library would try again and again for a minute and a half.
"""

from __future__ import annotations

import hashlib
import logging
import ssl
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import numpy as np

from reward_server.encoders.encoder import METHOD_MARK, EncoderUnavailable, Vectors

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


HUB_TIMEOUT_S = 5.0
CPU = "cpu"
_BLOCK = 1 << 20
_NOT_HAD = (OSError, ValueError, RuntimeError, KeyError)


class SentenceTransformerEncoder:
    """A loaded model; one call at a time, because these models are not promised to be thread-safe."""

    def __init__(self, model: SentenceTransformer, version: str) -> None:
        self._model = model
        self._version = version
        self._lock = Lock()
        self._width = int(np.asarray(model.encode(["width"], show_progress_bar=False)).shape[1])

    @property
    def version(self) -> str:
        """Identifies weights and method; part of the scoring version."""
        return self._version

    @property
    def width(self) -> int:
        """The length of a vector."""
        return self._width

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape (len(texts), width)."""
        vectors = np.empty((len(texts), self._width), dtype=np.float32)
        clean = [text.encode("utf-8", "replace").decode() for text in texts]
        with self._lock:
            for index, text in enumerate(clean):
                vectors[index] = self._model.encode(
                    [text], normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
                )[0]
        return vectors


def load_sentence_transformer(name: str) -> SentenceTransformerEncoder:
    """Load a model by folder or hub name."""
    try:
        import sentence_transformers  # noqa: F401 (whether it is there)
    except ImportError as error:
        raise EncoderUnavailable(
            "--encoder (or LABS_ENCODER) names a sentence-transformers model: install the extra "
            "labs-reward-server[encoders]"
        ) from error
    try:
        device = best_device()
        model = loaded(name, device)
    except _NOT_HAD as error:
        raise EncoderUnavailable(
            f"--encoder (or LABS_ENCODER) is no model folder and no reachable model name: {name}"
        ) from error
    method = "" if device == CPU else f"{METHOD_MARK}{device}"
    return SentenceTransformerEncoder(model, version=f"st/{_identity(name)}/1{method}")


def best_device() -> str:
    """`cuda` where there is a GPU, else `cpu`."""
    import torch

    return "cuda" if torch.cuda.is_available() else CPU


def loaded(name: str, device: str = CPU) -> SentenceTransformer:
    """A model of the library on a device; `OSError`, `ValueError`, `RuntimeError` or `KeyError` where it cannot be had.

    What the library says on the way is not for whoever called a command: the error says it.
    """
    from sentence_transformers import SentenceTransformer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # type: ignore[no-untyped-call]
    if not Path(name).exists() and (name.startswith((".", "~")) or Path(name).is_absolute() or name.count("/") > 1):
        raise FileNotFoundError(name)  # no hub has such a name
    said = logging.getLogger("sentence_transformers")
    before = said.level
    said.setLevel(logging.ERROR)
    try:
        if Path(name).exists():
            return SentenceTransformer(name, device=device)
        try:
            return SentenceTransformer(name, device=device, local_files_only=True)
        except _NOT_HAD:
            if not _hub_answers():
                raise
        return SentenceTransformer(name, device=device)
    finally:
        said.setLevel(before)


def _hub_answers() -> bool:
    """True if there is a hub to ask for a model, whatever it answers."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    try:
        with urlopen(Request(constants.ENDPOINT, method="HEAD"), timeout=HUB_TIMEOUT_S):  # noqa: S310 (an operator's)
            return True
    except HTTPError:
        return True
    except URLError as error:
        return isinstance(error.reason, ssl.SSLError)  # another program may know the certificates of this place
    except (OSError, ValueError):
        return False


def _identity(name: str) -> str:
    """Weights decide, not the place they lie in; a hub model is known by its name."""
    folder = Path(name)
    if not folder.is_dir():
        return name
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in {".safetensors", ".bin", ".json"}:
            digest.update(path.name.encode())
            with path.open("rb") as file:  # a part of a big model is gigabytes
                while block := file.read(_BLOCK):
                    digest.update(block)
    return digest.hexdigest()[:12]
