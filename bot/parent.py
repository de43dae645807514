"""What a helper process owes the one that started it: to end with it, however that ends."""

import multiprocessing
import os
import threading


def end_with_parent() -> None:
    """End this process when its parent is gone, even killed: a pool's process would wait for work for ever.

    It holds both ends of the pipe that it waits at, so it never sees that pipe closed.
    """
    threading.Thread(target=_end, name="parent", daemon=True).start()


def _end() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "only in a process that multiprocessing started"
    parent.join()
    os._exit(1)
