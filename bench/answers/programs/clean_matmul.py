# about: nothing: one product
# how: run @:gram --arg f32[512,512] --budget 1
# expect: -


def gram(x):
    return x @ x.T
