# about: columns are gathered from a matrix whose rows lie together in memory
# cause: slow batched form
# expect: column_gather
# run: panel_scores
# mended: panel_scores_rows
import jax
import jax.numpy as jnp


def panel_scores(expression, genes, weights):
    panels = jax.vmap(lambda g: expression[:, g])(genes)  # <- cause
    return jnp.einsum("pcg,pg->pc", panels, weights)


def panel_scores_inputs(random):
    genes = random.integers(0, 8000, (32, 50), dtype="int32")
    return random.random((2000, 8000), dtype="float32"), genes, random.random((32, 50), dtype="float32")


def panel_scores_rows(by_gene, genes, weights):
    return jnp.einsum("pgc,pg->pc", by_gene[genes], weights)


def panel_scores_rows_inputs(random):
    expression, genes, weights = panel_scores_inputs(random)
    return jnp.array(expression.T), genes, weights
