"""The Job screen: the processes of a job side by side, and which one is late."""
