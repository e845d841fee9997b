/** The records that an Event can be linked to, for its form and for filters. */

import { api, dataOf } from "../../kernel/api";
import { type Query, useQuery } from "../../kernel/query";

export interface Choice {
  id: string;
  name: string;
}

export interface Choices {
  rooms: readonly Choice[];
  channels: readonly Choice[];
  types: readonly Choice[];
  categories: readonly Choice[];
}

export function useChoices(): Query<Choices> {
  return useQuery("choices of events", choicesOf, { changes: { aggregates: ["room", "channel", "event_type", "category"] } });
}

export const optionsOf = (all: readonly Choice[]): (readonly [value: string, word: string])[] => [["", "None"], ...all.map(({ id, name }) => [id, name.slice(0, 100)] as const)];

async function choicesOf(signal: AbortSignal): Promise<Choices> {
  const [rooms, channels, types, categories] = await Promise.all([
    dataOf(api.GET("/api/room/", { signal })),
    dataOf(api.GET("/api/channel/", { signal })),
    dataOf(api.GET("/api/eventtype/", { signal })),
    dataOf(api.GET("/api/category/", { signal })),
  ]);
  const named = (all: Choice[]): Choice[] => all.map(({ id, name }) => ({ id, name })).sort((one, other) => one.name.localeCompare(other.name));
  return {
    rooms: named(rooms.map((each) => ({ id: each.Id, name: each.Name }))),
    channels: named(channels),
    types: named(types),
    categories: named(categories.map((each) => ({ id: each.id, name: each.label || each.name }))),
  };
}
