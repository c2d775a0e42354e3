/** Users: the list, one user, and what administrators do to them. */
import { nextOf, type Page, type PageRequest } from './lists.ts';
import { type Api, path } from './request.ts';

export interface ListedUser {
  readonly name: string;
  readonly displayname: string | null;
  readonly admin: boolean;
  readonly is_guest: boolean;
  readonly user_type: string | null;
  readonly deactivated: boolean;
  readonly erased: boolean;
  readonly shadow_banned: boolean;
  readonly locked: boolean;
  readonly suspended: boolean;
  /** Milliseconds since the epoch. */
  readonly creation_ts: number;
  readonly last_seen_ts: number | null;
}

export interface UserDetails extends Omit<ListedUser, 'creation_ts'> {
  /** Seconds since the epoch. */
  readonly creation_ts: number;
  readonly threepids: readonly { readonly medium: string; readonly address: string }[];
  readonly external_ids: readonly { readonly auth_provider: string; readonly external_id: string }[];
  readonly appservice_id: string | null;
}

export interface UserDevice {
  readonly device_id: string;
  readonly display_name: string | null;
  readonly last_seen_ip: string | null;
  readonly last_seen_user_agent: string | null;
  readonly last_seen_ts: number | null;
}

/** Which users a list has. */
export interface UserFilter {
  /** A part of the user id or display name. */
  readonly name?: string | undefined;
  /** Whether the users are administrators; absent: all users. */
  readonly admins?: boolean | undefined;
  /** False leaves out guests. */
  readonly guests?: boolean | undefined;
  readonly deactivated?: boolean | undefined;
  readonly locked?: boolean | undefined;
}

/** The properties of a user to set; absent ones do not change. */
export interface UserChange {
  readonly displayname?: string;
  readonly password?: string;
  readonly admin?: boolean;
  readonly locked?: boolean;
  readonly deactivated?: boolean;
}

export async function listUsers(
  api: Api,
  filter: UserFilter,
  page: PageRequest,
  signal: AbortSignal,
): Promise<Page<ListedUser>> {
  const answer = await api.admin<{ users: ListedUser[]; total: number; next_token?: string }>(
    'GET',
    '/v3/users',
    { query: { locked: true, ...filter, ...page }, signal },
  );
  return { rows: answer.users, total: answer.total, next: nextOf(answer.next_token) };
}

export const userDetails = (api: Api, userId: string, signal: AbortSignal): Promise<UserDetails> =>
  api.admin('GET', path`/v2/users/${userId}`, { signal });

export const changeUser = (api: Api, userId: string, change: UserChange): Promise<UserDetails> =>
  api.admin('PUT', path`/v2/users/${userId}`, { body: change });

/** Checks that a user name is free, because `changeUser` would change an existing user. @throws ApiError M_USER_IN_USE */
export const requireFreeName = (api: Api, name: string): Promise<unknown> =>
  api.admin('GET', '/v1/username_available', { query: { username: name } });

export async function userDevices(
  api: Api,
  userId: string,
  signal: AbortSignal,
): Promise<readonly UserDevice[]> {
  const { devices } = await api.admin<{ devices: UserDevice[] }>('GET', path`/v2/users/${userId}/devices`, {
    signal,
  });
  return devices.toSorted((a, b) => (b.last_seen_ts ?? 0) - (a.last_seen_ts ?? 0));
}

/** Deletes a device, which ends its session. */
export const removeDevice = (api: Api, userId: string, deviceId: string): Promise<unknown> =>
  api.admin('DELETE', path`/v2/users/${userId}/devices/${deviceId}`);

export interface UserRoom {
  readonly room_id: string;
  readonly membership: string;
  readonly name: string | null;
  readonly canonical_alias: string | null;
  readonly joined_members: number | null;
}

export async function userRooms(
  api: Api,
  userId: string,
  page: PageRequest,
  signal: AbortSignal,
): Promise<Page<UserRoom>> {
  const answer = await api.admin<{ rooms: UserRoom[]; total: number; next_token?: number }>(
    'GET',
    path`/v1/users/${userId}/rooms`,
    { query: { ...page }, signal },
  );
  return { rows: answer.rooms, total: answer.total, next: answer.next_token };
}

export interface UserPusher {
  readonly app_id: string;
  readonly app_display_name: string;
  readonly device_display_name: string;
  readonly kind: string;
  readonly pushkey: string;
  readonly data: { readonly url?: string };
}

export async function userPushers(
  api: Api,
  userId: string,
  signal: AbortSignal,
): Promise<readonly UserPusher[]> {
  type Answer = { pushers: UserPusher[] };
  return (await api.admin<Answer>('GET', path`/v1/users/${userId}/pushers`, { signal })).pushers;
}

/** Account data of one type: of the whole account, or of a room. */
export interface AccountDataOfType {
  readonly roomId: string | undefined;
  readonly type: string;
  readonly content: unknown;
}

export async function userAccountData(
  api: Api,
  userId: string,
  signal: AbortSignal,
): Promise<readonly AccountDataOfType[]> {
  type Contents = Readonly<Record<string, unknown>>;
  const { account_data: data } = await api.admin<{
    account_data: { global: Contents; rooms: Readonly<Record<string, Contents>> };
  }>('GET', path`/v1/users/${userId}/accountdata`, { signal });
  const entriesOf = (contents: Contents, roomId?: string) =>
    Object.entries(contents).map(([type, content]) => ({ roomId, type, content }));
  return [
    ...entriesOf(data.global),
    ...Object.entries(data.rooms).flatMap(([roomId, contents]) => entriesOf(contents, roomId)),
  ];
}

export const resetPassword = (
  api: Api,
  userId: string,
  password: string,
  endSessions: boolean,
): Promise<unknown> =>
  api.admin('POST', path`/v1/reset_password/${userId}`, {
    body: { new_password: password, logout_devices: endSessions },
  });

/** @param erase whether the messages of the user are hidden from users who join rooms later */
export const deactivateUser = (api: Api, userId: string, erase: boolean): Promise<unknown> =>
  api.admin('POST', path`/v1/deactivate/${userId}`, { body: { erase } });

export const setSuspended = (api: Api, userId: string, suspend: boolean): Promise<unknown> =>
  api.admin('PUT', path`/v1/suspend/${userId}`, { body: { suspend } });

export const setShadowBanned = (api: Api, userId: string, banned: boolean): Promise<unknown> =>
  api.admin(banned ? 'POST' : 'DELETE', path`/v1/users/${userId}/shadow_ban`);

export const setAdministrator = (api: Api, userId: string, admin: boolean): Promise<unknown> =>
  api.admin('PUT', path`/v1/users/${userId}/admin`, { body: { admin } });

/** Starts a job that redacts the newest 1,000 events of a user in each room. */
export const redactMessages = (api: Api, userId: string, reason: string): Promise<unknown> =>
  api.admin('POST', path`/v1/user/${userId}/redact`, {
    body: { rooms: [], ...(reason !== '' && { reason }) },
  });
