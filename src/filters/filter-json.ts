import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { badJson } from '../protocol/index.ts';

/** Maximum entries of a list: more than a user has rooms or contacts. */
const maxItems = 10_000;

const userIds = Type.Array(Type.String({ pattern: '^@[^:]*:.+' }), { maxItems });
const roomIds = Type.Array(Type.String({ pattern: '^!.+' }), { maxItems });
const texts = Type.Array(Type.String(), { maxItems });

const eventFilter = {
  limit: Type.Optional(Type.Integer({ minimum: 0 })),
  types: Type.Optional(texts),
  not_types: Type.Optional(texts),
  senders: Type.Optional(userIds),
  not_senders: Type.Optional(userIds),
};

const roomEventFilter = {
  ...eventFilter,
  rooms: Type.Optional(roomIds),
  not_rooms: Type.Optional(roomIds),
  contains_url: Type.Optional(Type.Boolean()),
  lazy_load_members: Type.Optional(Type.Boolean()),
  include_redundant_members: Type.Optional(Type.Boolean()),
  unread_thread_notifications: Type.Optional(Type.Boolean()),
  // MSC3773, the same by its unstable name.
  'org.matrix.msc3773.unread_thread_notifications': Type.Optional(Type.Boolean()),
  related_by_senders: Type.Optional(userIds),
  related_by_rel_types: Type.Optional(texts),
  // MSC3874, with its unstable names.
  rel_types: Type.Optional(texts),
  not_rel_types: Type.Optional(texts),
  'org.matrix.msc3874.rel_types': Type.Optional(texts),
  'org.matrix.msc3874.not_rel_types': Type.Optional(texts),
};

const anyEvents = Type.Object(eventFilter);
const roomEvents = Type.Object(roomEventFilter);

/** The JSON of a filter. Source: client-server API, "Filtering". */
const filterSchema = Type.Object({
  event_fields: Type.Optional(texts),
  event_format: Type.Optional(Type.Union([Type.Literal('client'), Type.Literal('federation')])),
  presence: Type.Optional(anyEvents),
  account_data: Type.Optional(anyEvents),
  room: Type.Optional(
    Type.Object({
      rooms: Type.Optional(roomIds),
      not_rooms: Type.Optional(roomIds),
      include_leave: Type.Optional(Type.Boolean()),
      ephemeral: Type.Optional(roomEvents),
      state: Type.Optional(roomEvents),
      timeline: Type.Optional(roomEvents),
      account_data: Type.Optional(roomEvents),
    }),
  ),
});

export type FilterJson = Static<typeof filterSchema>;
export type EventFilterJson = Static<typeof anyEvents>;
export type RoomEventFilterJson = Static<typeof roomEvents>;

const filterCheck = Compile(filterSchema);
const roomEventsCheck = Compile(roomEvents);

/** @throws MatrixError M_BAD_JSON */
export function checkFilter(json: unknown): FilterJson {
  if (filterCheck.Check(json)) return json;
  throw filterError(filterCheck.Errors(json));
}

/**
 * Checks a filter for room events, in the format of `/messages`.
 * @throws MatrixError M_BAD_JSON
 */
export function checkRoomEventFilter(json: unknown): RoomEventFilterJson {
  if (roomEventsCheck.Check(json)) return json;
  throw filterError(roomEventsCheck.Errors(json));
}

function filterError([error]: readonly { instancePath: string; message: string }[]) {
  const path = error?.instancePath.slice(1).replaceAll('/', '.');
  return badJson(
    `The filter is invalid: ${path ? `'${path}'` : 'the whole filter'} ${error?.message ?? 'is invalid'}`,
  );
}
