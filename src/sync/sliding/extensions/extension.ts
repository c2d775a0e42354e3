import type { Changes } from '../../feeds/feed.ts';
import type { Connection } from '../connections/connection.ts';
import type { InRooms } from '../request.ts';
import type { RelevantRoom } from '../rooms/relevant-room.ts';

/** What an extension may look at. */
export interface ExtensionContext {
  readonly userId: string;
  readonly deviceId: string;
  readonly connection: Connection;
  /** The position of the client. */
  readonly since: number | undefined;
  readonly upTo: number;
  /** `undefined`: it is not in memory any more what has changed. */
  readonly changes: Changes | undefined;
  /** The rooms that the answer is about. */
  readonly rooms: readonly RelevantRoom[];
}

/** What an extension has to say. */
export interface ExtensionAnswer {
  readonly name: string;
  /** As JSON. */
  readonly text: string;
  /** The client should be told at once. */
  readonly isNews: boolean;
  /** The rooms of which the client knows all that the extension tells. */
  readonly covered?: readonly RelevantRoom[];
}

/** The rooms that an extension is to be about: by default all. Source: MSC3575, "Extensions". */
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

/** `{"rooms": {...}}` as JSON. @param entries JSON by room id */
export function roomsText(entries: ReadonlyMap<string, string>): string {
  const texts = [...entries].map(([roomId, text]) => `${JSON.stringify(roomId)}:${text}`);
  return `{${texts.join(',')}}`;
}
