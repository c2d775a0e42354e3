import type { UserRoom } from '../../../room-engine/index.ts';
import { RoomPart } from '../../feeds/feed.ts';
import type { ExtensionAnswer } from '../extensions/extension.ts';
import type { RelevantRoom } from '../rooms/relevant-room.ts';
import type { Connection } from './connection.ts';
import { nothingSent, outsideOfRooms, type SentPart, type SentRoom } from './sent-room.ts';

/** What happened between the client's position and the one of the answer. */
export interface Happenings {
  readonly since: number | undefined;
  /** Bits of `RoomPart`: what may have changed in a room. */
  partsOf(room: UserRoom): number;
}

/** What an answer sends, as it has to be remembered. */
export interface Sending {
  /** Every room that the client may be told of. */
  readonly listed: readonly UserRoom[];
  readonly relevant: readonly RelevantRoom[];
  readonly extensions: readonly ExtensionAnswer[];
}

/** What the client has after an answer, as far as that is not what it had before. */
export function sentBy(
  connection: Connection,
  { listed, relevant, extensions }: Sending,
  happenings: Happenings,
): Map<number, SentRoom | undefined> {
  const changes = new Map<number, SentRoom | undefined>();
  const covers = (name: string) => new Set(extensions.find((answer) => answer.name === name)?.covered);
  const [receipts, accountData] = [covers('receipts'), covers('account_data')];
  for (const room of relevant) {
    const { roomNid } = room.request.room;
    const missed = missedParts(connection.rooms.get(roomNid) ?? nothingSent, room.parts, happenings.since);
    changes.set(roomNid, {
      ...missed,
      ...room.result.sent,
      timeline: 'live',
      ...(receipts.has(room) && { receipts: 'live' }),
      ...(accountData.has(room) && { accountData: 'live' }),
    });
  }
  const unlisted = new Set(connection.rooms.keys());
  unlisted.delete(outsideOfRooms);
  for (const room of listed) {
    unlisted.delete(room.roomNid);
    const before = connection.rooms.get(room.roomNid);
    if (!before || changes.has(room.roomNid)) continue;
    changes.set(room.roomNid, missedParts(before, happenings.partsOf(room), happenings.since));
  }
  for (const roomNid of unlisted) changes.set(roomNid, undefined);
  if (extensions.some(({ name }) => name === 'account_data')) {
    changes.set(outsideOfRooms, { ...nothingSent, accountData: 'live' });
  } else {
    const global = connection.rooms.get(outsideOfRooms);
    if (global) changes.set(outsideOfRooms, missedParts(global, RoomPart.accountData, happenings.since));
  }
  return changes;
}

/** What is known to be sent of a room when the answer says nothing of it. @param parts what may have changed */
function missedParts(sent: SentRoom, parts: number, since: number | undefined): SentRoom {
  const missed = (part: SentPart, bit: number): SentPart =>
    part === 'live' && parts & bit && since !== undefined ? since : part;
  return {
    ...sent,
    timeline: missed(sent.timeline, RoomPart.timeline),
    receipts: missed(sent.receipts, RoomPart.receipts),
    accountData: missed(sent.accountData, RoomPart.accountData),
  };
}
