import type { Appservice } from '../../appservice-registry/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';
import type { RoomInterest } from '../interest/room-interest.ts';
import type { OutboxRow } from '../store.ts';
import type { DeviceLists } from './transaction-body.ts';

export interface DeviceListDeps {
  readonly engine: Pick<RoomReader, 'heads' | 'userRooms'>;
  readonly rooms: Pick<RoomInterest, 'servicesOf' | 'isCached'>;
}

type Row = Pick<OutboxRow, 'kind' | 'subject'>;

/**
 * Returns two lists of users. The service has to query the device lists of the users in `changed` again. It need not
 * track the users in `left`, because they are in no room whose events the service receives. What counts is the state of
 * the rooms at the time of the call: later changes have entries of their own.
 * Source: MSC3202, with the meaning of `device_lists` in client-server API, `GET /sync`.
 */
export async function deviceListsOf(
  deps: DeviceListDeps,
  service: Appservice,
  rows: readonly Row[],
): Promise<DeviceLists> {
  const changed = await usersOf(deps, service, rows, 'device list');
  const unshared = await usersOf(deps, service, rows, 'unshared user');
  const left = [...unshared];
  if (left.length === 0) return { changed: [...changed], left };
  const sharing = await usersSharingRooms(deps, service, left);
  for (const userId of sharing) unshared.delete(userId);
  return { changed: [...changed.difference(unshared)], left: [...unshared] };
}

/**
 * Returns the users of the entries of a kind. The subject of an entry is a user or a room. A room stands for its joined
 * members. An entry of the kind `unshared user` about a room is ignored when the service receives the events of that
 * room now.
 */
async function usersOf(
  { engine, rooms }: DeviceListDeps,
  service: Appservice,
  rows: readonly Row[],
  kind: Row['kind'],
): Promise<Set<string>> {
  const users = new Set<string>();
  for (const { kind: entryKind, subject } of rows) {
    if (entryKind !== kind) continue;
    if (subject.startsWith('@')) users.add(subject);
    else if (kind !== 'unshared user' || !(await rooms.servicesOf(subject)).includes(service)) {
      for (const [userId, membership] of (await engine.heads.get(subject))?.members ?? []) {
        if (membership === 'join' && !service.mayActAs(userId)) users.add(userId);
      }
    }
  }
  return users;
}

/** A transaction takes no further entries when the rooms of its entries have more joined members than this. */
const maxMembers = 10_000;

/**
 * Returns the entries of the outbox, from the first, that one transaction takes. An entry about a room stands for all
 * joined members of the room, so many entries about large rooms would make a transaction of any size. Entries with the
 * same position stay together.
 * @param rows in the order of their positions
 */
export async function entriesWithFewMembers<R extends Row & Pick<OutboxRow, 'position'>>(
  { engine }: Pick<DeviceListDeps, 'engine'>,
  rows: readonly R[],
): Promise<readonly R[]> {
  const counted = new Set<string>();
  let members = 0;
  let position = rows[0]?.position;
  for (const [index, row] of rows.entries()) {
    if (row.position !== position && members > maxMembers) return rows.slice(0, index);
    ({ position } = row);
    const isAboutUsers = row.kind === 'device list' || row.kind === 'unshared user';
    if (!isAboutUsers || row.subject.startsWith('@') || counted.has(row.subject)) continue;
    counted.add(row.subject);
    members += (await engine.heads.get(row.subject))?.memberCount('join') ?? 0;
  }
  return rows;
}

/** Number of users whose rooms are read at a time. */
const batchSize = 10_000;

/**
 * Maximum number of rooms that are loaded for one transaction. The transaction need not wait for the rooms of all users
 * of a large room.
 */
const maxLoadedRooms = 1_000;

/**
 * Returns the users who are joined to a room whose events a service receives. Also returns users who are joined to a
 * room that was not loaded. The service may then track the devices of these users for longer than necessary, which does
 * no harm.
 */
async function usersSharingRooms(
  { engine, rooms }: DeviceListDeps,
  service: Appservice,
  userIds: readonly string[],
): Promise<Set<string>> {
  const sharing = new Set<string>();
  const receivedRooms = new Map<string, boolean>();
  let loaded = 0;
  const mayReceive = async (roomId: string) => {
    const isLoaded = receivedRooms.has(roomId) || rooms.isCached(roomId);
    if (!isLoaded && loaded === maxLoadedRooms) return true;
    if (!isLoaded) loaded += 1;
    const isReceived = receivedRooms.get(roomId) ?? (await rooms.servicesOf(roomId)).includes(service);
    receivedRooms.set(roomId, isReceived);
    return isReceived;
  };
  for (let start = 0; start < userIds.length; start += batchSize) {
    const joined = await engine.userRooms.joinedIds(userIds.slice(start, start + batchSize));
    for (const [userId, roomIds] of joined) {
      // Begins with the rooms in the cache, since the other rooms have to be loaded.
      const isCached = (roomId: string) => receivedRooms.has(roomId) || rooms.isCached(roomId);
      const uncachedRooms = roomIds.filter((roomId) => !isCached(roomId));
      for (const roomId of [...roomIds.filter(isCached), ...uncachedRooms]) {
        if (!(await mayReceive(roomId))) continue;
        sharing.add(userId);
        break;
      }
    }
  }
  return sharing;
}
