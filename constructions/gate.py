"""The relation gate: MLP weights that act on one block of the hidden state, chosen by the relations of the query (THEORY 4).

For a word `rho` and the relation codes `h_1, ..., h_k` found in the hidden state let

    z_rho = sum_i (<c_{rho_i}, h_i> - L).

`z_rho = 0` if the query's word is `rho`; otherwise some code differs, `<c, c'> <= L - 2`, and `z_rho <= -2`. Adding a multiple of
`z_rho` to a pre-activation therefore switches a neuron off on every word but its own. All weights are small integers.
"""

from jaxtyping import Float, Int
from torch import Tensor

from geotheory.codes import Code
from geotheory.transformer import MLP

__all__ = ["hand_on", "look_up", "place", "select", "write_gate"]


def write_gate(
    mlp: MLP,
    neurons: slice,
    words: Int[Tensor, "neurons hops"],
    relations: Code,
    slots: list[slice],
    strength: int,
) -> None:
    """Add `strength * z_word` to the pre-activations of `neurons`, one word a neuron, reading the codes in `slots`."""
    weight = mlp.weight_in
    for slot, letters in zip(slots, words.T):
        weight[slot, neurons] += strength * relations.words(letters, dtype=weight.dtype, device=weight.device).T
    mlp.bias_in[neurons] -= strength * relations.length * len(slots)


def select(
    mlp: MLP,
    neurons: slice,
    words: Int[Tensor, "words hops"],
    relations: Code,
    slots: list[slice],
    block: Code,
    blocks: slice,
    output: slice,
) -> None:
    """Return the block of the queried word in `output`, exactly (T1 to T3).

    Neuron `(w, j)` computes `ReLU(x[w, j] + s + (s + 1) z_w)`. On the queried word that is `x[w, j] + s >= 0`. On every other its
    argument is at most `2 s - 2 (s + 1) = -2`. The sum over the words, less `s` (an output bias), is the queried block.
    """
    m, s = block.length, block.amplitude
    mlp.weight_in[blocks, neurons].fill_diagonal_(1)
    mlp.bias_in[neurons] += s
    write_gate(mlp, neurons, words.repeat_interleave(m, 0), relations, slots, s + 1)
    out = mlp.weight_out[neurons, output].unflatten(0, (len(words), m))
    out.diagonal(dim1=1, dim2=2).fill_(1)
    mlp.bias_out[output] -= s


def place(
    mlp: MLP,
    neurons: slice,
    words: Int[Tensor, "words hops"],
    relations: Code,
    slots: list[slice],
    m: int,
    sources: list[slice],
    targets: list[slice],
) -> None:
    """Copy the sign code found in `sources[w]` to `targets[w]` if the query's word is `w`, and zero otherwise (T5).

    A pair of neurons a coordinate: `ReLU(mu_j + 2 z_w) - ReLU(-mu_j + 2 z_w)` is `mu_j` where `z_w = 0`, and 0 where
    `z_w <= -2`, since `|mu_j| <= 1`. A single neuron with an output bias will not do: the other blocks must be zero.
    """
    gated = words.repeat_interleave(2 * m, 0)
    write_gate(mlp, neurons, gated, relations, slots, 2)
    weight_in = mlp.weight_in[:, neurons].unflatten(1, (len(words), 2, m))
    weight_out = mlp.weight_out[neurons].unflatten(0, (len(words), 2, m))
    for w, (source, target) in enumerate(zip(sources, targets)):
        for half, sign in enumerate((1, -1)):
            weight_in[source, w, half].diagonal().add_(sign)
            weight_out[w, half, :, target].diagonal().add_(sign)


def look_up(
    mlp: MLP,
    neurons: slice,
    keys: Float[Tensor, "facts n"],
    words: Int[Tensor, "facts 1"],
    values: Float[Tensor, "facts m"],
    relations: Code,
    slot: slice,
    entity: slice,
) -> None:
    """Key-value memory, one neuron a fact (T4).

    `ReLU(<u_x, h> + <c_r, h'> - (n + L) + 1)` is 1 on the fact `(x, r)` and 0 on every other, since a different code lowers the
    argument by at least 2. Its output row, in `entity`, is the fact's value.
    """
    n = keys.shape[1]
    mlp.weight_in[entity.start : entity.start + n, neurons] += keys.T
    mlp.bias_in[neurons] += 1 - n
    write_gate(mlp, neurons, words, relations, [slot], 1)
    mlp.weight_out[neurons, entity.start : entity.start + values.shape[1]] += values


def hand_on(mlp: MLP, neurons: slice, codes: slice) -> None:
    """Hand sign codes on to the next layer where there is no residual stream: `ReLU(c + 1) - 1 = c`."""
    mlp.weight_in[codes, neurons].fill_diagonal_(1)
    mlp.bias_in[neurons] += 1
    mlp.weight_out[neurons, codes].fill_diagonal_(1)
    mlp.bias_out[codes] -= 1
