"""Draws the site: the blocks that its pages are made of, and how to write one.

# A guide for authors

A page is Markdown.  Code, claims, output and drawings are never pasted into
it: a *block* names them, and the build puts them in.  What a block does not
understand (a name, an option, a text to mark) is drawn as an error in its
place, and told in one line for each page when all pages are read; the strict
build then fails, so a page cannot be out of date.

    /// source | fx.linked_list.linked_list.Link.prepend
        mark: before._next = x

    Prose about it.  Markdown as usual.
    ///

Three slashes at the left margin open a block, three slashes close it.  Options
stand right below the first line, four spaces in; a free line; then the prose.
Blocks may stand inside the prose of another.  An option's value is YAML: put
it in 'single quotes' if it contains `: ` or ` #` or begins with one of
`[ { " * & %`; several values are `[a, b]`; several lines are `answer: |` with
the lines four more spaces in.

## Commands

    python -m docs.machinery check files/node.md    # this page alone
    python -m docs.machinery check                  # all pages, a line for each
    python -m docs.machinery words                  # how long it all is
    make docs                                       # the whole site, strictly

`check` draws the page and says what is
wrong with its blocks, which names of fx in its prose the code does not have,
and which lines of a core file it does not show, or shows twice.  `make docs`
checks the links between pages as well.  `words` counts prose; the line below
each page's title (stage, core or reference, minutes) comes from the same
count.

## The page of a core file: docs/files/<path below fx, .md for .py>

Shows each line of its file exactly once, in the file's order (or better: in
the order of explanation).  Example: docs/files/linked_list/linked_list.md.

    # The doubly linked list …           the title: the docstring's first line
    One or two paragraphs: what it is for; what it must keep true (the
    invariant, in a sentence that one could test); where it is used.
    ## The ring                          a section: an idea, not a class
    /// source | …                       blocks, each with its reason
    ## For reference                     what one looks up, and what the
                                         stage's page tells
    ## In torch.fx                       /// torch blocks, what 2.15 does

Prose beside code says why: what would break without the line, what was
decided against, what it costs.  It does not retell the code.  Headings stand
between blocks (## only), never inside.  Each definition is an anchor, in
whatever block it stands: link to
`../files/linked_list/linked_list.md#fx.linked_list.linked_list.Link.prepend`.

## The page of any other file

A file that is no core of a stage needs no page: one is made of it, its
docstrings beside its code, with what the documents say and a link to torch's
file where a docstring has `torch.fx: node.py, Node.prepend` as a paragraph
(what 2.15 does otherwise follows a semicolon).  A name in backticks that the
file defines or imports is a link.  Such a file has a page by hand where one
wants to say more (an example, a drawing); it ends with the block

    /// file | fx.show.page
    ///

The page of a pass stands in the tab Library, and begins with a program of
docs/examples/passes.py: see PROGRAMS in docs/machinery/pages.py.

## The page of a stage: docs/stages/NN.md

    # Stage 01: linked-list graph
    What you will have at the end; what you need to know before.
    ## The idea … ## headings for each part of it (the exercises' anchors!)
       with /// excerpt, /// predict, /// picture, /// trace
    ## Check       what holds, and the tests that hold it; /// claims
    ## Use         /// run | stages.01.demo
    ## Exercises   /// exercises | 01

Everything that a learner needs for an exercise is on this page (what a reader
does not need: in a `/// write` block) or in the function's docstring.  Each
exercise's `anchor` is a heading here (its text in small letters, hyphens for
spaces), or the build fails.

## The blocks

`/// source | NAME` (pages of files only): prose left, code right, under a
heading of its own.  NAME is a file (its head: docstring and imports, up to
the first name), a function, a class (whole), a method, or a variable.
    to: NAME       show everything from the first to this one: neighbours,
                   `to: __le__` inside a class, `to: GAP` from the file's head,
                   `to: __init__` from a class to its method
    header: true   of a class: up to its first method
    mark: TEXT     mark the lines that contain this text (or [several])
Comments above a definition belong to it; so do overloads, a property's
setter, a string below a variable, and statements that name nothing and follow.

`/// excerpt | NAME`: the same on any other page, a quotation with a link to
the page that owns it.  Options as above.

`/// torch | torch.fx.node.Node.prepend`: in which file torch.fx has it, with a
link, and in your words what 2.15 does differently.  What torch makes at run
time has no place there: name the function that makes it.

What the source documents say stands beside the code by itself: each claim of
tests/claims.toml names a definition, and a § in its margin opens the claim.
`/// claims`, on the page of a stage: the statements about that stage, folded.
`/// ledger`: all claims, first those that are no longer so.
`/// ranked`: which rows of the page's tables are met `often:` and `sometimes:`
(lists of the ids in their first cells); with a filter, and cards when narrow.
The code of a row is in docs/examples/differences.py.

`/// write | node.Node._connect`, at the end of a section: what only one who
writes that function must know, folded, and no part of the core's words.

`/// exercises | 01`: a stage's exercises, with commands, and what to break.
`/// stub | linked_list.linked_list.Link._unlink`: one as the learner finds it.
`/// told | half_an_arrow`: a text of tests/course/golden, which is what a
check says; `to: TEXT` shows it up to the first line that contains that.

`/// run | docs.examples.NAME`: a file with `main() -> None`, or a function of
a file, without parameters; also stages.01.demo.  It is shown with all that it
uses, as a program that can be pasted and run with torch and fx alone, and its
output below.  The prose stands above.  It may import Python, torch and fx, and
take names from other files of the course, which are shown with it
(docs/machinery/standalone.py).

`/// predict | docs.examples.predict_01.erased`: a question (the prose), and a
program as above; the answer, folded, is what it prints. The reader's own
answer is compared with it (docs/js/predict.js).
    answer: TEXT   what it prints; if it prints anything else, the build fails
    why: TEXT      said below the answer, when unfolded
Ask what a reader would get wrong.

`/// trace | docs.examples.steps_01`: a film of a graph, step by step.  There
is one for each stage, steps_01 to steps_08: show it on the stage's page.  The
prose becomes its caption: say the invariant that holds in every step.  Another
film is a file with `film() -> Film`, at most 12 rows and 20 shots; what is
new, changed or gone is found by itself (docs/machinery/film.py).  `first` is
the shot that it opens on.

`/// choose | docs.examples.choose_02`: a figure that one asks.  The file has
`choices() -> Choices` (docs/machinery/film.py): a question and a film for each
answer, all worked out by fx while the page is built.  The prose is its
caption. It needs no script: the answers are radio buttons.  `/// still` with
`of: LABEL` shows the rows of one answer, beside the text where there is room,
or below it: `wide: true`.

`/// picture | ring`: a drawing; the prose becomes its caption, and says the
same to one who cannot see it; `beside: true` puts it beside the text.  One
is a file of docs/machinery/pictures with `draw() -> Canvas`
(docs/machinery/svg.py: boxes, words, arrows on a width of 360; tones, no
colours).

`/// graph | resnet18`: what `page()` of docs/examples/resnet18.py gives, in a
frame that is loaded when it comes into view.  `title:` says what it shows.

`/// play | docs.examples.play_forward`: a program and what it prints, which
the reader may edit and run in the browser; `/// written | 02`: the exercises of
a stage, likewise. What both load is made when the site is
built (docs/machinery/hook.py); Python for browsers is fetched once, by npm.

`/// speed`: a chart of the recorded benchmarks.
`/// results | programs`: what other people's programs did.

`/// api | trace`: the public names of a group (GROUPS in reference_pages.py),
each with its example: the lines below its comment in docs/examples/api.py.
`/// stages`: the list of stages.

## Links, terms, notes

`[use-def edge](../glossary.md#use-def-edge)` for a term of the glossary, on
its first use on a page (from docs/files/passes/utils it is `../../../`); each
term must be used by some page, and the pointer over it shows what it means.
Notes are `!!! note "Title"` with the text four
spaces in; `??? note` is folded.  No HTML, no Python in ``` fences (put it in
docs/examples and name it); shell commands may stand in ```sh.

`{minutes tiny.md}` is how long it takes to read that page, by the same count
as the line below its title; `{repository}` is the address to clone, if the
build has one; `{at fx.node.Node}` links to a definition by its file and line.
A page may begin with `tags:`, the words that readers use for what it explains,
and `search: boost:`; see docs/library.md.

## What tests/docs asks of pages

Each line of a core file stands in one `/// source`; each stage's page has its
claims, a question, its film, its demo and its exercises; each file of
docs/examples, each picture and each term of the glossary is used by a page; a
name in backticks that begins with `fx.` exists; every link leads somewhere.  A
page with something to mend fails one test, its own in
tests/docs/test_build.py.
"""
