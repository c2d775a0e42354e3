import type { Changes } from '../../feeds/feed.ts';
import type { Connection } from '../connections/connection.ts';
import type { InRooms } from '../request.ts';
import type { RelevantRoom } from '../rooms/relevant-room.ts';

/** The inputs of extensions for an answer. */
export interface ExtensionContext {
  readonly userId: string;
  readonly deviceId: string;
  readonly connection: Connection;
  /** The position of the client. */
  readonly since: number | undefined;
  readonly upTo: number;
  /** The changes after `since`; `undefined` when some of them are no longer in the feed. */
  readonly changes: Changes | undefined;
  /** The rooms in the answer. */
  readonly rooms: readonly RelevantRoom[];
}

/** The answer of an extension. */
export interface ExtensionAnswer {
  readonly name: string;
  /** The answer as JSON text. */
  readonly text: string;
  /** Whether the answer ends a long poll. */
  readonly hasNewData: boolean;
  /** The rooms whose data of the extension is complete at the client after this answer. */
  readonly covered?: readonly RelevantRoom[];
}

/** Returns the rooms that an extension is enabled for: by default all. Source: MSC3575, "Extensions". */
export function roomsFor(
  rooms: readonly RelevantRoom[],
  { lists, rooms: roomIds }: InRooms,
): readonly RelevantRoom[] {
  const isNamed = matcherOf(roomIds);
  const isInList = matcherOf(lists);
  return rooms.filter(
    ({ request, isSubscribed }) =>
      (isSubscribed && isNamed(request.room.roomId)) || request.lists.some(isInList),
  );
}

/** Returns a function that returns whether a name is in the list. A list with `*` and a missing list match every name. */
function matcherOf(names: readonly string[] | null | undefined): (name: string) => boolean {
  const accepted = new Set(names ?? ['*']);
  return accepted.has('*') ? () => true : (name) => accepted.has(name);
}

/**
 * Returns a JSON object with the entries of rooms, for the field `rooms` of an extension.
 * @param entries JSON texts by room id
 */
export function roomsText(entries: ReadonlyMap<string, string>): string {
  const texts = [...entries].map(([roomId, text]) => `${JSON.stringify(roomId)}:${text}`);
  return `{${texts.join(',')}}`;
}
