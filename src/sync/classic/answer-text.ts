import type { Filter } from '../../filters/index.ts';
import { type LongText, TextBuilder } from '../../kernel/http/index.ts';
import { encodePosition, encodeSyncPosition } from '../../kernel/streams/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { AccountDataItem } from '../../sync-contract/index.ts';
import { textOf } from './account-data.ts';
import type { DeviceAnswer } from './device-fields.ts';
import type { AnswerRange, Recipient } from './recipient.ts';
import type { RoomSections } from './rooms/room-entries.ts';

/** The parts of one answer; empty parts are left out. */
export interface Pieces {
  readonly rooms: RoomSections;
  readonly accountData: readonly AccountDataItem[];
  readonly presence: readonly JsonObject[];
}

const sections = ['join', 'invite', 'leave', 'knock'] as const;

/** Returns the answer as JSON text; `undefined` when it is empty and not the answer to a first sync. */
export function answerText(
  { filter }: Pick<Recipient, 'filter'>,
  { rooms, accountData, presence }: Pieces,
  devices: DeviceAnswer,
  { since, upTo }: Pick<AnswerRange, 'since' | 'upTo'>,
): string | LongText | undefined {
  const events = accountDataTexts(filter, accountData);
  let start = '';
  if (events.length > 0) start += `,"account_data":{"events":[${events.join(',')}]}`;
  if (presence.length > 0) start += `,"presence":{"events":${JSON.stringify(presence)}}`;
  const filled = sections.filter((section) => !rooms[section].isEmpty);
  const isEmpty = start === '' && filled.length === 0;
  if (isEmpty && !devices.hasNewData && since !== undefined) return undefined;
  const text = new TextBuilder();
  text.add(`{"next_batch":"${encodeSyncPosition({ position: upTo, toDevice: devices.toDevice })}"${start}`);
  for (const [index, section] of filled.entries()) {
    text.add(`${index === 0 ? ',"rooms":{' : ','}"${section}":{`);
    text.append(rooms[section]);
    text.add('}');
  }
  text.add(filled.length > 0 ? `}${devices.text}}` : `${devices.text}}`);
  return text.finish();
}

/** Returns the global account data that passes the filter, as JSON texts. */
function accountDataTexts(filter: Filter, accountData: readonly AccountDataItem[]): readonly string[] {
  if (accountData.length === 0) return noTexts;
  return accountData
    .filter(({ roomId, type }) => roomId === undefined && filter.accountData.passesType(type))
    .map(textOf);
}

const noTexts: readonly string[] = [];

/**
 * Returns an answer without new data.
 * @param fields top-level fields as JSON text, each with a comma in front
 */
export const quietAnswerText = (position: number, fields: string) =>
  `{"next_batch":"${encodePosition(position)}"${fields}}`;
