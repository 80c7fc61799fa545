// Where a set of sentences to teach is opened: a file is chosen or dropped, or one from before is taken up.

import { h } from "./dom.js";

const FORMATS = [
  ["text", "running text"],
  ["lines", "a sentence on each line"],
  ["tokens", "a sentence on each line, words between blanks"],
  ["conll", "CoNLL columns"],
  ["jsonl", "JSON lines"],
];
const BY_ENDING = {
  conll: "conll",
  conllu: "conll",
  bio: "conll",
  tsv: "conll",
  jsonl: "jsonl",
  json: "jsonl",
  tok: "tokens",
};

export class Opening {
  /** `open(set)` is called with what POST /v1/teach/open takes. */
  constructor(models, open) {
    [this.models, this.open] = [models, open];
  }

  element(state) {
    const model = h(
      "select",
      { id: "teach-model" },
      ...this.models.map((each) => h("option", { value: each.name }, each.name)),
    );
    const format = h(
      "select",
      { id: "teach-format" },
      h("option", { value: "" }, "what its name says"),
      ...FORMATS.map(([value, name]) => h("option", { value }, name)),
    );
    const file = h("input.unseen", {
      type: "file",
      id: "teach-file",
      accept: ".txt,.conll,.conllu,.jsonl,.tsv,.bio,.tok,text/plain",
    });
    const take = async (chosen) => {
      const name =
        chosen.name
          .replace(/\.[^.]*$/, "")
          .replace(/[^\p{L}\p{N}_-]+/gu, "-")
          .slice(0, 60) || "sentences";
      const kind = format.value || BY_ENDING[chosen.name.split(".").pop().toLowerCase()] || "lines";
      await this.open({ name, model: model.value, format: kind, content: await chosen.text() });
    };
    file.addEventListener("change", () => file.files[0] && take(file.files[0]));
    return h(
      "section.opening",
      { "aria-label": "Open sentences" },
      h("h2", {}, "Teach a model"),
      h(
        "p.lead",
        {},
        "Open a file of sentences without labels. The ones that the model is most unsure of come first; accept what is right, correct what is not, and train on it.",
      ),
      dropZone(file, take),
      h(
        "div.opening-choices",
        {},
        h("label", {}, h("span.over", {}, "Model"), model),
        h("label", {}, h("span.over", {}, "The file is"), format),
      ),
      state.sets.length ? this.earlier(state.sets, model) : null,
    );
  }

  earlier(sets, model) {
    return h(
      "div.earlier",
      {},
      h("p.over", {}, "Continue"),
      h(
        "div.pills",
        {},
        ...sets.map((name) =>
          h("button.button", { type: "button", onclick: () => this.open({ name, model: model.value }) }, name),
        ),
      ),
    );
  }
}

function dropZone(file, take) {
  const zone = h(
    "div.drop",
    {},
    h("p.drop-title", {}, "Drop a file here"),
    h("label.button", { for: "teach-file" }, "Choose a file"),
    file,
  );
  const over = (isOver) => (event) => {
    event.preventDefault();
    zone.classList.toggle("over-it", isOver);
  };
  zone.addEventListener("dragover", over(true));
  zone.addEventListener("dragleave", over(false));
  zone.addEventListener("drop", (event) => {
    over(false)(event);
    if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
  });
  return zone;
}
