import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { reloadForNewBuild } from "../kernel/build";
import { onReturn } from "../kernel/changes";
import { Button } from "./Button";
import { PageHead, Skeleton } from "./Small";

/** Milliseconds before each further try. */
const WAITS = [1000, 2000, 5000, 10_000];

/** A component whose code is loaded when it is first shown. What cannot be loaded is tried again, and after an update of the server the
 * page is loaded anew, unless writes are going on. `title` heads the page meanwhile. */
export function loaded<Props extends object>(load: () => Promise<{ default: ComponentType<Props> }>, title?: string): ComponentType<Props> {
  let known: ComponentType<Props> | null = null;
  let open: Promise<void> | null = null;
  const begin = (): Promise<void> =>
    (open ??= load().then(
      (module) => void (known = module.default),
      (thrown: unknown) => {
        open = null;
        throw thrown;
      },
    ));
  return function Loaded(props) {
    const [tries, setTries] = useState(0);
    const [failed, setFailed] = useState(false);
    const [, draw] = useState(false);
    const again = (): void => setTries((before) => before + 1);
    useEffect(() => {
      if (known !== null) return;
      let timer: ReturnType<typeof setTimeout> | undefined;
      let isOver = false;
      begin().then(
        () => isOver || draw(true),
        async () => {
          if (isOver || (await reloadForNewBuild()) || isOver) return;
          setFailed(true);
          timer = setTimeout(again, WAITS[Math.min(tries, WAITS.length - 1)]);
        },
      );
      return () => {
        isOver = true;
        clearTimeout(timer);
      };
    }, [tries]);
    useEffect(() => onReturn(again), []);
    if (known !== null) {
      const Known = known;
      return <Known {...props} />;
    }
    return (
      <>
        {title && <PageHead title={title} />}
        {failed ? <NotLoaded again={again} /> : <Skeleton />}
      </>
    );
  };
}

function NotLoaded({ again }: { again: () => void }) {
  return (
    <div class="failure" role="alert">
      <p>
        <strong>This part of the console could not be loaded.</strong> The console retries automatically.
      </p>
      <div class="page-actions">
        <Button icon="refresh" onClick={again}>
          Try again
        </Button>
        <Button kind="quiet" onClick={() => location.reload()}>
          Reload the page
        </Button>
      </div>
    </div>
  );
}
