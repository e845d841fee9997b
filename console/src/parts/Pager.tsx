import { Button } from "./Button";

interface PagerProps {
  page: number;
  pageSize: number;
  total: number;
  onPage: (page: number) => void;
}

/** Leads through the pages of a list, which begin with 1. */
export function Pager({ page, pageSize, total, onPage }: PagerProps) {
  const last = Math.max(1, Math.ceil(total / pageSize));
  const first = total === 0 ? 0 : (page - 1) * pageSize + 1;
  return (
    <nav class="pager" aria-label="Pages of the list">
      <span class="faint">
        {first.toLocaleString("en")}–{Math.min(page * pageSize, total).toLocaleString("en")} of {total.toLocaleString("en")}
      </span>
      <Button kind="quiet" icon="left" label="Previous page" disabled={page <= 1} onClick={() => onPage(page - 1)} />
      <span>
        Page {page} of {last}
      </span>
      <Button kind="quiet" icon="right" label="Next page" disabled={page >= last} onClick={() => onPage(page + 1)} />
    </nav>
  );
}

/** How many rows of a list were read that goes on when somebody scrolls. */
export function Shown({ count, more }: { count: number; more: boolean }) {
  return (
    <p class="pager faint" role="status">
      {count.toLocaleString("en")} {more ? "read, scroll for more" : "in all"}
    </p>
  );
}
