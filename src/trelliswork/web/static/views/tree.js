// The phrase tree, drawn by the page so that every constituent can be pointed at.

import { h, s } from "../dom.js";
import { shortPercent } from "../format.js";
import { widthOf } from "./arcs.js";
import { pinIcon } from "./words.js";

const [LEVEL, GAP, MARGIN, SIZE] = [54, 18, 16, 16];

/** A tree in brackets as nodes {label, start, end, children}; leaves are {word, start, end}. */
export function parseBrackets(written) {
  const pieces = written.match(/[()]|[^\s()]+/g) ?? [];
  const stack = [{ children: [] }];
  let n = 0;
  for (let i = 0; i < pieces.length; i += 1) {
    const top = stack[stack.length - 1];
    if (pieces[i] === "(") {
      const label = pieces[i + 1] === "(" || pieces[i + 1] === ")" ? "" : pieces[(i += 1)];
      const node = { label, start: n, end: n, children: [] };
      top.children.push(node);
      stack.push(node);
    } else if (pieces[i] === ")") {
      const node = stack.pop();
      node.end = n;
    } else {
      top.children.push({ word: pieces[i], start: n, end: (n += 1), children: [] });
    }
  }
  const [root] = stack[0].children;
  return root.label === "" && root.children.length === 1 ? root.children[0] : root;
}

/** The constituents of a tree as {start, end, label}; the tags of words are none. */
export function constituentsOf(node) {
  if (!node || node.word !== undefined || isTag(node)) return [];
  return [{ start: node.start, end: node.end, label: node.label }, ...node.children.flatMap(constituentsOf)];
}

const isTag = (node) => node.children.length === 1 && node.children[0].word !== undefined;

/** A sentence with its tree, in a box that scrolls sideways. */
export function treeElement(sentence, context) {
  const root = measured(parseBrackets(sentence.value), sentence);
  place(root, MARGIN);
  const bottom = MARGIN + SIZE + LEVEL * root.height;
  const nodes = listed(root);
  const picture = s(
    "svg.tree",
    {
      width: root.width + 2 * MARGIN,
      height: bottom + 24,
      viewBox: `0 0 ${root.width + 2 * MARGIN} ${bottom + 24}`,
      role: "group",
      "aria-label": `Phrase tree: ${sentence.value}`,
      "font-size": SIZE,
    },
    ...nodes.flatMap((node) => node.children.map((child) => branch(node, child, bottom))),
    ...nodes.map((node) =>
      node.word === undefined ? nodeElement(node, sentence, bottom, context) : leafElement(node, bottom),
    ),
  );
  return h("div.scroll", { tabindex: "-1" }, picture);
}

function measured(node, sentence) {
  node.children.forEach((child) => measured(child, sentence));
  if (node.word !== undefined) node.word = sentence.tokens[node.start]?.text ?? node.word;
  const below =
    node.children.reduce((sum, child) => sum + child.width, 0) + GAP * Math.max(0, node.children.length - 1);
  node.height = node.children.length ? 1 + Math.max(...node.children.map((child) => child.height)) : 0;
  node.width = Math.max(
    widthOf(node.word ?? node.label, SIZE, 600) + 12,
    below,
    node.word === undefined && !isTag(node) ? 44 : 0,
  );
  node.inner = below;
  return node;
}

function place(node, left) {
  node.x = left + node.width / 2;
  let at = left + (node.width - node.inner) / 2;
  for (const child of node.children) {
    place(child, at);
    at += child.width + GAP;
  }
}

const listed = (node) => [node, ...node.children.flatMap(listed)];
const levelOf = (node, bottom) => bottom - LEVEL * node.height;

function branch(node, child, bottom) {
  const start = levelOf(node, bottom) + (isTag(node) ? 8 : 24);
  const end = levelOf(child, bottom) - SIZE - 3;
  const turn = Math.min(start + 14, end);
  return s("path.branch", { d: `M${node.x} ${start}L${child.x} ${turn}V${end}` });
}

function nodeElement(node, sentence, bottom, context) {
  const y = levelOf(node, bottom);
  if (isTag(node)) return s("text.tag", { x: node.x, y, "text-anchor": "middle" }, node.label);
  const [first, last] = [sentence.tokens[node.start], sentence.tokens[node.end - 1]];
  const pin = context.pins.find(
    (each) =>
      each.what === "bracket" && each.start === first.start && each.end === last.end && each.value === node.label,
  );
  const found = sentence.spans.find(
    (span) => span.start === node.start && span.end === node.end && span.label === node.label,
  );
  const sure = found?.probability;
  const words = sentence.tokens
    .slice(node.start, node.end)
    .map((token) => token.text)
    .join(" ");
  const width = Math.max(widthOf(node.label, SIZE, 600), 34) + (pin ? 30 : 14);
  return s(
    `g.word.constituent.${context.model.colour(node.label)}`,
    {
      role: "button",
      tabindex: "-1",
      "aria-haspopup": "dialog",
      "aria-label": `${node.label} ${sure === undefined ? "" : shortPercent(sure)}: ${words}${pin ? ", pinned" : ""}`,
      data: {
        key: `${context.model.name}/node/${sentence.index}/${node.start}-${node.end}-${node.label}`,
        sentence: sentence.index,
        first: node.start,
        last: node.end,
        label: node.label,
        probability: sure,
        pinned: Boolean(pin),
      },
    },
    s("rect.behind", { x: node.x - width / 2, y: y - SIZE - 3, width, height: sure === undefined ? 26 : 40, rx: 8 }),
    s("text.name", { x: node.x + (pin ? 7 : 0), y, "text-anchor": "middle" }, node.label),
    pin ? placedIcon(node.x - width / 2 + 5, y - 11) : null,
    sure === undefined
      ? null
      : s("text.share", { x: node.x, y: y + 15, "text-anchor": "middle", "font-size": 11 }, shortPercent(sure)),
  );
}

function placedIcon(x, y) {
  const icon = pinIcon();
  icon.setAttribute("x", x);
  icon.setAttribute("y", y);
  return icon;
}

function leafElement(node, bottom) {
  return s("text.leaf", { x: node.x, y: bottom + 8, "text-anchor": "middle" }, node.word);
}
