import { type Static, type TSchema, Type } from 'typebox';
import type { SourceList } from '../sources/source-list.ts';

/** Maximum number of lists in one request. Source: MSC4186, "Request Body". */
const maxLists = 100;

/** Maximum number of room subscriptions in one request. Source: MSC4186, "Request Body". */
const maxSubscriptions = 1_000;

/** Maximum length of event types, state keys and names of lists, in characters. */
const maxNameLength = 255;

const name = Type.String({ maxLength: maxNameLength });
const requiredEntry = Type.Tuple([name, name]);
const listName = Type.String({ pattern: `^[\\s\\S]{0,${maxNameLength}}$` });

const roomConfig = {
  timeline_limit: Type.Integer({ minimum: 0 }),
  required_state: Type.Optional(Type.Array(requiredEntry, { maxItems: 1_000 })),
};

const texts = Type.Array(Type.String(), { maxItems: 1_000 });
const roomTypes = Type.Array(Type.Union([Type.String(), Type.Null()]), { maxItems: 100 });

/** Makes a field optional; `null` means the same as absence. */
const optional = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) =>
  Type.Optional(Type.Union([schema, Type.Null()]));

const filters = Type.Object({
  is_dm: optional(Type.Boolean()),
  is_encrypted: optional(Type.Boolean()),
  is_invite: optional(Type.Boolean()),
  spaces: optional(texts),
  room_types: optional(roomTypes),
  not_room_types: optional(roomTypes),
  room_name_like: optional(Type.String()),
  tags: optional(texts),
  not_tags: optional(texts),
});

const range = Type.Tuple([Type.Integer({ minimum: 0 }), Type.Integer({ minimum: 0 })]);

const list = Type.Object({
  ...roomConfig,
  ranges: optional(Type.Array(range, { maxItems: 100 })),
  range: optional(range),
  filters: optional(filters),
});

const enabled = { enabled: optional(Type.Boolean()) };

const inRooms = Type.Object({ ...enabled, lists: optional(texts), rooms: optional(texts) });

const toDevice = Type.Object({
  ...enabled,
  limit: optional(Type.Integer({ minimum: 1 })),
  since: optional(Type.String()),
});

/** Returns the schemas of the requests of all extensions, by name. */
function extensionSchemas(sources: SourceList): Record<string, TSchema> {
  const { deviceQueue, device, accountData, ephemeral, extensions } = sources;
  const schemas: [name: string, schema: TSchema][] = [
    ...(deviceQueue ? [['to_device', toDevice] as const] : []),
    ...device.map(({ section }) => [section.extension, Type.Object(enabled)] as const),
    ...(accountData.length > 0 ? [['account_data', inRooms] as const] : []),
    ...ephemeral.map(({ section }) => [section.extension.name, inRooms] as const),
    ...extensions.map(
      ({ section }) => [section.name, Type.Object({ ...enabled, ...section.request.properties })] as const,
    ),
  ].map(([name, schema]) => [name, optional(schema)]);
  return Object.fromEntries(schemas);
}

const roomsBody = Type.Object({
  // PostgreSQL does not store U+0000.
  conn_id: optional(Type.String({ maxLength: 255, pattern: '^[^\\u0000]*$' })),
  lists: optional(Type.Record(listName, list, { maxProperties: maxLists, additionalProperties: false })),
  room_subscriptions: optional(
    Type.Record(Type.String(), Type.Object(roomConfig), { maxProperties: maxSubscriptions }),
  ),
});

/** Returns the schema of a request body. Source: MSC4186, "Request Body", in the form of its unstable endpoint. */
export const slidingSyncBody = (sources: SourceList) =>
  Type.Object({
    ...roomsBody.properties,
    extensions: optional(Type.Object(extensionSchemas(sources))),
  });

export interface SlidingSyncBody extends Static<typeof roomsBody> {
  readonly extensions?: ExtensionRequests | null;
}

export type ListRequest = Static<typeof list>;
export type FiltersJson = Static<typeof filters>;
/** Requests of extensions by name; each matches the schema of its extension. */
export type ExtensionRequests = Readonly<Record<string, unknown>>;
/** The rooms that an extension is enabled for. */
export type InRooms = Static<typeof inRooms>;
export type ToDeviceRequest = Static<typeof toDevice>;

/** Returns the request of an extension if the client has enabled it. */
export function enabledIn<R extends { readonly enabled?: boolean | null }>(
  requests: ExtensionRequests,
  name: string,
): R | undefined {
  const request = requests[name] as R | null | undefined;
  return request?.enabled ? request : undefined;
}

/** A validated request of sliding sync. */
export interface SlidingSyncRequest {
  readonly userId: string;
  readonly deviceId: string | undefined;
  readonly body: SlidingSyncBody;
  readonly pos: string | undefined;
  /** Maximum milliseconds to wait while there is no new data. */
  readonly timeout: number;
  readonly signal: AbortSignal;
}
