"""The Sessions screen: opens, renames, copies and deletes saved sessions."""
