"""The durable record of games: what is written, how it is written, and how it is read back."""
