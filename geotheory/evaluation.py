"""Fast exhaustive evaluation: folded, pruned, tiled; the same answers as the dense forward pass.

Where attention depends on positions only, the first block's pre-activation at the last position is a sum of table look-ups,

    u W_in + b_in = S[x] + T_1[r_1] + ... + T_k[r_k] + b,

one table a position. :class:`Evaluator` checks on the weights that this is so, and otherwise runs the dense forward pass.
Folding saves the attention; three more savings make exhaustive verification cheap:

- *pruning*: words are walked as a tree. A neuron whose largest subject value plus the word's share so far plus the most that
  the rest of the word can add is not positive is dead below this node for every subject, and is dropped there, exactly;
- *distinct outputs*: logits are computed once for each distinct hidden state that reaches the unembedding. A model that
  recalls `N` attributes has about `N` of them, however many queries there are;
- *tiling*: logits exist a tile at a time, with a running top two; nothing of size `N x N` or `R^k` is ever held.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from geotheory.errors import InvalidArgument
from geotheory.transformer import MLP, Attention, Block, Head, Transformer
from geotheory.words import all_words

__all__ = ["Answers", "Evaluator", "compress", "is_finite"]

# Numbers in a tile of activations: 4 MB in float32, about what a core's caches hold.
TILE = 1 << 20
# Numbers in the largest table of subjects that is held at once (256 MB in float32).
TABLE = 1 << 26
# Distinct hidden states remembered before the memory is cleared.
REMEMBERED = 1 << 19
# Sequences in one dense forward pass.
DENSE = 256


@dataclass(frozen=True)
class Answers:
    """The two largest logits of each query.

    Attributes
    ----------
    best
        The attribute with the largest logit (one of them, if tied).
    logit, runner_up
        The largest and the second largest logit; `runner_up` is `-inf` where there is but one attribute.
    lead
        By how much the logit of the expected attribute exceeds that of every other; negative where another is larger.
        Without an expectation, and where none is expected (-1), that of the best attribute.
    """

    best: Int[Tensor, "*queries"]
    logit: Float[Tensor, "*queries"]
    runner_up: Float[Tensor, "*queries"]
    lead: Float[Tensor, "*queries"]

    def said(self, silence: float = float("-inf")) -> Int[Tensor, "*queries"]:
        """The answer: `best`, or -1 where it is tied or its logit is not above `silence`."""
        # A NaN compares false and so is no answer either.
        return torch.where((self.logit > self.runner_up) & (self.logit > silence), self.best, -1)

    def map(self, change: Callable[[Tensor], Tensor]) -> "Answers":
        """The same change of shape or order made to every column."""
        return Answers(change(self.best), change(self.logit), change(self.runner_up), change(self.lead))

    def judged(self, expected: Int[Tensor, "queries"], logit: Callable[[Tensor, Tensor], Tensor]) -> "Answers":
        """With `lead` taken for the `expected` attributes; `logit(queries, attributes)` looks logits up."""
        wrong = ((expected >= 0) & (self.best != expected)).nonzero()[:, 0]
        if not len(wrong):
            return self
        lead = self.lead.index_copy(0, wrong, logit(wrong, expected[wrong]) - self.logit[wrong])
        return Answers(self.best, self.logit, self.runner_up, lead)

    @staticmethod
    def cat(parts: list["Answers"]) -> "Answers":
        """Concatenate along the first axis."""
        columns = zip(*((p.best, p.logit, p.runner_up, p.lead) for p in parts))
        return Answers(*(torch.cat(column) for column in columns))


def _top_two(logits: Float[Tensor, "rows columns"], offset: int = 0) -> Answers:
    value, index = logits.topk(min(2, logits.shape[1]))
    runner_up = value[:, 1] if value.shape[1] == 2 else torch.full_like(value[:, 0], float("-inf"))
    return Answers(index[:, 0] + offset, value[:, 0], runner_up, value[:, 0] - runner_up)


def _merge(a: Answers, b: Answers) -> Answers:
    """Top two of two disjoint sets of attributes."""
    first = a.logit >= b.logit
    rest = torch.where(first, torch.maximum(a.runner_up, b.logit), torch.maximum(b.runner_up, a.logit))
    logit = torch.where(first, a.logit, b.logit)
    return Answers(torch.where(first, a.best, b.best), logit, rest, logit - rest)


class Readout:
    """Hidden states to answers; every distinct state meets the unembedding once."""

    def __init__(self, weight: Float[Tensor, "m attributes"], bias: Float[Tensor, "attributes"]) -> None:
        self.weight, self.bias = weight, bias
        generator = torch.Generator().manual_seed(0)
        self.salt = torch.randint(-(1 << 62), 1 << 62, (weight.shape[0],), generator=generator).to(weight.device)
        self._forget()

    def _forget(self) -> None:
        device, dtype = self.weight.device, self.weight.dtype
        self.keys = torch.empty(0, dtype=torch.int64, device=device)
        self.states = torch.empty(0, self.weight.shape[0], dtype=dtype, device=device)
        empty = torch.empty(0, dtype=dtype, device=device)
        self.known = Answers(self.keys, empty, empty, empty)

    def __call__(self, states: Float[Tensor, "rows m"], expected: Int[Tensor, "rows"] | None = None) -> Answers:
        """Answers of states, judged by the attributes `expected` of them, if given."""
        states = states + 0.0  # -0.0 becomes 0.0: equal states get equal keys
        words = states.view(torch.int32 if states.dtype == torch.float32 else torch.int64)
        keys = (words * self.salt).sum(-1)
        slot, found = self._find(keys, states)
        if not bool(found.all()):
            fresh = ~found & (self.keys[slot] != keys if len(self.keys) else True)
            self._learn(keys[fresh], states[fresh])
            slot, found = self._find(keys, states)
        answers = self.known.map(lambda column: column[slot])
        if not bool(found.all()):  # different states with one key: not remembered, but right all the same
            others = (~found).nonzero()[:, 0]
            order = torch.cat([found.nonzero()[:, 0], others]).argsort()
            answers = Answers.cat([answers.map(lambda c: c[found]), self.answers(states[others])]).map(
                lambda c: c[order]
            )
        if expected is None:
            return answers
        return answers.judged(expected, lambda q, a: (states[q] * self.weight[:, a].T).sum(-1) + self.bias[a])

    def _find(self, keys: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
        if not len(self.keys):
            return torch.zeros_like(keys), torch.zeros_like(keys, dtype=torch.bool)
        slot = torch.searchsorted(self.keys, keys).clamp_(max=len(self.keys) - 1)
        return slot, (self.states[slot] == states).all(-1)

    def _learn(self, keys: Tensor, states: Tensor) -> None:
        if len(self.keys) + len(keys) > REMEMBERED:
            self._forget()
        keys, inverse = keys.unique(return_inverse=True)
        example = torch.empty_like(keys).scatter_(0, inverse, torch.arange(len(inverse), device=keys.device))
        states = states[example]
        keys, order = torch.cat([self.keys, keys]).sort()
        self.known = Answers.cat([self.known, self.answers(states)]).map(lambda column: column[order])
        self.keys, self.states = keys, torch.cat([self.states, states])[order]

    def answers(self, states: Float[Tensor, "rows m"]) -> Answers:
        """Top two logits of every row, by tiles of the logits."""
        attributes = self.weight.shape[1]
        columns = min(attributes, TILE)
        rows = max(1, TILE // columns)
        parts = []
        for part in states.split(rows):
            best: Answers | None = None
            for start in range(0, attributes, columns):
                end = start + columns
                logits = torch.addmm(self.bias[start:end], part, self.weight[:, start:end])
                tile = _top_two(logits, start)
                best = tile if best is None else _merge(best, tile)
            parts.append(best)
        return Answers.cat([p for p in parts if p is not None])


def _is_plain(model: Transformer) -> bool:
    """Whether every part computes what its class says: no subclass, no replaced `forward`, no hook."""
    known = (Transformer, Block, Attention, Head, MLP, nn.ModuleList)
    return not torch.nn.modules.module._has_any_global_hook() and all(
        type(m) in known and "forward" not in vars(m) and not m._forward_hooks and not m._forward_pre_hooks
        for m in model.modules()
    )


def is_finite(weight: Tensor) -> bool:
    """Whether a tensor holds no NaN and no infinity."""
    return not weight.numel() or all(bool(end.isfinite()) for end in weight.aminmax())


def compress(matrix: Tensor) -> Tensor:
    """The same matrix, sparse where that makes products cheaper."""
    return matrix.to_sparse() if int(matrix.count_nonzero()) * 16 < matrix.numel() else matrix


class Folded:
    """A transformer at the last position of sequences of one length, with the first block's attention folded away.

    `tables(i, tokens)` is what a token at position `i` adds to the pre-activations of the first hidden layer, and, behind them,
    to the coordinates of the residual stream that later layers read.
    """

    def __init__(self, transformer: Transformer, length: int) -> None:
        self.embedding = transformer.embedding.detach()
        first = transformer.blocks[0]
        later = list(transformer.blocks[1:])
        assert isinstance(first.attention, Attention)
        # Coordinates of the hidden state that anything after the first block reads.
        read = (transformer.unembedding != 0).any(1)
        needed = read.clone()
        for block in later:
            needed |= (block.mlp.weight_in != 0).any(1)
        need = needed.nonzero()[:, 0]
        self.width = first.mlp.weight_in.shape[1]
        self.residual = first.residual

        self.weight_out = first.mlp.weight_out[:, need]
        self.bias_out = first.mlp.bias_out[need]
        self.later = [
            (b.mlp.weight_in[need], b.mlp.bias_in, b.mlp.weight_out[:, need], b.mlp.bias_out[need]) for b in later
        ]
        self.signs = [(w.clamp(min=0), w.clamp(max=0)) for w, _, _, _ in self.later]
        self.largest = max([self.width, *(bias.shape[0] for _, bias, _, _ in self.later)])
        self.output = read[need].nonzero()[:, 0]

        target: Tensor = first.mlp.weight_in
        if self.residual:
            carry = torch.zeros(target.shape[0], len(need), dtype=target.dtype, device=target.device)
            carry[need, torch.arange(len(need), device=need.device)] = 1
            target = torch.cat([target, carry], 1)
        self.columns = target.shape[1]
        self.bias = torch.cat([first.mlp.bias_in, target.new_zeros(self.columns - self.width)])

        if transformer.position is None:
            self.positions = target.new_zeros(length, target.shape[0])
        else:
            self.positions = transformer.position[:length]
        # A position adds, over heads, pattern * (token W_V) (W_O target). Both maps are transposed, so that a sparse
        # one can stand on the left of a product.
        patterns = first.attention.patterns(self.positions, last=True)
        self.arrivals: list[tuple[Tensor, Tensor | None, Tensor]] = [
            (pattern[0], compress(head.value.T), compress((compress(head.output) @ target).T))
            for pattern, head in zip(patterns, first.attention.heads)
        ]
        if self.residual:
            own = torch.zeros_like(patterns[0][0])
            own[-1] = 1
            self.arrivals.append((own, None, compress(target.T)))

    def table(self, i: int, tokens: Int[Tensor, "items"]) -> Float[Tensor, "columns items"] | None:
        """Share of each token at position `i`; None if there is none."""
        rows = (self.embedding[tokens] + self.positions[i]).T
        total = None
        for pattern, value, output in self.arrivals:
            if pattern[i] == 0:
                continue
            carried = rows if value is None else value @ rows
            if bool(carried.any()):
                share = pattern[i] * (output @ carried)
                total = share if total is None else total + share
        return total

    def finish(self, state: Float[Tensor, "rows need"]) -> Float[Tensor, "rows output"]:
        """What reaches the unembedding, from the state after the first block; later blocks are MLPs."""
        for (weight_in, bias_in, weight_out, bias_out), (positive, negative) in zip(self.later, self.signs):
            # Interval bound over the rows: a neuron that cannot be positive for any of them is dropped.
            live = (~(state.amax(0) @ positive + state.amin(0) @ negative + bias_in <= 0)).nonzero()[:, 0]
            out = []
            for part in state.split(max(1, 4 * TILE // max(1, len(live)))):
                hidden = torch.relu(torch.addmm(bias_in[live], part, weight_in[:, live]))
                v = torch.addmm(bias_out, hidden, weight_out[live])
                out.append(v + part if self.residual else v)
            state = torch.cat(out)
        return state[:, self.output]

    def states(self, tokens: Int[Tensor, "queries length"]) -> Iterator[Float[Tensor, "rows output"]]:
        """What reaches the unembedding, for arbitrary token sequences, some rows at a time."""
        shares = []
        for i in range(tokens.shape[1]):
            items, inverse = tokens[:, i].unique(return_inverse=True)
            if (table := self.table(i, items)) is not None:
                shares.append((table.T.contiguous(), inverse))
        (first, index), *others = self._audible(shares) or [(self.bias.new_zeros(1, self.columns), tokens[:, 0] * 0)]
        first = first + self.bias
        rows = max(1, 4 * TILE // self.columns)
        for start in range(0, len(tokens), rows):
            total = first[index[start : start + rows]]
            for table, inverse in others:
                total += table[inverse[start : start + rows]]
            hidden = total[:, : self.width].relu_()
            state = torch.addmm(self.bias_out, hidden, self.weight_out)
            yield self.finish(state + total[:, self.width :] if self.residual else state)

    @staticmethod
    def _audible(shares: list[tuple[Tensor, Tensor]]) -> list[tuple[Tensor, Tensor]]:
        """The tables less those that are, at every neuron, far below the rounding of the others' sum.

        A softmax that is sharp leaves something of every position; adding it would cost as much as what it was aimed at.
        """
        if len(shares) < 2:
            return shares
        largest = torch.stack([table.abs().amax(0) for table, _ in shares])
        rounding = torch.finfo(largest.dtype).eps / 256 * largest.sum(0)
        audible = (~(largest <= rounding)).any(1).tolist()
        return [share for share, keep in zip(shares, audible) if keep]

    def sweep(
        self, subjects: Int[Tensor, "subjects"], relations: Int[Tensor, "relations"], hops: int
    ) -> Iterator[tuple[Int[Tensor, "words hops"], Float[Tensor, "rows output"]]]:
        """What reaches the unembedding for all `subjects` and every word, words in lexicographic order.

        Yields words and the rows of (word, subject) in this order; words are indices into `relations`.
        """
        n, R = len(subjects), len(relations)
        share = self.table(0, subjects)
        S = self.bias.new_zeros(self.columns, n) if share is None else share
        top = S[: self.width].amax(1)
        tables = []
        for i in range(1, hops + 1):
            table = self.table(i, relations)
            tables.append(self.bias.new_zeros(R, self.columns) if table is None else table.T.contiguous())
        # rest[i]: the most that positions after the first i can still add.
        rest = [torch.zeros_like(top)]
        for table in reversed(tables):
            rest.append(rest[-1] + table[:, : self.width].amax(0))
        rest.reverse()

        def visit(word: tuple[int, ...], live: Tensor, t: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
            """Below the prefix `word`; `t` is its share of the `live` neurons and, behind them, of the stream."""
            depth = len(word)
            # Not "> 0": a NaN must stay alive and spoil the answer, as it does in the dense forward pass.
            alive = (~(top[live] + t[: len(live)] + rest[depth][live] <= 0)).nonzero()[:, 0]
            t = torch.cat([t[alive], t[len(live) :]]) if self.residual else t[alive]
            live = live[alive]
            columns = torch.cat([live, stream]) if self.residual else live
            work = n * max(len(live), self.largest if self.later else 1)
            if depth < hops and work * R ** (hops - depth) > TILE:
                for r in range(R):
                    yield from visit((*word, r), live, t + tables[depth][r, columns])
                return
            total = t.unsqueeze(0)
            for table in tables[depth:]:
                total = (total.unsqueeze(1) + table[:, columns]).flatten(0, 1)
            pre = total.unsqueeze(2) + S[columns]
            state = self.weight_out[live].T @ torch.relu(pre[:, : len(live)]) + self.bias_out[:, None]
            if self.residual:
                state = state + pre[:, len(live) :]
            ends = all_words(R, hops - depth)
            words = torch.cat([torch.tensor(word, dtype=torch.int64).expand(len(ends), -1), ends], 1)
            yield words, self.finish(state.transpose(1, 2).flatten(0, 1))

        stream = torch.arange(self.width, self.columns, device=S.device)
        everything = torch.arange(self.width, device=S.device)
        yield from visit((), everything, self.bias)


class Evaluator:
    """Answers of any model from tokens to logits: by folding where the weights allow it, else by the dense forward pass.

    Parameters
    ----------
    model
        A :class:`~geotheory.transformer.Transformer`, or any module from tokens `[batch, length]` to logits
        `[batch, attributes]`.
    dense
        Never fold: the reference.

    Notes
    -----
    Folding applies to a float32 or float64 `Transformer` without hooks whose first block attends by position only
    (`W_E W_Q = 0` and `W_E W_K = 0`, checked on the weights, or uniform attention) and whose later blocks are MLPs. Weights must
    not change while an evaluator is in use. Both ways give the same answers, and the same margins up to rounding; exactly the
    same where the weights are integers, as in the constructions.
    """

    def __init__(self, model: nn.Module, *, dense: bool = False) -> None:
        self.model = model
        self.folds = not dense and self._attends_by_position()
        self._folded: dict[int, Folded] = {}
        self._readout: Readout | None = None

    @property
    def device(self) -> torch.device:
        """Where the model lies."""
        tensors = [*self.model.parameters(), *self.model.buffers()]
        return tensors[0].device if tensors else torch.device("cpu")

    @torch.no_grad()
    def _attends_by_position(self) -> bool:
        model = self.model
        if type(model) is not Transformer or model.embedding.dtype not in (torch.float32, torch.float64):
            return False
        if not _is_plain(model):
            return False  # an intervention: folding would pass it by
        if not all(map(is_finite, model.parameters())):
            return False  # a NaN times 0 is a NaN, which a sparse product would overlook
        first, *later = model.blocks
        if first.attention is None or any(block.attention is not None for block in later):
            return False
        return all(
            weight is None or not bool((model.embedding @ weight).any())
            for head in first.attention.heads
            for weight in (head.query, head.key)
        )

    @torch.no_grad()
    def _fold(self, length: int) -> tuple[Folded, Readout]:
        assert isinstance(self.model, Transformer)
        if length not in self._folded:
            self._folded[length] = Folded(self.model, length)
        if self._readout is None:
            read = (self.model.unembedding != 0).any(1)
            self._readout = Readout(self.model.unembedding[read], self.model.unembedding_bias.detach())
        return self._folded[length], self._readout

    def __call__(
        self, tokens: Int[Tensor, "queries length"], expected: Int[Tensor, "queries"] | None = None
    ) -> Answers:
        """Answers to token sequences of one length, judged by the attributes `expected` of them, if given."""
        tokens = tokens.to(self.device)
        expected = None if expected is None else expected.to(self.device)
        if not self.folds or not len(tokens):
            return self._dense(tokens, expected)
        folded, readout = self._fold(tokens.shape[1])
        parts, done = [], 0
        for states in folded.states(tokens):
            parts.append(readout(states, None if expected is None else expected[done : done + len(states)]))
            done += len(states)
        return Answers.cat(parts)

    @torch.no_grad()
    def _dense(self, tokens: Tensor, expected: Tensor | None) -> Answers:
        parts = []
        for start in range(0, max(1, len(tokens)), DENSE):
            batch = tokens[start : start + DENSE]
            logits = self.model(batch)
            if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != len(batch) or not logits.shape[1]:
                found = f"shape {list(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
                raise InvalidArgument(
                    f"the model must turn {len(batch)} token sequences into logits [{len(batch)}, attributes], not {found}"
                )
            part = _top_two(logits)
            if expected is not None:
                part = part.judged(expected[start : start + DENSE], lambda q, a, logits=logits: logits[q, a])  # type: ignore[misc]
            parts.append(part)
        return Answers.cat(parts)

    def sweep(
        self, subjects: int, relations: int, hops: int, expected: Callable[[Tensor], Tensor] | None = None
    ) -> Iterator[tuple[Tensor, Tensor, Answers]]:
        """Answers to every query `(x, r_1, ..., r_hops)`; memory does not grow with the number of words.

        Yields `(x [n], words [w, hops], answers [w, n])`: all pairs of a run of subjects and some words. `expected` gives the
        expected attributes `[w, subjects]` of some words.
        """
        everyone = torch.arange(subjects, device=self.device)
        names = subjects + torch.arange(relations, device=self.device)

        def wanted(xs: Tensor, words: Tensor) -> Tensor | None:
            return None if expected is None else expected(words)[:, xs.cpu()].flatten().to(self.device)

        if self.folds:
            folded, readout = self._fold(hops + 1)
            for xs in everyone.split(max(1, TABLE // folded.columns)):
                for words, states in folded.sweep(xs, names, hops):
                    answers = readout(states, wanted(xs, words))
                    yield xs, words, answers.map(lambda c, w=words, x=xs: c.reshape(len(w), len(x)))  # type: ignore[misc]
            return
        for xs in everyone.split(4096):
            for index in range(relations**hops):
                word = torch.tensor([[index // relations ** (hops - 1 - i) % relations for i in range(hops)]])
                tokens = torch.cat([xs[:, None], names[word].expand(len(xs), -1)], 1)
                yield xs, word, self._dense(tokens, wanted(xs, word)).map(lambda c: c.unsqueeze(0))
