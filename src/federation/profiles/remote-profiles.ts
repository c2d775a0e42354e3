import { LRUCache } from 'lru-cache';
import { errorForClient, type QueriesApi } from '../../federation-client/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import {
  type JsonObject,
  type JsonValue,
  MatrixError,
  notFound,
  serverOfUser,
} from '../../protocol/index.ts';

/** What is kept of profiles, in bytes of JSON, and for how many milliseconds. */
const [bytesKept, profileHolds] = [8 * 1024 * 1024, 5 * 60_000];

/** Beyond its own bytes, what an entry takes. */
const entryOverhead = 256;

/** Bytes of a profile as JSON. Source: client-server API, "Profiles". */
const largestProfile = 65_536;

interface KnownProfile {
  readonly until: number;
  /** `undefined`: the server says that there is none. */
  readonly profile: JsonObject | undefined;
  readonly size: number;
}

/** Asks other servers for the profiles of their users. What they say is remembered for a while. */
export class RemoteProfiles {
  readonly #queries: QueriesApi;
  readonly #clock: Clock;
  readonly #known = new LRUCache<string, KnownProfile>({
    maxSize: bytesKept,
    sizeCalculation: ({ size }) => size + entryOverhead,
  });
  readonly #asking = new LoadOnce<string, JsonObject | undefined>();

  constructor(queries: QueriesApi, clock: Clock) {
    this.#queries = queries;
    this.#clock = clock;
  }

  /**
   * The profile of a user of another server, or one field of it. The whole profile is asked for in any case: who asks
   * for one field asks for another one next.
   * @throws MatrixError M_NOT_FOUND, M_FORBIDDEN where the other server does not tell, 502 when it can not be asked
   */
  async fetch(userId: string, field: string | undefined): Promise<JsonObject> {
    const profile = await this.#profile(userId);
    if (!profile) throw notFound('No such profile');
    if (field === undefined) return profile;
    const value = Object.hasOwn(profile, field) ? profile[field] : undefined;
    if (value === undefined) throw notFound('The profile has no such field');
    return { [field]: value };
  }

  async #profile(userId: string): Promise<JsonObject | undefined> {
    const known = this.#known.get(userId);
    if (known && known.until > this.#clock.monotonic()) return known.profile;
    return this.#asking.run(userId, () => this.#ask(userId));
  }

  async #ask(userId: string): Promise<JsonObject | undefined> {
    const profile = await this.#answer(userId);
    const size = profile ? Buffer.byteLength(JSON.stringify(profile)) : 0;
    if (size > largestProfile)
      throw new MatrixError(502, 'M_UNKNOWN', 'The profile is larger than any may be');
    this.#known.set(userId, { until: this.#clock.monotonic() + profileHolds, profile, size });
    return profile;
  }

  /** `undefined` when the server says that there is no such profile. */
  async #answer(userId: string): Promise<JsonObject | undefined> {
    try {
      return wellFormed(await this.#queries.profile(serverOfUser(userId), userId));
    } catch (error) {
      const shown = errorForClient(error);
      if (shown instanceof MatrixError && shown.status === 404) return undefined;
      throw shown;
    }
  }
}

/** The fields that have a value, and where their kind is known, one of that kind. */
function wellFormed(profile: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(profile).filter(([field, value]) => isWellFormed(field, value)));
}

function isWellFormed(field: string, value: JsonValue | undefined): boolean {
  if (value === undefined || value === null) return false;
  if (field === 'avatar_url') return typeof value === 'string' && value.startsWith('mxc://');
  return (field !== 'displayname' && field !== 'm.tz') || typeof value === 'string';
}
