"""The same care in other clothing: does it have the same effect on a persona's trust?

`trust_pairs.jsonl` holds pairs of sentences that mean the same. The 60 that are `held out` are for this measure alone:
nothing may be trained, chosen or worded by them. The 20 `open` ones are for whoever works on it.

    python -m benchmarks.trust_pairs            # --show prints the open pairs that differ
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from personas.hearing.hear import hear
from personas.hearing.state import PersonaState
from personas.hearing.types import AgentTurn
from reward_server.server.engine import load_reader
from reward_server.settings import load_settings
from scenarios.library import load_library

PAIRS = Path(__file__).with_suffix(".jsonl")
SCENARIO = ("it-helpdesk", "contracts-folder-gone")


def main() -> None:
    """Hears both sentences of each pair in a fresh conversation and counts the pairs with equal trust."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--show", action="store_true", help="print the open pairs that differ")
    given = options.parse_args()
    case, reader = load_library().vault.open(*SCENARIO).case, load_reader(load_settings())
    pairs = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    texts = [text for pair in pairs for text in (pair["one"], pair["other"])]
    readings = reader.read(case, [("", text) for text in texts])
    trust = [hear(case, PersonaState(), AgentTurn(t), r).rapport for t, r in zip(texts, readings, strict=True)]
    for kind in ("held out", "open"):
        chosen = [number for number, pair in enumerate(pairs) if pair["kind"] == kind]
        same = sum(trust[2 * n] == trust[2 * n + 1] for n in chosen)
        moved = sum(trust[2 * n] > 0 for n in chosen) + sum(trust[2 * n + 1] > 0 for n in chosen)
        print(f"{kind}: {same} of {len(chosen)} pairs have the same effect; {moved} of {2 * len(chosen)} win trust.")
        if given.show and kind == "open":
            for n in chosen:
                if trust[2 * n] != trust[2 * n + 1]:
                    print(f"  {trust[2 * n]:+.0f} {texts[2 * n]}  {trust[2 * n + 1]:+.0f} {texts[2 * n + 1]}")


if __name__ == "__main__":
    main()
