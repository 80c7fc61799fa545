"""Lambda terms against an implementation without names; the printed α-conversion that captures a variable."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles import de_bruijn
from trelliswork.errors import TermError
from trelliswork.terms import (
    Abstraction,
    Application,
    Arrow,
    Base,
    Constant,
    Term,
    Type,
    Variable,
    alpha_equivalent,
    beta_step,
    canonical,
    format_brackets,
    free_variables,
    infer_type,
    normal_form,
    parse,
    parse_brackets,
    parse_type,
    rename_variable,
    substitute,
    subterms,
)
from trelliswork.terms.brackets import close_brackets, parse_nested

NAMES = st.sampled_from("xyz")
LEAVES = NAMES.map(Variable) | st.sampled_from("fg").map(Constant)
TERMS: st.SearchStrategy[Term] = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(Abstraction, NAMES, inner)
        | st.builds(Application, inner, st.lists(inner, min_size=1, max_size=2).map(tuple))
    ),
    max_leaves=12,
)
FEW = settings(max_examples=300, deadline=None)


@FEW
@given(TERMS, TERMS)
def test_alpha_equivalence_is_equality_without_names(one: Term, other: Term) -> None:
    assert alpha_equivalent(one, other) == (de_bruijn.nameless(one) == de_bruijn.nameless(other))
    assert alpha_equivalent(one, one)


@FEW
@given(TERMS, NAMES, TERMS)
def test_substitution_captures_nothing(term: Term, name: str, value: Term) -> None:
    expected = de_bruijn.put_free(de_bruijn.nameless(term), name, de_bruijn.nameless(value))
    assert de_bruijn.nameless(substitute(term, name, value)) == expected


@FEW
@given(TERMS)
def test_a_step_of_beta_reduction_is_that_without_names(term: Term) -> None:
    expected = de_bruijn.reduced(de_bruijn.nameless(term))
    reduced = beta_step(term)
    assert (reduced is None) == (expected is None)
    if reduced is not None:
        assert de_bruijn.nameless(reduced) == expected


@FEW
@given(TERMS)
def test_what_is_written_is_read_back(term: Term) -> None:
    plain = parse(str(term))  # constants are read as free variables
    assert str(plain) == str(term)
    assert free_variables(plain) >= free_variables(term)


def test_the_printed_renaming_captures_a_free_variable() -> None:
    """Erratum 41. λx.(x y) -> λy.(y y): the y that was free is bound, and the term means something else."""
    term, printed = parse("λx.(x y)"), parse("λy.(y y)")
    assert isinstance(term, Abstraction)
    assert not alpha_equivalent(term, printed)
    assert (free_variables(term), free_variables(printed)) == ({"y"}, frozenset())
    applied = [normal_form(Application(each, (Variable("z"),))) for each in (term, printed)]
    assert list(map(str, applied)) == ["z y", "z z"]
    with pytest.raises(TermError, match="'y', which would be captured"):
        rename_variable(term, "y")
    assert alpha_equivalent(term, rename_variable(term, "z"))


def test_reduction_in_normal_order_finds_a_normal_form_where_there_is_one() -> None:
    forever = "((λx.(x x)) (λx.(x x)))"
    assert str(normal_form(parse(f"(λx.y) {forever}"))) == "y"
    with pytest.raises(TermError, match="within 50 steps"):
        normal_form(parse(forever), steps=50)
    assert str(normal_form(parse("(λx.λy.(x y)) y"))) == "λy'.(y y')"
    assert str(normal_form(parse("(λx.x) a"), steps=1)) == "a"
    with pytest.raises(TermError, match="within 0 steps"):
        normal_form(parse("(λx.x) a"), steps=0)
    growing = parse("(λx.(f (x x))) (λx.(f (x x)))")  # gets deeper with each step
    with pytest.raises(TermError, match="at most 200 levels"):
        normal_form(growing)


def test_church_numerals_add_and_multiply() -> None:
    def numeral(n: int) -> str:
        return f"(λf.λx.{'(f ' * n}x{')' * n})"

    plus = "(λm.λn.λf.λx.(m f (n f x)))"
    times = "(λm.λn.λf.(m (n f)))"
    for m, n in [(0, 0), (1, 2), (3, 4)]:
        total, product = parse(f"{plus} {numeral(m)} {numeral(n)}"), parse(f"{times} {numeral(m)} {numeral(n)}")
        assert alpha_equivalent(normal_form(total), parse(numeral(m + n)))
        assert alpha_equivalent(normal_form(product), parse(numeral(m * n)))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected a term; got the end"),
        ("λx.(x", r"expected '\)'; got the end"),
        ("λ.x", "expected a variable after λ; got '.' at character 1"),
        ("λx x", "expected '.'; got the end"),
        ("x)", r"expected the end; got '\)' at character 1"),
        ("f:e x", "expected a type only after the variable of a λ, not 'e'"),
        (":", "at character 0"),
        ("(" * 300 + "x" + ")" * 300, "at most 200 levels"),
    ],
)
def test_what_is_no_term_is_said(text: str, problem: str) -> None:
    with pytest.raises(TermError, match=problem):
        parse(text)


# --- brackets -------------------------------------------------------------------------------------------------

FLIGHT = "( lambda $0 e ( and ( flight $0 ) ( exists $1 ( = ( fare $0 ) $1 ) ) ( to $0 denver : ci ) ) )"


def test_brackets_are_read_and_written() -> None:
    term = parse_brackets(FLIGHT)
    assert format_brackets(term) == FLIGHT
    assert parse_brackets(format_brackets(term, apart=False)) == term
    assert not free_variables(term)
    assert sum(isinstance(each, Abstraction) for each in subterms(term)) == 2
    assert format_brackets(parse_brackets("dfw : ap")) == "dfw : ap"
    assert format_brackets(parse_brackets("( airport )")) == "( airport )"
    two = "( argmin $v5 ( flight $v5 ) ( fare $v5 ) )"
    assert format_brackets(parse_brackets(two)) == two


def test_abstractions_with_different_names_are_written_with_one() -> None:
    bodies = (parse("λx.x"), parse("λy.(y x)"))
    assert format_brackets(Application(Constant("argmax"), bodies)) == "( argmax x' x' ( x' x ) )"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("( flight $0", "got 1 open at the end"),
        ("flight )", "one '\\)' too many"),
        ("( )", r"expected a term .* got \( \)"),
        ("a b", "expected one term; got 2"),
        ("", "expected one term; got 0"),
        ("( lambda $0 ( flight $0 ) )", "got 2 elements after lambda, not 3"),
        ("( " * 300 + "x" + " )" * 300, "at most 200 levels"),
    ],
)
def test_broken_brackets_are_said(text: str, problem: str) -> None:
    with pytest.raises(TermError, match=problem):
        parse_brackets(text)


def test_missing_brackets_can_be_closed() -> None:
    assert parse_nested(" ".join(close_brackets(["(", "a", "(", "b"]))) == ["a", ["b"]]
    assert close_brackets(["a", ")"]) == ["a", ")"]  # too many are not repaired


def test_one_form_for_every_name_and_order() -> None:
    same = [
        "( lambda x e ( and ( to x denver : ci ) ( exists y ( and ( fare x y ) ( p y ) ) ) ( flight x ) ) )",
        "( lambda $0 e ( and ( flight $0 ) ( to $0 denver : ci ) ( exists $9 ( and ( p $9 ) ( fare $0 $9 ) ) ) ) )",
        "( lambda y e ( and ( exists x ( and ( fare y x ) ( p x ) ) ) ( flight y ) ( to y denver : ci ) ) )",
    ]
    assert len({format_brackets(canonical(parse_brackets(text))) for text in same}) == 1
    other = same[0].replace("( p y )", "( p x )")
    assert format_brackets(canonical(parse_brackets(other))) != format_brackets(canonical(parse_brackets(same[0])))
    ordered = "( > ( fare a : fl ) ( fare b : fl ) )"
    assert format_brackets(canonical(parse_brackets(ordered))) == ordered


@FEW
@given(TERMS, TERMS)
def test_without_conjunctions_canonical_forms_are_equal_where_terms_are_equivalent(one: Term, other: Term) -> None:
    assert alpha_equivalent(one, canonical(one))
    assert (canonical(one) == canonical(other)) == alpha_equivalent(one, other)


@FEW
@given(st.permutations([parse_brackets(text) for text in ("( f x )", "( f $0 )", "( exists $1 ( g $1 $0 ) )", "y")]))
def test_order_below_an_abstraction_does_not_matter(parts: list[Term]) -> None:
    term = Abstraction("$0", Application(Constant("and"), tuple(parts)), "e")
    expected = "( lambda $0 e ( and ( exists $1 ( g $1 $0 ) ) ( f $0 ) ( f x ) y ) )"
    assert format_brackets(canonical(term)) == expected


# --- types ----------------------------------------------------------------------------------------------------


def test_types_are_inferred_and_checked() -> None:
    known = {"flight": parse_type("<e,t>"), "fare": parse_type("<e,i>"), "exists": parse_type("<<e,t>,t>")}
    assert str(infer_type(parse_brackets("( lambda $0 e ( and ( flight $0 ) ( p $0 ) ) )"), known)) == "<e,t>"
    assert str(infer_type(parse("λf.λg.λx.(f (g x))"))) == "<<?0,?1>,<<?2,?0>,<?2,?1>>>"
    assert str(infer_type(parse_brackets("( fare ( f x ) )"), known)) == "i"
    with pytest.raises(TermError, match="got i and t"):
        infer_type(parse_brackets("( lambda $0 e ( and ( fare $0 ) ( flight $0 ) ) )"), known)
    with pytest.raises(TermError, match="got e and t"):
        infer_type(parse_brackets("( lambda $0 t ( flight $0 ) )"), known)


def test_what_does_not_end_has_no_type() -> None:
    with pytest.raises(TermError, match="its own argument"):
        infer_type(parse("λx.(x x)"))


@FEW
@given(TERMS)
def test_a_typed_term_has_a_normal_form_of_the_same_type(term: Term) -> None:
    """Simply typed terms end, and reduction keeps types: the type of the result is at least as general."""
    try:
        kind = infer_type(term)
    except TermError:
        return
    assert is_instance(kind, infer_type(normal_form(term)), {})


def is_instance(kind: Type, general: Type, values: dict[str, Type]) -> bool:
    """Return True if a type is an instance of another one, with values for its unknown types."""
    if isinstance(general, Base) and general.name.startswith("?"):
        return values.setdefault(general.name, kind) == kind
    if isinstance(kind, Arrow) and isinstance(general, Arrow):
        return is_instance(kind.argument, general.argument, values) and is_instance(kind.result, general.result, values)
    return kind == general


@pytest.mark.parametrize("text", ["", "<e>", "<e,t", "<e,t>>", ",", "e t", "<,t>"])
def test_what_is_no_type_is_said(text: str) -> None:
    with pytest.raises(TermError, match="expected"):
        parse_type(text)
    assert str(parse_type("<<e,t>,e,t>")) == "<<e,t>,<e,t>>"


def test_an_application_needs_an_argument() -> None:
    with pytest.raises(TermError, match="at least one argument"):
        Application(Constant("f"), ())
