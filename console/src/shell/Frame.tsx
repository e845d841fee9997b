import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { useKey } from "../kernel/keys";
import { useLocation } from "../kernel/router";
import { ConnectionBand, UnreadNote } from "../parts";
import { Header } from "./Header";
import { KeysDialog } from "./KeysDialog";
import { Navigation } from "./Navigation";
import { QuietNote } from "./QuietNote";
import { Search } from "./Search";

/** The frame of every page: skip link, header, navigation. */
export function Frame({ children }: { children: ComponentChildren }) {
  const [menu, setMenu] = useState(false);
  const [keys, setKeys] = useState(false);
  const [search, setSearch] = useState(false);
  const { path } = useLocation();
  const main = useRef<HTMLElement>(null);
  const first = useRef(true);
  useEffect(() => {
    setMenu(false);
    if (first.current) first.current = false;
    else main.current?.focus({ preventScroll: true }); // screen readers continue at the new page
    main.current?.scrollTo(0, 0);
  }, [path]);
  useKey("?", "Show these keys", useCallback(() => setKeys(true), []));
  useKey("/", "Go to the search of the page", focusSearch);
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
      event.preventDefault();
      if (document.querySelector("dialog[open]") === null) setSearch(true);
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
  useEffect(() => {
    if (!menu) return;
    const close = (event: KeyboardEvent): void => void (event.key === "Escape" && setMenu(false));
    document.addEventListener("keydown", close);
    return () => document.removeEventListener("keydown", close);
  }, [menu]);
  return (
    <div class="frame">
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), main.current?.focus())}>
        Skip to the content
      </a>
      <Header menu={menu} onMenu={() => setMenu(!menu)} onKeys={() => setKeys(true)} onSearch={() => setSearch(true)} />
      <ConnectionBand />
      <Navigation open={menu} />
      {menu && <div class="shade" onClick={() => setMenu(false)} />}
      <main id="main" ref={main} tabIndex={-1}>
        <QuietNote />
        <UnreadNote />
        {children}
      </main>
      <Search open={search} onClose={() => setSearch(false)} />
      <KeysDialog open={keys} onClose={() => setKeys(false)} />
    </div>
  );
}

function focusSearch(): void {
  document.querySelector<HTMLElement>("[data-search]")?.focus();
}
