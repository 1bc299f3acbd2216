"""Programs that the pods run: each says in one line which process it is and what all of them add up to."""

from __future__ import annotations

import re
from dataclasses import dataclass

ALL_REDUCE_TORCH = """
import socket, torch
import torch.distributed as group
group.init_process_group("gloo")
total = torch.tensor([group.get_rank()])
group.all_reduce(total)
print(f"{socket.gethostname()}: rank {group.get_rank()} of {group.get_world_size()}, sum {int(total)}", flush=True)
group.destroy_process_group()
"""

TOLD_BY_TORCHRUN = """
import os, socket, time
rank, size = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE"))
print(f"{socket.gethostname()}: rank {rank} of {size}, sum {size * (size - 1) // 2}", flush=True)
while size < int(os.environ.get("STAY_BELOW", 0)):
    time.sleep(1)
"""
"""What torchrun tells a process; importing PyTorch would take seconds and show nothing more."""

ALL_REDUCE_MPI = """
import ctypes, os, socket
from ctypes import addressof, byref, c_char, c_int, c_void_p
folder = "/usr/local/lib"
def handle(name, number):  # a pointer in Open MPI, a number in MPICH
    return c_void_p(addressof(c_char.in_dll(mpi, name))) if is_open else c_int(number)
is_open = os.path.exists(folder + "/libmpi.so.40")
mpi = ctypes.CDLL(folder + ("/libmpi.so.40" if is_open else "/libmpi.so.12"), ctypes.RTLD_GLOBAL)
world = handle("ompi_mpi_comm_world", 0x44000000)
number = handle("ompi_mpi_int", 0x4C000405)
add = handle("ompi_mpi_op_sum", 0x58000003)
rank, size, total = c_int(), c_int(), c_int()
mpi.MPI_Init(None, None)
mpi.MPI_Comm_rank(world, byref(rank))
mpi.MPI_Comm_size(world, byref(size))
mpi.MPI_Allreduce(byref(rank), byref(total), 1, number, add, world)
print(f"{socket.gethostname()}: rank {rank.value} of {size.value}, sum {total.value}", flush=True)
mpi.MPI_Finalize()
"""

STEP_TENSORFLOW = """
import socket
import tensorflow as tf
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank, size = strategy.cluster_resolver.task_id, strategy.num_replicas_in_sync
with strategy.scope():
    weight = tf.Variable(2.0)
@tf.function(autograph=False)
def step(example):
    def on_each(example):
        with tf.GradientTape() as tape:
            loss = weight * example
        gradient = tape.gradient(loss, weight)
        return tf.distribute.get_replica_context().all_reduce("sum", gradient)
    return strategy.run(on_each, args=(example,))
total = int(step(tf.constant(rank + 1.0)))
print(f"{socket.gethostname()}: rank {rank} of {size}, sum {total}", flush=True)
"""
"""The gradients that the workers add up are the numbers from 1 on."""

TASKS_RAY = """
import os, socket, time, ray
for attempt in range(100):
    try:
        ray.init(f"ray://{os.environ['HEAD']}")
        break
    except ConnectionError:
        time.sleep(1)
@ray.remote(num_cpus=1)
def where():
    time.sleep(0.5)
    return socket.gethostname()
hosts = set()
while len(hosts) < 3:
    hosts.update(ray.get([where.remote() for _ in range(3)]))
print("tasks ran on", *sorted(hosts), flush=True)
"""

_LINE = re.compile(r"(\S+): rank (\d+) of (\d+), sum (\d+)")


@dataclass(frozen=True, slots=True, order=True)
class Said:
    """What one process has said."""

    rank: int
    host: str
    size: int
    total: int


def said(text: str) -> list[Said]:
    """What the processes have said, by rank."""
    return sorted(
        Said(int(rank), host, int(size), int(total))
        for host, rank, size, total in _LINE.findall(text)
    )


def file_and(program: str, command: str) -> str:
    """A script that puts a program into `/tmp/program.py` and then runs a command."""
    return f"cat >/tmp/program.py <<'END'{program}END\n{command}"
