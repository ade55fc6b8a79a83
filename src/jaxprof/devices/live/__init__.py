"""Live readings: the CPU through psutil, NVIDIA GPUs through NVML."""
