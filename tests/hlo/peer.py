"""What jaxlib's own reader makes of HLO texts, one JSON line each: `python peer.py FILE...`.

Run as a process of its own: that reader is private, and aborts on some texts. Each line is printed before the next file
is touched, so that whoever reads them knows which file an end of the process is about. A line holds the path and
either an error or the computations: `{name: [[opcode, [operand positions], [called computation names]], ...]}` with
the instructions in their order. The calls are read from the proto that jaxlib serialises.
"""

import json
import sys
from pathlib import Path

from jaxlib import _hlo

from jaxprof.hlo.text.wire import Message

LOCAL = (1 << 32) - 1


def read(text):
    module = _hlo.hlo_module_from_text(text)
    proto = Message(module.as_serialized_hlo_module_proto())
    names = {one.number(5): one.text(1) for one in proto.messages(3)}
    details = {
        one.text(1): {
            instruction.text(1): (instruction.text(2), [names[number] for number in instruction.numbers(38)])
            for instruction in one.messages(2)
        }
        for one in proto.messages(3)
    }
    found = {}
    for computation in module.computations():
        instructions = list(computation.instructions())
        place = {instruction.name: position for position, instruction in enumerate(instructions)}
        found[computation.name] = [
            [
                details[computation.name][instruction.name][0],
                [place[operand.name] for operand in instruction.operands()],
                details[computation.name][instruction.name][1],
            ]
            for instruction in instructions
        ]
    return found


def say(line):
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def main():
    for path in sys.argv[1:]:
        say({"path": path})
        try:
            answer = {"computations": read(Path(path).read_text())}
        except (RuntimeError, ValueError) as error:
            answer = {"error": str(error)}
        say(answer)


if __name__ == "__main__":
    main()
