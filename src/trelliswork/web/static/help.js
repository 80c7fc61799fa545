// The keys of the page, in a window that "?" opens.

import { byId, h } from "./dom.js";

const READ = [
  [["←", "→"], "move between words, constituents or pieces"],
  [["Shift", "←", "→"], "select several words, to pin them as one span"],
  [["Enter"], "show what a word, span, arc, constituent or piece may be"],
  [["1", "…", "9"], "in the list: choose and pin"],
  [["Ctrl", "Z"], "undo a pin"],
  [["Ctrl", "Shift", "Z"], "redo it"],
  [["Esc"], "close the list"],
];
const TEACH = [
  [["Enter"], "accept: everything as it is shown is right"],
  [["Shift", "Enter"], "keep only what you confirmed; the rest stays unknown"],
  [["←", "→"], "move between words"],
  [["Shift", "←", "→"], "select several words as one span"],
  [["1", "…", "9"], "this is right: the label with that number"],
  [["0"], "this is none of them"],
  [["Space"], "confirm the word or span as it is shown"],
  [["A"], "show all that a word may be, with probabilities"],
  [["Backspace"], "take the confirmation back"],
  [["S"], "skip: decide later"],
  [["U"], "undo the last decision"],
];

export function startHelp() {
  const dialog = byId("help");
  dialog.append(
    h(
      "header",
      {},
      h("h2", { id: "help-title" }, "Keys"),
      h("button.quiet.round", { type: "button", "aria-label": "Close", onclick: () => dialog.close() }, "×"),
    ),
    h("p.note", {}, "A pin is something you know. All other probabilities are computed anew under it, exactly."),
    section("Read", READ),
    section("Teach", TEACH),
    section("Everywhere", [[["?"], "this window"]]),
  );
  byId("help-open").addEventListener("click", () => dialog.showModal());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "?" || event.target.closest("textarea, input, select")) return;
    event.preventDefault();
    if (dialog.open) dialog.close();
    else dialog.showModal();
  });
}

function section(title, keys) {
  const rows = keys.flatMap(([names, meaning]) => [
    h("dt", {}, ...names.map((name) => h("kbd", {}, name))),
    h("dd", {}, meaning),
  ]);
  return h("section", {}, h("h3", {}, title), h("dl", {}, ...rows));
}
