"""The command line: arguments, input and output files, messages. It translates, and holds no formula."""

from belief.cli.commands import main as main
