import { errorForClient, type QueriesApi } from '../../federation-client/index.ts';
import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import { fieldOf } from '../../profiles/index.ts';
import {
  type JsonObject,
  type JsonValue,
  MatrixError,
  notFound,
  serverOfUser,
} from '../../protocol/index.ts';

/** Maximum size of the cache in bytes of JSON. */
const cacheBytes = 6 * MiB;

/** Milliseconds for which an entry is cached. */
const cacheLifetime = 5 * 60_000;

/** Maximum size of a profile in bytes of JSON. Source: client-server API, "Profiles". */
const maxProfileBytes = 65_536;

interface CachedProfile {
  /** Milliseconds of the monotonic clock. */
  readonly expiresAt: number;
  /** `undefined`: the server has answered that there is no such profile. */
  readonly profile: JsonObject | undefined;
  /** Bytes of JSON. */
  readonly size: number;
}

/** Requests profiles of remote users from their servers, and caches them. */
export class RemoteProfiles {
  readonly #queries: QueriesApi;
  readonly #clock: Clock;
  readonly #cache: Cache<string, CachedProfile>;
  readonly #requests = new LoadOnce<string, JsonObject | undefined>();

  constructor(queries: QueriesApi, clock: Clock, caches: CacheRegistry) {
    this.#cache = caches.create('remote_profiles', {
      maxBytes: cacheBytes,
      sizeOf: ({ size }) => size,
      isExpired: ({ expiresAt }) => expiresAt <= clock.monotonic(),
    });
    this.#queries = queries;
    this.#clock = clock;
  }

  /**
   * Returns the profile of a remote user, or one field of it. The whole profile is requested in any case,
   * because clients request several fields.
   * @throws MatrixError M_NOT_FOUND; M_FORBIDDEN when `federation_domain_whitelist` excludes the server; the error of the
   * server when it refuses; 502 when it cannot be reached, or its response is invalid or too large
   */
  async fetch(userId: string, field: string | undefined): Promise<JsonObject> {
    const profile = await this.#profile(userId);
    if (!profile) throw notFound('No such profile');
    return field === undefined ? profile : fieldOf(profile, field);
  }

  async #profile(userId: string): Promise<JsonObject | undefined> {
    const cached = this.#cache.get(userId);
    if (cached) return cached.profile;
    return this.#requests.run(userId, () => this.#load(userId));
  }

  async #load(userId: string): Promise<JsonObject | undefined> {
    const profile = await this.#request(userId);
    const size = profile ? Buffer.byteLength(JSON.stringify(profile)) : 0;
    if (size > maxProfileBytes) throw new MatrixError(502, 'M_UNKNOWN', 'The remote profile is too large');
    this.#cache.set(userId, { expiresAt: this.#clock.monotonic() + cacheLifetime, profile, size });
    return profile;
  }

  /** Returns `undefined` when the server answers that there is no such profile. */
  async #request(userId: string): Promise<JsonObject | undefined> {
    try {
      return wellFormed(await this.#queries.profile(serverOfUser(userId), userId));
    } catch (error) {
      const shown = errorForClient(error);
      if (shown instanceof MatrixError && shown.status === 404) return undefined;
      throw shown;
    }
  }
}

/** Leaves out fields without a value, and fields whose value is not of the type in the specification. */
function wellFormed(profile: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(profile).filter(([field, value]) => isWellFormed(field, value)));
}

const textFields: ReadonlySet<string> = new Set(['displayname', 'avatar_url', 'm.tz']);

function isWellFormed(field: string, value: JsonValue | undefined): boolean {
  if (value === undefined || value === null) return false;
  return !textFields.has(field) || typeof value === 'string';
}
