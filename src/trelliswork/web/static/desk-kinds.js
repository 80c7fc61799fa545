// What differs at the desk between taggers and parsers: how decisions are written, and how they become pins.

import { headPin, placePin } from "./choosing.js";

const OUTSIDE = "O";

const TAGS = {
  isWhole: false, // whether every word must be confirmed
  labels: (model) => (model.isPlain ? model.labels : model.spanLabels).slice(0, 9),
  written: (token) => token.label,
  pinOf: (sentence, t, tag) => placePin("tag", sentence, t, t + 1, tag),
  shownPin: (model, sentence, [first, last]) => {
    if (model.isPlain) return placePin("tag", sentence, first, last, sentence.tokens[first].label);
    const span = sentence.spans.find((each) => each.start === first && each.end === last);
    return placePin("span", sentence, first, last, span?.label ?? OUTSIDE);
  },
  nothing: "Nothing confirmed yet; accepting confirms all words.",
};

const HEADS = {
  isWhole: true,
  labels: () => [],
  written: (token) => `${token.head}:${token.label}`,
  pinOf: (sentence, t, arc) => {
    const [head, ...label] = arc.split(":");
    return headPin(sentence, t, Number(head), label.join(":"));
  },
  shownPin: (_, sentence, [first]) =>
    headPin(sentence, first, sentence.tokens[first].head, sentence.tokens[first].label),
  nothing: "A parser learns from whole trees: correct the arcs that are wrong, then accept.",
};

export const DESK_KINDS = { tags: TAGS, heads: HEADS };
