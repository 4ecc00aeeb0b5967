"""Matches in progress: sessions, seats, clocks and faults, on asyncio but without gRPC.

Vocabulary: a **session** is one connection of one bot; a **seat** is one place in one game, played over
one session; a **turn** is a question to a seat, numbered from 1 for each seat.
"""
