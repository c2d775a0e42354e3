import type { AccountDataEntry } from '../../../account-data/index.ts';
import { RoomPart, UserPart } from '../../feeds/feed.ts';
import type { SyncSources } from '../../sources.ts';
import { outsideOfRooms, type SentPart, sentUpTo } from '../connections/sent-room.ts';
import type { InRooms } from '../request.ts';
import type { RelevantRoom } from '../rooms/relevant-room.ts';
import { type ExtensionAnswer, type ExtensionContext, roomsFor, roomsText } from './extension.ts';

type ClientEntry = Pick<AccountDataEntry, 'type' | 'content'>;

/** What the user keeps on the server, in general and for the rooms of the answer. Source: MSC3959. */
export async function accountDataExtension(
  sources: SyncSources,
  context: ExtensionContext,
  request: InRooms,
): Promise<ExtensionAnswer> {
  const covered = roomsFor(context.rooms, request);
  const [global, byRoom] = await Promise.all([
    globalEntries(sources, context),
    roomEntries(sources, context, covered),
  ]);
  const text = `{"global":${listText(global)},"rooms":${roomsText(byRoom)}}`;
  return { name: 'account_data', text, isNews: global.length > 0 || byRoom.size > 0, covered };
}

async function globalEntries(
  { accountData, pushRules }: SyncSources,
  { userId, connection, since, upTo, changes }: ExtensionContext,
): Promise<ClientEntry[]> {
  const sent = connection.rooms.get(outsideOfRooms)?.accountData ?? 'never';
  const after = sentUpTo(sent, since);
  const isGlobal = ({ roomId }: AccountDataEntry) => roomId === undefined;
  const rules = async () => ({ type: 'm.push_rules', content: await pushRules.content(userId) });
  if (after === undefined) return [await rules(), ...(await accountData.all(userId)).filter(isGlobal)];
  const known = sent === 'live' ? changes : undefined;
  const hasRules = known
    ? (known.user & UserPart.pushRules) !== 0
    : await pushRules.changedIn(userId, after, upTo);
  const entries: ClientEntry[] = hasRules ? [await rules()] : [];
  if (known && !(known.user & UserPart.accountData)) return entries;
  return [...entries, ...(await accountData.changesSince(userId, after, upTo)).filter(isGlobal)];
}

/** @returns JSON by room id */
async function roomEntries(
  { accountData }: SyncSources,
  { userId, since, upTo }: ExtensionContext,
  rooms: readonly RelevantRoom[],
): Promise<Map<string, string>> {
  const afters = new Map<string, number>();
  for (const { request, result, parts } of rooms) {
    const sent: SentPart = result.isInitial ? 'never' : (request.sent?.accountData ?? 'never');
    if (sent === 'live' && !(parts & RoomPart.accountData)) continue;
    afters.set(request.room.roomId, sentUpTo(sent, since) ?? 0);
  }
  if (afters.size === 0) return new Map();
  const oldest = Math.min(...afters.values());
  const entries =
    oldest === 0 ? await accountData.all(userId) : await accountData.changesSince(userId, oldest, upTo);
  const byRoom = new Map<string, AccountDataEntry[]>();
  for (const entry of entries) {
    const after = entry.roomId === undefined ? undefined : afters.get(entry.roomId);
    if (entry.roomId === undefined || after === undefined || entry.position <= after) continue;
    byRoom.set(entry.roomId, [...(byRoom.get(entry.roomId) ?? []), entry]);
  }
  return new Map([...byRoom].map(([roomId, list]) => [roomId, listText(list)]));
}

function listText(entries: readonly ClientEntry[]): string {
  return JSON.stringify(entries.map(({ type, content }) => ({ type, content })));
}
