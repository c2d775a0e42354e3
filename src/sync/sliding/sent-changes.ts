import type { UserRoom } from '../../room-engine/index.ts';
import { type SourceList, timelineBit } from '../sources/source-list.ts';
import type { Connection } from './connections/connection.ts';
import {
  isRemembered,
  nothingSent,
  outsideOfRooms,
  roomParts,
  type SentRoom,
} from './connections/sent-room.ts';
import type { ExtensionAnswer } from './extensions/extension.ts';
import type { RelevantRoom } from './rooms/relevant-room.ts';

/** The changes of rooms between the client's position and the answer. */
export interface RoomChanges {
  readonly since: number | undefined;
  /** Returns the combined bits of the timeline and of the sources (`SourceList`) that may have changed in a room. */
  changedBitsOf(room: UserRoom): number;
}

/** The parts of an answer that change the sent state. */
export interface AnswerParts {
  /** All rooms in the user's list. */
  readonly listed: readonly UserRoom[];
  readonly relevantRooms: readonly RelevantRoom[];
  readonly extensions: readonly ExtensionAnswer[];
}

/**
 * Returns what an answer changes in the sent state of a connection, by room nid; `undefined` for rooms that left the
 * list.
 */
export function sentAfter(
  connection: Connection,
  { listed, relevantRooms, extensions }: AnswerParts,
  roomChanges: RoomChanges,
  bits: SourceList['extensionBits'],
): Map<number, SentRoom | undefined> {
  const changes = new Map<number, SentRoom | undefined>();
  const missed = (sent: SentRoom, changedBits: number) =>
    missedParts(sent, changedBits, roomChanges.since, bits);
  for (const room of relevantRooms) {
    const { roomNid } = room.request.room;
    changes.set(roomNid, {
      ...missed(connection.rooms.get(roomNid) ?? nothingSent, room.changedBits),
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
    const sent = connection.rooms.get(room.roomNid);
    if (!sent || changes.has(room.roomNid)) continue;
    changes.set(room.roomNid, missed(sent, roomChanges.changedBitsOf(room)));
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

/**
 * Returns the sent state of a room after an answer that contains nothing of it: the parts that may have changed were
 * sent only up to `since`.
 * @param changedBits combined bits of the parts that may have changed
 */
function missedParts(
  sent: SentRoom,
  changedBits: number,
  since: number | undefined,
  bits: SourceList['extensionBits'],
): SentRoom {
  if (since === undefined) return sent;
  let missed = sent;
  for (const name of roomParts) {
    const bit = name === 'timeline' ? timelineBit : (bits.get(name) ?? 0);
    if (sent[name] === 'live' && changedBits & bit) missed = { ...missed, [name]: since };
  }
  return missed;
}
