"""The classifier that the settings name, with one clear line where it cannot be used."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from personas.reading.matcher import Matcher
from reward_server.classifier.judge import Classifier, ClassifierJudge
from reward_server.errors import ConfigurationError
from reward_server.settings import Settings

AT_ONCE = 16
"""Requests to a server on their way."""


def classifier_judge(settings: Settings, matcher: Matcher | None = None) -> ClassifierJudge | None:
    """The judge; None where the settings name no classifier. A folder is loaded here, a server asked later.

    Raises:
        ConfigurationError: the folder holds no classifier, or the URL is none.
    """
    if settings.classifier is None:
        return None
    key = settings.classifier_api_key
    classifier = classifier_at(
        settings.classifier, settings.classifier_model, None if key is None else key.get_secret_value()
    )
    threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="labs-classifier")
    return ClassifierJudge(classifier, threads, settings.classifier_centre, settings.classifier_scale, matcher)


def classifier_at(place: str, model: str | None = None, key: str | None = None) -> Classifier:
    """A classifier behind a URL, or in a folder."""
    if place.startswith(("http://", "https://")):
        from reward_server.classifier.remote import RemoteClassifier

        if not model:
            raise ConfigurationError("LABS_CLASSIFIER_MODEL: name the model that the server at LABS_CLASSIFIER serves")
        return RemoteClassifier(place, model, key=key)
    from reward_server.classifier.local import LocalClassifier

    folder = Path(place).expanduser()
    if not folder.is_dir():
        raise ConfigurationError(f"LABS_CLASSIFIER: there is no folder {place}; a server is given as http://…")
    return LocalClassifier(folder)
