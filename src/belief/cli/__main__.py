"""Run the command line with `python -m belief.cli`."""

import sys

from belief.cli.commands import main

sys.exit(main())
