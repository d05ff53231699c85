"""Tells how long the program itself keeps its host from issuing work: it sleeps, or loads its next batch.

How long it wanted to sleep counts, and the processor's time where it loads a batch itself: a busy machine
makes both longer. Where other processes load, it is the time until they have."""

import functools
import threading
import time

# Whose __next__ gives the next batch.
LOADERS = ("torch.utils.data.dataloader", "torchdata.stateful_dataloader.stateful_dataloader")


def is_main_thread():
    return threading.current_thread() is threading.main_thread()


class Waits:
    def __init__(self, recorder, arrivals):
        self.recorder = recorder
        self._slept = None  # while a batch is loaded: in seconds
        time.sleep = self._told_sleep(time.sleep)
        for name in LOADERS:
            arrivals.watch(name, self._watch_loader)

    def _watch_loader(self, module):
        if iterator := getattr(module, "_BaseDataLoaderIter", None):
            iterator.__next__ = self._told_load(iterator.__next__)

    def _told_sleep(self, sleep):
        @functools.wraps(sleep, updated=())
        def told_sleep(seconds):
            sleep(seconds)
            if is_main_thread() and self._slept is None:
                self.recorder.host_waits(seconds, False)
            elif is_main_thread():
                self._slept += seconds

        return told_sleep

    def _told_load(self, load):
        @functools.wraps(load, updated=())
        def told_load(iterator):
            if self._slept is not None or not is_main_thread():
                return load(iterator)
            clock = time.perf_counter if getattr(iterator, "_num_workers", 0) else time.thread_time
            start, self._slept = clock(), 0
            try:
                return load(iterator)
            finally:
                seconds, self._slept = clock() - start + self._slept, None
                self.recorder.host_waits(seconds, True)

        return told_load
