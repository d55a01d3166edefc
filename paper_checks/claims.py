"""The claims that are checked: what is said, who says it, why it holds, what would refute it, and the functions that look."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from paper_checks import empirical, theory
from paper_checks.scope import NotRun, Scope

__all__ = ["CLAIMS", "Claim", "Evidence", "Mark", "Verdict"]


class Mark(StrEnum):
    """Where a claim comes from."""

    paper = "paper"
    sharper = "sharper"
    new = "new"


class Verdict(StrEnum):
    """What a check found."""

    holds = "holds"
    fails = "fails"
    not_run = "not run"


@dataclass(frozen=True)
class Evidence:
    """The outcome of a check: the verdict, measured figures, and the counterexample or the reason why it was not run."""

    verdict: Verdict
    figures: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready values."""
        return {"verdict": self.verdict.value, "figures": dict(self.figures), "why": self.why}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Evidence":
        """Inverse of :meth:`to_dict`."""
        return cls(Verdict(fields["verdict"]), fields["figures"], fields["why"])


Found = tuple[Mapping[str, Any], str]


def _as_measured(measured: Any) -> Found:
    """For a check whose measurement judges itself."""
    figures, counterexample = measured
    return figures, counterexample


@dataclass(frozen=True)
class Claim:
    """One claim.

    Attributes
    ----------
    id
        Short and stable; `geotheory check --only ID` runs this one.
    statement
        The claim in one sentence.
    mark
        `paper`: as the paper's summaries claim it; `sharper`: with explicit constants; `new`: not claimed there.
    refuted_by
        What would refute it.
    measure
        Measures at the sizes of a :class:`Scope`. Claims that share this function are measured once.
    judge
        From what was measured: the figures, and a counterexample, empty if there is none.
    proof
        The idea of its proof, or of the experiment, in a few sentences.
    formula
        In LaTeX; empty if there is none.
    command
        What reproduces the heart of it at the command line.
    """

    id: str
    statement: str
    mark: Mark
    refuted_by: str
    measure: Callable[[Scope], Any]
    judge: Callable[[Any], Found] = _as_measured
    proof: str = ""
    formula: str = ""
    command: str = ""

    def evidence(self, measured: Any) -> Evidence:
        """The verdict on what was measured; an exception in it is a failure of this claim alone."""
        try:
            figures, counterexample = self.judge(measured)
        except Exception as error:  # whatever a check does, the others go on
            return crashed(error)
        return Evidence(Verdict.fails if counterexample else Verdict.holds, figures, counterexample)

    def run(self, scope: Scope | None = None) -> Evidence:
        """Measure and judge this claim alone."""
        return check([self], scope or Scope())[0]


def check(claims: Sequence[Claim], scope: Scope) -> list[Evidence]:
    """Measure once, and judge for each of these claims, which share their measurement."""
    try:
        measured = claims[0].measure(scope)
    except NotRun as reason:
        return [Evidence(Verdict.not_run, {}, str(reason)) for _ in claims]
    except Exception as error:  # whatever a check does, the others go on
        return [crashed(error) for _ in claims]
    return [claim.evidence(measured) for claim in claims]


def crashed(error: BaseException) -> Evidence:
    """The evidence of a check that raised."""
    return Evidence(Verdict.fails, {}, f"the check itself failed: {type(error).__name__}: {error}")


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "S1",
        "One layer recalls N x R facts with d = R ceil(log2 N) + ceil(log2 R) and an MLP of width R ceil(log2 N).",
        Mark.sharper,
        "A fact answered wrongly, or weights larger than the formula.",
        theory.single_hop_recalls,
        proof="The subject's row holds the binary code of every attribute, one block a relation. A neuron of block r adds the "
        "relation's gate, 0 on relation r and at most -4 elsewhere: what is open is returned exactly, what is shut is exactly 0.",
        formula=r"d = R\,\lceil\log_2 N\rceil + \lceil\log_2 R\rceil,\qquad W = R\,\lceil\log_2 N\rceil",
        command="geotheory verify single-hop -N 4096 -R 16",
    ),
    Claim(
        "S2",
        "A subject's embedding is a linear superposition of the vectors of its R attributes.",
        Mark.paper,
        "Held-out subjects whose rows a linear fit from their attributes' vectors does not predict.",
        theory.embeddings_superpose,
        proof="By construction: each block is a linear image of one attribute's vector. The check does not look at the blocks: it "
        "fits the maps by least squares and predicts subjects that were held out. A key-value memory must fail it.",
        formula=r"E[x] = b + \sum_{r=1}^{R} A_r\, v\bigl(g_r(x)\bigr)",
    ),
    Claim(
        "S3",
        "The MLP stores no fact: everything but the subjects' embeddings is the same for every world, byte for byte.",
        Mark.paper,
        "A weight outside the subjects' rows that differs between two worlds.",
        theory.decoder_is_generic,
        proof="Gates are built from relation codes, the unembedding from attribute codes; neither mentions a fact.",
    ),
    Claim(
        "M1",
        "k hops without intermediate output: d = R^k ceil(log2 N) and lower terms.",
        Mark.sharper,
        "A query answered wrongly, or weights larger than the formula.",
        theory.direct_recalls,
        proof="The single-hop construction with one block for each word of k relations.",
        formula=r"d = R^k \lceil\log_2 N\rceil + k\,\lceil\log_2 R\rceil + \lceil\log_2 (k+1)\rceil",
        command="geotheory verify direct -N 100 -R 3 -k 3",
    ),
    Claim(
        "M2",
        "k hops without intermediate output and small d: an MLP of width N R, one neuron a fact.",
        Mark.paper,
        "A query answered wrongly, or weights larger than the formula.",
        theory.key_value_recalls,
        proof="A neuron fires when the codes of its subject and its relation both match, and writes the attribute's code; one "
        "layer a hop.",
        formula=r"W = N R,\qquad d = \lceil\log_2 N\rceil + \lceil\log_2 R\rceil \ \ (k = 1)",
        command="geotheory verify key-value -N 64 -R 2 -k 3",
    ),
    Claim(
        "M3",
        "Without intermediate output and with a fixed unembedding, about R^k log2 N bits per subject are needed, or about "
        "N R log2 N bits in the shared weights.",
        Mark.sharper,
        "A world whose answer tables are fewer than the bound says, or a construction below it.",
        theory.lower_bound_holds,
        proof="M subjects with P + M D bits in their rows and the shared weights give at most 2^(P + M D) answer tables. Fix the "
        "inner edges of M disjoint trees; the edges out of their leaves are free, and every choice gives another table.",
        formula=r"P + M D \;\ge\; R \log_2 (N-u)_{\ell},\qquad \ell = M R^{k-1},\quad u = M\,(1 + R + \dots + R^{k-2})",
        command="geotheory bound fixed-unembedding -N 4096 -R 16 -k 2 --curve",
    ),
    Claim(
        "M4",
        "With chain of thought d = O(R log N + log k) and width O(R log N) are enough, for any k.",
        Mark.sharper,
        "A query answered wrongly, or a width that grows with k.",
        theory.chain_of_thought_recalls,
        proof="Each emitted entity is embedded again, with all its blocks; heads fetch the newest entity and the next relation by "
        "position codes of length about log2 2k.",
        formula=r"d = R\,\lceil\log_2 N\rceil + \lceil\log_2 R\rceil + 3\,\lceil\log_2 2k\rceil",
        command="geotheory verify chain-of-thought -N 32 -R 2 -k 8",
    ),
    Claim(
        "M5",
        "Hops per step lead from chain of thought to direct: d is about R^j log2 N in ceil(k/j) steps.",
        Mark.new,
        "A query answered wrongly, or a dimension out of order.",
        theory.hops_per_step_trade_off,
        proof="Blocks for words of j relations, and every j-th entity emitted; blank tokens fill the last step.",
        formula=r"d \approx R^{\,j} \log_2 N \quad\text{in}\quad \lceil k/j \rceil \ \text{steps}",
        command="geotheory verify chain-of-thought -N 40 -R 2 -k 4 --hops-per-step 2",
    ),
    Claim(
        "M6",
        "If the unembedding may depend on the facts, d of about R^(k/2) log2 N is enough: meet in the middle.",
        Mark.new,
        "A query answered wrongly, or weights larger than the formula, or a point of it below the bound.",
        theory.meet_in_middle_recalls,
        proof="The subject's row holds the entities f hops ahead, the attribute's column those k - f hops behind; the logit is the "
        "match of the two codes of the entity in the middle.",
        formula=r"D_{in} = R^{f} m,\qquad D_{out} = R^{k-f} m,\qquad d \approx R^{\lceil k/2\rceil} \log_2 N",
        command="geotheory verify meet-in-middle -N 100 -R 3 -k 3 --forward 2",
    ),
    Claim(
        "L1",
        "Trained embeddings learn the facts from a dimension on that grows as R log N.",
        Mark.paper,
        "A power law with an exponent of N above 0.35, or an exponent of R outside 0.4 to 1.6.",
        empirical.measure_thresholds,
        empirical.trained_threshold,
        proof="An experiment: bisection over d, several seeds, AdamW with a fixed budget of steps; the least d at which the median "
        "seed has 99% of the facts right is fitted by c R log2 N and by a power law.",
        formula=r"d^{*} \approx c\,R \log_2 N",
        command="geotheory threshold -N 16 -N 64 -N 256 -R 2 -R 4 --steps 800 --seeds 2 --out runs.jsonl",
    ),
    Claim(
        "L2",
        "With the subjects' embeddings frozen at random, the least dimension grows as a power of N, faster than trained.",
        Mark.paper,
        "An exponent of N no larger than that of trained embeddings.",
        empirical.measure_thresholds,
        empirical.frozen_threshold,
        proof="The same experiment with the rows of W_E fixed at their initial values. (Summaries print N^R for this threshold: "
        "read literally that is excluded by every row measured; the exponent reported here is what was found.)",
        formula=r"d^{*}_{\text{frozen}} \approx a\,N^{\alpha} R^{\beta}",
        command="geotheory threshold -N 16 -N 64 -N 256 -R 2 -R 4 --steps 800 --seeds 2 --frozen subjects --out runs.jsonl",
    ),
    Claim(
        "L3",
        "Trained embeddings are close to linear superpositions of attribute vectors.",
        Mark.paper,
        "A held-out R^2 no better than with shuffled facts or frozen embeddings.",
        empirical.measure_study,
        empirical.readouts,
        proof="An experiment: ridge regression of the trained rows on the vectors of their attributes (columns of W_U), judged on "
        "held-out subjects, beside the same fit with facts shuffled and with frozen rows.",
        formula=r"E[x] \approx b + \sum_r A_r\, v\bigl(g_r(x)\bigr)",
        command="geotheory learn -N 128 -R 2 -d 48 --subject-scale 0.01 --unembedding-scale 4 --steps 1000 --go-on --study",
    ),
    Claim(
        "L4",
        "The trained MLP is a relation-conditioned selector: cutting into one relation changes that relation's answers only.",
        Mark.paper,
        "Interventions that work no better than their controls.",
        empirical.measure_study,
        empirical.interventions,
        proof="An experiment: the relation's contribution, or the gates alone, are swapped for another relation's; one component "
        "of an embedding is replaced; the neurons of one relation are shut.",
        command="geotheory learn -N 128 -R 2 -d 48 --subject-scale 0.01 --unembedding-scale 4 --steps 1000 --go-on --study",
    ),
    Claim(
        "L5",
        "The trained decoder, frozen, answers facts that it has never seen once the subjects' rows are set by the linear fit.",
        Mark.paper,
        "A zero-shot accuracy near chance, or no better than with frozen embeddings.",
        empirical.measure_study,
        empirical.freeze_and_swap,
        proof="An experiment: new random bijections, rows set by the fitted maps without a gradient step, every fact asked. (A "
        "finding: with frozen rows and a trained unembedding, attribute vectors come to superpose the rows of their subjects; such "
        "a decoder transfers in part too.)",
        formula=r"E_{\text{new}}[x] = b + \sum_r A_r\, v\bigl(h_r(x)\bigr)",
        command="geotheory learn -N 128 -R 2 -d 48 --subject-scale 0.01 --unembedding-scale 4 --steps 1000 --go-on --study",
    ),
    Claim(
        "L6",
        "Gradient descent finds the structure of the construction: behind each relation's gates lies a linear map that reads this "
        "relation's component of the row more than the others, which training strengthens.",
        Mark.paper,
        "Fewer than 90% of the attributes selected, or other components read as much as by an untrained decoder.",
        empirical.measure_study,
        empirical.same_structure,
        proof="An experiment: the decoder's mean derivative under a relation, applied to the components of the linear fit. In the "
        "construction it selects every attribute and leaks nothing; an untrained decoder is the control.",
        formula=r"\mathrm{argmax}_c\, \langle v(a) A_r J_r,\, v(c) \rangle = a,\qquad "
        r"\lVert v(a) A_q J_r \rVert \ll \lVert v(a) A_r J_r \rVert \ \ (q \neq r)",
        command="geotheory learn -N 128 -R 2 -d 48 --subject-scale 0.01 --unembedding-scale 4 --steps 1000 --go-on --study",
    ),
    Claim(
        "P1",
        "Pretrained language models encode relations of subjects linearly in their hidden states.",
        Mark.paper,
        "Fewer than two relations read above every control, or states explained by attributes no better than by shuffled ones.",
        empirical.pretrained_models,
        proof="An experiment: ridge regression from the state at the subject's last token to the attribute's embedding, by "
        "cross-validation over subjects; controls are shuffled attributes, the most frequent attribute, and the same network with "
        "random weights. Which relations are read, and which are not, is in the figures.",
        command="geotheory probe minilm --relations countries",
    ),
    Claim(
        "X1",
        "An associative memory over fixed random embeddings needs d that grows as a power of N, not as log N.",
        Mark.paper,
        "It recalls 99% at the dimension of the single-hop construction.",
        theory.associative_memory_is_larger,
        proof="An experiment: random embeddings, the sum of outer products of pairs (Hebb), every fact asked, for growing d.",
        command="geotheory verify associative -N 256 -R 2 -d 256",
    ),
)
