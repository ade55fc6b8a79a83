"""What the machine has and how busy it is: CPU through psutil, NVIDIA GPUs through NVML. Never jax.

Start at `devices.local_devices` (what there is), `devices.merge` (with JAX's own view laid over it), `monitor.Monitor`
(live readings), `placement.worker_environment` (what a worker on one device needs) and `report` (text and JSON).

Nothing is imported here: the first frame of the app waits for neither psutil nor NVML.
"""
