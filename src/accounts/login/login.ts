import type { Devices } from '../../devices/index.ts';
import type { AnyWriter } from '../../kernel/database/index.ts';
import type { Authenticate } from '../../kernel/http/index.ts';
import type { StreamWriter } from '../../kernel/streams/index.ts';
import { type JsonObject, MatrixError } from '../../protocol/index.ts';
import type { AccountChecks } from '../account-checks.ts';
import type { AccountLimits } from '../limits.ts';
import type { LoginDevice, OpenedSession } from '../registration/registered-account.ts';
import type { Sessions } from '../sessions/sessions.ts';
import type { AccountTables } from '../tables.ts';

/** The request of a login or registration, as login types and registration see it. */
export interface LoginRequest {
  /** Address of the client. */
  readonly ip: string;
  /**
   * Authenticates the access token of the request, as application services send one. Other clients may send a stale one
   * with their login, which must not keep them from logging in, so only login types that need the requester call this.
   * @throws MatrixError M_UNKNOWN_TOKEN, and the other errors of the authenticator
   */
  readonly authenticate: Authenticate;
}

/** A login type. */
export interface LoginType {
  /** For instance `m.login.password`. */
  readonly type: string;
  /** Whether `GET /login` offers it and `POST /login` accepts it. */
  readonly opensSessions: boolean;
  /** Whether its logins are not limited by the address of the client. */
  readonly isUnlimited?: boolean;
  /** Further members of its entry in `GET /login`. */
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
  /** Further members of the response. */
  readonly members?: JsonObject | undefined;
  /** Runs in the transaction that opens the session. */
  readonly opened?: ((writer: AnyWriter, deviceId: string) => Promise<void>) | undefined;
}

export interface LoginDeps {
  readonly streams: StreamWriter;
  readonly devices: Devices;
  readonly sessions: Sessions;
  readonly limits: AccountLimits['login'];
  readonly types: readonly LoginType[];
  /** Asked after the user is authenticated. */
  readonly check?: AccountChecks['login'];
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
   * @throws MatrixError M_UNKNOWN for a type that is not offered, M_LIMIT_EXCEEDED, and the errors of the
   * login type and of the check
   */
  async login(
    body: JsonObject,
    device: LoginDevice,
    request: LoginRequest,
  ): Promise<{ userId: string; session: OpenedSession; members: JsonObject }> {
    const type = this.#typeOf(body);
    this.#deps.devices.check(device);
    const { userId, members = {}, opened } = await this.#authenticate(type, body, request, device);
    return { userId, session: await this.open(userId, device, undefined, opened), members };
  }

  /**
   * Authenticates a user as `login` does, without opening a session.
   * @returns the user id
   * @throws as `login`
   */
  async authenticate(body: JsonObject, request: LoginRequest): Promise<string> {
    return (await this.#authenticate(this.#typeOf(body), body, request)).userId;
  }

  /**
   * Opens a session for a user who has been authenticated.
   * @param before runs in the same transaction, before the session is opened
   * @param opened runs in the same transaction, after it
   */
  open(
    userId: string,
    { deviceId, displayName, refreshable }: LoginDevice,
    before?: (writer: AnyWriter) => Promise<void>,
    opened?: AuthenticatedUser['opened'],
  ): Promise<OpenedSession> {
    const { devices, sessions, streams } = this.#deps;
    return streams.write<AccountTables, OpenedSession>(async (writer, publish) => {
      await before?.(writer);
      const device = await devices.ensure(writer, publish, { userId, deviceId, displayName });
      const tokens = await sessions.open(writer, publish, {
        userId,
        deviceId: device.deviceId,
        isNewDevice: device.created,
        refreshable,
      });
      await opened?.(writer, device.deviceId);
      return { deviceId: device.deviceId, ...tokens };
    });
  }

  async #authenticate(
    type: LoginType,
    body: JsonObject,
    request: LoginRequest,
    { deviceId, displayName: deviceName }: Partial<LoginDevice> = {},
  ): Promise<AuthenticatedUser> {
    const { check, limits } = this.#deps;
    if (!type.isUnlimited) limits.address.take(request.ip);
    const user = await type.login(body, request);
    if (check) await check({ userId: user.userId, type: type.type, deviceId, deviceName, ip: request.ip });
    return user;
  }

  /** @throws MatrixError M_UNKNOWN for a type that is not offered */
  #typeOf(body: JsonObject): LoginType {
    const type = this.#offered().find((candidate) => candidate.type === body['type']);
    if (type === undefined) throw new MatrixError(400, 'M_UNKNOWN', 'Unknown login type');
    return type;
  }

  #offered(): LoginType[] {
    return this.#deps.types.filter((type) => type.opensSessions);
  }
}
