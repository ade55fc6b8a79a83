"""The History screen: how measurements developed over the kept sessions."""
