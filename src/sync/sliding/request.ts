import { type Static, Type } from 'typebox';

/** How many lists, and how many single rooms, one request may ask for. Source: MSC4186, "Request Body". */
const [maxLists, maxSubscriptions] = [100, 1_000];

const requiredEntry = Type.Tuple([Type.String(), Type.String()]);

const roomConfig = {
  timeline_limit: Type.Integer({ minimum: 0 }),
  required_state: Type.Optional(Type.Array(requiredEntry, { maxItems: 1_000 })),
};

const texts = Type.Array(Type.String(), { maxItems: 1_000 });
const roomTypes = Type.Array(Type.Union([Type.String(), Type.Null()]), { maxItems: 100 });

/** Fields that are `null` mean the same as fields that are not there. */
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

const inRooms = { enabled: optional(Type.Boolean()), lists: optional(texts), rooms: optional(texts) };

const extensions = Type.Object({
  to_device: optional(
    Type.Object({
      enabled: optional(Type.Boolean()),
      limit: optional(Type.Integer({ minimum: 1 })),
      since: optional(Type.String()),
    }),
  ),
  e2ee: optional(Type.Object({ enabled: optional(Type.Boolean()) })),
  account_data: optional(Type.Object(inRooms)),
  receipts: optional(Type.Object(inRooms)),
  typing: optional(Type.Object(inRooms)),
  'io.element.msc4308.thread_subscriptions': optional(
    Type.Object({ enabled: optional(Type.Boolean()), limit: optional(Type.Integer({ minimum: 1 })) }),
  ),
});

/** The body of a request. Source: MSC4186, "Request Body", in the form of its unstable endpoint. */
export const slidingSyncBody = Type.Object({
  conn_id: optional(Type.String({ maxLength: 255 })),
  lists: optional(Type.Record(Type.String(), list, { maxProperties: maxLists })),
  room_subscriptions: optional(
    Type.Record(Type.String(), Type.Object(roomConfig), { maxProperties: maxSubscriptions }),
  ),
  extensions: optional(extensions),
});

export type SlidingSyncBody = Static<typeof slidingSyncBody>;
export type ListRequest = Static<typeof list>;
export type FiltersJson = Static<typeof filters>;
export type ExtensionRequests = Static<typeof extensions>;
/** Which rooms an extension is to be about. */
export type InRooms = Static<typeof typingRequest>;

const typingRequest = Type.Object(inRooms);

export interface SlidingSyncRequest {
  readonly userId: string;
  readonly deviceId: string | undefined;
  readonly body: SlidingSyncBody;
  readonly pos: string | undefined;
  /** Milliseconds to wait when there is nothing to say. */
  readonly timeout: number;
  readonly signal: AbortSignal;
}
