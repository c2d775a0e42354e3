import type { Devices } from '../../devices/index.ts';
import { type AnyWriter, writerFor } from '../../kernel/database/index.ts';
import type { Authenticate } from '../../kernel/http/index.ts';
import type { StreamWriter } from '../../kernel/streams/index.ts';
import { forbidden, type JsonObject, MatrixError } from '../../protocol/index.ts';
import type { AccountChecks, AuthenticatedLogin, OpenedLogin } from '../account-checks.ts';
import type { AccountReader } from '../account-reader.ts';
import type { AccountLimits } from '../limits.ts';
import type { LoginDevice, OpenedSession } from '../sessions/opened-session.ts';
import type { Sessions } from '../sessions/sessions.ts';
import { deactivatedAccount } from '../sessions/token-errors.ts';
import type { AccountTables } from '../tables.ts';
import { isStillActive } from '../user-store.ts';

/** The request of a login or registration, as login types and registration see it. */
export interface LoginRequest {
  /** Address of the client. */
  readonly ip: string;
  /**
   * Authenticates the access token of the request. Application services send one. Other clients may send a stale token,
   * and their login must not fail because of it, so only login types that need the requester call this.
   * @throws MatrixError M_UNKNOWN_TOKEN, and the other errors of the authenticator
   */
  readonly authenticate: Authenticate;
}

/** A login type. */
export interface LoginType {
  /** For instance `m.login.password`. */
  readonly type: string;
  /** Whether `GET /login` offers this type and `POST /login` accepts it. */
  readonly isOffered: boolean;
  /** Whether the rate limit for the address of the client does not apply to logins of this type. */
  readonly isUnlimited?: boolean;
  /** Returns the fields besides `type` that `GET /login` shows for this type. */
  flow?(): JsonObject;
  /**
   * Authenticates the user.
   * @throws MatrixError M_FORBIDDEN when authentication fails
   */
  login(body: JsonObject, request: LoginRequest): Promise<AuthenticatedUser>;
}

/** The user of a login. */
export interface AuthenticatedUser {
  readonly userId: string;
  /** Fields that are added to the response of the login. */
  readonly extraFields?: JsonObject | undefined;
  /** Hash of the password that was checked. No session is opened if it has been replaced since. */
  readonly passwordHash?: string | undefined;
  /** Runs in the transaction that opens the session. */
  readonly opened?: ((writer: AnyWriter, deviceId: string) => Promise<void>) | undefined;
}

/**
 * Runs in the transaction that opens a new session on a device that exists, before the session is opened. Deletes the
 * data that a slice has stored about the earlier session of the device.
 */
export type BeforeReopening = (
  writer: AnyWriter,
  device: { readonly userId: string; readonly deviceId: string },
) => Promise<void>;

export interface LoginDeps {
  readonly streams: StreamWriter;
  readonly devices: Devices;
  readonly sessions: Sessions;
  readonly limits: AccountLimits['login'];
  readonly types: readonly LoginType[];
  readonly accounts: Pick<AccountReader, 'isAdmin'>;
  /**
   * Makes the error that refuses logins, except those of administrators, while the server is disabled (`hs_disabled`);
   * absent while it is not disabled.
   */
  readonly disabledError?: (() => MatrixError) | undefined;
  /** Runs after the user is authenticated. */
  readonly check?: AccountChecks['login'];
  /** Deletes what slices have stored about the earlier session when a device logs in again. */
  readonly beforeReopening?: readonly BeforeReopening[] | undefined;
  /** Receives each login, after its session is stored. */
  readonly loggedIn?: ((login: OpenedLogin) => void) | undefined;
}

/** Logs users in. Source: client-server API, "Login". */
export class Login {
  readonly #deps: LoginDeps;

  constructor(deps: LoginDeps) {
    this.#deps = deps;
  }

  /** Returns the flows of `GET /login`. */
  flows(): JsonObject[] {
    return this.#offered().map((type) => ({ type: type.type, ...type.flow?.() }));
  }

  /**
   * Authenticates a user, runs the check, and opens a session.
   * @throws MatrixError M_UNKNOWN for a type that is not offered, M_LIMIT_EXCEEDED, M_FORBIDDEN when the password was
   * changed since it was checked, and the errors of the login type, of `check`, of `open` and of `Devices.check`
   */
  async login(
    body: JsonObject,
    device: LoginDevice,
    request: LoginRequest,
  ): Promise<{ userId: string; session: OpenedSession; extraFields: JsonObject }> {
    const type = this.#typeOf(body);
    this.#deps.devices.check(device);
    const { userId, extraFields = {}, passwordHash, opened } = await this.#authenticate(type, body, request);
    const { deviceId, displayName: deviceName } = device;
    await this.check({ userId, type: type.type, deviceId, deviceName, ip: request.ip });
    const before = (writer: AnyWriter) => requirePassword(writer, userId, passwordHash);
    const session = await this.open({ userId, type: type.type }, device, before, opened);
    return { userId, session, extraFields };
  }

  /**
   * Authenticates a user as `login` does, without the check of modules and without opening a session.
   * @returns the user id
   * @throws MatrixError M_UNKNOWN for a type that is not offered, M_LIMIT_EXCEEDED, and the errors of the login type
   */
  async authenticate(body: JsonObject, request: LoginRequest): Promise<string> {
    return (await this.#authenticate(this.#typeOf(body), body, request)).userId;
  }

  /**
   * Checks whether an authenticated user may open a session: while the server is disabled, only administrators may; and
   * modules and the limit of monthly active users must allow it. `login` calls this itself; other callers of `open` call
   * it first.
   * @throws MatrixError when the login is refused
   */
  async check(login: AuthenticatedLogin): Promise<void> {
    const { accounts, disabledError } = this.#deps;
    if (disabledError && !(await accounts.isAdmin(login.userId))) throw disabledError();
    await this.#deps.check?.(login);
  }

  /**
   * Opens a session for a user who has been authenticated and checked, unless the account was deactivated since then.
   * @param login the user, and the login type that modules receive
   * @param before runs in the same transaction, before the session is opened
   * @param opened runs in the same transaction, after the session is opened
   * @throws MatrixError M_USER_DEACTIVATED, and the errors of `before` and `opened`
   */
  async open(
    { userId, type }: Pick<OpenedLogin, 'userId' | 'type'>,
    { deviceId, displayName, refreshable }: LoginDevice,
    before?: (writer: AnyWriter) => Promise<void>,
    opened?: AuthenticatedUser['opened'],
  ): Promise<OpenedSession> {
    const { beforeReopening = [], devices, sessions, streams } = this.#deps;
    const session = await streams.write<AccountTables, OpenedSession>(async (writer, publish) => {
      await before?.(writer);
      if (!(await isStillActive(writer, userId))) throw deactivatedAccount();
      const device = await devices.ensure(writer, publish, { userId, deviceId, displayName });
      if (!device.created) {
        for (const forget of beforeReopening) await forget(writer, { userId, deviceId: device.deviceId });
      }
      const tokens = await sessions.open(writer, publish, {
        userId,
        deviceId: device.deviceId,
        isNewDevice: device.created,
        refreshable,
      });
      await opened?.(writer, device.deviceId);
      return { deviceId: device.deviceId, ...tokens };
    });
    this.#deps.loggedIn?.({ userId, deviceId: session.deviceId, type });
    return session;
  }

  async #authenticate(type: LoginType, body: JsonObject, request: LoginRequest): Promise<AuthenticatedUser> {
    if (!type.isUnlimited) this.#deps.limits.address.take(request.ip);
    return type.login(body, request);
  }

  /** @throws MatrixError M_UNKNOWN for a type that is not offered */
  #typeOf(body: JsonObject): LoginType {
    const type = this.#offered().find((candidate) => candidate.type === body['type']);
    if (type === undefined) throw new MatrixError(400, 'M_UNKNOWN', 'Unknown login type');
    return type;
  }

  #offered(): LoginType[] {
    return this.#deps.types.filter((type) => type.isOffered);
  }
}

/** @throws MatrixError M_USER_DEACTIVATED or M_FORBIDDEN when the account was deactivated or its password was changed */
async function requirePassword(writer: AnyWriter, userId: string, passwordHash?: string): Promise<void> {
  if (passwordHash === undefined) return;
  const accounts = writerFor<AccountTables>(writer);
  if (await isStillActive(accounts, userId, passwordHash)) return;
  if (!(await isStillActive(accounts, userId))) throw deactivatedAccount();
  throw forbidden('The password has been changed');
}
