"""The size of each construction in closed form: integers for a shape, sympy expressions for symbols. Loads no torch.

Every formula stands once, written over :class:`_Shape`, whose numbers are integers or sympy expressions alike. The tests hold
them against the weights that the constructions build.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from geotheory.digits import code_length
from geotheory.errors import InvalidArgument, UnknownName, positive_integer

__all__ = ["KINDS", "Size", "expressions", "size"]

# int for a shape, sympy.Expr for symbols: both have + - * // **.
Number = Any
# The fields of a Size, in numbers of either sort.
Fields = dict[str, Any]


@dataclass(frozen=True)
class Size:
    """What a construction costs.

    Attributes
    ----------
    d
        Dimension of the hidden state.
    width
        Neurons of the widest hidden layer.
    depth
        Number of blocks (attention and MLP, or an MLP alone).
    heads
        Attention heads of the first block; later blocks have none.
    steps
        Entities emitted for an answer; 1 without chain of thought.
    parameters
        Weights in all, each counted once.
    bits_in, bits_out
        Bits of facts in a subject's row of `W_E` and in an attribute's column of `W_U` (`D_in`, `D_out` of the theory);
        0 where the row or column is a fixed known code. For complete fact tables.
    bits_shared
        Bits of facts in all other weights (`P`); 0 means a fact-independent decoder.
    parts
        Named subspaces of the hidden state and their dimensions. They add up to `d`, except that an output that
        overwrites its input is listed under the parts it overwrites.
    """

    d: int
    width: int
    depth: int
    heads: int
    steps: int
    parameters: int
    bits_in: int
    bits_out: int
    bits_shared: int
    parts: Mapping[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain JSON-ready values."""
        return asdict(self)


@dataclass(frozen=True)
class _Shape:
    N: Number
    A: Number
    R: Number
    k: Number
    b: Number
    residual: bool
    options: Mapping[str, Any]
    length: Callable[..., Number]
    maximum: Callable[..., Number]
    equal: Callable[[Number, Number], Any]
    choose: Callable[[Any, Number, Number], Number]

    @property
    def m(self) -> Number:
        """Length of an attribute's code."""
        return self.length(self.A, self.b)

    @property
    def L(self) -> Number:
        """Length of a relation's code."""
        return self.length(self.R)

    @property
    def fetched(self) -> Number:
        """Relations that heads must fetch: with a residual stream the last token has its own already."""
        return self.k - 1 if self.residual else self.k


def _size(
    shape: _Shape,
    *,
    parts: dict[str, Number],
    width: Number,
    heads: Iterable[tuple[Number, Number, Number]],
    positions: Number,
    d: Number = None,
    depth: Number = 1,
    neurons: Number = None,
    steps: Number = 1,
    extra_tokens: int = 0,
    bits_in: Number = 0,
    bits_out: Number = 0,
    bits_shared: Number = 0,
) -> Fields:
    """Count the parameters of a transformer with `heads` = (how many, query/key dimension, value dimension)."""
    d = sum(parts.values()) if d is None else d
    neurons = width if neurons is None else neurons
    heads = list(heads)
    attention = sum(count * 2 * d * (query + value) for count, query, value in heads)
    mlp = 2 * d * neurons + neurons + depth * d
    embedding = (shape.N + shape.R + extra_tokens + positions) * d
    return {
        "d": d,
        "width": width,
        "depth": depth,
        "heads": sum(count for count, _, _ in heads),
        "steps": steps,
        "parameters": embedding + attention + mlp + (d + 1) * shape.A,
        "bits_in": bits_in,
        "bits_out": bits_out,
        "bits_shared": bits_shared,
        "parts": parts,
    }


def _single_hop(s: _Shape) -> Fields:
    blocks = s.R * s.m
    parts = {"subject blocks": blocks, "relation codes": s.L} | ({"output": s.m} if s.residual else {})
    value = blocks if s.residual else blocks + s.L
    return _size(s, parts=parts, width=blocks, heads=[(1, 0, value)], positions=0, bits_in=blocks * s.b)


def _direct(s: _Shape) -> Fields:
    blocks = s.R**s.k * s.m
    position = s.length(s.k + 1)
    parts = {"subject blocks": blocks, "relation codes": s.k * s.L, "positions": position}
    return _size(
        s,
        parts=parts | ({"output": s.m} if s.residual else {}),
        width=blocks,
        heads=[(s.fetched, position, s.L), (1, position, blocks)],
        positions=s.k + 1,
        bits_in=blocks * s.b,
    )


def _chain_of_thought(s: _Shape) -> Fields:
    j = s.options["hops_per_step"]
    steps = -(-s.k // j)
    even = s.equal(s.k % j, 0)
    # The last step of an uneven chain is filled up with the blank relation, which then needs a code of its own.
    words = s.R**j + s.choose(even, 0, s.R ** (s.k % j))
    code = s.choose(even, s.length(s.R), s.length(s.R + 1))
    positions = steps * (j + 1)
    position = s.length(positions)
    parts = {"subject blocks": words * s.m, "relation codes": j * code, "positions": (2 + j) * position}
    if s.residual:
        parts |= {"own relation code": code, "output": s.m}
    return _size(
        s,
        parts=parts,
        width=words * s.m,
        heads=[(j, position, code), (1, position, words * s.m)],
        positions=positions,
        extra_tokens=1,
        steps=steps,
        bits_in=words * s.m * s.b,
    )


def _key_value(s: _Shape) -> Fields:
    entity = s.maximum(s.length(s.N), s.length(s.A))
    several = s.k != 1
    position = s.length(s.k + 1) if several else 0
    parts = {"entity code": entity, "relation codes": s.k * s.L} | ({"positions": position} if several else {})
    # Without a residual stream a layer hands on the relation codes that later layers need, a neuron a coordinate.
    passed = 0 if s.residual else s.L
    heads = (
        [(s.fetched, position, s.L), (1, position, entity)]
        if several
        else [(1, 0, entity + (0 if s.residual else s.L))]
    )
    return _size(
        s,
        parts=parts,
        width=s.N * s.R + (s.k - 1) * passed,
        neurons=s.k * s.N * s.R + s.k * (s.k - 1) // 2 * passed,
        depth=s.k,
        heads=heads,
        positions=s.k + 1 if several else 0,
        bits_shared=s.k * s.N * s.R * s.length(s.A),
    )


def _meet_in_middle(s: _Shape) -> Fields:
    forward, layers = s.options["forward"], s.options["hidden_layers"]
    backward = s.k - forward
    position = s.length(s.k + 1)
    m = s.length(s.N)
    blocks, output = s.R**forward * m, s.R**backward * m
    parts = {"subject blocks": blocks, "relation codes": s.k * s.L, "positions": position}
    if s.residual:
        parts |= ({"middle entity": m} if layers == 2 else {}) | {"output blocks": output}
        d = sum(parts.values())
    else:
        d = s.maximum(sum(parts.values()), output)
    first = blocks + (0 if s.residual else backward * s.L)
    second = 2 * output
    whole = 2 * s.R**s.k * m
    return _size(
        s,
        parts=parts,
        d=d,
        width=s.maximum(first, second) if layers == 2 else whole,
        neurons=first + second if layers == 2 else whole,
        depth=layers,
        heads=[(s.fetched, position, s.L), (1, position, blocks)],
        positions=s.k + 1,
        # Without a word on its side, a row or column is the fixed code of its own entity.
        bits_in=s.choose(s.equal(forward, 0), 0, blocks),
        bits_out=s.choose(s.equal(backward, 0), 0, output),
    )


_FORMULAS: dict[str, tuple[Callable[[_Shape], Fields], dict[str, Any]]] = {
    "single_hop": (_single_hop, {}),
    "direct": (_direct, {}),
    "chain_of_thought": (_chain_of_thought, {"hops_per_step": 1}),
    "key_value": (_key_value, {}),
    "meet_in_middle": (_meet_in_middle, {"forward": None, "hidden_layers": 2}),
}

KINDS: tuple[str, ...] = tuple(_FORMULAS)
"""The constructions that recall every fact, in the order of the theory (T1 to T5)."""


def _formula(kind: str, options: Mapping[str, Any]) -> tuple[str, Callable[[_Shape], Fields], dict[str, Any]]:
    name = kind.replace("-", "_")
    if name not in _FORMULAS:
        raise UnknownName("construction", kind, KINDS)
    formula, defaults = _FORMULAS[name]
    for option in options:
        if option not in defaults:
            raise InvalidArgument(
                f"{name} has no option {option!r}" + (f"; it has {', '.join(defaults)}" if defaults else "")
            )
    return name, formula, defaults | dict(options)


def size(
    kind: str,
    *,
    entities: int,
    relations: int,
    hops: int = 1,
    bits: int = 1,
    residual: bool = False,
    attributes: int | None = None,
    **options: Any,
) -> Size:
    """Size of a construction, exactly, without building any weight.

    Parameters
    ----------
    kind
        `"single_hop"` (T1), `"direct"` (T2), `"chain_of_thought"` (T3), `"key_value"` (T4), `"meet_in_middle"` (T5);
        hyphens may stand for underscores.
    entities, relations, hops
        `N`, `R`, `k`, each at least 1.
    bits
        Bits a coordinate of the attributes' code; `key_value` and `meet_in_middle` have sign codes only.
    residual
        Whether the blocks have a residual stream.
    attributes
        Number of attributes where they are not the entities; needs `hops = 1`.
    options
        `hops_per_step` (chain_of_thought), `forward`, `hidden_layers` (meet_in_middle).

    Raises
    ------
    InvalidArgument
        A number out of range, or an option that the construction does not have.
    UnknownName
        No such construction.

    Examples
    --------
    >>> s = size("single_hop", entities=4096, relations=16)
    >>> s.d, s.width, s.bits_in
    (196, 192, 192)
    >>> size("chain_of_thought", entities=100, relations=3, hops=1000).parts["subject blocks"]
    21
    """
    name, formula, chosen = _formula(kind, options)
    N, R, k = (
        positive_integer(what, n) for what, n in (("entities", entities), ("relations", relations), ("hops", hops))
    )
    A = N if attributes is None else positive_integer("attributes", attributes)
    positive_integer("bits", bits)
    if name == "single_hop" and k != 1:
        raise InvalidArgument(
            f"single_hop answers one hop, not {k}; use direct, chain_of_thought, key_value or meet_in_middle"
        )
    if A != N and (k > 1 or name == "meet_in_middle"):
        raise InvalidArgument(
            f"{A} attributes for {N} entities: {name} at hops={k} needs attributes that are the entities"
        )
    if bits != 1 and name in ("key_value", "meet_in_middle"):
        raise InvalidArgument(f"{name} has sign codes only (bits=1), not bits={bits}")
    if "hops_per_step" in chosen and positive_integer("hops_per_step", chosen["hops_per_step"]) > k:
        raise InvalidArgument(f"hops_per_step = {chosen['hops_per_step']} exceeds hops = {k}")
    if "forward" in chosen:
        chosen["forward"] = (k + 1) // 2 if chosen["forward"] is None else chosen["forward"]
        if positive_integer("forward", chosen["forward"], least=0) > k:
            raise InvalidArgument(f"forward = {chosen['forward']} exceeds hops = {k}")
        if chosen["hidden_layers"] not in (1, 2):
            raise InvalidArgument(f"hidden_layers must be 1 or 2, not {chosen['hidden_layers']!r}")
    shape = _Shape(
        N, A, R, k, bits, residual, chosen,
        length=code_length,
        maximum=max,
        equal=lambda a, b: a == b,
        choose=lambda condition, yes, no: yes if condition else no,
    )  # fmt: skip
    return Size(**formula(shape))


def expressions(kind: str, *, residual: bool = False, hops: int | None = None, **options: Any) -> dict[str, Any]:
    """The same formulas as sympy expressions in `N`, `R`, `k` and `b` (positive integers).

    Parameters
    ----------
    kind, residual, options
        As for :func:`size`; `hops_per_step` and `forward` may be sympy expressions (default of `forward`: the symbol `f`).
    hops
        A number in place of the symbol `k`; single_hop has 1. At one hop `key_value` attends uniformly and has no positions:
        give `hops=1` for it, the formulas in `k` speak of several hops.

    Returns
    -------
    Field of :class:`Size` -> sympy expression; `parts` is a dictionary of expressions.

    Examples
    --------
    >>> expressions("direct")["bits_in"]
    R**k*b*Max(1, ceiling(log(N)/(b*log(2))))
    """
    import sympy as sp

    name, formula, chosen = _formula(kind, options)
    N, R, k, b = sp.symbols("N R k b", positive=True, integer=True)
    if hops is not None or name == "single_hop":
        k = sp.Integer(hops or 1)
    if "forward" in chosen and chosen["forward"] is None:
        chosen["forward"] = sp.Symbol("f", nonnegative=True, integer=True)

    shape = _Shape(
        N, N, R, k, b if name not in ("key_value", "meet_in_middle") else sp.Integer(1), residual, chosen,
        length=lambda count, bits=1: sp.Max(1, sp.ceiling(sp.log(count, 2) / bits)),
        maximum=sp.Max,
        equal=sp.Eq,
        choose=lambda condition, yes, no: sp.Piecewise((yes, condition), (no, True)),
    )  # fmt: skip
    return formula(shape)
