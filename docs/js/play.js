"use strict";

// <fx-play>: a program that the reader may edit and run, in Python that runs
// in this browser.  The program and what it prints are in the page already
// (docs/machinery/playing.py); this adds the editor when the reader asks for it.
class FxPlay extends HTMLElement {
  static worker = null;
  static waiting = new Map();
  static asked = 0;

  connectedCallback() {
    if (this.querySelector(".fx-play-bar") || !this.dataset.megabytes) return;
    this.bar = document.createElement("div");
    this.bar.className = "fx-play-bar";
    this.open = this.button(
      `Edit and run it here (loads ${this.dataset.megabytes} MB, once)`,
      () => this.edit());
    this.insertBefore(this.bar, this.querySelector(".fx-recorded"));
  }

  button(text, act) {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "md-button";
    made.textContent = text;
    made.addEventListener("click", act);
    this.bar.append(made);
    return made;
  }

  edit() {
    this.open.remove();
    this.field = document.createElement("textarea");
    this.field.value = this.dataset.source;
    this.field.rows = this.field.value.split("\n").length + 2;
    this.field.spellcheck = false;
    this.field.setAttribute("aria-label", "Your program");
    this.field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.run();
    });
    for (const made of this.querySelectorAll(".highlight, .fx-recorded")) {
      made.hidden = true;
    }
    this.bar.before(this.field);
    this.go = this.button("Run (Ctrl+Enter)", () => this.run());
    this.status = document.createElement("output");
    this.status.className = "fx-play-status";
    this.status.setAttribute("aria-live", "polite");
    this.bar.append(this.status);
    this.result = document.createElement("div");
    this.result.className = "fx-play-result";
    this.append(this.result);
    this.field.focus();
    this.run();
  }

  async run() {
    this.status.textContent = FxPlay.worker ? "running" : "loading Python";
    this.go.disabled = true;
    const asked = {source: this.field.value, task: this.dataset.task || ""};
    const said = await FxPlay.ask(this.dataset.root, asked);
    this.go.disabled = false;
    this.status.textContent = said.seconds
      ? `done in ${said.seconds.toFixed(2)} s` : "done";
    this.show(said);
  }

  static ask(root, message) {
    if (!FxPlay.worker) {
      FxPlay.worker = new Worker(
        new URL(`${root}js/play-worker.mjs`, location.href), {type: "module"});
      FxPlay.worker.onmessage = ({data}) => FxPlay.answered(data);
      FxPlay.worker.onerror = (event) =>
        FxPlay.failed(`Python could not be loaded: ${event.message || "no file"}`);
    }
    const id = ++FxPlay.asked;
    return new Promise((resolve) => {
      const timer = setTimeout(
        () => FxPlay.failed("It took over a minute, and was stopped."), 60000);
      FxPlay.waiting.set(id, {resolve, timer});
      FxPlay.worker.postMessage({...message, id});
    });
  }

  static answered(said) {
    const {resolve, timer} = FxPlay.waiting.get(said.id);
    clearTimeout(timer);
    FxPlay.waiting.delete(said.id);
    resolve(said);
  }

  static failed(error) {
    FxPlay.worker.terminate();
    FxPlay.worker = null;
    for (const id of [...FxPlay.waiting.keys()]) {
      FxPlay.answered({id, error, printed: "", nodes: [], code: "", problem: null});
    }
  }

  show(said) {
    this.result.replaceChildren();
    if (said.problem !== null && !said.error) {
      const right = said.problem === "";
      this.part(right ? "fx-right" : "fx-wrong",
        right ? "Right: it does what was asked." : `Not yet: ${said.problem}`);
    }
    if (said.error) this.part("fx-wrong", said.error);
    if (said.nodes.length) this.nodes(said.nodes);
    this.text("Code", said.code);
    this.text("It prints", said.printed.trim());
  }

  part(name, text) {
    const made = document.createElement("p");
    made.className = `fx-play-said ${name}`;
    made.setAttribute("role", "status");
    made.textContent = text;
    this.result.append(made);
  }

  text(title, text) {
    if (!text) return;
    const head = document.createElement("p");
    head.className = "fx-where";
    head.textContent = title;
    const box = document.createElement("div");
    box.className = "fx-scroll fx-output";
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", title);
    const inner = document.createElement("div");
    inner.className = "fx-text";
    inner.textContent = text;
    box.append(inner);
    this.result.append(head, box);
  }

  // The nodes, of which the slider shows as many as have been recorded so far.
  nodes(nodes) {
    const table = document.createElement("table");
    const head = table.createTHead().insertRow();
    for (const title of ["node", "op", "does", "users"]) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = title;
      head.append(cell);
    }
    const body = table.createTBody();
    for (const node of nodes) {
      const row = body.insertRow();
      for (const text of [node.name, node.op, node.does, node.users.join(", ")]) {
        const cell = row.insertCell();
        if (!text) continue;
        const code = document.createElement("code");
        code.textContent = text;
        cell.append(code);
      }
    }
    const range = document.createElement("input");
    range.type = "range";
    range.min = "1";
    range.max = range.value = String(nodes.length);
    range.setAttribute("aria-label", "Step: how many nodes are recorded");
    range.addEventListener("input", () => {
      [...body.rows].forEach((row, at) => {
        row.classList.toggle("fx-later", at >= range.value);
        row.classList.toggle("fx-now", at === range.value - 1);
      });
    });
    const box = document.createElement("div");
    box.className = "fx-scroll";
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", "Nodes");
    box.append(table);
    this.result.append(range, box);
  }
}

if (!customElements.get("fx-play")) customElements.define("fx-play", FxPlay);
