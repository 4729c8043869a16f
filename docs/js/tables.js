"use strict";

// A table that is wider than the page is put into a box that scrolls (by
// Material's own script).  The keyboard reaches the box while it does scroll.
const watched = new ResizeObserver((changes) => {
  for (const { target: box } of changes) {
    if (box.scrollWidth > box.clientWidth) {
      box.tabIndex = 0;
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", "Table");
    } else {
      for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
    }
  }
});

document$.subscribe(() => {
  watched.disconnect();
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap")) watched.observe(box);
});
