"use strict";

// <fx-exercise>: the files of a stage, to be written and checked in this page.
// What is typed is kept in this browser, and can be taken along.
class FxExercise extends FxPlay {
  label = "Your file";
  act = "Check";
  acting = "checking";
  parts = [...PARTS, "course.zip"];

  begin() {
    this.querySelector(".fx-recorded").hidden = true; // how to do without this
  }

  // Of the file with the first function that is to be written.
  first() {
    this.given = JSON.parse(this.dataset.files);
    this.files = {...this.given};
    const names = Object.keys(this.given);
    for (const name of names) {
      try {
        this.files[name] = localStorage.getItem(`fx/${name}`) ?? this.given[name];
      } catch {
        break; // this browser keeps nothing
      }
    }
    this.saved = {...this.files};
    addEventListener("storage", this);
    const stubs = this.stubs();
    this.name = names.find((one) => this.files[one].includes(stubs[0])) ?? names[0];
    return this.files[this.name];
  }

  // Another tab has kept a file.
  handleEvent({key, newValue}) {
    const name = key?.slice(3);
    if (newValue === null || !(name in this.saved)) return;
    this.saved[name] = this.files[name] = newValue;
    if (name === this.name) this.program = newValue;
  }

  // The lines to be replaced, in the order of the stage.
  stubs() {
    const {order, stage} = this.dataset;
    const lines = order.split(" ").map((one) => `raise NotImplementedError("stage ${stage}: ${one}")`);
    return lines.filter((one) => Object.values(this.files).some((text) => text.includes(one)));
  }

  tools() {
    this.signs = document.createElement("ul");
    this.signs.className = "fx-signs";
    this.bar.after(this.signs);
    this.button("Download this file", () => this.download());
    this.button("Reset this file", () => {
      if (!confirm(`What you have written in ${this.name} will be gone.`)) return;
      this.program = this.given[this.name];
      this.run();
    });
    this.chooser = document.createElement("select");
    this.chooser.setAttribute("aria-label", "File");
    for (const name of Object.keys(this.given)) this.chooser.append(new Option(name));
    this.chooser.value = this.name;
    this.chooser.addEventListener("change", () => {
      this.choose(this.chooser.value);
      this.toStub();
    });
    this.bar.append(this.chooser);
  }

  choose(name) {
    if (name === this.name) return;
    this.keep();
    this.name = this.chooser.value = name;
    this.program = this.files[name];
  }

  async highlighted() {
    await super.highlighted();
    this.toStub();
    this.bar.scrollIntoView({block: "nearest"}); // it says what is loading
  }

  async run() {
    const kept = FxPlay.files.size > 0;
    const isCold = !FxPlay.worker;
    const ran = super.run();
    const what = kept ? "starting" : `loading ${this.dataset.megabytes} MB, then starting`;
    if (isCold) this.say(`${what} Python for browsers: some ten seconds`);
    return ran;
  }

  // Show a function in the editor.
  to(name) {
    const [own, of] = name.split(".").reverse();
    const head = new RegExp(`${of ? `\\nclass ${of}\\b[^]*?\\n +` : "\\n"}def ${own}\\b`);
    this.keep();
    const file = Object.keys(this.files).find((one) => head.test(this.files[one]));
    if (!file) return;
    this.choose(file);
    const found = head.exec(this.program);
    const at = found.index + found[0].length;
    if (this.mirror) {
      const line = this.program.slice(0, at).split("\n").length - 1;
      this.mirror.getWrapperElement().scrollIntoView({block: "nearest"});
      this.mirror.setCursor(line, 0);
      this.mirror.scrollTo(0, this.mirror.heightAtLine(line, "local"));
      this.mirror.focus();
    } else {
      this.field.setSelectionRange(at, at);
      this.field.focus();
    }
  }

  // Show the first function of this file that is not written.
  toStub() {
    const stub = this.stubs().find((one) => this.program.includes(one));
    if (!this.mirror || !stub) return;
    const line = this.program.split(stub)[0].split("\n").length - 20;
    this.mirror.scrollTo(0, this.mirror.heightAtLine(Math.max(line, 0), "local"));
  }

  keep() {
    if (this.program === this.saved[this.name]) return;
    this.saved[this.name] = this.files[this.name] = this.program;
    if (this.signs?.hasChildNodes()) this.say("edited since the check");
    try {
      localStorage.setItem(`fx/${this.name}`, this.program);
    } catch {
      // This browser keeps nothing.
    }
  }

  question() {
    return {stage: this.dataset.stage, files: this.files};
  }

  show(said) {
    this.result.replaceChildren();
    this.mirror?.scrollTo(0, null);
    this.verdict(said);
    const why = said.error || said.why;
    if (why) this.result.append(this.error(why));
    if (said.signs?.every(([, sign]) => sign === "✓")) this.result.append(this.onward());
    this.printed("The check says", said.printed);
    said.hints?.forEach((text, at) => {
      const made = document.createElement("details");
      const head = document.createElement("summary");
      head.textContent = `Hint ${at + 1} of ${said.hints.length} for ${said.next}`;
      const inner = document.createElement("p");
      inner.textContent = text;
      made.append(head, inner);
      this.result.append(made);
    });
  }

  onward() {
    const after = `0${Number(this.dataset.stage) + 1}`;
    const link = document.createElement("a");
    link.href = `../${after}/`;
    link.textContent = `Go on to stage ${after}`;
    return link;
  }

  // The sign of each function, as in the terminal, and beside the button what
  // to do next.  Of those that are wrong, only the first is sure to be.
  verdict({signs, next, error, printed}) {
    if (error) return this.say(error.startsWith("Stopped") ? "stopped" : "not checked", "failed");
    this.signs.replaceChildren(...signs.map(([name, sign, stub]) => {
      const made = document.createElement("li");
      made.dataset.kind = sign === "✓" ? "passed" : sign === "✗" && name === next ? "failed" : "";
      const link = document.createElement("button");
      link.type = "button";
      link.textContent = name;
      link.addEventListener("click", () => this.to(name));
      made.append(`${sign} `, link, sign === "·" && stub ? ` waits for ${stub}` : "");
      return made;
    }));
    const count = (wanted) => signs.filter(([, sign]) => wanted.includes(sign)).length;
    const [right, wrong] = [count("✓"), count("✗~")];
    const waiting = signs.find(([, sign, stub]) => sign === "·" && stub);
    const others = wrong > 1 ? " first: the others may be right" : "";
    const more = waiting ? `; ${waiting[0]} waits for ${waiting[2]}` : next ? `, next: ${next}` : "";
    const line = /line \d+/.exec(printed)?.[0] ?? "see below";
    if (!signs.some(([, sign]) => sign.trim())) this.say(`not checked: ${line}`, "failed");
    else if (wrong) this.say(`✗ fix ${next || "what failed"}${others}`, "failed");
    else this.say(`${right} of ${signs.length} right${more}`, right ? "passed" : "");
  }

  download() {
    this.keep();
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([this.program]));
    link.download = this.name.split("/").at(-1);
    link.click();
    URL.revokeObjectURL(link.href);
  }
}

if (!customElements.get("fx-exercise")) customElements.define("fx-exercise", FxExercise);
