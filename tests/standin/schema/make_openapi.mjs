// Writes discord-openapi.json from two npm packages: `npm i discord-api-spec zod && node make_openapi.mjs OUT`.
// Holds the paths a text bot writes to, and of Discord's published schemas those that they need.
import { writeFileSync } from "node:fs";
import * as spec from "discord-api-spec/zod";
import * as z from "zod";

const ref = (name) => ({ $ref: `#/components/schemas/${name}` });
const anyOf = (...names) => ({ anyOf: names.map(ref) });
const listOf = (name) => ({ type: ["array", "null"], items: ref(name) });
const commands = (scope) => [
  ["put", `${scope}/commands`, listOf("ApplicationCommandUpdateRequest")],
  ["post", `${scope}/commands`, ref("ApplicationCommandCreateRequest")],
];
const followup = "/webhooks/{webhook_id}/{webhook_token}";
const routes = [
  ["post", "/interactions/{interaction_id}/{interaction_token}/callback", anyOf(
    "ApplicationCommandAutocompleteCallbackRequest", "CreateMessageInteractionCallbackRequest",
    "ModalInteractionCallbackRequest", "PongInteractionCallbackRequest", "UpdateMessageInteractionCallbackRequest")],
  ["post", followup, anyOf("IncomingWebhookRequestPartial", "IncomingWebhookUpdateRequestPartial")],
  ["patch", `${followup}/messages/@original`, ref("IncomingWebhookUpdateRequestPartial")],
  ["patch", `${followup}/messages/{message_id}`, ref("IncomingWebhookUpdateRequestPartial")],
  ["post", "/channels/{channel_id}/messages", ref("MessageCreateRequest")],
  ["patch", "/channels/{channel_id}/messages/{message_id}", ref("MessageEditRequestPartial")],
  ["post", "/users/@me/channels", ref("CreatePrivateChannelRequest")],
  ...commands("/applications/{application_id}"),
  ...commands("/applications/{application_id}/guilds/{guild_id}"),
];

const registry = z.registry();
for (const [name, schema] of Object.entries(spec)) {
  if (name.endsWith("Schema") && schema?._zod) registry.add(schema, { id: name.slice(0, -"Schema".length) });
}
const uri = (id) => `#/components/schemas/${id}`;
const override = ({ zodSchema, jsonSchema }) => {
  if (zodSchema._zod.def.type === "bigint") jsonSchema.type = "integer"; // JSON Schema has no bigint
};
const { schemas } = z.toJSONSchema(registry, { uri, override, unrepresentable: "any", io: "input" });
const dropOpenAlternatives = (node) => {
  // the package leaves an accept-anything member in a few unions, which would void the rest
  if (Array.isArray(node?.anyOf)) node.anyOf = node.anyOf.filter((member) => Object.keys(member).length);
  if (node && typeof node === "object") Object.values(node).forEach(dropOpenAlternatives);
};
for (const schema of Object.values(schemas)) {
  dropOpenAlternatives(schema);
  delete schema.$schema;
  delete schema.$id;
  delete schema.id;
}

const paths = {};
for (const [method, path, schema] of routes) {
  for (const { $ref } of schema.anyOf ?? [schema.items ?? schema]) {
    if (!schemas[$ref.split("/").pop()]) throw new Error(`${path}: no ${$ref}`);
  }
  (paths[path] ??= {})[method] = { requestBody: { content: { "application/json": { schema } } } };
}
const needed = new Set();
const follow = (node) => {
  if (!node || typeof node !== "object") return;
  const name = node.$ref?.split("/").pop();
  if (name && !needed.has(name)) {
    needed.add(name);
    follow(schemas[name]);
  }
  Object.values(node).forEach(follow);
};
follow(paths);
const kept = Object.fromEntries([...needed].sort().map((name) => [name, schemas[name]]));
const document = { openapi: "3.1.0", paths, components: { schemas: kept } };
writeFileSync(process.argv[2] ?? "discord-openapi.json", JSON.stringify(document) + "\n");
