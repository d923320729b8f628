"""The same contest for every selector, on a user's own table: `belief.compare`."""
