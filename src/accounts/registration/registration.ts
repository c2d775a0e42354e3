import type { Devices } from '../../devices/index.ts';
import type { Requester } from '../../kernel/http/index.ts';
import { type Randomness, randomString } from '../../kernel/randomness.ts';
import type { StreamWriter } from '../../kernel/streams/index.ts';
import {
  badJson,
  forbidden,
  type JsonObject,
  MatrixError,
  missingParam,
  type UserId,
} from '../../protocol/index.ts';
import type { AccountOptions } from '../account-options.ts';
import { type Accounts, userInUse } from '../accounts.ts';
import type { InteractiveAuth, InteractiveAuthResult } from '../interactive-auth/interactive-auth.ts';
import type { Flows } from '../interactive-auth/stage.ts';
import type { AccountLimits } from '../limits.ts';
import type { PasswordHasher } from '../passwords/password-hasher.ts';
import { checkPasswordPolicy } from '../passwords/password-policy.ts';
import type { Sessions } from '../sessions/sessions.ts';
import type { AccountTables } from '../tables.ts';
import { type UsernameReservations, userIdFor } from '../usernames.ts';
import { GuestUpgrade } from './guest-upgrade.ts';
import type { LoginDevice, RegistrationResult } from './registered-account.ts';

/** An account that is to be made; what the caller leaves out is made up or absent. */
export interface NewAccount {
  readonly userId: UserId;
  readonly password?: string | undefined;
  readonly displayName?: string | undefined;
  readonly isGuest?: boolean;
  readonly isAdmin?: boolean;
  readonly userType?: string | undefined;
  readonly appservice?: string | undefined;
  /** The device to log in with; absent: nobody is logged in. */
  readonly login?: LoginDevice | undefined;
}

export interface RegistrationDeps {
  readonly streams: StreamWriter;
  readonly randomness: Randomness;
  readonly accounts: Accounts;
  readonly devices: Devices;
  readonly sessions: Sessions;
  readonly hasher: PasswordHasher;
  readonly interactiveAuth: InteractiveAuth;
  readonly limits: AccountLimits;
  readonly reservations: UsernameReservations;
  /** Flows that verify something about whoever registers; none when the operator asks for nothing. */
  readonly verification: () => Flows;
  /** Set while users are kept out (`hs_disabled`). */
  readonly disabledError?: (() => MatrixError) | undefined;
}

type Options = Pick<
  AccountOptions,
  | 'server_name'
  | 'enable_registration'
  | 'enable_registration_without_verification'
  | 'allow_guest_access'
  | 'allow_underscore_prefixed_registration'
  | 'inhibit_user_in_use_error'
  | 'password_config'
  | 'user_types'
>;

const closed = () => forbidden('Registration is disabled');

/** Makes accounts. Source: client-server API, "Account registration". */
export class Registration {
  readonly #deps: RegistrationDeps;
  readonly #options: Options;
  readonly #guests: GuestUpgrade;

  constructor(deps: RegistrationDeps, options: Options) {
    this.#deps = deps;
    this.#guests = new GuestUpgrade(deps, options.server_name);
    this.#options = options;
  }

  /**
   * Registers whoever goes through one of the flows.
   * @throws Challenge with the flows; MatrixError M_FORBIDDEN when registration is off, M_USER_IN_USE,
   * M_INVALID_USERNAME, M_EXCLUSIVE, M_LIMIT_EXCEEDED and the codes of the password policy
   */
  async register(body: JsonObject, ip: string): Promise<RegistrationResult> {
    if (this.#deps.disabledError) throw this.#deps.disabledError();
    const flows = this.#flows();
    this.#deps.limits.registration.check(ip);
    await this.#checkWishes(readWishes(body));
    const proven: InteractiveAuthResult = await this.#deps.interactiveAuth.authenticate({
      operation: 'POST /register',
      body,
      requester: undefined,
      ip,
      flows,
    });
    this.#deps.limits.registration.take(ip);
    const wishes = readWishes(proven.body);
    await this.#checkWishes(wishes);
    if (wishes.password === undefined) throw missingParam("'password' is missing");
    if (wishes.guestToken !== undefined) {
      const guest = await this.#guests.find(wishes.username, wishes.guestToken);
      return this.#guests.upgrade(guest, wishes.password, wishes.login);
    }
    const userId = wishes.username === undefined ? this.#madeUpId('user') : this.#userIdFor(wishes.username);
    return this.create({ userId, password: wishes.password, login: wishes.login });
  }

  /** Makes a guest. Throws MatrixError M_FORBIDDEN, M_LIMIT_EXCEEDED. */
  async registerGuest(displayName: string | undefined, ip: string): Promise<RegistrationResult> {
    if (this.#deps.disabledError) throw this.#deps.disabledError();
    if (!this.#options.allow_guest_access) throw forbidden('Guest access is disabled');
    this.#deps.limits.registration.take(ip);
    const login = { displayName, refreshable: false };
    return this.create({ userId: this.#madeUpId('guest'), isGuest: true, login });
  }

  /** Whether an account with that name could be made. Throws MatrixError M_USER_IN_USE, M_INVALID_USERNAME, M_EXCLUSIVE. */
  async checkAvailable(username: string, ip: string): Promise<void> {
    this.#flows();
    this.#deps.limits.registration.check(ip);
    await this.#checkName(username);
  }

  /** The user id for a name that somebody asks for. Throws MatrixError M_INVALID_USERNAME, M_EXCLUSIVE. */
  userIdFor(username: string, requester?: Requester): UserId {
    return this.#userIdFor(username, requester?.appservice);
  }

  /** Makes an account without asking anything of anybody. Throws MatrixError M_USER_IN_USE. */
  async create(account: NewAccount): Promise<RegistrationResult> {
    const { accounts, devices, hasher, sessions, streams } = this.#deps;
    const { userId, login, password } = account;
    if (login) devices.check(login);
    const passwordHash = password === undefined ? undefined : await hasher.hash(password);
    const user = {
      userId,
      passwordHash,
      displayName: account.displayName,
      isGuest: account.isGuest ?? false,
      isAdmin: account.isAdmin ?? false,
      userType: account.userType ?? this.#options.user_types.default_user_type ?? undefined,
      appservice: account.appservice,
    };
    const registered = await streams.write<AccountTables, RegistrationResult>(async (writer, publish) => {
      await accounts.createIn(writer, publish, user);
      if (!login) return { userId, session: undefined };
      const wish = { userId, deviceId: login.deviceId, displayName: login.displayName };
      const { deviceId } = await devices.ensure(writer, publish, wish);
      const session = { userId, deviceId, isNewDevice: true, refreshable: login.refreshable };
      return { userId, session: { deviceId, ...(await sessions.open(writer, publish, session)) } };
    });
    await accounts.settled(userId);
    return registered;
  }

  /** @throws MatrixError M_FORBIDDEN when nobody may register */
  #flows(): Flows {
    if (!this.#options.enable_registration) throw closed();
    if (!this.#options.password_config.localdb_enabled || this.#options.password_config.enabled !== true) {
      throw closed();
    }
    const flows = this.#deps.verification();
    if (flows.length > 0) return flows;
    if (!this.#options.enable_registration_without_verification) throw closed();
    return [['m.login.dummy']];
  }

  async #checkWishes({ username, password, login, guestToken }: Wishes): Promise<void> {
    if (guestToken !== undefined) await this.#guests.find(username, guestToken);
    else if (username !== undefined) await this.#checkName(username);
    if (password !== undefined) checkPasswordPolicy(password, this.#options.password_config.policy);
    if (login) this.#deps.devices.check(login);
  }

  async #checkName(username: string): Promise<void> {
    const userId = this.#userIdFor(username);
    if (this.#options.inhibit_user_in_use_error) return;
    if (await this.#deps.accounts.isTaken(userId)) throw userInUse();
  }

  #userIdFor(username: string, appservice?: string): UserId {
    const userId = userIdFor(username, this.#options, appservice);
    if (this.#deps.reservations.isReservedFrom(userId, appservice)) {
      throw new MatrixError(400, 'M_EXCLUSIVE', 'This user name is reserved');
    }
    return userId;
  }

  /** Long enough never to be taken. Guests have numbers. */
  #madeUpId(kind: 'user' | 'guest'): UserId {
    const { randomness } = this.#deps;
    const digits = '0123456789';
    const localpart =
      kind === 'guest'
        ? randomString(randomness, 18, digits)
        : `u${randomString(randomness, 14, `${digits}abcdef`)}`;
    return `@${localpart}:${this.#options.server_name}` as UserId;
  }
}

interface Wishes {
  /** The access token of the guest who becomes a user. */
  readonly guestToken: string | undefined;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly login: LoginDevice | undefined;
}

function readWishes(body: JsonObject): Wishes {
  const text = (name: string): string | undefined => {
    const value = body[name] ?? undefined;
    if (value !== undefined && typeof value !== 'string') throw badJson(`'${name}' must be a string`);
    return value;
  };
  const login = {
    deviceId: text('device_id'),
    displayName: text('initial_device_display_name'),
    refreshable: body['refresh_token'] === true,
  };
  return {
    guestToken: text('guest_access_token'),
    username: text('username'),
    password: text('password'),
    login: body['inhibit_login'] === true ? undefined : login,
  };
}
