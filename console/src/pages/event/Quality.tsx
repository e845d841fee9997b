import { api, found, type MediaEvent, type Schemas } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import type { StateWord } from "../../kernel/states";
import { Badge, Facts, NoAnswer, Panel, Time } from "../../parts";

type FilmQuality = Schemas["FilmQuality"];

const VERDICTS: Record<FilmQuality["verdict"], StateWord> = {
  pass: { word: "Quality good", tone: "ok" },
  warn: { word: "Quality with warnings", tone: "warn" },
  fail: { word: "Quality insufficient", tone: "bad" },
};
const REASONS: Record<FilmQuality["verdict"], StateWord> = {
  pass: { word: "Good", tone: "ok" },
  warn: { word: "Warning", tone: "warn" },
  fail: { word: "Fault", tone: "bad" },
};

/** Reads the result of the last check of the film. An Event without a film is not queried. */
function useQuality(event: MediaEvent) {
  return useQuery(
    `quality of ${event.id} ${event.mp4State}`,
    async (signal) => (event.mp4State === 0 ? null : (await found(api.GET("/api/vod/{id}/quality", { params: { path: { id: event.id } }, signal }))).data),
    { changes: { aggregates: ["event"], ids: [event.id] } },
  );
}

/** The verdict, next to the state of the Event; nothing if the film was not checked. */
export function QualityBadge({ event }: { event: MediaEvent }) {
  const query = useQuality(event);
  const quality = query.failure.value?.isAbsent ? null : query.data.value;
  return quality ? <Badge state={VERDICTS[quality.verdict]} title={`By the profile ${quality.profile}`} /> : null;
}

/** The verdict with its reasons and the loudness of each audio track. */
export function QualityPanel({ event }: { event: MediaEvent }) {
  const query = useQuality(event);
  const quality = query.failure.value?.isAbsent ? null : query.data.value;
  if (query.failure.value && !query.failure.value.isAbsent) {
    return (
      <Panel title="Quality of the film">
        <NoAnswer query={query} />
      </Panel>
    );
  }
  if (!quality) return null;
  return (
    <Panel title="Quality of the film" actions={<Badge state={VERDICTS[quality.verdict]} />}>
      {quality.reasons.length > 0 && (
        <ul class="reasons">
          {quality.reasons.map((reason) => (
            <li key={reason.message}>
              <Badge state={REASONS[reason.verdict]} /> <span>{reason.message}</span>
            </li>
          ))}
        </ul>
      )}
      <Facts
        facts={[
          ["Profile", <bdi>{quality.profile}</bdi>],
          ["Checked", <Time at={quality.measuredAt} />],
          ...quality.sounds.map((sound): [string, string] => [`Track ${sound.track}${sound.language ? ` (${sound.language})` : ""}`, heard(sound)]),
          ["If it fails", quality.keepPrivate ? "It stays private" : "It may be public"],
        ]}
      />
    </Panel>
  );
}

function heard(sound: Schemas["FilmQualitySound"]): string {
  if (sound.integrated === null) return "Silent, or too short to measure";
  const peak = sound.truePeak === null ? "" : `, true peak ${sound.truePeak.toFixed(1)} dBTP`;
  return `${sound.integrated.toFixed(1)} LUFS${peak}`;
}
