"""The command line: options, input and output files, messages. It may import all other parts of the package."""

from belief.cli.commands import main as main
