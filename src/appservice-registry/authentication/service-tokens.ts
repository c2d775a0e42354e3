import { lockedAccount } from '../../accounts/index.ts';
import type { LastSeen } from '../../devices/index.ts';
import { type Cache, type CacheRegistry, KiB } from '../../kernel/caches/index.ts';
import type { AuthenticationContext, Requester, TokenKind } from '../../kernel/http/index.ts';
import { forbidden, MatrixError } from '../../protocol/index.ts';
import type { Appservice } from '../appservice.ts';
import type { AppserviceRegistry } from '../registry.ts';

/** The account that a service acts as. */
export interface ServiceAccount {
  readonly isAdmin: boolean;
  readonly isDeactivated: boolean;
  readonly isLocked: boolean;
  readonly isSuspended: boolean;
  readonly isShadowBanned: boolean;
}

export interface ServiceTokensDeps {
  readonly registry: AppserviceRegistry;
  readonly caches: CacheRegistry;
  readonly account: (userId: string) => Promise<ServiceAccount | undefined>;
  readonly hasDevice: (userId: string, deviceId: string) => Promise<boolean>;
  /** Records the visits of users of services; absent: they are not recorded. */
  readonly lastSeen: Pick<LastSeen, 'record'> | undefined;
  /** Called with the id of the service for each of its requests. A request shows that the service is up. */
  readonly onRequest?: (serviceId: string) => void;
}

/**
 * Accepts the `as_token` of services. A service acts as its sender, or as one of its users whom the request names
 * (`user_id`, `device_id`).
 */
export class ServiceTokens implements TokenKind {
  readonly #deps: ServiceTokensDeps;
  /** Caches requesters, so that a request needs no query. The keys are service, user and device (`keyOf`). */
  readonly #requesters: Cache<string, Requester>;
  /** Keys of cached requesters by user id. */
  readonly #keysOf = new Map<string, Set<string>>();
  /** Counts the calls of `forget`. A requester is not cached when `forget` was called while it was loaded. */
  #generation = 0;

  constructor(deps: ServiceTokensDeps) {
    this.#deps = deps;
    this.#requesters = deps.caches.create('appservice_requesters', {
      size: 1_000,
      maxBytes: 512 * KiB,
      sizeOf: () => 500,
      onRemove: ({ userId }, key) => this.#unindex(userId, key),
    });
  }

  /**
   * Returns the user as whom a service makes a request; `undefined` when no service has the token.
   * Source: application service API, "Identity assertion".
   * @throws MatrixError M_FORBIDDEN for a user outside of the namespaces or without an active account, M_USER_LOCKED,
   * M_UNKNOWN_DEVICE
   */
  authenticate(token: string, context: AuthenticationContext): Requester | undefined | Promise<Requester> {
    const service = this.#deps.registry.byToken(token);
    if (!service) return undefined;
    this.#deps.onRequest?.(service.id);
    const userId = context.assertedUserId ?? service.sender;
    const cached = this.#requesters.get(keyOf(service, userId, context.assertedDeviceId));
    return cached ? this.#admit(cached, context) : this.#load(service, userId, context);
  }

  /** Removes the cached requesters of a user, after the account or the devices have changed. */
  forget(userId: string): void {
    this.#generation++;
    for (const key of [...(this.#keysOf.get(userId) ?? [])]) this.#requesters.delete(key);
  }

  async #load(service: Appservice, userId: string, context: AuthenticationContext): Promise<Requester> {
    const { account: accountOf, hasDevice } = this.#deps;
    const generation = this.#generation;
    const deviceId = context.assertedDeviceId;
    if (!service.mayActAs(userId)) {
      throw forbidden(`The application service '${service.id}' cannot act as ${userId}`);
    }
    const account = await accountOf(userId);
    if (!account || account.isDeactivated) {
      throw forbidden(`${userId} is not registered, or is deactivated`);
    }
    if (account.isLocked && !context.allowLocked) throw lockedAccount();
    if (deviceId !== undefined && !(await hasDevice(userId, deviceId))) {
      throw new MatrixError(400, 'M_UNKNOWN_DEVICE', `${userId} has no such device`);
    }
    const requester: Requester = Object.freeze({
      userId,
      deviceId,
      isGuest: false,
      isAdmin: account.isAdmin,
      isSuspended: account.isSuspended,
      isShadowBanned: account.isShadowBanned,
      appservice: service.id,
      isUnlimited: !service.registration.rateLimited || userId === service.sender,
      tokenId: undefined,
    });
    if (generation === this.#generation && !account.isLocked)
      this.#put(keyOf(service, userId, deviceId), requester);
    return this.#admit(requester, context);
  }

  /** Records the visit of the user, and returns the requester. */
  #admit(requester: Requester, { ip, userAgent }: AuthenticationContext): Requester {
    const { userId, deviceId } = requester;
    this.#deps.lastSeen?.record({ userId, deviceId, ip, userAgent });
    return requester;
  }

  #put(key: string, requester: Requester): void {
    this.#requesters.set(key, requester);
    const keys = this.#keysOf.get(requester.userId);
    if (keys) keys.add(key);
    else this.#keysOf.set(requester.userId, new Set([key]));
  }

  #unindex(userId: string, key: string): void {
    const keys = this.#keysOf.get(userId);
    keys?.delete(key);
    if (keys?.size === 0) this.#keysOf.delete(userId);
  }
}

const keyOf = ({ id }: Appservice, userId: string, deviceId: string | undefined): string =>
  `${id}\0${userId}\0${deviceId ?? ''}`;
