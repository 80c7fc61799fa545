// Light, dark, or as the system has it; the choice is kept in this browser.

import { h } from "./dom.js";

const KEY = "trelliswork-theme";
const ORDER = ["system", "light", "dark"];

export function startTheme(button) {
  let theme = stored();
  const show = () => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.replaceChildren(h("span.theme-word", {}, "Theme: "), theme);
  };
  button.addEventListener("click", () => {
    theme = ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length];
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // a browser that keeps nothing: the choice holds until the page is closed
    }
    show();
  });
  show();
}

function stored() {
  try {
    const theme = localStorage.getItem(KEY);
    return ORDER.includes(theme) ? theme : "system";
  } catch {
    return "system";
  }
}
