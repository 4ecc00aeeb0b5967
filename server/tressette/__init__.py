"""Tressette Arena: the rules of Tressette and Traversone, and a gRPC server for matches between bots.

Packages import one way: ``rules <- record <- play <- wire <- commands``.
"""
