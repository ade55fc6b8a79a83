"""HLO from any source, opened in the same way for every screen, command and function.

`paths` knows files and folders of dumps, `stages` a module in its available texts, each of which is read once.
Sessions and profiles, which hold HLO as well, belong to packages above: `jaxprof.analysis.opener` opens all.
"""
