"""Whether the reader tells sympathy from rudeness in everyday words, on sentences that nobody trained or tuned on.

    python -m benchmarks.tone

`tone.json` has 100 sentences of each; none of them is among the labelled examples. A sympathetic one that is heard as
rude costs an honest agent its reward; a rude one that is not heard as rude costs nothing.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from personas.reading.acts import Act
from reward_server.fitting.reader.evaluate import Share
from reward_server.reader.build import local_reader
from reward_server.server.engine import load_scenarios

SENTENCES = Path(__file__).with_name("tone.json")


def main() -> None:
    """Print how many sentences of each tone are heard as rude, and which are heard the wrong way."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    library = load_scenarios(None)
    case = library.vault.open(*library.vault.names()[0]).case
    reader = local_reader()
    for tone, texts in json.loads(SENTENCES.read_text(encoding="utf-8")).items():
        readings = reader.read(case, [(case.openings[0], text) for text in texts])
        rude = [text for text, reading in zip(texts, readings, strict=True) if reading.any(Act.RUDE)]
        share = Share(len(rude), len(texts))
        low, high = share.interval
        print(f"{tone}: {share.hits} of {share.of} heard as rude ({low:.0%}-{high:.0%})")
        wrong = rude if tone == "sympathy" else [text for text in texts if text not in rude]
        print("".join(f"  {text}\n" for text in wrong), end="")


if __name__ == "__main__":
    main()
