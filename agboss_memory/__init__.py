"""Memory for agents: an append-only log, strategies that decide what is seen of it, and proof of both."""
