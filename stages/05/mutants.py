"""Stage 05: what people get wrong in code generation."""

from __future__ import annotations

from typing import Final

from stages.manifest import Mutant

MUTANTS: Final = (
    # -- has_syntax ----------------------------------------------------------
    Mutant(
        function="codegen.emit.has_syntax",
        misconception="An operator can always be written as syntax.",
        was="node._kwargs or len(args) != operator.arity",
        becomes="node._kwargs",
        told="as many operands as its `arity` says",
    ),
    Mutant(
        function="codegen.emit.has_syntax",
        misconception="Operators have no keywords.",
        was="node._kwargs or len",
        becomes="len",
        told="has no place for the keyword",
    ),
    Mutant(
        function="codegen.emit.has_syntax",
        misconception="An operator may always change its operand.",
        was="last_users[left] is node",
        becomes="True",
        told="which the second would read",
    ),
    Mutant(
        function="codegen.emit.has_syntax",
        misconception="What is read later must not be changed.",
        was="is_item = operator.function is setitem",
        becomes="is_item = False",
        told="x may be read later",
    ),
    Mutant(
        function="codegen.emit.has_syntax",
        misconception="Whatever is used last may be on the left.",
        was="if not issubclass(type(left), Node):",
        becomes="if type(left) is int:",
        told="the left side must be a variable",
    ),
    Mutant(
        function="codegen.emit.has_syntax",
        misconception="Brackets may follow anything.",
        was="issubclass(type(args[0]), _INDEXED)",
        becomes="True",
        told="cannot have any",
    ),
    # -- placeholder ---------------------------------------------------------
    Mutant(
        function="codegen.emit.Emitter.placeholder",
        misconception="A false default does not count as a default.",
        was="if node.args else",
        becomes="if node.args and node.args[0] else",
        told="if node.args is not empty",
    ),
    Mutant(
        function="codegen.emit.Emitter.placeholder",
        misconception="A default is written as its repr.",
        was="{self._text(node.args[0])}",
        becomes="{node.args[0]!r}",
        told="A default is an argument: `_text` writes it",
    ),
    Mutant(
        function="codegen.emit.Emitter.placeholder",
        misconception="The parameter is called like the node's variable.",
        was="target = path_of(node)",
        becomes="target = self.variables[node]",
        told="The parameter is called as the target says",
    ),
    Mutant(
        function="codegen.emit.Emitter.placeholder",
        misconception="The target is the name of the parameter, stars and all.",
        was="parameter = self.variables.parameters[node]",
        becomes="parameter = target",
        told="stars do not belong to a name",
    ),
    Mutant(
        function="codegen.emit.Emitter.placeholder",
        misconception="A placeholder is a parameter and never a line.",
        was='return "" if variable == parameter else '
        'f"{variable} = {parameter}\\n"',
        becomes='return "" if variable or parameter else ""',
        told="a line has to bind it",
    ),
    # -- _end ----------------------------------------------------------------
    Mutant(
        function="codegen.emit.Emitter._end",
        misconception="Any user of a value may free it.",
        was="if last[used] is node",
        becomes="if used in last",
        told="not after its first",
    ),
    Mutant(
        function="codegen.emit.Emitter._end",
        misconception="`users` is in the order of the program.",
        was="if last[used] is node",
        becomes="if [*used.users][-1] is node",
        told="x is used once more after it",
    ),
    Mutant(
        function="codegen.emit.Emitter._end",
        misconception="Variables are sorted by name.",
        was="for used in node._inputs if",
        becomes="for used in sorted(node._inputs, key=str) if",
        told="in the order of the node's `_inputs`",
    ),
    Mutant(
        function="codegen.emit.Emitter._end",
        misconception="The return statement frees what it returns.",
        was='if node._op == "output":',
        becomes='if node._op == "nothing":',
        told="Nothing runs behind the return statement",
    ),
    Mutant(
        function="codegen.emit.Emitter._end",
        misconception="Every value has a user that frees it.",
        was="if not node.users:",
        becomes="if node.users is None:",
        told="no later line can free it",
    ),
    Mutant(
        function="codegen.emit.Emitter._end",
        misconception="An unused value frees itself, and nothing else.",
        was="freed.append(variables[node])",
        becomes="freed = [variables[node]]",
        told="its line frees both",
    ),
    Mutant(
        function="codegen.emit.Emitter._end",
        misconception="The variable of a node is its name.",
        was="[variables[used] for",
        becomes="[used.name for",
        told="what is freed is `self.variables[node]`",
    ),
    # -- bind ----------------------------------------------------------------
    Mutant(
        function="codegen.names.GlobalNames.bind",
        misconception="Each time a name is asked for, it is a new one.",
        was="if known is not None:",
        becomes="if known is not None and not known:",
        told="it keeps the name it has",
    ),
    Mutant(
        function="codegen.names.GlobalNames.bind",
        misconception="The hint is the name.",
        was="self._free_name(hint)",
        becomes="hint",
        told="Two objects asked for the name",
    ),
    Mutant(
        function="codegen.names.GlobalNames.bind",
        misconception="Any object can be looked up in a dict.",
        was="key = _key(obj)",
        becomes="key = hash(obj), id(obj)",
        told="`_key(obj)` is what to look up",
    ),
    Mutant(
        function="codegen.names.GlobalNames.bind",
        misconception="Objects are told apart by id alone.",
        was="key = _key(obj)",
        becomes="key = id(obj)",
        told="share one global",
    ),
    Mutant(
        function="codegen.names.GlobalNames.bind",
        misconception="A name is enough; the object comes from somewhere.",
        was="self.values[name] = obj",
        becomes="self.values.setdefault(hint, None)",
        told="running the code would be a NameError",
    ),
    # -- _gen_python_code ----------------------------------------------------
    Mutant(
        function="codegen.codegen.CodeGen._gen_python_code",
        misconception="The def line can be written with what is there first.",
        was="            emitter.parameters,\n            emitter.returns,",
        becomes='            [],\n            "",',
        told="those are known when the emitter has run",
    ),
    Mutant(
        function="codegen.codegen.CodeGen._gen_python_code",
        misconception="A function may have no statement.",
        was='emitter.write_line("pass\\n", len(nodes) - 1 if nodes else None)',
        becomes='emitter.write_line("\\n", 0)',
        told="It needs the line `pass`",
    ),
    Mutant(
        function="codegen.codegen.CodeGen._gen_python_code",
        misconception="Every text begins on the same line.",
        was='wraps.count("\\n") + 4',
        becomes="4",
        told="_prologue_start counts them",
    ),
    Mutant(
        function="codegen.codegen.CodeGen._gen_python_code",
        misconception="The def line is one line.",
        was='definition.count("\\n") + 1',
        becomes="1",
        told="count the lines of the definition",
    ),
    Mutant(
        function="codegen.codegen.CodeGen._gen_python_code",
        misconception="The body begins where the def line is.",
        was='definition.count("\\n") + 1',
        becomes='definition.count("\\n")',
        told="The def line is line 0 of the function",
    ),
    Mutant(
        function="codegen.codegen.CodeGen._gen_python_code",
        misconception="Globals need not be checked against variables.",
        was="emitter.globals.claim(name, value)",
        becomes="emitter.globals.values[name] = value",
        told="`claim` refuses what would be hidden",
    ),
    Mutant(
        function="codegen.codegen.CodeGen._gen_python_code",
        misconception="Subclasses need not know how globals are written.",
        was="self._spelled = emitter.globals.spelled",
        becomes="assert self._spelled",
        told="make it `emitter.globals.spelled`",
    ),
    Mutant(
        function="codegen.codegen.CodeGen._gen_python_code",
        misconception="Python will refuse a wrong def line anyway.",
        was="self._check(nodes)",
        becomes="assert nodes is not None",
        told="`_check` says so before anything is written",
    ),
    Mutant(
        function="codegen.codegen.CodeGen._gen_python_code",
        misconception="The parameters can be checked when all is written.",
        was="        self._check(nodes)\n"
        "        emitter = self._emitter(nodes, root_module, options)\n"
        "        self._spelled = emitter.globals.spelled\n"
        "        emitter.run()\n",
        becomes="        emitter = self._emitter(nodes, root_module, options)\n"
        "        self._spelled = emitter.globals.spelled\n"
        "        emitter.run()\n"
        "        self._check(nodes)\n",
        told="Call `_check` first",
    ),
    Mutant(
        function="codegen.codegen.CodeGen._gen_python_code",
        misconception="The body is what the emitter has written, joined.",
        was="body, origins = self._body(emitter)",
        becomes='body = "    " + "    ".join('
        '"".join(emitter.pieces).splitlines(True))\n'
        "        origins = emitter.origins",
        told="may edit the pieces",
    ),
    Mutant(
        function="codegen.codegen.CodeGen._gen_python_code",
        misconception="How globals are written is known only at the end.",
        was="        self._spelled = emitter.globals.spelled\n"
        "        emitter.run()\n",
        becomes="        emitter.run()\n"
        "        self._spelled = emitter.globals.spelled\n",
        told="must be there before",
    ),
    Mutant(
        function="codegen.codegen.CodeGen._gen_python_code",
        misconception="Every piece of the body is a line of it.",
        was="if not emitter.origins:",
        becomes="if not emitter.pieces:",
        told="the pieces have comments among them",
    ),
    Mutant(
        function="codegen.codegen.CodeGen._gen_python_code",
        misconception="There is always a last node.",
        was="len(nodes) - 1 if nodes else None",
        becomes="len(nodes) - 1",
        told="would be an index from the end",
    ),
    Mutant(
        function="codegen.codegen.CodeGen._gen_python_code",
        misconception="A line without a statement is from the first node.",
        was="len(nodes) - 1 if nodes else None",
        becomes="0 if nodes else None",
        told="it is said to be from the last one",
    ),
    Mutant(
        function="codegen.codegen.CodeGen._gen_python_code",
        misconception="How the def line is laid out is gen_fn_def's choice.",
        was="            expanded_def=options.expanded_def,\n",
        becomes="",
        told="it is in `options`",
    ),
    Mutant(
        function="codegen.codegen.CodeGen._gen_python_code",
        misconception="Empty lines are for the eye.",
        was='f"\\n{wraps}\\n\\n{definition}',
        becomes='f"{wraps}\\n\\n\\n{definition}',
        told="line 4 is the def line",
    ),
    # -- compile_forward -----------------------------------------------------
    Mutant(
        function="codegen.source.compile_forward",
        misconception="exec only reads the globals it is given.",
        was="dict(code.globals)",
        becomes="code.globals",
        told="Give it a copy",
    ),
    Mutant(
        function="codegen.source.compile_forward",
        misconception="Code that is compiled is on its own.",
        was=", dont_inherit=True",
        becomes="",
        told="The annotation of x is a string",
    ),
    Mutant(
        function="codegen.source.compile_forward",
        misconception="Any file name will do.",
        was="key = _new_key(co_fields)",
        becomes='key = "<generated>"',
        told="gives each text a file name of its own",
    ),
    Mutant(
        function="codegen.source.compile_forward",
        misconception="The lines must live as long as the function.",
        was="weakref.finalize(forward.__code__, _forget, key)",
        becomes="weakref.finalize(forward, _forget, key)",
        told="must live as long as `forward.__code__`",
    ),
    Mutant(
        function="codegen.source.compile_forward",
        misconception="A few lines of text can stay for ever.",
        was="weakref.finalize(forward.__code__, _forget, key)",
        becomes="weakref.finalize(_forget, _forget, key)",
        told="would never free them",
    ),
    Mutant(
        function="codegen.source.compile_forward",
        misconception="Python's own error says enough.",
        was="raise RuntimeError(message) from error",
        becomes="raise",
        told="does not say which node wrote the line",
    ),
    Mutant(
        function="codegen.source.compile_forward",
        misconception="A text that is refused leaves nothing behind.",
        was="        _forget(key)\n",
        becomes="",
        told="`_forget` the key",
    ),
    Mutant(
        function="codegen.source.compile_forward",
        misconception="A function may be among its own globals.",
        was='namespace.pop("forward")',
        becomes='namespace["forward"]',
        told="Take it out with `pop`",
    ),
    Mutant(
        function="codegen.source.compile_forward",
        misconception="Text that is wrong gives a SyntaxError.",
        was="except Exception as error",
        becomes="except (SyntaxError, NameError) as error",
        told="Any Exception means that the text is refused",
    ),
    Mutant(
        function="codegen.source.compile_forward",
        misconception="A finalizer only runs when its object is gone.",
        was="weakref.finalize(forward.__code__, _forget, key).atexit = False",
        becomes="weakref.finalize(forward.__code__, _forget, key)",
        told="Set it to False",
    ),
    Mutant(
        function="codegen.source.compile_forward",
        misconception="A time of change is a number, 0 if there is none.",
        was="len(code.src), None, lines, key",
        becomes="len(code.src), 0.0, lines, key",
        told="would make them look for a file",
    ),
    Mutant(
        function="codegen.source.compile_forward",
        misconception="Lines are what `split` gives.",
        was='[f"{line}\\n" for line in code.src.split("\\n")]',
        becomes='code.src.split("\\n")',
        told="lines with their line ends",
    ),
    Mutant(
        function="codegen.source.compile_forward",
        misconception="The file name for `compile` is only for show.",
        was='compile(code.src, key, "exec"',
        becomes='compile(code.src, "<generated>", "exec"',
        told="under the file name that the text was compiled with",
    ),
    Mutant(
        function="codegen.codegen.CodeGen._gen_python_code",
        misconception="names are claimed first",
        was=(
            "        emitter.run()\n"
            "        if not emitter.origins:\n"
            '            emitter.write_line("pass\\n", len(nodes) - 1 if '
            "nodes else None)\n"
            "        wraps = _wrap_statements(emitter)\n"
            "        body, origins = self._body(emitter)\n"
            "        for name, value in self.additional_globals():\n"
            "            emitter.globals.claim(name, value)\n"
        ),
        becomes=(
            "        for name, value in self.additional_globals():\n"
            "            emitter.globals.claim(name, value)\n"
            "        emitter.run()\n"
            "        if not emitter.origins:\n"
            '            emitter.write_line("pass\\n", len(nodes) - 1 if '
            "nodes else None)\n"
            "        wraps = _wrap_statements(emitter)\n"
            "        body, origins = self._body(emitter)\n"
        ),
        told="`claim` after that",
    ),
    Mutant(
        function="codegen.codegen.CodeGen._gen_python_code",
        misconception="splitlines counts lines",
        was='definition.count("\\n") + 1',
        becomes="len(definition.splitlines())",
        told="count its line breaks, which `splitlines` does not do",
    ),
    Mutant(
        function="codegen.emit.Emitter._end",
        misconception="what is used is an argument itself",
        was="for used in node._inputs if",
        becomes="for used in node.args if isinstance(used, Node) and",
        told="which are inside a list",
    ),
    Mutant(
        function="codegen.names.GlobalNames.bind",
        misconception="None needs no global",
        was="        key = _key(obj)",
        becomes=(
            "        if obj is None:\n"
            '            return "None"\n'
            "        key = _key(obj)"
        ),
        told="None is an object like any other",
    ),
    Mutant(
        function="codegen.codegen.CodeGen._gen_python_code",
        misconception="an edit moves no line",
        was="enumerate(origins,",
        becomes="enumerate(emitter.origins,",
        told="returns the origins of the edited lines",
    ),
)
