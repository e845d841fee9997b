/** The sign of the product. */
export function Mark({ size = 24 }: { size?: number }) {
  return (
    <svg class="mark" width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" />
      <path d="M7 23V9l9 9 9-9v14" />
      <circle cx="25" cy="8" r="4" />
    </svg>
  );
}
