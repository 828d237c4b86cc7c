"""``python examples/help_desk --offline``, or ``python -m examples.help_desk --offline``."""

import sys
from pathlib import Path

if not __package__:  # started as a folder: the package is found from the folder above the examples
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.help_desk.conversation import run

run()
