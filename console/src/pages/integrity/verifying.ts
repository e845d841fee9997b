/** A verification of the log in pages: it shows its progress, continues after damaged positions, and can be ended. */

import { signal } from "@preact/signals";
import { api, dataOf, type Failure } from "../../kernel/api";
import { asFailure } from "../../kernel/failure";

export interface Bad {
  position: number;
  reason: string;
}

export interface Verifying {
  state: "running" | "done" | "ended" | "failed";
  /** Number of verified positions. */
  checked: number;
  /** The end of the log when it began. */
  head: number;
  bad: readonly Bad[];
  startedAt: number;
  seconds: number;
  failure: Failure | null;
}

/** Events of one page. */
const PAGE = 5000;
/** Damaged positions after which it ends, because such a log is not repaired one by one. */
export const MOST = 100;
/** The verification, which continues while other pages are shown. */
export const verifying = signal<Verifying | null>(null);
let end: AbortController | null = null;

/** Verifies all up to `head`, the end of the log. */
export async function verifyAll(head: number): Promise<void> {
  end?.abort();
  const own = new AbortController();
  end = own;
  const startedAt = Date.now();
  verifying.value = { state: "running", checked: 0, head, bad: [], startedAt, seconds: 0, failure: null };
  const tell = (changed: Partial<Verifying>): void => {
    if (end === own && verifying.value) verifying.value = { ...verifying.value, seconds: (Date.now() - startedAt) / 1000, ...changed };
  };
  try {
    let after: number | null = 0;
    const bad: Bad[] = [];
    while (after !== null && bad.length < MOST) {
      const found: Page = await page(after, own.signal);
      if (own.signal.aborted) return;
      if (found.bad) bad.push(found.bad);
      tell({ checked: found.checked, bad: [...bad] });
      after = found.next;
    }
    tell({ state: "done", ...(bad.length < MOST ? { checked: Math.max(head, verifying.value?.checked ?? 0) } : {}) });
  } catch (thrown) {
    if (!own.signal.aborted) tell({ state: "failed", failure: asFailure(thrown) });
  }
}

export function endVerifying(): void {
  end?.abort();
  if (verifying.value?.state === "running") verifying.value = { ...verifying.value, state: "ended" };
}

interface Page {
  checked: number;
  bad: Bad | null;
  next: number | null;
}

async function page(after: number, signal: AbortSignal): Promise<Page> {
  const found = await dataOf(api.GET("/api/audit/verify", { params: { query: { after, pageSize: PAGE } }, signal }));
  if (found.valid) return { checked: found.checked, bad: null, next: nextOf(found.next) };
  const resume = found.resumeAfter ?? null;
  const bad = { position: found.firstBadPosition ?? found.checked + 1, reason: found.reason ?? "" };
  return { checked: resume ?? bad.position, bad, next: resume !== null && resume > after ? resume : null };
}

function nextOf(address: string | null | undefined): number | null {
  const after = address ? new URL(address, location.origin).searchParams.get("after") : null;
  return after === null ? null : Number(after);
}
