// The teaching half of the page: a set of sentences, one at a time, and training on what was confirmed.

import { get, post } from "./api.js";
import { Desk } from "./desk.js";
import { byId, h, say } from "./dom.js";
import { count } from "./format.js";
import { Opening } from "./opening.js";
import { Training } from "./training.js";

const ORDERS = [
  ["entropy", "most unsure words first"],
  ["margin", "closest call first"],
  ["error", "most expected errors first"],
  ["order", "in the order of the file"],
];

export class Teacher {
  /** `onSwap()` is called when a newly trained model answers. */
  constructor(models, onSwap) {
    this.models = models.filter((model) => model.can.teach);
    this.page = byId("teach");
    this.by = "entropy";
    this.opening = new Opening(this.models, (set) => this.openSet(set));
    this.training = new Training(() => {
      onSwap();
      this.next();
    });
    this.desk = new Desk({ decide: (decision) => this.decide(decision), undo: () => this.undo() });
    this.problem = h("p.problem", { role: "alert", hidden: true });
  }

  /** Take up where things stand. */
  async enter() {
    await this.guarded(async () => {
      const state = await get("v1/teach");
      this.training.show(state.training);
      if (state.open) await this.work(state.open);
      else this.showOpening(state);
    });
  }

  showOpening(state) {
    this.state = null;
    this.page.replaceChildren(this.problem, this.opening.element(state));
  }

  async openSet(set) {
    await this.guarded(async () => {
      const state = await post("v1/teach/open", set);
      await this.work(state.open);
    });
  }

  /** Draw the desk with the next sentence on it. */
  async work(open) {
    this.state = open;
    this.model = this.models.find((model) => model.name === open.model);
    this.progress = h("div.progress", {});
    this.page.replaceChildren(
      this.problem,
      h("section.teach-head", { "aria-label": "Progress" }, this.progress, this.orderChooser(), this.otherFile()),
      h("div.teach-body", {}, this.desk.element, this.training.element),
    );
    this.drawProgress();
    this.desk.element.setAttribute("aria-busy", "true");
    await this.next();
  }

  async next(id) {
    await this.guarded(async () => {
      const found = await get(`v1/teach/next?${id === undefined ? `by=${this.by}` : `id=${id}`}`);
      this.state = found.open;
      this.drawProgress();
      if (found.id === null) this.desk.finish(this.state);
      else this.desk.put(found, this.model);
    });
  }

  async decide(decision) {
    await this.guarded(async () => {
      const { open } = await post("v1/teach/decide", decision);
      this.state = open;
      say(`${count(open.decided, "sentence")} decided, ${open.remaining} left`);
      await this.next();
    });
  }

  async undo() {
    await this.guarded(async () => {
      const { id, tags, open } = await post("v1/teach/undo", {});
      this.state = open;
      say("The last decision is taken back");
      const found = await get(`v1/teach/next?id=${id}`);
      this.drawProgress();
      this.desk.put(found, this.model, tags);
    });
  }

  async guarded(act) {
    try {
      this.problem.hidden = true;
      await act();
    } catch (error) {
      this.problem.textContent = error.message;
      this.problem.hidden = false;
      if (!this.problem.isConnected) this.page.prepend(this.problem);
    }
  }

  drawProgress() {
    const { name, total, decided, skipped, remaining, known_tokens: known, ranked } = this.state;
    const ranking = this.by !== "order" && ranked < remaining ? `, ${ranked} of ${remaining} ranked` : "";
    this.progress.replaceChildren(
      h("p.progress-title", {}, h("b", {}, name), h("span.soft", {}, ` taught to ${this.state.model}`)),
      h("div.bar-track", {
        role: "progressbar",
        "aria-label": "Sentences decided",
        "aria-valuemin": "0",
        "aria-valuemax": String(total),
        "aria-valuenow": String(decided),
        "--part": (decided / Math.max(1, total)).toFixed(4),
      }),
      h(
        "p.note",
        { data: { decided, remaining, known } },
        `${decided} of ${count(total, "sentence")} decided, ${skipped ? `${skipped} put off, ` : ""}${count(known, "word")} known${ranking}`,
      ),
    );
  }

  orderChooser() {
    const select = h(
      "select",
      { id: "teach-order" },
      ...ORDERS.map(([value, name]) => h("option", { value, selected: value === this.by }, name)),
    );
    select.addEventListener("change", () => {
      this.by = select.value;
      this.next();
    });
    return h("label.order", {}, h("span.over", {}, "Order"), select);
  }

  otherFile() {
    const show = async () =>
      this.guarded(async () => this.showOpening({ ...(await get("v1/teach")), canReturn: true }));
    return h("button.quiet", { type: "button", onclick: show }, "Another file");
  }
}
