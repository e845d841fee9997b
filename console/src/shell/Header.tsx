import { liveness, oldSince, type Liveness } from "../kernel/changes";
import { to } from "../kernel/router";
import { logout, session } from "../kernel/session";
import { nextTheme, theme } from "../kernel/theme";
import { absolute, clock, now, zone } from "../kernel/time";
import { toastFailure } from "../kernel/toasts";
import { Button } from "../parts";
import { Mark } from "./Mark";

const LIVENESS: Record<Liveness, readonly [word: string, tone: string, about: string]> = {
  connecting: ["Connecting", "busy", "The stream of changes is being opened."],
  live: ["Up to date", "ok", "This page follows every change."],
  paused: ["Paused", "off", "This page is hidden."],
  away: ["Database away", "warn", "The database does not answer. This page may be outdated."],
  lost: ["Not connected", "bad", "The connection is lost. This page may be outdated. The console reconnects automatically."],
  full: ["No live updates", "warn", "All places of the stream of changes are taken. The console retries automatically."],
  barred: ["No live updates", "off", "Your role may not see changes. This page shows the state when it was read."],
};
const THEMES = { system: ["system", "Theme of the system"], light: ["sun", "Light theme"], dark: ["moon", "Dark theme"] } as const;

interface HeaderProps {
  menu: boolean;
  onMenu: () => void;
  onKeys: () => void;
  onSearch: () => void;
}

export function Header({ menu, onMenu, onKeys, onSearch }: HeaderProps) {
  const [icon, label] = THEMES[theme.value];
  const signOut = (): void => void logout().catch((thrown: unknown) => toastFailure("Not signed out", thrown));
  return (
    <header class="header">
      <button type="button" class="button quiet bare menu" aria-expanded={menu} aria-controls="navigation" aria-label="Navigation" onClick={onMenu}>
        <svg class="icon" width="18" height="18" viewBox="0 0 24 24" aria-hidden="true">
          <path d="M4 7h16M4 12h16M4 17h16" />
        </svg>
      </button>
      <a class="brand" href={to("/")} aria-label="medialedger, first page">
        <Mark />
        <span>medialedger</span>
      </a>
      <Live />
      <span class="stretch" />
      <Button kind="quiet" icon="search" label="Search everything (Ctrl K)" onClick={onSearch} />
      <WallClock />
      <Button kind="quiet" icon={icon} label={`${label}. Change`} onClick={nextTheme} />
      <button type="button" class="button quiet bare help" aria-label="Keys" title="Keys (?)" onClick={onKeys}>
        ?
      </button>
      <Who />
      <Button kind="quiet" icon="out" label="Sign out" onClick={signOut} />
    </header>
  );
}

function Live() {
  const [word, tone, about] = LIVENESS[liveness.value];
  return (
    <span class={`badge live-badge tone-${tone}`} role="status" title={about}>
      <span class="badge-dot" aria-hidden="true" />
      {word}
    </span>
  );
}

function WallClock() {
  if (oldSince.value !== null) {
    return (
      <span class="wall-clock faint" title="The time of the server is not known.">
        –:–:–
      </span>
    );
  }
  const at = new Date(now.value);
  return (
    <span class="wall-clock" title={absolute(at)}>
      {clock(at, true)} <span class="faint">{zone(at)}</span>
    </span>
  );
}

function Who() {
  const who = session.value;
  if (!who) return null;
  return (
    <span class="who" title={`Session until ${absolute(new Date(who.expiresAt))}`}>
      <bdi>{who.client}</bdi>
      <span class="faint">{who.roles.join(", ")}</span>
    </span>
  );
}
