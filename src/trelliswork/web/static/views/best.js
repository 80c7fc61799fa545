// The k best answers with their exact probabilities; what is different from the best is marked.

import { h } from "../dom.js";
import { percent } from "../format.js";
import { constituentsOf, parseBrackets } from "./tree.js";

const MOST_SHOWN = 4; // differing constituents

/** A list of the best analyses of one sentence; `pinAll(analysis)` pins one of them. */
export function bestElement(sentence, context, pinAll) {
  const best = sentence.analyses[0];
  const listed = sentence.analyses.reduce((sum, each) => sum + each.probability, 0);
  return h(
    "div.best",
    {},
    h(
      "ol.analyses",
      { "aria-label": "Best answers" },
      ...sentence.analyses.map((each, rank) => row(each, rank, best, sentence, context, pinAll)),
    ),
    h("p.note", {}, restSentence(sentence.analyses.length, listed)),
  );
}

function restSentence(n, listed) {
  const rest = Math.max(0, 1 - listed);
  return rest < 5e-7
    ? "There are no others with a probability worth mentioning."
    : `All others together have ${percent(rest)}.`;
}

function row(analysis, rank, best, sentence, context, pinAll) {
  return h(
    "li.analysis",
    { data: { probability: analysis.probability } },
    h("span.rank", { "aria-hidden": "true" }, `${rank + 1}`),
    h("span.share", { title: String(analysis.probability) }, percent(analysis.probability)),
    h("span.meter", { "aria-hidden": "true", "--part": analysis.probability.toFixed(4) }),
    h("div.what", { dir: "auto" }, ...CONTENTS[context.model.kind](analysis, best, sentence, context)),
    pinAll && context.model.canPin
      ? h(
          "button.quiet",
          { type: "button", onclick: () => pinAll(analysis), "aria-label": `Pin answer ${rank + 1}` },
          "Pin all",
        )
      : null,
  );
}

const CONTENTS = {
  tags: (analysis, best, sentence, context) =>
    context.model.isPlain ? tagged(analysis, best, sentence) : spanned(analysis, best, sentence, context),
  heads: (analysis, best, sentence) => differingArcs(analysis, best, sentence),
  brackets: (analysis, best, sentence) => differingBrackets(analysis, best, sentence),
  strings: (analysis) => [h("bdi.value", {}, String(analysis.value) || "∅")],
};

function spanned(analysis, best, sentence, context) {
  const found = [];
  const spanAt = new Map(analysis.spans.map((span) => [span.start, span]));
  for (let t = 0; t < sentence.tokens.length;) {
    const span = spanAt.get(t);
    const end = span ? span.end : t + 1;
    const words = sentence.tokens
      .slice(t, end)
      .map((token) => token.text)
      .join(" ");
    const isNew = analysis.value.slice(t, end).some((tag, i) => tag !== best.value[t + i]);
    if (span)
      found.push(
        h(
          `span.mini.${context.model.colour(span.label)}${isNew ? ".changed" : ""}`,
          {},
          h("bdi", {}, words),
          h("b", {}, ` ${span.label}`),
        ),
        " ",
      );
    else found.push(isNew ? h("span.mini.changed", {}, h("bdi", {}, words)) : words, " ");
    t = end;
  }
  return found;
}

function tagged(analysis, best, sentence) {
  return sentence.tokens.flatMap((token, t) => [
    h(
      `span.pair${analysis.value[t] === best.value[t] ? "" : ".changed"}`,
      {},
      h("bdi", {}, token.text),
      h("b", {}, analysis.value[t]),
    ),
    " ",
  ]);
}

function differingArcs(analysis, best, sentence) {
  const name = (head) => (head ? sentence.tokens[head - 1].text : "the root");
  const different = sentence.tokens.flatMap((token, t) => {
    const [head, label] = analysis.value[t];
    if (head === best.value[t][0] && label === best.value[t][1]) return [];
    return [h("span.pair.changed", {}, h("bdi", {}, token.text), ` ← ${name(head)} `, h("b", {}, label)), " "];
  });
  return different.length ? different : ["the tree above"];
}

function differingBrackets(analysis, best, sentence) {
  const key = (each) => `${each.start}-${each.end}-${each.label}`;
  const [here, there] = [analysis, best].map(
    (each) => new Map(constituentsOf(parseBrackets(each.value)).map((c) => [key(c), c])),
  );
  const words = (each) =>
    sentence.tokens
      .slice(each.start, each.end)
      .map((token) => token.text)
      .join(" ");
  const shown = (sign, each) => [
    h("span.pair.changed", {}, h("b", {}, `${sign} ${each.label}`), " ", h("bdi", {}, words(each))),
    " ",
  ];
  const found = [
    ...[...here].filter(([k]) => !there.has(k)).flatMap(([, each]) => shown("+", each)),
    ...[...there].filter(([k]) => !here.has(k)).flatMap(([, each]) => shown("−", each)),
  ];
  if (found.length > 2 * MOST_SHOWN)
    return [...found.slice(0, 2 * MOST_SHOWN), `and ${found.length / 2 - MOST_SHOWN} more`];
  if (found.length) return found;
  return [analysis === best ? "the tree above" : "the same constituents with other tags of words"];
}
