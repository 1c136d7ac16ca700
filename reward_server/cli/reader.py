"""`labs reader`: train the local reader, and measure how well it understands agent turns."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from reward_server.cli.progress import shown
from reward_server.cli.reader_options import (
    AfterOpening,
    Artefact,
    Files,
    Force,
    LeftOut,
    Most,
    NewArtefact,
    OwnText,
    Passes,
    PracticeAlone,
    Predictions,
    ReaderName,
    Scenarios,
    SecondPasses,
    Seed,
    StartFrom,
    Steps,
    Turns,
    WholeArtefact,
    WithPractice,
)
from reward_server.cli.tables import wide_console
from reward_server.errors import InvalidRequest

if TYPE_CHECKING:
    from personas.reading.reader import LocalReader, Reader
    from reward_server.fitting.reader.dataset import ReaderRow
    from reward_server.fitting.reader.evaluate import TurnPrediction
    from reward_server.fitting.reader.train import ReaderTrainingSet
    from reward_server.settings import Settings
    from scenarios.library import Library

app = typer.Typer(
    help="Train and measure the reader, which decides what an agent turn asks for and promises.",
    no_args_is_help=True,
)

READERS = ("local", "systemone", "openai", "chat")


@app.command()
def evaluate(
    files: Files = None,
    predictions: Predictions = None,
    scenarios: Scenarios = None,
    artefact: Artefact = None,
    who: ReaderName = None,
    most: Most = None,
    opened: AfterOpening = False,
    practice: PracticeAlone = False,
) -> None:
    """Print, per collection, how many labelled turns are understood by the configured reader, with 95 % intervals.

    Example: labs reader evaluate turns/tutoring__half-a-cup.jsonl --predictions out.jsonl
    """
    from reward_server.fitting.reader.dataset import after_opening
    from reward_server.fitting.reader.evaluate import by_collection, predict, table
    from reward_server.reader.build import local_reader
    from reward_server.server.engine import load_scenarios
    from reward_server.settings import load_settings
    from scenarios.lint import COLLECTIONS

    if practice:
        _practised(None if artefact is None else _existing(artefact).read_bytes(), twice=_twice(load_settings()))
        return
    library = load_scenarios(scenarios, load_settings().libraries)
    try:
        rows = _labelled(library, files, scenarios or COLLECTIONS)
        rows = after_opening(library, rows) if opened else rows
        rows = rows if most is None else rows[:: max(1, -(-len(rows) // most))]
        raw = _existing(artefact).read_bytes() if artefact else None
        settings = load_settings(chosen_reader(who))
        local = local_reader(settings.anchors, raw=raw, precision=settings.reader_precision, twice=_twice(settings))
        if settings.reader == "local":
            read, used = predict(library, local, rows), None
        else:
            read, used = asyncio.run(asked(settings, local, lambda reader: predict(library, reader, rows)))
    except ValueError as error:
        raise InvalidRequest(str(error)) from None
    if predictions:
        _write(predictions, read)
    typer.echo(table(by_collection(read)))
    if used is not None:
        typer.echo(used)


def _labelled(library: Library, files: Sequence[Path] | None, root: Path) -> list[ReaderRow]:
    """The labelled turns of the files, or those of the collections that are kept aside."""
    from reward_server.fitting.reader.dataset import packaged_turns, turns_of_file

    if files:
        rows = [row for path in files for row in turns_of_file(_existing(path), library)]
    else:
        rows = [row for row in packaged_turns(root, library) if row.turn.kept_aside]
    if not rows:
        raise InvalidRequest("no labelled turns: name files, or use scenarios with .turns.jsonl files")
    return rows


def _twice(settings: Settings) -> bool:
    return settings.reader_commitments == "twice"


def _practised(raw: bytes | None, *, twice: bool) -> None:
    """Print what the local reader makes of the practice cases kept aside."""
    from reward_server.fitting.reader.evaluate import table
    from reward_server.fitting.reader.practised import practised
    from reward_server.reader.build import local_reader
    from scenarios.practice import load_practice

    cases = [case for case in load_practice() if case.held_out]
    typer.echo(table(practised(local_reader(raw=raw, twice=twice), cases)))


def chosen_reader(who: str | None) -> dict[str, str]:
    """The settings that `--reader` stands for."""
    if who is None:
        return {}
    if who not in READERS:
        raise InvalidRequest(f"--reader is one of {', '.join(READERS)}")
    return {"reader": "local"} if who == "local" else {"reader": "decisions", "decisions": who}


async def asked(
    settings: Settings, local: LocalReader, work: Callable[[Reader], list[TurnPrediction]]
) -> tuple[list[TurnPrediction], str]:
    """The readings of a decision model, how many turns it did not read, and what they cost."""
    from reward_server.judges.verdict_cache import VerdictCache
    from reward_server.llm.counting import CountingMeter
    from reward_server.server.engine import deciders_of, load_matcher, reader_of

    failed: Counter[str] = Counter()
    meter = CountingMeter()
    deciders = deciders_of(settings, load_matcher(settings), VerdictCache(), meter=meter)
    try:
        reader = reader_of(settings, local, deciders.reader, lambda kind: failed.update([kind]))
        read = await asyncio.to_thread(work, reader)
    finally:
        await deciders.close()
    why = ", ".join(f"{count} {kind}" for kind, count in failed.most_common())
    named = deciders.reader.name if deciders.reader else "local"
    fell_back = f"{failed.total()} turns read locally instead{f' ({why})' if why else ''}"
    return read, f"read by {named}; {fell_back}; {meter.used(len(read), 'turn')}"


@app.command()
def train(
    out: WholeArtefact = None,
    scenarios: Scenarios = None,
    force: Force = False,
    leave_out: LeftOut = None,
    epochs: Passes = None,
    start: StartFrom = None,
    practice: WithPractice = True,
    seed: Seed = 0,
) -> None:
    """Calibrate the reader for collections of your own, or train a new one on all labelled turns.

    With --scenarios FOLDER alone, each collection there that has labelled turns gets a `reader.json` beside its files:
    it takes a minute, and changes nothing for other collections.

    With --out, the whole reader is trained and written as an artefact (safetensors): about an hour on one core, or half
    an hour with --from and --epochs 3. To use it, copy it over `personas/reading/model/reader.safetensors`. What is
    interrupted leaves the encoder after its last pass in `<out>.encoder.safetensors`, for --from.

    Example: labs reader train --scenarios my-scenarios
    """
    if out is None:
        _calibrate(scenarios, force=force)
        return
    from reward_server.fitting.reader.dataset import packaged_acts, packaged_turns
    from reward_server.fitting.reader.train import lesson_of
    from reward_server.server.engine import load_scenarios
    from scenarios.lint import COLLECTIONS
    from scenarios.practice import load_practice

    library = load_scenarios(scenarios)
    rows = packaged_turns(scenarios or COLLECTIONS, library)
    left_out = frozenset(leave_out or ())
    if unknown := left_out - set(library.catalog.collections):
        raise InvalidRequest(f"there is no collection {min(unknown)}")
    lesson = lesson_of(library, rows, packaged_acts(), left_out, load_practice() if practice else ())
    raw = _train_into(out, lesson, start=start, seed=seed, epochs=epochs)
    if left_out:
        from reward_server.fitting.reader.evaluate import by_collection, predicted_unseen, table

        unseen = [row for row in rows if row.collection in left_out]
        typer.echo(table(by_collection(predicted_unseen(raw, unseen, scenarios))))


def _train_into(out: Path, lesson: ReaderTrainingSet, *, start: Path | None, seed: int, epochs: int | None) -> bytes:
    """Train a reader and write its artefact; while it trains, its encoder after the last pass is beside it."""
    from reward_server.fitting.reader.finetune import EPOCHS
    from reward_server.fitting.reader.train import train as trained

    out.parent.mkdir(parents=True, exist_ok=True)
    encoder = out.with_suffix(".encoder.safetensors")
    with shown(wide_console()) as report:
        raw = trained(
            lesson,
            start=None if start is None else _existing(start).read_bytes(),
            seed=seed,
            epochs=EPOCHS if epochs is None else epochs,
            progress=lambda step, of, _: report("fine-tuning", step, of),
            tuned_to=lambda layers: _keep(encoder, layers),
        )
    _write_artefact(out, raw)
    encoder.unlink(missing_ok=True)
    return raw


def _calibrate(scenarios: Path | None, *, force: bool) -> None:
    """Fit and write the calibration of each collection of a folder."""
    from reward_server.fitting.reader.dataset import packaged_turns
    from reward_server.fitting.reader.evaluate import table
    from reward_server.fitting.reader.own import compared, fit_own, write_calibration
    from reward_server.server.engine import load_reader, load_scenarios
    from reward_server.settings import load_settings
    from scenarios.library import load_library

    if scenarios is None:
        raise InvalidRequest("name the folder of your collections with --scenarios, or an artefact with --out")
    rows = packaged_turns(scenarios, load_scenarios(scenarios))
    if not rows:
        raise InvalidRequest(f"{scenarios}: no labelled turns; write <scenario>.turns.jsonl beside a scenario")
    cases, reader = load_library(scenarios, turns=False), load_reader(load_settings())
    for collection in dict.fromkeys(row.collection for row in rows):
        own = [row for row in rows if row.collection == collection]
        try:
            with shown(wide_console()) as report:
                fit = fit_own(reader, own, cases, report)
        except ValueError as error:
            typer.echo(f"{collection}: {error}")
            continue
        typer.echo(f"{collection}: {fit.turns} labelled turns, each read by a reader that was not fitted on it")
        typer.echo(table(compared(fit)))
        if not (fit.helps or force):
            typer.echo(f"{collection}: {fit.verdict}; nothing was written (--force writes it)")
            continue
        typer.echo(f"{collection}: {fit.verdict}")
        typer.echo(f"wrote {write_calibration(scenarios / collection, fit)}; other collections are read as before")


@app.command()
def second(
    out: NewArtefact,
    scenarios: Scenarios = None,
    turns: Turns = 2200,
    epochs: SecondPasses = None,
    seed: Seed = 0,
) -> None:
    """Train the second reader, which decides whether a commitment is made, and write its artefact (safetensors).

    It takes ten minutes on a free core with AMX. To use the result, copy it over
    `personas/reading/model/second.safetensors`.
    """
    from reward_server.encoders.minilm import packaged_folder, read_checkpoint
    from reward_server.fitting.reader.dataset import case_of, packaged_turns
    from reward_server.fitting.reader.second import EPOCHS, lesson, train_second
    from reward_server.reader.encoder import artefact_bytes, tuned
    from reward_server.server.engine import load_scenarios
    from scenarios.lint import COLLECTIONS
    from scenarios.practice import load_practice

    library = load_scenarios(scenarios)
    practice = [case for case in load_practice() if not case.held_out]
    rows, far = lesson(packaged_turns(scenarios or COLLECTIONS, library), practice, turns, seed)
    cases = {row.key: case_of(library, row) for row in rows} | {case.key: case.compiled() for case in practice}
    packaged = read_checkpoint(packaged_folder())
    start = tuned(packaged, artefact_bytes())
    with shown(wide_console()) as report:
        raw = train_second(
            packaged,
            start,
            cases,
            rows,
            far,
            seed=seed,
            epochs=epochs or EPOCHS,
            progress=lambda step, of, _: report("training", step, of),
        )
    _write_artefact(out, raw)


@app.command()
def fluency(
    out: NewArtefact,
    text: OwnText = None,
    scenarios: Scenarios = None,
    steps: Steps = None,
    seed: Seed = 0,
) -> None:
    """Train the fluency model, which tells broken sentences from speech, and write its artefact (safetensors).

    It takes about an hour on one core. To use the result, copy it over `personas/reading/model/fluency.safetensors`.
    """
    from reward_server.encoders.minilm import packaged_folder, read_checkpoint
    from reward_server.fitting.reader.dataset import packaged_acts, packaged_turns
    from reward_server.fitting.reader.fluency import STEPS, train_fluency
    from reward_server.fitting.reader.whole_sentences import packaged_sentences, sentences_of_file
    from reward_server.server.engine import load_scenarios
    from scenarios.lint import COLLECTIONS

    library = load_scenarios(scenarios)
    sources = packaged_sentences(library, packaged_turns(scenarios or COLLECTIONS, library), packaged_acts())
    sources |= {path.stem: sentences_of_file(_existing(path)) for path in text or ()}
    with shown(wide_console()) as report:
        raw = train_fluency(
            read_checkpoint(packaged_folder()),
            sources,
            steps=steps or STEPS,
            seed=seed,
            progress=lambda step, of, _: report("training", step, of),
        )
    _write_artefact(out, raw)


def _write_artefact(path: Path, raw: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(raw)
    typer.echo(f"wrote {path}, {len(raw) / 1e6:.1f} MB")


def _keep(path: Path, raw: bytes) -> None:
    path.write_bytes(raw)


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise InvalidRequest(f"there is no file {path}")
    return path


def _write(path: Path, read: Sequence[TurnPrediction]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = (json.dumps(prediction.to_json(), ensure_ascii=False) for prediction in read)
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
