import type { Devices } from '../../devices/index.ts';
import type { AnyWriter } from '../../kernel/database/index.ts';
import type { Requester } from '../../kernel/http/index.ts';
import { type Randomness, randomString } from '../../kernel/randomness.ts';
import {
  badJson,
  forbidden,
  type JsonObject,
  MatrixError,
  missingParam,
  type UserId,
} from '../../protocol/index.ts';
import type { AccountChecks, AccountNames } from '../account-checks.ts';
import type { AccountOptions } from '../account-options.ts';
import { type Accounts, userInUse } from '../accounts.ts';
import type { Consents } from '../consent/consents.ts';
import type { InteractiveAuth, InteractiveAuthResult } from '../interactive-auth/interactive-auth.ts';
import { type Flows, registrationOperation } from '../interactive-auth/stage.ts';
import type { AccountLimits } from '../limits.ts';
import type { LoginRequest } from '../login/login.ts';
import { checkPasswordPolicy } from '../passwords/password-policy.ts';
import type { RegistrationTokens } from '../registration-tokens/registration-tokens.ts';
import type { LoginDevice } from '../sessions/opened-session.ts';
import { type ThirdPartyIdentifiers, validatedAddresses } from '../third-party-identifiers.ts';
import { appserviceLoginUnsupported, type UsernameReservations, userIdFor } from '../usernames.ts';
import type { AccountCreation, NewAccount } from './account-creation.ts';
import { applyCompletedStages } from './completed-stages.ts';
import type { GuestUpgrade } from './guest-upgrade.ts';
import type { RegistrationResult } from './registered-account.ts';
import { type RegistrationFlowOptions, registrationFlows } from './registration-flows.ts';

export interface RegistrationDeps {
  readonly randomness: Randomness;
  readonly accounts: Accounts;
  readonly devices: Devices;
  readonly creation: AccountCreation;
  readonly guestUpgrade: GuestUpgrade;
  readonly interactiveAuth: InteractiveAuth;
  readonly limits: AccountLimits;
  readonly consents: Consents;
  readonly registrationTokens: RegistrationTokens;
  readonly reservations: UsernameReservations;
  /** Mail addresses and phone numbers of accounts. */
  readonly thirdPartyIds: ThirdPartyIdentifiers;
  /** Makes the error that refuses registrations while the server is disabled (`hs_disabled`); absent otherwise. */
  readonly disabledError?: (() => MatrixError) | undefined;
  /** Forbids registrations; absent: nothing is checked. */
  readonly checks?: Pick<AccountChecks, 'registration' | 'newAccount'> | undefined;
  /** Chooses names of the accounts that clients register. */
  readonly names?: AccountNames | undefined;
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
> &
  RegistrationFlowOptions;

const registrationDisabled = () => forbidden('Registration is disabled');

/** Registers accounts. Source: client-server API, "Account registration". */
export class Registration {
  readonly #deps: RegistrationDeps;
  readonly #options: Options;

  constructor(deps: RegistrationDeps, options: Options) {
    this.#deps = deps;
    this.#options = options;
  }

  /** Whether users can register accounts. */
  get isOpen(): boolean {
    return this.#deps.disabledError === undefined && this.#allowedFlows().length > 0;
  }

  /**
   * Checks that a login may create the account of a user whom another service has authenticated.
   * @throws MatrixError M_RESOURCE_LIMIT_EXCEEDED while the server is disabled (`hs_disabled`), or when it has reached its
   * limit of users
   */
  checkNewAccount(): void {
    if (this.#deps.disabledError) throw this.#deps.disabledError();
    this.#deps.checks?.newAccount?.();
  }

  /** Whether users can choose a flow with this stage. */
  offers(stage: string): boolean {
    return this.#allowedFlows().some((flow) => flow.includes(stage));
  }

  /**
   * Registers a user who completes one of the flows.
   * @throws Challenge with the flows; MatrixError M_FORBIDDEN when registration is off, M_RESOURCE_LIMIT_EXCEEDED while the
   * server is disabled, M_USER_IN_USE, M_INVALID_USERNAME, M_EXCLUSIVE, M_LIMIT_EXCEEDED, M_MISSING_PARAM, M_BAD_JSON, and
   * the errors of the password policy, of the checks and of `applyCompletedStages`
   */
  async register(body: JsonObject, { ip }: Pick<LoginRequest, 'ip'>): Promise<RegistrationResult> {
    if (this.#deps.disabledError) throw this.#deps.disabledError();
    const flows = this.#flows();
    this.#deps.limits.registration.check(ip);
    const request = {
      operation: registrationOperation,
      body: knownMembers(body),
      requester: undefined,
      ip,
      flows,
      check: () => this.#checkRequest(readParameters(body), ip),
    };
    return this.#deps.interactiveAuth.run(request, (authenticated) => {
      this.#deps.limits.registration.take(ip);
      return this.#registerAuthenticated(authenticated, ip);
    });
  }

  async #registerAuthenticated(
    authenticated: InteractiveAuthResult,
    ip: string,
  ): Promise<RegistrationResult> {
    const { names = {}, thirdPartyIds } = this.#deps;
    const sent = readParameters(authenticated.body);
    const pending = { username: sent.username, stages: Object.fromEntries(authenticated.completed) };
    const parameters = { ...sent, username: (await names.username?.(pending)) ?? sent.username };
    await this.#checkParameters(parameters);
    if (parameters.password === undefined) throw missingParam("'password' is missing");
    const { password, login } = parameters;
    const userId = await this.#userToRegister(parameters);
    const addresses = validatedAddresses(authenticated.completed);
    for (const { medium, address } of addresses) await thirdPartyIds.checkUse?.(medium, address, true);
    const isShadowBanned =
      (await this.#deps.checks?.registration?.({ userId, isGuest: false, addresses, ip })) === 'shadow-ban';
    const onCreate = (writer: AnyWriter) =>
      applyCompletedStages(writer, this.#deps, { userId, authenticated });
    if (parameters.guestToken === undefined) {
      const displayName = await names.displayName?.(pending);
      return this.create({ userId, password, displayName, isShadowBanned, login, onCreate });
    }
    return this.#deps.guestUpgrade.upgrade({ userId, password, isShadowBanned, login, onUpgrade: onCreate });
  }

  /** Returns the id of the guest to upgrade, or of the new user. */
  async #userToRegister({ username, guestToken }: RegistrationParameters): Promise<UserId> {
    if (guestToken !== undefined) return this.#deps.guestUpgrade.find(username, guestToken);
    return username === undefined ? this.#generatedId('user') : this.#userIdFor(username);
  }

  /**
   * Registers a user of an application service, without interactive authentication and rate limits. Source:
   * application service API, "Server admin style permissions".
   * @param appservice id of the service
   * @throws MatrixError M_USER_IN_USE, M_INVALID_USERNAME, M_EXCLUSIVE, M_APPSERVICE_LOGIN_UNSUPPORTED
   */
  async registerForService(body: JsonObject, appservice: string): Promise<RegistrationResult> {
    const { username = body['user'], login } = readParameters(body);
    if (typeof username !== 'string') throw missingParam("'username' is missing");
    if (login) {
      if (this.#deps.reservations.managesDevices?.(appservice)) {
        throw appserviceLoginUnsupported('inhibit_login must be true');
      }
      this.#deps.devices.check(login);
    }
    return this.create({ userId: this.#userIdFor(username, appservice), appservice, login });
  }

  /**
   * Registers a guest.
   * @throws MatrixError M_FORBIDDEN when guests are not allowed, M_LIMIT_EXCEEDED, M_RESOURCE_LIMIT_EXCEEDED, and the errors
   * of the checks
   */
  async registerGuest(displayName: string | undefined, ip: string): Promise<RegistrationResult> {
    if (this.#deps.disabledError) throw this.#deps.disabledError();
    if (!this.#options.allow_guest_access) throw forbidden('Guest access is disabled');
    this.#deps.limits.registration.take(ip);
    const login = { displayName, refreshable: false };
    const userId = this.#generatedId('guest');
    const verdict = await this.#deps.checks?.registration?.({ userId, isGuest: true, addresses: [], ip });
    return this.create({ userId, isGuest: true, isShadowBanned: verdict === 'shadow-ban', login });
  }

  /**
   * Checks that a user name is available. With `inhibit_user_in_use_error`, accepts names that are in use.
   * @throws MatrixError M_USER_IN_USE, M_INVALID_USERNAME, M_EXCLUSIVE, M_LIMIT_EXCEEDED; M_FORBIDDEN when registration is off
   */
  async checkAvailable(username: string, ip: string): Promise<void> {
    this.#flows();
    this.#deps.limits.registration.check(ip);
    this.#deps.limits.availability.take(ip);
    await this.#checkName(username);
  }

  /**
   * Checks on behalf of an administrator that a user name is available: without rate limits, also where registration is
   * disabled, and whatever `inhibit_user_in_use_error` says.
   * @throws MatrixError M_USER_IN_USE, M_INVALID_USERNAME, M_EXCLUSIVE
   */
  async checkAvailableForAdmin(username: string): Promise<void> {
    if (await this.#deps.accounts.isTaken(this.#userIdFor(username))) throw userInUse();
  }

  /**
   * Returns the user id for a requested user name.
   * @throws MatrixError M_INVALID_USERNAME, M_EXCLUSIVE
   */
  userIdFor(username: string, requester?: Requester): UserId {
    return this.#userIdFor(username, requester?.appservice);
  }

  /**
   * Creates an account. Does not check who requests it: the caller does.
   * @throws as `AccountCreation.create`
   */
  create(account: NewAccount): Promise<RegistrationResult> {
    return this.#deps.creation.create(account);
  }

  /** @throws MatrixError M_FORBIDDEN when registration is off */
  #flows(): Flows {
    const flows = this.#allowedFlows();
    if (flows.length === 0) throw registrationDisabled();
    return flows;
  }

  /** Returns the flows of a registration; none when registration is off. */
  #allowedFlows(): Flows {
    const { enable_registration, password_config } = this.#options;
    const { localdb_enabled, enabled } = password_config;
    if (!enable_registration || !localdb_enabled || enabled !== true) return [];
    return registrationFlows(this.#options, (stage) => this.#deps.interactiveAuth.offers(stage));
  }

  /** Checks parameters as `#checkParameters` does; a taken name counts towards the rate limit of availability checks. */
  async #checkRequest(parameters: RegistrationParameters, ip: string): Promise<void> {
    this.#deps.limits.availability.check(ip);
    try {
      await this.#checkParameters(parameters);
    } catch (error) {
      if (error instanceof MatrixError && error.errcode === 'M_USER_IN_USE')
        this.#deps.limits.availability.take(ip);
      throw error;
    }
  }

  async #checkParameters({ username, password, login, guestToken }: RegistrationParameters): Promise<void> {
    if (guestToken !== undefined) await this.#deps.guestUpgrade.find(username, guestToken);
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
      const error =
        appservice === undefined
          ? 'This user name is reserved'
          : `The application service '${appservice}' may not use this user name`;
      throw new MatrixError(400, 'M_EXCLUSIVE', error);
    }
    return userId;
  }

  /** Generates a user id that is random enough to be free. Guests have numeric names. */
  #generatedId(kind: 'user' | 'guest'): UserId {
    const { randomness } = this.#deps;
    const digits = '0123456789';
    const localpart =
      kind === 'guest'
        ? randomString(randomness, 18, digits)
        : `u${randomString(randomness, 14, `${digits}abcdef`)}`;
    return `@${localpart}:${this.#options.server_name}` as UserId;
  }
}

interface RegistrationParameters {
  /** The access token of the guest account to upgrade. */
  readonly guestToken: string | undefined;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly login: LoginDevice | undefined;
}

/** The members of a registration request that this server uses. Other members are not stored. */
const requestMembers = [
  'auth',
  'device_id',
  'guest_access_token',
  'inhibit_login',
  'initial_device_display_name',
  'password',
  'refresh_token',
  'username',
];

const knownMembers = (body: JsonObject): JsonObject =>
  Object.fromEntries(requestMembers.filter((name) => name in body).map((name) => [name, body[name] ?? null]));

function readParameters(body: JsonObject): RegistrationParameters {
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
