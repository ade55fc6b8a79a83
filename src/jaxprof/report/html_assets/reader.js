// Takes the state that the reader has given to the page (filters, order, zoom, folded and scrolled parts, the focus), and
// gives it to the next version, whose elements are found by section, heading and title.
const reader = (() => {
  const PARTS = ".table, figure[data-chart], details", FOCUSABLE = "input, button, canvas, summary";

  // The text before the first digit, because a title may contain a count.
  const named = (words) => words.split(/[\d·:]/)[0].trim();
  const titleOf = (part) => named(part.querySelector("caption, figcaption, summary")?.textContent ?? "");
  const headingOf = (part) => {
    let before = part;
    while (before !== null && !/^H[2-4]$/.test(before.tagName)) before = before.previousElementSibling;
    return named(before?.textContent ?? "");
  };

  // The parts of the page by name; equal names are numbered in the order of the page.
  const parts = () => {
    const found = new Map();
    for (const part of document.querySelectorAll(PARTS)) {
      const name = [part.closest("section")?.id ?? "", headingOf(part), part.tagName, titleOf(part)].join("\n");
      let number = 0;
      while (found.has(`${name}\n${number}`)) number += 1;
      found.set(`${name}\n${number}`, part);
    }
    return found;
  };

  const stateOf = (part) => ({
    open: part.open,
    left: part.scrollLeft,
    table: tables.state(part),
    view: part.querySelector(".chart")?.dataset.view,
  });

  const take = () => {
    const states = new Map(), active = document.activeElement;
    let focus = null;
    for (const [name, part] of parts()) {
      states.set(name, stateOf(part));
      if (part.contains(active)) {
        const place = [...part.querySelectorAll(FOCUSABLE)].indexOf(active);
        const range = active.tagName === "INPUT" ? [active.selectionStart, active.selectionEnd] : null;
        focus = { name, place, range, words: active.textContent };
      }
    }
    return { states, focus, top: window.scrollY };
  };

  // Called after the tables are set up, and before the charts are drawn.
  const give = ({ states, focus, top }) => {
    const now = parts();
    for (const [name, part] of now) {
      const state = states.get(name);
      if (state === undefined) continue;
      if (part.tagName === "DETAILS") part.open = state.open;
      if (state.table) tables.restore(part, state.table);
      if (state.view) part.querySelector(".chart").dataset.view = state.view;
      part.scrollLeft = state.left;
    }
    window.scrollTo(0, top);
    return () => {
      const part = focus && now.get(focus.name);
      if (!part) return;
      const within = [...part.querySelectorAll(FOCUSABLE)];
      const same = within[focus.place]?.textContent === focus.words;
      const target = same ? within[focus.place] : within.find((one) => one.textContent === focus.words);
      target?.focus({ preventScroll: true });
      if (focus.range && target?.setSelectionRange) target.setSelectionRange(...focus.range);
    };
  };

  return { take, give };
})();
