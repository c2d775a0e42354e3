import { encodePosition, encodeSyncPosition } from '../../kernel/streams/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { ClientAccountData } from './client-account-data.ts';
import type { DeviceAnswer } from './device-part.ts';
import type { Subject } from './subject.ts';

/** One answer, piece by piece; empty pieces are left out. */
export interface Pieces {
  /** The entries of each section as JSON text, each with the id of its room. */
  readonly rooms: { join: string[]; invite: string[]; leave: string[]; knock: string[] };
  readonly accountData: readonly ClientAccountData[];
  readonly presence: readonly JsonObject[];
}

/** The answer as JSON text; `undefined`: it would say nothing, and is not the first one. */
export function answerText(
  { filter }: Pick<Subject, 'filter'>,
  { rooms, accountData, presence }: Pieces,
  devices: DeviceAnswer,
  { upTo, isInitial }: { upTo: number; isInitial: boolean },
): string | undefined {
  const sections = Object.entries(rooms)
    .filter(([, entries]) => entries.length > 0)
    .map(([section, entries]) => `"${section}":{${entries.join(',')}}`);
  const global = accountData.filter(
    ({ roomId, type }) => roomId === undefined && filter.accountData.passesType(type),
  );
  const isEmpty = sections.length + global.length + presence.length === 0 && !devices.isNews;
  if (isEmpty && !isInitial) return undefined;
  const events = global.map(({ type, content }) => JSON.stringify({ type, content }));
  return (
    `{"next_batch":"${encodeSyncPosition({ position: upTo, toDevice: devices.toDevice })}"` +
    (events.length > 0 ? `,"account_data":{"events":[${events.join(',')}]}` : '') +
    (presence.length > 0 ? `,"presence":{"events":${JSON.stringify(presence)}}` : '') +
    (sections.length > 0 ? `,"rooms":{${sections.join(',')}}` : '') +
    `${devices.text}}`
  );
}

/** The answer when nothing has happened. @param keys members as JSON text, each with a comma in front */
export const nothingUpTo = (position: number, keys: string) =>
  `{"next_batch":"${encodePosition(position)}"${keys}}`;
