import { CommandFailure } from '../failure.ts';
import { userIdOf } from './identifiers.ts';
import {
  column,
  formatTime,
  nameColumn,
  outputOf,
  writeDetails,
  writeDone,
  writeList,
  yesNo,
} from './output.ts';
import { pagesOf } from './pages.ts';
import { confirm, newPassword } from './questions.ts';
import type { AdministrationFlags } from './server-choice.ts';
import { openSession, type Session } from './session.ts';

const usersPath = '/_synapse/admin/v2/users';
const pathOf = (userId: string) => `${usersPath}/${encodeURIComponent(userId)}`;
const pathV1 = (userId: string, action: string) =>
  `/_synapse/admin/v1/users/${encodeURIComponent(userId)}/${action}`;

/** The options of `hearth user list`. */
export interface UserListFlags extends AdministrationFlags {
  /** A part of the name or of the display name. */
  readonly name?: string;
  /** Shows only server administrators. */
  readonly admins?: boolean;
  /** Shows deactivated users as well. */
  readonly deactivated?: boolean;
  /** Shows only locked users. */
  readonly locked?: boolean;
  /** False leaves guests out. */
  readonly guests?: boolean;
  readonly orderBy?: string;
  readonly reverse?: boolean;
}

/** `hearth user list`: lists the users that match the options. */
export async function listUsers(flags: UserListFlags): Promise<void> {
  const session = await openSession(flags);
  const query = {
    name: flags.name,
    admins: flags.admins ? 'true' : undefined,
    deactivated: flags.deactivated ? 'true' : undefined,
    // The query includes locked users, because the API omits these by default.
    locked: 'true',
    guests: flags.guests === false ? 'false' : undefined,
    order_by: flags.orderBy,
    dir: flags.reverse ? 'b' : undefined,
  };
  const columns = [
    column('User', 'name'),
    nameColumn('Display name', 'displayname'),
    { title: 'Admin', value: (row: Row) => yesNo(row['admin']) },
    { title: 'State', value: stateOf },
    { title: 'Created', value: (row: Row) => formatTime(row['creation_ts']) },
    { title: 'Last seen', value: (row: Row) => formatTime(row['last_seen_ts']) },
  ];
  const pages = pagesOf(session, usersPath, query, { rows: 'users', next: 'next_token' });
  const shown = flags.locked ? lockedOnly(pages) : pages;
  await writeList(outputOf(flags), columns, shown, 'No user matches.');
}

type Row = Readonly<Record<string, unknown>>;

async function* lockedOnly(pages: AsyncIterable<readonly Row[]>) {
  for await (const rows of pages) yield rows.filter((row) => row['locked'] === true);
}

function stateOf(row: Row): string {
  const states = [
    row['is_guest'] && 'guest',
    row['deactivated'] && 'deactivated',
    row['erased'] && 'erased',
    row['locked'] && 'locked',
    row['suspended'] && 'suspended',
    row['shadow_banned'] && 'shadow-banned',
  ].filter((state) => typeof state === 'string');
  return states.length > 0 ? states.join(', ') : 'active';
}

/** `hearth user show`: shows the details of a user. */
export async function showUser(name: string, flags: AdministrationFlags): Promise<void> {
  const session = await openSession(flags);
  const output = outputOf(flags);
  const details = await session.call('GET', pathOf(userIdOf(name, session)));
  // The response has this time in seconds, and all other times in milliseconds.
  const created = Number(details['creation_ts']) * 1_000;
  writeDetails(output, output.json ? details : { ...details, creation_ts: created });
}

/** The options of `hearth user create`. */
export interface CreateUserFlags extends AdministrationFlags {
  readonly passwordFile?: string;
  readonly displayName?: string;
  readonly admin?: boolean;
}

/** `hearth user create`: creates a user, and fails when the user exists. */
export async function createUser(name: string, flags: CreateUserFlags): Promise<void> {
  const session = await openSession(flags);
  const userId = userIdOf(name, session);
  const localpart = userId.slice(1, userId.indexOf(':'));
  // The same request creates and changes users: without this check, it would change an existing user.
  await session.call(
    'GET',
    `/_synapse/admin/v1/username_available?${new URLSearchParams({ username: localpart })}`,
  );
  const created = await session.call('PUT', pathOf(userId), {
    password: await newPassword(flags.passwordFile),
    ...(flags.displayName !== undefined && { displayname: flags.displayName }),
    ...(flags.admin && { admin: true }),
  });
  const role = flags.admin ? ' as a server administrator' : '';
  writeDone(outputOf(flags), `Created ${String(created['name'])}${role}.`, created);
}

export interface PasswordFlags extends AdministrationFlags {
  readonly passwordFile?: string;
  readonly keepSessions?: boolean;
}

/** `hearth user password`: sets the password of a user. */
export async function setPassword(name: string, flags: PasswordFlags): Promise<void> {
  const session = await openSession(flags);
  const userId = userIdOf(name, session);
  await session.call('GET', pathOf(userId));
  const body = {
    new_password: await newPassword(flags.passwordFile),
    logout_devices: flags.keepSessions !== true,
  };
  const path = `/_synapse/admin/v1/reset_password/${encodeURIComponent(userId)}`;
  const answer = await session.call('POST', path, body);
  const sessions = flags.keepSessions ? 'Existing sessions stay.' : 'All sessions have ended.';
  writeDone(outputOf(flags), `${userId} has a new password. ${sessions}`, answer);
}

/** `hearth user deactivate`: deactivates an account after a confirmation. */
export async function deactivateUser(
  name: string,
  flags: AdministrationFlags & { readonly erase?: boolean },
): Promise<void> {
  const session = await openSession(flags);
  const userId = userIdOf(name, session);
  await session.call('GET', pathOf(userId));
  const erased = flags.erase ? ', and users who join rooms later see the messages redacted' : '';
  await confirm(`This ends the account ${userId}. The user leaves all rooms${erased}.`, flags);
  const path = `/_synapse/admin/v1/deactivate/${encodeURIComponent(userId)}`;
  const answer = await session.call('POST', path, { erase: flags.erase === true });
  writeDone(outputOf(flags), `${userId} is deactivated.`, answer);
}

/** `hearth user lock` and `hearth user unlock`: lock or unlock an account. */
export async function setLocked(name: string, locked: boolean, flags: AdministrationFlags): Promise<void> {
  await changeUser(name, flags, async (session, userId) => {
    await session.call('GET', pathOf(userId));
    const answer = await session.call('PUT', pathOf(userId), { locked });
    return [`${userId} is ${locked ? 'locked and cannot do anything' : 'unlocked'}.`, answer];
  });
}

/** `hearth user suspend` and `hearth user unsuspend`: suspend an account, or end its suspension. */
export async function setSuspended(
  name: string,
  suspend: boolean,
  flags: AdministrationFlags,
): Promise<void> {
  await changeUser(name, flags, async (session, userId) => {
    const path = `/_synapse/admin/v1/suspend/${encodeURIComponent(userId)}`;
    const text = suspend
      ? 'suspended and can only read, leave rooms and redact own messages'
      : 'not suspended any more';
    return [`${userId} is ${text}.`, await session.call('PUT', path, { suspend })];
  });
}

/** `hearth user admin`: makes a user a server administrator, or takes this role away. */
export async function setAdmin(
  name: string,
  flags: AdministrationFlags & { readonly revoke?: boolean },
): Promise<void> {
  const admin = flags.revoke !== true;
  await changeUser(name, flags, async (session, userId) => [
    `${userId} is ${admin ? 'a server administrator' : 'no server administrator any more'}.`,
    await session.call('PUT', pathV1(userId, 'admin'), { admin }),
  ]);
}

async function changeUser(
  name: string,
  flags: AdministrationFlags,
  perform: (session: Session, userId: string) => Promise<readonly [text: string, answer: object]>,
): Promise<void> {
  const session = await openSession(flags);
  const [text, answer] = await perform(session, userIdOf(name, session));
  writeDone(outputOf(flags), text, answer);
}

/** `hearth user sessions`: lists the sessions of a user. */
export async function listSessions(name: string, flags: AdministrationFlags): Promise<void> {
  const session = await openSession(flags);
  const userId = userIdOf(name, session);
  const { devices } = await session.call('GET', `${pathOf(userId)}/devices`);
  const columns = [
    column('Session', 'device_id'),
    column('Name', 'display_name'),
    column('Last seen', 'last_seen_ts'),
    column('Address', 'last_seen_ip'),
    column('Client', 'last_seen_user_agent'),
  ];
  await writeList(outputOf(flags), columns, [devices as Row[]], `${userId} has no session.`);
}

/** `hearth user logout`: ends the given sessions of a user, or all sessions when none is given. */
export async function logOutUser(
  name: string,
  sessionIds: readonly string[],
  flags: AdministrationFlags,
): Promise<void> {
  const session = await openSession(flags);
  const userId = userIdOf(name, session);
  const { devices } = await session.call('GET', `${pathOf(userId)}/devices`);
  const known = (devices as Row[]).map((device) => String(device['device_id']));
  const unknown = sessionIds.find((id) => !known.includes(id));
  if (unknown !== undefined) throw new CommandFailure(`${userId} has no session ${unknown}`);
  const ended = sessionIds.length > 0 ? sessionIds : known;
  await session.call('POST', `${pathOf(userId)}/delete_devices`, { devices: ended });
  const text = `Ended ${ended.length} ${ended.length === 1 ? 'session' : 'sessions'} of ${userId}.`;
  writeDone(outputOf(flags), text, { ended });
}
