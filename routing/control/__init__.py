"""What may be asked of a running server from outside, and what holds for all its sessions."""
