import type { AccountDataItem } from '../../../sync-contract/index.ts';
import type { SourceList } from '../../sources/source-list.ts';
import { outsideOfRooms, type SentPart, sentUpTo } from '../connections/sent-room.ts';
import type { InRooms } from '../request.ts';
import type { RelevantRoom } from '../rooms/relevant-room.ts';
import { type ExtensionAnswer, type ExtensionContext, roomsFor, roomsText } from './extension.ts';

type Sources = Pick<SourceList, 'accountData' | 'accountDataBits'>;

/** Returns account data of the user and of the rooms in the answer. Source: MSC3959. */
export async function accountDataExtension(
  sources: Sources,
  context: ExtensionContext,
  request: InRooms,
): Promise<ExtensionAnswer> {
  const covered = roomsFor(context.rooms, request);
  const [global, byRoom] = await Promise.all([
    globalEntries(sources, context),
    roomEntries(sources, context, covered),
  ]);
  const text = `{"global":${listText(global)},"rooms":${roomsText(byRoom)}}`;
  return { name: 'account_data', text, hasNewData: global.length > 0 || byRoom.size > 0, covered };
}

async function globalEntries(
  { accountData }: Sources,
  { userId, connection, since, upTo, changes }: ExtensionContext,
): Promise<AccountDataItem[]> {
  const sent = connection.rooms.get(outsideOfRooms)?.account_data ?? 'never';
  const after = sentUpTo(sent, since);
  const bits = sent === 'live' ? changes?.user : undefined;
  const entries: AccountDataItem[] = [];
  for (const { bit, section } of accountData) {
    if (after === undefined) entries.push(...(await section.all(userId)));
    else if (bits === undefined || bits & bit)
      entries.push(...(await section.since(userId, { after, upTo })));
  }
  return entries.filter(({ roomId }) => roomId === undefined);
}

/** @returns JSON texts by room id */
async function roomEntries(
  { accountData, accountDataBits }: Sources,
  { userId, since, upTo }: ExtensionContext,
  rooms: readonly RelevantRoom[],
): Promise<Map<string, string>> {
  const sentPositions = new Map<string, number>();
  for (const { request, result, changedBits } of rooms) {
    const sent: SentPart = result.isInitial ? 'never' : (request.sent?.account_data ?? 'never');
    if (sent === 'live' && !(changedBits & accountDataBits)) continue;
    sentPositions.set(request.room.roomId, sentUpTo(sent, since) ?? 0);
  }
  if (sentPositions.size === 0) return new Map();
  const oldest = Math.min(...sentPositions.values());
  const byRoom = new Map<string, AccountDataItem[]>();
  for (const { section } of accountData) {
    if (!section.hasRooms) continue;
    const entries =
      oldest === 0 ? await section.all(userId) : await section.since(userId, { after: oldest, upTo });
    for (const entry of entries) {
      const after = entry.roomId === undefined ? undefined : sentPositions.get(entry.roomId);
      if (entry.roomId === undefined || after === undefined || entry.position <= after) continue;
      byRoom.set(entry.roomId, [...(byRoom.get(entry.roomId) ?? []), entry]);
    }
  }
  return new Map([...byRoom].map(([roomId, list]) => [roomId, listText(list)]));
}

function listText(entries: readonly AccountDataItem[]): string {
  return JSON.stringify(entries.map(({ type, content }) => ({ type, content })));
}
