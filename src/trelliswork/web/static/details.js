// What there is to see in addition to the answer itself, about one sentence of a model: best answers, pictures, votes; and
// how many parts of each label the whole text has.

import { draw, explain, predict } from "./api.js";
import { drawingElement, h } from "./dom.js";
import { Live } from "./live.js";
import { pinsFor } from "./reading.js";
import { bestElement } from "./views/best.js";
import { countsElement } from "./views/counts.js";
import { votesElement } from "./views/votes.js";

const PICTURES = { tags: ["trellis", "Trellis"], strings: ["alignment", "Alignment"] };

/** The tabs under an answer. */
export class Details {
  constructor(model, context) {
    [this.model, this.context] = [model, context];
    this.tabs = tabsOf(model);
    this.open = 0;
    this.panel = h("div.panel", { role: "tabpanel", id: `panel-${model.name}`, tabindex: "-1" });
    this.heading = h("p.which", {});
    this.list = h("div.tabs", { role: "tablist", "aria-label": `More about the answer of ${model.name}` });
    this.element = h("section.details", {}, h("div.details-head", {}, this.list, this.heading), this.panel);
    this.live = new Live(
      (ask, signal) => ask(signal),
      (element) => this.put(element),
      (error) => this.put(h("p.problem", { role: "alert" }, error.message)),
    );
    this.list.addEventListener("keydown", (event) => this.onKey(event));
    this.drawTabs();
  }

  /** Show what belongs to this sentence, and of votes to this word. */
  show(reading, index, token) {
    [this.reading, this.sentence, this.token] = [reading, reading.sentences[index], token];
    this.element.hidden = !this.sentence;
    if (this.sentence) this.fill();
  }

  drawTabs() {
    this.list.replaceChildren(
      ...this.tabs.map(([id, name], i) =>
        h(
          "button",
          {
            type: "button",
            role: "tab",
            id: `tab-${this.model.name}-${id}`,
            "aria-selected": i === this.open ? "true" : "false",
            "aria-controls": this.panel.id,
            tabindex: i === this.open ? "0" : "-1",
            data: { tab: id },
            onclick: () => this.choose(i),
          },
          name,
        ),
      ),
    );
    this.panel.setAttribute("aria-labelledby", `tab-${this.model.name}-${this.tabs[this.open][0]}`);
  }

  choose(i) {
    this.open = i;
    this.drawTabs();
    this.list.children[i].focus();
    this.panel.replaceChildren();
    if (this.sentence) this.fill();
  }

  onKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    this.choose((this.open + step + this.tabs.length) % this.tabs.length);
  }

  fill() {
    const [id] = this.tabs[this.open];
    const n = this.reading.sentences.length;
    const which = `${this.model.kind === "strings" ? "Line" : "Sentence"} ${this.sentence.index + 1} of ${n}`;
    this.heading.textContent = n === 1 ? "" : id === "counts" ? "The whole text" : which;
    this.live.cancel();
    if (id === "best")
      this.put(
        bestElement(
          this.sentence,
          this.context(),
          this.model.canPin && this.model.kind !== "strings" ? (analysis) => this.context().pinAnalysis(this.sentence, analysis) : null,
        ),
      );
    else if (id === "counts") this.live.request((signal) => this.counts(signal));
    else this.live.request((signal) => (id === "votes" ? this.votes(signal) : this.picture(id, signal)));
  }

  put(element) {
    this.panel.replaceChildren(element);
  }

  async picture(picture, signal) {
    const { model, reading, sentence } = this;
    const isLine = sentence.source !== undefined; // of a transducer, each line is an input of its own
    const pins = pinsFor(this.context().pins, reading.sentences, model)
      .filter((pin) => !isLine || pin.input === sentence.index)
      .map((pin) => (isLine ? { ...pin, input: 0 } : pin));
    const input = { text: isLine ? sentence.source : reading.text };
    const found = await draw(model.name, input, {
      pins,
      picture,
      sentence: isLine ? 0 : sentence.index,
      signal,
    });
    const svg = found.results[0].sentences[0]?.svg;
    return svg
      ? h(
          "div.scroll.picture",
          { tabindex: "0", role: "group", "aria-label": "Picture; scrolls sideways" },
          drawingElement(svg),
        )
      : h("p.note", {}, "There is nothing to draw.");
  }

  /** Asked for once of each reading: it is about all sentences. */
  async counts(signal) {
    const { model, reading } = this;
    if (this.counted?.reading !== reading) {
      const pins = pinsFor(this.context().pins, reading.sentences, model);
      const found = await predict(model.name, { text: reading.text }, { pins, expected: true, signal });
      this.counted = { reading, element: countsElement(found.results[0].sentences, model) };
    }
    return this.counted.element;
  }

  async votes(signal) {
    const found = await explain(this.model.name, { text: this.reading.text }, { signal });
    const sentence = found.results[0].sentences[this.sentence.index];
    const { votes: explained, note } = sentence.tasks ? Object.values(sentence.tasks)[0] : sentence; // of the first task
    const token = this.token < explained.length ? this.token : 0;
    return h("div", {}, this.wordChooser(token), votesElement(explained[token], this.model, note));
  }

  wordChooser(chosen) {
    const select = h(
      "select",
      { "aria-label": "Word" },
      ...this.sentence.tokens.map((token, t) => h("option", { value: t, selected: t === chosen }, token.text)),
    );
    select.addEventListener("change", () => {
      this.token = Number(select.value);
      this.fill();
    });
    return h("label.word-chooser", {}, h("span.soft", {}, "Votes on "), select);
  }
}

function tabsOf(model) {
  const picture = PICTURES[model.kind];
  const hasPicture = picture && (model.kind !== "tags" || model.can.choices);
  return [
    ["best", "Best answers"],
    ...(hasPicture ? [picture] : []),
    ...(model.can.expected ? [["counts", "Counts"]] : []),
    ...(model.can.explain && model.kind === "tags" ? [["votes", "Votes"]] : []),
  ];
}
