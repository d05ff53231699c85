"""What only Python knows of how a program starts its ranks.

The recorder runs this inside every process of the program, when it first makes a store and when it first
uses the GPU, with `rank` (the one that is wanted), `folder` (see kExecFolderVariable), `deadline` (see kExecDeadlineVariable)
and `recorder_path` set.
"""


def watch(rank, folder, deadline, recorder_path):
    import ctypes
    import faulthandler
    import functools
    import inspect
    import multiprocessing
    import os
    import pathlib
    import sys
    import time

    def module(name):
        return sys.modules.get("torch.distributed." + name)

    def replace(owner, name, make):
        real = getattr(owner, name, None)
        if real is None or hasattr(real, "is_of_onerank"):
            return
        made = functools.wraps(real)(make(real))
        made.is_of_onerank = True
        setattr(owner, name, made)

    def make_told(told, ranks, make):
        """`told`: the arguments by which torch.distributed makes the group of these ranks of the world."""
        name, description = (str(told.get(key) or "undefined") for key in ("group_name", "group_desc"))
        numbers = (ctypes.c_int64 * len(ranks))(*ranks)
        recorder = ctypes.PyDLL(recorder_path)
        recorder.onerank_exec_group_begins(name.encode(), description.encode(), numbers, ctypes.c_int64(len(ranks)))
        try:
            return make()
        finally:
            recorder.onerank_exec_group_is_made()

    def told_split(real):
        def split_group(parent, ranks, *arguments, **named):
            of_parent = module("distributed_c10d").get_process_group_ranks(parent)
            return make_told(named, [of_parent[rank] for rank in ranks],
                             lambda: real(parent, ranks, *arguments, **named))

        return split_group

    def only_wanted(real):
        """A process that multiprocessing started for another rank ends as if it had done its work."""

        def make_group(size, own_rank, ranks_of_group, *arguments, **named):
            is_world = not ranks_of_group
            if is_world and own_rank != rank and multiprocessing.parent_process() is not None:
                (pathlib.Path(folder) / f"skipped-{own_rank}").touch()
                ctypes.PyDLL(recorder_path).onerank_exec_leave_out()
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(0)
            told = inspect.signature(real).bind(size, own_rank, ranks_of_group, *arguments, **named).arguments
            return make_told(told, ranks_of_group or range(size),
                             lambda: real(size, own_rank, ranks_of_group, *arguments, **named))

        return make_group

    def all_nodes_came(real):
        """torchrun's agents on other nodes, for which this one would wait."""

        def next_rendezvous(handler):
            nodes = handler._settings.min_nodes
            if nodes == 1:
                return real(handler)
            api = module("elastic.rendezvous.api")
            address = api.RendezvousStoreInfo(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
            return api.RendezvousInfo(handler._get_store(), 0, nodes, address)

        return next_rendezvous

    def as_node_of_rank(real):
        """The agent is that of the node on which the wanted rank is, whatever node its flags name."""

        def start_workers(agent, group):
            of_node = group.spec.local_world_size
            node = rank // of_node
            if node < group.group_world_size:
                group.group_rank = node
                for worker in group.workers:
                    worker.global_rank = worker.role_rank = node * of_node + worker.local_rank
            return real(agent, group)

        return start_workers

    if deadline:
        # Nothing else of the program may hold this file: it is written by a thread without the interpreter.
        global doing
        doing = open(pathlib.Path(folder) / f"doing-{os.getpid()}", "w")
        faulthandler.dump_traceback_later(max(0.1, float(deadline) - 2 - time.time()), file=doing)
    if c10d := module("distributed_c10d"):
        replace(c10d, "_new_process_group_helper", only_wanted)
        replace(c10d.ProcessGroup, "split_group", told_split)
    if dynamic := module("elastic.rendezvous.dynamic_rendezvous"):
        replace(dynamic.DynamicRendezvousHandler, "next_rendezvous", all_nodes_came)
    if agents := module("elastic.agent.server.local_elastic_agent"):
        replace(agents.LocalElasticAgent, "_start_workers", as_node_of_rank)


watch(int(rank), folder, deadline, recorder_path)
