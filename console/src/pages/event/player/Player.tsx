import { useEffect, useRef, useState } from "preact/hooks";
import type shaka from "shaka-player";
import { api, dataOf, found, type MediaEvent } from "../../../kernel/api";
import { useQuery } from "../../../kernel/query";
import { isOnAir, isVod } from "../../../kernel/states";
import { reloadForNewBuild } from "../../../kernel/build";
import { clock } from "../../../kernel/time";
import { Answered, Button, EmptyState } from "../../../parts";
import { CAPTION_KINDS, captionsQuery, captionStems, languageWord } from "../captions";
import { type Playhead, timeText } from "../Playhead";
import { licenceServers, type Source, sources } from "./sources";
import { faultWord } from "./faults";
import "./player.css";

/** Number of reads of a manifest, a second apart, while changed captions are expected. */
const LOOKS = 20;
const GENERATING = 0;
const NAMED = /\.\.\/((?:captions|subtitles)\/[^"<\s]+)/g;

interface PlayerProps {
  event: MediaEvent;
  playhead: Playhead;
}

/** Plays the live stream or the film of an Event, HLS or DASH, unencrypted or with the DRM of the browser. */
export default function Player({ event, playhead }: PlayerProps) {
  const id = event.id;
  const phase = isOnAir(event.state) ? "live" : isVod(event.state) ? "film" : null;
  const playable = useQuery(phase === null ? null : `playable ${id} ${event.state} ${event.mp4State} ${event.channelId} ${event.flowId} ${event.vodDrm}`, async (signal) => {
    const query = { processVideo: true, viewUnpublished: true };
    const shown = found(api.GET("/api/event/{id}", { params: { path: { id }, query }, signal }));
    const hasFiles = phase === "film" && event.mp4State === 1;
    const metadata = hasFiles ? api.GET("/api/vod/{id}/metadata", { params: { path: { id } }, signal }) : null;
    return sources(event, (await shown).data.video, (await metadata)?.data?.files ?? []);
  });
  if (phase === null) {
    return <EmptyState title="There is nothing to play">It is not live, and it is not a film yet. While it is live its stream is shown here, later its film.</EmptyState>;
  }
  return (
    <Answered query={playable}>
      {(found) =>
        found.length > 0 ? (
          <Stage key={phase} sources={found} event={event} playhead={playhead} live={phase === "live"} />
        ) : (
          <EmptyState title="It has no address for players">
            {phase === "live" ? "Its channel has no outputUrls of HLS or DASH." : "Its flow has no addresses, and there are no packages in its folder."}
          </EmptyState>
        )
      }
    </Answered>
  );
}

function Stage({ sources, event, playhead, live }: { sources: readonly Source[]; event: MediaEvent; playhead: Playhead; live: boolean }) {
  const video = useRef<HTMLVideoElement>(null);
  const [chosen, setChosen] = useState(sources[0]!.url);
  const [fault, setFault] = useState<string | null>(null);
  const [attempt, setAttempt] = useState(0);
  const [texts, setTexts] = useState<Texts | null>(null);
    const source = sources.find((each) => each.url === chosen) ?? sources[0]!;
  const captions = useCaptions(event.id, source.url, attempt);
  const servers = JSON.stringify(licenceServers(event.drmData));
  useEffect(() => {
    setFault(null);
    setTexts(null); // the texts of the previous player
    const blocked = (refused: SecurityPolicyViolationEvent): void => {
      const origin = URL.canParse(refused.blockedURI) ? new URL(refused.blockedURI).origin : refused.blockedURI;
      setFault(`This console may not load from ${origin}. Its operator can allow that with MEDIALEDGER_CONSOLE_MEDIA_ORIGINS.`);
    };
    document.addEventListener("securitypolicyviolation", blocked);
    const ended = played(video.current!, source, { playhead, servers: JSON.parse(servers), say: (text) => setFault((before) => before ?? text), onTexts: setTexts });
    return () => {
      document.removeEventListener("securitypolicyviolation", blocked);
      void ended();
    };
  }, [source.url, attempt, servers]);
  return (
    <section class="player" aria-label="Player">
      <div class="player-picture">
        <video ref={video} controls playsInline muted={live} autoPlay={live} aria-label={live ? "Live stream" : "Film"} />
      </div>
      {fault && (
        <div class="failure" role="alert">
          <p>
            <strong>It cannot be played.</strong> {fault}
          </p>
          <Button icon="refresh" onClick={() => setAttempt(attempt + 1)}>
            Try again
          </Button>
        </div>
      )}
      <div class="player-line">
        <label>
          <span class="unseen">Stream</span>
          <select value={source.url} onChange={(change) => setChosen(change.currentTarget.value)}>
            {sources.map((each) => (
              <option key={each.url} value={each.url}>
                {each.word}
              </option>
            ))}
          </select>
        </label>
        {texts && texts.tracks.length > 0 && <TextChoice texts={texts} />}
        <Position playhead={playhead} />
      </div>
      {captions.isOld && (
        <div class="notice" role="status">
          <p>The captions of the film have changed since the player loaded it.</p>
          <Button icon="refresh" onClick={() => setAttempt(attempt + 1)}>
            Reload the film
          </Button>
        </div>
      )}
    </section>
  );
}

/** The text tracks, and the selected one. */
interface Texts {
  tracks: readonly shaka.extern.TextTrack[];
  show: (track: shaka.extern.TextTrack | null) => void;
}

function TextChoice({ texts }: { texts: Texts }) {
  const [chosen, setChosen] = useState("");
  useEffect(() => setChosen(""), [texts]);
  const choose = (id: string): void => {
    setChosen(id);
    texts.show(texts.tracks.find((each) => String(each.id) === id) ?? null);
  };
  return (
    <label>
      <select aria-label="Captions" value={chosen} onChange={(change) => choose(change.currentTarget.value)}>
        <option value="">No captions</option>
        {texts.tracks.map((each) => (
          <option key={each.id} value={String(each.id)}>
            {trackWord(each)}
          </option>
        ))}
      </select>
    </label>
  );
}

function trackWord({ language, label, roles, forced }: shaka.extern.TextTrack): string {
  const kind = forced || roles.includes("forced-subtitle") ? "forced" : roles.includes("caption") ? "captions" : roles.includes("description") ? "descriptions" : null;
  const said = languageWord(language);
  const name = label && label !== language && label !== said ? `${said}, ${label.slice(0, 60)}` : said || "Captions";
  return kind ? `${name} (${CAPTION_KINDS[kind]!.word.toLowerCase()})` : name;
}

/** True if the captions of the Event have changed since the film was loaded, and its manifest lists them. */
function useCaptions(eventId: string, url: string, attempt: number): { isOld: boolean } {
  const query = useQuery(`captions ${eventId}`, (signal) => dataOf(captionsQuery(eventId, signal)), { changes: { aggregates: ["asset"] } });
  const [isOld, setOld] = useState(false);
  const loaded = useRef<{ attempt: number; captions: string } | null>(null);
  const done = query.data.value?.filter((each) => each.state === 1);
  const isMaking = query.data.value?.some((each) => each.state === GENERATING) ?? false; // its text may still be the previous one
  const now = done?.map((each) => `${each.path} ${each.dateModified}`).join("\n") ?? null;
  if (now !== null && loaded.current?.attempt !== attempt) loaded.current = { attempt, captions: now };
  useEffect(() => {
    setOld(false);
    if (now === null || isMaking || loaded.current?.captions === now) return;
    const end = new AbortController();
    void namesThem(url, done!.map((each) => each.path), end.signal).then(() => end.signal.aborted || setOld(true));
    return () => end.abort();
  }, [now, isMaking, url, attempt]);
  return { isOld };
}

/** Waits until a manifest lists exactly these captions. They are added to it after their job ends, which other caches may delay. */
async function namesThem(url: string, paths: readonly string[], signal: AbortSignal): Promise<void> {
  const wanted = captionStems(paths);
  for (let look = 0; look < LOOKS && !signal.aborted; look++) {
    const manifest = await fetch(url, { signal, cache: "no-cache" }).then((answer) => answer.text(), () => null);
    if (manifest === null || captionStems([...manifest.matchAll(NAMED)].map(([, path]) => path!)) === wanted) return;
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

function Position({ playhead }: { playhead: Playhead }) {
  const seconds = playhead.seconds.value;
  if (seconds === null) return <span class="faint">Loading the stream</span>;
  const wall = playhead.player?.wallClock() ?? null;
  return (
    <span class="position">
      <span class="faint">Playhead</span>{" "}
      <span data-playhead={seconds}>{playhead.isLive.value && wall ? clock(wall, true) : timeText(seconds)}</span>
      {playhead.isLive.value && <span class="faint"> live</span>}
    </span>
  );
}

/** Reloads the console if the player belongs to an older build that no longer exists. */
async function orNewBuild(thrown: unknown): Promise<never> {
  await reloadForNewBuild();
  throw thrown;
}

interface Playing {
  playhead: Playhead;
  servers: Record<string, string>;
  say: (fault: string) => void;
  onTexts: (texts: Texts | null) => void;
}

/** Loads a source into a video, and the player library the first time. Returns a function that unloads it. */
function played(video: HTMLVideoElement, source: Source, { playhead, servers, say, onTexts }: Playing): () => Promise<void> {
  let player: shaka.Player | null = null;
  let over = false;
  const moved = (): void => void (playhead.seconds.value = video.currentTime);
  const begin = async (): Promise<void> => {
    const { default: library } = (await import("shaka-player/dist/shaka-player.compiled-es2021.js").catch(orNewBuild)) as unknown as { default: typeof shaka };
    if (over) return;
    library.polyfill.installAll();
    if (!library.Player.isBrowserSupported()) return say("This browser has no Media Source Extensions.");
    player = new library.Player();
    player.addEventListener("error", (event) => say(faultWord((event as unknown as { detail: unknown }).detail)));
    // It draws captions over the video: for the browser's captions it would load an address that the policy refuses.
    player.setVideoContainer(video.parentElement);
    const textDisplayFactory: shaka.extern.TextDisplayer.Factory = (shown) => new library.text.UITextDisplayer(shown);
    player.configure({ drm: { servers }, streaming: { retryParameters: { maxAttempts: 4 } }, textDisplayFactory });
    await player.attach(video);
    await player.load(source.url, null, source.mime);
    if (over) return;
    const shown = player;
    const list = (): void => onTexts({ tracks: shown.getTextTracks(), show: (track) => shown.selectTextTrack(track) });
    shown.addEventListener("trackschanged", list);
    list();
    playhead.isLive.value = shown.isLive();
    playhead.player = {
      seek: (seconds) => {
        video.currentTime = seconds;
        moved();
      },
      wallClock: () => (shown.isLive() ? shown.getPlayheadTimeAsDate() : null),
      startedAt: () => shown.getPresentationStartTimeAsDate(),
    };
    moved();
    for (const name of ["timeupdate", "seeking"]) video.addEventListener(name, moved);
  };
  const begun = begin().catch((thrown: unknown) => over || say(faultWord(thrown)));
  return async () => {
    over = true;
    for (const name of ["timeupdate", "seeking"]) video.removeEventListener(name, moved);
    playhead.seconds.value = null;
    playhead.player = null;
    onTexts(null);
    await begun;
    await player?.destroy();
  };
}
