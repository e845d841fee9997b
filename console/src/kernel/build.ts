/** Compares the console's build in the browser with the server's. After an update the files of the older build no longer exist. */

import { runsGoingOn } from "./runs";

const ENTRY = /\/console\/assets\/index-[^"']+\.js/;
const RELOADED = "medialedger reloaded for";

/** Reloads the page at the same address if the server has another build: not during writes, and once for each build. */
export async function reloadForNewBuild(): Promise<boolean> {
  const theirs = await entryOfServer();
  const ours = ENTRY.exec([...document.scripts].map((each) => each.src).join(" "))?.[0];
  if (runsGoingOn.peek().length > 0 || theirs === undefined || theirs === ours || sessionStorage.getItem(RELOADED) === theirs) return false;
  sessionStorage.setItem(RELOADED, theirs);
  location.reload();
  return true;
}

/** Removes style sheets that could not be loaded, because a style sheet in the document counts as loaded the next time. */
export function forgetBrokenStyles(): void {
  const broken = (event: Event): void => void (event.target instanceof HTMLLinkElement && event.target.rel === "stylesheet" && event.target.remove());
  document.addEventListener("error", broken, { capture: true });
}

async function entryOfServer(): Promise<string | undefined> {
  try {
    const response = await fetch("/console/", { cache: "no-store", signal: AbortSignal.timeout(10_000) });
    return response.ok ? ENTRY.exec(await response.text())?.[0] : undefined;
  } catch {
    return undefined;
  }
}
