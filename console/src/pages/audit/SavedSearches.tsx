import { useState } from "preact/hooks";
import { to } from "../../kernel/router";
import { toastFailure } from "../../kernel/toasts";
import { Button, Dialog, Field, useSubmit } from "../../parts";
import { forgetSearch, saveSearch, searches } from "./searches";

/** Saved searches as links, and a button that saves the current filters. */
export function SavedSearches({ query }: { query: Record<string, string> }) {
  const [open, setOpen] = useState(false);
  const isAny = Object.keys(query).length > 0;
  if (!isAny && searches.value.length === 0) return null;
  return (
    <nav class="searches" aria-label="Saved searches">
      {searches.value.map((each) => (
        <span key={each.name} class="search-chip">
          <a href={to("/audit", each.query)}>
            <bdi>{each.name}</bdi>
          </a>
          <Button kind="quiet" icon="close" label={`Forget ${each.name}`} onClick={() => forget(each.name)} />
        </span>
      ))}
      {isAny && (
        <Button kind="quiet" onClick={() => setOpen(true)}>
          Save this search
        </Button>
      )}
      {open && <SaveDialog query={query} onClose={() => setOpen(false)} />}
    </nav>
  );
}

function forget(name: string): void {
  try {
    forgetSearch(name);
  } catch (thrown) {
    toastFailure("The search could not be removed", thrown);
  }
}

function SaveDialog({ query, onClose }: { query: Record<string, string>; onClose: () => void }) {
  const [name, setName] = useState("");
  const form = useSubmit(async () => {
    saveSearch({ name: name.trim().slice(0, 60), query });
    onClose();
  });
  return (
    <Dialog title="Save this search" open onClose={onClose}>
      <form onSubmit={form.submit} class="save-search">
        <Field label="Name" name="name" value={name} onInput={setName} required autoFocus hint="Stored in this browser. A search of the same name is replaced." />
        {form.failure && <p role="alert">{form.failure.detail}</p>}
        <Button kind="primary" type="submit" disabled={name.trim() === ""}>
          Save
        </Button>
      </form>
    </Dialog>
  );
}
