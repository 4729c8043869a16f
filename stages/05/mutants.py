"""Stage 05: what people get wrong in code generation."""

from __future__ import annotations

from typing import Final

from stages.mutant import Mutant

MUTANTS: Final = (
    # -- call_module ---------------------------------------------------------
    Mutant(
        function="emit.Emitter.call_module",
        misconception="A dot can stand in front of every atom of a path.",
        was="self._attribute(self._root, _path_of(node))",
        becomes='f"{self._root}.{_path_of(node)}"',
        told="where a dot cannot be",
    ),
    Mutant(
        function="emit.Emitter.call_module",
        misconception="The code calls the module `self`, always.",
        was="self._root",
        becomes='"self"',
        told="The target is a path from the root module",
    ),
    Mutant(
        function="emit.Emitter.call_module",
        misconception="A statement is `name = value`, nothing else.",
        was='self._assign(node, f"{module}({arguments})")',
        becomes='f"{self.variables[node]} = {module}({arguments})"',
        told="the assignment does not say it",
    ),
    Mutant(
        function="emit.Emitter.call_module",
        misconception="The variable of a node is its name.",
        was='self._assign(node, f"{module}({arguments})")',
        becomes='f"{node.name}{self._annotation(node)} = '
        '{module}({arguments})"',
        told="`self.variables[node]`, not `node.name`",
    ),
    # -- call_method ---------------------------------------------------------
    Mutant(
        function="emit.Emitter.call_method",
        misconception="All of node.args are arguments of the method.",
        was="args[1:]",
        becomes="args",
        told="stands in front of the dot",
    ),
    Mutant(
        function="emit.Emitter.call_method",
        misconception="What stands before the dot is written as anywhere.",
        was="self._primary(args[0])",
        becomes="self._text(args[0])",
        told="The object may be a constant",
    ),
    Mutant(
        function="emit.Emitter.call_method",
        misconception="There is always an object.",
        was="if not args:",
        becomes="if args is None:",
        told="has no object to call a method of",
    ),
    # -- call_function -------------------------------------------------------
    Mutant(
        function="emit.Emitter.call_function",
        misconception="An operator can always be written as syntax.",
        was="_has_syntax(spelling, node)",
        becomes="node.args",
        told="`_has_syntax` says no",
    ),
    Mutant(
        function="emit.Emitter.call_function",
        misconception="Functions are called by their names, operators too.",
        was="_has_syntax(spelling, node)",
        becomes="not node.args",
        told="so the line has its syntax",
    ),
    Mutant(
        function="emit.Emitter.call_function",
        misconception="Every call of getattr is an attribute access.",
        was="target is getattr and _is_attribute_access(node)",
        becomes="target is getattr",
        told="would lose the default",
    ),
    Mutant(
        function="emit.Emitter.call_function",
        misconception="Every function whose name is an identifier is a leaf.",
        was='node.meta.get("is_wrapped") and spelling.isidentifier()',
        becomes="spelling.isidentifier()",
        told="Only nodes with meta['is_wrapped']",
    ),
    Mutant(
        function="emit.Emitter.call_function",
        misconception="A statement is the text alone; nothing is to be noted.",
        was='if node.meta.get("is_wrapped") and spelling.isidentifier():',
        becomes="if not spelling:",
        told="code traced again would look into len",
    ),
    Mutant(
        function="emit.Emitter.call_function",
        misconception="A leaf can be noted under whatever it is called by.",
        was=" and spelling.isidentifier()",
        becomes="",
        told="only identifiers are noted",
    ),
    # -- placeholder ---------------------------------------------------------
    Mutant(
        function="emit.Emitter.placeholder",
        misconception="A default that is false is no default.",
        was="if node.args else",
        becomes="if node.args and node.args[0] else",
        told="if node.args is not empty",
    ),
    Mutant(
        function="emit.Emitter.placeholder",
        misconception="The parameter is called like the node's variable.",
        was="target = _path_of(node)",
        becomes="target = self.variables[node]",
        told="The parameter is called as the target says",
    ),
    Mutant(
        function="emit.Emitter.placeholder",
        misconception="The target is the name of the parameter, stars and all.",
        was="parameter = self.variables.parameters[node]",
        becomes="parameter = target",
        told="stars are no part of a name",
    ),
    Mutant(
        function="emit.Emitter.placeholder",
        misconception="A placeholder is a parameter and never a line.",
        was='return "" if variable == parameter else '
        'f"{variable} = {parameter}\\n"',
        becomes='return "" if variable or parameter else ""',
        told="a line has to bind it",
    ),
    # -- _end ----------------------------------------------------------------
    Mutant(
        function="emit.Emitter._end",
        misconception="A value may be freed by whoever reads it.",
        was="dead = self._dead.get(node)",
        becomes="dead = list(node._inputs)",
        told="not after its first",
    ),
    Mutant(
        function="emit.Emitter._end",
        misconception="The return statement frees what it returns.",
        was='if node.op == "output":',
        becomes='if node.op == "nothing":',
        told="Nothing runs behind the return statement",
    ),
    Mutant(
        function="emit.Emitter._end",
        misconception="Every value has a reader that frees it.",
        was="if not node.users:",
        becomes="if node.users is None:",
        told="no later line can free it",
    ),
    Mutant(
        function="emit.Emitter._end",
        misconception="What nobody reads frees itself, and nothing else.",
        was="[*dead, node] if dead else [node]",
        becomes="[node]",
        told="its line frees both",
    ),
    Mutant(
        function="emit.Emitter._end",
        misconception="The variable of a node is its name.",
        was="map(self.variables.__getitem__, dead)",
        becomes="[node.name for node in dead]",
        told="what is freed is `self.variables[node]`",
    ),
    # -- bind ----------------------------------------------------------------
    Mutant(
        function="global_names.GlobalNames.bind",
        misconception="Each time a name is asked for, it is a new one.",
        was="if known is not None:",
        becomes="if known is not None and not known:",
        told="it keeps the name it has",
    ),
    Mutant(
        function="global_names.GlobalNames.bind",
        misconception="The hint is the name.",
        was="self._free_name(hint)",
        becomes="hint",
        told="Two objects asked for the name",
    ),
    Mutant(
        function="global_names.GlobalNames.bind",
        misconception="Any object can be looked up in a dict.",
        was="key = _key(obj)",
        becomes="key = hash(obj), id(obj)",
        told="`_key(obj)` is what to look up",
    ),
    Mutant(
        function="global_names.GlobalNames.bind",
        misconception="Objects are told apart by id alone.",
        was="key = _key(obj)",
        becomes="key = id(obj)",
        told="share one global",
    ),
    Mutant(
        function="global_names.GlobalNames.bind",
        misconception="A name is enough; the object comes from somewhere.",
        was="self.values[name] = obj",
        becomes="self.values.setdefault(hint, None)",
        told="running the code would be a NameError",
    ),
    # -- _gen_python_code ----------------------------------------------------
    Mutant(
        function="codegen.CodeGen._gen_python_code",
        misconception="The def line can be written with what is there first.",
        was="            emitter.parameters,\n            emitter.returns,",
        becomes='            [],\n            "",',
        told="those are known when the emitter has run",
    ),
    Mutant(
        function="codegen.CodeGen._gen_python_code",
        misconception="A function may have no statement.",
        was='emitter.write_line("pass\\n", len(nodes) - 1 if nodes else None)',
        becomes='emitter.write_line("\\n", 0)',
        told="It needs the line `pass`",
    ),
    Mutant(
        function="codegen.CodeGen._gen_python_code",
        misconception="Every text begins on the same line.",
        was='wraps.count("\\n") + 4',
        becomes="4",
        told="_prologue_start counts them",
    ),
    Mutant(
        function="codegen.CodeGen._gen_python_code",
        misconception="The def line is one line.",
        was='definition.count("\\n") + 1',
        becomes="1",
        told="count the lines of the definition",
    ),
    Mutant(
        function="codegen.CodeGen._gen_python_code",
        misconception="The body begins where the def line is.",
        was='definition.count("\\n") + 1',
        becomes='definition.count("\\n")',
        told="The def line is line 0 of the function",
    ),
    Mutant(
        function="codegen.CodeGen._gen_python_code",
        misconception="Globals need not be checked against variables.",
        was="emitter.globals.claim(name, value)",
        becomes="emitter.globals.values[name] = value",
        told="`claim` refuses what would be hidden",
    ),
    Mutant(
        function="codegen.CodeGen._gen_python_code",
        misconception="Nobody else needs to know how things are spelled.",
        was="self._spelled = emitter.globals.spelled",
        becomes="assert self._spelled",
        told="make it `emitter.globals.spelled`",
    ),
    Mutant(
        function="codegen.CodeGen._gen_python_code",
        misconception="Python will refuse a wrong def line anyway.",
        was="self._check(nodes)",
        becomes="assert nodes is not None",
        told="`_check` says so before anything is written",
    ),
    Mutant(
        function="codegen.CodeGen._gen_python_code",
        misconception="The body is what the emitter has written, joined.",
        was="body, origins = self._body(emitter)",
        becomes='body = "    " + "    ".join('
        '"".join(emitter.pieces).splitlines(True))\n'
        "        origins = emitter.origins",
        told="may edit the pieces",
    ),
    # -- compile_forward -----------------------------------------------------
    Mutant(
        function="source.compile_forward",
        misconception="exec only reads the globals it is given.",
        was="dict(code.globals)",
        becomes="code.globals",
        told="Give it a copy",
    ),
    Mutant(
        function="source.compile_forward",
        misconception="Code that is compiled is on its own.",
        was=", dont_inherit=True",
        becomes="",
        told="The annotation of x is a string",
    ),
    Mutant(
        function="source.compile_forward",
        misconception="Any file name will do.",
        was="key = _new_key(co_fields)",
        becomes='key = "<generated>"',
        told="gives each text a file name of its own",
    ),
    Mutant(
        function="source.compile_forward",
        misconception="The lines must live as long as the function.",
        was="weakref.finalize(forward.__code__, _forget, key)",
        becomes="weakref.finalize(forward, _forget, key)",
        told="must live as long as `forward.__code__`",
    ),
    Mutant(
        function="source.compile_forward",
        misconception="A few lines of text can stay for ever.",
        was="weakref.finalize(forward.__code__, _forget, key)",
        becomes="weakref.finalize(_forget, _forget, key)",
        told="would never free them",
    ),
    Mutant(
        function="source.compile_forward",
        misconception="Python's own error says enough.",
        was="raise RuntimeError(message) from error",
        becomes="raise",
        told="does not say which node wrote the line",
    ),
    Mutant(
        function="source.compile_forward",
        misconception="A text that is refused leaves nothing behind.",
        was="        _forget(key)\n",
        becomes="",
        told="`_forget` the key",
    ),
)
