// What a transducer writes, and which part of the source each part of it comes from.

import { h } from "../dom.js";
import { percent, shortPercent } from "../format.js";
import { NOTHING } from "../pieces.js";
import { pinIcon, unsureness } from "./words.js";

const EMPTY = "∅";

/** One source with its best target, chunk by chunk. */
export function stringElement(sentence, context) {
  return h(
    "div.string",
    { data: { sentence: sentence.index, probability: sentence.probability } },
    h(
      "p.target",
      { dir: "auto" },
      h("span.from", {}, h("bdi", {}, sentence.source), h("span", { "aria-label": "becomes" }, " → ")),
      h("bdi.value", {}, String(sentence.value) || EMPTY),
      sentence.probability === null
        ? null
        : h("span.share", { title: String(sentence.probability) }, percent(sentence.probability)),
    ),
    sentence.chunks.length
      ? h(
          "div.scroll",
          { tabindex: "-1" },
          h(
            "div.chunks",
            { role: "group", "aria-label": "Pieces of the source and what they become" },
            ...sentence.chunks.map((chunk) => chunkElement(chunk, sentence, context)),
          ),
        )
      : null,
  );
}

function chunkElement(chunk, sentence, context) {
  const { source, target, probability } = chunk;
  const written = target && target !== NOTHING ? target : EMPTY;
  const place = placeOf(chunk, sentence);
  const pin = place && context.pins.find((each) => each.what === "piece" && each.start === place[0] && each.end === place[1]);
  const shown = [
    h("bdi.source", {}, source || EMPTY),
    h("span.link", { "aria-hidden": "true" }),
    h("bdi.symbol", {}, written),
    h("span.share", {}, pin ? pinIcon() : null, probability === null ? "" : shortPercent(probability)),
  ];
  const sure = (probability ?? 0.5).toFixed(3);
  if (!place) return h("div.chunk", { "--sure": sure, data: { probability } }, ...shown);
  const said = written === EMPTY ? "nothing" : written;
  return h(
    "div.chunk.word",
    {
      role: "button",
      tabindex: "-1",
      "aria-haspopup": "dialog",
      "aria-label": `${source} becomes ${said} ${shortPercent(probability)}${pin ? ", pinned" : ""}`,
      "--sure": sure,
      "--unsure": unsureness(chunk.entropy).toFixed(3),
      data: {
        key: `${context.model.name}/piece/${sentence.index}/${chunk.start}-${chunk.end}`,
        sentence: sentence.index,
        first: chunk.start,
        last: chunk.end,
        label: target,
        probability,
        pinned: Boolean(pin),
      },
    },
    ...shown,
  );
}

/** Where a piece is in the text, if it can be chosen what it becomes. */
function placeOf({ start, end, choices }, { tokens }) {
  if (!choices) return null;
  const place = [tokens[start].start, tokens[end - 1].end];
  return place.includes(undefined) ? null : place;
}
