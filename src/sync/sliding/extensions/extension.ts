import type { Changes } from '../../feeds/feed.ts';
import type { Connection } from '../connections/connection.ts';
import type { InRooms } from '../request.ts';
import type { RelevantRoom } from '../rooms/relevant-room.ts';

/** What extensions need. */
export interface ExtensionContext {
  readonly userId: string;
  readonly deviceId: string;
  readonly connection: Connection;
  /** The position of the client. */
  readonly since: number | undefined;
  readonly upTo: number;
  /** `undefined` when the feed does not reach back that far. */
  readonly changes: Changes | undefined;
  /** The rooms in the answer. */
  readonly rooms: readonly RelevantRoom[];
}

/** The answer of an extension. */
export interface ExtensionAnswer {
  readonly name: string;
  /** JSON. */
  readonly text: string;
  /** Whether it ends a long poll. */
  readonly hasNewData: boolean;
  /** The rooms of which the client has all data of the extension after this answer. */
  readonly covered?: readonly RelevantRoom[];
}

/** Returns the rooms that an extension is enabled for: by default all. Source: MSC3575, "Extensions". */
export function roomsFor(
  rooms: readonly RelevantRoom[],
  { lists, rooms: named }: InRooms,
): readonly RelevantRoom[] {
  const isAll = (names: readonly string[] | null | undefined) => !names || names.includes('*');
  return rooms.filter(({ request, isSubscribed }) => {
    if (isSubscribed && (isAll(named) || named?.includes(request.room.roomId))) return true;
    return request.lists.some((list) => isAll(lists) || lists?.includes(list));
  });
}

/**
 * Returns `{"rooms": {...}}` as JSON.
 * @param entries JSON texts by room id
 */
export function roomsText(entries: ReadonlyMap<string, string>): string {
  const texts = [...entries].map(([roomId, text]) => `${JSON.stringify(roomId)}:${text}`);
  return `{${texts.join(',')}}`;
}
