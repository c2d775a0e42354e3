import { type EventFields, testEvent } from '../../authorization/test/test-events.ts';
import type { RoomEvent } from '../../event.ts';
import { isJsonObject, type JsonObject } from '../../json.ts';
import type { RoomVersion } from '../../room-versions.ts';

/** One event in a table. Events are named by short ids, several in one column with spaces between them. */
export type EventRow = readonly [
  id: string,
  sender: string,
  /**
   * The type without `m.room.`; for a membership, followed by a space and the user whose membership it is.
   */
  type: string,
  content: JsonObject,
  prevEvents: string,
  /**
   * The ids of the auth events. The id of the create event is left out since v12, where events do not
   * reference it.
   */
  authEvents: string,
  originServerTs: number,
];

/** The event id for a short id. */
export const eventIdOf = (id: string): string => `$${id}`;

/** The event ids for a column of short ids. */
export const eventIdsOf = (ids: string): string[] => ids.split(' ').filter(Boolean).map(eventIdOf);

/** The events of a room that a table describes. The first row creates the room. */
export function eventsOfTable(version: RoomVersion, rows: readonly EventRow[]): RoomEvent[] {
  const [[createId, creator]] = rows as [EventRow];
  const roomId = version.roomId === 'origin' ? '!room:a' : `!${createId}`;
  return rows.map(([id, sender, typeAndUser, content, prevEvents, authEvents, originServerTs]) => {
    const [type, stateKey = ''] = typeAndUser.split(' ');
    const fields: EventFields = {
      type: `m.room.${type}`,
      sender,
      stateKey,
      content: contentIn(version, `m.room.${type}`, content, creator),
      eventId: eventIdOf(id),
      roomId,
      prevEventIds: eventIdsOf(prevEvents),
      authEventIds: eventIdsOf(authEvents).filter(
        (authId) => version.createInAuthEvents || authId !== eventIdOf(createId),
      ),
      originServerTs,
    };
    return testEvent(version, fields);
  });
}

/**
 * Returns the content as the room version requires it: with `creator` in a create event up to v10, and
 * without a level of the creator since v12.
 */
function contentIn(version: RoomVersion, type: string, content: JsonObject, creator: string): JsonObject {
  if (type === 'm.room.create') {
    return { room_version: version.id, ...(version.creator === 'content' && { creator }), ...content };
  }
  if (type === 'm.room.power_levels' && version.privilegedCreators && isJsonObject(content['users'])) {
    const { [creator]: _infinite, ...users } = content['users'];
    return { ...content, users };
  }
  return content;
}
