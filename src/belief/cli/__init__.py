"""The command line: options, input and output files, messages. It may import every other folder."""

from belief.cli.commands import main as main
