"""Saves what an error leaves of a run: the updates before it, and a word on where the same command goes on.

An error in the middle of an update leaves weights that belong to no update. They are not saved: the run goes on from
its newest checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from learner import checkpoint
from learner.run import Run


@contextmanager
def kept(run: Run, shared: tuple[type[Exception], ...]) -> Iterator[None]:
    """Within: an error is raised with a note that says where the run goes on, its whole updates saved.

    Several processes save together, so they do only at the errors in `shared`, which all of them raise.

    What was played ahead is not saved: it is of the same outage, or as far from the present weights.
    """
    try:
        yield
    except Exception as error:
        is_shared = run.ranks.world == 1 or isinstance(error, shared)
        if run.saved < run.step and run.updater.is_settled and is_shared:
            run.queue = ()
            with suppress(checkpoint.UnwrittenError):  # the error is this one, or matters more
                run.save()
        error.add_note(f"The same command continues from update {run.saved}")
        raise
