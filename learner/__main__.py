"""`python -m learner`: the same as the `learner` command."""

import sys

from learner.cli import main

if __name__ == "__main__":
    sys.exit(main())
