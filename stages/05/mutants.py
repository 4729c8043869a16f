"""Stage 05: what people get wrong in code generation."""

from __future__ import annotations

from typing import Final

from stages.manifest import Mutant

MUTANTS: Final = (
    # -- call_module ---------------------------------------------------------
    Mutant(
        function="codegen.emit.Emitter.call_module",
        misconception="A dot can come before every component of a path.",
        was="self._attribute(self._root, path_of(node))",
        becomes='f"{self._root}.{path_of(node)}"',
        told="where a dot cannot be",
    ),
    Mutant(
        function="codegen.emit.Emitter.call_module",
        misconception="The code calls the module `self`, always.",
        was="self._root",
        becomes='"self"',
        told="The target is a path from the root module",
    ),
    Mutant(
        function="codegen.emit.Emitter.call_module",
        misconception="A statement is `name = value`, nothing else.",
        was='self._assign(node, f"{module}({arguments})")',
        becomes='f"{self.variables[node]} = {module}({arguments})"',
        told="the assignment does not say it",
    ),
    Mutant(
        function="codegen.emit.Emitter.call_module",
        misconception="The variable of a node is its name.",
        was='self._assign(node, f"{module}({arguments})")',
        becomes='f"{node.name}{self._annotation(node)} = '
        '{module}({arguments})"',
        told="`self.variables[node]`, not `node.name`",
    ),
    # -- call_method ---------------------------------------------------------
    Mutant(
        function="codegen.emit.Emitter.call_method",
        misconception="All of node.args are arguments of the method.",
        was="args[1:]",
        becomes="args",
        told="goes before the dot",
    ),
    Mutant(
        function="codegen.emit.Emitter.call_method",
        misconception="What comes before the dot is written as anywhere.",
        was="self._primary(args[0])",
        becomes="self._text(args[0])",
        told="The object may be a constant",
    ),
    Mutant(
        function="codegen.emit.Emitter.call_method",
        misconception="There is always an object.",
        was="if not args:",
        becomes="if args is None:",
        told="has no object to call a method of",
    ),
    Mutant(
        function="codegen.emit.Emitter.call_method",
        misconception="The target is one name, and a dot comes before it.",
        was="self._attribute(self._primary(args[0]), path_of(node))",
        becomes='f"{self._primary(args[0])}.{node.target}"',
        told="since class is a keyword",
    ),
    Mutant(
        function="codegen.emit.Emitter.call_method",
        misconception="Whatever the target is, its text is the path.",
        was="path_of(node)",
        becomes="str(node.target)",
        told="not a path",
    ),
    Mutant(
        function="codegen.emit.Emitter.call_method",
        misconception="The method says enough; the node need not be named.",
        was='f"Node {node} calls the method {node.target!r} of nothing: "',
        becomes='f"The method {node.target!r} is called of nothing: "',
        told="names the node (here step)",
    ),
    # -- call_function -------------------------------------------------------
    Mutant(
        function="codegen.emit.Emitter.call_function",
        misconception="An operator may always change its operand.",
        was="has_syntax(spelling, node, self._last_users)",
        becomes="has_syntax("
        "spelling, node, dict.fromkeys(node.all_input_nodes, node))",
        told="mul reads n after this line",
    ),
    Mutant(
        function="codegen.emit.Emitter.call_function",
        misconception="An operator can always be written as syntax.",
        was="has_syntax(spelling, node, self._last_users)",
        becomes="node.args",
        told="`has_syntax` says no",
    ),
    Mutant(
        function="codegen.emit.Emitter.call_function",
        misconception="Functions are called by their names, operators too.",
        was="has_syntax(spelling, node, self._last_users)",
        becomes="not node.args",
        told="so the line has its syntax",
    ),
    Mutant(
        function="codegen.emit.Emitter.call_function",
        misconception="Every call of getattr is an attribute access.",
        was="target is getattr and is_attribute_access(node)",
        becomes="target is getattr",
        told="would lose the default",
    ),
    Mutant(
        function="codegen.emit.Emitter.call_function",
        misconception="Every function whose name is an identifier is a leaf.",
        was='node.meta.get("is_wrapped") and spelling.isidentifier()',
        becomes="spelling.isidentifier()",
        told="Only nodes with meta['is_wrapped']",
    ),
    Mutant(
        function="codegen.emit.Emitter.call_function",
        misconception="A statement is the text alone; nothing is to be noted.",
        was='if node.meta.get("is_wrapped") and spelling.isidentifier():',
        becomes="if not spelling:",
        told="code traced again would look into len",
    ),
    Mutant(
        function="codegen.emit.Emitter.call_function",
        misconception="A leaf can be noted under whatever it is called by.",
        was=" and spelling.isidentifier()",
        becomes="",
        told="only identifiers are noted",
    ),
    Mutant(
        function="codegen.emit.Emitter.call_function",
        misconception="An argument is written alike in front of a dot.",
        was="self._primary(args[0])",
        becomes="self._text(args[0])",
        told="which reads `12.` as a float",
    ),
    Mutant(
        function="codegen.emit.Emitter.call_function",
        misconception="What looks like an attribute access is one.",
        was="target is getattr and is_attribute_access(node)",
        becomes="is_attribute_access(node)",
        told="only a call of getattr can be a dot",
    ),
    Mutant(
        function="codegen.emit.Emitter.call_function",
        misconception="`==` and `is` are the same for functions.",
        was="target is getattr",
        becomes="target == getattr",
        told="Ask whether it *is* getattr",
    ),
    Mutant(
        function="codegen.emit.Emitter.call_function",
        misconception="A wrapped function is noted, called or not.",
        was="        if target is getattr",
        becomes='        if node.meta.get("is_wrapped"):\n'
        "            self.wrapped[str(spelling)] = None\n"
        "        if target is getattr",
        told="Only calls are noted",
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
        function="codegen.emit.Emitter.call_function",
        misconception="a global has the function's name",
        was="self.wrapped[spelling] = None",
        becomes="self.wrapped[target.__name__] = None",
        told="must be the name that the line calls",
    ),
    Mutant(
        function="codegen.emit.Emitter.call_function",
        misconception="a mark that is there is true",
        was='node.meta.get("is_wrapped")',
        becomes='"is_wrapped" in node.meta',
        told="ask for the value, and not whether there is one",
    ),
    Mutant(
        function="codegen.codegen.CodeGen._gen_python_code",
        misconception="splitlines counts lines",
        was='definition.count("\\n") + 1',
        becomes="len(definition.splitlines())",
        told="count its line breaks, which `splitlines` does not do",
    ),
    Mutant(
        function="codegen.emit.Emitter.call_method",
        misconception="None is no object",
        was="if not args:",
        becomes="if not args or args[0] is None:",
        told="there is no object only if args is empty",
    ),
    Mutant(
        function="codegen.emit.Emitter.call_method",
        misconception="the object may be given by keyword",
        was="        args = node._args\n",
        becomes="        args = node._args or tuple(node._kwargs.values())\n",
        told="is the first *positional* argument",
    ),
    Mutant(
        function="codegen.emit.Emitter.call_function",
        misconception="a dot fetches what isidentifier accepts",
        was="if target is getattr and is_attribute_access(node):",
        becomes=(
            "if (\n"
            "            target is getattr\n"
            "            and len(args) == 2\n"
            "            and str(args[1]).isidentifier()\n"
            "        ):"
        ),
        told="because class is a keyword",
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
