import { encodePosition, encodeSyncPosition } from '../../kernel/streams/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { AccountDataItem } from '../../sync-contract/index.ts';
import type { DeviceAnswer } from './device-part.ts';
import type { RoomSections } from './rooms/room-entries.ts';
import type { AnswerRange, Subject } from './subject.ts';

/** One answer, piece by piece; empty pieces are left out. */
export interface Pieces {
  readonly rooms: RoomSections;
  readonly accountData: readonly AccountDataItem[];
  readonly presence: readonly JsonObject[];
}

const sections = ['join', 'invite', 'leave', 'knock'] as const;

/** The answer as JSON text; `undefined`: it would say nothing, and is not the first one. */
export function answerText(
  { filter }: Pick<Subject, 'filter'>,
  { rooms, accountData, presence }: Pieces,
  devices: DeviceAnswer,
  { since, upTo }: Pick<AnswerRange, 'since' | 'upTo'>,
): string | undefined {
  let text = '';
  const events = accountData.filter(
    ({ roomId, type }) => roomId === undefined && filter.accountData.passesType(type),
  );
  if (events.length > 0) {
    const texts = events.map(({ type, content }) => JSON.stringify({ type, content }));
    text += `,"account_data":{"events":[${texts.join(',')}]}`;
  }
  if (presence.length > 0) text += `,"presence":{"events":${JSON.stringify(presence)}}`;
  const filled = sections.filter((section) => rooms[section].length > 0);
  if (filled.length > 0) {
    const texts = filled.map((section) => `"${section}":{${rooms[section].join(',')}}`);
    text += `,"rooms":{${texts.join(',')}}`;
  }
  if (text === '' && !devices.isNews && since !== undefined) return undefined;
  const nextBatch = encodeSyncPosition({ position: upTo, toDevice: devices.toDevice });
  return `{"next_batch":"${nextBatch}"${text}${devices.text}}`;
}

/** The answer when nothing has happened. @param keys members as JSON text, each with a comma in front */
export const nothingUpTo = (position: number, keys: string) =>
  `{"next_batch":"${encodePosition(position)}"${keys}}`;
