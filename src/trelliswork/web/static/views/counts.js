// How many parts of each label the whole text has: expected numbers over all answers, with their error bars.

import { h } from "../dom.js";
import { count, withDeviation } from "../format.js";

const MOST_SHOWN = 12; // labels

/** The counts of all sentences by label, as /v1/predict gives them: means add up, and so do squared deviations. */
export function totalsOf(sentences) {
  const totals = new Map();
  for (const { label, mean, deviation } of sentences.flatMap((sentence) => sentence.expected)) {
    const before = totals.get(label) ?? { label, mean: 0, variance: 0 };
    totals.set(label, { label, mean: before.mean + mean, variance: before.variance + deviation ** 2 });
  }
  return [...totals.values()]
    .map(({ label, mean, variance }) => ({ label, mean, deviation: Math.sqrt(variance) }))
    .sort((a, b) => b.mean - a.mean);
}

/** A table of the most frequent labels. */
export function countsElement(sentences, model) {
  const totals = totalsOf(sentences);
  const shown = totals.slice(0, MOST_SHOWN);
  const most = Math.max(0.001, ...shown.map(({ mean, deviation }) => mean + deviation));
  const more = totals.length - shown.length;
  return h(
    "div.votes.counts",
    {},
    h(
      "table",
      {},
      h("caption.unseen", {}, "Expected numbers"),
      h("thead.unseen", {}, h("tr", {}, ...["Label", "Size", "Number"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, ...shown.map((each) => row(each, most, model))),
    ),
    h(
      "p.note",
      {},
      `How many to expect in the whole text: the mean over all answers by their probability ± the standard deviation, both exact.${more > 0 ? ` ${count(more, "label")} with less left out.` : ""}`,
    ),
  );
}

function row({ label, mean, deviation }, most, model) {
  return h(
    `tr.${model.colour(label)}`,
    { data: { label, mean, deviation } },
    h("th", { scope: "row" }, h("b.tint", {}, label)),
    h(
      "td.vote-bar",
      { "aria-hidden": "true" },
      h(
        "span.meter.with-deviation",
        {
          "--part": (mean / most).toFixed(4),
          "--from": (Math.max(0, mean - deviation) / most).toFixed(4),
          "--to": ((mean + deviation) / most).toFixed(4),
        },
      ),
    ),
    h("td.weight", {}, withDeviation(mean, deviation)),
  );
}
