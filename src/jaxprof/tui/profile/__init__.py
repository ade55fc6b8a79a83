"""The Profile screen: when things ran and for how long, with a module for each sort of view."""
