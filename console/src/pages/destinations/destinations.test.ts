import { expect, it } from "vitest";
import { configurationOf, publicationJson, targetOf, written } from "./targets";

it("keeps members that the form does not know, and stored secrets", () => {
  const before = configurationOf('{"bucket": "a", "password": null, "region": "eu", "prefix": "p"}');
  expect(written(before, { bucket: "b", prefix: " ", secretAccessKey: "" }, targetOf(5))).toEqual({ bucket: "b", password: null, region: "eu", secretAccessKey: null });
  expect(written({}, { port: "2222", password: "s" }, targetOf(6))).toEqual({ port: 2222, password: "s" });
  expect([configurationOf("[1]"), configurationOf("no")]).toEqual([{}, {}]);
});

it("says of a publication what was typed, for its target alone", () => {
  const typed = { title: "true", description: " ", yt_madeForKids: "true", yt_privacyStatus: "private", cstm_streamName: "left from before" };
  const made = publicationJson(typed, targetOf(2), "https://a.example/x\n\n https://b.example/y ");
  expect(JSON.parse(made)).toEqual({ title: "true", yt_madeForKids: true, yt_privacyStatus: "private", callbackUrls: ["https://a.example/x", "https://b.example/y"] });
  expect(publicationJson({ title: "t" }, targetOf(1), "", '{"title": "other", "a": 1}')).toBe('{"title":"t","a":1}');
  expect(() => publicationJson({}, targetOf(1), "", "[1]")).toThrow("JSON object");
});
