/** The list of all pages. The navigation shows those that have `nav`, in this order, to callers with one of `roles`. */

import type { ComponentType } from "preact";
import type { Role } from "../kernel/session";
import type { IconName } from "../parts/Icon";

export interface PageProps {
  /** The parameters of the path, decoded: `/events/:id` gives `id`. */
  params: Readonly<Record<string, string>>;
}

export interface Page {
  /** Below /console, with parameters: `/events/:id`. */
  path: string;
  title: string;
  /** One of these is enough; the role admin sees all. */
  roles: readonly Role[];
  /** `key`: `g` and this letter lead there. */
  nav?: { icon: IconName; key: string };
  load: () => Promise<{ default: ComponentType<PageProps> }>;
}

const READERS: readonly Role[] = ["viewer", "operator", "auditor"];

export const PAGES: readonly Page[] = [
  { path: "/events", title: "Events", roles: READERS, nav: { icon: "events", key: "e" }, load: () => import("./events/EventsPage") },
  { path: "/events/:id", title: "Event", roles: READERS, load: () => import("./event/EventPage") },
  { path: "/schedule", title: "Schedule", roles: READERS, nav: { icon: "schedule", key: "s" }, load: () => import("./schedule/SchedulePage") },
  { path: "/destinations", title: "Destinations", roles: READERS, nav: { icon: "destinations", key: "t" }, load: () => import("./destinations/DestinationsPage") },
  { path: "/clients", title: "Clients and keys", roles: ["admin"], nav: { icon: "clients", key: "c" }, load: () => import("./clients/ClientsPage") },
];
