"""Texts that are as bad as can be for a reader: each repeats one unfinished thing `n` times."""

HEAD = "HloModule m\nENTRY e {\n  p = f32[] parameter(0)\n"


def worst_texts(n):
    in_body = {
        "open parentheses": "  a = f32[] add(" * n,
        "lines of open parentheses": "  a = f32[] add((\n" * n,
        "lines of open attributes": "  a = f32[] add(p), x={\n" * n,
        "lines of open strings": '  a = f32[] add(p), x="\n' * n,
        "escaped quotes": '  a = f32[] add(p), x="' + '\\"' * 8 * n + "\n",
        "lines of escaped quotes": '  a = f32[] add(p), x="\\"\n' * n,
        "open comments": "  a = f32[] add(/* p)\n" * n,
        "lines of open comments": "  /* \n" * n,
        "closing braces": "   }\n" * n,
        "headers inside": "  foo {\n" * n,
        "open tuples": "  a = ((((((((((( add(p)\n" * n,
        "deep tuple": "  a = " + "(" * n + "f32[]" + ")" * n + " add(p)\n}",
        "wide tuple": "  a = (" + "f32[2]{0:T(8,128)}, " * n + "f32[]) tuple(p)\n}",
        "deep attribute": "  a = f32[] add(p), x=" + "{" * 5 * n + "}" * 5 * n + "\n}",
        "deep open attribute": "  a = f32[] add(p), x=" + "{" * 5 * n + "\n}",
        "spaces": " " * 10 * n + "\nENTRY" + " " * 10 * n + "\n",
        "equals signs": "  a = " * n,
        "one word": "  " + "a" * 10 * n + "\n",
        "ROOT": "  " + "ROOT " * 5 * n + "\n",
        "metadata": "  a = f32[] add(p), metadata={" + 'x="' * n + "}\n",
        "layout": "  a = f32[2]{0:" + "A" * 10 * n + "} add(p)\n}",
        "short forms": "  a = (f32[]) foo-start(\n" * n,
        "short forms on one line": "  a = (f32[]) foo-start(" * n,
        "closed short forms": "  a = ((f32[]), f32[]) foo-start(p)\n" * n,
        "in place": "  a = f32[] reduce(p), to_apply={\n" * n,
        "in place on one line": "  a = f32[] reduce(p), to_apply={ b = f32[] add(p) " * n,
        "closed in place": "  a = f32[] reduce(p), to_apply={ b = f32[] add(p) }\n" * n,
        "literal": "  c = f32[9] constant({" + "(1, 2), " * n + "})\n}",
        "lines of a literal": "  c = f32[9] constant({\n" + "  { 1, 2 },\n" * n + "})\n}",
        "operands": "  a = f32[] tuple(" + "p, " * n + "p)\n}",
        "chain of updates": "  a = f32[] async-update(a)\n" * n,
        "junk": "  x y z\n" * n,
        "per cent signs": "  a = f32[] add(" + "%" * 10 * n + ")\n}",
        "NUL": "\0" * 10 * n,
    }
    outside = {
        "comments": "/* x\n" * n,
        "open headers": "HloModule m\n" + "name (\n" * n,
        "headers on one line": "HloModule m\n" + "name { a = f32[] add(p)\n" * n,
        "line ends": "\n" * 10 * n + "module",
        "modules": "HloModule m, x={\n" * n,
        "modules with commas": "HloModule m,\n" * n,
        "frames": "HloModule m\nFileNames\n"
        + '1 "abc\n' * n
        + "StackFrames\n"
        + "1 {parent_frame_id=2}\n" * n
        + HEAD[12:],
        "titles": "HloModule m\n" + "FileNames\n" * n + HEAD[12:],
        "empty computations": "HloModule m\n" + "".join(f"a{number} {{\n}}\n" for number in range(n)),
        "open threads": "HloModule m\n" + "".join(f'a{number} {{\n}}, execution_thread="x\n' for number in range(n)),
    }
    return {name: HEAD + text for name, text in in_body.items()} | outside
