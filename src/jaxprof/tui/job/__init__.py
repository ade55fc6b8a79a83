"""The Job screen: the processes of a job beside each other, and which one is late."""
