import { sleep, systemClock } from '../../kernel/clock.ts';
import { stayAlive } from '../../kernel/process/index.ts';
import { CommandFailure } from '../failure.ts';
import { printable } from '../printable.ts';
import { roomIdOf, userIdOf } from './identifiers.ts';
import { column, nameColumn, outputOf, writeDetails, writeDone, writeList, yesNo } from './output.ts';
import { pagesOf } from './pages.ts';
import { Progress } from './progress.ts';
import { confirm } from './questions.ts';
import type { AdministrationFlags } from './server-choice.ts';
import { openSession, type Session } from './session.ts';
import { timeIn } from './times.ts';

type Row = Readonly<Record<string, unknown>>;

const roomsPath = '/_synapse/admin/v1/rooms';
const pathOf = (roomId: string) => `${roomsPath}/${encodeURIComponent(roomId)}`;

/** The options of `hearth room list`. */
export interface RoomListFlags extends AdministrationFlags {
  readonly search?: string;
  readonly orderBy?: string;
  readonly reverse?: boolean;
}

/** `hearth room list`: lists all rooms, or those that match `--search`. */
export async function listRooms(flags: RoomListFlags): Promise<void> {
  const session = await openSession(flags);
  const query = { search_term: flags.search, order_by: flags.orderBy, dir: flags.reverse ? 'b' : undefined };
  const columns = [
    column('Room', 'room_id'),
    nameColumn('Name', 'name'),
    column('Alias', 'canonical_alias'),
    { ...column('Members', 'joined_members'), isNumber: true },
    { ...column('Local', 'joined_local_members'), isNumber: true },
    column('Version', 'version'),
    { title: 'Public', value: (row: Row) => yesNo(row['public']) },
    { title: 'Encrypted', value: (row: Row) => (row['encryption'] ? 'yes' : '-') },
  ];
  const pages = pagesOf(session, roomsPath, query, { rows: 'rooms', next: 'next_batch' });
  await writeList(outputOf(flags), columns, pages, 'No room matches.');
}

/** `hearth room show`: shows the details of a room. */
export async function showRoom(name: string, flags: AdministrationFlags): Promise<void> {
  const session = await openSession(flags);
  const roomId = await roomIdOf(name, session);
  const details = await session.call('GET', pathOf(roomId));
  const { block } = await session.call('GET', `${pathOf(roomId)}/block`);
  writeDetails(outputOf(flags), { ...details, blocked: block });
}

/** `hearth room members`: lists the joined members of a room. */
export async function listMembers(name: string, flags: AdministrationFlags): Promise<void> {
  const session = await openSession(flags);
  const { members } = await session.call('GET', `${pathOf(await roomIdOf(name, session))}/members`);
  const rows = (members as string[]).map((user_id) => ({ user_id }));
  await writeList(outputOf(flags), [column('Member', 'user_id')], [rows], 'The room is empty.');
}

/** The options of `hearth room delete`. */
export interface DeleteRoomFlags extends AdministrationFlags {
  /** Prevents local users from entering the room again. */
  readonly block?: boolean;
  /** False keeps the history in the database. */
  readonly purge?: boolean;
  readonly force?: boolean;
  readonly newRoomUser?: string;
  readonly newRoomName?: string;
  readonly message?: string;
}

/** `hearth room delete`: deletes a room, and returns when the deletion is complete. */
export async function deleteRoom(name: string, flags: DeleteRoomFlags): Promise<void> {
  const session = await openSession(flags);
  const roomId = await roomIdOf(name, session);
  const details = await session.call('GET', pathOf(roomId));
  const localMembers = Number(details['joined_local_members'] ?? 0);
  const title = typeof details['name'] === 'string' ? ` (${details['name']})` : '';
  await confirm(
    `This removes ${localMembers} local ${localMembers === 1 ? 'member' : 'members'} from ${roomId}${title}${flags.purge === false ? '' : ' and deletes its messages on this server'}.`,
    flags,
  );
  const { delete_id: id } = await session.call(
    'DELETE',
    `/_synapse/admin/v2/rooms/${encodeURIComponent(roomId)}`,
    {
      block: flags.block === true,
      purge: flags.purge !== false,
      force_purge: flags.force === true,
      ...(flags.newRoomUser !== undefined && { new_room_user_id: userIdOf(flags.newRoomUser, session) }),
      ...(flags.newRoomName !== undefined && { room_name: flags.newRoomName }),
      ...(flags.message !== undefined && { message: flags.message }),
    },
  );
  const path = `/_synapse/admin/v2/rooms/delete_status/${encodeURIComponent(String(id))}`;
  const finalStatus = await untilDone(session, path, flags, (status, progress) => {
    const removed = removedUsers(status);
    progress.show(removed, localMembers, `deleting ${roomId}: ${removed} of ${localMembers} members removed`);
  });
  const blocked = flags.block ? ' Local users cannot enter it again.' : '';
  writeDone(
    outputOf(flags),
    `Deleted ${roomId}; ${removedText(removedUsers(finalStatus))}.${blocked}`,
    finalStatus,
  );
}

function removedUsers(status: Row): number {
  const { kicked_users: kicked } = (status['shutdown_room'] ?? {}) as { kicked_users?: unknown };
  return Array.isArray(kicked) ? kicked.length : 0;
}

const removedText = (count: number) =>
  count === 1 ? '1 local member was removed' : `${count} local members were removed`;

/** `hearth room block` and `hearth room unblock`: forbid local users to enter a room, or allow it. */
export async function setBlocked(name: string, block: boolean, flags: AdministrationFlags): Promise<void> {
  const session = await openSession(flags);
  const roomId = await roomIdOf(name, session);
  const answer = await session.call('PUT', `${pathOf(roomId)}/block`, { block });
  const text = block
    ? `Local users cannot enter ${roomId} any more.`
    : `Local users can enter ${roomId} again.`;
  writeDone(outputOf(flags), text, answer);
}

export interface PurgeHistoryFlags extends AdministrationFlags {
  /** A time, or the id of an event. */
  readonly before: string;
  readonly deleteLocal?: boolean;
}

/** `hearth room purge-history`: deletes old messages of a room, and returns when the deletion is complete. */
export async function purgeHistory(name: string, flags: PurgeHistoryFlags): Promise<void> {
  const session = await openSession(flags);
  const roomId = await roomIdOf(name, session);
  const upTo = flags.before.startsWith('$')
    ? { purge_up_to_event_id: flags.before }
    : { purge_up_to_ts: timeIn(flags.before, 'past', systemClock.now()) };
  const kept = flags.deleteLocal ? '' : ' Messages of local users stay.';
  await confirm(
    `This deletes the messages before ${flags.before} in ${roomId} on this server.${kept}`,
    flags,
  );
  const path = `/_synapse/admin/v1/purge_history/${encodeURIComponent(roomId)}`;
  const body = { ...upTo, delete_local_events: flags.deleteLocal === true };
  const { purge_id: id } = await session.call('POST', path, body);
  const statusPath = `/_synapse/admin/v1/purge_history_status/${encodeURIComponent(String(id))}`;
  const finalStatus = await untilDone(session, statusPath, flags, (status, progress) => {
    const { done: depth, total } = status['progress'] as { done: number; total: number };
    progress.show(depth, total, `deleting the history of ${roomId}: depth ${depth} of ${total}`);
  });
  writeDone(outputOf(flags), `Deleted the history of ${roomId} before ${flags.before}.`, finalStatus);
}

/**
 * `hearth room make-admin`: gives a user, by default the caller, the rights of the most powerful local member of a
 * room.
 */
export async function makeRoomAdmin(
  name: string,
  user: string | undefined,
  flags: AdministrationFlags,
): Promise<void> {
  const session = await openSession(flags);
  const roomId = await roomIdOf(name, session);
  const userId = user === undefined ? session.userId : userIdOf(user, session);
  const answer = await session.call('POST', `${pathOf(roomId)}/make_room_admin`, { user_id: userId });
  writeDone(
    outputOf(flags),
    `${userId} has the highest power level of the local members of ${roomId}. A user outside of the room is invited, or can join if the room is public.`,
    answer,
  );
}

/** Milliseconds between the first two requests for the status of a job. */
const firstWait = 50;

/** Maximum milliseconds between two requests for the status of a job. */
const longestWait = 1_000;

/**
 * Waits until a job of the server is complete. The job continues when the command is interrupted.
 * @throws CommandFailure when the job fails
 */
async function untilDone(
  session: Session,
  path: string,
  flags: AdministrationFlags,
  show: (status: Row, progress: Progress) => void,
): Promise<Row> {
  const progress = new Progress(flags.context.stderr);
  try {
    for (let wait = firstWait; ; wait = Math.min(2 * wait, longestWait)) {
      const status = await session.call('GET', path);
      if (status['status'] === 'complete') return status;
      if (status['status'] === 'failed')
        throw new CommandFailure(`the server could not complete this: ${printable(String(status['error']))}`);
      show(status, progress);
      await stayAlive(sleep(systemClock, wait));
    }
  } finally {
    progress.end();
  }
}
