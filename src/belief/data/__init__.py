"""What a user has becomes rows of numbers by global id."""
