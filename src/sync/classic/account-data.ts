import type { AccountDataItem } from '../../sync-contract/index.ts';
import type { Changes } from '../feeds/feed.ts';
import type { SourceList } from '../sources/source-list.ts';
import type { AnswerRange, Recipient } from './recipient.ts';

/** Returns the account data of an answer, global and of rooms; without a promise when nothing has changed. */
export function accountDataSince(
  sources: Pick<SourceList, 'accountData' | 'accountDataBits'>,
  userId: string,
  range: AnswerRange,
): readonly AccountDataItem[] | Promise<readonly AccountDataItem[]> {
  const { since, changes } = range;
  const bits = since === undefined || !changes ? sources.accountDataBits : bitsIn(changes);
  return bits & sources.accountDataBits ? readSections(sources, userId, range, bits) : none;
}

async function readSections(
  { accountData }: Pick<SourceList, 'accountData'>,
  userId: string,
  { since, upTo }: AnswerRange,
  bits: number,
): Promise<AccountDataItem[]> {
  const items: AccountDataItem[] = [];
  for (const { bit, section } of accountData) {
    if (since === undefined) items.push(...(await section.all(userId)));
    else if (bits & bit) items.push(...(await section.since(userId, { after: since, upTo })));
  }
  return items;
}

const none: readonly AccountDataItem[] = [];
const noTexts: readonly string[] = [];

/** Combines the bits of changed data of all rooms and of the user. */
function bitsIn({ rooms, user }: Changes): number {
  let bits = user;
  for (const roomBits of rooms.values()) bits |= roomBits;
  return bits;
}

/** Returns the changed account data of a room that passes the filter, as JSON texts. */
export function accountDataIn(
  { filter }: Pick<Recipient, 'filter'>,
  roomId: string,
  changed: readonly AccountDataItem[],
): readonly string[] {
  const wanted = filter.room.accountData;
  if (changed.length === 0 || !wanted.passesRoom(roomId)) return noTexts;
  return changed
    .filter((entry) => entry.roomId === roomId && wanted.passesType(entry.type))
    .map(({ type, content }) => JSON.stringify({ type, content }));
}
