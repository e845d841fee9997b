import type { MediaEvent } from "../../../kernel/api";
import type { Playhead } from "../Playhead";

/** What a tab is given. */
export interface TabProps {
  event: MediaEvent;
  etag: string | null;
  /** Of the player above the tab. */
  playhead: Playhead;
  /** To be called after a change of the Event. */
  changed: () => void;
}
