"""What the machine has and how busy it is: CPU through psutil, NVIDIA GPUs through NVML. Never jax.

Start at `inventory.machine.local_devices` (what there is), `inventory.join.merge` (with JAX's own view laid over it),
`live.monitor.Monitor` (live readings) and `inventory.placement.worker_environment` (what a worker on one device needs).

Nothing is imported here: the app's first frame waits for neither psutil nor NVML.
"""
