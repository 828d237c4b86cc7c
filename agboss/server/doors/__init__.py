"""Doors for clients that speak another protocol. Each maps its messages to one Tern and its events back."""
