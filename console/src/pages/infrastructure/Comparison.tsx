import { useState } from "preact/hooks";
import { api, dataOf } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { Answered, Badge, Field, NoAnswer } from "../../parts";

/** Compares the resources of a saved profile with those that a channel names. */
export function Comparison({ profile }: { profile: string }) {
  const [channel, setChannel] = useState("");
  const channels = useQuery("channels", (signal) => dataOf(api.GET("/api/channel/", { signal })));
  const query = { channelId: channel, infrastructureProfileId: profile };
  const compared = useQuery(channel === "" ? null : `compared ${channel} ${profile}`, (signal) => dataOf(api.GET("/api/provision/compare/", { params: { query }, signal })));
  const options = [["", "None"] as const, ...(channels.data.value ?? []).map((each) => [each.id, each.name.slice(0, 100)] as const)];
  return (
    <>
      <Field label="Compare the saved profile with a channel" name="channel" value={channel} onInput={setChannel} options={options} />
      <NoAnswer query={channels} />
      {channel !== "" && (
        <Answered query={compared}>
          {(said) => (
            <p role="status">
              <Badge state={said.isOptimal ? { word: "Fits", tone: "ok" } : said.isValid ? { word: "Fits, with unused resources", tone: "warn" } : { word: "Does not fit", tone: "bad" }} />{" "}
              {said.undefinedChannelResources.length > 0 && (
                <>
                  Missing here: <bdi>{said.undefinedChannelResources.join(", ")}</bdi>.{" "}
                </>
              )}
              {said.unusedInfrastructureResources.length > 0 && (
                <>
                  Not used by the channel: <bdi>{said.unusedInfrastructureResources.join(", ")}</bdi>.
                </>
              )}
            </p>
          )}
        </Answered>
      )}
    </>
  );
}
