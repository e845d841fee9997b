import { useCallback } from "preact/hooks";
import { useKey } from "../kernel/keys";
import { to, useLocation } from "../kernel/router";
import { may } from "../kernel/session";
import { PAGES, type Page } from "../pages";
import { Icon } from "../parts";

/** Links to the pages that the user may see. */
export function Navigation({ open }: { open: boolean }) {
  const pages = PAGES.filter((page) => page.nav && may(...page.roles));
  return (
    <nav id="navigation" class={open ? "navigation open" : "navigation"} aria-label="Console">
      <ul>
        {pages.map((page) => (
          <Entry key={page.path} page={page} />
        ))}
      </ul>
    </nav>
  );
}

function Entry({ page }: { page: Page }) {
  const { path, route } = useLocation();
  const href = to(page.path);
  const here = path === href.replace(/\/$/, "") || (page.path !== "/" && path.startsWith(`${href}/`));
  useKey(`g ${page.nav!.key}`, `Go to ${page.title}`, useCallback(() => route(href), [route, href]));
  return (
    <li>
      <a href={href} aria-current={here ? "page" : undefined}>
        <Icon name={page.nav!.icon} />
        {page.title}
      </a>
    </li>
  );
}
