"""Where the data lives: the Engine protocol and those that keep it."""
