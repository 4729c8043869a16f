"use strict";

// A question takes an answer, and compares the words as `python -m stages
// predict` does. Without this script one opens the answer.
const wordsOf = (text) => (text.toLowerCase().match(/[^\s[\](),']+/g) || []).join(" ");

document$.subscribe(() => {
  for (const box of document.querySelectorAll(".fx-predict")) {
    if (box.querySelector("form")) continue;
    const folded = box.querySelector("details");
    const printed = folded.querySelector(".fx-text").textContent;
    const form = document.createElement("form");
    form.innerHTML =
      '<label>What does it print?<textarea required spellcheck="false" autocapitalize="off"></textarea></label>' +
      "<button>Check</button><output></output>";
    const field = form.querySelector("textarea");
    field.rows = printed.trim().split("\n").length;
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || (field.rows > 1 && !event.ctrlKey)) return;
      event.preventDefault();
      form.requestSubmit();
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const right = wordsOf(field.value) === wordsOf(printed);
      form.dataset.right = right;
      form.querySelector("output").textContent = right ? "Yes, it prints that." : "It prints something else.";
      folded.open = true;
    });
    folded.before(form);
  }
});
