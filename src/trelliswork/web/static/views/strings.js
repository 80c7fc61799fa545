// What a transducer writes, and which part of the source each part of it comes from.

import { h } from "../dom.js";
import { percent, shortPercent } from "../format.js";

const NOTHING = "∅";

/** One source with its best target, chunk by chunk. */
export function stringElement(sentence) {
  return h(
    "div.string",
    { data: { sentence: sentence.index, probability: sentence.probability } },
    h(
      "p.target",
      { dir: "auto" },
      h("span.from", {}, h("bdi", {}, sentence.source), h("span", { "aria-label": "becomes" }, " → ")),
      h("bdi.value", {}, String(sentence.value) || NOTHING),
      sentence.probability === null
        ? null
        : h("span.share", { title: String(sentence.probability) }, percent(sentence.probability)),
    ),
    sentence.chunks.length
      ? h(
          "div.scroll",
          { tabindex: "-1" },
          h("ol.chunks", { "aria-label": "Alignment of source and target" }, ...sentence.chunks.map(chunkElement)),
        )
      : null,
  );
}

function chunkElement({ source, target, probability }) {
  const sure = probability ?? 0.5;
  return h(
    "li.chunk",
    { "--sure": sure.toFixed(3), data: { probability } },
    h("bdi.source", {}, source || NOTHING),
    h("span.link", { "aria-hidden": "true" }),
    h("bdi.symbol", {}, target || NOTHING),
    h("span.share", {}, probability === null ? "" : shortPercent(probability)),
  );
}
