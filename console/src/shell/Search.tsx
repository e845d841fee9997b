import { effect, signal } from "@preact/signals";
import { useEffect, useId, useState } from "preact/hooks";
import { Failure, api, dataOf, found } from "../kernel/api";
import { useQuery } from "../kernel/query";
import { eventPath, jobPath, to, useLocation } from "../kernel/router";
import { may, session } from "../kernel/session";
import { EVENT_STATES, stateWord } from "../kernel/states";
import { PAGES } from "../pages";
import { isGuid } from "../pages/events/titles";
import { Dialog } from "../parts";

interface Hit {
  kind: string;
  name: string;
  more?: string;
  href: string;
}

const QUIET = 200;
const MOST = 8;
const recent = signal<readonly Hit[]>([]);

effect(() => {
  if (session.value === null) recent.value = [];
});

const isPage = (path: string): boolean => PAGES.some((page) => page.path === path && may(...page.roles));

/** Finds Events, rooms, channels, jobs by number, requests by transaction id, and pages. It is worked with the keyboard. */
export function Search({ open, onClose }: { open: boolean; onClose: () => void }) {
  return (
    <Dialog title="Search" open={open} onClose={onClose}>
      {open && <Box onClose={onClose} />}
    </Dialog>
  );
}

function Box({ onClose }: { onClose: () => void }) {
  const [typed, setTyped] = useState("");
  const [asked, setAsked] = useState("");
  const [chosen, setChosen] = useState(0);
  const id = useId();
  const { route } = useLocation();
  useEffect(() => {
    const timer = setTimeout(() => setAsked(typed.trim()), QUIET);
    return () => clearTimeout(timer);
  }, [typed]);
  useEffect(() => document.getElementById(`${id}-${chosen}`)?.scrollIntoView({ block: "nearest" }), [chosen, id]);
  const remote = useQuery(asked === "" ? null : `search ${asked}`, (signal) => remoteHits(asked, signal));
  useEffect(remote.tells, [remote.tells]);
  const isCurrent = asked === typed.trim() && !remote.loading.value && !remote.stale.value;
  const hits = typed.trim() === "" ? [...recent.value] : [...pageHits(typed), ...(isCurrent ? (remote.data.value ?? []) : [])];
  const at = Math.min(chosen, Math.max(0, hits.length - 1));
  const go = (hit: Hit): void => {
    recent.value = [hit, ...recent.value.filter((each) => each.href !== hit.href)].slice(0, MOST);
    onClose();
    route(hit.href);
  };
  const pressed = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) setChosen(hits.length === 0 ? 0 : (at + step + hits.length) % hits.length);
    else if (event.key === "Enter" && hits[at]) go(hits[at]);
    else return;
    event.preventDefault();
  };
  const said = typed.trim() === "" ? "" : !isCurrent && !remote.failure.value ? "Searching" : hits.length === 0 ? "Nothing found" : `${hits.length} found`;
  return (
    <div class="search-box">
      <input
        type="text"
        role="combobox"
        autoFocus
        aria-label="Search Events, rooms, channels, jobs, pages"
        aria-expanded={hits.length > 0}
        aria-controls={id}
        aria-autocomplete="list"
        aria-activedescendant={hits.length > 0 ? `${id}-${at}` : undefined}
        autoComplete="off"
        spellcheck={false}
        maxLength={200}
        value={typed}
        onInput={(event) => (setTyped(event.currentTarget.value), setChosen(0))}
        onKeyDown={pressed}
      />
      <p class="hint" role="status">
        {typed.trim() === "" ? (hits.length > 0 ? "Opened before" : "A title, a room, the number of a job, an id") : said}
      </p>
      {remote.failure.value && <p class="wrong">{remote.failure.value.detail}</p>}
      <ul id={id} class="hits" role="listbox" aria-label="Found">
        {hits.map((hit, index) => (
          <li key={`${hit.kind} ${hit.href}`} id={`${id}-${index}`} role="option" aria-selected={index === at} onClick={() => go(hit)} onPointerMove={() => setChosen(index)}>
            <span class="faint">{hit.kind}</span>
            <bdi>{hit.name}</bdi>
            {hit.more && <span class="faint">{hit.more}</span>}
          </li>
        ))}
      </ul>
    </div>
  );
}

function pageHits(typed: string): Hit[] {
  const text = typed.trim().toLowerCase();
  return PAGES.filter((page) => page.nav && may(...page.roles) && page.title.toLowerCase().includes(text)).map((page) => ({ kind: "Page", name: page.title, href: to(page.path) }));
}

async function remoteHits(text: string, signal: AbortSignal): Promise<Hit[]> {
  const byNumber = /^#?(\d{1,15})$/.exec(text);
  const jobs = byNumber && isPage("/jobs/:id") ? [{ kind: "Job", name: `Job ${byNumber[1]}`, href: jobPath(byNumber[1]!) }] : [];
  const requests = /^[!-~]{8,128}$/.test(text) && isPage("/audit") ? [{ kind: "Request", name: text, href: to("/audit", { transaction: text }) }] : [];
  const rest = may("viewer", "operator", "auditor") ? await Promise.all([eventById(text, signal), events(text, signal), places(text, signal)]) : [];
  return [...jobs, ...rest.flat(), ...requests];
}

async function eventById(text: string, signal: AbortSignal): Promise<Hit[]> {
  if (!isGuid(text)) return [];
  try {
    return [eventHit((await found(api.GET("/api/event/{id}", { params: { path: { id: text } }, signal }))).data)];
  } catch (thrown) {
    if (thrown instanceof Failure && thrown.isAbsent) return [];
    throw thrown;
  }
}

async function events(text: string, signal: AbortSignal): Promise<Hit[]> {
  const page = await dataOf(api.GET("/api/event/", { params: { query: { search: text, pageSize: MOST, order: "DESC" } }, signal }));
  return page.results.filter((each) => each.id !== text.toLowerCase()).map(eventHit);
}

function eventHit(event: { id: string; title: string; state: number; scheduledStart: string | null }): Hit {
  const start = event.scheduledStart?.slice(0, 10) ?? "";
  return { kind: "Event", name: event.title.slice(0, 200) || "Without a title", more: `${stateWord(EVENT_STATES, event.state).word} ${start}`, href: eventPath(event.id) };
}

/** Rooms and channels lead to their week in the schedule. */
async function places(text: string, signal: AbortSignal): Promise<Hit[]> {
  if (!isPage("/schedule")) return [];
  const [rooms, channels] = await Promise.all([dataOf(api.GET("/api/room/", { signal })), dataOf(api.GET("/api/channel/", { signal }))]);
  const matching = (names: string[]): string[] => [...new Set(names)].filter((name) => name.toLowerCase().includes(text.toLowerCase())).slice(0, MOST);
  return [
    ...matching(rooms.map((room) => room.Name)).map((room) => ({ kind: "Room", name: room, href: to("/schedule", { view: "week", room }) })),
    ...matching(channels.map((channel) => channel.name)).map((channel) => ({ kind: "Channel", name: channel, href: to("/schedule", { view: "week", by: "channel", channel }) })),
  ];
}
