import type { UserRoom } from '../../../room-engine/index.ts';
import { type SourceList, timelineBit } from '../../sources/source-list.ts';
import type { ExtensionAnswer } from '../extensions/extension.ts';
import type { RelevantRoom } from '../rooms/relevant-room.ts';
import type { Connection } from './connection.ts';
import {
  isRemembered,
  nothingSent,
  outsideOfRooms,
  roomParts,
  type SentPart,
  type SentRoom,
} from './sent-room.ts';

/** What happened between the client's position and the one of the answer. */
export interface RoomChanges {
  readonly since: number | undefined;
  /** What may have changed in a room: bits of the timeline and of sources. */
  partsOf(room: UserRoom): number;
}

/** What an answer sends, as it has to be remembered. */
export interface AnswerParts {
  /** Every room that the client may be told of. */
  readonly listed: readonly UserRoom[];
  readonly relevant: readonly RelevantRoom[];
  readonly extensions: readonly ExtensionAnswer[];
}

/** What the client has after an answer, as far as that is not what it had before. */
export function sentAfter(
  connection: Connection,
  { listed, relevant, extensions }: AnswerParts,
  roomChanges: RoomChanges,
  bits: SourceList['extensionBits'],
): Map<number, SentRoom | undefined> {
  const changes = new Map<number, SentRoom | undefined>();
  const missed = (sent: SentRoom, parts: number) => missedParts(sent, parts, roomChanges.since, bits);
  for (const room of relevant) {
    const { roomNid } = room.request.room;
    changes.set(roomNid, {
      ...missed(connection.rooms.get(roomNid) ?? nothingSent, room.parts),
      ...room.result.sent,
      timeline: 'live',
    });
  }
  for (const { name, covered = [] } of extensions) {
    if (!isRemembered(name)) continue;
    for (const { request } of covered) {
      const { roomNid } = request.room;
      changes.set(roomNid, { ...(changes.get(roomNid) ?? nothingSent), [name]: 'live' });
    }
  }
  const unlisted = new Set(connection.rooms.keys());
  unlisted.delete(outsideOfRooms);
  for (const room of listed) {
    unlisted.delete(room.roomNid);
    const before = connection.rooms.get(room.roomNid);
    if (!before || changes.has(room.roomNid)) continue;
    changes.set(room.roomNid, missed(before, roomChanges.partsOf(room)));
  }
  for (const roomNid of unlisted) changes.set(roomNid, undefined);
  if (extensions.some(({ name }) => name === 'account_data')) {
    changes.set(outsideOfRooms, { ...nothingSent, account_data: 'live' });
  } else {
    const global = connection.rooms.get(outsideOfRooms);
    if (global) changes.set(outsideOfRooms, missed(global, bits.get('account_data') ?? 0));
  }
  return changes;
}

/** What is known to be sent of a room when the answer says nothing of it. @param parts what may have changed */
function missedParts(
  sent: SentRoom,
  parts: number,
  since: number | undefined,
  bits: SourceList['extensionBits'],
): SentRoom {
  const missed = (part: SentPart, bit: number): SentPart =>
    part === 'live' && parts & bit && since !== undefined ? since : part;
  const all = roomParts.map((name) => [
    name,
    missed(sent[name], name === 'timeline' ? timelineBit : (bits.get(name) ?? 0)),
  ]);
  return { ...sent, ...Object.fromEntries(all) };
}
