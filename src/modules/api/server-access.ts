import type { JsonObject, JsonValue } from '../../protocol/index.ts';

/** An account of this server. */
export interface ModuleUser {
  readonly userId: string;
  readonly isAdmin: boolean;
  readonly isGuest: boolean;
  readonly isDeactivated: boolean;
  readonly isLocked: boolean;
  readonly isSuspended: boolean;
}

/** Accounts; usable as soon as the server is started, and in every callback. */
export interface UserAccess {
  /** Returns an account; `undefined` when this server has none with this id. */
  get(userId: string): Promise<ModuleUser | undefined>;
  /**
   * Creates an account without a password.
   * @param localpart the part of the user id before the colon
   * @returns the user id
   * @throws an error with `errcode` M_USER_IN_USE, M_INVALID_USERNAME or M_EXCLUSIVE
   */
  register(localpart: string, profile?: { readonly displayName?: string }): Promise<string>;
  /** Returns the profile of a local or remote user, for instance `displayname`. @throws an error with `errcode` M_NOT_FOUND */
  profile(userId: string): Promise<JsonObject>;
  /**
   * Sets a field of a local user's profile. The rooms of the user show a new display name or avatar. An empty text
   * removes a display name or avatar.
   */
  setProfile(userId: string, field: string, value: JsonValue): Promise<void>;
  /** Returns account data of a local user; `undefined` when there is none. @param roomId absent for global data */
  accountData(userId: string, type: string, roomId?: string): Promise<JsonObject | undefined>;
  /** Sets account data of a local user; an empty object deletes it. @param roomId absent for global data */
  setAccountData(userId: string, type: string, content: JsonObject, roomId?: string): Promise<void>;
}

export interface HttpQuery {
  /** `GET` when absent. */
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Milliseconds for the whole exchange; 10,000 when absent, at most 60,000. */
  readonly timeout?: number;
  /** Maximum bytes of the response; 1 MiB when absent, at most 50 MiB. */
  readonly maxBody?: number;
}

export interface HttpAnswer {
  readonly status: number;
  /** Values by header name in lowercase. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Uint8Array;
}

/** Requests to other hosts: only to addresses that `ip_range_blacklist` allows, and through the configured proxy. */
export interface OutboundAccess {
  /** Sends a request. @throws an error when there is no complete answer, or the address is not allowed */
  fetch(url: string, query?: HttpQuery): Promise<HttpAnswer>;
}
