"""The reference: signature, docstring and an example: `/// api | GROUP`."""

from __future__ import annotations

import ast
import re
import textwrap
import xml.etree.ElementTree as etree
from functools import cache

from docs.machinery.directives import Kind
from docs.machinery.docstrings import docstring, draw_docstring
from docs.machinery.literate import dotted
from docs.machinery.reference import (
    Entry,
    Name,
    definitions,
    entries,
    names,
    set_late,
)
from docs.machinery.scene import Block, Scene, after, element
from docs.machinery.source import ROOT, Place, find, page_of

EXAMPLES = ROOT / "docs" / "examples" / "api.py"
"""A program in which `# fx.Graph.lint` stands above the lines that use it."""

REST = "rest"
"""The group of all names that no other group has."""

GROUPS = {
    "trace": (
        *("fx.symbolic_trace", "fx.Tracer", "fx.wrap", "fx.PH"),
        *("fx.trace", "fx.GuardError", "fx.set_outputs"),
        *("fx._symbolic_trace.PHBase", "fx._symbolic_trace.PHWithMeta"),
        *("fx.TraceError", "fx.experimental.proxy_tensor.make_fx"),
        *("fx.Proxy", "fx.proxy.Attribute", "fx.proxy.ParameterProxy"),
        *("fx.proxy.TracerBase", "fx.proxy.GraphAppendingTracer"),
        *("fx.proxy.Scope", "fx.proxy.ScopeContextManager"),
        *("fx.proxy.assert_fn", "fx.ProxyableClassMeta"),
        "fx._symbolic_trace.is_fx_tracing",
        "fx._symbolic_trace.is_fx_symbolic_tracing",
    ),
    "graph": (
        *("fx.Graph", "fx.Node", "fx.map_arg", "fx.node.map_aggregate"),
        *("fx.lint", "fx.use_def.lint.problems", "fx.use_def.lint.Problem"),
        *("fx.effects", "fx.extra.effects.effects.classify"),
        *(
            "fx.extra.effects.effects.Effect",
            "fx.extra.effects.effects.is_impure",
        ),
        *(
            "fx.extra.effects.effects.must_keep",
            "fx.extra.effects.effects.by_rule",
        ),
        *("fx.use_def.dead_code.RULE", "fx.has_side_effect"),
        "fx.immutable_collections.immutable_list",
        "fx.immutable_collections.immutable_dict",
    ),
    "module": (
        *("fx.GraphModule", "fx.save", "fx.load", "fx.LoadError"),
        *("fx.to_torch", "fx.from_torch", "fx.CodeGen"),
        *("fx.graph.PythonCode", "fx.graph.TransformCodeFunc"),
    ),
    "run": (
        *("fx.Interpreter", "fx.Transformer"),
        "fx.passes.shape_prop.ShapeProp",
        "fx.passes.shape_prop.TensorMetadata",
        "fx.passes.fake_tensor_prop.FakeTensorProp",
        *("fx.passes.profiling.Profiler", "fx.passes.profiling.Record"),
        *("fx.traceback.preserve_node_meta", "fx.traceback.annotate"),
        *("fx.traceback.set_current_meta", "fx.traceback.get_current_meta"),
        "fx.traceback.has_preserved_node_meta",
        *("fx.traceback.set_stack_trace", "fx.traceback.format_stack"),
    ),
    "rewrite": (
        "fx.replace_pattern",
        "fx.subgraph_rewriter.replace_pattern_with_filters",
        *("fx.extra.matching.explain.explain", "fx.rewriting_rules"),
        "fx.rewriting.rules.rewrite_until_stable",
        *("fx.rewrite", "fx.Rewriter"),
        *("fx.rewriting.rules.Rule", "fx.rewriting.rules.DoesNotEndError"),
        "fx.subgraph_rewriter.RewriteOptions",
        "fx.passes.utils.matcher_utils.MatchOptions",
        *(
            "fx.subgraph_rewriter.Match",
            "fx.subgraph_rewriter.ReplacedPatterns",
        ),
        "fx.passes.utils.matcher_utils.SubgraphMatcher",
        "fx.passes.utils.matcher_utils.InternalMatch",
        "fx.passes.utils.matcher_utils.Mismatch",
        *("fx.passes.reinplace.reinplace", "fx.passes.reinplace.Verdict"),
        "fx.passes.reinplace.reinplace_report",
        "fx.passes.reinplace.ReinplaceReport",
    ),
    "passes": (
        *("fx.show", "fx.show.document.Page"),
        *("fx.diff", "fx.passes.graph_diff.Difference"),
        "fx.passes.graph_diff.Change",
        "fx.passes.structure.structure_hash",
        "fx.passes.narrow_down.narrow_down",
        "fx.passes.narrow_down.each_alone",
        "fx.passes.canonicalize.canonicalize_graph",
        "fx.passes.conv_bn_fusion.fold_conv_bn",
        "fx.experimental.optimization.fuse",
        "fx.experimental.optimization.remove_dropout",
        "fx.experimental.const_fold.split_const_subgraphs",
        "fx.passes.dialect.common.cse_pass.CSEPass",
        "fx.experimental.normalize.NormalizeArgs",
        "fx.experimental.normalize.NormalizeOperators",
        "fx.experimental.merge_matmul.merge_matmul",
        "fx.passes.utils.source_matcher_utils.get_source_partitions",
        "fx.passes.infra.pass_manager.PassManager",
        "fx.passes.split_module.split_module",
        "fx.passes.split_utils.split_by_tags",
        "fx.passes.infra.partitioner.CapabilityBasedPartitioner",
        "fx.passes.pipeline.cut_in_stages",
        "fx.passes.pipeline.pipeline_stage",
        "fx.passes.graph_drawer.FxGraphDrawer",
    ),
}
"""Group -> its names, those that one wants first at the top."""


def group(title: str) -> list[Entry]:
    """The entries of a group, in order.

    Raises:
        UnknownName: the group has a name that fx has not.
    """
    known = names()
    public = {name.anchor for name in known}
    named = [one for some in GROUPS.values() for one in some]
    known += [_extra(one) for one in named if one not in public]
    every = entries(known)
    if title != REST:
        return [every[one] for one in GROUPS[title]]
    taken = [every[one] for one in named]
    rest = [entry for entry in every.values() if entry not in taken]
    once = {entry.name.anchor: entry for entry in rest}
    return [once[anchor] for anchor in sorted(once)]


def _extra(anchor: str) -> Name:
    """A name that no table lists, but that is worth an entry."""
    place = find(anchor)
    module = place.module.name
    return Name(module, anchor.removeprefix(f"{module}."), place)


@cache
def examples() -> dict[str, str]:
    """Name -> the lines below its comment, up to an empty one."""
    text = EXAMPLES.read_text(encoding="utf-8")
    found = re.findall(
        r"^ +# (fx\.[\w.]+)\n((?:.*\S.*\n)+)", text, re.MULTILINE
    )
    return {name: textwrap.dedent(lines).rstrip() for name, lines in found}


# --- drawing ----------------------------------------------------------------


def _api(scene: Scene) -> etree.Element:
    """A group: a heading for each definition, and for its members."""
    wanted = scene.directive.argument
    if wanted not in (*GROUPS, REST):
        known = ", ".join((*GROUPS, REST))
        raise scene.error(f"no group {wanted!r}: there are {known}")
    for entry in group(wanted):
        _entry(scene, entry, "h2")
        for member in entry.members:
            _entry(scene, member, "h3")
    return element(scene.parent, "div")


def _entry(scene: Scene, entry: Entry, level: str) -> None:
    """One definition."""
    name, parent = entry.name, scene.parent
    heading = element(parent, level, id=name.anchor, css="fx-name")
    element(heading, "code", name.key)
    box = element(parent, "div", css="fx-api")
    for other in entry.names[1:]:
        element(box, "span", id=other.anchor)
    if name.place is None:
        element(box, "p", _said(scene, name), css="fx-where")
    else:
        _defined(scene, box, entry, name.place)
    for remark in dict.fromkeys(n.remark for n in entry.names if n.remark):
        said_so = element(box, "p")
        after(element(said_so, "em", "Unlike torch.fx: "), remark)


def _said(scene: Scene, name: Name) -> str:
    """What stands in the place of a definition that fx does not have."""
    owner, _, last = name.key.rpartition(".")
    if last == "__init__":
        return "Takes the fields; see the class."
    if owner:
        return "An attribute; see the class."
    home = set_late().get(name.anchor, "")
    if not home.startswith("torch."):
        raise scene.error(f"nothing says where {name.anchor} is defined")
    return f"The same object as {home}."


def _defined(
    scene: Scene, box: etree.Element, entry: Entry, place: Place
) -> None:
    """Signature, place, docstring and example."""
    nodes = definitions(place)
    doc = docstring(nodes)
    text = "\n".join(filter(None, map(_signature, nodes)))
    if text:
        element(box, "code", text, css="fx-sig")
    where = element(box, "p", css="fx-where")
    up = "../" * scene.directive.page.count("/")
    page = page_of(place.module.path)
    if page:
        target = f"{up}{page}#{dotted(place.module, place.unit)}"
        last = element(where, "a", place.module.path, href=target)
    else:
        last = element(where, "span", place.module.path)
    if "." not in entry.name.key:
        ways = sorted({n.module for n in entry.names}, key=len)
        after(last, " · import it from " + " or ".join(ways))
    draw_docstring(element(box, "div", css="fx-doc"), doc)
    for name in entry.names:
        if shown := examples().get(name.anchor):
            scene.code(box, shown)


def _signature(node: ast.stmt) -> str:
    """What comes before the body."""
    match node:
        case ast.FunctionDef() | ast.ClassDef():
            node.body = [ast.Expr(ast.Constant(...))]  # not the docstring
            return ast.unparse(node).rpartition(":\n")[0]
        case ast.AnnAssign() | ast.Assign():
            text = ast.unparse(node)
            return text if len(text) < 200 else f"{text[:200]} …"
    return ""


BLOCKS = {"api": Block(Kind(True, {}, "none"), _api)}
