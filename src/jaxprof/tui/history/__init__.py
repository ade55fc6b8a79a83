"""History: how measurements went over the kept sessions."""
