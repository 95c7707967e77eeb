"""Answers: what providers say, in whatever dialect and form, as one answer in the client's. `machine` is the way in."""
