/** Line icons, 24 units wide. They say nothing that a word beside them does not say. */

const PATHS = {
  onair: "M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6M7.8 16.2a6 6 0 0 1 0-8.4m8.4 0a6 6 0 0 1 0 8.4M4.9 19.1a10 10 0 0 1 0-14.2m14.2 0a10 10 0 0 1 0 14.2",
  events: "M4 6h16v14H4zM4 10h16M8 3v4m8-4v4",
  jobs: "M4 5h7v5H4zM13 14h7v5h-7zM7.5 10v6.500H13",
  deliveries: "M3 12h13m-5-5 5 5-5 5M20 5v14",
  health: "M3 12h4l2.500-6 4 12 2.500-6H21",
  audit: "M6 3h9l4 4v14H6zM9 11h7M9 15h7",
  integrity: "M12 3l8 3v6c0 5-3.500 8-8 9-4.500-1-8-4-8-9V6zM9 12l2.200 2.200L15.500 10",
  schedule: "M4 5h16v15H4zM4 10h16M10 10v10M15 10v10",
  destinations: "M12 21V10m0 0-4 4m4-4 4 4M5 8a7 7 0 0 1 14 0",
  infrastructure: "M4 4h16v6H4zM4 14h16v6H4zM8 7h.01M8 17h.01",
  clients: "M9 11a4 4 0 1 0 0-8 4 4 0 0 0 0 8M2 21c0-4 3-6 7-6s7 2 7 6M17 4a4 4 0 0 1 0 7m2 4c2 .7 3 2.500 3 6",
  menu: "M4 7h16M4 12h16M4 17h16",
  close: "M6 6l12 12M18 6 6 18",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 2v2m0 16v2M4.900 4.900l1.400 1.400m11.400 11.400 1.400 1.400M2 12h2m16 0h2M4.900 19.100l1.400-1.400M17.700 6.300l1.400-1.400",
  moon: "M20 14.500A8.500 8.500 0 0 1 9.500 4a8.500 8.500 0 1 0 10.500 10.500",
  system: "M4 5h16v11H4zM9 20h6m-3-4v4",
  out: "M10 4H5v16h5M15 8l4 4-4 4m4-4H9",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14m5 12 5 5",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  check: "M5 13l4 4L19 7",
  up: "M6 15l6-6 6 6",
  down: "M6 9l6 6 6-6",
  left: "M15 6l-6 6 6 6",
  right: "M9 6l6 6-6 6",
  refresh: "M20 11a8 8 0 1 0-2.300 6.300M20 5v6h-6",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
