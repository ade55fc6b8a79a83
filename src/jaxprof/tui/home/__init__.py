"""The Start screen: your code, workloads and devices, and the plan of a run."""
