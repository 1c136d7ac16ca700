"""Rubrics that come with requests: read, checked, and lent to the scorer for as long as the request lasts.

Reading one again and again costs more than keeping the last few. Whoever sends one needs the scope `author`; judges of
the operator's own (plug-ins) are not for others to give options to.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from reward_server.auth.lab import Lab
from reward_server.auth.scopes import Scope
from reward_server.errors import FieldProblem, InvalidRequest
from reward_server.scoring.scorer import Scorer
from scenarios.given import rubric_of_data
from scenarios.library import SealedScenario
from scenarios.rules import checks_of
from scenarios.yamlfile import ScenarioFileError, showable

KEPT = 128
PLUGINS = "`plugin` is for the scenarios of whoever runs this server: use another check"


class GivenRubrics:
    """Lends rubrics to a scorer."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self._kept: OrderedDict[str, SealedScenario] = OrderedDict()

    def lend(self, lab: Lab, data: Mapping[str, Any]) -> SealedScenario:
        """The rubric of a request, which can be scored by while this is kept.

        Raises:
            ScopeMissing: the key may not bring rubrics.
            InvalidRequest: something is wrong with it; says what, and where.
        """
        lab.require(Scope.AUTHOR)
        key = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
        cached = self._kept.get(key)
        if cached is None:
            cached = self._kept[key] = self._scorer.lend(_read(data))
        self._kept.move_to_end(key)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return cached


def _read(data: Mapping[str, Any]) -> SealedScenario:
    try:
        sealed = rubric_of_data(data)
    except ScenarioFileError as error:
        problems = [FieldProblem(("rubric", *showable(finding.loc)), finding.message) for finding in error.findings]
        raise InvalidRequest(errors=problems) from None
    plugins = [loc for loc, check in checks_of(sealed.secrets.rubric, ("criteria",)) if check.plugin]
    if plugins:
        raise InvalidRequest(errors=[FieldProblem(("rubric", *loc, "plugin"), PLUGINS) for loc in plugins])
    return sealed
