# about: Python turns the tokens of each pass into text, which takes longer than making them
# verdict: host-bound
# expect: host_work
# forbid: op_by_op_loop, many_tiny_jits, data_waits, dispatch_bound, repeated_fetch, arrays_grow
# lines: host_work@cause
# mended: char_model_cached
import sys

import jax
import numpy as np

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]


@jax.jit
def sample(key):
    key, own = jax.random.split(key)
    return key, jax.random.randint(own, (256, 128), 0, len(WORDS))


def to_text(tokens):
    sentences = []
    for row in tokens:  # <- cause
        words = [WORDS[token] for token in row]  # <- cause
        sentence = " ".join(word.capitalize() if n % 9 == 0 else word for n, word in enumerate(words))  # <- cause
        sentences.append(sentence.replace("eta", "η").replace("alpha", "α"))  # <- cause
    return sentences


def generate(passes):
    key, longest = jax.random.key(0), 0
    for _ in range(passes):
        key, tokens = sample(key)
        sentences = to_text(np.asarray(tokens))  # <- cause
        longest = max(longest, max(map(len, sentences)))
    return longest


print(generate(int(80 * float(sys.argv[1] if len(sys.argv) > 1 else 1))))
