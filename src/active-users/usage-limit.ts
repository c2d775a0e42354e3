import type { User } from '../accounts/index.ts';
import type { DeviceActivity } from '../devices/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Requester } from '../kernel/http/index.ts';
import { LoadOnce } from '../kernel/load-once.ts';
import { MatrixError } from '../protocol/index.ts';
import type { MonthlyUsers } from './monthly-users.ts';

/** A third-party identifier as the configuration or a registration names it. */
export interface ThirdPartyId {
  readonly medium: string;
  readonly address: string;
}

export interface UsageLimitOptions {
  readonly limit_usage_by_mau: boolean;
  readonly max_mau_value: number;
  /** Days. */
  readonly mau_trial_days: number;
  /** Days by the id of an application service. */
  readonly mau_appservice_trial_days: Readonly<Record<string, number>>;
  readonly mau_limit_reserved_threepids: readonly ThirdPartyId[];
  readonly admin_contact: string | null;
  readonly track_appservice_user_ips: boolean;
}

export interface UsageLimitDeps {
  readonly clock: Clock;
  readonly monthly: MonthlyUsers;
  readonly account: (userId: string) => Promise<User | undefined>;
  /** Returns the user id of the account with an address in any spelling. */
  readonly findUser: (medium: string, address: string) => Promise<string | undefined>;
}

const day = 86_400_000;

/** Whether the account of a user can be counted at all: the limit does not apply to users of the type `support`. */
const isCountable = (user: User | undefined): user is User =>
  user !== undefined && !user.isDeactivated && user.userType !== 'support';

/** Milliseconds for which the users with a reserved address are cached. */
const reservedLifetime = 60_000;

/**
 * Counts the users who were active in the last 30 days, and refuses other users when the number of counted users has
 * reached `max_mau_value`. The rules are the same as in the reference server: users on trial and users of the type
 * `support` are neither counted nor refused; guests are not counted; users of application services are counted even
 * beyond the limit, and refused only with `track_appservice_user_ips`; users who are counted already are never refused.
 */
export class UsageLimit {
  readonly #deps: UsageLimitDeps;
  readonly #options: UsageLimitOptions;
  #reserved: { readonly foundAt: number; readonly users: ReadonlySet<string> } = {
    foundAt: Number.NEGATIVE_INFINITY,
    users: new Set(),
  };
  readonly #reachedListeners: (() => void)[] = [];
  readonly #findingReserved = new LoadOnce<'all', ReadonlySet<string>>();
  /** Running reads of the accounts of users who were active and are not counted yet, by user id. */
  readonly #counting = new LoadOnce<string, User | undefined>();

  constructor(deps: UsageLimitDeps, options: UsageLimitOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  /** Whether users who are not counted yet are refused. */
  get isReached(): boolean {
    const { limit_usage_by_mau, max_mau_value } = this.#options;
    return limit_usage_by_mau && this.#deps.monthly.count >= max_mau_value;
  }

  /** Calls `listener` each time the limit is reached because one more user is counted. */
  onReached(listener: () => void): void {
    this.#reachedListeners.push(listener);
  }

  /** Whether a user is one of the monthly active users. */
  isCounted(userId: string): boolean {
    return this.#deps.monthly.has(userId);
  }

  /** Whether the user counts against the limit: a counted user, except users of application services. */
  appliesTo(userId: string): boolean {
    return this.isCounted(userId) && !this.#deps.monthly.isOfService(userId);
  }

  /** Returns the error for users who are refused. Source: client-server API, "Server Notices". */
  error(): MatrixError {
    const { admin_contact: contact } = this.#options;
    return new MatrixError(
      403,
      'M_RESOURCE_LIMIT_EXCEEDED',
      'This homeserver has reached its monthly limit of active users',
      { limit_type: 'monthly_active_user', ...(contact !== null && { admin_contact: contact }) },
    );
  }

  /** Records the activity of a user. Needs no I/O when the user is counted already. */
  record({ userId }: Pick<DeviceActivity, 'userId'>): void {
    if (this.#deps.monthly.refresh(userId)) return;
    const { account } = this.#deps;
    this.#counting
      .run(
        userId,
        () => account(userId),
        (user) => this.#count(user),
      )
      .catch(() => undefined);
  }

  /** Stops counting a user whose account was deactivated, also when the account is just being read to count the user. */
  forget(userId: string): void {
    this.#counting.forget(userId);
    this.#deps.monthly.forget(userId);
  }

  /**
   * Refuses a request of a logged-in user who is beyond the limit.
   * @returns `undefined` when the request is allowed without reading the account
   * @throws MatrixError M_RESOURCE_LIMIT_EXCEEDED
   */
  checkRequester({ userId, appservice, administrator }: Requester): Promise<void> | undefined {
    if (!this.isReached && this.#counting.size === 0) return undefined;
    if (appservice !== undefined && !this.#options.track_appservice_user_ips) return undefined;
    return this.checkUser(administrator ?? userId);
  }

  /** Refuses a user with an account who is beyond the limit. @throws MatrixError M_RESOURCE_LIMIT_EXCEEDED */
  checkUser(userId: string): Promise<void> | undefined {
    return this.isCounted(userId) ? undefined : this.#checkUncounted(userId);
  }

  /**
   * Refuses a registration when the limit is reached, unless one of the addresses is reserved.
   * @param addresses addresses that the client has validated
   * @throws MatrixError M_RESOURCE_LIMIT_EXCEEDED
   */
  checkRegistration(addresses: readonly ThirdPartyId[]): void {
    if (this.isReached && !addresses.some((address) => this.#isReserved(address))) throw this.error();
  }

  /**
   * Returns the users who have one of the first `max_mau_value` addresses of `mau_limit_reserved_threepids`. They are
   * counted even when the limit is reached. The result is cached for a minute.
   */
  async reservedUsers(): Promise<ReadonlySet<string>> {
    const { clock } = this.#deps;
    if (clock.monotonic() - this.#reserved.foundAt < reservedLifetime) return this.#reserved.users;
    return this.#findingReserved.run(
      'all',
      () => this.#findReserved(),
      (users) => {
        this.#reserved = { foundAt: clock.monotonic(), users };
      },
    );
  }

  async #findReserved(): Promise<Set<string>> {
    const found = new Set<string>();
    for (const { medium, address } of this.#reservedAddresses) {
      const userId = await this.#deps.findUser(medium, address);
      if (userId !== undefined) found.add(userId);
    }
    return found;
  }

  /** Removes inactive users and, above the limit, the least recently active users, and counts users with a reserved address. */
  async removeOld(): Promise<void> {
    const { monthly } = this.#deps;
    const { limit_usage_by_mau, max_mau_value } = this.#options;
    const reserved = await this.reservedUsers();
    monthly.removeOld(limit_usage_by_mau ? max_mau_value : undefined, reserved);
    for (const userId of reserved) await this.#addReserved(userId);
  }

  async #addReserved(userId: string): Promise<void> {
    if (this.isCounted(userId)) return;
    const user = await this.#deps.account(userId);
    if (isCountable(user)) this.#add(user);
  }

  /** Counts a user who was active, unless the limit is reached. The limit does not apply to users of application services. */
  #count(user: User | undefined): void {
    if (!isCountable(user) || user.isGuest || this.#isOnTrial(user)) return;
    if (this.isReached && user.appservice === undefined) return;
    this.#add(user);
  }

  #add({ userId, appservice }: User): void {
    const wasReached = this.isReached;
    this.#deps.monthly.add(userId, appservice);
    if (wasReached || !this.isReached) return;
    for (const listener of this.#reachedListeners) listener();
  }

  async #checkUncounted(userId: string): Promise<void> {
    await this.#counting.get(userId)?.catch(() => undefined);
    if (!this.isReached || this.isCounted(userId)) return;
    const user = await this.#deps.account(userId);
    if (!isCountable(user) || this.#isOnTrial(user)) return;
    if (user.appservice !== undefined && !this.#options.track_appservice_user_ips) return;
    if (!(await this.reservedUsers()).has(userId)) throw this.error();
    await this.#addReserved(userId);
  }

  #isOnTrial({ createdAt, appservice }: User): boolean {
    const { mau_trial_days, mau_appservice_trial_days: ofServices } = this.#options;
    const days = (appservice === undefined ? undefined : ofServices[appservice]) ?? mau_trial_days;
    return this.#deps.clock.now() - createdAt < days * day;
  }

  /** The first `max_mau_value` reserved addresses. Further ones have no effect. */
  get #reservedAddresses(): readonly ThirdPartyId[] {
    const { mau_limit_reserved_threepids: addresses, max_mau_value: max } = this.#options;
    return addresses.slice(0, max);
  }

  #isReserved({ medium, address }: ThirdPartyId): boolean {
    return this.#reservedAddresses.some(
      (reserved) => reserved.medium === medium && reserved.address.toLowerCase() === address.toLowerCase(),
    );
  }
}
