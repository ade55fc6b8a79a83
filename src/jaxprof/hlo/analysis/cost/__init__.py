"""What a kernel costs, counted from its shapes: FLOPs, bytes, and the least time that a device needs for them."""
