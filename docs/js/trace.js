"use strict";

// <fx-trace>: shows one state of a film at a time.  The states are in the page
// already (docs/machinery/stepper.py); without this script all are shown.
class FxTrace extends HTMLElement {
  connectedCallback() {
    if (this.querySelector(".fx-bar")) return;
    this.states = [...this.querySelectorAll(".fx-states > li")];
    this.bar = document.createElement("div");
    this.bar.className = "fx-bar";
    this.back = this.button("Back", -1);
    this.range = this.slider();
    this.forth = this.button("Next", +1);
    this.count = document.createElement("span");
    this.count.className = "fx-count";
    this.said = document.createElement("output");
    this.said.className = "fx-said";
    this.said.setAttribute("aria-live", "polite");
    this.bar.append(this.back, this.range, this.forth, this.count, this.said);
    this.prepend(this.bar);
    this.addEventListener("keydown", (event) => this.key(event));
    this.classList.add("fx-live");
    this.show(0);
  }

  button(text, by) {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "md-button";
    made.textContent = text;
    made.addEventListener("click", () => this.show(this.at + by, true));
    return made;
  }

  slider() {
    const made = document.createElement("input");
    made.type = "range";
    made.min = "1";
    made.max = String(this.states.length);
    made.setAttribute("aria-label", "Step");
    made.addEventListener("input", () => this.show(Number(made.value) - 1));
    return made;
  }

  key(event) {
    if (event.target.closest(".fx-scroll") || event.target === this.range) return;
    const to = {
      ArrowLeft: this.at - 1,
      ArrowRight: this.at + 1,
      Home: 0,
      End: this.states.length - 1,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.show(to, true);
  }

  show(to, aloud = false) {
    const last = this.states.length - 1;
    this.at = Math.max(0, Math.min(last, to));
    this.states.forEach((state, k) => {
      state.classList.toggle("fx-now", k === this.at);
    });
    const say = this.states[this.at].querySelector(".fx-say").textContent;
    const count = `${this.at + 1} of ${last + 1}`;
    this.range.value = String(this.at + 1);
    this.range.setAttribute("aria-valuetext", `${count}: ${say}`);
    this.count.textContent = count;
    if (aloud) this.said.textContent = `${count}: ${say}`;
    this.back.disabled = this.at === 0;
    this.forth.disabled = this.at === last;
  }
}

if (!customElements.get("fx-trace")) customElements.define("fx-trace", FxTrace);
