// Dependency arcs over the words, drawn by the page so that every arc and word can be pointed at.

import { h, s } from "../dom.js";
import { bits, shortPercent } from "../format.js";
import { pinIcon, unsureness } from "./words.js";

const [LEVEL, SLOT, GAP, MARGIN, SIZE, SMALL] = [34, 9, 26, 16, 16, 12];
const PALEST = 0.35;
const SURE = 0.995; // probability from which on it is not written next to the label
const ROOM = 36; // next to the label of an arc, for its bends and the slots of its ends

let measure;

/** Widths of texts in the font of the page. */
export function widthOf(text, size, weight) {
  measure ??= document.createElement("canvas").getContext("2d");
  measure.font = `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
  return measure.measureText(text).width;
}

/** A sentence with its arcs, in a box that scrolls sideways. */
export function arcsElement(sentence, context) {
  const arcs = levelled(sentence.tokens.map((token, t) => arcOf(token, t)));
  const isRightToLeft = firstDirection(sentence.tokens.map((token) => token.text).join(" ")) === "rtl";
  const columns = placed(sentence.tokens, arcs, isRightToLeft);
  const base = MARGIN + LEVEL * Math.max(1, ...arcs.map((arc) => arc.level)) + 8;
  const drawn = withEnds(arcs, columns);
  const picture = s(
    "svg.arcs",
    {
      width: columns.width,
      height: base + 54,
      viewBox: `0 0 ${columns.width} ${base + 54}`,
      role: "group",
      "aria-label": "Dependency arcs; every word has its head",
      "font-size": SIZE,
    },
    ...drawn.map((arc) => arcElement(arc, sentence, base, context)),
    ...sentence.tokens.map((token, t) =>
      wordElement(sentence, t, columns.centres[t], columns.widths[t], base, context),
    ),
  );
  return h("div.scroll", { tabindex: "-1" }, picture);
}

function arcOf(token, t) {
  const head = token.head - 1; // -1 is the root
  return {
    t,
    head,
    left: Math.min(t, head < 0 ? t : head),
    right: Math.max(t, head),
    isRoot: head < 0,
    label: token.label ?? "",
    probability: token.probability,
  };
}

function firstDirection(text) {
  const strong = /[\p{L}]/u.exec(text);
  return strong && /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/.test(strong[0]) ? "rtl" : "ltr";
}

/** The level of each arc: one above the highest arc that lies under it, or that shares a stretch with it. */
function levelled(arcs) {
  const order = [...arcs].sort((a, b) => a.right - a.left - (b.right - b.left) || a.left - b.left);
  const done = [];
  for (const arc of order) {
    const below = done.filter((other) => !other.isRoot && other.left < arc.right && arc.left < other.right);
    arc.level = arc.isRoot ? 0 : 1 + Math.max(0, ...below.map((other) => other.level));
    done.push(arc);
  }
  const top = Math.max(1, ...arcs.map((arc) => arc.level));
  arcs
    .filter((arc) => arc.isRoot)
    .forEach((arc) => {
      const over = arcs.filter((other) => !other.isRoot && other.left < arc.t && arc.t < other.right);
      arc.level = over.length
        ? top + 1
        : 1 +
          Math.max(0, ...arcs.filter((o) => !o.isRoot && (o.left === arc.t || o.right === arc.t)).map((o) => o.level));
    });
  return arcs;
}

/** Columns of the words: wide enough for the words and for the labels of arcs between neighbours. */
function placed(tokens, arcs, isRightToLeft) {
  const widths = tokens.map((token) => Math.max(30, widthOf(token.text, SIZE, 500)) + GAP);
  for (const arc of arcs) {
    const room = arc.isRoot
      ? widths[arc.t] * 2
      : sum(widths.slice(arc.left, arc.right + 1)) - (widths[arc.left] + widths[arc.right]) / 2;
    const missing = widthOf(arcText(arc), SMALL, 600) + ROOM - room;
    if (missing > 0)
      for (let t = arc.left; t <= arc.right; t += 1) widths[t] += missing / (arc.isRoot ? 2 : arc.right - arc.left);
  }
  const width = Math.ceil(sum(widths) + 2 * MARGIN);
  let at = MARGIN;
  const centres = widths.map((each) => (at += each) - each / 2);
  return { widths, width, centres: isRightToLeft ? centres.map((x) => width - x) : centres };
}

const sum = (values) => values.reduce((total, value) => total + value, 0);
const arcText = (arc) => (arc.probability >= SURE ? arc.label : `${arc.label} ${shortPercent(arc.probability)}`);

/** Where arcs begin and end: those of one word are spread, the longest outermost. */
function withEnds(arcs, { centres }) {
  const ends = centres.map(() => ({ minus: [], plus: [] }));
  for (const arc of arcs.filter((each) => !each.isRoot)) {
    const [from, to] = [centres[arc.head], centres[arc.t]];
    ends[arc.head][to > from ? "plus" : "minus"].push(arc);
    ends[arc.t][from > to ? "plus" : "minus"].push(arc);
  }
  const place = (arc, t, other) => {
    const side = centres[other] > centres[t] ? "plus" : "minus";
    const sorted = [...ends[t][side]].sort((a, b) => b.right - b.left - (a.right - a.left));
    const rank = sorted.indexOf(arc);
    const step = Math.min(SLOT, 20 / Math.max(1, sorted.length));
    return centres[t] + (side === "plus" ? 1 : -1) * (4 + step * rank);
  };
  return arcs.map((arc) =>
    arc.isRoot
      ? { ...arc, x: centres[arc.t] }
      : { ...arc, from: place(arc, arc.head, arc.t), to: place(arc, arc.t, arc.head) },
  );
}

function arcElement(arc, sentence, base, context) {
  const token = sentence.tokens[arc.t];
  const pin = pinOf(token, context);
  const y = base - LEVEL * arc.level;
  const tip = arc.isRoot ? arc.x : arc.to;
  const middle = arc.isRoot ? arc.x : (arc.from + arc.to) / 2;
  const text = arcText(arc);
  const labelWidth = widthOf(text, SMALL, 600) + (pin ? 16 : 0);
  const line = arc.isRoot ? `M${arc.x} ${y}V${base - 7}` : curve(arc, y, base);
  return s(
    `g.arc.${context.model.colour(arc.label)}`,
    {
      role: "button",
      tabindex: "-1",
      "aria-haspopup": "dialog",
      "aria-label": spoken(token, sentence, pin),
      "--sure": (PALEST + (1 - PALEST) * arc.probability).toFixed(3),
      data: {
        sentence: sentence.index,
        token: arc.t,
        key: `${context.model.name}/arc/${sentence.index}/${arc.t}`,
        head: token.head,
        label: arc.label,
        probability: arc.probability,
        pinned: Boolean(pin),
        differs: Boolean(context.differs?.(token)),
      },
    },
    s("path.reach", { d: line }),
    s("path.line", { d: line }),
    s("path.tip", { d: `M${tip} ${base - 1}l-4.2 -8.4h8.4z` }),
    s("rect.behind", { x: middle - labelWidth / 2 - 5, y: y - 9, width: labelWidth + 10, height: 18, rx: 5 }),
    s("text.arc-label", { x: middle + (pin ? 7 : 0), y: y + 4, "text-anchor": "middle", "font-size": SMALL }, text),
    pin ? placedPin(middle - labelWidth / 2, y - 6) : null,
  );
}

function placedPin(x, y) {
  const icon = pinIcon();
  icon.setAttribute("x", x);
  icon.setAttribute("y", y);
  return icon;
}

function curve({ from, to }, y, base) {
  const [way, bend] = [to > from ? 1 : -1, Math.min(10, Math.abs(to - from) / 2)];
  return `M${from} ${base}V${y + bend}Q${from} ${y} ${from + way * bend} ${y}H${to - way * bend}Q${to} ${y} ${to} ${y + bend}V${base - 7}`;
}

function wordElement(sentence, t, x, width, base, context) {
  const token = sentence.tokens[t];
  return s(
    "g.word.arc-word",
    {
      role: "button",
      tabindex: "-1",
      "aria-haspopup": "dialog",
      "aria-label": spoken(token, sentence, pinOf(token, context)),
      data: { key: `${context.model.name}/${sentence.index}/${t}`, sentence: sentence.index, token: t },
    },
    s("rect.behind", { x: x - width / 2 + 4, y: base + 6, width: width - 8, height: 40, rx: 7 }),
    s("text", { x, y: base + 25, "text-anchor": "middle" }, token.text),
    s("rect.unsure", {
      x: x - widthOf(token.text, SIZE, 550) / 2,
      y: base + 33,
      width: widthOf(token.text, SIZE, 550),
      height: 1 + 4 * unsureness(token.entropy),
      rx: 1,
      "--unsure": unsureness(token.entropy).toFixed(3),
    }),
    token.tag ? s("text.tag", { x, y: base + 46, "text-anchor": "middle", "font-size": 11 }, token.tag) : null,
  );
}

const pinOf = (token, context) =>
  context.pins.find((pin) => pin.what === "head" && pin.start === token.start && pin.end === token.end);

function spoken(token, sentence, pin) {
  const head = token.head ? `hangs on ${sentence.tokens[token.head - 1].text}` : "is the root";
  const unsure = token.entropy > 0.5 ? `, unsure: ${bits(token.entropy)}` : "";
  return `${token.text} ${head}, ${token.label} ${shortPercent(token.probability)}${unsure}${pin ? ", pinned" : ""}`;
}
