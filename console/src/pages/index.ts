/** The list of all pages. The navigation shows those that have `nav`, in this order, to callers with one of `roles`. */

import type { ComponentType } from "preact";
import type { Role } from "../kernel/session";
import type { IconName } from "../parts/Icon";

export interface PageProps {
  /** The parameters of the path, decoded: `/events/:id` gives `id`. */
  params: Readonly<Record<string, string>>;
}

export interface Page {
  /** The path below /console, with parameters: `/events/:id`. */
  path: string;
  title: string;
  /** Roles, of which one is sufficient; the role admin sees all pages. */
  roles: readonly Role[];
  /** The entry in the navigation. The keys `g` and `key` open the page. */
  nav?: { icon: IconName; key: string };
  load: () => Promise<{ default: ComponentType<PageProps> }>;
}

const READERS: readonly Role[] = ["viewer", "operator", "auditor"];

export const PAGES: readonly Page[] = [
  { path: "/", title: "On air", roles: READERS, nav: { icon: "onair", key: "o" }, load: () => import("./onair/OnAirPage") },
  { path: "/schedule", title: "Schedule", roles: READERS, nav: { icon: "schedule", key: "s" }, load: () => import("./schedule/SchedulePage") },
  { path: "/events", title: "Events", roles: READERS, nav: { icon: "events", key: "e" }, load: () => import("./events/EventsPage") },
  { path: "/events/:id", title: "Event", roles: READERS, load: () => import("./event/EventPage") },
  { path: "/jobs", title: "Jobs", roles: READERS, nav: { icon: "jobs", key: "j" }, load: () => import("./jobs/JobsPage") },
  { path: "/jobs/new", title: "New job", roles: READERS, load: () => import("./submit/SubmitPage") },
  { path: "/jobs/:id", title: "Job", roles: READERS, load: () => import("./job/JobPage") },
  { path: "/deliveries", title: "Deliveries", roles: READERS, nav: { icon: "deliveries", key: "d" }, load: () => import("./deliveries/DeliveriesPage") },
  { path: "/destinations", title: "Destinations", roles: READERS, nav: { icon: "destinations", key: "t" }, load: () => import("./destinations/DestinationsPage") },
  { path: "/infrastructure", title: "Infrastructure", roles: READERS, nav: { icon: "infrastructure", key: "f" }, load: () => import("./infrastructure/InfrastructurePage") },
  { path: "/health", title: "Health", roles: READERS, nav: { icon: "health", key: "h" }, load: () => import("./health/HealthPage") },
  { path: "/events/:id/history", title: "History", roles: ["auditor"], load: () => import("./history/HistoryPage") },
  { path: "/audit", title: "Audit", roles: ["auditor"], nav: { icon: "audit", key: "a" }, load: () => import("./audit/AuditPage") },
  { path: "/integrity", title: "Integrity", roles: ["auditor"], nav: { icon: "integrity", key: "i" }, load: () => import("./integrity/IntegrityPage") },
  { path: "/audit/:kind/:id", title: "History", roles: ["auditor"], load: () => import("./history/HistoryPage") },
  { path: "/clients", title: "Clients and keys", roles: ["admin"], nav: { icon: "clients", key: "c" }, load: () => import("./clients/ClientsPage") },
];
