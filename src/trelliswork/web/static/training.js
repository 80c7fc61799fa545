// "Train on what I taught": live progress, and the scores on the dev sentences before and after.

import { get, post } from "./api.js";
import { h, say } from "./dom.js";

const PAUSE = 700;
const MOST_LINES = 12;

export class Training {
  /** `onSwap()` is called when the new model has taken the place of the old one. */
  constructor(onSwap) {
    this.onSwap = onSwap;
    this.button = h("button.primary", { type: "button", onclick: () => this.start() }, "Train on what I taught");
    this.result = h("div.training-result", { role: "status" });
    this.log = h("pre.log", { tabindex: "0", "aria-label": "Progress of the training" });
    this.logBox = h("details.log-box", { hidden: true }, h("summary", {}, "Log of the training"), this.log);
    this.element = h(
      "aside.training.card",
      { "aria-label": "Training" },
      h("h2", {}, "Train"),
      h(
        "p.note",
        {},
        "Trains the model again, on its own data and what you confirmed. The new model answers from then on if it is better on the dev sentences.",
      ),
      this.button,
      this.result,
      this.logBox,
    );
  }

  async start() {
    try {
      this.show(await post("v1/teach/train", {}));
    } catch (error) {
      this.result.replaceChildren(h("p.problem", {}, error.message));
    }
  }

  /** What GET /v1/teach/training says; asks again while it runs. */
  show(state) {
    const wasRunning = this.state?.state === "running";
    this.state = state;
    const isRunning = state.state === "running";
    this.button.disabled = isRunning;
    this.button.textContent = isRunning ? "Training…" : "Train on what I taught";
    this.result.replaceChildren(...resultOf(state));
    this.logBox.hidden = !state.log?.length;
    if (isRunning !== wasRunning) this.logBox.open = isRunning;
    this.log.textContent = (state.log ?? []).slice(-MOST_LINES).join("\n");
    this.log.scrollTop = this.log.scrollHeight;
    clearTimeout(this.timer);
    if (isRunning) this.timer = setTimeout(() => this.ask(), PAUSE);
    else if (wasRunning) {
      say(this.result.textContent);
      if (state.swapped) this.onSwap();
    }
  }

  async ask() {
    try {
      this.show(await get("v1/teach/training"));
    } catch (error) {
      this.result.replaceChildren(h("p.problem", {}, error.message));
      this.timer = setTimeout(() => this.ask(), 3 * PAUSE);
    }
  }
}

const score = (value) => (value === null || value === undefined ? "–" : (100 * value).toFixed(2));

function resultOf({ state, model, before, after, swapped, problem }) {
  if (state === "idle") return [];
  if (state === "failed") return [h("p.problem", {}, problem ?? "The training failed.")];
  const outcome =
    state === "done" &&
    {
      true: "The new model answers from now on.",
      false: "Not better on the dev sentences: the model stays as it was.",
    }[swapped];
  return [
    h("p.note", {}, "Trained: ", h("b", {}, model)),
    h(
      "dl.scores",
      {},
      h("div", {}, h("dt", {}, "Dev before"), h("dd", { data: { score: before } }, score(before))),
      h("div", {}, h("dt", {}, "Dev after"), h("dd", { data: { score: after } }, score(after))),
    ),
    outcome ? h("p.outcome", {}, outcome) : null,
  ].filter(Boolean);
}
