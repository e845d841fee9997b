import { effect } from "@preact/signals";
import { LocationProvider, Router, Route, useLocation } from "preact-iso";
import { useEffect } from "preact/hooks";
import { oldSince } from "../kernel/changes";
import { forgetAnswers } from "../kernel/query";
import { BASE, to } from "../kernel/router";
import { may, resumeSession, session, sessionFailure, type Role } from "../kernel/session";
import { PAGES, type Page, type PageProps } from "../pages";
import { EmptyState, FailureNote, PageHead, PageToasts, Skeleton, loaded } from "../parts";
import { Boundary } from "./Boundary";
import { Frame } from "./Frame";
import { Login } from "./Login";

const ROUTES = PAGES.map((page) => ({ page, component: guarded(page) }));

effect(() => {
  if (session.value === null) forgetAnswers();
});
effect(() => {
  document.documentElement.toggleAttribute("data-old", oldSince.value !== null);
});

/** The console: the login, or the frame with the page of the address. */
export function App() {
  return (
    <LocationProvider scope={BASE}>
      <Content />
      <PageToasts />
    </LocationProvider>
  );
}

function Content() {
  const who = session.value;
  if (who === undefined && sessionFailure.value) {
    return (
      <main class="alone">
        <FailureNote failure={sessionFailure.value} retry={() => void resumeSession()} />
      </main>
    );
  }
  if (who === undefined) return <Skeleton />;
  if (who === null) return <Login />;
  return (
    <Frame>
      <Pages />
    </Frame>
  );
}

function Pages() {
  const { path } = useLocation();
  return (
    <Boundary key={path}>
      <Router>
        {ROUTES.map(({ page, component }) => (
          <Route key={page.path} path={`${BASE}${page.path}`} component={component} />
        ))}
        <Route default component={NoSuchPage} />
      </Router>
    </Boundary>
  );
}

/** A page for users with one of its roles. Created once for each page, because the router remounts a page whose component changes. */
function guarded(page: Page) {
  const Shown = loaded(page.load, page.title);
  return function Guarded({ params }: PageProps) {
    if (may(...page.roles)) return <Shown params={params} />;
    return page.path === "/" ? <Home /> : <NotAllowed page={page} />;
  };
}

/** Redirects users who may not see the first page to a page that they may see. */
function Home() {
  const { route } = useLocation();
  const first = PAGES.find((page) => page.nav && page.path !== "/" && may(...page.roles));
  useEffect(() => {
    if (first) route(to(first.path), true);
  }, [first]);
  return first ? null : <EmptyState title="Nothing to see here">Your roles open no page of the console.</EmptyState>;
}

function NotAllowed({ page }: { page: Page }) {
  return (
    <>
      <PageHead title={page.title} />
      <EmptyState title="Your role does not open this page">{needed(page.roles)}</EmptyState>
    </>
  );
}

function needed(roles: readonly Role[]): string {
  const all = [...new Set<Role>([...roles, "admin"])];
  return all.length === 1 ? `It needs the role ${all[0]}.` : `It needs one of the roles ${all.join(", ")}.`;
}

function NoSuchPage() {
  return (
    <>
      <PageHead title="No such page" />
      <EmptyState title="This page does not exist" action={<a href={to("/")}>To the first page</a>} />
    </>
  );
}
