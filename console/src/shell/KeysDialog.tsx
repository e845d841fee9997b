import { bindings } from "../kernel/keys";
import { Dialog } from "../parts";

const OF_TABLES = [
  ["Ctrl K", "Search everything"],
  ["↑ ↓", "Go from row to row"],
  ["Enter", "Open the row"],
  ["Esc", "Close what is open"],
] as const;

/** The keys that work here and now. */
export function KeysDialog({ open, onClose }: { open: boolean; onClose: () => void }) {
  const known = [...bindings.value.map(({ keys, what }) => [keys, what] as const), ...OF_TABLES];
  return (
    <Dialog title="Keys" open={open} onClose={onClose}>
      <dl class="keys">
        {known.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              {keys.split(" ").map((each) => (
                <kbd key={each}>{each}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
