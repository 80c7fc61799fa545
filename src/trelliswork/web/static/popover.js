// A small window at a word: what it may be, with probabilities. Arrow keys move, Enter or a digit chooses, Escape closes.

import { byId, h } from "./dom.js";
import { percent } from "./format.js";

const EDGE = 12;
const [FIRST_SHOWN, ALWAYS_SHOWN, LEAST_SHOWN] = [9, 4, 0.0005]; // of the options: at most, at least, and how probable
let opened = null;

/**
 * Open at `anchor`. `content` is {title, note, groups: [{heading, options}], actions}; an option is
 * {label, detail, probability, colour, isChosen, isPinned, choose}; an action is {label, act}.
 */
export function openPopover(anchor, content) {
  const box = byId("popover");
  opened = { key: anchor.dataset.key, content };
  box.replaceChildren(...contents(content));
  box.setAttribute("aria-label", content.title);
  box.hidden = false;
  place(box, anchor);
  (
    box.querySelector('[aria-selected="true"]') ??
    box.querySelector("[role=option]") ??
    box.querySelector("button")
  )?.focus();
}

export function closePopover({ refocus = true } = {}) {
  const box = byId("popover");
  if (box.hidden) return;
  box.hidden = true;
  const key = opened?.key;
  opened = null;
  if (refocus && key) focusKey(key);
}

export const isOpen = () => opened !== null;

/** The focus on the element of this key, which may have been drawn anew. */
export function focusKey(key) {
  document.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

function contents({ title, note, groups, actions = [] }) {
  let number = 0;
  return [
    h("p.popover-title", {}, h("bdi", {}, title)),
    note ? h("p.note", {}, note) : null,
    ...groups.map((group) => {
      const shown = group.options.map((option) => optionElement(option, (number += 1)));
      const rest = shown.filter(
        (_, i) => i >= FIRST_SHOWN || (i >= ALWAYS_SHOWN && group.options[i].probability < LEAST_SHOWN),
      );
      rest.forEach((each) => (each.hidden = true));
      return h(
        "div.choice-group",
        {},
        group.heading ? h("p.over", {}, group.heading) : null,
        h("div.choices", { role: "listbox", "aria-label": group.heading ?? title }, ...shown),
        rest.length ? moreButton(rest) : null,
      );
    }),
    actions.length
      ? h(
          "div.popover-actions",
          {},
          ...actions.map(({ label, act }) => h("button.quiet", { type: "button", onclick: () => finish(act) }, label)),
        )
      : null,
  ].filter(Boolean);
}

function moreButton(rest) {
  const button = h("button.quiet.more", { type: "button" }, `${rest.length} more`);
  button.addEventListener("click", () => {
    rest.forEach((each) => (each.hidden = false));
    button.remove();
    rest[0].focus();
  });
  return button;
}

function optionElement(option, number) {
  const sure = option.probability;
  return h(
    `div.choice.${option.colour ?? "cx"}`,
    {
      role: "option",
      tabindex: "-1",
      "aria-selected": option.isChosen ? "true" : "false",
      data: { number, label: option.label, probability: sure },
      onclick: () => finish(option.choose),
    },
    h("span.mark", { "aria-hidden": "true" }, option.isChosen ? "✓" : number <= FIRST_SHOWN ? String(number) : ""),
    h(
      "span.choice-name",
      {},
      h("b", {}, option.label),
      option.detail ? h("span.soft", {}, " ", h("bdi", {}, option.detail)) : null,
    ),
    sure === undefined ? null : h("span.meter", { "aria-hidden": "true", "--part": sure.toFixed(4) }),
    sure === undefined ? null : h("span.share", { title: String(sure) }, percent(sure)),
  );
}

function finish(act) {
  closePopover();
  act();
}

function place(box, anchor) {
  const at = anchor.getBoundingClientRect();
  const [width, height] = [box.offsetWidth, box.offsetHeight];
  const left = Math.max(
    EDGE,
    Math.min(at.left + at.width / 2 - width / 2, document.documentElement.clientWidth - width - EDGE),
  );
  const below = at.bottom + 8;
  const isBelow = below + height < innerHeight - EDGE || at.top < height + EDGE;
  box.style.left = `${left + scrollX}px`;
  box.style.top = `${(isBelow ? below : at.top - height - 8) + scrollY}px`;
}

export function startPopover() {
  const box = byId("popover");
  box.addEventListener("keydown", (event) => {
    const options = Array.from(box.querySelectorAll(".choice:not([hidden]), .more, .popover-actions button"));
    const at = options.indexOf(document.activeElement);
    if (event.key === "Escape") closePopover();
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      options[(at + (event.key === "ArrowDown" ? 1 : -1) + options.length) % options.length]?.focus();
    } else if ((event.key === "Enter" || event.key === " ") && options[at]) options[at].click();
    else if (/^[1-9]$/.test(event.key) && !event.ctrlKey && !event.metaKey)
      box.querySelector(`.choice[data-number="${event.key}"]`)?.click();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  box.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !box.contains(event.relatedTarget)) closePopover({ refocus: false });
  });
  document.addEventListener("pointerdown", (event) => {
    if (!box.hidden && !box.contains(event.target)) closePopover({ refocus: false });
  });
}
