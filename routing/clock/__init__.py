"""The clock: what time it is, and reminders that come when their time has come."""
