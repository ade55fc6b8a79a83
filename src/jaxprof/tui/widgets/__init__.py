"""Pieces that screens are made of. Each draws values that it is given, and knows no screen."""
