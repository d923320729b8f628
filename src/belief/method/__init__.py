"""BELIEF itself, once, in the paper's symbols: it knows no engine's inside."""
