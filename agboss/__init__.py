"""Agent workflows whose memory can be trusted."""
