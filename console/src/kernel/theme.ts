/** Light or dark theme: the system's, unless the user has chosen. */

import { signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const NAME = "medialedger theme";
export const theme = signal<Theme>("system");

export function startTheme(): void {
  const kept = localStorage.getItem(NAME);
  setTheme(kept === "light" || kept === "dark" ? kept : "system");
}

export function setTheme(chosen: Theme): void {
  theme.value = chosen;
  if (chosen === "system") {
    localStorage.removeItem(NAME);
    delete document.documentElement.dataset["theme"];
  } else {
    localStorage.setItem(NAME, chosen);
    document.documentElement.dataset["theme"] = chosen;
  }
}

export function nextTheme(): void {
  const order: Theme[] = ["system", "light", "dark"];
  setTheme(order[(order.indexOf(theme.value) + 1) % order.length]!);
}
