import type { AccountDataEntry } from '../../account-data/index.ts';
import { type Changes, RoomPart, UserPart } from '../feeds/feed.ts';
import type { SyncSources } from '../sources.ts';
import type { Subject } from './subject.ts';

/** One piece of account data as clients get it. */
export type ClientAccountData = Pick<AccountDataEntry, 'roomId' | 'type' | 'content'>;

/** Which account data an answer is about. */
interface Range {
  /** `undefined`: all there is. */
  readonly since: number | undefined;
  readonly upTo: number;
  /** What the feed knows of; `undefined` when it does not reach back that far. */
  readonly changes: Changes | undefined;
}

/** What a client is told of account data, of rooms as well, and of push rules. */
export async function accountDataSince(
  { accountData, pushRules }: Pick<SyncSources, 'accountData' | 'pushRules'>,
  userId: string,
  { since, upTo, changes }: Range,
): Promise<readonly ClientAccountData[]> {
  const rules = async (): Promise<ClientAccountData> => ({
    roomId: undefined,
    type: 'm.push_rules',
    content: await pushRules.content(userId),
  });
  if (since === undefined) return [await rules(), ...(await accountData.all(userId))];
  const inRooms = changes && [...changes.rooms.values()].some((parts) => parts & RoomPart.accountData);
  const hasRules = changes
    ? (changes.user & UserPart.pushRules) !== 0
    : await pushRules.changedIn(userId, since, upTo);
  const entries = hasRules ? [await rules()] : [];
  if (changes && !inRooms && !(changes.user & UserPart.accountData)) return entries;
  return [...entries, ...(await accountData.changesSince(userId, since, upTo))];
}

/** What has changed of a user's data in a room, as far as they want it, as JSON text. */
export function accountDataIn(
  { filter }: Pick<Subject, 'filter'>,
  roomId: string,
  changed: readonly ClientAccountData[],
): string[] {
  const wanted = filter.room.accountData;
  if (!wanted.passesRoom(roomId)) return [];
  return changed
    .filter((entry) => entry.roomId === roomId && wanted.passesType(entry.type))
    .map(({ type, content }) => JSON.stringify({ type, content }));
}
