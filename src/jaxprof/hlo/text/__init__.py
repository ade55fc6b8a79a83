"""Reading HLO: text and protos, whole files and folders of dumps, into the model."""
