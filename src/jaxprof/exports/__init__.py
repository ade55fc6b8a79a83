"""Export sessions to the formats of other tools, which `formats` lists with the functions that write them."""
