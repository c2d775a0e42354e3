import type { AccountDataItem } from '../../sync-contract/index.ts';
import type { Changes } from '../feeds/feed.ts';
import type { SourceList } from '../sources/source-list.ts';
import type { AnswerRange, Recipient } from './recipient.ts';

/** Returns the account data of an answer, both global and of rooms. Returns no promise when nothing has changed. */
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
  await prepareTexts(items);
  return items;
}

/** Number of characters of JSON text after which other requests are processed. */
const charactersPerTurn = 262_144;

const textsByItem = new WeakMap<AccountDataItem, string>();

/** Makes the texts of account data with pauses, because all account data of a user may have several MiB. */
async function prepareTexts(items: readonly AccountDataItem[]): Promise<void> {
  let characters = 0;
  for (const item of items) {
    characters += textOf(item).length;
    if (characters < charactersPerTurn) continue;
    characters = 0;
    await new Promise(setImmediate);
  }
}

/** Returns an event with account data as JSON text. */
export function textOf(item: AccountDataItem): string {
  const prepared = textsByItem.get(item);
  if (prepared !== undefined) return prepared;
  const { type, content } = item;
  const text = JSON.stringify({ type, content });
  textsByItem.set(item, text);
  return text;
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
  const ofRoom = byRoom(changed).get(roomId) ?? none;
  return ofRoom.filter(({ type }) => wanted.passesType(type)).map(textOf);
}

type ItemsByRoom = ReadonlyMap<string | undefined, readonly AccountDataItem[]>;

const itemsByRoom = new WeakMap<readonly AccountDataItem[], ItemsByRoom>();

/** Returns items by the id of their room; grouped once for all rooms of an answer. */
function byRoom(items: readonly AccountDataItem[]): ItemsByRoom {
  const grouped = itemsByRoom.get(items) ?? Map.groupBy(items, ({ roomId }) => roomId);
  itemsByRoom.set(items, grouped);
  return grouped;
}
