"""One module per peer: rows as JSON lines in, a figure or a reason per row out.

They run in the peer's own environment (standard library and that peer alone), so nothing of this project but
``docs.peers.ask.lines`` may be imported here.
"""
